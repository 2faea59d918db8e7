# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 7's programs: the power that chapter 3's print, and a count of heaps as the last line."""

import itertools
import json
import re

import numpy as np

from support.programs import each_language, in_c
from support.receivers import (
    CHAPTER_7,
    PORT,
    Receiver,
    end,
    flat,
    group_of,
    packets,
    said,
    signals,
    stream,
    timeless,
    whole,
)


@each_language
def test_it_prints_what_chapter_3_prints_and_then_how_many_heaps_it_was(lab, language):
    before, after = (
        said(lab, packets(), language=language, name=name) for name in ("tut_3_recv", CHAPTER_7)
    )
    assert (after.status, after.errors) == (0, "")
    assert timeless(after) == f"{timeless(before)}Received {len(signals())} heaps\n"
    exact = [np.mean(np.square(samples.astype(np.int64))) for samples in signals()]
    assert re.findall(r"Power: (\S+)", after.output) == [f"{power:.2f}" for power in exact]


@each_language
def test_asked_for_both_it_prints_all_of_the_text_and_then_the_json_object(lab, language):
    done = said(lab, packets(), "--json", "--text", language=language, name=CHAPTER_7)
    *_, last, found = done.output.splitlines()
    assert last == f"Received {json.loads(found)['heaps']} heaps"


@in_c
def test_heaps_that_are_lost_or_not_understood_are_not_counted_as_received(lab, language):
    heaps = stream()
    del heaps[4][2]
    done = said(lab, flat(heaps), language=language, name=CHAPTER_7)
    assert done.status == 1
    assert done.output.endswith("\nReceived 9 heaps\n")
    late = said(lab, flat(stream()[3:]), language=language, name=CHAPTER_7)
    assert late.status == 0
    assert "heaps not understood: 7 " in late.output
    assert late.output.endswith("\nReceived 0 heaps\n")


@each_language
def test_only_samples_of_8_bits_are_taken_also_those_that_come_inside_their_pointer(lab, language):
    samples = [np.arange(-2, size - 2, dtype=np.int8) for size in (1, 3, 5)]
    kinds = [*samples, np.ones(8, np.int16), np.ones(1, np.uint8)]
    heaps = [whole(group_of(cnt, one), cnt) for cnt, one in enumerate(kinds, 1)]
    done = said(lab, flat([*heaps, end(len(kinds) + 1)]), language=language, name=CHAPTER_7)
    powers = [np.mean(np.square(one.astype(np.int64))) for one in samples]
    assert re.findall(r"Power: (\S+)", done.output) == [f"{power:.2f}" for power in powers]
    assert "heaps not understood: 2 " in done.output
    assert done.output.endswith("\nReceived 3 heaps\n")


@in_c
def test_a_program_that_is_too_slow_is_told_from_a_socket_that_is_too_small(lab, language):
    group = group_of(0, np.ones(8, np.int8))
    receiver = Receiver(lab, language, "-t", "0.5", name=CHAPTER_7)
    before = lab.snmp()["Udp"]["RcvbufErrors"]
    # Nobody reads what it prints, so it waits at some time, and takes no more heaps.
    with lab.socket() as sock:
        for cnt in itertools.count(1):
            for packet in whole(group, cnt, "stale"):
                sock.sendto(packet, ("127.0.0.1", PORT))
            if cnt % 1000 == 0 and lab.snmp()["Udp"]["RcvbufErrors"] > before:
                break
    assert re.search(
        r"the program took heaps too slowly \(the ring was full \d+ times, for up to \d+\.\d ms\),"
        r" and the socket had no room for all packets: send more slowly",
        receiver.end().errors,
    )

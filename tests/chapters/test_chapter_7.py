# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 7's programs: the power that chapter 3's print, and a count of heaps as the last line."""

import itertools
import re

import numpy as np
import pytest

from spead_tutorial.measure.programs import built, program
from spead_tutorial.send import ItemGroup
from support.receivers import (
    CHAPTER_3,
    CHAPTER_7,
    PORT,
    RATE,
    SIZES,
    Receiver,
    flat,
    options_of,
    packets,
    packets_of,
    said,
    signals,
    stream,
)

each_language = pytest.mark.parametrize("language", built())


@each_language
def test_it_prints_what_chapter_3_prints_and_then_how_many_heaps_it_was(lab, language):
    before, after = (said(lab, name, language, packets()) for name in (CHAPTER_3, CHAPTER_7))
    assert (after.status, after.errors) == (0, "")
    without_rates = [re.sub(RATE, "", done.output) for done in (before, after)]
    assert without_rates[1] == f"{without_rates[0]}Received {2 * len(SIZES)} heaps\n"
    exact = [np.mean(np.square(samples.astype(np.int64))) for _, samples in signals()]
    assert re.findall(r"Power: (\S+)", after.output) == [f"{power:.2f}" for power in exact]


@each_language
def test_heaps_that_are_lost_or_not_understood_are_not_counted_as_received(lab, language):
    heaps = stream()
    del heaps[4][2]
    done = said(lab, CHAPTER_7, language, flat(heaps))
    assert done.status == 1
    assert done.output.endswith("\nReceived 9 heaps\n")
    late = said(lab, CHAPTER_7, language, flat(stream()[3:]))
    assert late.status == 0
    assert "heaps not understood: 7 " in late.output
    assert late.output.endswith("\nReceived 0 heaps\n")


@each_language
@pytest.mark.parametrize("size", [1, 3, 5])
def test_samples_that_come_inside_their_pointer_are_samples_like_others(lab, language, size):
    group = ItemGroup()
    group.add_item(0x1600, "timestamp", "", (), format=[("u", 40)], value=0)
    samples = np.arange(-2, size - 2, dtype=np.int8)
    group.add_item(0x3300, "adc_samples", "", (size,), np.int8, value=samples)
    both = [*packets_of(group.get_heap(), 1), *packets_of(group.get_end(), 2)]
    done = said(lab, CHAPTER_7, language, both)
    power = np.mean(np.square(samples.astype(np.int64)))
    assert f"Timestamp: 0          Power: {power:.2f}\n" in done.output
    assert done.output.endswith("\nReceived 1 heaps\n")


@each_language
def test_samples_of_another_type_are_not_taken_for_those_of_8_bits(lab, language):
    group = ItemGroup()
    group.add_item(0x1600, "timestamp", "", (), format=[("u", 40)], value=0)
    group.add_item(0x3300, "adc_samples", "", (8,), np.int16, value=np.ones(8, np.int16))
    both = [*packets_of(group.get_heap(), 1), *packets_of(group.get_end(), 2)]
    done = said(lab, CHAPTER_7, language, both)
    assert done.output.endswith("\nReceived 0 heaps\n")


def test_all_twins_have_the_options_of_chapter_3(lab):
    found = []
    for name in (CHAPTER_3, CHAPTER_7):
        for language in built():
            argv = [*program(name, language), "--help"]
            done = lab.run(argv, capture_output=True, text=True)
            found.append({key: words for key, words in options_of(done.stdout) if key != "-h,"})
    assert found == [found[0]] * 2 * len(built())


@each_language
def test_a_program_that_is_too_slow_is_told_from_a_socket_that_is_too_small(lab, language):
    group = ItemGroup()
    group.add_item(0x1600, "timestamp", "", (), format=[("u", 40)], value=0)
    group.add_item(0x3300, "adc_samples", "", (8,), np.int8, value=np.ones(8, np.int8))
    receiver = Receiver(lab, language, "-t", "0.5", name=CHAPTER_7)
    before = lab.snmp()["Udp"]["RcvbufErrors"]
    # Nobody reads what it prints, so it waits at some time, and takes no more heaps.
    with lab.socket() as sock:
        for cnt in itertools.count(1):
            for packet in packets_of(group.get_heap("stale", "all"), cnt):
                sock.sendto(packet, ("127.0.0.1", PORT))
            if cnt % 1000 == 0 and lab.snmp()["Udp"]["RcvbufErrors"] > before:
                break
    assert re.search(
        r"the program took heaps too slowly \(the ring was full \d+ times, for up to \d+\.\d ms\),"
        r" and the socket had no room for all packets: send more slowly",
        receiver.end().errors,
    )

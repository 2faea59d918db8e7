# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 9's programs: what chapter 7's print, and what became of the pool."""

import json
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from spead_tutorial.catalogue import find_chapter
from spead_tutorial.lab import Lab
from spead_tutorial.measure.programs import Done, built, command, program
from spead_tutorial.send import ItemGroup
from support import receivers
from support.receivers import (
    CHAPTER_7,
    ENDED,
    PATIENCE_S,
    PEERS,
    PORT,
    RATE,
    SMALL,
    Receiver,
    account,
    flat,
    lines,
    of_all,
    packets,
    packets_of,
    stream,
)

NAME = "tut_9_recv_memory_pool"
N = 6  # buffers of a pool
FAULTS = r"page faults: \d+\n"
MOST_IN_USE = r"at most \d in use"

each_language = pytest.mark.parametrize("language", built())


def said(lab: Lab, language: str, packets: list[bytes], *arguments: str) -> Done:
    """What a receiver says of some packets."""
    receiver = Receiver(lab, language, *arguments, name=NAME)
    with lab.socket() as sock:
        for packet in packets:
            sock.sendto(packet, ("127.0.0.1", PORT))
    return receiver.end()


def counted(lab: Lab, language: str, packets: list[bytes], *arguments: str) -> dict[str, Any]:
    done = said(lab, language, packets, "--json", *arguments)
    assert done.status == 0, done.errors
    found: dict[str, Any] = json.loads(done.output)
    return found


def steady(output: str) -> str:
    """Without what depends on how fast it was."""
    for varying in (RATE, FAULTS, MOST_IN_USE):
        output = re.sub(varying, "", output)
    return output


def pool(requests: int, *, buffers: int = N, empty: int = 0, too_large: int = 0) -> str:
    return (
        f"pool of {buffers}: {requests} requests, {empty} while it was empty,"
        f" {too_large} too large; \n"
    )


# ---- Whatever sends ----


@each_language
@pytest.mark.parametrize("number", ["8", "10", "11"])
def test_all_receive_whole_what_our_senders_send_and_print_the_same(lab, number, language):
    argv = command(find_chapter(number), language, SMALL, ("127.0.0.1", PORT))
    done = [of_all(lab, one, argv, "-H", "8192", name=NAME) for one in built()]
    python = done[0]
    for one in done:
        assert (one.status, one.errors) == (0, "")
        assert steady(python.output) == steady(one.output)
    values, _, rest = steady(python.output).partition(ENDED)
    assert values == lines(100, 8192)
    n = 101 if number == "11" else len(re.findall("Timestamp", values)) + 1  # with the stop heap
    (received,) = re.findall(r"^packets: (\d+) received", rest, re.M)
    whole = account(100, f"{received} received = {received} placed")
    assert rest == f"{whole}{pool(n)}Received 100 heaps\n"


@each_language
@pytest.mark.parametrize("peer", PEERS, ids=lambda path: path.stem)
def test_what_a_program_with_spead2_sends_is_received_whole(lab, peer, language):
    argv = [sys.executable, str(peer), "-n", "100", "-H", "8192", "127.0.0.1", str(PORT)]
    done = of_all(lab, language, argv, "-H", "8192", name=NAME)
    assert (done.status, done.errors) == (0, "")
    values, _, rest = steady(done.output).partition(ENDED)
    assert values == lines(100, 8192)
    whole = account(100, "101 received = 101 placed")
    assert rest == f"{whole}{pool(101)}Received 100 heaps\n"


@each_language
def test_it_prints_what_chapter_7_prints_and_a_line_of_its_pool(lab, language):
    sent = packets()
    before = receivers.said(lab, CHAPTER_7, language, sent)
    after = said(lab, language, sent)
    assert (after.status, after.errors) == (0, "")
    n = len(re.findall("^Timestamp", before.output, re.M))
    *values, last = steady(before.output).splitlines(keepends=True)
    assert steady(after.output) == "".join([*values, pool(n + 1), last])


# ---- The pool ----


def zeros(n_heaps: int) -> list[bytes]:
    """Small heaps, each of one packet."""
    group = ItemGroup()
    group.add_item(0x1600, "timestamp", "", (), format=[("u", 40)], value=0)
    group.add_item(0x3300, "adc_samples", "", (16,), np.int8, value=np.zeros(16, np.int8))
    heaps = [packets_of(group.get_heap(data="all"), i + 1) for i in range(n_heaps)]
    return flat([*heaps, packets_of(group.get_end(), n_heaps + 1)])


@each_language
def test_a_program_that_is_slow_has_one_heap_at_a_time(lab, language):
    """Its output is a pipe, which is full soon: so the ring fills up, too."""
    receiver = Receiver(lab, language, "-H", "16", name=NAME)
    with lab.socket() as sock:
        for packet in zeros(3000):
            sock.sendto(packet, ("127.0.0.1", PORT))
    done = receiver.end()
    assert done.status == 0
    ((empty, most),) = re.findall(r"(\d+) while it was empty, .* at most (\d) in use", done.output)
    assert int(empty) == 0
    assert int(most) <= 4  # two in the ring, one between, and the only one that the program has


@each_language
def test_without_buffers_each_heap_gets_new_memory(lab, language):
    found = counted(lab, language, flat(stream()), "-H", "8192", "-b", "0")
    assert found["pool_requests"] == found["pool_empty"] == 11
    assert found["heaps_complete"] == 10


@each_language
def test_heaps_that_are_larger_than_said_are_received_and_it_is_told(lab, language):
    done = said(lab, language, flat(stream()), "-H", "16")
    right = said(lab, language, flat(stream()))
    assert done.status == 0  # nothing is lost
    (size,) = re.findall(
        "^tut_9_recv_memory_pool: heaps of (\\d+) bytes do not fit into buffers of the pool, and"
        " each got new memory: say how large they are with -H\n$",
        done.errors,
    )
    assert int(size) > 8192
    expected = steady(right.output).replace("0 too large", "1 too large")
    assert steady(done.output) == expected  # the others have no descriptors, and fit


@each_language
def test_a_json_object_counts_the_pool(lab, language):
    found = counted(lab, language, flat(stream()))
    assert (found["chapter"], found["program"], found["language"]) == (9, NAME, language)
    assert (found["heaps_complete"], found["pool_requests"]) == (10, 11)
    assert (found["pool_empty"], found["pool_too_large"]) == (0, 0)
    assert 1 <= found["pool_most_in_use"] <= N
    assert found["page_faults"] >= 0


# ---- Bad input ----


@each_language
def test_a_heap_of_which_a_packet_is_lost_is_accounted_for_and_its_memory_comes_back(lab, language):
    heaps = stream()
    del heaps[4][2]
    done = said(lab, language, flat(heaps))
    assert (done.status, done.errors[:43]) == (1, f"{NAME}: packets are missing")
    assert account(9, "60 received = 57 placed + 3 after a loss", incomplete=1) in done.output
    assert done.output.endswith("\nReceived 9 heaps\n")
    assert pool(11) in steady(done.output)


@each_language
def test_without_a_stop_heap_it_says_that_nothing_has_come(lab, language):
    done = said(lab, language, flat(stream()[:-1]), "-t", "0.25")
    assert done.status == 0
    assert "Nothing has come for 0.25 s: the stop heap may be lost.\n" in done.output
    assert pool(10) in steady(done.output)


@each_language
def test_a_pool_that_there_is_no_memory_for_is_one_line_and_status_1(lab, language):
    # Addresses that a process may have: so much is refused wherever it is asked for.
    argv = ["prlimit", f"--as={8 << 30}", *program(NAME, language), "-H", "1073733632", "-b", "9"]
    done = lab.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(
        f"{NAME}: no memory for 9 buffers of 1073741824 bytes: there was enough for \\d\n",
        done.stderr,
    )


@each_language
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-H", "0"], "must be a whole number from 1 to 1073733632, not '0'"),
        (["-H", "1073733633"], "must be a whole number from 1 to 1073733632, not '1073733633'"),
        (["--heap-size", "1 MiB"], "must be a whole number from 1 to 1073733632, not '1 MiB'"),
        (["-b", "-1"], "must be a whole number from 0 to 1000, not '-1'"),
        (["--buffers=1001"], "must be a whole number from 0 to 1000, not '1001'"),
        (["-b", ""], "must be a whole number from 0 to 1000, not ''"),
    ],
)
def test_what_is_asked_for_wrongly_is_refused(language, arguments, words):
    argv = [*program(NAME, language), *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].endswith(words)


@each_language
def test_its_help_has_the_same_words_in_both_languages(language):
    argv = [*program(NAME, language), "--help"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
    text = " ".join(done.stdout.split())
    assert "--heap-size BYTES bytes of samples in a heap (1048576)" in text
    assert (
        f"--buffers COUNT heaps that the pool has memory for ({N}); 0 for none, so that each gets"
        " new memory"
    ) in text


@each_language
def test_chapters_3_and_7_have_no_pool_to_be_told_of(language):
    for name, option in ((one, option) for one in ("tut_3_recv", "tut_7_recv_power")
                         for option in ("-H", "-b")):  # fmt: skip
        argv = [*program(name, language), option, "5"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 2

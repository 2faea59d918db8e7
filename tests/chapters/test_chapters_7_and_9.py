# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 7's programs, which count heaps at last, and chapter 9's, which have a pool, too."""

import itertools
import json
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

from spead_tutorial.measure.programs import program
from support.programs import PATIENCE_S, each_language, in_c
from support.receivers import (
    CHAPTER_7,
    CHAPTER_9,
    ENDED,
    POOL,
    PORT,
    SIZE,
    Receiver,
    account,
    end,
    flat,
    group_of,
    lines,
    packets,
    pool,
    said,
    signals,
    stream,
    timeless,
    whole,
)


@each_language
def test_each_prints_what_the_one_before_prints_then_how_many_heaps_and_of_its_pool(lab, language):
    third, seventh, ninth = (
        said(lab, packets(), *told, language=language, name=name)
        for name, *told in (("tut_3_recv",), (CHAPTER_7,), (CHAPTER_9, "-H", "1048576"))
    )
    for done in (seventh, ninth):
        assert (done.status, done.errors) == (0, "")
    received = f"Received {len(signals())} heaps\n"
    assert timeless(seventh) == timeless(third) + received
    assert timeless(ninth) == timeless(third) + pool(len(signals()) + 1) + received
    exact = [np.mean(np.square(samples.astype(np.int64))) for samples in signals()]
    assert re.findall(r"Power: (\S+)", seventh.output) == [f"{power:.2f}" for power in exact]


@pytest.mark.parametrize("numba", ["", "None", "sys"])  # as it is, not there, or of no use
def test_squares_are_added_up_exactly_with_numba_and_without(numba, tmp_path):
    program = f"""import sys
{f"sys.modules['numba'] = {numba}" if numba else ""}
import numpy as np
from spead_tutorial.chapters.squares import mean_square, sum_squares
lowest = np.full((256, 4097), -128, np.int8)
lowest.flags.writeable = False
others = np.asfortranarray(np.arange(-6, 6, dtype=np.int8).reshape(3, 4))
print(hasattr(sum_squares, "py_func"), mean_square(lowest), round(mean_square(others) * 12))"""
    argv = [sys.executable, "-c", program]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path)
    assert (done.stdout, done.stderr) == (f"{not numba} 16384.0 146\n", "")


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
    read_on = threading.Event()

    def show(name: str, line: str, is_error: bool) -> None:
        if not is_error:
            read_on.wait()

    receiver = Receiver(lab, language, "-t", "0.5", name=CHAPTER_7, show=show)
    before = lab.snmp()["Udp"]["RcvbufErrors"]
    # Nobody reads what it prints, so it waits when the pipe is full, and takes no more heaps.
    with lab.socket() as sock:
        for cnt in itertools.count(1):
            for packet in whole(group, cnt, "stale"):
                sock.sendto(packet, ("127.0.0.1", PORT))
            if cnt % 1000 == 0 and lab.snmp()["Udp"]["RcvbufErrors"] > before:
                break
    read_on.set()
    assert re.search(
        r"the program took heaps too slowly \(the ring was full \d+ times, for up to \d+\.\d ms\),"
        r" and the socket had no room for all packets: send more slowly",
        receiver.end().errors,
    )


# ---- The pool ----


@in_c
def test_a_program_that_is_slow_has_one_heap_at_a_time(lab, language):
    """Its output is a pipe, which is full soon: so the ring fills up, too."""
    group = group_of(0, np.zeros(16, np.int8))
    small = flat([*(whole(group, i) for i in range(1, 3001)), end(3001)])
    done = said(lab, small, "-H", "16", language=language, name=CHAPTER_9)
    assert done.status == 0
    ((empty, most),) = re.findall(r"(\d+) while it was empty, .* at most (\d) in use", done.output)
    assert int(empty) == 0
    assert int(most) <= 4  # two in the ring, one between, and the only one that the program has


@each_language
@pytest.mark.parametrize("buffers", [0, POOL])
def test_a_json_object_counts_the_pool_without_buffers_each_heap_gets_new_memory(
    lab, language, buffers
):
    arguments = ["--json", "-b", str(buffers)]
    done = said(lab, flat(stream()), *arguments, language=language, name=CHAPTER_9)
    assert done.status == 0, done.errors
    found = json.loads(done.output)
    assert (found["chapter"], found["program"], found["language"]) == (9, CHAPTER_9, language)
    assert (found["heaps_complete"], found["pool_requests"]) == (10, 11)
    assert (found["pool_empty"], found["pool_too_large"]) == (0 if buffers else 11, 0)
    assert 1 <= found["pool_most_in_use"] <= (buffers or 11)
    assert found["page_faults"] >= 0


@each_language
def test_heaps_that_are_larger_than_said_are_received_and_it_is_told(lab, language):
    done = said(lab, flat(stream()), "-H", "16", language=language, name=CHAPTER_9)
    assert done.status == 0  # nothing is lost
    (size,) = re.findall(
        f"^{CHAPTER_9}: heaps of (\\d+) bytes do not fit into buffers of the pool, and"
        " each got new memory: say how large they are with -H\n$",
        done.errors,
    )
    assert int(size) > SIZE
    every = account(10, "61 received = 61 placed")
    # The others have no descriptors, and fit.
    expected = f"{lines(10)}{ENDED}{every}{pool(11, too_large=1)}Received 10 heaps\n"
    assert timeless(done) == expected


@in_c
def test_a_pool_that_there_is_no_memory_for_is_one_line_and_status_1(lab, language):
    # Addresses that a process may have: so much is refused wherever it is asked for.
    most = 1 << (30 if language == "python" else 28)
    argv = ["prlimit", f"--as={most}", *program(CHAPTER_9, language), "-H", "33546240", "-b", "99"]
    done = lab.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(
        f"{CHAPTER_9}: no memory for 99 buffers of 33554432 bytes: there was enough for \\d+\n",
        done.stderr,
    )

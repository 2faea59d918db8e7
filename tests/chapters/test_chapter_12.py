# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 12's programs: small heaps are gathered in chunks, and none is missed.

Each start of the one in Python compiles with Numba, for seconds: once is enough for `make test`.
"""

import functools
import json
import re
import sys

import numpy as np
import pytest

from spead_tutorial.chapters.catalogue import find_receiver
from spead_tutorial.measure import delivery
from spead_tutorial.measure.programs import Done, built, program
from support import receivers
from support.programs import cases, ended, in_c
from support.receivers import (
    CHAPTER_12,
    CHUNK,
    COMPILED,
    ENDED,
    SIZE,
    Receiver,
    chunk_lines,
    end,
    flat,
    group_of,
    packets_of,
    said,
    send,
    whole,
)

IN_CHUNK = CHUNK // SIZE

stream = functools.partial(receivers.stream, described=False)
of_packets = functools.partial(receivers.of_packets, name=CHAPTER_12)


@pytest.fixture(params=cases([(COMPILED,), (built(),)], COMPILED.__eq__), ids="-".join)
def languages(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Those whose programs have to say the same."""
    return request.param


def in_no_chunk(done: Done) -> str:
    (said,) = re.findall("^heaps that are in no chunk: (.*)$", done.output, re.M)
    return str(said)


def test_a_receiver_is_told_the_size_of_heaps_if_it_takes_it():
    chunks, first = find_receiver("12"), find_receiver("3")
    asked = functools.partial(delivery.receiver_arguments, heap_size=SIZE, at="8888")
    assert asked(chunks, text=False) == ["-H", str(SIZE), "--json", "8888"]
    assert asked(first, text=True) == ["--json", "--text", "8888"]


# ---- Descriptors ----


def heap(i: int, descriptors: str, data: str = "all") -> list[bytes]:
    group = group_of(i * SIZE, np.full(SIZE, i).astype(np.int8))
    return packets_of(group.get_heap(descriptors, data), i + 1)


def test_a_heap_of_descriptors_alone_has_no_place_and_is_no_trouble(lab, languages):
    heaps = stream()
    heaps[3] = heap(3, "all", "none")
    done = of_packets(lab, flat(heaps), languages=languages)
    assert (done.status, done.errors) == (0, "")
    assert done.output.startswith(chunk_lines([0, 1, 2, *range(4, 10)]))
    assert in_no_chunk(done) == "1 without a timestamp"


def test_samples_with_descriptors_in_front_are_left_out_which_is_said(lab, languages):
    heaps = stream()
    heaps[0] = heap(0, "all")
    done = of_packets(lab, flat(heaps), languages=languages)
    assert done.status == 1
    assert "descriptors need a heap of their own" in done.errors
    assert done.output.startswith(chunk_lines(range(1, 10)))
    assert in_no_chunk(done) == "1 of another size"


# ---- What may be wrong ----


def test_a_wrong_size_is_a_trouble_that_is_named(lab, languages):
    done = of_packets(lab, flat(stream(size=4096)), languages=languages)
    assert (done.status, done.output.splitlines()[0]) == (1, ENDED.strip())
    assert done.errors == (
        f"{CHAPTER_12}: heaps are not of {SIZE} bytes, or their timestamps are no multiples of"
        " that: say with -H what the sender sends; descriptors need a heap of their own\n"
    )
    assert in_no_chunk(done) == "10 of another size"
    assert done.output.endswith("\nReceived 0 heaps\n")


def test_heaps_that_something_is_lost_of_are_left_out_of_the_mean(lab, languages):
    heaps = stream()
    del heaps[4][2]
    del heaps[6][0]
    done = of_packets(lab, flat(heaps), languages=languages)
    assert (done.status, done.errors[:39]) == (1, f"{CHAPTER_12}: packets are missing")
    assert done.output.startswith(chunk_lines([0, 1, 2, 3, 5, 7, 8, 9]))
    assert "heaps: 8 complete, 1 incomplete, 1 never begun\n" in done.output
    assert done.output.endswith("\nReceived 8 heaps\n")


def test_a_chunk_without_any_heap_is_not_told_of(lab, languages):
    heaps = stream()
    done = of_packets(lab, flat([heaps[0][:1], heaps[-1]]), languages=languages)
    assert done.output.startswith(ENDED)
    assert "\nchunks: 1 filled, " in done.output
    assert done.output.endswith("\nReceived 0 heaps\n")


JUMPS = {
    "forward": ([0, 1, 900, 901], ""),
    "back": ([0, 300, 1, 301], "1 too old for their chunk"),
    "twice": ([0, 1, 1, 2], "1 in the place of others"),
    "in between": ([0, 1.5, 2], "1 of another size"),
}


@pytest.mark.parametrize(("at", "words"), JUMPS.values(), ids=JUMPS)
def test_timestamps_that_jump_are_received_or_accounted_for(lab, at, words, languages):
    samples = np.ones(SIZE, np.int8)
    heaps = [whole(group_of(int(i * SIZE), samples), cnt, "none") for cnt, i in enumerate(at, 1)]
    done = of_packets(lab, flat([*heaps, end(len(at) + 1)]), languages=languages)
    assert done.output.endswith(f"\nReceived {len(at) - bool(words)} heaps\n")
    assert done.status == bool(words)
    if words:
        assert in_no_chunk(done) == words
        (complaint,) = done.errors.splitlines()
        assert ("timestamps jump" in complaint) == ("size" not in words)


# ---- The program ----


def test_json_has_the_counts_of_chunks_with_the_same_names_in_every_language(lab, languages):
    packets = flat(stream(IN_CHUNK + 1))
    found = [
        json.loads(said(lab, packets, "--json", language=language, name=CHAPTER_12).output)
        for language in languages
    ]
    for one in found:
        assert list(one) == list(found[0])
        assert (one["chapter"], one["program"], one["ended"]) == (12, CHAPTER_12, "stop")
        assert one["heaps"] == one["heaps_complete"] == IN_CHUNK + 1
        assert (one["chunks"], one["rejected_heaps"], one["unfit_heaps"]) == (2, 0, 0)
        assert one["elapsed_ns"] > 0


@in_c
def test_one_core_is_enough(lab, language):
    begin = "import os, sys; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])"
    begin += "; os.execv(sys.argv[1], sys.argv[1:])"
    under = [sys.executable, "-c", begin]
    receiver = Receiver(lab, language, name=CHAPTER_12, under=under)
    send(lab, flat(stream()))
    done = receiver.end()
    assert (done.status, done.errors) == (0, "")
    assert done.output.startswith(chunk_lines(range(10)))


@pytest.mark.parametrize("name", [CHAPTER_12, "tut_19_recv_corner_turn"])
def test_without_numba_one_line_says_what_to_install(name):
    (_, path) = program(name, "python")
    start = "import runpy, sys; sys.modules['numba'] = None; runpy.run_path(sys.argv[0])"
    argv = [sys.executable, "-P", "-c", f"import sys; sys.argv = [{path!r}]; {start}"]
    done = ended(argv)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.endswith("pip install 'spead-tutorial[numba]'")

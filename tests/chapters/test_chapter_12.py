# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 12's programs: small heaps are gathered in chunks, and none is missed."""

import functools
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from spead_tutorial.catalogue import find_chapter, find_receiver
from spead_tutorial.lab import Lab
from spead_tutorial.measure import receiving
from spead_tutorial.measure.programs import Done, ProgramOptions, built, command, program
from spead_tutorial.send import ItemGroup
from support.receivers import ATTEMPTS, PATIENCE_S, PEERS, PORT, Receiver, flat, packets_of, stream

NAME, CHUNK = "tut_12_recv_chunks", 1 << 20
SIZE, IN_CHUNK = 8192, 128
RATE = r"\d+\.\d\d MB/s from the first chunk to the last\n"
ENDED = "The stream has ended.\n"

each_language = pytest.mark.parametrize("language", built())


def lines(heaps: Iterable[int], size: int = SIZE) -> str:
    """What is printed of heaps that are filled with their index."""
    in_chunk = max(1, CHUNK // size)
    chunks: dict[int, list[int]] = {}
    for i in heaps:
        chunks.setdefault(i // in_chunk, []).append(((i + 128) % 256 - 128) ** 2)
    return "".join(
        f"Timestamp: {i * in_chunk * size:<10} Power: {np.mean(squares):.2f}\n"
        for i, squares in chunks.items()
    )


def timeless(done: Done) -> str:
    return re.sub(RATE, "", done.output)


def of_all(lab: Lab, language: str, argv: Sequence[str], size: int) -> Done:
    """What a receiver says of a sender that it has lost nothing of."""
    for _ in range(ATTEMPTS):
        before = lab.snmp()["Udp"]["RcvbufErrors"]
        receiver = Receiver(lab, language, "-H", str(size), name=NAME)
        sent = lab.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
        assert sent.returncode == 0, sent.stderr
        if lab.snmp()["Udp"]["RcvbufErrors"] == before:
            return receiver.end()
        receiver.process.kill()
        receiver.process.wait()
    pytest.fail(f"the receiver's socket had no room in {ATTEMPTS} runs")


def of_packets(lab: Lab, packets: Sequence[bytes], *arguments: str) -> Done:
    """What the receivers say of some packets, which has to be the same."""
    done = []
    for language in built():
        receiver = Receiver(lab, language, "-H", str(SIZE), *arguments, name=NAME)
        with lab.socket() as sock:
            for packet in packets:
                sock.sendto(packet, ("127.0.0.1", PORT))
        done.append(receiver.end())
    python = done[0]
    for one in done[1:]:
        assert (python.status, timeless(python)) == (one.status, timeless(one))
        assert python.errors == one.errors
    return python


def in_no_chunk(done: Done) -> str:
    (said,) = re.findall("^heaps that are in no chunk: (.*)$", done.output, re.M)
    return str(said)


# ---- Whatever sends ----


@each_language
@pytest.mark.parametrize("number", ["10", "11", "13"])
@pytest.mark.parametrize(("n", "size"), [(300, SIZE), (1100, 1000), (3, 1 << 20)])
def test_all_heaps_of_a_chapter_are_in_chunks_the_first_one_too(lab, number, n, size, language):
    destination = ("127.0.0.1", PORT)
    argv = command(find_chapter(number), language, ProgramOptions(n, size), destination)
    for one in built():
        done = of_all(lab, one, argv, size)
        assert (done.status, done.errors) == (0, "")
        values, _, rest = timeless(done).partition(ENDED)
        assert values == lines(range(n), size)
        assert f"\nheaps: {n} complete, 0 incomplete, 0 never begun\nsocket: 0 dropped\n" in rest
        assert "in no chunk" not in rest
        assert rest.endswith(f"\nReceived {n} heaps\n")


@each_language
@pytest.mark.parametrize("peer", PEERS, ids=lambda path: path.stem)
def test_all_heaps_of_a_program_with_spead2_are_in_chunks(lab, peer, language):
    argv = [sys.executable, str(peer), "-n", "300", "-H", str(SIZE), "127.0.0.1", str(PORT)]
    done = of_all(lab, language, argv, SIZE)
    assert (done.status, done.errors) == (0, "")
    assert timeless(done).partition(ENDED)[0] == lines(range(300))
    assert done.output.endswith("\nReceived 300 heaps\n")


def test_a_receiver_is_told_the_size_of_the_senders_heaps():
    sender, chunks = find_chapter("11"), find_receiver("12")
    assert chunks is not None
    first = find_receiver("3")
    assert first is not None
    told = functools.partial(receiving.receiver_arguments, told=(), as_json=False, port=PORT)
    sized = ProgramOptions(heap_size=SIZE)
    assert told(chunks, sender, sized) == ["-H", str(SIZE), str(PORT)]
    assert told(chunks, sender, ProgramOptions()) == ["-H", str(sender.heap_size), str(PORT)]
    assert told(first, sender, sized) == [str(PORT)]


# ---- Descriptors ----


def numbered(n: int) -> list[list[bytes]]:
    """The packets of some heaps, more than a chunk has, and of the end."""
    heaps = [described(i, "none" if i else "all", "all") for i in range(n)]
    return [*heaps, packets_of(ItemGroup().get_end(), n + 1)]


def described(i: int, descriptors: str, data: str, more: int = 0) -> list[bytes]:
    """The packets of a heap, with an item behind the samples where there is to be more."""
    group = ItemGroup()
    group.add_item(0x1600, "timestamp", "", (), format=[("u", 40)], value=i * SIZE)
    samples = np.full(SIZE, i).astype(np.int8)
    group.add_item(0x3300, "adc_samples", "", (SIZE,), np.int8, value=samples)
    if more:
        group.add_item(0x3400, "more", "", (more,), np.int8, value=np.ones(more, np.int8))
    return packets_of(group.get_heap(descriptors, data), i + 1)


def test_a_heap_of_descriptors_alone_has_no_place_and_is_no_trouble(lab):
    heaps = stream()
    heaps[0] = packets_of(ItemGroup().get_heap(), 1)
    alone, heaps[3] = described(3, "all", "none"), []
    done = of_packets(lab, flat([*heaps[1:3], alone, *heaps[4:]]))
    assert (done.status, done.errors) == (0, "")
    assert done.output.startswith(lines([1, 2, *range(4, 10)]))
    assert in_no_chunk(done) == "1 without a timestamp"


@pytest.mark.parametrize("more", [0, 8])
def test_samples_that_are_not_where_there_is_room_are_refused(lab, more):
    heaps = stream()
    where = 0 if more else 4  # behind the samples there is something, or the heap is not the first
    heaps[where] = described(where, "all", "all", more)
    done = of_packets(lab, flat(heaps))
    assert done.status == 1
    assert "say with -H what the sender sends" in done.errors
    assert done.output.startswith(lines(set(range(10)) - {where}))
    assert in_no_chunk(done) == "1 of another size"


def test_descriptors_may_come_again_at_the_beginning_of_a_chunk(lab):
    heaps = numbered(IN_CHUNK + 2)
    heaps[IN_CHUNK] = described(IN_CHUNK, "all", "all")
    done = of_packets(lab, flat(heaps))
    assert (done.status, done.errors) == (0, "")
    assert done.output.startswith(lines(range(IN_CHUNK + 2)))


# ---- What may be wrong ----


def test_a_wrong_size_is_a_trouble_that_is_named(lab):
    done = of_packets(lab, flat(stream(size=4096)))
    assert (done.status, done.output.splitlines()[0]) == (1, ENDED.strip())
    assert done.errors == (
        f"{NAME}: heaps are not of {SIZE} bytes, or their timestamps are no multiples of that:"
        " say with -H what the sender sends\n"
    )
    assert in_no_chunk(done) == "10 of another size"
    assert done.output.endswith("\nReceived 0 heaps\n")


def test_heaps_that_something_is_lost_of_are_left_out_of_the_mean(lab):
    heaps = stream()
    del heaps[4][2]
    del heaps[6][0]
    done = of_packets(lab, flat(heaps))
    assert (done.status, done.errors[:41]) == (1, f"{NAME}: packets are missing: ")
    assert done.output.startswith(lines([0, 1, 2, 3, 5, 7, 8, 9]))
    assert "heaps: 8 complete, 1 incomplete, 1 never begun\n" in done.output
    assert done.output.endswith("\nReceived 8 heaps\n")


def test_a_chunk_without_any_heap_is_not_told_of(lab):
    heaps = stream()
    done = of_packets(lab, flat([heaps[0][:1], heaps[-1]]))
    assert done.output.startswith(ENDED)
    assert "\nchunks: 1 filled, " in done.output
    assert done.output.endswith("\nReceived 0 heaps\n")


def test_a_receiver_that_starts_late_needs_no_descriptors(lab):
    done = of_packets(lab, flat(stream()[3:]))
    assert (done.status, done.errors) == (0, "")
    assert done.output.startswith(lines(range(3, 10)) + ENDED)


def test_the_last_chunk_comes_where_the_stop_heap_does_not(lab):
    done = of_packets(lab, flat(stream()[:-1]), "-t", "0.25")
    assert (done.status, done.errors) == (0, "")
    silence = "Nothing has come for 0.25 s: the stop heap may be lost.\n"
    assert done.output.startswith(lines(range(10)) + silence)


JUMPS = {
    "forward": ([0, 1, 900, 901], ""),
    "back": ([0, 300, 1, 301], "1 too old for their chunk"),
    "twice": ([0, 1, 1, 2], "1 in the place of others"),
    "in between": ([0, 1.5, 2], "1 of another size"),
}


@pytest.mark.parametrize(("at", "said"), JUMPS.values(), ids=JUMPS)
def test_timestamps_that_jump_are_received_or_accounted_for(lab, at, said):
    group = ItemGroup()
    group.add_item(0x1600, "timestamp", "", (), format=[("u", 40)])
    group.add_item(0x3300, "adc_samples", "", (SIZE,), np.int8, value=np.ones(SIZE, np.int8))
    packets = []
    for cnt, i in enumerate(at):
        group["timestamp"].value = int(i * SIZE)
        packets += packets_of(group.get_heap("none", "all"), cnt + 1)
    done = of_packets(lab, [*packets, *packets_of(group.get_end(), len(at) + 1)])
    received = len(at) - (1 if said else 0)
    assert done.output.endswith(f"\nReceived {received} heaps\n")
    assert done.status == (1 if said else 0)
    if said:
        assert in_no_chunk(done) == said
        (complaint,) = done.errors.splitlines()
        assert ("timestamps jump" in complaint) == ("size" not in said)


# ---- The program ----


def test_json_has_the_counts_of_chunks_with_the_same_names_in_every_language(lab):
    found = []
    for language in built():
        receiver = Receiver(lab, language, "--json", "-H", str(SIZE), name=NAME)
        with lab.socket() as sock:
            for packet in flat(numbered(IN_CHUNK + 1)):
                sock.sendto(packet, ("127.0.0.1", PORT))
        found.append(json.loads(receiver.end().output))
    for one in found:
        assert list(one) == list(found[0])
        assert (one["chapter"], one["program"], one["ended"]) == (12, NAME, "stop")
        assert one["heaps"] == one["heaps_complete"] == IN_CHUNK + 1
        assert (one["chunks"], one["rejected_heaps"], one["unfit_heaps"]) == (2, 0, 0)
        assert one["elapsed_ns"] > 0


@each_language
def test_one_core_is_enough(lab, language):
    begin = "import os, sys; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])"
    begin += "; os.execv(sys.argv[1], sys.argv[1:])"
    argv = [sys.executable, "-c", begin, *program(NAME, language), "-H", str(SIZE)]
    pipe = subprocess.PIPE
    with lab.popen(argv, stdout=pipe, stderr=pipe, text=True) as process, lab.socket() as sock:
        assert process.stderr is not None
        while "listening" not in (line := process.stderr.readline()):
            assert line
        for packet in flat(stream()):
            sock.sendto(packet, ("127.0.0.1", PORT))
        assert process.stdout is not None
        output, errors = process.stdout.read(), process.stderr.read()
        assert (process.wait(PATIENCE_S), errors) == (0, "")
    assert output.startswith(lines(range(10)))


@each_language
@pytest.mark.parametrize("size", ["0", "-1", "x", "1073741824", "9223372036854775808"])
def test_a_size_that_no_heap_can_have_is_refused(language, size):
    argv = [*program(NAME, language), "-H", size]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (2, "")
    words = f"must be a whole number from 1 to 1073733632, not '{size}'"
    assert done.stderr.splitlines()[-1].endswith(words)


def test_without_numba_one_line_says_what_to_install():
    (_, path) = program(NAME, "python")[-2:]
    start = "import runpy, sys; sys.modules['numba'] = None; runpy.run_path(sys.argv[0])"
    argv = [sys.executable, "-P", "-c", f"import sys; sys.argv = [{path!r}]; {start}"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"{NAME}: ")
    assert line.endswith("pip install 'spead-tutorial[numba]'")

# SPDX-License-Identifier: BSD-3-Clause
"""The chapters' receivers in a lab, what is sent to them, and what they say."""

import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pytest

from spead_tutorial.chapters.catalogue import ARRAY, RECEIVERS
from spead_tutorial.lab import Lab
from spead_tutorial.measure.programs import Done, ProgramOptions, built, program
from spead_tutorial.measure.running import Listening
from spead_tutorial.send import Heap, ItemGroup, PacketGenerator
from support.programs import PATIENCE_S

CHAPTER_3, CHAPTER_7, CHAPTER_9, CHAPTER_12 = (receiver.name for receiver in RECEIVERS[:4])
CHAPTER_18 = RECEIVERS[-1].name
CHAPTER_19 = ARRAY[1].name
POOL = 6  # buffers of chapter 9's pool
#: Languages in which a program starts at once; chapter 12's in Python compiles for seconds.
COMPILED = tuple(language for language in built() if language != "python")
ATTEMPTS, PORT, SIZE = 5, 8888, 8192
CHUNK = 1 << 20  # bytes
SMALL = ProgramOptions(100, SIZE)
ENDED = "The stream has ended.\n"
#: What depends on how fast a receiver was.
VARYING = (
    r"\d+\.\d\d MB/s from the first (heap|chunk) to the last\n"
    r"|page faults: \d+\n|at most \d in use|socket \d: .*\n"
)


def receiver_argv(name: str, language: str) -> list[str]:
    """Start a receiver with the size of heaps, where it has to know."""
    (found,) = (receiver for receiver in (*RECEIVERS, ARRAY[1]) if receiver.name == name)
    return [*program(name, language), *(["-H", str(SIZE)] if "H" in found.accepted else [])]


class Receiver(Listening):
    """A receiver in a lab, which listens."""

    def __init__(
        self,
        lab: Lab,
        language: str,
        *arguments: str,
        name: str = CHAPTER_3,
        under: Sequence[str] = (),
        show: Callable[[str, str, bool], None] | None = None,
    ) -> None:
        argv = [*under, *receiver_argv(name, language), *arguments]
        super().__init__(lab.popen, name, argv, show)
        self.__enter__()
        self.said = "".join(self._lines[1])

    def end(self) -> Done:
        """Wait for its end; keep what it said besides that it listens, and with what buffer."""
        with self as ended:
            done = ended.wait(PATIENCE_S)
        return dataclasses.replace(done, errors=done.errors.removeprefix(self.said))


def send(lab: Lab, packets: Sequence[bytes]) -> None:
    with lab.socket() as sock:
        for packet in packets:
            sock.sendto(packet, ("127.0.0.1", PORT))


def of_all(
    lab: Lab, language: str, argv: Sequence[str], *arguments: str, name: str = CHAPTER_3
) -> Done:
    """What a receiver says of a sender that it has lost nothing of."""
    for _ in range(ATTEMPTS):
        before = lab.snmp()["Udp"]["RcvbufErrors"]
        receiver = Receiver(lab, language, *arguments, name=name)
        sent = lab.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
        assert sent.returncode == 0, sent.stderr
        if lab.snmp()["Udp"]["RcvbufErrors"] == before:
            return receiver.end()
        receiver.process.kill()
        receiver.process.wait()
    pytest.fail(f"the receiver's socket had no room in {ATTEMPTS} runs")


def said(
    lab: Lab, packets: Sequence[bytes], *arguments: str, language: str, name: str = CHAPTER_3
) -> Done:
    """What a receiver says of some packets."""
    receiver = Receiver(lab, language, *arguments, name=name)
    send(lab, packets)
    return receiver.end()


def of_packets(
    lab: Lab,
    packets: Sequence[bytes],
    *arguments: str,
    name: str = CHAPTER_3,
    languages: Sequence[str] = built(),
) -> Done:
    """What the receivers say of some packets, which has to be the same."""
    first, *others = (
        said(lab, packets, *arguments, language=language, name=name) for language in languages
    )
    for one in others:
        assert (first.status, timeless(first)) == (one.status, timeless(one))
        assert first.errors == one.errors
    return first


def timeless(done: Done) -> str:
    return re.sub(VARYING, "", done.output)


def lines(n_heaps: int, heap_size: int = SIZE) -> str:
    """What is printed of heaps that are filled with their index."""
    text = "0x1600 timestamp, uint40: Index of the first sample\n"
    text += f"0x3300 adc_samples, int8[{heap_size}]: Samples of the converter\n"
    for i in range(n_heaps):
        value = (i + 128) % 256 - 128
        text += f"Timestamp: {i * heap_size:<10} Power: {value * value:.2f}\n"
    return text


def chunk_lines(heaps: Iterable[int], size: int = SIZE) -> str:
    """What chapter 12's print of heaps that are filled with their index."""
    in_chunk = max(1, CHUNK // size)
    chunks: dict[int, list[int]] = {}
    for i in heaps:
        chunks.setdefault(i // in_chunk, []).append(((i + 128) % 256 - 128) ** 2)
    return "".join(
        f"Timestamp: {i * in_chunk * size:<10} Power: {np.mean(squares):.2f}\n"
        for i, squares in chunks.items()
    )


def account(heaps: int, packets: str, *, incomplete: int = 0, never: int = 0) -> str:
    return (
        f"packets: {packets}\nheaps: {heaps} complete, {incomplete} incomplete,"
        f" {never} never begun\nsocket: 0 dropped\n"
    )


def pool(requests: int, *, too_large: int = 0) -> str:
    """The line of a pool that never was empty, but for how much of it was in use."""
    return f"pool of {POOL}: {requests} requests, 0 while it was empty, {too_large} too large; \n"


def stream(n_heaps: int = 10, size: int = SIZE, *, described: bool = True) -> list[list[bytes]]:
    """The packets of some heaps that are filled with their index, and of the end.

    The first has descriptors, where it is described.
    """
    group = ItemGroup()
    group.add_item(0x1600, "timestamp", "Index of the first sample", (), format=[("u", 40)])
    group.add_item(0x3300, "adc_samples", "Samples of the converter", (size,), np.int8)
    heaps = []
    for i in range(n_heaps):
        group["timestamp"].value = i * size
        group["adc_samples"].value = np.full(size, i).astype(np.int8)  # wraps
        heap = group.get_heap("stale" if described else "none", "all")
        heaps.append(packets_of(heap, i + 1))
    return [*heaps, packets_of(group.get_end(), n_heaps + 1)]


def group_of(timestamp: int, samples: np.ndarray, bits: int = 40) -> ItemGroup:
    """Make the items of a heap, with the samples' own type and shape."""
    group = ItemGroup()
    group.add_item(0x1600, "timestamp", "", (), format=[("u", bits)], value=timestamp)
    group.add_item(0x3300, "adc_samples", "", samples.shape, samples.dtype, value=samples)
    return group


def whole(group: ItemGroup, cnt: int, descriptors: str = "all") -> list[bytes]:
    """The packets of a heap with all values of a group."""
    return packets_of(group.get_heap(descriptors, "all"), cnt)


def end(cnt: int) -> list[bytes]:
    """The packets of a stop heap."""
    return packets_of(ItemGroup().get_end(), cnt)


def packets_of(heap: Heap, cnt: int) -> list[bytes]:
    return list(PacketGenerator(heap, cnt, 1472))


def flat(heaps: Sequence[Sequence[bytes]]) -> list[bytes]:
    return [packet for heap in heaps for packet in heap]


#: Sizes of heaps: a few samples, and around where the program in C begins a new sum.
SIZES = (8, 65535, 65536, 65537, 200_000)


def signals() -> list[np.ndarray]:
    """Heaps of the largest squares, and of all there are."""
    rng = np.random.default_rng(7)
    made = []
    for size in SIZES:
        made += [np.full(size, -128, np.int8), rng.integers(-128, 128, size=size, dtype=np.int8)]
    return made


def packets() -> list[bytes]:
    heaps = [whole(group_of(cnt, samples), cnt) for cnt, samples in enumerate(signals(), 1)]
    return flat([*heaps, end(len(heaps) + 1)])

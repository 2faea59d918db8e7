# SPDX-License-Identifier: BSD-3-Clause
"""The chapters' receivers in a lab, and what they say."""

import re
import subprocess
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from spead_tutorial.lab import Lab
from spead_tutorial.measure.programs import Done, ProgramOptions, built, program
from spead_tutorial.send import Heap, ItemGroup, PacketGenerator
from support import ROOT


def options_of(text: str) -> Iterator[tuple[str, str]]:
    """Options in a help text, each with what it says of it."""
    pattern = r"^ +(-[a-z-]+|\[HOST:\]PORT)(?: SECONDS)? +(\S.*(?:\n {15,}\S.*)*)"
    for name, words in re.findall(pattern, text, re.M):
        yield name, " ".join(words.split())


PEERS = sorted(ROOT.glob("spead_tutorial/peer/tut_*.py"))


PATIENCE_S, ATTEMPTS, PORT = 60, 5, 8888


SMALL = ProgramOptions(100, 8192)


RATE = r"\d+\.\d\d MB/s from the first heap to the last\n"


ENDED = "The stream has ended.\n"


class Receiver:
    """A receiver in a lab, which listens."""

    def __init__(
        self,
        lab: Lab,
        language: str,
        *arguments: str,
        name: str = "tut_3_recv",
        under: Sequence[str] = (),
    ) -> None:
        pipe = subprocess.PIPE
        argv = [*under, *program(name, language), *arguments]
        self.process = lab.popen(argv, stdout=pipe, stderr=pipe, text=True)
        assert self.process.stderr is not None
        said = [self.process.stderr.readline()]
        while said[-1] and "listening on port" not in said[-1]:
            said.append(self.process.stderr.readline())
        self.said = "".join(said)

    def end(self) -> Done:
        """Wait for its end; keep what it said besides that it listens, and with what buffer."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        output, errors = self.process.stdout.read(), self.process.stderr.read()
        with self.process as process:
            return Done("tut_3_recv", process.wait(PATIENCE_S), output, errors)


def of_all(
    lab: Lab, language: str, argv: Sequence[str], *arguments: str, name: str = "tut_3_recv"
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


def of_packets(lab: Lab, packets: Sequence[bytes], *arguments: str) -> Done:
    """What the receivers say of some packets, which has to be the same."""
    done = []
    for language in built():
        receiver = Receiver(lab, language, *arguments)
        with lab.socket() as sock:
            for packet in packets:
                sock.sendto(packet, ("127.0.0.1", PORT))
        done.append(receiver.end())
    python = done[0]
    for one in done[1:]:
        assert (python.status, timeless(python)) == (one.status, timeless(one))
        assert python.errors == one.errors
    return python


def timeless(done: Done) -> str:
    return re.sub(RATE, "", done.output)


def lines(n_heaps: int, heap_size: int) -> str:
    """What is printed of heaps that are filled with their index."""
    text = "0x1600 timestamp, u40: Index of the first sample\n"
    text += f"0x3300 adc_samples, i8[{heap_size}]: Samples of the converter\n"
    for i in range(n_heaps):
        value = (i + 128) % 256 - 128
        text += f"Timestamp: {i * heap_size:<10} Power: {value * value:.2f}\n"
    return text


def account(heaps: int, packets: str, *, incomplete: int = 0, never: int = 0) -> str:
    return (
        f"packets: {packets}\nheaps: {heaps} complete, {incomplete} incomplete,"
        f" {never} never begun\nsocket: 0 dropped\n"
    )


def stream(n_heaps: int = 10, size: int = 8192) -> list[list[bytes]]:
    """The packets of some heaps that are filled with their index, and of the end."""
    group = ItemGroup()
    group.add_item(0x1600, "timestamp", "Index of the first sample", (), format=[("u", 40)])
    group.add_item(0x3300, "adc_samples", "Samples of the converter", (size,), np.int8)
    heaps = []
    for i in range(n_heaps):
        group["timestamp"].value = i * size
        group["adc_samples"].value = np.full(size, i, np.int8)
        heaps.append(packets_of(group.get_heap(), i + 1))
    return [*heaps, packets_of(group.get_end(), n_heaps + 1)]


def packets_of(heap: Heap, cnt: int) -> list[bytes]:
    return list(PacketGenerator(heap, cnt, 1472))


def flat(heaps: Sequence[Sequence[bytes]]) -> list[bytes]:
    return [packet for heap in heaps for packet in heap]


CHAPTER_3, CHAPTER_7 = "tut_3_recv", "tut_7_recv_power"


#: Sizes of heaps: a few samples, and around where the program in C begins a new sum.
SIZES = (8, 65535, 65536, 65537, 200_000)


def said(lab: Lab, name: str, language: str, packets: list[bytes]) -> Done:
    receiver = Receiver(lab, language, name=name)
    with lab.socket() as sock:
        for packet in packets:
            sock.sendto(packet, ("127.0.0.1", PORT))
    return receiver.end()


def signals() -> Iterator[tuple[int, np.ndarray]]:
    """Heaps of the largest squares, and of all there are."""
    rng = np.random.default_rng(7)
    for size in SIZES:
        yield size, np.full(size, -128, np.int8)
        yield size, rng.integers(-128, 128, size=size, dtype=np.int8)


def packets() -> list[bytes]:
    group = ItemGroup()
    group.add_item(0x1600, "timestamp", "", (), format=[("u", 40)])
    made = []
    for cnt, (size, samples) in enumerate(signals(), 1):
        group.add_item(0x3300, "adc_samples", "", (size,), np.int8, value=samples)
        group["timestamp"].value = cnt
        made += packets_of(group.get_heap(descriptors="all", data="all"), cnt)
    return [*made, *packets_of(group.get_end(), cnt + 1)]

# SPDX-License-Identifier: BSD-3-Clause
"""Every chapter's program and every step, in every language, received and decoded by spead2."""

import contextlib
import dataclasses
import json
import re
import socket
import subprocess
import sys
import zlib
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from spead_tutorial.chapters.catalogue import CHAPTERS, PROGRAMS, STEPS, Chapter, find_chapter
from spead_tutorial.lab import Lab
from spead_tutorial.measure import programs
from spead_tutorial.measure.programs import ProgramOptions, built
from support import ROOT
from support.programs import PATIENCE_S, cases, name_of

RECEIVER = ROOT / "tests/support/receive.py"
PORT = 8888  # chapter 2's, in a lab that nobody else is in
ATTEMPTS = 5
#: Chapter 15's program says what the kernel has not granted it; loopback copies all.
TOLD = (
    r"(tut_15_send_zero_copy: (\d+ of \d+ messages were copied|the recording is not in)[^\n]+\n)*"
)
RANDOM = ("tut_2_send", "tut_4_send_perf")  # programs that have no other samples

#: For programs that can be told: more heaps than there are in flight, and no whole number of
#: batches; a heap alone; large ones, in many packets, of a size that is not round. Little enough at
#: a time for the receiver of a busy machine.
SHAPES = [ProgramOptions(300, 8192), ProgramOptions(1, 100), ProgramOptions(3, 600003, 1472)]

#: What programs in Python and C++ are asked in `make test`; those in C are asked all.
PLAIN = [SHAPES[0], dataclasses.replace(SHAPES[0], streams=3), ProgramOptions(heaps=3)]


def every_case() -> Iterator[tuple[Chapter, ProgramOptions]]:
    """Yield every program with what to tell it."""
    for program in PROGRAMS:
        if "H" in program.accepted:
            yield from ((program, _shaped(program, shape)) for shape in SHAPES)
        elif "n" in program.accepted:
            yield program, ProgramOptions(heaps=3)
        else:
            yield program, ProgramOptions()
        if "r" in program.accepted:
            yield program, ProgramOptions(heaps=3, random=True)
        if "s" in program.accepted:  # batches that are not full; fewer heaps than streams
            yield program, ProgramOptions(300, 8192, streams=3)
            yield program, ProgramOptions(2, 8192, streams=3)
        if "z" in program.accepted:
            yield program, ProgramOptions(300, 8192, switches=("copy",))
            yield program, ProgramOptions(300, 8192, switches=("small pages", "fill"))


def _shaped(program: Chapter, shape: ProgramOptions) -> ProgramOptions:
    return shape if "p" in program.accepted else dataclasses.replace(shape, packet_size=None)


def command(program: Chapter, language: str, options: ProgramOptions) -> list[str]:
    destination = ("127.0.0.1", PORT) if program.takes_destination else None
    argv = programs.command(program, language, options, destination)
    return [word for word in argv if word != "--json"]


class Spead2:
    """A process in a lab that receives one stream after the other, and says what came."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.start()

    def start(self) -> None:
        argv, pipe = [sys.executable, RECEIVER, str(PORT)], subprocess.PIPE
        self.process = self.lab.popen(argv, stdin=pipe, stdout=pipe, text=True)

    def end(self) -> None:
        with self.process as process:
            process.kill()

    def received(self, argv: list[str]) -> dict[str, Any]:
        """What it says of a program that it has lost nothing of."""
        for _ in range(ATTEMPTS):
            before = self.lab.snmp()["Udp"]["RcvbufErrors"]
            print(file=self.process.stdin, flush=True)
            assert self.process.stdout.readline() == "ready\n"
            sent = self.lab.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
            assert sent.returncode == 0
            assert re.fullmatch(TOLD, sent.stderr)
            assert sent.stdout.endswith(" MB/s\n")
            if self.lab.snmp()["Udp"]["RcvbufErrors"] == before:
                answer: dict[str, Any] = json.loads(self.process.stdout.readline())
                return answer
            self.end()  # the stop heap may be lost
            self.start()
        pytest.fail(f"the receiver lost packets in {ATTEMPTS} runs")


@pytest.fixture(scope="module")
def spead2(lab: Lab) -> Iterator[Spead2]:
    receiver = Spead2(lab)
    yield receiver
    receiver.end()


@pytest.mark.parametrize(
    ("program", "options", "language"),
    cases(
        ((*case, language) for case in every_case() for language in built()),
        lambda program, options, language: (
            language == "c" or (options in PLAIN and (language == "cpp" or program in CHAPTERS))
        ),
    ),
    ids=name_of,
)
def test_spead2_receives_what_a_program_sends(spead2, program, options, language):
    received = spead2.received(command(program, language, options))
    heaps = received["heaps"]
    if "s" in program.accepted:  # streams of a sequence overtake each other; nothing else does
        heaps = sorted(heaps, key=lambda heap: heap["cnt"])
    n_heaps = options.heaps or program.heaps
    heap_size = options.heap_size or program.heap_size
    random = options.random or program.name in RANDOM
    assert received["items"] == {
        "timestamp": "Index of the first sample",
        "adc_samples": "Samples of the converter",
    }
    assert len(heaps) == n_heaps
    for i, heap in enumerate(heaps):
        assert heap["cnt"] == i + 1
        assert heap["timestamp"] == i * heap_size
        assert (heap["shape"], heap["dtype"]) == ([heap_size], "int8")
        if random:
            assert -100 <= heap["lowest"] < -90 < 90 < heap["highest"] < 100
        else:
            samples = np.full(heap_size, i % 256, np.uint8)
            assert heap["crc"] == zlib.crc32(samples.tobytes())


@pytest.mark.parametrize(
    ("step", "languages"),
    cases(product(STEPS, (built(), ("c",))), lambda step, languages: languages == ("c",)),
    ids=name_of,
)
def test_a_step_and_a_chapter_send_the_same_bytes_in_every_language(lab, step, languages):
    # Chapter 4's program has random samples.
    twin = find_chapter("5" if step.number == 4 else str(step.number))
    sent = []
    sizes = _shaped(step, ProgramOptions(11, 6000, 1000))
    for program, language in product((twin, step), languages):
        with lab.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            sock.bind(("127.0.0.1", PORT))
            argv = command(program, language, sizes)
            assert lab.run(argv, capture_output=True).returncode == 0
            sent.append(arrived(sock))
    assert len(sent[0]) > 40
    assert all(packets == sent[0] for packets in sent)


def arrived(sock: socket.socket) -> list[bytes]:
    """All packets that wait in a socket."""
    sock.setblocking(False)
    packets = []
    with contextlib.suppress(BlockingIOError):
        while True:
            packets.append(sock.recv(2000))
    return packets

# SPDX-License-Identifier: BSD-3-Clause
"""Every chapter's program and every step, in every language, received and decoded by spead2."""

import dataclasses
import re
import socket
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
import spead2
import spead2.recv

from spead_tutorial.chapters.catalogue import CHAPTERS, PROGRAMS, STEPS, Chapter, find_chapter
from spead_tutorial.lab import Lab
from spead_tutorial.measure import programs
from spead_tutorial.measure.programs import ProgramOptions, built
from support.programs import PATIENCE_S, cases, name_of
from support.sockets import messages

PORT = 8888  # chapter 2's, in a lab that nobody else is in
ATTEMPTS = 5
MOST = 400  # heaps of a program, which wait until it has ended
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


def received(lab: Lab, argv: list[str]) -> tuple[Any, list[tuple[int, int, np.ndarray]]]:
    """What spead2 gets of a program that it has lost nothing of: items, and what is in each heap.

    Of that, the heap count, the timestamp and the samples.
    """
    config = spead2.recv.StreamConfig(max_heaps=16, allow_out_of_order=True)
    ring_config = spead2.recv.RingStreamConfig(heaps=MOST)
    for _ in range(ATTEMPTS):
        before = lab.snmp()["Udp"]["RcvbufErrors"]
        stream = spead2.recv.Stream(spead2.ThreadPool(), config, ring_config)
        with lab.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
            sock.bind(("127.0.0.1", PORT))
            stream.add_udp_reader(sock, max_size=65536)
            sent = lab.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
            assert sent.returncode == 0
            assert re.fullmatch(TOLD, sent.stderr)
            assert sent.stdout.endswith(" MB/s\n")
            if lab.snmp()["Udp"]["RcvbufErrors"] == before:
                items, heaps = spead2.ItemGroup(), []
                for heap in stream:
                    items.update(heap)
                    values = (items[name].value for name in ("timestamp", "adc_samples"))
                    heaps.append((heap.cnt, *values))
                return items, heaps
        stream.stop()  # the stop heap may be lost
    pytest.fail(f"the receiver lost packets in {ATTEMPTS} runs")


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
def test_spead2_receives_what_a_program_sends(lab, program, options, language):
    items, heaps = received(lab, command(program, language, options))
    if "s" in program.accepted:  # streams of a sequence overtake each other; nothing else does
        heaps = sorted(heaps, key=lambda heap: heap[0])
    n_heaps = options.heaps or program.heaps
    heap_size = options.heap_size or program.heap_size
    random = options.random or program.name in RANDOM
    assert {item.name: item.description for item in items.values()} == {
        "timestamp": "Index of the first sample",
        "adc_samples": "Samples of the converter",
    }
    assert [heap[:2] for heap in heaps] == [(i + 1, i * heap_size) for i in range(n_heaps)]
    for i, (*_, samples) in enumerate(heaps):
        assert (samples.shape, samples.dtype) == ((heap_size,), np.int8)
        if random:
            assert -100 <= samples.min() < -90 < 90 < samples.max() < 100
        else:
            assert np.all(samples.view(np.uint8) == i % 256)


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
            sent.append(messages(sock))
    assert len(sent[0]) > 40
    assert all(packets == sent[0] for packets in sent)

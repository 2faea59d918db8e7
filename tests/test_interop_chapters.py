# SPDX-License-Identifier: BSD-3-Clause
"""Every chapter's program and every step, in both languages, received and decoded by spead2."""

import json
import socket
import subprocess
import sys
import zlib
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spead_tutorial.chapters
from spead_tutorial.lab import Lab

pytest.importorskip("spead2")

CHAPTERS = Path(spead_tutorial.chapters.__file__).parent
RECEIVER = Path(__file__).parent / "receive.py"
PORT = 8888  # chapter 2's, in a lab that nobody else is in
ATTEMPTS = 5

#: Program, options, number of heaps, bytes in each, and whether the samples are random. Little
#: enough at a time for the receiver of a busy machine.
CASES = [
    ("tut_2_send", [], 10, 1 << 20, True),
    ("tut_4_send_perf", ["-n", "3"], 3, 1 << 20, True),
    ("tut_5_send_pipeline", ["-n", "3"], 3, 1 << 20, False),
    ("tut_5_send_pipeline", ["-n", "3", "-r"], 3, 1 << 20, True),
    ("tut_6_send_pktsize", ["-n", "3"], 3, 1 << 20, False),
    ("tut_8_send_heap_size", ["-n", "5", "-H", "100003"], 5, 100003, False),
    ("tut_8_send_reuse_memory", ["-n", "5", "-H", "100003"], 5, 100003, False),
    ("tut_10_send_more_heaps", ["-n", "300", "-H", "8192"], 300, 8192, False),
    ("tut_10_send_more_heaps", ["-n", "1", "-H", "100"], 1, 100, False),
    ("tut_10_send_reuse_heaps", ["-n", "300", "-H", "8192"], 300, 8192, False),
    ("tut_10_send_reuse_heaps", ["-n", "1", "-H", "100"], 1, 100, False),
    ("tut_11_send_list_of_heaps", ["-n", "150", "-H", "8192"], 150, 8192, False),
    ("tut_11_send_list_of_heaps", ["-n", "3", "-H", "600000", "-p", "1472"], 3, 600000, False),
    ("tut_11_send_batch_heaps", ["-n", "150", "-H", "8192"], 150, 8192, False),
    ("tut_11_send_batch_heaps", ["-n", "3", "-H", "600000", "-p", "1472"], 3, 600000, False),
]


def command(program: str, language: str, options: list[str]) -> list[str]:
    destination = [] if program == "tut_2_send" else ["127.0.0.1", str(PORT)]
    start = [str(CHAPTERS / program)]
    if language == "python":
        start = [sys.executable, str(CHAPTERS / f"{program}.py")]
    return [*start, *options, *destination]


def dropped(lab: Lab) -> int:
    """Packets that the receiver's socket had no room for."""
    return lab.snmp()["Udp"]["RcvbufErrors"]


def receive(lab: Lab, argv: list[str]) -> dict[str, Any] | None:
    """Run a program against a receiver; None where the receiver lost packets."""
    before = dropped(lab)
    with lab.popen(
        [sys.executable, RECEIVER, str(PORT)], stdout=subprocess.PIPE, text=True
    ) as receiver:
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == "ready\n"
        sent = lab.run(argv, capture_output=True, text=True, timeout=60)
        assert (sent.returncode, sent.stderr) == (0, "")
        assert sent.stdout.endswith(" MB/s\n")
        if dropped(lab) > before:
            receiver.kill()
            return None
        assert receiver.wait(timeout=60) == 0
        answer: dict[str, Any] = json.loads(receiver.stdout.read())
        return answer


@pytest.mark.parametrize("language", ["python", "c"])
@pytest.mark.parametrize(("program", "options", "n_heaps", "heap_size", "random"), CASES)
def test_spead2_receives_what_a_program_sends(
    make_lab, program, options, n_heaps, heap_size, random, language
):
    with make_lab() as lab:
        for _ in range(ATTEMPTS):
            received = receive(lab, command(program, language, options))
            if received is not None:
                break
        else:
            pytest.fail(f"the receiver lost packets in {ATTEMPTS} runs")
    heaps = received["heaps"]
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
    ("step", "program"),
    [
        ("tut_8_send_heap_size", "tut_8_send_reuse_memory"),
        ("tut_10_send_more_heaps", "tut_10_send_reuse_heaps"),
        ("tut_11_send_list_of_heaps", "tut_11_send_batch_heaps"),
    ],
)
def test_a_chapter_and_the_step_before_it_send_the_same_bytes_in_both_languages(
    make_lab, step, program
):
    sent = []
    for name, language in product((program, step), ("python", "c")):
        with make_lab() as lab, lab.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            sock.bind(("127.0.0.1", PORT))
            argv = command(name, language, ["-n", "11", "-H", "3000", "-p", "1000"])
            assert lab.run(argv, capture_output=True).returncode == 0
            sock.setblocking(False)
            packets = []
            while True:
                try:
                    packets.append(sock.recv(2000))
                except BlockingIOError:
                    break
            sent.append(packets)
    assert len(sent[0]) > 40
    assert all(packets == sent[0] for packets in sent)

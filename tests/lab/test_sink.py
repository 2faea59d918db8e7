# SPDX-License-Identifier: BSD-3-Clause
"""The sink: that it counts what arrives, and notices what is wrong."""

import contextlib
import itertools
import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from spead_tutorial.lab import sink_path
from support.lab_scripts import PATIENCE_S, send_gso
from support.ref_encode import header, packet, pointer
from support.trouble import stop_packet as stop
from support.typed import run

PROGRAM = str(sink_path())
SAMPLES, TIMESTAMP = 0x3300, 0x1600


class Sink:
    """A running sink and a socket that sends to it."""

    def __init__(self, *options: str, host: str = "127.0.0.1") -> None:
        argv = [PROGRAM, *options, "--json", host, "0"]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        word, address, port = self.process.stdout.readline().split()
        assert (word, address) == ("listening", host)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.connect((host, int(port)))

    def summary(self, *packets: bytes) -> dict[str, Any]:
        """Send these too, wait for its end, and return what it printed last."""
        for one in packets:
            self.socket.send(one)
        out, _ = self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == 0
        result: dict[str, Any] = json.loads(out.splitlines()[-1])
        return result

    def close(self) -> None:
        self.socket.close()
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def sink() -> Iterator[Callable[..., Sink]]:
    """A function that starts a sink with options."""
    with contextlib.ExitStack() as stack:
        yield lambda *options, **how: stack.enter_context(contextlib.closing(Sink(*options, **how)))


def samples(cnt: int, size: int, packet_size: int, value: int | None = None) -> list[bytes]:
    """Build a heap as the chapters send it, in packets of `packet_size` bytes of payload."""
    fill = bytes([(cnt - 1) & 0xFF if value is None else value]) * size
    items = [(True, TIMESTAMP, 0), (False, SAMPLES, 0)]
    return [
        packet(cnt, size, at, fill[at : at + packet_size], items if at == 0 else [])
        for at in range(0, size, packet_size)
    ]


def test_heaps_are_counted_and_the_stop_heap_ends_it(sink):
    packets = [p for cnt in range(1, 6) for p in samples(cnt, 5000, 2000)] + [stop(6)]
    found = sink().summary(*packets)
    assert found["stopped"] == "stop item"
    assert (found["packets"], found["bytes"]) == (16, sum(map(len, packets)))
    assert found["payload_bytes"] == 5 * 5000 + 1
    assert (found["heaps"], found["complete_heaps"]) == (6, 6)
    for wrong in ("gaps", "out_of_order", "duplicates", "malformed", "dropped", "bad_fill"):
        assert found[wrong] == 0, wrong


@pytest.mark.parametrize("address_bits", range(8, 57, 8))
def test_every_flavour_is_read(sink, address_bits):
    packets = [packet(cnt, 100, 0, bytes(100), (), address_bits) for cnt in (1, 2)]
    found = sink("-c", "2").summary(*packets)
    assert (found["complete_heaps"], found["malformed"]) == (2, 0)


def test_it_listens_on_ipv6(sink):
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("the kernel has no IPv6")
    assert sink(host="::1").summary(stop(1))["stopped"] == "stop item"


def one(*counts: int) -> list[bytes]:
    """Build heaps of one packet each."""
    return [packet for cnt in counts for packet in samples(cnt, 10, 10)]


TORN = samples(2, 3000, 1000)


@pytest.mark.parametrize(
    ("options", "packets", "expected"),
    [
        (
            [],
            [*samples(1, 3000, 1000), TORN[0], TORN[2], *one(5), stop(6)],
            {"heaps": 4, "complete_heaps": 3, "gaps": 2},
        ),
        # A step between counts is no gap, and what comes out of order is not missing.
        (["-s", "3"], [*one(1, 4), stop(10)], {"gaps": 1}),
        ([], [*one(1, 3, 2), stop(4)], {"gaps": 0, "out_of_order": 1, "complete_heaps": 4}),
        ([], [*one(1, 1), stop(2)], {"heaps": 2, "complete_heaps": 2, "duplicates": 1}),
        (
            ["--check-fill"],
            [
                *itertools.chain(*zip(*(samples(n, 4000, 1000) for n in range(1, 9)), strict=True)),
                stop(9),
            ],
            {"complete_heaps": 9, "bad_fill": 0, "fill_bytes": 8 * 4000},
        ),
        (["-c", "3"], one(1, 2, 3), {"stopped": "heaps", "complete_heaps": 3}),
        (["-t", "0.1"], [], {"stopped": "silence", "packets": 0, "elapsed_ns": 0}),
        (
            ["--check-fill"],
            [
                # The byte is as good signed as not, and starts again at 256.
                *(p for n in (*range(120, 140), *range(250, 270)) for p in samples(n, 100, 60)),
                *samples(270, 100, 60, value=7),
                stop(271),
            ],
            {"fill_bytes": 41 * 100, "bad_fill": 2},
        ),
    ],
)
def test_what_comes_is_counted(sink, options, packets, expected):
    found = sink(*options).summary(*packets)
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x",
        b"not SPEAD at all, but long enough",
        samples(1, 10, 10)[0][:-1],
        samples(1, 10, 10)[0] + b"x",
        samples(1, 10, 10)[0][:20],
        b"\x52" + samples(1, 10, 10)[0][1:],
        b"\x53\x03" + samples(1, 10, 10)[0][2:],
        b"\x53\x04\x08\x00" + samples(1, 10, 10)[0][4:],
        b"\x53\x04\x03\x05\0\0\xff\xff" + samples(1, 10, 10)[0][8:],
        packet(1, 12, 5, bytes(10)),
        packet(1, 0, (1 << 40) - 1, b""),
        header(1, 40) + pointer(True, 1, 7, 40),
    ],
)
def test_what_is_not_a_packet_is_counted_apart(sink, data):
    found = sink().summary(data, stop(1))
    assert (found["packets"], found["malformed"], found["heaps"]) == (2, 1, 1)


def test_fill_is_checked_within_its_item_only(sink):
    # 4 bytes of another item before, 3 of a third after: neither has the fill's value.
    payload = b"\xff" * 4 + b"\0" * 9 + b"\xee" * 3
    spoilt = payload[:12] + b"\1" + payload[13:]
    items = ((False, 5, 0), (False, SAMPLES, 4), (False, 7, 13))
    packets = [packet(1, 16, 0, payload, items), packet(257, 16, 0, spoilt, items), stop(258)]
    found = sink("--check-fill").summary(*packets)
    assert (found["fill_bytes"], found["bad_fill"]) == (18, 1)


def test_merged_packets_are_taken_apart(sink):
    running = sink("--gro", "--check-fill")
    message = b"".join(p for cnt in range(1, 9) for p in samples(cnt, 1000, 1000))
    send_gso(running.socket, len(message) // 8, message, running.socket.getpeername())
    found = running.summary(stop(9))
    assert (found["packets"], found["complete_heaps"], found["bad_fill"]) == (9, 9, 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_at_a_signal_with_a_summary(sink, number):
    running = sink()
    running.process.send_signal(number)
    assert running.summary()["stopped"] == "signal"


def test_a_slow_reader_takes_its_time(sink):
    # After each packet it waits until 100 kB/s is true again: the last one is read when the
    # first four have been paid for.
    packets = [*(samples(cnt, 2000, 2000)[0] for cnt in range(1, 5)), stop(5)]
    found = sink("-r", "100000").summary(*packets)
    assert found["packets"] == 5
    assert found["elapsed_ns"] >= sum(map(len, packets[:-1])) * 10_000


def test_what_the_kernel_dropped_for_lack_of_room_is_reported(sink):
    running = sink("-b", "4096")
    running.process.send_signal(signal.SIGSTOP)
    os.waitpid(running.process.pid, os.WUNTRACED)  # until it has really stopped
    for cnt in range(1, 51):
        running.socket.send(samples(cnt, 1000, 1000)[0])
    running.process.send_signal(signal.SIGTERM)
    running.process.send_signal(signal.SIGCONT)
    found = running.summary()
    assert found["packets"] + found["dropped"] <= 50
    assert found["dropped"] > 0


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        ([], "HOST is missing"),
        (["127.0.0.1", "1", "2"], "'2' is one word too many"),
        (["127.0.0.1", "65536"], "PORT must be a whole number from 0 to 65535, not '65536'"),
        (["-t", "nan", "127.0.0.1", "0"], "-t must be a number of seconds up to 1e6"),
        (["-r", "0", "127.0.0.1", "0"], "-r must be a number of bytes from 1 to"),
        (["-c", "1x", "127.0.0.1", "0"], "-c must be a whole number from 1 to"),
        (["-b", "-5", "127.0.0.1", "0"], "-b must be a number of bytes from 1 to"),
        (["--fast", "127.0.0.1", "0"], "unrecognized option"),
        (["127.0.0.1", "0", "-t"], "requires an argument"),
        (["198.51.100.1", "0"], "cannot listen at 198.51.100.1"),
    ],
)
def test_what_cannot_be_is_one_line_and_a_status(argv, text):
    done = run(PROGRAM, *argv)
    assert (done.returncode, done.stdout) == (1 if "listen at" in text else 2, "")
    assert re.fullmatch(r"sink: [^\n]+\n", done.stderr)
    assert text in done.stderr


def test_without_json_the_summary_is_one_line():
    done = run(PROGRAM, "-t", "0.1", "127.0.0.1", "0")
    assert done.returncode == 0
    first, last = done.stdout.splitlines()
    assert first.startswith("listening 127.0.0.1 ")
    assert last.startswith("packets 0, ")
    assert last.endswith("stopped by silence")

# SPDX-License-Identifier: BSD-3-Clause
"""The process that disturbs the way to a receiver, and counts what it did.

A program on the receiver's machine: it reads what arrives at one device and sends it into another,
through which it arrives again. What it does to a packet is decided by random numbers with a seed,
so that it is known beforehand. Its standard input is a Unix socket, by which it gets the sockets of
both devices first: to open them takes rights that only the lab's helper has.
"""

import collections
import contextlib
import json
import os
import random
import select
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .device import FAR_DEVICE, FAR_MAC, RELAY

SOL_PACKET, PACKET_STATISTICS = 263, 6
ETH_P_IP = 0x0800
ETHERNET, UDP = 14, 17
LINK = bytes.fromhex(FAR_MAC.replace(":", ""))
LARGEST_FRAME = 1 << 17
BUFFER = 1 << 26  # far more than the system allows, so that it gives all that it allows
SILENCE_MS = 200  # after which what is held back comes, for nothing comes that it could follow
PATIENCE_S = 2.0


def fates(*, loss: float, duplicate: float, reorder: float, seed: int) -> Iterator[str]:
    """Yield what becomes of one packet after the other."""
    chance = random.Random(seed)
    while True:
        number = chance.random()
        if number < loss:
            yield "lost"
        elif number < loss + duplicate:
            yield "duplicated"
        elif number < loss + duplicate + reorder:
            yield "held back"
        else:
            yield "passed"


class Disturber:
    """Takes packets, and sends on what becomes of them."""

    def __init__(
        self, fate: Iterator[str], distance: int, send: Callable[[bytearray], None]
    ) -> None:
        self.fate, self.distance, self.send = fate, distance, send
        self.counts: collections.Counter[str] = collections.Counter()
        self.held: collections.deque[tuple[int, bytearray]] = collections.deque()
        self.taken = 0

    def take(self, packet: bytearray) -> None:
        """Take a packet."""
        fate = next(self.fate)
        self.counts[fate] += 1
        self.taken += 1
        if fate == "held back":
            self.held.append((self.taken + self.distance, packet))
        elif fate != "lost":
            self.send(packet)
            if fate == "duplicated":
                self.send(packet)
        while self.held and self.held[0][0] <= self.taken:
            self.send(self.held.popleft()[1])

    def release(self) -> None:
        """Send on all that is held back."""
        while self.held:
            self.send(self.held.popleft()[1])


class Relay:
    """Reads from one device and sends into another."""

    def __init__(self, sockets: Sequence[int], *, distance: int, **how: Any) -> None:
        self.source, self.target = (socket.socket(fileno=fd) for fd in sockets)
        self.source.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        self.before = self.device_packets()
        self.source.bind((FAR_DEVICE, ETH_P_IP))  # so that it is not given what this machine sends
        self.source.setblocking(False)
        self.target.bind((RELAY, 0))
        self.disturber = Disturber(fates(**how), distance, self.send)
        self.seen = self.overflown = self.refused = 0

    def device_packets(self) -> int:
        with open("/proc/self/net/dev") as table:
            (line,) = [line for line in table if line.strip().startswith(FAR_DEVICE + ":")]
        return int(line.partition(":")[2].split()[1])

    def send(self, packet: bytearray) -> None:
        try:
            self.target.send(packet)
        except OSError:
            self.refused += 1

    def read(self) -> None:
        """Read all that is there."""
        while True:
            try:
                frame = bytearray(self.source.recv(LARGEST_FRAME))
            except (BlockingIOError, InterruptedError):
                return
            self.seen += 1
            if frame[:6] != LINK:
                continue  # a group's, which the device itself takes
            if frame[ETHERNET + 9] == UDP:
                without_checksum(frame)
                self.disturber.take(frame)
            else:
                self.send(frame)

    def said(self) -> str:
        """Return the counts as a line of JSON, see `Disturbed`."""
        statistics = self.source.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
        self.overflown += struct.unpack("II", statistics)[1]
        counts = self.disturber.counts
        said = {
            name: counts[name.replace("_", " ")] for name in ("lost", "duplicated", "held_back")
        }
        overflown = self.overflown + self.refused
        return json.dumps(said | {"packets": counts.total(), "overflown": overflown})

    def serve(self) -> None:
        """Relay until the standard input ends; answer each line there with the counts."""
        poll = select.poll()
        poll.register(self.source, select.POLLIN)
        poll.register(0, select.POLLIN)
        print("ready", flush=True)
        while True:
            ready = {fd for fd, _ in poll.poll(SILENCE_MS if self.disturber.held else None)}
            if self.source.fileno() in ready:
                self.read()
            if not ready:
                self.disturber.release()
            if 0 in ready:
                asked = os.read(0, 100)
                if not asked:
                    return
                print(self.said(), flush=True)

    def end(self) -> None:
        """Relay what the device has got meanwhile, and say the counts for the last time."""
        until = time.monotonic() + PATIENCE_S
        while True:
            self.read()
            said = self.said()
            got = self.device_packets() - self.before
            if self.seen + self.overflown >= got or time.monotonic() > until:
                break
            select.select([self.source], [], [], 0.01)
        self.disturber.release()
        print(said, flush=True)


def without_checksum(frame: bytearray) -> None:
    """Say that a datagram over IPv4 has no checksum: a sender on this machine has left it open."""
    begin = ETHERNET + 4 * (frame[ETHERNET] & 0x0F) + 6
    first = frame[ETHERNET + 6] & 0x1F == 0 == frame[ETHERNET + 7]
    if first:
        frame[begin : begin + 2] = bytes(2)


def main(how: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's is for who started this
    with socket.socket(fileno=os.dup(0)) as channel:
        _, sockets, _, _ = socket.recv_fds(channel, 1, 2)
    relay = Relay(sockets, **json.loads(how))
    with contextlib.suppress(BrokenPipeError):
        relay.serve()
        relay.end()

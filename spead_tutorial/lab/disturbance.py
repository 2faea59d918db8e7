# SPDX-License-Identifier: BSD-3-Clause
"""Trouble on the way to a receiver: packets that are lost, doubled or held back, and counted.

A program on the receiver's machine, the relay, reads what arrives at one device and sends it into
another, through which it arrives again. What it does to a packet is decided by random numbers with
a seed, so that it is known beforehand. Its standard input is a Unix socket, by which it gets the
sockets of both devices first: to open them takes rights that only the lab's helper has.
"""

import collections
import contextlib
import dataclasses
import itertools
import json
import os
import random
import select
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .device import FAR_DEVICE, FAR_MAC, RELAY, LabError
from .helper import script
from .process import LabProcess

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


@dataclasses.dataclass(frozen=True, slots=True)
class Disturbed:
    """What became of the packets that came to a disturbance, until now."""

    packets: int  #: Packets that came; fragments count as packets.
    lost: int  #: Those of them that were lost.
    duplicated: int  #: Those that passed twice.
    held_back: int  #: Those that passed after later ones.
    #: Packets beyond these, that were lost because they came faster than they were read.
    overflown: int


class Disturbance:
    """What disturbs the way to a receiver; `Lab.disturbed` makes one."""

    by = "relay"  #: What does it: a process of ours.

    def __init__(self, process: LabProcess, channel: socket.socket, how: dict[str, Any]) -> None:
        self._process, self._channel = process, channel
        self._how = {name: how[name] for name in ("loss", "duplicate", "reorder", "seed")}
        self._last: Disturbed | None = None

    def __repr__(self) -> str:
        return f"<Disturbance by {self.by}: {self._how}>"

    def fates(self, n: int) -> list[str]:
        """Say what becomes of packets: ``"passed"``, ``"lost"``, ``"duplicated"``, ``"held back"``.

        Parameters
        ----------
        n : int
            Of how many, the first ones.
        """
        return list(itertools.islice(fates(**self._how), n))

    def counts(self) -> Disturbed:
        """Say what became of the packets until now or, after the block, of all."""
        if self._last is not None:
            return self._last
        try:
            self._channel.sendall(b"counts\n")
        except OSError:
            raise LabError("what disturbs the way has ended: leave the block") from None
        return self._read()

    def _read(self) -> Disturbed:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise LabError("what disturbs the way has ended: leave the block")
        return Disturbed(**json.loads(line))

    def _end(self) -> None:
        self._channel.close()
        self._last = self._read()


def check_shares(loss: float, duplicate: float, reorder: float, distance: int) -> None:
    """Refuse what no packets can come to."""
    shares = {"loss": loss, "duplicate": duplicate, "reorder": reorder}
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise ValueError(f"{name} is {share}: it is a share of the packets, from 0 to 1")
    if sum(shares.values()) > 1:
        raise ValueError("loss, duplicate and reorder are more than 1 together: a packet has one")
    if distance < 1:
        raise ValueError(f"distance is {distance}: at least one packet has to pass")


@contextlib.contextmanager
def disturbed(lab: Any, **how: Any) -> Iterator[Disturbance]:
    """Disturb the way of a lab to its receiver; see `Lab.disturbed`."""
    check_shares(how["loss"], how["duplicate"], how["reorder"], how["distance"])
    if lab.receiver.kind == "loopback":
        raise LabError("loopback cannot be disturbed: take Lab('veth', receiver=True)")
    sender, receiver = lab._helper, lab.receiver._helper
    with contextlib.ExitStack() as undo:
        channel, theirs = map(undo.enter_context, socket.socketpair())
        try:
            # The relay is a program like others, which may not open them where a user is not root.
            raw = [receiver.socket(socket.AF_PACKET, socket.SOCK_RAW) for _ in range(2)]
        except PermissionError as error:
            raise LabError(
                f"raw sockets are refused, which disturb the way ({error.strerror}): have the"
                " capability NET_RAW, as by --cap-add NET_RAW in a container"
            ) from None
        with raw[0], raw[1]:
            socket.send_fds(channel, [b"\n"], [one.fileno() for one in raw])
        undo.enter_context(receiver.done("make_detour", {"op": "end_detour"}, mtu=lab.mtu))
        process = undo.enter_context(
            lab.receiver.popen(
                script("disturbance", json.dumps(how)),
                stdin=theirs.fileno(),
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        theirs.close()
        if process.stdout.readline() != "ready\n":
            raise LabError("what was to disturb the way has ended")
        receiver.request("take_detour")
        # A run of packets in one message could only be lost as a whole.
        run = {"op": "limit_run", "device": lab.device, "packets": lab.facts()["gso_max_segs"]}
        undo.enter_context(sender.done(**run | {"packets": 1}, undo=run))
        disturbance = Disturbance(process, channel, how)
        try:
            yield disturbance
        finally:
            disturbance._end()


# ---- The relay ----


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
        """Return the counts as a line of JSON."""
        statistics = self.source.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
        self.overflown += struct.unpack("II", statistics)[1]
        counts, overflown = self.disturber.counts, self.overflown + self.refused
        lost, duplicated, held_back = (counts[n] for n in ("lost", "duplicated", "held back"))
        said = Disturbed(counts.total(), lost, duplicated, held_back, overflown)
        return json.dumps(dataclasses.asdict(said))

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

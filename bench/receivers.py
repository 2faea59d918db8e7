# SPDX-License-Identifier: BSD-3-Clause
"""Receivers, measured: `blast` sends, a program receives, and each has a core of its own.

All that is of the lab is two sockets: one to send through, and one that is bound, to receive from.
The programs are given them, and so the sender can see what the receiver's socket holds. It fills
no more than half of that, whoever reads it, so that nothing is lost: a rate is what a receiver can
do, and not what it lets fall. Only a case that says at what rate to send may lose something;
and of a search for the highest rate without loss, each run is sent to at a rate.

Chapter 9's programs are also measured as one runs them, beside chapter 8's sender, over a link or
as fast as it can. Then heaps may be lost, and a sample says how many.
"""

import contextlib
import ctypes
import dataclasses
import functools
import os
import re
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.peers import (
    PACKAGE,
    PEER_PROGRAMS,
    TIMEOUT_S,
    build_key,
    build_of,
    interpreter,
    missing_peer,
)
from bench.sweeps import ALONE, BARE, LOST, ONE_CORE, PEERS, SPOILT, TURNS, Size
from spead_tutorial.chapters.catalogue import Receiver, find_chapter, find_receiver
from spead_tutorial.lab import Lab, probe
from spead_tutorial.measure import delivery, search
from spead_tutorial.measure.baselines import CEILING
from spead_tutorial.measure.case import Begun, Case, Step
from spead_tutorial.measure.delivery import deliver, listening
from spead_tutorial.measure.machine import a_core_each
from spead_tutorial.measure.programs import Done, ProgramError, ProgramOptions, program
from spead_tutorial.measure.records import OURS, Received, Sample
from spead_tutorial.measure.running import Listening, Running

_PROGRAMS = Path(__file__).resolve().parent / "peer"
_BIN = PACKAGE / "bin"
#: Bytes of the receiver's socket; the kernel gives twice that, where it allows it. What is in it
#: at a time is half of that, or nearly all where the two take turns, so that these are long.
_BUFFER, _BUFFER_FOR_TURNS = 1 << 21, 1 << 22
#: Heaps that warm a receiver up make up this, and are as many as some.
_WARM_UP_BYTES, _FEWEST_WARM_UP = 1 << 24, 4
_DRAIN_S = 5.0
_LONG_S = 3600.0  # for a case that says how many heaps, which may be millions
_LOOPBACK, _LOOPBACK_MTU = "127.0.0.1", 65536
#: After so much silence chapters' programs end, should the end of the stream be lost: of those that
#: are measured as one runs them, and of all others.
_POOL_SILENCE_S, _SILENCE_S = "1", "2"
#: What the words of a case's variant are to a receiver. One like "2 GB/s" is for the sender.
_FLAGS = {
    "no GRO": "--no-gro",
    "no copy": "--no-copy",
    "no pool": "--no-pool",
    "no thread": "--no-thread",
    "checked": "--check",
    SPOILT: "--out-of-order",
}
#: What is done to packets that are spoilt: some are lost, some come after the next one.
_SPOIL = ("--lose", "1009", "--swap", "997")
#: Sockets that are made to find one for each of a receiver's.
_MOST_FLOWS = 256
_OF_POOL = ("page_faults", "pool_empty", "pool_most_in_use")
_PIDFD_GETFD = 438
_libc = ctypes.CDLL(None, use_errno=True)


@dataclasses.dataclass(frozen=True, slots=True)
class Ends:
    """Two sockets that are connected."""

    sender: socket.socket  # one to send through, one that is bound
    receiver: socket.socket
    more: tuple[tuple[socket.socket, socket.socket], ...] = ()  # where there are several

    def start(self, argv: Sequence[str], **how: Any) -> subprocess.Popen[str]:
        pairs = (self.sender, self.receiver), *self.more
        fds = [sock.fileno() for pair in pairs for sock in pair]
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, pass_fds=fds, **how)


@contextlib.contextmanager
def connected(lab: Lab, buffer: int, *, veth: bool = False) -> Iterator[Ends]:
    """Connect two sockets, over the lab's loopback or its pair of devices."""
    made = lab.receiver.socket(0, buffer_size=buffer) if veth else lab.socket()
    with made as receiver, lab.socket() as sender:
        if not veth:
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
            receiver.bind((_LOOPBACK, 0))
        sender.connect(receiver.getsockname())
        yield Ends(sender, receiver)


@functools.cache
def _has_veth() -> bool:
    return "veth" in probe().kinds


def facts(lab: Lab) -> dict[str, Any]:
    return {"kind": "loopback", "rootless": lab.rootless, "mtu": _LOOPBACK_MTU}


def versions() -> dict[str, str | None]:
    """Return what a record says of the programs, besides what every record does."""
    bare = [_BIN / name for name in ("blast", BARE)]
    drivers = sorted(_PROGRAMS.glob("receive*.*"))
    peers = sorted(PEER_PROGRAMS.glob("*")) if PEER_PROGRAMS.is_dir() else []
    return {build_key("receivers"): build_of(*bare, *drivers, *peers)}


# ---- What is started ----


def missing(case: Case) -> str | None:
    """Say why a case of a receiver cannot run here; None where it can."""
    if a_core_each() == (None, None):
        return "there are no two cores, one for each side"
    is_chapter = find_receiver(case.program) is not None
    needs_veth = "veth" in case.words or case.program == LOST or (is_chapter and not case.search)
    if needs_veth and not _has_veth():
        return "there can be no veth pair"
    if is_chapter:
        try:
            program(case.program, case.language)
        except ProgramError as error:
            return str(error)
        return None
    if (reason := missing_peer(case.implementation)) is not None:
        return reason
    if not _program(case).is_file():
        made_by = "make peer" if case.implementation in PEERS else "pip install ."
        return f"{_program(case).name} has not been built: {made_by}"
    return None


def _program(case: Case) -> Path:
    if case.language == "python":
        return _PROGRAMS / f"{ALONE[0] if case.program == LOST else case.program}.py"
    if case.implementation in PEERS:
        return PEER_PROGRAMS / case.program
    return _BIN / (BARE if case.implementation == CEILING else case.program)


def _words(case: Case) -> list[str]:
    """Return how a case's program is started."""
    if case.language != "python":
        return [str(_program(case)), "--json"]
    library = "spead_tutorial" if case.implementation == OURS else "spead2"
    return [*interpreter(case.implementation), str(_program(case)), library]


def _number(case: Case, word: str) -> str | None:
    """Return the number in a word of a case's variant; None where it has no such word."""
    found = (re.fullmatch(word.replace("N", "([0-9.]+)"), one) for one in case.words)
    return next((one[1] for one in found if one), None)


def rate_of(case: Case) -> float | None:
    """Return the bytes of packets in a second that a case is sent; None where it has a window."""
    asked = _number(case, "N GB/s")
    return None if asked is None else float(asked) * 1e9


def _warm_up(case: Case) -> int:
    return max(_FEWEST_WARM_UP, _WARM_UP_BYTES // case.heap_size)


def _receiver(case: Case, ends: Ends) -> list[str]:
    flags = [_FLAGS[word] for word in case.words if word in _FLAGS]
    sizes = ["-w", _warm_up(case), "-H", case.heap_size, "-p", case.packet_size]
    sizes += ["-r", search.waiting(case.heap_size)]
    socket_of_it = ["--socket", str(ends.receiver.fileno())]
    return [*_words(case), *map(str, sizes), *flags, *socket_of_it]


def _sender(case: Case, heaps: int, ends: Ends, receiver: int, payload: float | None) -> list[str]:
    """Return how the sender is started, beside a receiver's process."""
    more = ["-w", _warm_up(case)]
    more += ["--turns", receiver] if TURNS in case.words else []
    more += _SPOIL if SPOILT in case.words else []
    more += ["--fill"] * ("checked" in case.words)
    more += ["--describe"] * (find_receiver(case.program) is not None)
    more += ["--naps"] * (case.streams is not None)
    if ends.more:
        more += ["--also", ",".join(str(sock.fileno()) for pair in ends.more for sock in pair)]
    more += ["--socket", ends.sender.fileno(), "--queue", ends.receiver.fileno()]
    return delivery.blast(case, heaps, *more, rate=rate_of(case), payload=payload)


# ---- A sample ----


def take(lab: Lab, step: Step, heaps: int, asked: float | None = None) -> Received:
    """Have a case's program receive heaps."""
    case = step.case
    receiver = find_receiver(case.program)
    if receiver is not None and asked is None and TURNS not in case.words:
        return _take_delivery(lab, step, receiver, heaps)
    return delivery.take(
        step,
        heaps,
        lambda: _run(lab, case, heaps, asked),
        (lab.device, lab.kind) if "veth" in case.words else ("lo", "loopback"),
        chapter=receiver.number if receiver else 0,
        asked=asked,
        warm_up=_warm_up(case),
        lossless=asked is None and rate_of(case) is None and SPOILT not in case.words,
    )


def _run(lab: Lab, case: Case, heaps: int, asked: float | None) -> tuple[Done, Done]:
    """Return what the sender and the receiver said."""
    first, second = a_core_each()
    if (case.streams or 1) > 1 and ONE_CORE not in case.words:
        second = None  # it has all
    with _receiving(lab, case, second) as (receiver, ends):
        argv = _sender(case, heaps, ends, receiver.process.pid, asked)
        with Running(ends.start, "blast", argv, core=first) as sender:
            sent = sender.wait(TIMEOUT_S if case.heaps is None else _LONG_S)
        return sent, receiver.wait(_DRAIN_S)


@contextlib.contextmanager
def _receiving(lab: Lab, case: Case, core: int | None) -> Iterator[tuple[Listening, Ends]]:
    """Have a case's program wait for packets; it does not outlive the block."""
    receiver = find_receiver(case.program)
    if receiver is not None:
        with contextlib.ExitStack() as stack:
            chapter = stack.enter_context(_chapter(lab, case, receiver, core))
            found = _sockets_of(chapter.process.pid, case.program)
            sockets = [stack.enter_context(sock) for sock in found]
            first, *more = _flow_to_each(lab, stack, sockets, chapter.process.pid)
            yield chapter, Ends(*first, tuple(more))
        return
    buffer = _BUFFER_FOR_TURNS if TURNS in case.words else _BUFFER
    buffer = search.BUFFER if case.search else buffer
    with (
        connected(lab, buffer, veth="veth" in case.words) as ends,
        Listening(ends.start, case.program, _receiver(case, ends), core=core) as process,
    ):
        yield process, ends


def _chapter(lab: Lab, case: Case, receiver: Receiver, core: int | None) -> Listening:
    """Start a chapter's program; it listens at a port of its own."""
    host, port = free_port(lab)
    argv, at = program(case.program, case.language), f"{host}:{port}"
    more = ["-t", _SILENCE_S, *(["-s", str(case.streams)] if case.streams else [])]
    return listening(lab, receiver, argv, case.heap_size, at, *more, text=False, core=core)


def free_port(lab: Lab) -> tuple[str, int]:
    """Return an address of the lab's loopback that nothing listens at."""
    with lab.socket() as free:
        free.bind((_LOOPBACK, 0))
        return _LOOPBACK, int(free.getsockname()[1])


def _sockets_of(pid: int, name: str) -> list[socket.socket]:
    """Return copies of the UDP sockets that a process has; who may look into it may have these."""
    found = []
    with open(os.pidfd_open(pid), "rb") as process:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            if not os.readlink(link).startswith("socket:"):
                continue
            fd = _libc.syscall(_PIDFD_GETFD, process.fileno(), int(link.name), 0)
            if fd < 0:
                why = os.strerror(ctypes.get_errno())
                raise ProgramError(f"the socket of {name} cannot be looked at: {why}")
            sock = socket.socket(fileno=fd)
            if sock.type == socket.SOCK_DGRAM and sock.family in (socket.AF_INET, socket.AF_INET6):
                found.append(sock)
            else:
                sock.close()
    if not found:
        raise ProgramError(f"{name} listens, but has no UDP socket")
    return found


def _flow_to_each(
    lab: Lab, stack: contextlib.ExitStack, receivers: Sequence[socket.socket], pid: int
) -> list[tuple[socket.socket, socket.socket]]:
    """Return sockets that send to one port, one to each of those that share it.

    Which one the kernel chooses is seen by a datagram that is taken out again, while the process
    that has them is stopped.
    """
    there = "127.0.0.1", receivers[0].getsockname()[1]
    if len(receivers) == 1:
        sender = stack.enter_context(lab.socket())
        sender.connect(there)
        return [(sender, receivers[0])]
    found: dict[socket.socket, socket.socket] = {}
    os.kill(pid, signal.SIGSTOP)
    _wait_until_stopped(pid)
    for _ in range(_MOST_FLOWS):
        sender = stack.enter_context(lab.socket())
        sender.connect(there)
        sender.send(b"to whom?")
        came, _, _ = select.select(receivers, [], [], _DRAIN_S)
        if not came:
            raise ProgramError("a datagram came to none of the sockets that share the port")
        came[0].recv(_LOOPBACK_MTU)
        found.setdefault(came[0], sender)
        if len(found) == len(receivers):
            break
    os.kill(pid, signal.SIGCONT)
    if len(found) < len(receivers):
        raise ProgramError(f"of {_MOST_FLOWS} flows none goes to one of {len(receivers)} sockets")
    return [(found[one], one) for one in receivers]


def _wait_until_stopped(pid: int) -> None:
    """Wait until all threads of a process are: field 3 of their stat, see proc_pid_stat(5)."""
    tasks = [path / "stat" for path in Path(f"/proc/{pid}/task").iterdir()]
    while any(path.read_text().rpartition(")")[2].split()[0] not in "TZ" for path in tasks):
        time.sleep(0)  # Z: it has ended


def look(lab: Lab, step: Step, warm_up: Sample | None, size: Size) -> Iterator[Received]:
    """Look for the highest rate at which a case's program loses nothing."""
    return search.look(functools.partial(take, lab, step), step, warm_up, size.most_bytes)


# ---- A sample of chapter 9's, as one runs it ----


def _take_delivery(lab: Lab, step: Step, receiver: Receiver, heaps: int) -> Received:
    """Have chapter 8's program send heaps to another, and see what of them arrives."""
    case, begun = step.case, Begun(step)
    options = ProgramOptions(heaps, case.heap_size, case.packet_size)
    buffers = _number(case, "pool of N")
    done = deliver(
        lab, receiver, find_chapter("8"), (case.language, "c"), options,
        to_receiver=["-t", _POOL_SILENCE_S, *(["-b", buffers] if buffers else [])],
        as_json=True, bits_per_s=case.link,
    )  # fmt: skip
    wrong = delivery.failure(done.sent, done.received)
    if wrong is None and done.accounting is not None and not done.accounting.ok:
        wrong = done.accounting.text
    measured: dict[str, Any] = {}
    received, sent = done.received.said, done.sent.said
    if received and sent:
        measured = {name: sent[name] for name in delivery.OF_SENDER}
        measured |= {name: received[name] for name in _OF_POOL}
        measured |= {
            "payload_bytes": received["heaps_complete"] * case.heap_size,
            "received_packets": received["socket_datagrams"],
            "received_dropped": sent["packets"] - received["socket_datagrams"],
            "received_heaps": received["heaps_complete"],
        }
    return begun.received(heaps, receiver.number, (lab.device, lab.kind), wrong, measured)

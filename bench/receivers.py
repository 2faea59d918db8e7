# SPDX-License-Identifier: BSD-3-Clause
"""Observers of receivers: `blast` sends, a program receives, and each has a core of its own.

All that is of the lab is two sockets: one to send through, and one that is bound, to receive from.
The programs are given them, and so the sender can see what the receiver's socket holds. It fills
no more than half of that, whoever reads it, so that nothing is lost: a rate is what a receiver can
do, and not what it lets fall. Only a case that says at what rate to send may lose something;
and of a search for the highest rate without loss, each run is sent to at a rate.

Chapter 9's programs are also measured as one runs them, beside chapter 8's sender, over a link or
as fast as it can. Then heaps may be lost, and a sample says how many.
"""

import contextlib
import dataclasses
import functools
import os
import random
import re
import select
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.peers import (
    PACKAGE,
    PEER_PROGRAMS,
    PEERS,
    TIMEOUT_S,
    build_key,
    build_of,
    interpreter,
    missing_peer,
)
from spead_tutorial.chapters import catalogue
from spead_tutorial.chapters.catalogue import Receiver, find_chapter, find_receiver
from spead_tutorial.lab import Lab, probe
from spead_tutorial.lab.process import udp_sockets
from spead_tutorial.measure import delivery, search
from spead_tutorial.measure.baselines import CEILING
from spead_tutorial.measure.case import Case, Observer, Size, Step, take_received
from spead_tutorial.measure.delivery import deliver, listening
from spead_tutorial.measure.machine import a_core_each
from spead_tutorial.measure.programs import Done, ProgramError, ProgramOptions, program
from spead_tutorial.measure.records import OURS, Received, Sample
from spead_tutorial.measure.running import Listening, Running

#: Programs that do nothing but receive, of ours, the peer's and the bare loop: heaps one by one,
#: and in chunks; and one that receives what is lost on purpose.
ALONE = ("receive", "receive_chunks")
LOST = "receive_lost"
#: All that receive, those of the chapters, too.
RECEIVERS = (*ALONE, LOST, *(one.name for one in catalogue.RECEIVERS))
#: Words of variants: the socket is filled while the receiver is stopped, and then emptied; some of
#: the packets are lost, and some come in another order; threads of several sockets share a core,
#: or those of one have all; each heap is sent when the result of the one before is there.
TURNS, SPOILT, ONE_CORE, ALL_CORES, ONE_BY_ONE = (
    "in turns",
    "spoilt",
    "one core",
    "all cores",
    "one by one",
)
#: A chapter's program in Python, as it is where Numba is not installed.
NOT_COMPILED = "not compiled"
_WITHOUT_NUMBA = """\
import runpy, sys
del sys.argv[0], sys.path[0]
sys.modules["numba"] = None
runpy.run_path(sys.argv[0], run_name="__main__")"""
#: What the bare loop is called, that belongs to the first.
_BARE = "receive_bare"
_PROGRAMS = Path(__file__).resolve().parent / "peer"
_BIN = PACKAGE / "bin"
#: Bytes of the receiver's socket; the kernel gives twice that, where it allows it. What is in it
#: at a time is half of that, or nearly all where the two take turns, so that these are long.
_BUFFER, _BUFFER_FOR_TURNS = 1 << 21, 1 << 22
#: Heaps that warm a receiver up make up this, and are as many as some.
_WARM_UP_BYTES, _FEWEST_WARM_UP = 1 << 24, 4
_DRAIN_S = 5.0
#: About how many runs a search has, and what each needs besides, in the slower language.
_RUNS, _RUN_S = 12, 0.3
_LONG_S = 3600.0  # for a case that says how many heaps, which may be millions
_LOOPBACK, _LOOPBACK_MTU = "127.0.0.1", 65536
_LISTENING = 10000, 32768  # ports below those that the kernel gives to who asks for none
#: After so much silence chapters' programs end, should the end of the stream be lost: of those that
#: are measured as one runs them, and of all others.
_POOL_SILENCE_S, _SILENCE_S = "1", "2"
#: What the words of a variant are to the receiver's program: a flag, which gets the number that
#: stands at N. Those of None are for who starts it.
_WORDS = {
    "no GRO": "--no-gro",
    "no copy": "--no-copy",
    "no pool": "--no-pool",
    "no thread": "--no-thread",
    "checked": "--check",
    "full ring drops": "--drop-when-full",
    "lossy": "--lossy",
    "ring of N": "-r",
    "pool of N": "-b",
    "N ms a heap": "--sleep-ms",
    SPOILT: "--out-of-order",
    **dict.fromkeys(("veth", TURNS, ONE_CORE, ALL_CORES, ONE_BY_ONE, NOT_COMPILED)),
    **dict.fromkeys(("N GB/s", "N % lost", "bursts of N KiB", "buffer of N KiB")),
}
#: What is done to packets that are spoilt: some are lost, some come after the next one.
_SPOIL = ("--lose", "1009", "--swap", "997")
#: Sockets that are made to find one for each of a receiver's.
_MOST_FLOWS = 256
_OF_POOL = ("page_faults", "pool_empty", "pool_most_in_use")
_SO_MEMINFO, _MEMINFO = 55, struct.Struct("9I")
#: Places in what a socket says of its memory: what it holds, what it has room for, what it dropped.
RMEM_ALLOC, RCVBUF, DROPS = 0, 1, 8


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


def socket_memory(sock: socket.socket) -> tuple[int, ...]:
    """Return what the kernel says of a socket's memory, see ``SK_MEMINFO_*`` of sock_diag(7)."""
    return _MEMINFO.unpack(sock.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size))


@functools.cache
def _has_veth() -> bool:
    return "veth" in probe().kinds


# ---- What is started ----


def _program(case: Case) -> Path:
    if case.language == "python":
        return _PROGRAMS / f"{ALONE[0] if case.program == LOST else case.program}.py"
    if case.implementation in PEERS:
        return PEER_PROGRAMS / case.program
    return _BIN / (_BARE if case.implementation == CEILING else case.program)


def _words(case: Case) -> list[str]:
    """Return how a case's program is started."""
    if case.language != "python":
        return [str(_program(case)), "--json"]
    library = "spead_tutorial" if case.implementation == OURS else "spead2"
    return [*interpreter(case.implementation), str(_program(case)), library]


def _told(case: Case) -> dict[str, tuple[str, ...]]:
    """Return the words of a case's variant as `_WORDS` has them, each with its number, if any."""
    found: dict[str, tuple[str, ...]] = {}
    for word in case.words:
        matches = {one: re.fullmatch(one.replace("N", "([0-9.]+)"), word) for one in _WORDS}
        known = {one: match.groups() for one, match in matches.items() if match is not None}
        if not known:
            raise ValueError(f"{word!r} means nothing to a receiver")
        found |= known
    return found


def number(case: Case, word: str) -> float | None:
    """Return the number in a word of a case's variant; None where it has no such word."""
    numbers = _told(case).get(word)
    return float(numbers[0]) if numbers else None


def flags(case: Case) -> list[str]:
    """Return what the words of a case's variant are to its program."""
    pairs = ((_WORDS[word], numbers) for word, numbers in _told(case).items())
    return [one for flag, numbers in pairs if flag is not None for one in (flag, *numbers)]


def rate_of(case: Case) -> float | None:
    """Return the bytes of packets in a second that a case is sent; None where it has a window."""
    asked = number(case, "N GB/s")
    return None if asked is None else asked * 1e9


def warm_up(case: Case) -> int:
    return max(_FEWEST_WARM_UP, _WARM_UP_BYTES // case.heap_size)


def receiver_command(case: Case, ends: Ends) -> list[str]:
    """Return how a program is started that receives from a socket of its own."""
    sizes = ["-w", warm_up(case), "-H", case.heap_size, "-p", case.packet_size]
    sizes += ["-r", search.waiting(case.heap_size)]
    socket_of_it = ["--socket", str(ends.receiver.fileno())]
    return [*_words(case), *map(str, sizes), *flags(case), *socket_of_it]


def _sender(case: Case, heaps: int, ends: Ends, receiver: int, payload: float | None) -> list[str]:
    """Return how the sender is started, beside a receiver's process."""
    more = ["-w", warm_up(case)]
    more += ["--turns", receiver] if TURNS in case.words else []
    more += _SPOIL if SPOILT in case.words else []
    more += ["--fill"] * ("checked" in case.words)
    more += ["--describe"] * (find_receiver(case.program) is not None)
    more += ["--naps"] * (case.streams is not None)
    if ends.more:
        more += ["--also", ",".join(str(sock.fileno()) for pair in ends.more for sock in pair)]
    more += ["--socket", ends.sender.fileno(), "--queue", ends.receiver.fileno()]
    return delivery.blast(case, heaps, *more, rate=rate_of(case), payload=payload)


# ---- Samples ----


class Receiving(Observer):
    """What a program receives of `blast`, which loses nothing, or keeps a rate."""

    receives = True
    veth = False  # whether all of its cases need a pair of devices

    def missing(self, case: Case) -> str | None:
        """Say why a case of a receiver cannot run here; None where it can."""
        if a_core_each() == (None, None):
            return "there are no two cores, one for each side"
        if (self.veth or "veth" in case.words) and not _has_veth():
            return "there can be no veth pair"
        if case.program.startswith("tut_"):
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

    def facts(self, lab: Lab) -> dict[str, Any]:
        return {"kind": "loopback", "rootless": lab.rootless, "mtu": _LOOPBACK_MTU}

    def versions(self) -> dict[str, str | None]:
        bare = [_BIN / name for name in ("blast", _BARE)]
        drivers = sorted(_PROGRAMS.glob("receive*.*"))
        peers = sorted(PEER_PROGRAMS.glob("*")) if PEER_PROGRAMS.is_dir() else []
        return {build_key("receivers"): build_of(*bare, *drivers, *peers)}

    def observe(self, lab: Lab, size: Size, step: Step, known: Sample | None) -> Iterable[Received]:
        yield self.take(lab, step, self.heaps(step.case, size, known))

    def take(self, lab: Lab, step: Step, heaps: int, asked: float | None = None) -> Received:
        """Have a case's program receive heaps, and see what becomes of them."""
        case = step.case
        receiver = find_receiver(case.program)
        return delivery.take(
            step,
            heaps,
            lambda: _run(lab, case, heaps, asked),
            (lab.device, lab.kind) if "veth" in case.words else ("lo", "loopback"),
            chapter=receiver.number if receiver else 0,
            asked=asked,
            warm_up=warm_up(case),
            lossless=asked is None and rate_of(case) is None and SPOILT not in case.words,
        )


class Searching(Receiving):
    """The highest rate at which a program loses nothing: each run is sent to at a rate."""

    def heaps(self, case: Case, size: Size, known: Sample | None) -> int:
        return search.heaps_of_a_run(case.heap_size, search.START, size.most_bytes, size.longest_s)

    def observe(self, lab: Lab, size: Size, step: Step, known: Sample | None) -> Iterable[Received]:
        run = functools.partial(self.take, lab, step)
        return search.look(run, step, known, size.most_bytes, size.longest_s)


class Delivering(Receiving):
    """What arrives of chapter 8's program in another, as one runs both."""

    veth = True

    def take(self, lab: Lab, step: Step, heaps: int, asked: float | None = None) -> Received:
        receiver = find_receiver(step.case.program)
        assert receiver is not None
        observed = functools.partial(_delivered, lab, step.case, receiver, heaps)
        way = lab.device, lab.kind
        return take_received(step, heaps, receiver.number, way, observed)


def _run(lab: Lab, case: Case, heaps: int, asked: float | None) -> tuple[Done, Done]:
    """Return what the sender and the receiver said."""
    first, second = a_core_each()
    if ((case.streams or 1) > 1 and ONE_CORE not in case.words) or ALL_CORES in case.words:
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
    if isinstance(case.observer, Searching) or rate_of(case) is not None:
        buffer = search.BUFFER
    with (
        connected(lab, buffer, veth="veth" in case.words) as ends,
        Listening(ends.start, case.program, receiver_command(case, ends), core=core) as process,
    ):
        yield process, ends


def _chapter(lab: Lab, case: Case, receiver: Receiver, core: int | None) -> Listening:
    """Start a chapter's program; it listens at a port of its own."""
    host, port = free_port(lab)
    argv, at = program(case.program, case.language), f"{host}:{port}"
    if NOT_COMPILED in case.words:
        argv[1:1] = ["-c", _WITHOUT_NUMBA]
    more = ["-t", _SILENCE_S, *(["-s", str(case.streams)] if case.streams else [])]
    return listening(lab, receiver, argv, case.heap_size, at, *more, text=False, core=core)


def free_port(lab: Lab) -> tuple[str, int]:
    """Return an address of the lab's loopback that nothing listens at.

    It is none of those that the kernel gives to senders meanwhile.
    """
    for port in random.sample(range(*_LISTENING), 100):
        with lab.socket() as free, contextlib.suppress(OSError):
            free.bind((_LOOPBACK, port))
            return _LOOPBACK, port
    raise ProgramError("no port is free on loopback")


def _sockets_of(pid: int, name: str) -> list[socket.socket]:
    try:
        found = udp_sockets(pid)
    except OSError as error:
        raise ProgramError(f"the socket of {name} cannot be looked at: {error.strerror}") from None
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


# ---- Chapter 9's program beside chapter 8's, as one runs them ----


def _delivered(
    lab: Lab, case: Case, receiver: Receiver, heaps: int
) -> tuple[dict[str, Any], str | None]:
    """Have chapter 8's program send heaps to another, and see what of them arrives."""
    options = ProgramOptions(heaps, case.heap_size, case.packet_size)
    done = deliver(
        lab, receiver, find_chapter("8"), (case.language, "c"), options,
        to_receiver=["-t", _POOL_SILENCE_S, *flags(case)], as_json=True, bits_per_s=case.link,
    )  # fmt: skip
    wrong = delivery.failure(done.sent, done.received)
    if wrong is None and done.accounting is not None and not done.accounting.ok:
        wrong = done.accounting.text
    received, sent = done.received.said, done.sent.said
    if not (received and sent):
        return {}, wrong
    measured = {name: sent[name] for name in delivery.OF_SENDER}
    measured |= {name: received[name] for name in _OF_POOL}
    measured["payload_bytes"] = received["heaps_complete"] * case.heap_size
    return measured | delivery.arrived(sent["packets"], received), wrong


RECEIVING, SEARCHING, DELIVERING = Receiving(), Searching(), Delivering()

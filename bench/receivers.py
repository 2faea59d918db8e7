# SPDX-License-Identifier: BSD-3-Clause
"""Receivers, measured: `blast` sends, a program receives, and each has a core of its own.

All that is of the lab is two sockets: one to send through, and one that is bound, to receive from.
The programs are given them, and so the sender can see what the receiver's socket holds. It fills
no more than half of that, whoever reads it, so that nothing is lost: a rate is what a receiver can
do, and not what it lets fall. Only a case that says at what rate to send may lose something;
and of a search for the highest rate without loss, each run is sent to at a rate.
"""

import contextlib
import dataclasses
import functools
import importlib.resources
import json
import os
import re
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import spead_tutorial.recv
from bench import listening
from bench.peers import (
    PEER_PROGRAMS,
    TIMEOUT_S,
    build_key,
    build_of,
    interpreter,
    missing_peer,
)
from bench.samples import Begun
from bench.sweeps import BARE, CEILING, LOST, PEERS, POOL, SPOILT, TURNS, Size
from spead_tutorial.catalogue import find_receiver
from spead_tutorial.lab import Lab, LabProcess, probe
from spead_tutorial.measure import search
from spead_tutorial.measure.believe import packet_sizes
from spead_tutorial.measure.case import Case, Step
from spead_tutorial.measure.machine import two_cores
from spead_tutorial.measure.programs import Done, ProgramError, program
from spead_tutorial.records import OURS, Sample

__all__ = [
    "PLACES",
    "Ends",
    "contradiction",
    "ended",
    "facts",
    "heaps_of_a_run",
    "look",
    "missing",
    "open_lab",
    "started",
    "take",
    "versions",
]

_PROGRAMS = Path(__file__).resolve().parent / "peer"
_BIN = Path(str(importlib.resources.files("spead_tutorial").joinpath("bin")))
#: Bytes of the receiver's socket; the kernel gives twice that, where it allows it. What is in it
#: at a time is half of that, or nearly all where the two take turns, so that these are long.
_BUFFER, _BUFFER_FOR_TURNS = 1 << 21, 1 << 22
#: What the chapters' programs ask for themselves. In a search, all receivers have as much.
_BUFFER_FOR_SEARCH = 1 << 23
#: A run of a search sends so many times what the socket and heaps that wait can take in: who is
#: slower than the sender by one part in as many has lost something then. And it lasts a while.
_TIMES_TAKEN_IN, _RUN_S = 10, 0.1
#: What may wait to be got: so many heaps as make up this, and no fewer than some.
_WAITING_BYTES, _FEWEST_WAITING = 1 << 20, 4
#: Heaps that warm a receiver up make up this, and are as many as some.
_WARM_UP_BYTES, _FEWEST_WARM_UP = 1 << 24, 4
_MOST_SEGMENTS = 64  # that blast puts into a message
_DRAIN_S = 5.0
_LONG_S = 3600.0  # for a case that says how many heaps, which may be millions
_LOOPBACK_MTU = 65536
#: What the words of a case's variant are to a receiver. One like "2 GB/s" is for the sender.
_FLAGS = {
    "no GRO": "--no-gro",
    "no copy": "--no-copy",
    "no pool": "--no-pool",
    "checked": "--check",
    SPOILT: "--out-of-order",
}
#: What is done to packets that are spoilt: some are lost, some come after the next one.
_SPOIL = ("--lose", "1009", "--swap", "997")
_RATE = re.compile(r"([0-9.]+) GB/s")


@dataclasses.dataclass(frozen=True, slots=True)
class Ends:
    """Two sockets that are connected, and what a record calls the way between them."""

    sender: socket.socket  # one to send through, one that is bound
    receiver: socket.socket
    device: str  # as in `spead_tutorial.records.Sample`
    kind: str


@contextlib.contextmanager
def _over_loopback(lab: Lab, buffer: int) -> Iterator[Ends]:
    with lab.socket() as receiver, lab.socket() as sender:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        receiver.bind(("127.0.0.1", 0))
        sender.connect(receiver.getsockname())
        yield Ends(sender, receiver, "lo", "loopback")


@contextlib.contextmanager
def _over_veth(lab: Lab, buffer: int) -> Iterator[Ends]:
    with lab.receiver.socket(0, buffer_size=buffer) as receiver, lab.socket() as sender:
        sender.connect(receiver.getsockname())
        yield Ends(sender, receiver, lab.device, lab.kind)


#: Ways between two sockets, by the word of a case's variant that asks for it.
PLACES: Mapping[str, Callable[[Lab, int], contextlib.AbstractContextManager[Ends]]] = {
    "": _over_loopback,
    "veth": _over_veth,
}


@functools.cache
def _has_veth() -> bool:
    return "veth" in probe().kinds


def open_lab() -> Lab:
    """Make a lab whose second machine receives, where there can be one; else an ordinary one."""
    return Lab(receiver=True) if _has_veth() else Lab()


def facts(lab: Lab) -> dict[str, Any]:
    """Return what a record says of the place."""
    return {"kind": "loopback", "rootless": lab.rootless, "mtu": _LOOPBACK_MTU}


def versions() -> dict[str, str | None]:
    """Return what a record says of the programs, besides what every record does."""
    bare = [_BIN / name for name in ("blast", BARE)]
    drivers = sorted(_PROGRAMS.glob("receive*.*"))
    peers = sorted(PEER_PROGRAMS.glob("*")) if PEER_PROGRAMS.is_dir() else []
    return {build_key("receivers"): build_of(*bare, *drivers, *peers)}


# ---------------------------------------------------------------------------------------
# What is started


def missing(case: Case) -> str | None:
    """Say why a case of a receiver cannot run here; None where it can."""
    if two_cores() is None:
        return "there are no two cores, one for each side"
    if case.program == POOL and not case.search:
        return None if _has_veth() else "there can be no veth pair"
    if listening.is_chapter(case):
        return _missing_chapter(case)
    if ("veth" in _variant(case) or case.program == LOST) and not _has_veth():
        return "there can be no veth pair"
    if case.language == "python" and case.implementation == OURS and (reason := _lacks(case)):
        return reason
    if case.implementation in PEERS and (reason := missing_peer(case.implementation)):
        return reason
    if not _program(case).is_file():
        made_by = "make peer" if case.implementation in PEERS else "pip install ."
        return f"{_program(case).name} has not been built: {made_by}"
    return None


def _missing_chapter(case: Case) -> str | None:
    try:
        program(case.program, case.language)
    except ProgramError as error:
        return str(error)
    return None


def _lacks(case: Case) -> str | None:
    """Say what our package lacks for a receiver in Python."""
    needs_pool = "no pool" not in _variant(case)
    needed = ("recv", "ChunkRingStream") if case.program == "receive_chunks" else ("", "MemoryPool")
    module: Any = spead_tutorial.recv if needed[0] else spead_tutorial
    if hasattr(module, needed[1]) or not needs_pool:
        return None
    return f"there is no {module.__name__}.{needed[1]}"


def _program(case: Case) -> Path:
    if case.language == "python":
        return _PROGRAMS / f"{case.program}.py"
    if case.implementation in PEERS:
        return PEER_PROGRAMS / case.program
    return _BIN / (BARE if case.implementation == CEILING else case.program)


def _words(case: Case) -> list[str]:
    """Return how a case's program is started."""
    if case.language != "python":
        return [str(_program(case))]
    library = "spead_tutorial" if case.implementation == OURS else "spead2"
    return [*interpreter(case.implementation), str(_program(case)), library]


def _variant(case: Case) -> list[str]:
    return case.variant.split(", ") if case.variant else []


def _rate(case: Case) -> float | None:
    """Return the bytes of packets in a second that a case is sent; None where it has a window."""
    found = (_RATE.fullmatch(word) for word in _variant(case))
    return next((float(one[1]) * 1e9 for one in found if one), None)


def _warm_up(case: Case) -> int:
    return max(_FEWEST_WARM_UP, _WARM_UP_BYTES // case.heap_size)


def _waiting(case: Case) -> int:
    return max(_FEWEST_WAITING, _WAITING_BYTES // case.heap_size)


def _receiver(case: Case, ends: Ends) -> list[str]:
    flags = [_FLAGS[word] for word in _variant(case) if word in _FLAGS]
    sizes = ["-w", _warm_up(case), "-H", case.heap_size, "-p", case.packet_size]
    sizes += ["-r", _waiting(case)]
    return [*_words(case), *map(str, sizes), *flags, "--json", "--socket",
            str(ends.receiver.fileno())]  # fmt: skip


def _sender(case: Case, heaps: int, ends: Ends, receiver: int, rate: float | None) -> list[str]:
    """Return how the sender is started, beside a receiver's process."""
    numbers = ["-n", heaps, "-w", _warm_up(case), "-H", case.heap_size, "-p", case.packet_size]
    numbers += ["-r", rate] if rate is not None else []
    numbers += ["--turns", receiver] if TURNS in _variant(case) else []
    numbers += _SPOIL if SPOILT in _variant(case) else []
    numbers += ["--fill"] * ("checked" in _variant(case))
    numbers += ["--describe"] * listening.is_chapter(case)
    numbers += ["--socket", ends.sender.fileno(), "--queue", ends.receiver.fileno()]
    return [str(_BIN / "blast"), *map(str, numbers), "--json"]


@contextlib.contextmanager
def started(argv: Sequence[str], core: int, ends: Ends) -> Iterator[subprocess.Popen[str]]:
    """Start a program on a core; it does not outlive the block."""
    usable = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={"OPENBLAS_NUM_THREADS": "1", **os.environ},
            pass_fds=(ends.sender.fileno(), ends.receiver.fileno()),
        )
    except OSError as error:
        raise ProgramError(f"{argv[0]} cannot be started: {error.strerror}") from None
    finally:
        os.sched_setaffinity(0, usable)
    with process:
        try:
            yield process
        finally:
            process.kill()


# ---------------------------------------------------------------------------------------
# A sample


def take(lab: Lab, step: Step, heaps: int, asked: float | None = None) -> Sample:
    """Have a case's program receive heaps."""
    case = step.case
    rate = _rate(case) if asked is None else asked * _overhead(case.heap_size, case.packet_size)
    begun = Begun(step, heaps)
    sent, received, ends = _run(lab, case, heaps, rate)
    claims = [_claims(sent), _claims(received)]
    if listening.is_chapter(case):
        claims[1] = listening.claims(received, case, _warm_up(case))
    failure = next((one.complaint for one in (received, sent) if one.status), None)
    if failure is None:
        lossless = rate is None and SPOILT not in _variant(case)
        failure = contradiction(claims[0], claims[1], lossless=lossless)
    receiver = find_receiver(case.program)
    measured = _measured(*claims, searched=asked is not None) | {"asked_bytes_per_s": asked}
    number = receiver.number if receiver is not None else 0
    return begun.done(number, (ends.device, ends.kind), failure, measured)


@functools.cache
def _overhead(heap_size: int, packet_size: int) -> float:
    """Return how many bytes packets have for each byte of payload."""
    return sum(packet_sizes(heap_size, packet_size)[1]) / heap_size


def _run(lab: Lab, case: Case, heaps: int, rate: float | None) -> tuple[Done, Done, Ends]:
    """Return what the sender and the receiver said, and by which way packets went."""
    cores = two_cores()
    assert cores is not None
    first, second = map(int, cores.split(","))
    with _receiving(lab, case, second) as (receiver, ends):
        if receiver.poll() is not None:
            return Done("blast", 0, "", ""), ended(case.program, receiver, _DRAIN_S), ends
        with started(_sender(case, heaps, ends, receiver.pid, rate), first, ends) as sender:
            sent = ended("blast", sender, TIMEOUT_S if case.heaps is None else _LONG_S)
        return sent, ended(case.program, receiver, _DRAIN_S), ends


@contextlib.contextmanager
def _receiving(
    lab: Lab, case: Case, core: int
) -> Iterator[tuple[subprocess.Popen[str] | LabProcess, Ends]]:
    """Have a case's program wait for packets; it does not outlive the block."""
    if listening.is_chapter(case):
        with listening.listening(lab, case, core) as (chapter, sock), lab.socket() as sender:
            sender.connect(sock.getsockname())
            yield chapter, Ends(sender, sock, "lo", "loopback")
        return
    place = next((word for word in _variant(case) if word in PLACES), "")
    buffer = _BUFFER_FOR_TURNS if TURNS in _variant(case) else _BUFFER
    buffer = _BUFFER_FOR_SEARCH if case.search else buffer
    with PLACES[place](lab, buffer) as ends, started(_receiver(case, ends), core, ends) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            process.wait()
        yield process, ends


def ended(name: str, process: subprocess.Popen[str] | LabProcess, timeout: float) -> Done:
    """Wait for a program's end, and return what it said."""
    if isinstance(process, LabProcess):
        return listening.ended(name, process, timeout)
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        return Done(name, 1, "", f"{name}: it did not end within {timeout:g} s")
    return Done(name, process.returncode, output, errors)


def _claims(done: Done) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(done.output)
    except ValueError:
        return {}
    return found


def contradiction(
    sent: Mapping[str, Any], received: Mapping[str, Any], *, lossless: bool
) -> str | None:
    """Say why what was sent and received does not add up; None where it does.

    What a socket drops it counts in the pieces that the kernel keeps in it: packets, or with
    GRO runs of them.
    """
    if not sent or not received:
        return "one of the programs printed no report"
    lost, dropped = sent["packets"] - received["packets"], sent["dropped"]
    if received.get("not_understood"):
        return f"{received['not_understood']} heaps came whole, but were not understood"
    account = (
        f"{sent['packets']} packets were sent, {received['packets']} received, and the socket"
        f" had no room for {dropped} of them, or runs of them"
    )
    if not dropped <= lost <= dropped * _MOST_SEGMENTS:
        return f"{account}: that does not add up"
    if lossless and lost:
        return f"{account}, though the sender left room"
    if received["heaps"] > sent["heaps"] or (lossless and received["heaps"] < sent["heaps"]):
        return f"{sent['heaps']} heaps were sent, and {received['heaps']} received"
    return None


def _measured(
    sent: Mapping[str, Any], received: Mapping[str, Any], *, searched: bool
) -> dict[str, Any]:
    """Return what a sample has of what both sides claim: the time is the sender's.

    Of a run of a search it is that of sending, and packets are those that were sent in it.
    """
    measured: dict[str, Any] = {
        name: sent.get(name) for name in ("elapsed_ns", "spead_bytes", "packets", "messages")
    }
    for name in (
        "cpu_user_ns",
        "cpu_system_ns",
        "program_cpu_ns",
        "page_faults",
        "context_switches",
        "payload_bytes",
        "peak_memory_bytes",
    ):
        measured[name] = received.get(name)
    if sent and received:
        measured["received_packets"] = received["packets"]
        measured["received_dropped"] = sent["packets"] - received["packets"]
        measured["received_heaps"] = received["heaps"]
    if searched and sent and received:
        measured["elapsed_ns"] = sent["sending_ns"]
        measured["spead_bytes"] -= sent["warm_up_bytes"]
        for name in ("packets", "received_packets"):
            measured[name] -= sent["warm_up_packets"]
    return measured


# ---------------------------------------------------------------------------------------
# The highest rate without loss


def heaps_of_a_run(case: Case, rate: float, size: Size) -> int:
    """Return how many heaps a run of a search sends."""
    taken_in = _BUFFER_FOR_SEARCH + _waiting(case) * case.heap_size
    n_bytes = min(max(_TIMES_TAKEN_IN * taken_in, _RUN_S * rate), size.most_bytes)
    return max(2, int(n_bytes) // case.heap_size)


def look(lab: Lab, step: Step, warm_up: Sample | None, size: Size) -> Iterator[Sample]:
    """Look for the highest rate at which a case's program loses nothing."""
    runs, attempt = list(step.runs), step.attempt
    start = search.begin(warm_up, step.number)
    criterion = search.ROUGH if step.warm_up else search.THOROUGH
    while (rate := search.next_rate(runs, start, criterion)) is not None:
        run = take(lab, step, heaps_of_a_run(step.case, rate, size), rate)
        runs.append(dataclasses.replace(run, run=len(runs), attempt=attempt))
        attempt = 0
        yield runs[-1]

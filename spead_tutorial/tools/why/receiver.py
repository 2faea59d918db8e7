# SPDX-License-Identifier: BSD-3-Clause
"""Watching a receiver: at which rate it loses packets, where, and what its threads do meanwhile."""

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
from msgspec.structs import replace

from spead_tutorial.lab import Counters, Lab
from spead_tutorial.measure.case import Case
from spead_tutorial.measure.delivery import blast
from spead_tutorial.measure.programs import Done, program_path
from spead_tutorial.measure.running import Running
from spead_tutorial.measure.verify import IP_UDP_HEADERS, Report
from spead_tutorial.tools.why import calls, profilers
from spead_tutorial.tools.why.facts import Calls, Fates, Loop, Receiving, Run, Seen, Way
from spead_tutorial.tools.why.looks import Follower, between, bound, family, sockets, threads
from spead_tutorial.tools.why.loops import MERGED
from spead_tutorial.tools.why.places import InLab
from spead_tutorial.tools.why.process import SAY_WHERE, Program
from spead_tutorial.tools.why.stacks import Sampled
from spead_tutorial.tools.why.watching import fault_s

#: Bytes in a heap, and in a packet where the MTU has room for it.
_HEAP, _PACKET = 1 << 16, 9000
#: How long a run of the search sends, at which rates in bytes/s, and at which share of what was
#: taken of the highest.
_RUN_S, _HIGH, _HIGHEST, _LOWEST, _SHARE = 0.4, 1e9, 3e9, 1e6, 0.6
_ABOVE = 1.2  # How much above what it takes it is looked at.
#: How long the socket gets to fill before that, and how long strace and profilers look.
_FILL_S, _TRACED_S, _PROFILE_S = 0.3, 0.7, 1.0
_PATIENCE_S = 20.0  # until a sender has ended, beside the time that it should take
#: What a receiver gets until it listens, and how often it is seen whether it does.
_START_S, _LOOK_S = 20.0, 0.02
_NO_READS = (
    "Its calls were not seen, so that it is not known how many packets a read brings, nor what else"
    " it calls: apt install strace."
)
#: How long a diagnosis takes beside the time in which its threads are looked at.
_REST_S = 14
#: Messages in a call of the bare reader, and how often it has to lose in a buffer.
_BATCH, _LOSING = 8, 3


def watch(
    argv: Sequence[str], spot: InLab, seconds: float, say: Callable[[str], None]
) -> Seen | str:
    """Look at a receiver, or say in a line that it has lost nothing."""
    name = Receiver(argv, spot).name
    say(f"Watching {name}, in about {seconds + _REST_S:.0f} s in all: which rate it takes")
    found = _search(argv, spot)
    if found.lossy is None:
        return (
            f"{name} lost nothing of {found.held / 1e6:.3g} MB/s in packets of"
            f" {_packet_bytes(spot.lab)} bytes, the most that was sent to it"
        )
    rate = _ABOVE * found.taken  # so that it has always something to read
    with tempfile.TemporaryDirectory() as folder:
        say(f"Watching {name}: its calls")
        traced = _calls(argv, spot, rate, Path(folder))
        say(f"Watching {name}: what its threads do")
        with Receiver(argv, spot) as program:
            run, its, language, (sampled, unseen) = _watched(
                program, rate, seconds, found, Path(folder)
            )
    say("Running a bare reader")
    words, loops = _readers(spot, rate, traced, its)
    lost = _lost_by_bare(spot, its.fates.rate, words, its)
    return Seen(
        program=name,
        language=language,
        place=spot.text,
        mtu=spot.mtu,
        run=run,
        calls=traced,
        loops=loops,
        sampled=sampled,
        fault_s=fault_s(),
        receiving=replace(its, bare_lost=lost),
        unseen=(*[_NO_READS] * (traced is None), *unseen),
    )


class Receiver(Program):
    """A receiver in a lab: it is started for each run, as it may end with each stream."""

    def __init__(self, argv: Sequence[str], spot: InLab) -> None:
        super().__init__(argv, spot.lab.receiver.popen, spot.environment)
        self.lab = spot.lab

    def listening(self, under: Sequence[str] = ()) -> int:
        """Start it, and return its process when it listens."""
        self.start(under)
        late, port = time.monotonic() + _START_S, self.lab.port
        while not bound(self.pid, port):
            if self.has_ended():
                self.check_status(" before it listened")
            if time.monotonic() > late:
                others = sorted({one.port for one in bound(self.pid)})
                where = f", but at {', '.join(map(str, others))}" if others else ""
                raise click.ClickException(
                    f"{self.name} did not listen at UDP port {port} within {_START_S:g} s{where}:"
                    f" {SAY_WHERE}"
                )
            time.sleep(_LOOK_S)
        return self.pid

    @contextlib.contextmanager
    def sent_to(self, rate: float, seconds: float, *more: str) -> Iterator[list[Fates]]:
        """Send to it at a rate, during a block and to the end; the fates are known then."""
        lab, found = self.lab, list[Fates]()
        case = Case("ours", "c", "blast", _HEAP, _packet_bytes(lab))
        more = more or ("--describe",)
        argv = blast(case, max(2, round(rate * seconds / _HEAP)), *more, rate=rate)
        merges = any(one.merges for one in sockets(family(self.pid), lab.port))
        before = _counted(lab)
        with Running(lab.popen, "blast", [*argv, lab.address, str(lab.port)]) as running:
            yield found
            done = running.wait(seconds + _PATIENCE_S)
        found.append(_fates(before, _counted(lab), done, merges=merges))


def _packet_bytes(lab: Lab) -> int:
    return min(_PACKET, lab.mtu - IP_UDP_HEADERS)


def _counted(lab: Lab) -> tuple[Counters, Counters, Any]:
    return lab.counters(), lab.receiver.counters(), lab.receiver.arrivals()


def _fates(before: Any, after: Any, done: Done, *, merges: bool) -> Fates:
    report = Report.parse(done.output) if done.status == 0 else None
    if report is None:
        raise click.ClickException(f"it could not be sent to: {done.complaint}")
    device, far, arrived = (now - then for now, then in zip(after, before, strict=True))
    sent_s = max(int(done.said.get("sending_ns", report.elapsed_ns)), 1) / 1e9
    return Fates(
        rate=report.spead_bytes / sent_s,
        packets=report.packets,
        device=device.tx_dropped + far.rx_dropped,
        arrived=arrived.packets,
        unclaimed=arrived.unclaimed,
        no_room=arrived.no_room,
        per_message=report.packets / max(report.messages or report.packets, 1) if merges else 1.0,
    )


# ---- Which rate it takes ----


class _Tried(NamedTuple):
    fates: Fates
    cpu_s: float  # CPU time of all its threads


class _Found(NamedTuple):
    held: float  # the highest rate at which nothing was lost, or 0
    lossy: Fates | None  # the run at the lowest rate at which something was lost
    taken: float  # what it takes of too much, in bytes/s


def _search(argv: Sequence[str], spot: InLab) -> _Found:
    """Send far too much to it, and then less than it took of that."""
    first = _try(argv, spot, _HIGH).fates
    held = 0.0 if first.lost else first.rate
    if held:  # what the way itself does not take at such a rate is no matter of the receiver
        first = replace(_try(argv, spot, _HIGHEST).fates, device=0)
        if not first.lost:
            return _Found(max(held, first.rate), None, first.rate)
    taken = first.rate * (1 - first.share)
    second = _try(argv, spot, max(_SHARE * taken, _LOWEST)).fates
    if second.lost:
        return _Found(held, second, taken)
    return _Found(max(held, second.rate), first, taken)


def _try(argv: Sequence[str], spot: InLab, rate: float, *more: str) -> _Tried:
    """Send to it at a rate for a moment."""
    with Receiver(argv, spot) as program:
        pid = program.listening()
        before = threads(family(pid))
        with program.sent_to(rate, _RUN_S, *more) as sent:
            time.sleep(_RUN_S / 2)
            latest = threads(family(pid))
        done = between(before, latest | threads(family(pid)))
    return _Tried(sent[0], sum(one.cpu_s for one in done.values()))


# ---- Its calls ----


def _calls(argv: Sequence[str], spot: InLab, rate: float, folder: Path) -> Calls | None:
    """Look at the calls of a receiver that strace runs; None where it reads nothing, or may not."""
    under = profilers.strace(folder)
    if under is None:
        return None
    with contextlib.suppress(click.ClickException, OSError), Receiver(argv, spot) as program:
        pid = program.listening(under)
        inodes = [one.inode for one in bound(pid, program.lab.port)]
        with program.sent_to(rate, _TRACED_S):
            since = time.time()
            time.sleep(_TRACED_S)
            names = {tid: one.name for tid, one in threads(family(pid)).items()}
            until = time.time()
        program.end()
        ended = calls.read(profilers.strace_lines(folder))
        reads = [one for one in calls.reads(ended, inodes) if since <= one.at <= until]
        return calls.counted(ended, reads, names)
    return None


# ---- What its threads do ----


def _watched(
    program: Receiver, rate: float, seconds: float, found: _Found, folder: Path
) -> tuple[Run, Receiving, str, tuple[dict[int, Sampled] | None, list[str]]]:
    """Return what its threads do, what became of packets, what it is written in, and samples."""
    lab, size = program.lab, _packet_bytes(program.lab)
    pid = program.listening()
    its = sockets(family(pid), lab.port)
    # So much that the buffer is full soon.
    rate = max(rate, found.taken + sum(one.buffer or 0 for one in its) / 2 / _FILL_S)

    def queued() -> bool:
        return any(one.queued for one in bound(pid, lab.port))

    with program.sent_to(rate, seconds + _PROFILE_S + 3 * _FILL_S) as sent:
        time.sleep(_FILL_S)
        before = lab.receiver.arrivals()
        follower = Follower(pid, lab.counters, queued)
        follower.follow(seconds)
        arrived = lab.receiver.arrivals() - before
        pids = family(pid)
        run = follower.run()
        names = {one.thread.tid: one.thread.name for one in run.threads}
        profile = profilers.profile(pids, folder, _PROFILE_S, names)
        language = profilers.language(pids[-1])
    packets = max(1, round(arrived.packets - arrived.no_room * sent[0].per_message))
    run = replace(run, messages=packets, payload_bytes=packets * size)
    fates = found.lossy or sent[0]
    return run, Receiving(fates, size, 0.0, found.held or None, its), language, profile


# ---- The bare reader ----


def _readers(
    spot: InLab, rate: float, traced: Calls | None, its: Receiving
) -> tuple[list[str], tuple[Loop, ...]]:
    """Run bare readers that read as it does, which is said, and as the kernel merges packets."""
    merges = any(one.merges for one in its.sockets)
    single = traced is not None and traced.per_call < 2
    as_is = ["-m", str(1 if single else _BATCH), *["--no-gro"] * (not merges)]
    ways = {"": as_is} | ({} if merges else {MERGED: ["-m", str(_BATCH)]})
    found = list[Loop]()
    for changed, words in ways.items():
        if (tried := _read(spot, rate, words)) is not None:
            taken = max(1, tried.fates.packets - tried.fates.lost)
            found.append(Loop(changed, Way(its.packet_bytes), (tried.cpu_s / taken,)))
    return as_is, tuple(found)


def _lost_by_bare(spot: InLab, rate: float, words: Sequence[str], its: Receiving) -> float:
    """Return how much more a bare reader loses with a buffer of the same size, as a share."""
    room = (its.buffer or 0) // 2  # the kernel reports twice what is asked for
    if not 0 < room < int(Path("/proc/sys/net/core/rmem_max").read_text()):
        return 0.0

    def lost(*more: str) -> float:
        tried = _read(spot, rate, [*words, *more])
        return tried.fates.share if tried else 0.0

    least = 1.0
    for _ in range(_LOSING):  # what is lost but now and then is the machine's doing
        least = min(least, lost("-b", str(room)) - lost())
        if least <= 0:
            return 0.0
    return least


def _read(spot: InLab, rate: float, words: Sequence[str]) -> _Tried | None:
    """Run a bare reader; None where it fails."""
    lab = spot.lab
    argv = [str(program_path("blast", "c").with_name("receive_bare")), "--no-copy", *words]
    argv += ["-H", str(_HEAP), "-p", str(_packet_bytes(lab)), lab.address, str(lab.port)]
    with contextlib.suppress(click.ClickException):
        return _try(argv, spot, rate, "-w", "0")
    return None

# SPDX-License-Identifier: BSD-3-Clause
"""Watching a receiver: at which rate it loses packets, where, and what its threads do meanwhile."""

import contextlib
import dataclasses
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from spead_tutorial.lab import Counters, Lab
from spead_tutorial.measure import search
from spead_tutorial.measure.case import Begun, Case, Step
from spead_tutorial.measure.delivery import blast
from spead_tutorial.measure.programs import Done
from spead_tutorial.measure.records import Received
from spead_tutorial.measure.running import Running
from spead_tutorial.measure.verify import IP_UDP_HEADERS, Report
from spead_tutorial.tools.why import calls, instruments, waits
from spead_tutorial.tools.why.accounting import account
from spead_tutorial.tools.why.facts import UNSEEN, Calls, Fates, Pauses, Receiving, Run, Seen
from spead_tutorial.tools.why.following import LOOK_S, Follower, Look, run_of
from spead_tutorial.tools.why.pauses import pauses
from spead_tutorial.tools.why.places import InLab
from spead_tutorial.tools.why.receiver_program import Program, bound, sockets
from spead_tutorial.tools.why.watching import prices

#: Bytes in a heap, and in a packet where the MTU has room for it; and in the largest message.
_HEAP, _PACKET, _MESSAGE = 1 << 16, 9000, 65507
#: How long a run of the search sends, how long it goes on, and where it begins.
_RUN_S, _SEARCH_S = 0.4, 6.0
_SEARCHED = search.Criterion(1, 0, 2.0, lowest=1e6)
#: The share of a run without a core from which its losses are others', and how little of it may be
#: left to conclude from.
_STARVED, _LEAST_AWAKE = 0.05, 0.1
_ABOVE = 1.2  # How much above the rate that is lost at it is looked at.
#: How long the socket gets to fill before that, and how long strace looks.
_FILL_S, _TRACED_S = 0.3, 1.0
_PATIENCE_S = 20.0  # until a sender has ended, beside the time that it should take
_END_S = 1.0  # until a receiver has ended that has heard of the end


def watch(
    argv: Sequence[str],
    spot: InLab,
    seconds: float,
    say: Callable[[str], None],
    *,
    trace: bool = True,
) -> Seen | str:
    """Look at a receiver, or say in a line that it has lost nothing."""
    with Program(argv, spot) as program:
        say(f"Watching {program.name}: which rate it takes")
        found = _search(program)
    if found.lossy is None:
        return (
            f"{program.name} lost nothing of {found.held / 1e6:.3g} MB/s in packets of"
            f" {_packet_bytes(spot.lab)} bytes, the most that was sent to it"
        )
    rate = _ABOVE * min(found.lossy.rate, _ABOVE * found.taken)
    traced = None
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, "strace")
        under = instruments.strace(str(written), (), None) if trace else None
        if under is not None:
            say(f"Watching {program.name}: its calls")
            # Where strace may not trace, that is among what is not known.
            with (
                contextlib.suppress(click.ClickException, OSError),
                Program(argv, spot, under) as program,
            ):
                traced = _traced(program, rate, written)
    say(f"Watching {program.name}: what its threads do")
    with Program(argv, spot) as program:
        return _watched(program, rate, seconds, found, traced)


# ---- Sending to it ----


def _packet_bytes(lab: Lab) -> int:
    return min(_PACKET, lab.mtu - IP_UDP_HEADERS)


def _counted(lab: Lab) -> tuple[Counters, Counters, Any]:
    return lab.counters(), lab.receiver.counters(), lab.receiver.arrivals()


class _NotSentError(click.ClickException):
    """The sender has failed, as when the receiver has closed its socket."""


@contextlib.contextmanager
def _sending(
    program: Program, rate: float, seconds: float, merges: bool | None
) -> Iterator[list[Fates]]:
    """Send to it at a rate, during a block and to the end; then its packets' fates are known."""
    lab, found = program.lab, list[Fates]()
    case = Case("ours", "c", "blast", _HEAP, _packet_bytes(lab))
    argv = blast(case, max(2, round(rate * seconds / _HEAP)), "--describe", rate=rate)
    before = _counted(lab)
    with Running(lab.popen, "blast", [*argv, lab.address, str(lab.port)]) as running:
        yield found
        done = running.wait(seconds + _PATIENCE_S)
    found.append(_fates(before, _counted(lab), done, merges))


def _fates(before: Any, after: Any, done: Done, merges: bool | None) -> Fates:
    report = Report.parse(done.output) if done.status == 0 else None
    if report is None:
        raise _NotSentError(f"it could not be sent to: {done.complaint}")
    device, far, arrived = (now - then for now, then in zip(after, before, strict=True))
    sent_s = max(int(done.said.get("sending_ns", report.elapsed_ns)), 1) / 1e9
    merged = report.packets / max(report.messages or report.packets, 1) if merges else 1.0
    return Fates(
        rate=report.spead_bytes / sent_s,
        packets=report.packets,
        device=device.tx_dropped + far.rx_dropped,
        arrived=arrived.packets,
        unclaimed=arrived.unclaimed,
        no_room=arrived.no_room,
        per_message=merged,
    )


# ---- Which rate it takes ----


@dataclasses.dataclass(frozen=True, slots=True)
class _Tried:
    asked: float  # bytes/s
    fates: Fates
    starved: float  # the share of its time in which its busiest thread had no core

    @property
    def is_lost(self) -> bool:
        """Whether something was lost by the receiver itself: not because others had the cores."""
        return self.fates.lost > 0 and self.starved < _STARVED


@dataclasses.dataclass(frozen=True, slots=True)
class _Found:
    held: float  # the highest rate at which nothing was lost, or 0
    lossy: Fates | None  # the run at the lowest rate at which something was lost
    taken: float  # what it takes of too much, in bytes/s, when it has a core


def _search(program: Program) -> _Found:
    """Look for the highest rate without a loss, around what it takes of far too much."""
    deadline = time.monotonic() + _SEARCH_S
    first = _try(program, search.START)
    taken = first.fates.rate * (1 - first.fates.share) / max(1 - first.starved, _LEAST_AWAKE)
    tried, runs = [first], list[Received]()
    start = max(taken, _SEARCHED.lowest) if first.fates.lost else search.START
    runs += [] if first.fates.lost else [_run_of(first, 0)]
    while (rate := search.next_rate(runs, start, _SEARCHED)) is not None:
        if time.monotonic() > deadline:
            break
        tried.append(_try(program, rate))
        runs.append(_run_of(tried[-1], len(runs)))
    held = max((one.fates.rate for one in tried if not one.fates.lost), default=0.0)
    lossy = [one for one in tried if one.is_lost] or [one for one in tried if one.fates.lost]
    lowest = min((one.fates for one in lossy), key=lambda fates: fates.rate, default=None)
    return _Found(held, lowest, max(taken, held))


def _try(program: Program, rate: float) -> _Tried:
    """Send at a rate for a moment; again if it has just ended with the stream before."""
    try:
        return _tried(program, rate)
    except _NotSentError:
        program.end(_END_S)
        return _tried(program, rate)


def _tried(program: Program, rate: float) -> _Tried:
    pid = program.listening()
    pids = instruments.family(pid)
    merges = any(one.merges for one in sockets(pids, program.lab.port))
    begun, before = time.monotonic(), instruments.threads(pids)
    with _sending(program, rate, _RUN_S, merges) as sent:
        pass
    done = instruments.between(before, instruments.threads(instruments.family(pid)))
    took = time.monotonic() - begun
    starved = max(((one.cpu_s, one.runnable_s or 0.0) for one in done), default=(0.0, 0.0))[1]
    program.settle()
    return _Tried(rate, sent[0], min(1.0, starved / took))


def _run_of(tried: _Tried, number: int) -> Received:
    """Return a run as one of the search's samples."""
    case = Case("ours", "c", "blast", _HEAP, _PACKET)
    heaps = max(1, round(tried.fates.packets * _PACKET / _HEAP))
    measured = {
        "asked_bytes_per_s": tried.asked,
        "elapsed_ns": round(heaps * _HEAP / tried.fates.rate * 1e9),
        "received_heaps": heaps,
        "received_dropped": tried.fates.lost if tried.is_lost else 0,
        "run": number,
    }
    return Begun(Step(0, False, case)).received(heaps, 0, ("", ""), None, measured)


# ---- Its calls ----


def _traced(program: Program, rate: float, written: Path) -> tuple[Calls, Pauses] | None:
    """Look at the calls of a receiver that strace runs; None where it reads nothing."""
    pid = program.listening()
    inodes = [one.inode for one in bound(pid, program.lab.port)]
    with _sending(program, rate, _TRACED_S, None):
        since, before = time.time(), instruments.threads(instruments.family(pid))
        time.sleep(_TRACED_S)
        pids = instruments.family(pid)
        until, done = time.time(), instruments.threads(pids)
    pooled = any(map(waits.is_pooled, pids))
    program.end()
    with written.open(encoding="utf-8", errors="replace") as lines:
        ended = calls.read(lines)
    reads = [one for one in calls.reads(ended, inodes) if since <= one.at <= until]
    names = waits.numbered({tid: one.name for tid, one in done.items()})
    found = calls.counted(ended, reads, names, pooled=pooled)
    readers = {int(one.who or 0) for one in reads}
    its = [one for one in instruments.between(before, done) if one.tid in (*readers, pid)]
    starved = sum(one.runnable_s or 0.0 for one in its)
    own = sum(one.user_s for one in its if one.tid in readers)
    return None if found is None else (found, pauses(ended, reads, starved, own))


# ---- What its threads do ----


def _watched(
    program: Program,
    rate: float,
    seconds: float,
    found: _Found,
    traced: tuple[Calls, Pauses] | None,
) -> Seen:
    lab, size = program.lab, _packet_bytes(program.lab)
    pid = program.listening()
    its = sockets(instruments.family(pid), lab.port)
    merges = any(one.merges for one in its)
    room = sum(one.buffer or 0 for one in its)
    if rate > found.taken:  # so that the buffer is full soon
        rate = max(rate, found.taken + room / 2 / _FILL_S)
    with _sending(program, rate, _FILL_S + seconds + _FILL_S, merges) as sent:
        time.sleep(_FILL_S)
        before = lab.receiver.arrivals()
        run = _followed(lab, pid, seconds)
        arrived = lab.receiver.arrivals() - before
    program.end(_END_S)
    fates = sent[0]
    packets = max(1, round(arrived.packets - arrived.no_room * fates.per_message))
    run = dataclasses.replace(run, messages=packets, payload_bytes=packets * size)
    looked_at, paused = traced or (None, None)
    return Seen(
        program=program.name,
        place=program.spot.text,
        mtu=lab.mtu,
        cores=len(os.sched_getaffinity(0)),
        run=run,
        packets=None,
        calls=looked_at,
        bare=None,
        unseen=() if traced else (UNSEEN["no-reads"],),
        account=account(run, looked_at, None, prices(), fates.per_message, receives=True),
        receiving=Receiving(
            fates=fates if fates.lost or found.lossy is None else found.lossy,
            packet_bytes=size,
            burst=max(1, _MESSAGE // size),
            held=found.held or None,
            sockets=its,
            pauses=paused,
            told=_told(program.output.lines()),
        ),
    )


def _followed(lab: Lab, pid: int, seconds: float) -> Run:
    """Follow its threads for some time; the packets of the run are those that were sent."""
    follower, looks, until = Follower(pid, seconds), list[Look](), time.monotonic() + seconds
    while not looks or looks[-1].at < until:
        queued = any(one.queued for one in bound(pid, lab.port))
        looks.append(follower.look(lab.counters(), queued=queued))
        time.sleep(LOOK_S)
    return run_of(looks, 0, len(looks), pooled=follower.pooled)


def _told(lines: Sequence[str]) -> dict[str, int]:
    """Return what a receiver of this package said last of its stream, as JSON."""
    for line in reversed(lines):
        said = Done("", 0, line, "").said
        if "socket_datagrams" in said:
            return {name: n for name, n in said.items() if isinstance(n, int)}
    return {}

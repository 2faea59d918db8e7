# SPDX-License-Identifier: BSD-3-Clause
"""The equation: seconds for a packet are what a bare loop needs, and the rest, by kind. No I/O."""

import dataclasses
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from spead_tutorial.tools.why.facts import Call, Seen, Thread, Waited, Watched
from spead_tutorial.tools.why.stacks import (
    CALLS,
    IDLE,
    INPUT,
    KINDS,
    LOCK,
    LOOP,
    OTHER,
    OWN,
    READS,
    SENDS,
    WAITS,
    Sampled,
    Told,
)

NO_CORE, SLEEPS, SPINS, STARTS = "no-core", "sleeps", "spins", "starts"
#: Share of the busiest sender's from which a thread counts as one that sends, and of the looks from
#: which it counts as lasting.
_SENDS, _LASTS = 0.05, 0.5
#: A loop around the clock reads it for this part of the time of its own code, and does little else.
_SPINS, _ALL = 0.1, 0.8
#: Of what the loop needs, the part that is enough to know it from looks.
_MOSTLY = 0.5
#: What new pages are for, and the kinds of code that touches them.
_FAULT, _TOUCH = Told("fresh-memory", "page faults"), (OWN, "copies")
#: Calls that start programs and threads, and how many there are for a packet where that goes on.
_STARTERS, _OFTEN, _YIELD = ("clone", "clone3", "fork", "vfork"), 0.01, "sched_yield"
#: Languages whose memory is a collector's.
_MANAGED = ("Java", "JavaScript", "Go")
#: Waits that end when another thread, or another process, has done something.
_SHARED = (LOCK, INPUT, LOOP, STARTS, READS)


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """Some of the time of a packet, and what it was for."""

    kind: str  # of `stacks.KINDS`
    what: str  # the call, function, line or thread that it was in; may be empty
    seconds: float


def merged(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return parts that take time, those that are equal but for that as one, largest first."""
    found: dict[tuple[str, str], float] = defaultdict(float)
    for part in parts:
        found[part.kind, part.what] += part.seconds
    made = [Part(*key, seconds) for key, seconds in found.items() if seconds > 0]
    return tuple(sorted(made, key=lambda part: -part.seconds))


@dataclasses.dataclass(frozen=True, slots=True)
class Account:
    """Where the time of a packet goes: in seconds of each thread that sends, summed."""

    packet_s: float  # with what waited for a core
    loop_s: float  # what a bare loop needs of that; 0 where none was run
    parts: tuple[Part, ...]  # all but that: together, they are `packet_s`
    samples: int  # looks that the parts rest on

    def of(self, kind: str) -> float:
        return sum(part.seconds for part in self.parts if part.kind == kind)

    @property
    def busy_s(self) -> float:
        """What a packet takes where it is there, and others leave the cores alone."""
        return self.packet_s - self.of(NO_CORE) - self.of(IDLE)

    @property
    def kinds(self) -> dict[str, float]:
        """Seconds of each kind, in the order of the bar."""
        return {kind: took for kind in KINDS if (took := self.of(kind)) > 0}

    def where(self, kind: str, most: int = 3) -> list[str]:
        """Name the calls, functions, lines or threads of most of a kind."""
        return [part.what for part in self.parts if part.kind == kind and part.what][:most]


def account(seen: Seen) -> Account | None:
    """Divide the time of a packet; None where no threads were seen."""
    if not seen.run.threads or seen.n_packets <= 0:
        return None
    teller = _Teller(seen)
    lines = teller.lines()
    spent = merged(part for line in lines for part in teller.spent(line))
    parts = [dataclasses.replace(part, seconds=part.seconds / seen.n_packets) for part in spent]
    if seen.language in _MANAGED:  # there it is taken for what the collector keeps
        parts = [
            dataclasses.replace(part, kind="garbage") if part.kind == _FAULT.kind else part
            for part in parts
        ]
    if seen.receiving is not None:  # some code stands for both
        parts = [
            dataclasses.replace(part, kind=READS) if part.kind == SENDS else part for part in parts
        ]
    packet_s = sum(part.seconds for part in parts)
    parts, loop_s = _without(parts, _loop_s(seen), READS if seen.receiving else SENDS)
    return Account(
        packet_s=packet_s,
        loop_s=loop_s,
        parts=merged(_spinning(parts)),
        samples=teller.samples(lines),
    )


def _loop_s(seen: Seen) -> float:
    """Return what a bare loop takes for a packet that sends as the sender does."""
    return next((statistics.median(one.packet_s) for one in seen.loops if not one.changed), 0.0)


def _without(parts: list[Part], loop_s: float, kind: str) -> tuple[list[Part], float]:
    """Take what the loop needs from calls that send; where few were seen, from what most were."""
    sent = sum(part.seconds for part in parts if part.kind == kind)
    if sent >= _MOSTLY * loop_s:
        loop_s = min(loop_s, sent)
    left, rest = loop_s, list[Part]()
    for part in sorted(parts, key=lambda part: (part.kind != kind, -part.seconds)):
        taken = min(left, part.seconds) if part.kind not in (NO_CORE, IDLE) else 0.0
        left -= taken
        rest.append(dataclasses.replace(part, seconds=part.seconds - taken))
    return rest, loop_s - left


def _spinning(parts: list[Part]) -> list[Part]:
    """Count the code around the clock as what reads it, where it does little else."""
    own = sum(part.seconds for part in parts if part.kind == OWN)
    read = sum(part.seconds for part in parts if part.kind == SPINS)
    rest = sum(part.seconds for part in parts if part.kind not in (NO_CORE, IDLE))
    if not read or read < _SPINS * own or read + own < _ALL * rest:
        return parts
    return [dataclasses.replace(part, kind=SPINS) if part.kind == OWN else part for part in parts]


class _Teller:
    """Tells what threads spent their time on."""

    def __init__(self, seen: Seen) -> None:
        self._seen, self._run = seen, seen.run
        self._sampled = seen.sampled or {}
        self._watched = {one.thread.tid: one for one in seen.run.threads}
        self._callers = seen.calls.callers if seen.calls else ()
        self._sees_kernel = any(
            one.call for its in self._sampled.values() if not its.waits for one, _ in its.told
        )
        least = _LASTS * seen.run.looks
        self._lasting = {one.thread.tid for one in seen.run.threads if one.looks >= least}
        self._pids = {self._watched[tid].thread.pid for tid in self._lasting}
        started = sum(call.count for one in self._callers for call in one.calls
                      if call.name in _STARTERS)  # fmt: skip
        messages = seen.calls.messages if seen.calls else 1
        self._starts = started >= _OFTEN * messages  # programs or threads, again and again
        self._loop_s = _loop_s(seen) * seen.per_message
        self._whole, self._main = False, READS if seen.receiving else SENDS

    # ---- Which threads send ----

    def lines(self) -> list[Watched]:
        """Return the threads that send; all as one where these come and go."""
        sent = self._sent()
        lasting = sum(n for tid, n in sent.items() if tid in self._lasting)
        is_brief = bool(sent) and lasting < _LASTS * sum(sent.values())
        if self._run.whole is not None and (self._seen.pooled or is_brief):
            self._whole = True
            return [self._run.whole]
        most = max(sent.values(), default=0.0)
        chosen = [self._watched[tid] for tid, n in sent.items()
                  if tid in self._watched and n >= _SENDS * most]  # fmt: skip
        return chosen or [max(self._run.threads, key=lambda one: one.thread.cpu_s)]

    def _sent(self) -> dict[int, float]:
        """Return how much each thread sends, in some unit."""
        by_calls = {one.tid: float(one.messages) for one in self._callers if one.messages}
        if by_calls.keys() & self._watched.keys():
            return by_calls
        found = {
            tid: float(sum(n for one, n in its.told if one.kind == self._main))
            for tid, its in self._sampled.items()
        }
        found = {tid: n for tid, n in found.items() if n}
        if found or not by_calls:
            return found
        names = Counter({one.name: one.messages for one in self._callers})
        return {
            tid: float(names[one.thread.name])
            for tid, one in self._watched.items() if names[one.thread.name]
        }  # fmt: skip

    def samples(self, lines: list[Watched]) -> int:
        seen = sum(self._its(line).total for line in lines)
        return max(1, seen + sum(one.seen for line in lines for one in line.waits))

    # ---- What a thread does ----

    def spent(self, line: Watched) -> Iterator[Part]:
        """Divide the time of a thread."""
        thread, whole = line.thread, self._run.seconds
        if not self._whole and line.looks and self._run.looks:
            whole *= min(1.0, line.looks / self._run.looks)
        waited = sum(one.seen for one in line.waits)
        late = max(0.0, thread.runnable_s)
        on_s = thread.cpu_s
        if self._whole:  # several may run at once, and count once
            awake = whole * (1 - waited / line.looks) if line.looks else whole
            late = max(0.0, awake - on_s)
            on_s = awake - late
        scale = min(1.0, whole / (on_s + late)) if on_s + late else 1.0
        on_s, late = on_s * scale, late * scale
        starved = late * self._run.crowded if waited else late
        yields = self._yields(thread)
        yield Part(LOCK if yields else NO_CORE, yields, starved)
        asleep = max(0.0, whole - on_s - starved)
        its = self._its(line)
        if its.waits and not self._whole:
            told = [(one, n / its.total) for one, n in its.told]
            awake = self._faults(thread) * on_s / (on_s + asleep) if on_s else 0.0
            yield from self._spied(line, self._faulting(told, awake), on_s, asleep)
            return
        for one, share in self._running(thread, its):
            yield Part(one.kind, one.what, on_s * share)
        for wait in line.waits:
            seconds = asleep * wait.seen / waited
            yield from self._waited(line, self._told(its, wait), seconds)
        if not waited:  # it never gave its core up: others took it
            yield Part(NO_CORE, "", asleep)

    def _yields(self, thread: Thread) -> str:
        """Return the call by which a thread gives its core away for packets, if it does."""
        sent = sum(one.messages for one in self._callers)
        given = sum(call.count for call in self._calls(thread) if call.name == _YIELD)
        is_often = not self._whole and given > _LASTS * sent > 0
        return _YIELD if is_often else ""

    def _its(self, line: Watched) -> Sampled:
        """Return the samples of a thread, or of all."""
        if not self._whole:
            return self._sampled.get(line.thread.tid, Sampled(line.thread.name))
        found: Counter[Told] = Counter()
        for its in self._sampled.values():
            is_brief = its.pid not in (0, *self._pids)
            for one, n in its.told:
                if its.waits and one.call in WAITS:
                    continue
                if is_brief and one.kind != self._main:
                    one = dataclasses.replace(one, kind=STARTS)
                found[one] += n
        return Sampled("", 0, tuple(found.items()))

    def _running(self, thread: Thread, its: Sampled) -> list[tuple[Told, float]]:
        """Return what a thread does while it has a core, in shares of that time."""
        told = [(one, n) for one, n in its.told if not (its.waits and one.call in WAITS)]
        total = sum(n for _, n in told)
        if total and self._sees_kernel and not its.waits:
            return [(one, n / total) for one, n in told]
        faults = self._faults(thread)
        if total and its.waits:
            return self._faulting([(one, n / total) for one, n in told], faults)
        kernel = thread.system_s / thread.cpu_s if thread.cpu_s else 0.0
        own = [(one, (1 - kernel) * n / total) for one, n in told] or [(Told(OWN, ""), 1 - kernel)]
        own.append((_FAULT, min(faults, kernel)))
        return own + self._kernel(thread, its, max(0.0, kernel - faults))

    def _kernel(self, thread: Thread, its: Sampled, share: float) -> list[tuple[Told, float]]:
        """Divide a share that the kernel has: what calls took beyond the loop's, and waiting ones.

        What a call takes that waits is not seen: it is what all others leave.
        """
        messages = sum(one.messages for one in self._callers) or 1
        packets_s = thread.cpu_s / self._seen.n_packets * self._seen.per_message
        left, made = share, list[tuple[Told, float]]()

        def take(call: Call, seconds: float) -> None:
            nonlocal left
            taken = min(left, seconds / packets_s if packets_s else 0.0)
            kind = CALLS.get(call.name, OTHER)
            within = its.within(call.name)
            if call.sends:
                kind = self._main
            elif within is not None and within.kind != OWN:
                kind = within.kind
            made.append((Told(kind, call.name, call.name), taken))
            left -= taken

        calls = self._calls(thread)
        for call in calls:
            took = call.seconds / messages
            take(call, min(took, self._loop_s) if call.sends and self._loop_s else took)
        waits = [call for call in calls if not call.seconds] or [
            call for call in calls if call.sends
        ]
        count, rest = sum(call.count for call in waits), left
        for call in waits:
            take(call, rest * packets_s * call.count / count)
        return [*made, (Told(OTHER, "in the kernel"), left)]

    def _faults(self, thread: Thread) -> float:
        """Return the share of a thread's CPU time in which it gets new pages."""
        faults_s = min(thread.faults * self._seen.fault_s, thread.system_s)
        return faults_s / thread.cpu_s if thread.cpu_s else 0.0

    def _faulting(self, told: list[tuple[Told, float]], faults: float) -> list[tuple[Told, float]]:
        """Take page faults from code that touches memory: its stacks do not show the kernel's."""
        touches = sum(share for one, share in told if one.kind in _TOUCH and not one.call)
        left = 1 - faults / touches if touches > faults else 0.0
        made = [
            (one, share * left if one.kind in _TOUCH and not one.call else share)
            for one, share in told
        ]
        return [*made, (_FAULT, touches * (1 - left))]

    def _calls(self, thread: Thread) -> list[Call]:
        same = [one for one in self._callers if one.tid == thread.tid]
        same = same or [one for one in self._callers if one.name == thread.name]
        if self._whole:
            same = list(self._callers)
        return [call for one in same for call in one.calls]

    # ---- What it waits for ----

    def _spied(
        self, line: Watched, told: list[tuple[Told, float]], on_s: float, asleep: float
    ) -> Iterator[Part]:
        """Divide time by samples that are also of waits: with a core is what is left of that."""
        waits = [one.call in WAITS and one.kind != SENDS for one, _ in told]
        waited = sum(share for (_, share), is_wait in zip(told, waits, strict=True) if is_wait)
        awake = on_s / (on_s + asleep) if on_s else 0.0
        running = min(1.0, max(0.0, awake - (1 - waited)) / waited) if waited else 0.0
        for (one, share), is_wait in zip(told, waits, strict=True):
            seconds = (on_s + asleep) * share
            yield Part(one.kind, one.what, seconds * (running if is_wait else 1.0))
            if is_wait and self._main == READS and one.kind in (READS, LOOP):
                one = Told(IDLE, "", one.call)
            if is_wait:
                yield from self._waited(line, one, seconds * (1 - running))

    def _told(self, its: Sampled, wait: Waited) -> Told:
        """Say what a wait is for, by the stacks that were seen in the same call."""
        kind = WAITS.get(wait.call, OTHER)
        if kind == IDLE or (kind in (READS, LOOP) and self._main == READS and not wait.timed):
            return Told(IDLE, "", wait.call)  # something has just come
        within = its.within(wait.call)
        if within is None or (kind == SLEEPS):
            return Told(kind, wait.call, wait.call)
        return dataclasses.replace(within, kind=kind if within.kind == OWN else within.kind)

    def _waited(self, line: Watched, one: Told, seconds: float) -> Iterator[Part]:
        """Divide a wait by what ends it: a time, or what another thread does."""
        if one.call in ("sendto", "sendmsg", "sendmmsg"):
            one = dataclasses.replace(one, kind="waits-for-room")
        slept = 0.0 if one.is_lock or one.kind == SLEEPS else self._timed_out(line.thread, one)
        same = [wait for wait in line.waits if WAITS.get(wait.call) == WAITS.get(one.call)]
        looks = sum(wait.seen for wait in same) or 1
        running, asleep = Counter[int](), Counter[int]()
        for wait in same:
            running.update(wait.running)
            asleep.update(wait.asleep)
        share = min(1.0, max(running.values(), default=0) / looks)
        if one.kind == LOCK and not one.is_lock:
            # Who waits for a lock may wake up now and then. A reader gets its packets from a socket
            # and not from threads, so that a wait in which one of them runs is no hand-over either.
            holder, held = self._holder(line, same, looks)
            held *= 1.0 if self._main == READS else slept
            yield Part(LOCK, holder, seconds * held)
            seconds *= 1 - held
            slept = max(0.0, slept - held)
        yield Part(SLEEPS, one.what, seconds * slept)
        seconds *= 1 - slept
        if one.kind not in _SHARED or one.is_lock or self._whole:
            is_for_started = (
                self._starts and one.kind in (LOCK, INPUT) and (self._whole or not one.is_lock)
            )
            yield Part(STARTS if is_for_started else one.kind, one.what, seconds)
            return
        ran = sum(running.values()) or 1
        for tid, n in running.items():
            yield from self._done_by(tid, one, seconds * share * n / ran)
        seconds *= 1 - share
        idle = self._sleeper(line.thread, asleep)
        if idle is not None and one.kind in (LOCK, INPUT, LOOP):
            part = min(1.0, asleep[idle] / looks)
            yield Part(SLEEPS, f"in {self._watched[idle].thread.name}", seconds * part)
            seconds *= 1 - part
        is_for_started = self._starts and one.kind in (LOCK, INPUT)
        yield Part(STARTS if is_for_started else one.kind, one.what, seconds)

    def _holder(self, line: Watched, same: Sequence[Waited], looks: int) -> tuple[str, float]:
        """Return who runs while a thread waits and not otherwise, and in which part of waits."""
        found, without = ("", 0.0), max(1, line.looks - looks)
        for tid, one in self._watched.items():
            within = sum(wait.running.get(tid, 0) for wait in same)
            others = (wait.running.get(tid, 0) for wait in line.waits if wait not in same)
            share = within / looks - (line.beside.get(tid, 0) + sum(others)) / without
            if share > found[1]:
                found = one.thread.name, share
        return found

    def _timed_out(self, thread: Thread, one: Told) -> float:
        """Return which part of waits in a call a time has ended."""
        same = [call for call in self._calls(thread) if call.name == one.call and not call.sends]
        return max((call.timed_out for call in same), default=0.0)

    def _done_by(self, tid: int, one: Told, seconds: float) -> Iterator[Part]:
        """Divide a wait by what the thread does that runs meanwhile; it may have no core."""
        if tid not in self._watched:
            yield Part(one.kind, one.what, seconds)
            return
        other = self._watched[tid].thread
        late = max(0.0, other.runnable_s)
        has_core = other.cpu_s / (other.cpu_s + late) if other.cpu_s + late else 1.0
        if self._starts and other.pid not in self._pids:  # a program that ends at once
            yield Part(STARTS, other.name, seconds)
            return
        yield Part(NO_CORE, "", seconds * (1 - has_core) * self._run.crowded)
        yield Part(one.kind, one.what, seconds * (1 - has_core) * (1 - self._run.crowded))
        for does, share in self._running(other, self._sampled.get(tid, Sampled(other.name))):
            kind = LOCK if does.kind == self._main else does.kind
            yield Part(kind, does.what, seconds * has_core * share)

    def _sleeper(self, thread: Thread, asleep: Mapping[int, int]) -> int | None:
        """Return the thread that sleeps and then wakes this one: as often as this one waits."""
        for tid, _ in sorted(asleep.items(), key=lambda item: -item[1]):
            other = self._watched.get(tid)
            if other is not None and 2 * other.thread.voluntary >= thread.voluntary:
                sleeps = [one for one in other.waits if WAITS.get(one.call) == SLEEPS]
                if sum(one.seen for one in sleeps) * 2 > sum(one.seen for one in other.waits):
                    return tid
        return None

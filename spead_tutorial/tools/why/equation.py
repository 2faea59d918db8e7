# SPDX-License-Identifier: BSD-3-Clause
"""The equation: seconds for a packet are what a bare loop needs, and the rest, by kind. No I/O."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from spead_tutorial.tools.why import stacks
from spead_tutorial.tools.why.facts import Call, Seen, Thread, Waited, Watched
from spead_tutorial.tools.why.stacks import KINDS, LOCK, OWN, SENDS, Sampled, Told

NO_CORE, SLEEPS, STARTS = "no-core", "sleeps", "starts"
#: Share of the busiest sender's from which a thread counts as one that sends, and of the looks from
#: which it counts as lasting.
_SENDS, _LASTS = 0.05, 0.5
#: A loop around the clock reads it for this part of the time of its own code, and does little else.
_SPINS, _ALL = 0.1, 0.8
#: After how long the kernel sees whether a thread is in it, at the most.
_TICK_S = 0.01
#: Of what the loop needs, the part that is enough to know it from looks.
_MOSTLY = 0.5
#: What new pages are for, where they are touched by code that is for nothing else.
_FAULT = Told("fresh-memory", "page faults")
#: Calls that start programs and threads, and how many there are for a packet where that goes on.
_STARTERS, _OFTEN = ("clone", "clone3", "fork", "vfork"), 0.01
#: Languages in which one thread runs at a time, and the others wait for that.
_ONE_LOCK = ("Python", "Ruby")
#: One in which threads stand in for each other.
_POOLED = "Go"
#: Languages whose memory is a collector's.
_MANAGED = ("Java", "JavaScript", "Go")
#: Waits that end when another thread, or another process, has done something.
_SHARED = (LOCK, stacks.INPUT, stacks.LOOP, STARTS, stacks.READS)


class Part(msgspec.Struct, frozen=True):
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


class Account(msgspec.Struct, frozen=True):
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
        return self.packet_s - self.of(NO_CORE) - self.of(stacks.IDLE)

    @property
    def kinds(self) -> dict[str, float]:
        """Seconds of each kind, in the order of the bar."""
        return {kind: took for kind in KINDS if (took := self.of(kind)) > 0}

    def where(self, kind: str, most: int = 3) -> list[str]:
        """Name the calls, functions, lines or threads of most of a kind."""
        return [part.what for part in self.parts if part.kind == kind and part.what][:most]


def account(seen: Seen) -> Account:
    teller = _Teller(seen)
    renamed = {_FAULT.kind: "garbage"} if seen.language in _MANAGED else {}
    if seen.receiving is not None:
        renamed[SENDS] = stacks.READS  # some code stands for both
    spent = merged(
        Part(renamed.get(one.kind, one.kind), one.what, one.seconds / seen.n_packets)
        for line in teller.lines
        for one in teller.spent(line)
    )
    parts, loop_s = _without(spent, teller.loop_s, teller.main)
    return Account(
        packet_s=sum(part.seconds for part in spent),
        loop_s=loop_s,
        parts=merged(_spinning(parts)),
        samples=teller.samples(),
    )


def _without(parts: Sequence[Part], loop_s: float, kind: str) -> tuple[list[Part], float]:
    """Take what the loop needs from calls that send; where few were seen, from what most were."""
    sent = sum(part.seconds for part in parts if part.kind == kind)
    if sent >= _MOSTLY * loop_s:
        loop_s = min(loop_s, sent)
    left, rest = loop_s, list[Part]()
    for part in sorted(parts, key=lambda part: (part.kind != kind, -part.seconds)):
        taken = min(left, part.seconds) if part.kind not in (NO_CORE, stacks.IDLE) else 0.0
        left -= taken
        rest.append(replace(part, seconds=part.seconds - taken))
    return rest, loop_s - left


def _spinning(parts: list[Part]) -> list[Part]:
    own = sum(part.seconds for part in parts if part.kind == OWN)
    read = sum(part.seconds for part in parts if part.kind == stacks.SPINS)
    rest = sum(part.seconds for part in parts if part.kind not in (NO_CORE, stacks.IDLE))
    if not read or read < _SPINS * own or read + own < _ALL * rest:
        return parts
    return [replace(part, kind=stacks.SPINS) if part.kind == OWN else part for part in parts]


def _joined(sampled: Iterable[Sampled]) -> Sampled:
    every = list(sampled)
    sees = min((its.sees for its in every), key=len, default="")
    return Sampled("", 0, tuple(one for its in every for one in its.told), sees)


class _Teller:
    def __init__(self, seen: Seen) -> None:
        self._seen, self._run = seen, seen.run
        self._sampled = dict(seen.sampled or {})
        self._called = seen.calls.all if seen.calls else ()
        self._wakes = seen.calls.wakes if seen.calls else {}
        self._sent = sum(one.messages for one in self._called)
        self._watched = {one.thread.tid: one for one in seen.run.threads}
        least = _LASTS * seen.run.looks
        lasting = [tid for tid, one in self._watched.items() if one.looks >= least]
        self._pids = {self._watched[tid].thread.pid for tid in lasting}
        started = sum(one.count for one in self._called if one.name in _STARTERS)
        self._starts = started > _OFTEN * self._sent  # programs or threads, again and again
        loop = seen.loop()
        self.loop_s = loop.median_s if loop else 0.0  # what it takes to send as the sender does
        self.main = stacks.READS if seen.receiving else SENDS
        self.lines = self._lines(lasting)

    # ---- Which threads send ----

    def _lines(self, lasting: Sequence[int]) -> list[Watched]:
        """Return the threads that send; all as one where these come and go."""
        sent = Counter[int]()  # in some unit
        for call in self._called:
            sent[call.tid] += call.messages
        if not +sent or not (+sent).keys() & self._watched.keys():
            sent = Counter({tid: its.of(self.main) for tid, its in self._sampled.items()})
        is_brief = sum(sent[tid] for tid in lasting) < _LASTS * sent.total()
        if self._run.whole is not None and (self._seen.language == _POOLED or is_brief):
            return [self._as_one(self._run.whole)]
        least = _SENDS * max(sent.values(), default=0)
        chosen = [one for tid, one in self._watched.items() if sent[tid] > least]
        return chosen or [max(self._run.threads, key=lambda one: one.thread.cpu_s)]

    def _as_one(self, whole: Watched) -> Watched:
        """Take all threads as one, which runs while any does; programs that end were started."""
        its, pids = whole.thread, (0, *self._pids)

        def started(sampled: Sampled) -> Sampled:
            told = [
                (one if one.kind == self.main else replace(one, kind=STARTS), n)
                for one, n in sampled.told
            ]
            return sampled if sampled.pid in pids else replace(sampled, told=tuple(told))

        self._sampled = {its.tid: _joined(map(started, self._sampled.values()))}
        self._called = tuple(replace(one, tid=its.tid) for one in self._called)
        self._watched = {}
        slept = sum(one.seen for one in whole.waits) / (whole.looks or 1)
        awake_s = self._run.seconds * (1 - slept)
        fits = min(1.0, awake_s / (its.cpu_s or 1.0))  # several may run at once, and count once
        its = replace(
            its, user_s=its.user_s * fits, system_s=its.system_s * fits,
            faults=round(its.faults * fits), runnable_s=max(0.0, awake_s - its.cpu_s),
        )  # fmt: skip
        return replace(whole, thread=its)

    def samples(self) -> int:
        seen = sum(self._its(line.thread).total for line in self.lines)
        return max(1, seen + sum(one.seen for line in self.lines for one in line.waits))

    # ---- What a thread does ----

    def spent(self, line: Watched) -> Iterator[Part]:
        thread, whole = line.thread, self._run.seconds
        if line.looks and self._run.looks:
            whole *= min(1.0, line.looks / self._run.looks)
        scale = min(1.0, whole / (thread.cpu_s + thread.runnable_s or 1.0))
        on_s, late = thread.cpu_s * scale, thread.runnable_s * scale
        waited = sum(one.seen for one in line.waits)
        # What never gave its core up had it taken by others.
        starved = late * self._run.crowded if waited else whole - on_s
        yield Part(NO_CORE, "", starved)
        for one, share in self._running(thread):
            yield Part(one.kind, one.what, on_s * share)
        for wait in line.waits:
            yield from self._waited(thread, wait, (whole - on_s - starved) * wait.seen / waited)

    def _its(self, thread: Thread) -> Sampled:
        """Return the samples of a thread: in another run it has another number."""
        if thread.tid in self._sampled:
            return self._sampled[thread.tid]
        return _joined(its for its in self._sampled.values() if its.name == thread.name)

    def _calls(self, thread: Thread) -> list[Call]:
        same = [one for one in self._called if one.tid == thread.tid]
        return same or [one for one in self._called if one.thread == thread.name]

    def _running(self, thread: Thread) -> list[tuple[Told, float]]:
        """Return what a thread does while it has a core, in shares of that time."""
        its, cpu_s = self._its(thread), thread.cpu_s or 1.0
        told = [(one, n / its.total) for one, n in its.told]
        if told and its.sees == "all":
            return told
        kernel = thread.system_s / cpu_s
        faults = min(thread.faults * self._seen.fault_s / cpu_s, kernel)
        if told and its.sees:
            # Who is stopped to be looked at is seen in calls too often: as it leaves the kernel.
            seen = sum(share for one, share in told if one.is_in_kernel)
            error = 2 * math.sqrt(kernel * (1 - kernel) * _TICK_S / cpu_s)
            fits = min(1.0, (kernel + error) / seen) if 0 < seen < 1 else 1.0
            grows = (1 - seen * fits) / (1 - seen) if seen < 1 else 1.0
            told = [(one, share * (fits if one.is_in_kernel else grows)) for one, share in told]
            # Page faults are in code that touches memory.
            touches = sum(share for one, share in told if one.kind == OWN)
            faults = min(faults, touches)
            left = 1 - faults / (touches or 1.0)
            told = [(one, share * left if one.kind == OWN else share) for one, share in told]
            return [*told, (_FAULT, faults)]
        told = [(one, share * (1 - kernel)) for one, share in told or [(Told(OWN, ""), 1.0)]]
        return [*told, (_FAULT, faults), *self._kernel(thread, kernel - faults)]

    def _kernel(self, thread: Thread, share: float) -> Iterator[tuple[Told, float]]:
        """Divide a share that the kernel has among calls: what they leave is of those that send.

        Of calls that wait the time is not seen: where there are some, they have that.
        """
        packet_s = thread.cpu_s / self._seen.n_packets * self._seen.per_message
        calls, left = self._calls(thread), share

        def told(call: Call) -> Told:
            kind = self.main if call.sends else stacks.CALLS.get(call.name, stacks.OTHER)
            return Told(kind, call.name, call.name)

        for call in calls:
            took = call.seconds / (self._sent or 1)
            took = min(took, self.loop_s or took) if call.sends else took
            taken = min(left, took / packet_s if packet_s else 0.0)
            left -= taken
            yield told(call), taken
        rest = [call for call in calls if not call.seconds] or [one for one in calls if one.sends]
        for call in rest:
            yield told(call), left * call.count / sum(one.count for one in rest)
        if not rest:
            yield Told(stacks.OTHER, "in the kernel"), left

    # ---- What it waits for ----

    def _waited(self, thread: Thread, wait: Waited, seconds: float) -> Iterator[Part]:
        """Divide a wait by what ends it: a time, or what another thread does."""
        kind, receives = stacks.WAITS.get(wait.call, stacks.OTHER), self.main == stacks.READS
        for_packets = receives and kind in (stacks.READS, stacks.LOOP) and not wait.timed
        if wait.call == stacks.MUTEX or kind == stacks.IDLE or for_packets:
            yield Part(LOCK if kind == LOCK else stacks.IDLE, wait.call * (kind == LOCK), seconds)
            return
        if thread.tracer and kind == stacks.ROOM:  # who traces it has stopped it there
            kind = stacks.TRACED
        elif kind not in (SLEEPS, stacks.INPUT):  # stacks say more of some calls than names do
            within = self._its(thread).within(wait.call)
            kind = within if within not in ("", OWN, stacks.OTHER, SENDS, stacks.READS) else kind
        # Who never ends its waits is not waited for, where it is known who does.
        wakers = [tid for tid, woken in self._wakes.items() if thread.tid in woken]
        is_any = wait.call != stacks.FUTEX or not wakers
        running, asleep = (
            {tid: n for tid, n in its.items() if is_any or tid in wakers}
            for its in (wait.running, wait.asleep)
        )
        same = [one for one in self._calls(thread) if one.name == wait.call and not one.sends]
        slept = max((one.timed_out for one in same), default=0.0)
        holder, n = max(running.items(), key=lambda one: one[1], default=(0, 0))
        if kind == LOCK and holder in self._watched:
            # Who waits for a lock may wake up now and then; the one lock of a language is all that
            # a reader waits for in another thread, as it gets its packets from a socket.
            is_one = receives and self._seen.language in _ONE_LOCK
            held = n / wait.seen * (1.0 if is_one else slept)
            yield Part(LOCK, self._watched[holder].thread.name, seconds * held)
            seconds, slept = seconds * (1 - held), max(0.0, slept - held)
        yield Part(SLEEPS, wait.call, seconds * slept)
        seconds *= 1 - slept
        if kind in _SHARED and running:
            ran_s = seconds * min(1.0, n / wait.seen)
            for tid, its in running.items():
                shared = Part(kind, wait.call, ran_s * its / sum(running.values()))
                yield from self._done_by(tid, shared, thread)
            seconds -= ran_s
        if kind in (LOCK, stacks.INPUT, stacks.LOOP):
            # One that sleeps and then wakes this one does so as often as this one waits.
            for tid in sorted(asleep, key=lambda tid: -asleep[tid]):
                other = self._watched[tid].thread if tid in self._watched else None
                if other and 2 * other.voluntary >= thread.voluntary:
                    slept_s = seconds * min(1.0, asleep[tid] / wait.seen)
                    is_input = other.pid != thread.pid and kind != LOCK
                    yield Part(stacks.INPUT if is_input else SLEEPS, f"in {other.name}", slept_s)
                    seconds -= slept_s
                    break
        is_for_started = self._starts and kind in (LOCK, stacks.INPUT)
        yield Part(STARTS if is_for_started else kind, wait.call, seconds)

    def _done_by(self, tid: int, wait: Part, thread: Thread) -> Iterator[Part]:
        """Divide a wait by what the thread does that runs meanwhile; it may have no core."""
        if tid not in self._watched:
            yield wait
            return
        other = self._watched[tid].thread
        if self._starts and other.pid not in self._pids:  # a program that ends at once
            yield Part(STARTS, other.name, wait.seconds)
        elif wait.kind in (stacks.INPUT, stacks.LOOP) and other.pid != thread.pid:
            yield Part(stacks.INPUT, other.name, wait.seconds)
        else:
            for does, share in self._running(other):
                kind = LOCK if does.kind == self.main else does.kind
                yield Part(kind, does.what, wait.seconds * share)

# SPDX-License-Identifier: BSD-3-Clause
"""Making the account of time from what was seen. No I/O, no clock."""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeVar

from spead_tutorial.tools.why.account import RUNNING, Account, Part, ThreadTime, merged
from spead_tutorial.tools.why.calls import EVENTS, FUTEX, POLLS, READS, TIMER, WAITS
from spead_tutorial.tools.why.facts import PAGE, Call, Caller, Calls, Run, Sampled, Thread, Wait

#: Share of the busiest sender's messages from which a thread counts as one that sends.
SENDS = 0.05
#: Samples of a thread's own code from which they are taken to tell what it does.
_ENOUGH = 8
#: A thread that waits for longer, on average, waits for work, and not for a lock.
_LOCK_S = 0.05
_MOST_THREADS = 1024
_MOST_LIBRARIES = 3
_SOCKET = ("sendto", "sendmsg", "sendmmsg", "io_uring_enter")
_INPUT = (*READS, *POLLS, "accept", "accept4", "pause", "rt_sigsuspend")
_PROCESS = ("wait4", "waitid")
#: Calls that read the clock where the kernel has no quicker way; and what asks for nothing, which
#: spins, and often before a wait.
_CLOCK = ("clock_gettime", "gettimeofday", "time")
_YIELD = "sched_yield"

_Named = TypeVar("_Named", Caller, Sampled)


@dataclasses.dataclass(frozen=True, slots=True)
class Prices:
    """What the kernel asks on this machine, in seconds of CPU time."""

    fault_s: float  # for the first touch of a page
    cleared_s: float  # for as much memory within a huge page


def account(
    run: Run,
    calls: Calls | None,
    sampled: Sequence[Sampled] | None,
    prices: Prices,
    per_message: float = 1.0,
    *,
    receives: bool = False,
) -> Account | None:
    """Return what every second of a run went into; None where no threads were seen."""
    if not run.threads:
        return None
    callers = _matched(run.threads, calls.callers if calls else (), run.pooled)
    samples = _matched(run.threads, sampled or (), run.pooled)
    most = max((caller.messages for caller in callers.values()), default=0)
    least = 1.0 if receives else max(1.0, SENDS * most)
    sends = {tid for tid, caller in callers.items() if caller.messages >= least}
    if receives and not sends:
        sends = {max(run.threads, key=lambda one: one.cpu_s).tid}
    made = [
        _Teller(run, thread, sends, calls, callers.get(thread.tid), samples.get(thread.tid), prices,
                per_message).told()
        for thread in run.threads
    ]  # fmt: skip
    made = [one for one in made if one.seconds > 0]
    slowed = None
    if calls is not None and calls.messages > 1 and run.messages and not receives:
        slowed = calls.seconds / calls.messages / (run.seconds / run.messages)
    ranked = sorted(made, key=lambda one: (not one.sends, -sum(map(one.of, RUNNING))))
    return Account(run.seconds, tuple(ranked[:_MOST_THREADS]), slowed, receives)


def _matched(
    threads: Sequence[Thread], others: Sequence[_Named], pooled: bool
) -> dict[int, _Named]:
    """Find each thread's part in another run: the one with its name, at its place among those."""
    if pooled:
        return {threads[0].tid: others[0]} if others else {}
    there = {(other.name, other.nth): other for other in others}
    return {
        thread.tid: there[thread.name, thread.nth]
        for thread in threads
        if (thread.name, thread.nth) in there
    }


def label(thread: Thread) -> str:
    return f"{thread.name} ({thread.tid})"


@dataclasses.dataclass(slots=True)
class _Teller:
    """Tells what one thread's time went into."""

    run: Run
    thread: Thread
    sending: set[int]
    calls: Calls | None
    caller: Caller | None
    sampled: Sampled | None
    prices: Prices
    per_message: float

    def told(self) -> ThreadTime:
        thread, run = self.thread, self.run
        seen = 1.0
        if run.looks and thread.looks:
            seen = min(1.0, thread.looks / run.looks)
        seconds = run.seconds * seen
        ready, asleep, scale = thread.runnable_s or 0.0, 0.0, 1.0
        if run.pooled:
            # Several may be ready at once, which is no time of their own: looks tell when none is.
            waited = sum(wait.seen for wait in thread.waits)
            asleep = seconds * waited / thread.looks if thread.looks else 0.0
            ready = max(0.0, seconds - asleep - thread.cpu_s)
            seconds = thread.cpu_s + ready + asleep
        elif thread.cpu_s + ready > seconds:  # counters and clock are not read at the same instant
            scale = seconds / (thread.cpu_s + ready)
        else:
            asleep = seconds - thread.cpu_s - ready
        parts = [*self._own(thread.user_s * scale), *self._kernel(thread.system_s * scale)]
        parts.append(Part("core", "", ready * scale))
        looks = sum(wait.seen for wait in thread.waits)
        if not looks:
            parts.append(Part("unexplained", "", asleep))
        for wait in thread.waits:
            parts += self._wait(wait, asleep * wait.seen / looks)
        sends = thread.tid in self.sending
        return ThreadTime(thread.tid, thread.name, sends, seconds, merged(parts))

    def _calls(self, name: str) -> list[Call]:
        return [call for call in self.caller.calls if call.name == name] if self.caller else []

    # ---- Running ----

    def _own(self, seconds: float) -> Iterator[Part]:
        found = self.sampled
        if found is None or found.samples < _ENOUGH:
            yield Part("own", "", seconds)
            return
        spins = seconds * found.clock / found.samples
        yield Part("spin", "", spins)
        libraries: Counter[str] = Counter()
        for _, library, count in found.places:
            libraries[library] += count
        common = libraries.most_common(_MOST_LIBRARIES)
        for library, count in common or [("", 1)]:
            share = count / (sum(one for _, one in common) or 1)
            yield Part("own", library, (seconds - spins) * share)

    def _kernel(self, seconds: float) -> Iterator[Part]:
        faults = min(self._faults_s(), seconds)
        if faults > 0:
            yield Part("faults", "", faults)
        calls = self.caller.calls if self.caller is not None else ()
        whole = sum(call.count * call.each_s for call in calls)
        if not whole or self.calls is None:
            yield Part("unexplained", "in the kernel", seconds - faults)
            return
        packets = (self.calls.messages or 1) * self.per_message
        for call in calls:
            took = (seconds - faults) * call.count * call.each_s / whole
            yield Part(self._kind(call), call.name, took, call.count / packets)

    def _faults_s(self) -> float:
        faults = self.thread.faults * self.prices.fault_s
        if self.caller is None or self.calls is None:
            return faults
        # Huge pages have few faults, and each of them clears as much memory as 512 others.
        mapped = self.caller.mapped_bytes * self.run.messages / self.calls.messages
        if self.thread.faults * PAGE * 2 > mapped:
            return faults
        return faults + mapped / PAGE * self.prices.cleared_s

    def _kind(self, call: Call) -> str:
        """Return what time of the processor in a call is for: what waiting takes is the wait's."""
        name = call.name
        if call.sends:
            return "sends"
        if name in _CLOCK:
            return "spin"
        if name == _YIELD:
            return self._yields()
        if name == TIMER or "nanosleep" in name:
            return "sleep"
        if name not in WAITS:
            return "thread" if call.on == EVENTS else "calls"
        return self._waited_for(name) or "calls"

    def _yields(self) -> str:
        """Return what a thread is for that lets others have its core, again and again."""
        found = self._waited_for(FUTEX)
        if found is not None:
            return found
        if len(self.run.threads) < 2 or (self.sampled is not None and self.sampled.clock):
            return "spin"
        is_one_of_many = self.thread.tid in self.sending and len(self.sending) > 1
        return "lock" if is_one_of_many else "thread"

    def _waited_for(self, name: str) -> str | None:
        """Return what most of the waits in a call are for; None where there were none."""
        waits = (wait for wait in self.thread.waits if wait.call == name)
        parts = merged(part for wait in waits for part in self._wait(wait, wait.seen))
        return parts[0].kind if parts else None

    # ---- Waiting ----

    def _wait(self, wait: Wait, seconds: float) -> Iterator[Part]:
        """Divide the time of a wait by what it is for."""
        if wait.kind:
            yield Part(wait.kind, wait.on, seconds)
            return
        slept = self._by_time(wait)
        if slept is None:
            yield Part("unexplained", wait.call, seconds)
            return
        yield Part("sleep", wait.call, seconds * slept)
        seconds *= 1 - slept
        if not seconds:
            return
        if wait.call in _SOCKET or any(one.sends for one in self._calls(wait.call)):
            yield Part("room", wait.call, seconds)
        elif wait.call in _PROCESS:
            yield Part("process", wait.call, seconds)
        elif wait.call == FUTEX or wait.call in _INPUT:
            yield from self._for_threads(wait, seconds)
        elif wait.call:
            yield Part("calls", wait.call, seconds)
        else:
            yield Part("unexplained", "", seconds)

    def _by_time(self, wait: Wait) -> float | None:
        """Return which part of a wait a time has ended; None where that is not known."""
        if "nanosleep" in wait.call:
            return 1.0
        if wait.call not in WAITS:
            return 0.0
        if self.caller is None:
            return None if wait.timed else 0.0
        same = self._calls(wait.call)
        exact = [call for call in same if call.timed == wait.timed] or same
        if not exact:
            return None if wait.timed else 0.0
        return max(call.timed_out or 0.0 for call in exact)

    def _for_threads(self, wait: Wait, seconds: float) -> Iterator[Part]:
        """Divide a wait by what other threads did meanwhile."""
        rest = Part("thread", "", seconds)
        if wait.call != FUTEX:
            rest = Part("input", wait.call, seconds)
        thread, running, timed = self._awaited(wait)
        if thread is None:
            yield rest
            return
        # Being woken takes time, too: most of a wait tells what the rest of it is for.
        whole = max(running + timed, wait.seen if 2 * (running + timed) < wait.seen else 0)
        yield Part("sleep", f"in {label(thread)}", seconds * timed / whole)
        both_send = self.sending >= {thread.tid, self.thread.tid}
        asleep = self.run.seconds - self.thread.cpu_s - (self.thread.runnable_s or 0.0)
        is_short = asleep < _LOCK_S * max(1, self.thread.voluntary)
        is_lock = both_send and wait.call == FUTEX and is_short
        kind, what = ("lock", "while {} runs") if is_lock else ("thread", "{}")
        yield Part(kind, what.format(label(thread)), seconds * running / whole)
        yield dataclasses.replace(rest, seconds=seconds * (1 - (running + timed) / whole))

    def _awaited(self, wait: Wait) -> tuple[Thread | None, int, int]:
        """Return the thread that a wait is likely for, and how often it ran or slept then."""
        found: tuple[Thread | None, int, int] = (None, 0, 0)
        best = (0, 0)
        for thread in self.run.threads:
            beside = {one.doing: one.seen for one in wait.beside if one.tid == thread.tid}
            running, timed = beside.get("running", 0), beside.get("timed", 0)
            # One that sleeps can wake this one only if it wakes up as often.
            if 2 * thread.voluntary < self.thread.voluntary:
                timed = 0
            score = (2 * running + timed, thread.voluntary)
            if thread.pid == self.thread.pid and running + timed and score > best:
                found, best = (thread, running, timed), score
        return found

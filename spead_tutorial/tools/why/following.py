# SPDX-License-Identifier: BSD-3-Clause
"""Following a program: what its threads do, looked at again and again, and what that comes to."""

import dataclasses
import time
from collections.abc import Iterable, Sequence

from spead_tutorial.lab import Counters
from spead_tutorial.measure.verify import IP_UDP_HEADERS
from spead_tutorial.tools.why import instruments, waits
from spead_tutorial.tools.why.facts import Run, Thread

#: How often counters are read, in seconds, and threads, and all processes: every few times.
LOOK_S, _PER_THREADS, _PER_FAMILY = 0.01, 4, 16
#: After so many looks threads are asked what they wait in, and more seldom in a long run.
_PER_WAIT, _MOST_WAITS = 2, 1000


@dataclasses.dataclass(slots=True)
class Look:
    """A device's counters at a time, and the threads where they were read."""

    at: float
    counted: Counters
    threads: dict[int, Thread] | None = None
    waiting: waits.Look | None = None  # what they do now, where they were asked
    queued: bool | None = None  # of a receiver, whether something was in its socket


class Follower:
    """Looks at a program and all that it starts."""

    def __init__(self, pid: int, seconds: float) -> None:
        self._pid, self._number, self._pids = pid, 0, list[int]()
        self._per_wait = max(_PER_WAIT, round(seconds / LOOK_S / _MOST_WAITS))
        self.pooled = False  # whether its threads stand in for each other
        self._seen = set[int]()  # threads

    def look(self, counted: Counters, *, ended: bool = False, queued: bool | None = None) -> Look:
        """Look at it, as far as it is time to."""
        look, number = Look(time.monotonic(), counted, queued=queued), self._number
        self._number += 1
        if not ended and number % _PER_FAMILY == 0:
            self._pids = instruments.family(self._pid)
            self.pooled |= any(map(waits.is_pooled, self._pids))
        if not ended and number % _PER_THREADS == 0:
            look.threads = instruments.threads(self._pids) or None
        if look.threads:  # so do those that come and go
            self._seen |= look.threads.keys()
            self.pooled |= len(self._seen) > 8 + 2 * len(look.threads)
        if not ended and number % self._per_wait == 0:
            look.waiting = waits.look(self._pids)
        return look


def grown(before: Look, after: Look) -> bool:
    return after.counted.packets > before.counted.packets


def has_cores(looks: Sequence[Look]) -> bool:
    """Whether threads worked for longer than they waited for a core, as far as that is known."""
    known = [look.threads for look in looks if look.threads]
    if len(known) < 2:
        return True
    done = instruments.between(known[0], known[-1])
    return sum(one.cpu_s for one in done) >= sum(one.runnable_s or 0.0 for one in done)


def numbered(looks: Iterable[Look]) -> dict[int, tuple[str, int]]:
    """Return what all threads were called, and which one each was of those with that name."""
    threads = (one for look in looks for one in (look.threads or {}).values())
    return waits.numbered({one.tid: one.name for one in threads})


def run_of(looks: Sequence[Look], begin: int, end: int, *, pooled: bool) -> Run:
    """Return what was done between two looks; threads' part is scaled from looks in between."""
    used = looks[begin:end]
    first, last = used[0], used[-1]
    read = [look for look in used if look.threads is not None]
    # Rate, times and faults all from the same span, which ends where threads were looked at.
    if len(read) > 1 and grown(read[0], read[-1]):
        first, last = read[0], read[-1]
    done: tuple[Thread, ...] = ()
    known = [look.threads or {} for look in read]
    if len(known) > 1:  # with a single one, all that came before the first message would count
        # The last that is known of each: it may have ended before the program has.
        latest = {tid: one for threads in known for tid, one in threads.items()}
        done = instruments.between(known[0], latest)
    counted = last.counted - first.counted
    header = counted.link_header + IP_UDP_HEADERS
    run = Run(
        seconds=max(last.at - first.at, 1e-6),
        messages=counted.packets,
        payload_bytes=max(1, counted.bytes - header * counted.packets),
        threads=done,
    )
    asked = [look for look in used if look.waiting and first.at <= look.at <= last.at]
    waiting = [look.waiting for look in asked if look.waiting]
    queued = [look.queued for look in asked if look.queued is not None] or None
    return waits.added(run, waiting, numbered(looks), pooled=pooled, queued=queued)

# SPDX-License-Identifier: BSD-3-Clause
"""What takes a sender longer than a bare loop, or a receiver's time: by kind. No I/O, no clock."""

import dataclasses
import math
from collections import defaultdict

from spead_tutorial.tools.why.account import RUNNING, Part, ThreadTime, merged
from spead_tutorial.tools.why.facts import Seen

#: Calls that get memory, and give it back.
MEMORY = ("mmap", "munmap", "mremap", "brk", "madvise", "mprotect")
#: The share of the time below which what is done in it loses no packets.
_IDLE = 0.05
#: What time of another thread that is waited for counts as that of who waits.
_PASSED_ON = ("spin", "calls", "faults")


@dataclasses.dataclass(slots=True)
class Distance:
    """Seconds for a gigabyte beyond a bare loop's: findings take from it what they explain."""

    whole: float  # what the threads that send take, without waiting for cores that others have
    longer: float | None  # than the bare loop takes; None where there is none
    parts: tuple[Part, ...]  # where it goes
    left: dict[str, float]  # what no finding has taken, by kind
    receives: bool = False  # whether it is a receiver's
    is_idle: bool = False  # whether that had next to nothing to do while it had a core

    def of(self, kind: str) -> tuple[Part, ...]:
        """Return the parts of a kind, largest first."""
        return tuple(part for part in self.parts if part.kind == kind)

    def share(self, kind: str) -> float:
        """Return the part of the time that is left of a kind."""
        return self.left[kind] / self.whole if self.whole and not self.is_idle else 0.0

    def take(self, kind: str, most: float = float("inf")) -> float:
        """Take what is left of a kind, or some of it, and return how much that was."""
        taken = min(self.left[kind], most)
        self.left[kind] -= taken
        return taken


def distance(seen: Seen) -> Distance:
    """Return how far a sender is from the bare loop, with heaps of its size and full packets."""
    account, run, bare = seen.account, seen.run, seen.bare
    if account is None:
        return Distance(0.0, None, (), defaultdict(float))
    parts = merged(
        dataclasses.replace(made, seconds=run.per_gb(made.seconds))
        for thread in account.senders
        for part in thread.parts
        for made in _resolved(part, account.threads)
    )
    left: dict[str, float] = defaultdict(float)
    for part in parts:
        left[part.kind] += part.seconds
    whole = sum(left.values()) - left["core"]
    if seen.receiving is not None:
        whole -= left["input"]
        awake = max(0.1 * account.seconds, account.seconds - account.of("core"))
        return Distance(whole, whole, parts, left, True, whole < _IDLE * run.per_gb(awake))
    if bare is None:
        return Distance(whole, None, parts, left)
    needed = min(1e9 / bare.rate, bare.gb_s or math.inf) - small_packets_s(seen)
    for kind in ("sends", "own", "faults", "unexplained"):
        taken = min(needed, left[kind])
        left[kind], needed = left[kind] - taken, needed - taken
    longer = max(0.0, sum(left.values()) - left["core"])
    return Distance(whole, longer, parts, left)


def small_packets_s(seen: Seen) -> float:
    """Return what small packets cost the bare loop more than full ones, in s for a gigabyte."""
    packets, bare = seen.packets, seen.bare
    if packets is None or bare is None:
        return 0.0
    more = 1e9 / min(packets.packet_bytes, seen.largest_packet) - 1e9 / seen.largest_packet
    return min(more * bare.packet_s, 0.95 * min(1e9 / bare.rate, bare.gb_s or math.inf))


def _resolved(part: Part, threads: tuple[ThreadTime, ...]) -> tuple[Part, ...]:
    """Return a part as what finding it is for: one thread's wait is what another one does."""
    if part.kind == "calls" and part.what in MEMORY:
        return (dataclasses.replace(part, kind="faults"),)
    if part.kind != "thread":
        return (part,)
    other = next((one for one in threads if f"{one.name} ({one.tid})" == part.what), None)
    if other is None:
        return (part,)
    does = [one for one in other.parts if one.kind in (*RUNNING, "core")]
    whole = sum(one.seconds for one in does)
    # The program's first thread makes data for a library's: of others it is said that one waits.
    is_first = other.tid == min(one.tid for one in threads)
    passed = (*_PASSED_ON, "own", "core") if is_first else (*_PASSED_ON, "core")
    made: list[Part] = []
    for one in does:
        seconds = part.seconds * one.seconds / whole
        if one.kind in passed:
            made += _resolved(dataclasses.replace(one, seconds=seconds), ())
        else:
            made.append(dataclasses.replace(part, seconds=seconds))
    return tuple(made) or (part,)

# SPDX-License-Identifier: BSD-3-Clause
"""An account of time: what each thread spent every second on that was seen. No I/O, no clock."""

import dataclasses
import importlib.resources
from collections.abc import Iterable

import msgspec


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a thread can spend its time on: `kinds.toml` has them all, and says what is in them."""

    words: str
    short: str
    style: str
    receives: str = ""
    colour: str = ""
    hatch: str = ""


_FILE = importlib.resources.files(__package__).joinpath("kinds.toml")
#: In the order of a thread's bar; and in the words of the report.
LOOKS = msgspec.toml.decode(_FILE.read_bytes(), type=dict[str, Kind])
KINDS = {kind: one.words for kind, one in LOOKS.items()}
#: Those in which it has a core.
RUNNING = ("own", "spin", "sends", "calls", "faults")


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """Some of a thread's time, and what it was for."""

    kind: str  # of `KINDS`
    what: str  # the call, the library or the thread it was spent in or waited on; may be empty
    seconds: float  # of the run that nothing slowed
    calls: float | None = None  # how often for a packet; None for what is no call


def merged(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return parts that take time, those that are equal but for that as one, largest first."""
    found: dict[tuple[str, str], Part] = {}
    for part in parts:
        before = found.get((part.kind, part.what))
        if before is not None:
            calls = None
            if part.calls is not None or before.calls is not None:
                calls = (part.calls or 0.0) + (before.calls or 0.0)
            part = dataclasses.replace(part, seconds=part.seconds + before.seconds, calls=calls)
        found[part.kind, part.what] = part
    used = (part for part in found.values() if part.seconds > 0)
    return tuple(sorted(used, key=lambda part: -part.seconds))


@dataclasses.dataclass(frozen=True, slots=True)
class ThreadTime:
    """The time of one thread: its parts sum to the seconds for which it was seen."""

    tid: int
    name: str
    sends: bool  # whether packets leave by its calls
    seconds: float
    parts: tuple[Part, ...]

    def of(self, kind: str) -> float:
        return sum(part.seconds for part in self.parts if part.kind == kind)


@dataclasses.dataclass(frozen=True, slots=True)
class Account:
    """The time of all threads of a sender or receiver."""

    seconds: float  # from the first message to the last
    threads: tuple[ThreadTime, ...]  # those that send first, then the busiest
    slowed: float | None = None  # how many times as long a heap takes while calls are looked at
    receives: bool = False  # whether it is a receiver's: then those that "send" read

    @property
    def words(self) -> dict[str, str]:
        if not self.receives:
            return KINDS
        return {kind: one.receives or one.words for kind, one in LOOKS.items()}

    @property
    def senders(self) -> tuple[ThreadTime, ...]:
        """The threads whose time counts: those that send, or all where that is not known."""
        return tuple(one for one in self.threads if one.sends) or self.threads

    @property
    def parts(self) -> tuple[Part, ...]:
        return merged(part for one in self.senders for part in one.parts)

    def of(self, kind: str) -> float:
        return sum(one.of(kind) for one in self.senders)

    def share(self, kind: str) -> float:
        """Return the part of their time that is of a kind, from 0 to 1."""
        whole = sum(one.seconds for one in self.senders)
        return self.of(kind) / whole if whole else 0.0

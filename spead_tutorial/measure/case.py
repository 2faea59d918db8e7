# SPDX-License-Identifier: BSD-3-Clause
"""A case is one program at one setting; an observer runs it, and says what there is of that."""

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from spead_tutorial.chapters.catalogue import Chapter, find_chapter
from spead_tutorial.lab import Lab
from spead_tutorial.measure.machine import one_core, two_cores
from spead_tutorial.measure.place import Device, Place
from spead_tutorial.measure.programs import Launch, ProgramError, ProgramOptions, Result, run
from spead_tutorial.measure.records import (
    Received,
    Recording,
    Sample,
    Sent,
    Series,
    Taken,
    joined,
    words_of,
)

#: A sample sends this many times what a warm-up sends.
WARM_UP = 16
_MIB = 1 << 20

#: Which cores its threads are pinned to.
_CORES: Mapping[str, Callable[[], tuple[int, ...] | None]] = {
    "": tuple,
    "pinned": two_cores,
    "one core": one_core,
}

#: What no two samples of a record share that count: case, round, and whether it is a warm-up.
Key = tuple[str, int, bool]

_WARM_UP_BYTES, _WARM_UP_HEAPS = 1 << 30, 1 << 16  # at most
_TIMEOUT_S = 120.0


@dataclasses.dataclass(frozen=True, slots=True)
class Size:
    """How thorough a run is."""

    name: str  # `"quick"`, `"full"` or `"tiny"` (for tests)
    rounds: int  # rounds that count, where nobody says otherwise
    longest_s: float  # seconds that a sample lasts, but for what its warm-up did not foretell
    most_bytes: int  # bytes of payload that it sends at most


class Observer:
    """What observes a case: how often it is run, how, and what is noted of it.

    By itself it is how fast a program sends, by its own clock, where its claims hold.
    """

    warms_up = True  # whether it has a round before the first, which does not count
    once = False  # whether it is run once, after all rounds, and not in each
    receives = False  # whether there has to be a second machine
    named = ""  # what the names of its cases end with
    settings: ClassVar[Mapping[str, Any]] = {}  # what a record's header says of it

    def missing(self, case: "Case") -> str | None:
        """Say why a case cannot run here; None where it can."""
        return None

    def asked(self, step: "Step") -> Taken | None:
        """Return the line of a step before anything is known; None where its lines are samples."""
        return None

    def launch(self, case: "Case", heaps: int) -> Launch | None:
        """Return how a case's program is started, if not as all others are."""
        return None

    def observe(self, lab: Lab, size: Size, step: "Step", known: Sample | None) -> Iterable[Taken]:
        """Run a step's case, and yield what there is of it; known is its fastest sample yet."""
        heaps = self.heaps(step.case, size, known)
        launch = self.launch(step.case, heaps)
        return [take(Device(lab), step, heaps, launch=launch, timeout=_TIMEOUT_S)]

    def facts(self, lab: Lab) -> dict[str, Any]:
        """Return what a record says of where it was."""
        return lab.facts()

    def versions(self) -> Mapping[str, str | None]:
        """Return what a record says of the software, besides what all do."""
        return {}

    def table(self, recording: Recording) -> str:
        """Write what the lines of its own kind came to; nothing where these are samples."""
        return ""

    def heaps(self, case: "Case", size: Size, known: Sample | None) -> int:
        """How many heaps a sample sends: what lasts long enough at the rate of one before it."""
        if case.heaps is not None:
            return case.heaps if known is not None else max(1, case.heaps // WARM_UP)
        n_bytes: float = min(
            size.most_bytes // WARM_UP, _WARM_UP_BYTES, _WARM_UP_HEAPS * case.heap_size
        )
        if case.program == "tut_2_send":
            return find_chapter(case.program).heaps
        if case.makes_random:
            n_bytes /= WARM_UP  # random numbers: one knows that they are slow
        if known is not None and known.rate is not None:
            n_bytes = min(size.most_bytes, known.rate * size.longest_s)
        return max(2, int(n_bytes) // case.heap_size)


PLAIN = Observer()


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """One program at one setting."""

    # `"ours"`, `"spead2"`, `"ceiling"`, or the name of another installation of ours
    implementation: str
    language: str  # one of `spead_tutorial.chapters.catalogue.LANGUAGES`
    program: str  # its name
    # bytes of samples in a heap; bytes in a packet at most, or 0 where the route has the say
    heap_size: int = _MIB
    packet_size: int = 9000
    random: bool = False  # whether samples are random in a program that has the choice
    # what else is different, in words with commas between them. Those that are options of its
    # program are given to it
    variant: str = ""
    environment: tuple[tuple[str, str], ...] = ()  # variables that make it so
    # one of `spead_tutorial.measure.place.LISTENERS`, for one that sends over the place's
    # loopback; None where it sends to the place itself
    listener: str | None = None
    heaps: int | None = None  # how many to send; None where the harness decides
    # how many streams send at once, in a program that has the choice; None leaves it the choice
    streams: int | None = None
    # `"pinned"` where its thread and its stream's have a core each, `"one core"` where they have
    # to share one; empty where the kernel has the choice
    pinned: str = ""
    # bits/s of the link that it sends through; None where the device has no limit
    link: int | None = None
    observer: Observer = PLAIN  # how it is run, and what is noted of it

    @property
    def different(self) -> str:
        """What a record's ``variant`` says: all that is different but sizes and samples."""
        s = "" if self.streams == 1 else "s"
        streams = f"{self.streams} stream{s}" if self.streams is not None else ""
        link = f"link of {self.link / 1e9:g} Gb/s" if self.link is not None else ""
        return joined(self.variant, streams, self.pinned, link)

    @property
    def words(self) -> tuple[str, ...]:
        return words_of(self.variant)

    @property
    def makes_random(self) -> bool:
        """Whether its samples are random, as it has the choice, or as they always are."""
        return self.random or self.program == "tut_4_send_perf"

    @property
    def series(self) -> Series:
        variant = joined("random" * self.random, self.different)
        return Series(self.implementation, self.language, self.program, variant)

    @property
    def name(self) -> str:
        """What a record calls it; no two of a recording share it."""
        many = f" x {self.heaps}" if self.heaps is not None else ""
        return f"{self.series}, {self.heap_size}/{self.packet_size}{many}{self.observer.named}"

    @property
    def point(self) -> tuple[int, int]:
        """Where on the axes it is: cases of one point are compared with each other."""
        return self.heap_size, self.packet_size

    def options(self, heaps: int | None = None) -> ProgramOptions:
        """Return what its program is told: as much as it lets itself be told."""
        accepted = _chapter(self).accepted
        return ProgramOptions(
            heaps=(heaps or self.heaps) if "n" in accepted else None,
            heap_size=self.heap_size if "H" in accepted else None,
            packet_size=(self.packet_size or None) if "p" in accepted else None,
            random=self.random,
            streams=self.streams,
            cores=",".join(map(str, _CORES[self.pinned]() or ())) or None,
            switches=_chapter(self).switches(self.words),
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """A case's turn."""

    number: int  # the round, from 0
    warm_up: bool  # whether it is not to be counted
    case: Case  # whose turn it is
    runs: tuple[Received, ...] = ()  # of a search, those runs that there are already

    @property
    def key(self) -> Key:
        return self.case.name, self.number, self.warm_up

    @property
    def heaps(self) -> int | None:
        """How many heaps it sends: fewer to warm up. None where the harness decides."""
        if self.case.heaps is None or not self.warm_up:
            return self.case.heaps
        return max(1, self.case.heaps // WARM_UP)


#: The bare loops, which are no chapter's.
_BARE = Chapter(0, "ceiling", "Bare system calls", "", "nHpsd", heaps=10000, packet_size=9000)


def _chapter(case: Case) -> Chapter:
    return _BARE if case.program == _BARE.name else find_chapter(case.program)


def stolen_ns() -> int:
    """Return the time in ns that the hypervisor has given to others, all cores together."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return round(int(fields[8]) * 1e9 / os.sysconf("SC_CLK_TCK"))


@dataclasses.dataclass(frozen=True, slots=True)
class Begun:
    """A sample that is being taken, and what the machine had to do before."""

    step: Step  # what it is a sample of
    load: float = dataclasses.field(default_factory=lambda: os.getloadavg()[0])
    stolen: int = dataclasses.field(default_factory=stolen_ns)

    def facts(self, chapter: int, way: tuple[str, str], failure: str | None) -> dict[str, Any]:
        """Return what every sample has: its case, and what the machine did meanwhile."""
        case = self.step.case
        return {
            "case": case.name,
            "round": self.step.number,
            "warm_up": self.step.warm_up,
            "chapter": chapter,
            "program": case.program,
            "language": case.language,
            "implementation": case.implementation,
            "variant": case.different,
            "random": case.random,
            "device": way[0],
            "kind": way[1],
            "failure": failure,
            "load": round(self.load, 2),
            "steal_ns": max(0, stolen_ns() - self.stolen),  # some hypervisors set it back
        }

    def sent(self, result: Result) -> Sent:
        options, chapter, evidence = result.options, result.chapter, result.evidence
        measured: dict[str, Any] = {
            "heaps": options.heaps or chapter.heaps,
            "heap_size": options.heap_size or chapter.heap_size,
            "packet_size": options.packet_size or chapter.packet_size,
            "streams": options.streams or 1,
        }
        if result.report is not None:
            measured |= dataclasses.asdict(result.report)
        if result.accounting is not None:
            measured["counted_packets"] = result.accounting.counted_packets
            measured["counted_bytes"] = result.accounting.counted_bytes
        if evidence.received is not None:
            measured["received_packets"] = evidence.received["packets"]
            measured["received_dropped"] = evidence.received["dropped"]
        way = result.device, result.kind
        facts = self.facts(chapter.number, way, result.failure)
        return Sent(**measured | facts, icmp_errors=evidence.icmp_errors)


def take(
    place: Place,
    step: Step,
    heaps: int | None = None,
    *,
    launch: Launch | None = None,
    timeout: float | None = None,
) -> Sent:
    case = step.case
    begun = Begun(step)
    if case.listener is not None:
        place = place.listening(case.listener)
    if case.link is not None:
        place = place.limited(case.link)
    result = run(
        place,
        _chapter(case),
        case.language,
        case.options(heaps or step.heaps),
        launch=launch,
        timeout=timeout,
        environment=dict(case.environment),
    )
    return begun.sent(result)


def take_received(
    step: Step,
    heaps: int,
    chapter: int,
    way: tuple[str, str],
    observe: Callable[[], tuple[Mapping[str, Any], str | None]],
    asked: float | None = None,
) -> Received:
    """Take a sample of a receiver: what is measured of it, and why it has no rate, if so."""
    begun, case = Begun(step), step.case
    measured: Mapping[str, Any] = {}
    try:
        measured, failure = observe()
    except ProgramError as error:
        failure = str(error)
    return Received(
        **begun.facts(chapter, way, failure),
        heaps=heaps,
        heap_size=case.heap_size,
        packet_size=case.packet_size,
        asked_bytes_per_s=asked,
        **measured,
    )

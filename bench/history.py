# SPDX-License-Identifier: BSD-3-Clause
"""How fast programs were over the revisions that a folder has records of, and where that changed.

A change is a step of the level (`bench.steps`) that `bench.compare` also tells from chance and from
what the machine did, all samples before it held against all after it.
"""

import dataclasses
import functools
import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bench.compare import (
    CANNOT_TELL,
    SIGNIFICANCE,
    Thresholds,
    corrected,
    judge_apart,
    side_of,
    word_for,
)
from bench.controls import STILL, Drift, drift
from bench.machines import by_machine, name_of, part_of, pooled
from bench.status import Place, by_place, rates_by_round
from bench.steps import noise, steps
from spead_tutorial.measure.search import settled
from spead_tutorial.records import Header, RecordError, Recording, Sample, read
from spead_tutorial.stats import Estimate
from spead_tutorial.units import size

__all__ = ["Change", "Line", "Revision", "Track", "lines_of", "read_all", "table", "tracks"]

#: What records of other lines than samples are of.
_WITHOUT_SAMPLES = ("flat-memory", "latency", "rate", "spacing")
_SHORT = 7
WITH_MACHINE = "moved with the machine"

Wanted = Callable[[Sample], bool]


@dataclasses.dataclass(frozen=True, slots=True)
class Revision:
    """What was measured of a revision on one machine."""

    name: str  # short
    time: str  # when its measuring began: ISO 8601, UTC
    recording: Recording  # all of it


@dataclasses.dataclass(frozen=True, slots=True)
class Track:
    """What can be held against each other: one experiment on one machine."""

    name: str  # what both are called
    revisions: tuple[Revision, ...]  # in the order in which they were measured


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """A step of a line."""

    at: int  # the first of the track's revisions that has it
    # of the rates from there to the next change, to those from the last change to there
    ratio: float
    word: str  # `"faster"` or `"slower"`; or that the controls moved as well

    @property
    def of_program(self) -> bool:
        """Whether it is the program that changed, and not the machine."""
        return self.word != WITH_MACHINE


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """A series at a size, over a track's revisions."""

    place: Place  # series, heap size and packet size
    # the samples of each revision, in payload bytes/s; none where there are none, or one failed
    rates: tuple[tuple[float, ...], ...]
    changes: tuple[Change, ...]  # its steps


# ---------------------------------------------------------------------------------------
# Reading


def read_all(folder: Path) -> tuple[list[Recording], list[str]]:
    """Read the records in a folder, and in those in it."""
    found, problems = [], []
    for path in sorted(folder.rglob("*.jsonl")):
        if _has_no_samples(path):
            continue
        try:
            recording = settled(read(path))
        except RecordError as error:
            problems.append(f"{path.parent}: {error}")
        except OSError as error:
            problems.append(f"{path}: {error.strerror}")
        else:
            found += [recording] if recording.samples else []
    if not found:
        raise RecordError(
            f"{problems[0]} (and no other file in {folder} is a record with samples)"
            if problems
            else f"there are no records with samples in {folder}: python -m bench run makes them"
        )
    return found, problems


def _has_no_samples(path: Path) -> bool:
    """Whether a file is a record, but not one of samples."""
    try:
        with path.open(encoding="utf-8") as file:
            header = json.loads(file.readline())
        return header.get("record") == "header" and header.get("experiment") in _WITHOUT_SAMPLES
    except (OSError, ValueError, AttributeError):
        return False


def tracks(recordings: Iterable[Recording]) -> list[Track]:
    """Sort recordings into tracks, and each track's by revision.

    What was measured twice of one build of a revision is one revision. Samples of runs of another
    size last for another time, and are another track.
    """
    found: dict[tuple[str, str], dict[object, list[Recording]]] = {}
    for recording in recordings:
        for machine, on_it in by_machine(recording).items():
            for source, header in enumerate(on_it.headers):
                revisions = found.setdefault((_experiment(header), machine), {})
                build = header.revision, header.versions.get("build")
                key = build if header.revision else header.time
                revisions.setdefault(key, []).append(part_of(on_it, [source]))
    return [
        Track(f"{name}, {_machine(revisions.values())}", _in_order(revisions.values()))
        for (name, _), revisions in sorted(found.items())
    ]


def _experiment(header: Header) -> str:
    return " ".join(filter(None, (header.experiment, header.settings.get("size"))))


def _machine(groups: Iterable[Sequence[Recording]]) -> str:
    return name_of(next(iter(groups))[0].header)


def _in_order(groups: Iterable[Sequence[Recording]]) -> tuple[Revision, ...]:
    revisions = [_revision(group) for group in groups]
    return tuple(sorted(revisions, key=lambda one: one.time))


def _revision(recordings: Sequence[Recording]) -> Revision:
    header = recordings[0].header
    changed = "+" * (header.revision or "").endswith("+")
    name = (header.revision or "unknown")[:_SHORT] + changed
    return Revision(name, min(one.header.time for one in recordings), pooled(recordings))


# ---------------------------------------------------------------------------------------
# Lines and their changes


def lines_of(track: Track, wanted: Wanted, thresholds: Thresholds) -> list[Line]:
    """Return the lines of a track that have two rates at least, with their changes."""
    samples = [by_place(revision.recording) for revision in track.revisions]
    rates = {
        place: tuple(_rates(found.get(place, [])) for found in samples)
        for place in dict.fromkeys(place for found in samples for place in found)
    }
    common = statistics.median(noise(_middles(values)) for values in rates.values())
    chosen = {
        place: values
        for place, values in sorted(rates.items(), key=lambda item: _order(item[0]))
        if len(_middles(values)) > 1
        and any(wanted(one) for s in samples for one in s.get(place, []))
    }
    chapters = {place: one[0].chapter for found in samples for place, one in found.items()}
    between = functools.cache(functools.partial(_drift, track, thresholds.general))
    candidates = [
        (place, *judged)
        for place, values in chosen.items()
        for judged in _candidates(values, common, thresholds.of(chapters[place]), between)
    ]
    chances = corrected([chance for _, _, chance in candidates])
    changes: dict[Place, list[Change]] = {}
    for (place, change, _), chance in zip(candidates, chances, strict=True):
        if change.word != CANNOT_TELL and chance <= SIGNIFICANCE:
            changes.setdefault(place, []).append(change)
    return [Line(place, rates[place], tuple(changes.get(place, ()))) for place in chosen]


def _order(place: Place) -> tuple[int, int, str]:
    return place[1], place[2], str(place[0])


def _rates(samples: Sequence[Sample]) -> tuple[float, ...]:
    if any(sample.failure is not None for sample in samples):
        return ()
    return tuple(rates_by_round(samples).values())


def _middles(values: Iterable[Sequence[float]]) -> list[float]:
    return [statistics.median(rates) for rates in values if rates]


def _candidates(
    values: Sequence[tuple[float, ...]],
    common: float,
    threshold: float,
    between: Callable[[range, range], Drift],
) -> list[tuple[Change, float]]:
    """Judge the places where a line may have changed; also how likely chance makes each."""
    there = [index for index, rates in enumerate(values) if rates]
    middles = _middles(values)
    starts = [there[start] for start in steps(middles, max(noise(middles), common))]
    ends = [0, *starts, len(values)]
    found = []
    for first, at, end in zip(ends, ends[1:], ends[2:], strict=False):
        earlier, later = (_by_round(values, part) for part in ((first, at), (at, end)))
        drift = between(range(first, at), range(at, end))
        estimate, chance = judge_apart(earlier, later, drift)
        word = word_for(estimate, threshold, drift)
        if word == CANNOT_TELL and _moved_alike(estimate, drift.ratio, threshold):
            word, chance = WITH_MACHINE, 0.0
        found.append((Change(at, estimate.median, word), chance))
    return found


def _moved_alike(ratio: Estimate, machine: float, threshold: float) -> bool:
    """Whether a line moved, and the machine in the same direction."""
    return word_for(ratio, threshold, STILL) == side_of(machine, threshold, STILL) != CANNOT_TELL


def _by_round(
    values: Sequence[tuple[float, ...]], part: tuple[int, int]
) -> dict[tuple[int, int], float]:
    return {
        (index, number): rate for index in range(*part) for number, rate in enumerate(values[index])
    }


def _drift(track: Track, threshold: float, earlier: range, later: range) -> Drift:
    """Find out what the machine did from some revisions to others."""
    one, other = (
        pooled(track.revisions[index].recording for index in part) for part in (earlier, later)
    )
    return drift(one, other, threshold)


# ---------------------------------------------------------------------------------------
# Saying it


def table(track: Track, lines: Sequence[Line]) -> str:
    """Write a track as a table: a row for each line, and one below it for each of its changes."""
    revisions = track.revisions
    span = f"{len(revisions)} revisions, {_when(revisions[0])} to {_when(revisions[-1])}"
    rows = [
        f"{track.name}: {span}",
        f"{'heap':>8} {'packet':>6}  {'program':52} {'n':>3} {'first':>8} {'last':>8}  change",
    ]
    for line in lines:
        series, heap_size, packet_size = line.place
        middles = _middles(line.rates)
        first, last = (f"{rate / 1e6:8.0f}" for rate in (middles[0], middles[-1]))
        place = f"{size(heap_size):>8} {packet_size:>6}  {series!s:52}"
        told = [
            f"{change.word} since {_when(revisions[change.at])}: {change.ratio:.2f} times as fast"
            for change in line.changes
        ] or ["none"]
        rows.append(f"{place} {len(middles):>3} {first} {last}  {told[0]}")
        rows += [f"{'':{len(rows[-1]) - len(told[0])}}{more}" for more in told[1:]]
    changed = sum(any(change.of_program for change in line.changes) for line in lines)
    rows += ["", f"{changed} of {len(lines)} lines changed. MB/s, medians of a revision's rounds."]
    return "\n".join(rows)


def _when(revision: Revision) -> str:
    return f"{revision.name} ({revision.time[:10]})"

# SPDX-License-Identifier: BSD-3-Clause
"""The tour: every chapter in Python and in C, what each of them gained, and the proof."""

import contextlib
import dataclasses
import importlib.metadata
import os
import time
from collections.abc import Sequence
from pathlib import Path

import click

from spead_tutorial import plots, tour_page
from spead_tutorial.catalogue import BESIDE_LADDER, LADDER, MEASURED, Rung, find_chapter
from spead_tutorial.lab import Lab, LabError
from spead_tutorial.measure import baselines, progress
from spead_tutorial.measure.baselines import CEILING, PEER
from spead_tutorial.measure.case import Case, Step, take
from spead_tutorial.measure.machine import header
from spead_tutorial.measure.place import Device, Loopback, Place
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.measure.rounds import measure, schedule
from spead_tutorial.records import OURS, RecordError, Recording, Sample, locked, read
from spead_tutorial.tour_arrivals import SETTING, Arrival, read_arrivals, receive_some, text
from spead_tutorial.tour_rows import sections
from spead_tutorial.tour_table import headline_text, table

__all__ = ["PAGE", "RECORDS", "SIZES", "cases", "compared", "show", "tour"]

#: Rounds of each size, and how much it sends: 1 is about half a second.
SIZES = {"quick": (3, 1.0), "full": (9, 5.0), "tiny": (2, 1 / 512)}
#: What is in the folder of a tour: what was measured, and all of it to look at.
RECORDS, PAGE = "tour.jsonl", "index.html"
_SEED = 20
_TIMEOUT_S = 300.0
_MIB = 1 << 20
#: What spead2 sends in about a third of a second: it has as much to import, again.
_PEERS = (
    Rung("tut_8_send_reuse_memory", 1024),
    Rung("tut_10_send_reuse_heaps", 1024),
    Rung("tut_11_send_batch_heaps", 1024),
    Rung("tut_8_send_reuse_memory", 128, 8192),
    Rung("tut_10_send_reuse_heaps", 512, 8192),
    Rung("tut_11_send_batch_heaps", 512, 8192),
)
_BARE_MIB = 4096


def cases(size: str) -> list[Case]:
    """Return what a tour of a size measures: every chapter in all languages."""
    return [
        _case(size, rung, OURS, language)
        for rung in (*LADDER, *BESIDE_LADDER)
        for language in MEASURED
    ]


def compared(size: str, loopback: bool) -> tuple[list[Case], list[str]]:
    """Return what the chapters are measured beside; and why it is not there, if something is not.

    Over loopback there are no bare loops: it is the receiver who sets the limit there.
    """
    peers = [_case(size, rung, PEER, "python") for rung in _PEERS]
    bare = [] if loopback else _bare(size)
    found = [(case, baselines.missing(case)) for case in (*peers, *bare)]
    without = ["Without bare loops: over loopback, the receiver sets the limit."] * loopback
    reasons = {(case.implementation, reason) for case, reason in found if reason is not None}
    without += [f"Without {_NAMES[who]}: {reason}." for who, reason in sorted(reasons)]
    return [case for case, reason in found if reason is None], without


_NAMES = {PEER: "the peer", CEILING: "bare loops"}


def _bare(size: str) -> list[Case]:
    """Return the bare loops: one thread that fills and sends; and one for each core."""
    cores = len(os.sched_getaffinity(0))
    return [
        Case(
            CEILING,
            "c",
            CEILING,
            heap_size,
            variant="one thread",
            streams=streams,
            heaps=max(2 * cores, _heaps(size, _BARE_MIB, heap_size)),
        )
        for heap_size in dict.fromkeys(rung.heap_size for rung in LADDER)
        for streams in (None, cores)
        if streams != 1
    ]


def _case(size: str, rung: Rung, implementation: str, language: str) -> Case:
    heaps = _heaps(size, rung.mebibytes, rung.heap_size)
    sizes = rung.heap_size, rung.packet_size
    return Case(implementation, language, rung.program, *sizes, heaps=heaps)


def _heaps(size: str, mebibytes: int, heap_size: int) -> int:
    _, factor = SIZES[size]
    return max(2, int(mebibytes * factor) * _MIB // heap_size)


def tour(size: str, output: Path, *, loopback: bool = False) -> int:
    """Do the tour, show what it came to, and return the exit status."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(locked(output))
        recording = _measure(Loopback() if loopback else _place(stack), size, output / RECORDS)
        return _show(recording, output)


def show(output: Path) -> int:
    """Show what the last tour came to, and return the exit status: nothing is measured."""
    if not (output / RECORDS).is_file():
        raise RecordError(f"{output} has no record of a tour: spead-tutorial tour makes one")
    with locked(output):
        return _show(read(output / RECORDS), output)


def _place(stack: contextlib.ExitStack) -> Place:
    try:
        return Device(stack.enter_context(Lab()))
    except LabError as error:
        click.echo(f"No lab: {error}.")
        click.echo("The tour goes on over loopback, with a receiver: rates are not the lab's.")
        return Loopback()


def _measure(place: Place, size: str, path: Path) -> Recording:
    """Take all samples, and put the file in its place when it is whole."""
    rounds, _ = SIZES[size]
    others, without = compared(size, isinstance(place, Loopback))
    arrived, why_not = _arrivals(place, size)
    settings = {"size": size, "rounds": rounds, "seed": _SEED, "without": [*without, *why_not]}
    settings["drawn_by"] = "spead-tutorial tour"
    settings[SETTING] = [dataclasses.asdict(one) for one in arrived]
    unfinished = path.with_suffix(".part")
    unfinished.unlink(missing_ok=True)
    taken = _Taken(place)
    try:
        recording = measure(
            schedule([*cases(size), *others], rounds, _SEED),
            lambda step, _: taken.take(step),
            header("tour", place.facts(), settings, _peers_version(others)),
            path=unfinished,
            show=lambda steps: progress.rounds_shown(steps, rounds),
            say=lambda step, failure: None,  # the table does
        )
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    click.echo(f"It took {taken.seconds:.0f} s: {taken.beside_s:.0f} s for bare loops and spead2.")
    return recording


def _arrivals(place: Place, size: str) -> tuple[list[Arrival], list[str]]:
    if isinstance(place, Loopback):
        return [], ["Without data that arrives: without a lab, nobody counts what is lost."]
    return receive_some(size)


def _peers_version(others: Sequence[Case]) -> dict[str, str | None]:
    there = any(case.implementation == PEER for case in others)
    return {PEER: importlib.metadata.version(PEER)} if there else {}


class _Taken:
    """Takes samples in a place, and knows how long that took."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.seconds = self.beside_s = 0.0

    def take(self, step: Step) -> Sample:
        """Run a case once; where it cannot even be started, that is a failure of its."""
        case, before = step.case, time.monotonic()
        start = None if case.implementation == OURS else baselines.launch(case, step.heaps)
        try:
            return take(self.place, step, launch=start, timeout=_TIMEOUT_S)
        except ProgramError as error:
            return _not_started(self.place, step, str(error))
        finally:
            took = time.monotonic() - before
            self.seconds += took
            self.beside_s += took * (start is not None)


def _not_started(place: Place, step: Step, failure: str) -> Sample:
    case = step.case
    return Sample(
        case=case.name,
        round=step.number,
        warm_up=step.warm_up,
        chapter=find_chapter(case.program).number if case.program != CEILING else 0,
        program=case.program,
        language=case.language,
        random=case.random,
        heaps=step.heaps or 0,
        heap_size=case.heap_size,
        packet_size=case.packet_size,
        device=place.device,
        kind=place.kind,
        failure=failure,
        implementation=case.implementation,
        variant=case.different,
        streams=case.streams or 1,
    )


# ---------------------------------------------------------------------------------------
# Showing


def _show(recording: Recording, output: Path) -> int:
    found = sections(recording)
    click.echo(headline_text(found))
    click.echo(f"\n{table(found, recording)}")
    arrived = read_arrivals(recording)
    if arrived:
        click.echo(f"\n{text(arrived)}")
    pictures = _draw(recording, output)
    page = output / PAGE
    page.write_text(tour_page.page(recording, found, arrived, pictures, output), encoding="utf-8")
    _say_what_next([page, *pictures, output / RECORDS])
    rows = [line.row for section in found for line in section.lines]
    told = [*(row.failure for row in rows), *(one.failure for one in arrived)]
    failures = {failure for failure in told if failure is not None}
    for failure in sorted(failures):
        click.echo(f"spead-tutorial: {failure}", err=True)
    return 1 if failures else 0


def _draw(recording: Recording, output: Path) -> list[Path]:
    try:
        return plots.save(output / "tut-ladder.svg", plots.ladder, recording)
    except plots.MissingError as error:
        click.echo(f"\nNo pictures: {error}.")
        return []


def _say_what_next(files: Sequence[Path]) -> None:
    click.echo("\nLook at")
    for path in files:
        click.echo(f"  {path}")
    click.echo("and try")
    click.echo("  spead-tutorial run 10 --lang c -n 524288 -H 8192")
    click.echo("  spead-tutorial run 7 --from 6 --rate 500 -n 2000")
    click.echo("  spead-tutorial chapters")

# SPDX-License-Identifier: BSD-3-Clause
"""The tour: every chapter that sends, in Python and in C, what each gained, and the proof."""

import contextlib
import dataclasses
import os
import time
from pathlib import Path

import click

from spead_tutorial.chapters.catalogue import BESIDE_LADDER, LADDER, find_chapter
from spead_tutorial.lab import Lab, LabError
from spead_tutorial.measure import baselines
from spead_tutorial.measure.baselines import CEILING, PEER
from spead_tutorial.measure.case import Begun, Case, Step
from spead_tutorial.measure.case import take as take_case
from spead_tutorial.measure.machine import header
from spead_tutorial.measure.place import Device, Loopback, Place, over_loopback
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.measure.records import OURS, RecordError, Recording, Sample, Sent, locked, read
from spead_tutorial.measure.rounds import measure, schedule
from spead_tutorial.measure.stats import differs
from spead_tutorial.results.tables import filled, plain
from spead_tutorial.results.units import times
from spead_tutorial.tools.command_line import as_typed
from spead_tutorial.tools.progress import Steps
from spead_tutorial.tools.tour import rows

#: Rounds of each size, and how much it sends: 1 is about half a second.
SIZES = {"quick": (3, 1.0), "full": (9, 5.0), "tiny": (2, 1 / 512)}
#: What is in the folder of a tour: what was measured, and all of it to look at.
RECORDS, PAGE = "tour.jsonl", "index.html"
EXPERIMENT = "tour"
FOLDER = Path("results", "tour")
_SEED = 20
_TIMEOUT_S = 300.0
_MIB = 1 << 20
_RUNGS = (*LADDER, *BESIDE_LADDER)
_NAMES = {PEER: "the peer", CEILING: "bare loops"}
#: What is to be tried next, in labs, and where there are none.
_TRY = (
    "spead-tutorial run 10 --lang c -n 524288 -H 8192",
    "spead-tutorial run 7 --from 6 --rate 500 -n 200",
    "spead-tutorial chapters",
)
_TRY_WITHOUT = (
    "spead-tutorial run 10 --lang c -n 524288 -H 8192 --host 127.0.0.1 --port 8888",
    "spead-tutorial doctor",
    "spead-tutorial chapters",
)


@click.command()
@click.option("--quick", "size", flag_value="quick", default=True,
              help="Three rounds, a minute or two (the default).")  # fmt: skip
@click.option("--full", "size", flag_value="full", help="Nine rounds of longer samples.")
@click.option("--tiny", "size", flag_value="tiny", hidden=True)
@click.option("--loopback", is_flag=True, help="Send to this machine's loopback, without a lab.")
@click.option("--output", type=click.Path(file_okay=False, path_type=Path),
              default=FOLDER, show_default=True,
              help="Folder for the page, records and pictures.")  # fmt: skip
@click.option("--from-record", is_flag=True,
              help="Measure nothing: show the folder's last tour again.")  # fmt: skip
def tour(size: str, loopback: bool, output: Path, from_record: bool) -> int:
    """Run every chapter that sends, in Python and in C, and show what each gained.

    It also runs bare system calls, and the same loops with spead2 where that is
    installed. It prints what each chapter gained, and writes a page with all of it, to pass on.
    The exit status is 1 where a program failed, or a device did not count what it claims.

    Example: spead-tutorial tour --quick
    """
    try:
        return show(output) if from_record else do_tour(size, output, loopback=loopback)
    except OSError as error:
        path = Path(str(error.filename or ""))
        if not (path.is_relative_to(output) or output.is_relative_to(path)) or not path.name:
            raise
        record = f", with {RECORDS} of a tour in it" * from_record
        raise click.ClickException(
            f"{path}: {error.strerror}: say with --output a folder that can be written{record}"
        ) from None


# ---- Measuring ----


def planned(size: str, loopback: bool) -> tuple[list[Case], list[str]]:
    """Return what a tour measures, as `ladder` does; and why something is not compared with it."""
    cores = len(os.sched_getaffinity(0))
    bare = () if loopback else baselines.bare((None, cores) if cores > 1 else (None,))
    found = [(case, baselines.missing(case)) for case in (*baselines.peers(PEER), *bare)]
    without = ["Without bare loops: over loopback, the receiver sets the limit."] * loopback
    reasons = {(case.implementation, reason) for case, reason in found if reason is not None}
    without += [f"Without {_NAMES[who]}: {reason}." for who, reason in sorted(reasons)]
    cases = [*baselines.ladder(_RUNGS), *(case for case, reason in found if reason is None)]
    return [dataclasses.replace(case, heaps=_heaps(case, size)) for case in cases], without


def _heaps(case: Case, size: str) -> int:
    """Return how many a case sends: the peer, which has as much to import again, a quarter."""
    _, factor = SIZES[size]
    known = {(rung.program, rung.heap_size): rung.mebibytes for rung in _RUNGS}
    mebibytes = known.get((case.program, case.heap_size), known[LADDER[-1].program, _MIB])
    mebibytes = mebibytes // 4 if case.implementation == PEER else mebibytes
    return max(2 * (case.streams or 1), int(mebibytes * factor) * _MIB // case.heap_size)


def do_tour(size: str, output: Path, *, loopback: bool = False) -> int:
    """Do the tour, show what it came to, and return the exit status."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(locked(output))
        recording = _measure(
            Loopback() if loopback else _lab_or_loopback(stack), size, output / RECORDS
        )
        return _show(recording, output)


def show(output: Path) -> int:
    """Show what the last tour came to, and return the exit status: nothing is measured."""
    if not (output / RECORDS).is_file():
        raise RecordError(f"{output} has no record of a tour: spead-tutorial tour makes one")
    with locked(output):
        try:
            return _show(_last(output), output)
        except (KeyError, TypeError, ValueError) as error:
            raise RecordError(
                f"{output / RECORDS} is a record, but none that a tour writes ({error}):"
                " spead-tutorial tour makes one"
            ) from error


def _last(output: Path) -> Recording:
    recording = read(output / RECORDS)
    if recording.header.experiment != EXPERIMENT:
        raise ValueError(f"it is of {recording.header.experiment!r}")
    return recording


def last_gains() -> dict[tuple[str, str], str]:
    """Return what each step gained in the tour that is here, by program and language."""
    if not (FOLDER / RECORDS).is_file():  # nor a pipe, which would be waited for
        return {}
    try:
        found = rows.entries(_last(FOLDER))
    except (RecordError, OSError, KeyError, TypeError, ValueError):
        return {}  # it is another's record
    return {
        (entry.row.last.program, by): times(entry.gain.median) if differs(entry.gain) else "?"
        for step in rows.steps(found)
        for by, entry in step.items()
        if entry.gain is not None
    }


def _lab_or_loopback(stack: contextlib.ExitStack) -> Place:
    try:
        return Device(stack.enter_context(Lab()))
    except LabError as error:
        click.echo(plain(f"No lab: {error.summary}."))
        click.echo("The tour goes on over loopback, with a receiver: rates are not the lab's.")
        return Loopback()


def _measure(place: Place, size: str, path: Path) -> Recording:
    """Take all samples, and put the file in its place when it is whole."""
    from importlib import metadata  # it reads mails, and other commands do without

    begun = time.monotonic()
    rounds, _ = SIZES[size]
    cases, without = planned(size, isinstance(place, Loopback))
    settings = {"size": size, "rounds": rounds, "seed": _SEED, "without": without}
    settings["drawn_by"] = "spead-tutorial tour"
    has_peer = any(case.implementation == PEER for case in cases)
    others = {PEER: metadata.version(PEER)} if has_peer else {}
    unfinished = path.with_suffix(".part")
    unfinished.unlink(missing_ok=True)
    try:
        with Steps() as shown:
            recording = measure(
                schedule(cases, rounds, _SEED),
                lambda step, _: _take(place, step),
                header(EXPERIMENT, place.facts(), settings, others),
                path=unfinished,
                show=shown,
                say=lambda step, failure: None,  # the table does
            )
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    click.echo(f"It took {time.monotonic() - begun:.0f} s.")
    return recording


def _take(place: Place, step: Step) -> Sample:
    """Run a case once; where it cannot even be started, that is a failure of its."""
    ours = step.case.implementation == OURS
    try:
        start = None if ours else baselines.launch(step.case, step.heaps)
        return take_case(place, step, launch=start, timeout=_TIMEOUT_S)
    except ProgramError as error:
        case = step.case
        chapter = find_chapter(case.program).number if case.program != CEILING else 0
        return Sent(
            **Begun(step).facts(chapter, (place.device, place.kind), str(error)),
            heaps=step.heaps or 1,
            heap_size=case.heap_size,
            packet_size=case.packet_size,
            streams=case.streams or 1,
        )


# ---- Showing ----


def _show(recording: Recording, output: Path) -> int:
    from spead_tutorial.tools.tour.page import page as page_of  # as slow to import as pictures

    found = rows.entries(recording)
    for headline in rows.headlines(found):
        click.echo(f"\n{headline.by:6}  {plain(str(headline))}")
        for line in headline.details:
            click.echo(plain(f"{'':6}  {line}"))
    click.echo()
    for note in rows.notes(recording, whole=False):
        click.echo(filled(plain(note)))
    click.echo(f"\n{rows.steps_table(found)}\n\n{rows.proof(found)}")
    click.echo("Smaller heaps, spead2, bare loops and other data are on the page.")
    pictures = _draw(recording, output)
    page = output / PAGE
    page.write_text(page_of(recording, found, pictures, output), encoding="utf-8")
    click.echo("\nLook at")
    for path in (page, *pictures, output / RECORDS):
        click.echo(plain(f"  {path}"))
    click.echo("and try")
    for words in _TRY if not over_loopback(recording.header.lab) else _TRY_WITHOUT:
        click.echo(as_typed(f"  {words}"))
    failures = {entry.row.failure for entry in found} - {None}
    for failure in sorted(map(str, failures)):
        click.echo(f"spead-tutorial: {plain(failure)}", err=True)
    return 1 if failures else 0


def _draw(recording: Recording, output: Path) -> list[Path]:
    from spead_tutorial.results import plots  # here, as no other command should wait for it

    try:
        return plots.save(output / "tut-ladder.svg", plots.ladder(recording))
    except plots.MissingError as error:
        click.echo(f"\nNo pictures: {plain(str(error))}.")
        return []

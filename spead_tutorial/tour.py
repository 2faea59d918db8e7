# SPDX-License-Identifier: BSD-3-Clause
"""The tour: every chapter in both languages, what each of them gained, and the proof."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from spead_tutorial import plots
from spead_tutorial.catalogue import BESIDE_LADDER, LADDER, LANGUAGES, find_chapter
from spead_tutorial.lab import Lab, LabError
from spead_tutorial.measure.case import Case, Step, take
from spead_tutorial.measure.machine import header
from spead_tutorial.measure.place import Device, Loopback, Place, over_loopback
from spead_tutorial.measure.rounds import measure, schedule
from spead_tutorial.measure.summary import ROUNDS_FOR_A_CLAIM, Row, rows
from spead_tutorial.records import OURS, Recording, locked
from spead_tutorial.units import size as size_text

__all__ = ["SIZES", "cases", "table", "tour"]

#: Rounds of each size, and how much it sends: 1 is about half a second.
SIZES = {"quick": (3, 1.0), "full": (9, 5.0), "tiny": (2, 1 / 512)}
RECORDS = "tour.jsonl"
_SEED = 20
_TIMEOUT_S = 300.0
_FIRST = 2
_MIB = 1 << 20
_PROGRAMS = [rung.program for rung in (*LADDER, *BESIDE_LADDER)]
_LANGUAGES = {"python": "Python", "c": "C"}


def cases(size: str) -> list[Case]:
    """Return what a tour of a size measures: every chapter in all languages."""
    _, factor = SIZES[size]
    return [
        Case(
            OURS,
            language,
            rung.program,
            rung.heap_size,
            rung.packet_size,
            heaps=max(2, int(rung.mebibytes * factor) * _MIB // rung.heap_size),
        )
        for rung in (*LADDER, *BESIDE_LADDER)
        for language in LANGUAGES
    ]


def tour(size: str, output: Path, *, loopback: bool = False) -> int:
    """Do the tour, show its table, and return the exit status.

    Parameters
    ----------
    size : str
        One of `SIZES`.
    output : path
        Folder for the records and the pictures; it is made where it is missing.
    loopback : bool
        Whether to do without a lab. That is also what happens where there can be none.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(locked(output))
        recording = _measure(Loopback() if loopback else _place(stack), size, output / RECORDS)
        table_rows = sorted(rows(recording), key=_order)
        click.echo(f"\n{table(table_rows, recording)}")
        pictures = _draw(recording, output)
    _say_what_next([*pictures, output / RECORDS])
    failures = {row.failure for row in table_rows if row.failure is not None}
    for failure in sorted(failures):
        click.echo(f"spead-tutorial: {failure}", err=True)
    return 1 if failures else 0


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
    settings = {"size": size, "rounds": rounds, "seed": _SEED}
    unfinished = path.with_suffix(".part")
    unfinished.unlink(missing_ok=True)

    try:
        recording = measure(
            schedule(cases(size), rounds, _SEED),
            lambda step, _: take(place, step, timeout=_TIMEOUT_S),
            header("tour", place.facts(), settings),
            path=unfinished,
            show=lambda steps: _shown(steps, rounds),
            say=lambda step, failure: None,  # the table does
        )
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    return recording


def _shown(steps: Sequence[Step], rounds: int) -> Iterator[Step]:
    """Yield the steps, and show how far they have come."""
    if os.isatty(1):
        with click.progressbar(
            steps, label="Running", item_show_func=lambda step: step.case.name if step else None
        ) as bar:
            yield from bar
        return
    shown = None
    for step in steps:
        if (step.number, step.warm_up) != shown:
            shown = (step.number, step.warm_up)
            click.echo("warming up" if step.warm_up else f"round {step.number + 1} of {rounds}")
        yield step


# ---------------------------------------------------------------------------------------
# Showing


def _order(row: Row) -> tuple[bool, int, bool]:
    sample = row.last
    return sample.heap_size < _MIB, _PROGRAMS.index(sample.program), sample.language == "c"


def table(found: Sequence[Row], recording: Recording) -> str:
    """Write the rows as a table for people."""
    lines = [
        f"{'chapter':36} {'heap':>6}  {'':6} {'MB/s':>9}  {'claimed':>8} {'counted':>8}  "
        f"{'calls/heap':>10} {'CPU s/GB':>8}"
    ]
    size = None
    for row in found:
        if size is not None and row.last.heap_size != size:
            lines.append("")
        size = row.last.heap_size
        lines.append(_line(row))
    return "\n".join([*lines, "", *_legend(recording)])


def _line(row: Row) -> str:
    sample, chapter = row.last, find_chapter(row.last.program)
    title = f"{chapter.number:>2} {chapter.title}"
    mark = "✓" if row.failure is None else "✗"
    rate = _number(None if row.rate is None else row.rate.median / 1e6, 1)
    calls, cpu = _number(row.calls_per_heap, 3), _number(row.cpu_s_per_gb, 2)
    claimed, counted = (
        "—" if n is None else str(n) for n in (sample.packets, sample.counted_packets)
    )
    what = f"{title:36} {size_text(sample.heap_size):>6}  {_LANGUAGES[sample.language]:6} {rate:>9}"
    return f"{what}  {claimed:>8} {counted:>8} {mark}{calls:>10} {cpu:>8}"


def _number(value: float | None, digits: int) -> str:
    return "—" if value is None else f"{value:.{digits}f}"


def _legend(recording: Recording) -> list[str]:
    lab, rounds = recording.header.lab, recording.header.settings["rounds"]
    where = f"{lab['kind']}, MTU {lab['mtu']}"
    lines = [
        f"MB/s: 10⁶ bytes of samples a second, median of {rounds} rounds. Sent to: {where}.",
        "claimed: packets that the last run says it sent. ✓: none failed, and in every run the"
        " counters bear it out.",
    ]
    if rounds < ROUNDS_FOR_A_CLAIM:
        lines.append(
            f"Fewer than {ROUNDS_FOR_A_CLAIM} rounds: a difference of some percent may be chance"
            " (--full has more)."
        )
    if any(sample.chapter == _FIRST for sample in recording.samples):
        lines.append(
            f"Chapter {_FIRST} sends to loopback, at most 100 MB/s, and its time is that of the"
            " whole program."
        )
    if over_loopback(lab):
        return [*lines, "counted: packets that the receiver got, or had no room for."]
    return [*lines, "counted: by the device, to which a message with several packets is one."]


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
    click.echo("  spead-tutorial chapters")

# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial check``: the exercises, and what a program that a reader wrote is worth."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from spead_tutorial import tables
from spead_tutorial.check import arriving, lossless
from spead_tutorial.check.compiling import compiled
from spead_tutorial.check.trying import fault
from spead_tutorial.check.worth import SKELETON, YOURS, Worth, measured, verdict
from spead_tutorial.exercises import Exercise, ReceiverExercise, find_exercise
from spead_tutorial.lab import KINDS, Lab
from spead_tutorial.measure import search
from spead_tutorial.measure.beside import CEILING
from spead_tutorial.measure.case import Step
from spead_tutorial.measure.place import Device
from spead_tutorial.measure.progress import rounds_shown
from spead_tutorial.measure.summary import ROUNDS_FOR_A_CLAIM
from spead_tutorial.records import OURS
from spead_tutorial.stats import Estimate, spread
from spead_tutorial.units import number, percent, size, times

__all__ = ["check"]

#: Of senders; and of receivers, each of which is a search of several runs.
_ROUNDS, _SEARCHES = 5, 3
_Any = Exercise | ReceiverExercise


class _ExerciseType(click.ParamType[_Any]):
    name = "chapter"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> _Any:
        if isinstance(value, Exercise | ReceiverExercise):
            return value
        try:
            return find_exercise(int(str(value)))
        except ValueError as error:
            text = str(error) if str(value).isdecimal() else f"{value!r} is no chapter's number"
            raise click.UsageError(text, ctx) from None


@click.command()
@click.argument("exercise", type=_ExerciseType(), metavar="CHAPTER")
@click.argument("program", required=False,
                type=click.Path(exists=True, dir_okay=False, path_type=Path))  # fmt: skip
@click.option("--skeleton", is_flag=True, help="Print the program to begin with.")
@click.option("--hint", is_flag=True, help="Say what is to be done, and how to begin.")
@click.option("--no-measure", is_flag=True, help="Only look at what it sends, or prints.")
@click.option("--rounds", type=click.IntRange(1, 100),
              help=f"How often each is measured ({_ROUNDS}, or"
                   f" {_SEARCHES} if it receives).")  # fmt: skip
@click.option("--kind", type=click.Choice(KINDS),
              help="Kind of the device that a sender is measured with.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(
    exercise: _Any,
    program: Path | None,
    skeleton: bool,
    hint: bool,
    no_measure: bool,
    rounds: int | None,
    kind: str | None,
    as_json: bool,
) -> int:
    """Check a program that you wrote for a chapter's exercise, and say what it is worth.

    PROGRAM is in Python, and takes the options of the chapter's own. One that sends may be in C,
    too: it is compiled first, against the installed library. It is run in a lab, where
    every byte that it sends is looked at. If they are right, it is measured in turns with the
    skeleton and with the chapter's own program, and with a bare loop of system calls. A program
    that receives is sent known values, and has to print the right ones, and account for every
    packet; then the highest rate is looked for at which it loses nothing. The exit status is 1
    where something is wrong.

    \b
    Example: spead-tutorial check 8 --skeleton > my_sender.py
    Example: spead-tutorial check 8 my_sender.py
    """
    if skeleton or hint:
        if program is not None:
            raise click.UsageError("--skeleton and --hint go without a program")
        click.echo(_handed_out(exercise, skeleton, hint), nl=False)
        return 0
    if program is None:
        raise click.UsageError("say which program: my_sender.py; or --skeleton, to begin one")
    if program.suffix != ".c":
        return _checked(exercise, program, program.resolve(), no_measure, rounds, kind, as_json)
    if isinstance(exercise, ReceiverExercise):
        raise click.UsageError("a program that receives has to be in Python: my_receiver.py")
    with tempfile.TemporaryDirectory() as folder:
        made = compiled(program.resolve(), Path(folder))
        return _checked(exercise, program, made, no_measure, rounds, kind, as_json)


def _checked(
    exercise: _Any,
    program: Path,
    made: Path,
    no_measure: bool,
    rounds: int | None,
    kind: str | None,
    as_json: bool,
) -> int:
    """Check a program, which is called one thing and may have been made into another."""
    sends = isinstance(exercise, Exercise)
    wrong = _fault(exercise, made)
    if wrong is not None:
        if as_json:
            click.echo(json.dumps(_facts(exercise, program.name, wrong)))
        raise click.ClickException(wrong)
    say: Callable[[str], None] = _say_nothing if as_json else click.echo
    say(f"{program.name} {'sends what it should' if sends else 'receives all that was sent'}.")
    worth = None
    if (why := _not_measured(exercise)) is not None:
        say(why)
    elif not no_measure:
        rounds = rounds or (_ROUNDS if sends else _SEARCHES)
        worth = _measure(exercise, made, rounds, kind, as_json)
        say("\n".join(_lines(exercise, program.name, worth, rounds)))
    if as_json:
        click.echo(json.dumps(_facts(exercise, program.name, None, worth)))
    return 0


def _fault(exercise: _Any, program: Path) -> str | None:
    if isinstance(exercise, ReceiverExercise):
        return arriving.fault(exercise, program)
    return fault(exercise, program)


def _not_measured(exercise: _Any) -> str | None:
    """Say why a program is not measured; None where it is."""
    if isinstance(exercise, ReceiverExercise):
        if exercise.heap_size is not None:
            return None
        return "There was no receiver before it, so there is nothing to measure it beside."
    if exercise.is_limited:
        return "Its rate is limited, so there is nothing to measure."
    return None


def _handed_out(exercise: _Any, skeleton: bool, hint: bool) -> str:
    program = exercise.skeleton.read_text(encoding="utf-8")
    return program * skeleton + f"{exercise.task}\n{exercise.hint}\n" * hint


def _say_nothing(line: str) -> None:
    pass


def _measure(exercise: _Any, program: Path, rounds: int, kind: str | None, as_json: bool) -> Worth:
    def show(steps: Sequence[Step]) -> Iterable[Step]:
        return steps if as_json else rounds_shown(steps, rounds)

    if isinstance(exercise, ReceiverExercise):
        return lossless.measured(exercise, program, rounds, show)
    with Lab(kind) as lab:
        return measured(Device(lab), exercise, program, rounds, show)


# ---------------------------------------------------------------------------------------
# Showing


def _titles(exercise: _Any, name: str) -> dict[str, str]:
    return {
        SKELETON: "the skeleton",
        YOURS: name,
        OURS: f"chapter {exercise.chapter.number}",
        CEILING: "bare loop",
    }


def _lines(exercise: _Any, name: str, worth: Worth, rounds: int) -> list[str]:
    """Return the table, what is in it, and the verdict."""
    titles = _titles(exercise, name)
    base, bare = _base(worth), CEILING in worth.found
    rows = [["", "MB/s", spread([rounds]), "gain", *["share"] * bare]]
    for who, row in worth.found.items():
        assert row.rate is not None
        gained = worth.times(who, base) if who != base else None
        share = _share(worth, who) if who != CEILING else None
        shares = [percent(share.median) if share else ""] * bare
        rate = tables.cells(row.rate, lambda x: number(x / 1e6))
        rows.append([titles[who], *rate, times(gained.median) if gained else "", *shares])
    lines = tables.lines(rows, words=(0,))
    lines += ["", *_notes(exercise, worth, rounds), "", f"{verdict(worth, name)}."]
    return [line.replace("\N{THIN SPACE}", "") for line in lines]


def _base(worth: Worth) -> str:
    """Return what rates are given as multiples of."""
    return SKELETON if SKELETON in worth.found else OURS


def _share(worth: Worth, who: str) -> Estimate | None:
    return worth.times(who, CEILING) if CEILING in worth.found else None


def _notes(exercise: _Any, worth: Worth, rounds: int) -> list[str]:
    if isinstance(exercise, ReceiverExercise):
        return _notes_of_searches(exercise, worth)
    rung = exercise.rung
    notes = [
        f"MB/s: 10⁶ bytes of samples a second, in heaps of {size(rung.heap_size)}.",
        f"gain: times as fast as {_titles(exercise, '')[_base(worth)]}, by ratios within rounds.",
        "share: of the bare loop's rate."
        if worth.without_ceiling is None
        else f"Without a bare loop: {worth.without_ceiling}.",
    ]
    if rounds < ROUNDS_FOR_A_CLAIM:
        notes.append(
            f"Fewer than {ROUNDS_FOR_A_CLAIM} rounds: a difference of some percent may be chance"
            f" (--rounds {ROUNDS_FOR_A_CLAIM})."
        )
    return notes


def _notes_of_searches(exercise: ReceiverExercise, worth: Worth) -> list[str]:
    notes = [
        "MB/s: the highest rate of payload at which nothing was lost, in heaps of"
        f" {size(exercise.heap_size or 0)}.",
        "gain: times that of the skeleton, by ratios within rounds.",
        f"Rates that differ by less than {percent(worth.close)} are called the same.",
    ]
    bounds = [who for who, row in worth.found.items() if search.is_bound(row.samples)]
    if bounds:
        titles = _titles(exercise, "yours")
        names = ", ".join(titles[who] for who in bounds)
        notes.append(f"A lower bound, as the sender was the slower one: {names}.")
    return notes


def _facts(
    exercise: _Any, name: str, wrong: str | None, worth: Worth | None = None
) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "chapter": exercise.chapter.number,
        "program": name,
        "right": wrong is None,
        "fault": wrong,
    }
    if worth is None:
        return facts
    measured_rows = {
        who: {
            "rate_bytes_per_s": _estimate(row.rate),
            "times_skeleton": _estimate(
                worth.times(who, SKELETON) if SKELETON in worth.found else None
            ),
            "times_chapter": _estimate(worth.times(who, OURS)),
            "share_of_bare_loop": _estimate(_share(worth, who)),
        }
        for who, row in worth.found.items()
    }
    return facts | {"measured": measured_rows, "verdict": verdict(worth, name)}


def _estimate(estimate: Estimate | None) -> dict[str, float] | None:
    if estimate is None:
        return None
    return {"median": estimate.median, "low": estimate.low, "high": estimate.high}

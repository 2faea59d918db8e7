# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial check``: the exercises, and how good a program is that a reader wrote."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

import click

from spead_tutorial.chapters import exercises
from spead_tutorial.chapters.catalogue import ReceiverExercise, SenderExercise
from spead_tutorial.check import arriving, comparison, trying
from spead_tutorial.check.comparison import SKELETON, YOURS, Comparison, verdict
from spead_tutorial.lab import Lab
from spead_tutorial.lab.device import RefusedError, instead
from spead_tutorial.measure.analysis import ROUNDS_FOR_A_CLAIM
from spead_tutorial.measure.baselines import CEILING
from spead_tutorial.measure.place import Device
from spead_tutorial.measure.records import OURS
from spead_tutorial.measure.stats import Estimate, spread
from spead_tutorial.results.tables import Column, Table, estimate, plain
from spead_tutorial.results.units import number, percent, size, times
from spead_tutorial.tools.command_line import Whole, parsed, worded
from spead_tutorial.tools.progress import Steps

_Exercise = SenderExercise | ReceiverExercise


class _Kind(NamedTuple):
    """How programs of a kind are spoken of."""

    suffixes: tuple[str, ...]
    languages: str
    is_right: str
    over_loopback: tuple[str, str]  # what shows something of one without a lab, in two terminals


_SENDING = _Kind(
    (".py", ".c"),
    "sends has to be in Python or C: my_sender.py, my_sender.c",
    "sends what it should",
    ("spead-tutorial recv 127.0.0.1:8888", "{start} 127.0.0.1 8888"),
)
_ONE_OF_MANY = _SENDING._replace(
    over_loopback=(_SENDING.over_loopback[0], "{start} 127.0.0.1:8888")
)
_RECEIVING = _Kind(
    (".py",),
    "receives has to be in Python: my_receiver.py",
    "receives all that was sent",
    ("{start} 127.0.0.1:8888", "spead-tutorial run 6 --host 127.0.0.1 --port 8888"),
)


def _parsed_exercise(text: str) -> _Exercise:
    if not text.isdecimal():
        raise ValueError(f"{text!r} is no chapter's number: say it as 8")
    return exercises.find_exercise(int(text))


@click.command()
@click.argument("exercise", type=parsed(_parsed_exercise), metavar="CHAPTER")
@click.argument("program", required=False,
                type=click.Path(exists=True, dir_okay=False, path_type=Path))  # fmt: skip
@click.option("--skeleton", is_flag=True, help="Print the program to begin with.")
@click.option("--hint", is_flag=True, help="Say what is to be done, and how to begin.")
@click.option("--no-measure", is_flag=True, help="Only look at what it sends, or prints.")
@click.option("--rounds", type=Whole(1, 100), default=5, show_default=True,
              help="How often each is measured.")  # fmt: skip
def check(
    exercise: _Exercise,
    program: Path | None,
    skeleton: bool,
    hint: bool,
    no_measure: bool,
    rounds: int,
) -> int:
    """Check a program that you wrote for a chapter's exercise, and say how fast it is.

    PROGRAM is in Python, and takes the options of the chapter's own. One that sends may also
    be in C: it is compiled first, against the installed library. It is run in a lab, where
    every byte that it sends is looked at. If they are right, it is measured in turns with the
    skeleton and with the chapter's own program, and with a bare loop of system calls. A program
    that receives is sent known values, and has to print the right ones, and account for every
    packet; it is not measured. The exit status is 1 where something is wrong.

    \b
    Example: spead-tutorial check 8 --skeleton > my_sender.py
    Example: spead-tutorial check 8 my_sender.py
    """
    if skeleton or hint:
        if program is not None:
            raise click.UsageError("--skeleton and --hint go without a program")
        text = exercises.skeleton(exercise).read_text(encoding="utf-8") if skeleton else ""
        click.echo(text + f"{exercise.task}\n{exercise.hint}\n" * hint, nl=False)
        return 0
    if program is None:
        raise click.UsageError("say which program: my_sender.py; or --skeleton, to begin one")
    kind = _RECEIVING
    if isinstance(exercise, SenderExercise):
        kind = _ONE_OF_MANY if "a" in exercise.chapter.accepted else _SENDING
    if program.suffix not in kind.suffixes:
        raise click.UsageError(f"a program that {kind.languages}")
    with tempfile.TemporaryDirectory() as folder:
        made = program.resolve()
        if program.suffix == ".c":
            made = trying.compiled(made, Path(folder))
        try:
            if isinstance(exercise, SenderExercise):
                wrong = trying.fault(exercise, made)
            else:
                wrong = arriving.fault(exercise, made)
        except RefusedError as error:
            raise instead(error, *_over_loopback(program, *kind.over_loopback)) from None
        if wrong is not None:
            raise click.ClickException(wrong)
        click.echo(plain(f"{program.name} {kind.is_right}."))
        if isinstance(exercise, ReceiverExercise) or no_measure:
            return 0
        if exercise.is_limited:
            click.echo("Its rate is limited, so there is nothing to measure.")
            return 0
        with Lab() as lab, Steps() as show:
            found = comparison.measured(Device(lab), exercise, made, rounds, show)
    click.echo("\n".join(_lines(exercise, program.name, found, rounds)))
    return 0


def _over_loopback(program: Path, first: str, second: str) -> tuple[str, str]:
    """Say what shows something of a program without a lab."""
    start = f"python {program}" if program.suffix == ".py" else "your program"
    return (
        f"without root, not checked, over loopback, in one terminal: {first.format(start=start)}",
        f"and then in another: {second.format(start=start)}",
    )


# ---- Showing ----


def _titles(exercise: SenderExercise, name: str) -> dict[str, str]:
    return {
        SKELETON: "the skeleton",
        YOURS: name,
        OURS: f"chapter {exercise.chapter.number}",
        CEILING: "bare loop",
    }


def _lines(exercise: SenderExercise, name: str, found: Comparison, rounds: int) -> list[str]:
    titles, base = _titles(exercise, name), _base(found)
    columns: list[Column[str]] = [
        *estimate(
            ("MB/s", spread([rounds])),
            lambda who: found.found[who].rate,
            lambda x: number(x / 1e6),
        ),
        Column(
            "gain",
            lambda who: found.times(who, base) if who != base else None,
            lambda gain: times(gain.median),
        ),
        Column(
            "share",
            lambda who: _relative(found, who, CEILING) if who != CEILING else None,
            lambda share: percent(share.median),
        ),
    ]
    table = Table([Column("", titles.get, is_words=True)], columns, list(found.found))
    notes = [plain(note) for note in _notes(exercise, found, rounds)]
    return [str(table), "", *notes, "", plain(f"{verdict(found, name)}.")]


def _base(found: Comparison) -> str:
    """Return what rates are given as multiples of."""
    return SKELETON if SKELETON in found.found else OURS


def _relative(found: Comparison, who: str, base: str) -> Estimate | None:
    """Return how many times as fast one is as another, if that was measured."""
    return found.times(who, base) if base in found.found else None


def _notes(exercise: SenderExercise, found: Comparison, rounds: int) -> list[str]:
    titles = _titles(exercise, "yours")
    said = worded(
        Path(__file__).with_suffix(".jinja"),
        heap=size(exercise.heap_size),
        base=titles[_base(found)],
        without_ceiling=found.without_ceiling,
        rounds=rounds,
        ROUNDS=ROUNDS_FOR_A_CLAIM,
    )
    return str(said).splitlines()

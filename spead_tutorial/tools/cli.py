# SPDX-License-Identifier: BSD-3-Clause
"""The command line: ``spead-tutorial``, with all its commands."""

from collections.abc import Mapping, Sequence

import click

import spead_tutorial
from spead_tutorial.chapters.catalogue import (
    ARRAY,
    CHAPTERS,
    RECEIVERS,
    STEPS,
    Chapter,
    Receiver,
    find_program,
)
from spead_tutorial.measure import programs
from spead_tutorial.results.tables import Column, Table, filled
from spead_tutorial.tools.array.command import array
from spead_tutorial.tools.check import check
from spead_tutorial.tools.command_line import LANGUAGE, OF_LANGUAGES, as_process, as_typed
from spead_tutorial.tools.doctor import doctor
from spead_tutorial.tools.lab import lab
from spead_tutorial.tools.notebooks import notebook
from spead_tutorial.tools.recv import recv
from spead_tutorial.tools.run import run
from spead_tutorial.tools.tour import last_gains, tour
from spead_tutorial.tools.why import why


@click.group(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(spead_tutorial.__version__, prog_name="spead-tutorial")
@click.pass_context
def cli(context: click.Context) -> int:
    """A laboratory for high-rate UDP senders: SPEAD heaps, fast, measured, explained.

    Example: spead-tutorial tour
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
    return 0


_OF_TOUR = (
    "Python, C: how many times as fast as the step before, with heaps of 1 MiB, in the tour of"
    " results/tour (?: cannot tell)."
)
_OF_NO_TOUR = "What each gains here is not measured yet: the command tour does that."
_SECTIONS: dict[str, Sequence[Chapter | Receiver]] = {
    "Senders": CHAPTERS,
    "Steps, run by their names": STEPS,
    "Receivers, run with a sender": RECEIVERS,
    "An array: many run together": ARRAY,
}


def _listed(gains: Mapping[tuple[str, str], str]) -> Table[Chapter | Receiver]:
    """Return the chapters' titles, programs and options, and what a tour has found here."""

    def gain(by: str) -> Column[Chapter | Receiver]:
        return Column(by, lambda one: gains.get((one.name, by)))

    names: list[Column[Chapter | Receiver]] = [
        Column("chapter", lambda one: f"{one.number:>2} {one.title}", is_words=True, is_cut=True),
        Column("program", lambda one: one.name, is_words=True),
        Column("options", lambda one: " ".join(one.flags), is_words=True, is_spare=True),
    ]
    values: list[Column[Chapter | Receiver]] = [
        Column("minutes", lambda one: one.minutes or None, is_spare=True),
        *map(gain, dict.fromkeys(by for _, by in gains)),
    ]
    sections = {id(one): title for title, its in _SECTIONS.items() for one in its}
    rows = [one for its in _SECTIONS.values() for one in its]
    return Table(names, values, rows, section=lambda one: sections[id(one)])


@cli.command()
def chapters() -> int:
    """List the chapters that have programs, with what each gained in the last tour.

    Example: spead-tutorial chapters
    """
    there = programs.built()
    gains = last_gains()
    click.echo(f"{_listed(gains)}\n")
    click.echo(filled(_OF_TOUR if gains else _OF_NO_TOUR))
    languages = f"{', '.join(there[:-1])} and {there[-1]}"
    click.echo(as_typed(f"Each is there in {languages}. Run one: spead-tutorial run 10"))
    return 0


@cli.command()
@click.argument("program")
@click.option("--lang", type=LANGUAGE, default="python", show_default=True, metavar=OF_LANGUAGES,
              help="Which of a chapter's programs.")  # fmt: skip
def path(program: str, lang: str) -> int:
    """Print where a program is, to start it under strace, say.

    PROGRAM is a chapter's number, or the name of a program (see spead-tutorial chapters); or
    ceiling, which sends with bare system calls; or sink. Programs in Python are started with
    python. Each lists its options with --help.

    \b
    Example: spead-tutorial path 10 --lang c
    Example: spead-tutorial lab -- strace -c $(spead-tutorial path ceiling) -n 100 192.168.31.2 8888
    """
    if program in programs.TOOLS:
        click.echo(programs.program_path(program, "c"))
        return 0
    if program in (one.name for one in ARRAY):
        click.echo(programs.program_path(program, lang))
        return 0
    try:
        chapter = find_program(program)
    except ValueError:
        raise click.UsageError(
            f"there is no program {program!r}: say {', '.join(programs.TOOLS)}, or a chapter,"
            " which spead-tutorial chapters lists"
        ) from None
    click.echo(programs.program_path(chapter.name, lang))
    return 0


for _command in (array, check, doctor, lab, notebook, recv, run, tour, why):
    cli.add_command(_command)


def main() -> None:
    as_process(cli, "spead-tutorial")


if __name__ == "__main__":
    main()

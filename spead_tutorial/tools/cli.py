# SPDX-License-Identifier: BSD-3-Clause
"""The command line: ``spead-tutorial``, with all its commands."""

import dataclasses
import json

import click

import spead_tutorial
from spead_tutorial.chapters.catalogue import ARRAY, CHAPTERS, RECEIVERS, STEPS, find_program
from spead_tutorial.measure import programs
from spead_tutorial.tools.check import check
from spead_tutorial.tools.command_line import LANGUAGE, OF_LANGUAGES, as_process, as_typed
from spead_tutorial.tools.doctor import doctor
from spead_tutorial.tools.lab import lab, sink
from spead_tutorial.tools.notebooks import notebook
from spead_tutorial.tools.recv import recv
from spead_tutorial.tools.run import run
from spead_tutorial.tools.timeline import timeline
from spead_tutorial.tools.tour import tour
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


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def chapters(as_json: bool) -> int:
    """List the chapters that have programs.

    Example: spead-tutorial chapters
    """
    there = programs.built()
    if as_json:
        rows = [
            dataclasses.asdict(one) | {"languages": there}
            for one in (*CHAPTERS, *RECEIVERS, *ARRAY)
        ]
        click.echo(json.dumps(rows, indent=2))
        return 0
    click.echo(f"{'':>2}  {'program':24} {'options':11} what changed")
    for chapter in CHAPTERS:
        flags = " ".join(chapter.flags)
        click.echo(f"{chapter.number:>2}  {chapter.name:24} {flags:11} {chapter.change}")
    click.echo("\nSteps on the way to a chapter, which are run by their name:")
    for step in STEPS:
        click.echo(f"    {step.name:24} {' '.join(step.flags):11} {step.change}")
    click.echo("\nReceivers, each of which is run with a sender:")
    for receiver in RECEIVERS:
        flags = " ".join(("--from", *receiver.flags))
        click.echo(f"{receiver.number:>2}  {receiver.name:24} {flags:12} {receiver.change}")
    click.echo("\nPrograms of an array, many of which run together:")
    for one in ARRAY:
        click.echo(f"{one.number:>2}  {one.name:24} {' '.join(one.flags):11} {one.change}")
    languages = f"{', '.join(there[:-1])} and {there[-1]}"
    click.echo(as_typed(f"\nEach is there in {languages}. Run one: spead-tutorial run 10"))
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


for _command in (check, doctor, lab, notebook, recv, run, sink, timeline, tour, why):
    cli.add_command(_command)


def main() -> None:
    as_process(cli, "spead-tutorial")


if __name__ == "__main__":
    main()

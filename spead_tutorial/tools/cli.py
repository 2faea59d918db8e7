# SPDX-License-Identifier: BSD-3-Clause
"""The command line: ``spead-tutorial``.

What goes wrong is one line on stderr. Exit status: 1 where it could not be done, 2 where it
was asked for wrongly, 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP.
"""

from spead_tutorial_run import how_it_ended

import dataclasses
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

import spead_tutorial
from spead_tutorial.chapters.catalogue import (
    CHAPTERS,
    LANGUAGES,
    RECEIVERS,
    STEPS,
)
from spead_tutorial.lab import LabError
from spead_tutorial.lab.sink import sink
from spead_tutorial.measure import machine, programs, timeline
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.measure.records import RecordError
from spead_tutorial.results.tables import plain
from spead_tutorial.tools import doctor as doctor_module
from spead_tutorial.tools import notebooks, standard_streams
from spead_tutorial.tools.check import check
from spead_tutorial.tools.lab import lab
from spead_tutorial.tools.recv import recv
from spead_tutorial.tools.run import find_program, run
from spead_tutorial.tools.tour.command import tour
from spead_tutorial.tools.why.command import why

__all__ = ["cli", "finish", "main"]

_FAILED, _WRONG = 1, 2
_MARKS = {"ok": ("ok", "green"), "warn": ("warn", "yellow"), "fail": ("FAIL", "red")}


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
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor(as_json: bool) -> int:
    """Say what this machine can do, and how to mend what is missing.

    The exit status is 1 where the lab cannot work.

    Example: spead-tutorial doctor
    """
    findings = []
    for finding in doctor_module.examine():
        findings.append(finding)
        if not as_json:
            _show_finding(finding)
    works = all(finding.state != "fail" for finding in findings)
    if as_json:
        facts = {
            "findings": [dataclasses.asdict(finding) for finding in findings],
            "machine": machine.machine_facts(),
            "versions": machine.versions(),
            "works": works,
        }
        click.echo(json.dumps(facts, indent=2))
    elif not works:
        click.echo("\nWhere root made the device by hand, programs reach it with")
        click.echo("--host 192.168.31.2 --port 8888. Without root, over loopback:")
        click.echo("spead-tutorial run 10 --host 127.0.0.1 --port 8888")
    return 0 if works else _FAILED


def _show_finding(finding: doctor_module.Check) -> None:
    mark, colour = _MARKS[finding.state]
    click.echo(f"{click.style(f'{mark:>4}', fg=colour)}  {finding.name:18} {finding.value}")
    if finding.mend is not None:
        click.echo(f"{'':24} → {finding.mend}")


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def chapters(as_json: bool) -> int:
    """List the chapters that have programs.

    Example: spead-tutorial chapters
    """
    there = programs.built()
    if as_json:
        rows = [dataclasses.asdict(one) | {"languages": there} for one in (*CHAPTERS, *RECEIVERS)]
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
    languages = f"{', '.join(there[:-1])} and {there[-1]}"
    click.echo(f"\nEach is there in {languages}. Run one: spead-tutorial run 10")
    return 0


cli.add_command(run)
cli.add_command(lab)
cli.add_command(recv)
cli.add_command(check)
cli.add_command(sink)
cli.add_command(timeline.command)
cli.add_command(tour)
cli.add_command(why)


@cli.command()
@click.argument("program")
@click.option("--lang", type=click.Choice(LANGUAGES), default="python", show_default=True,
              help="Which of a chapter's programs.")  # fmt: skip
def path(program: str, lang: str) -> int:
    """Print where a program is, to start it under strace, say.

    PROGRAM is a chapter's number, or the name of a program (see spead-tutorial chapters); or
    ceiling, which sends with bare system calls; or sink. Programs in Python are started with
    python. Each lists its options with --help.

    \b
    Example: spead-tutorial path 10 --lang c
    Example: strace -c $(spead-tutorial path ceiling) -n 100 127.0.0.1 8888
    """
    if program in programs.TOOLS:
        click.echo(programs.program_path(program, "c"))
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


@cli.command()
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path),
              default=Path(notebooks.FOLDER), show_default=True,
              help="Where the notebooks are.")  # fmt: skip
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def notebook(folder: Path, arguments: tuple[str, ...]) -> int:
    """Open the notebooks in JupyterLab, at the one to start with.

    ARGUMENTS, after --, are JupyterLab's.

    Example: spead-tutorial notebook -- --no-browser
    """
    start = folder / f"{notebooks.START}.ipynb"
    if not start.is_file():
        where = "say it in the repository's folder, or where they are: --folder"
        raise click.ClickException(f"there are no notebooks in {folder}: {where}")
    if importlib.util.find_spec("jupyterlab") is None:
        raise click.ClickException(
            "JupyterLab is not installed: pip install 'spead-tutorial[notebook]'"
        )
    # What JupyterLab shows is the folder's parent, so that links to the programs lead to them.
    root = folder.resolve().parent
    opened = [f"--ServerApp.root_dir={root}"]
    opened += [f"--LabApp.default_url=/lab/tree/{start.resolve().relative_to(root).as_posix()}"]
    sys.stdout.flush()
    # In this process's place: Ctrl-C is then JupyterLab's alone, which asks what is meant.
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *opened, *arguments])


def _say(name: str, message: str) -> None:
    click.echo(f"{name}: {plain(' '.join(message.split()))}", err=True)


def finish(command: click.Command, name: str, arguments: Sequence[str] | None) -> int:
    """Run a command line and return the exit status; what goes wrong is one line on stderr."""
    standard_streams.prepare()
    try:
        status = command.main(arguments, prog_name=name, standalone_mode=False)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx is not None else name
        _say(name, f"{error.format_message().rstrip('.')} (see {path} --help)")
        return _WRONG
    except (LabError, ProgramError, RecordError, click.ClickException) as error:
        _say(
            name, error.format_message() if isinstance(error, click.ClickException) else str(error)
        )
        return _FAILED
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _say(name, f"{place}{error.strerror or error}")
        return _FAILED
    except (click.Abort, KeyboardInterrupt) as error:
        how, ended = how_it_ended(error.__cause__ if isinstance(error, click.Abort) else error)
        _say(name, how)
        return ended
    return status if isinstance(status, int) else 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process."""
    sys.exit(finish(cli, "spead-tutorial", arguments))


if __name__ == "__main__":
    main()

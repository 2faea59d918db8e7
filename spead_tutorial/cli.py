# SPDX-License-Identifier: BSD-3-Clause
"""The command line: ``spead-tutorial``.

What goes wrong is one line on stderr. Exit status: 1 where it could not be done, 2 where it
was asked for wrongly, 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP.
"""

from spead_tutorial_run import how_it_ended

import contextlib
import dataclasses
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

import spead_tutorial
from spead_tutorial import _standard_streams, notebook_run
from spead_tutorial import doctor as doctor_module
from spead_tutorial import tour as tour_module
from spead_tutorial.catalogue import (
    CHAPTERS,
    LANGUAGES,
    RECEIVERS,
    STEPS,
    SWITCHES,
    Chapter,
    Receiver,
    find_chapter,
    find_receiver,
)
from spead_tutorial.check.command import check
from spead_tutorial.hosts import way as crossing
from spead_tutorial.hosts.engines import Engines
from spead_tutorial.hosts.file import Host as FarHost
from spead_tutorial.hosts.file import Hosts, read_hosts
from spead_tutorial.lab import KINDS, Lab, LabError
from spead_tutorial.lab.commands import IN, check_fresh, lab
from spead_tutorial.lab.sink import sink
from spead_tutorial.measure import delivery, machine, programs, progress, timeline
from spead_tutorial.measure.place import Device, Host, Place
from spead_tutorial.measure.programs import ProgramError, ProgramOptions, Result
from spead_tutorial.measure.report import Report
from spead_tutorial.receive import recv
from spead_tutorial.records import RecordError
from spead_tutorial.why.command import why

__all__ = ["cli", "finish", "main"]

_FAILED, _WRONG = 1, 2
_MARKS = {"ok": ("ok", "green"), "warn": ("warn", "yellow"), "fail": ("FAIL", "red")}
_SIZE = click.IntRange(1, 2**63 - 1)  # as the programs have it


class _Wrong(click.UsageError):
    """What was asked for cannot be: status 2."""


class _ChapterType(click.ParamType[Chapter | Receiver]):
    name = "chapter"

    def __init__(self, receivers: bool) -> None:
        self._receivers = receivers

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Chapter | Receiver:
        if isinstance(value, Chapter | Receiver):
            return value
        receiver = find_receiver(str(value)) if self._receivers else None
        if receiver is not None:
            return receiver
        try:
            return find_chapter(str(value))
        except ValueError as error:
            raise _Wrong(str(error), ctx) from None


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


def _show_finding(finding: doctor_module.Finding) -> None:
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


@cli.command()
@click.argument("chapter", type=_ChapterType(receivers=True))
@click.option("--lang", type=click.Choice(LANGUAGES), default="python", show_default=True,
              help="Which of its programs.")  # fmt: skip
@click.option("--from", "sender", type=_ChapterType(receivers=False), metavar="CHAPTER",
              help="Whose program sends to a chapter that receives: 2 by default; with --hosts a"
                   " sender that has a --rate.")  # fmt: skip
@click.option("--from-lang", type=click.Choice(LANGUAGES),
              help="Which of its programs: that of --lang by default.")  # fmt: skip
@click.option("--rate", type=click.FloatRange(0.125, 4000), metavar="MB/S",
              help="Rate of the link between them, headers included; senders wait. With --hosts the"
                   " sender's own: by default below that of its link.")  # fmt: skip
@click.option("-n", "heaps", type=_SIZE, metavar="HEAPS", help="Heaps to send.")
@click.option("-H", "heap_size", type=_SIZE, metavar="BYTES", help="Bytes of samples in a heap.")
@click.option("-p", "packet_size", type=_SIZE, metavar="BYTES",
              help="Bytes in a packet at most, UDP and IP not counted.")  # fmt: skip
@click.option("-r", "random", is_flag=True, help="Random samples instead of a fill.")
@click.option("-s", "streams", type=click.IntRange(1, 1024), metavar="COUNT",
              help="Streams, each with a thread of its own.")  # fmt: skip
@click.option("-b", "buffers", type=click.IntRange(0, 1000), metavar="COUNT",
              help="Heaps that a receiver's pool has memory for.")  # fmt: skip
@click.option("-c", "cores", metavar="A,B",
              help="Cores to pin the program's thread and the stream's to.")  # fmt: skip
@click.option("--copy", is_flag=True, help="Have the kernel copy the samples.")
@click.option("--small-pages", is_flag=True, help="Ordinary pages for them, not huge ones.")
@click.option("--fill", is_flag=True, help="Write the samples anew before they are sent.")
@click.option("--kind", type=click.Choice(KINDS), help="Kind of the lab's device.")
@IN
@click.option("--host", help="Send there, outside a lab.")
@click.option("--port", type=click.IntRange(1, 65535), help="UDP port of that host.")
@click.option("--allow-real-network", is_flag=True,
              help="Let packets leave this machine.")  # fmt: skip
@click.option("--hosts", "hosts_file", metavar="FILE",
              type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Run a chapter that receives between two of the hosts that a file names"
                   " (hosts.toml).")  # fmt: skip
@click.option("--from-host", metavar="NAME", help="Which of them sends.")
@click.option("--to-host", metavar="NAME", help="Which of them receives.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def run(
    chapter: Chapter | Receiver,
    lang: str,
    sender: Chapter | None,
    from_lang: str | None,
    rate: float | None,
    heaps: int | None,
    heap_size: int | None,
    packet_size: int | None,
    random: bool,
    streams: int | None,
    buffers: int | None,
    cores: str | None,
    copy: bool,
    small_pages: bool,
    fill: bool,
    kind: str | None,
    within: str | None,
    host: str | None,
    port: int | None,
    allow_real_network: bool,
    hosts_file: Path | None,
    from_host: str | None,
    to_host: str | None,
    as_json: bool,
) -> int:
    """Run a chapter's program in a fresh lab, or in one that stays (spead-tutorial lab up).

    CHAPTER is a number or the name of a program. It prints the rate, payload bytes over
    time, and what proves it: the packets that the program claims, and what the device
    counted. While that lasts, a terminal shows how far it has come. A chapter takes only the
    options that it introduced or inherited: see spead-tutorial chapters.

    A chapter that receives is run with one that sends to it, on the two machines of a lab, and
    the options of that one are passed on to it. What both print is shown, and then what became of
    all packets. The exit status is 1 where one of them failed, or something is missing. With
    --hosts, they are run on two machines, of which ssh starts an engine on each.

    \b
    Example: spead-tutorial run 10 --lang c -n 524288 -H 8192
    Example: spead-tutorial run 7 --from 6 --rate 500 -n 2000
    Example: spead-tutorial run 7 --hosts hosts.toml --from-host a --to-host b --allow-real-network
    """
    between = hosts_file, from_host, to_host
    if any(between) and not all(between):
        raise _Wrong("--hosts, --from-host and --to-host go together")
    if hosts_file and (isinstance(chapter, Chapter) or host or kind or within):
        raise _Wrong("--hosts is for chapters that receive, without a lab: --host, --kind and --in"
                     " do not go with it")  # fmt: skip
    if hosts_file and sender and rate:
        raise _Wrong("with --hosts, chapters send as fast as they can: --rate goes without --from")
    if hosts_file and from_lang and not sender:
        raise _Wrong("--from-lang goes with --from")
    if hosts_file is None and (host is None) != (port is None):
        raise _Wrong("--host and --port go together")
    if host is None and hosts_file is None and allow_real_network:
        raise _Wrong("--allow-real-network needs --host and --port: a lab has no real network")
    if host is not None and kind is not None:
        raise _Wrong("--kind is a lab's: it does not go with --host")
    if host is not None and within is not None:
        raise _Wrong(f"--host is outside of the lab {within!r} (--in, SPEAD_TUTORIAL_LAB)")
    check_fresh(kind, within)
    given = zip(SWITCHES, (copy, small_pages, fill), strict=True)
    switches = tuple(word for word, is_given in given if is_given)
    options = ProgramOptions(heaps, heap_size, packet_size, random, streams, cores, switches)
    if isinstance(chapter, Receiver):
        if host is not None:
            raise _Wrong(f"chapter {chapter.number} receives: it is run in a lab, without --host")
        if kind is not None:
            raise _Wrong(f"chapter {chapter.number} receives: --kind is of a device that does not")
        if hosts_file is not None and from_host is not None and to_host is not None:
            way = _Way(hosts_file, (from_host, to_host), port or 8888, allow_real_network)
            languages = lang, "c" if sender is None else from_lang or lang
            return _run_between(
                way, chapter, sender or crossing.BLAST, languages, options, buffers, rate, as_json
            )
        return _run_receiver(
            chapter, sender or find_chapter("2"), (lang, from_lang or lang), options,
            buffers, rate, within, as_json,
        )  # fmt: skip
    if any(given is not None for given in (sender, from_lang, rate, buffers)):
        raise _Wrong(f"chapter {chapter.number} sends: --from, --from-lang, --rate and -b are for"
                     " receivers")  # fmt: skip
    destination = None if host is None or port is None else (host, port)
    try:
        programs.command(chapter, lang, options, destination)
    except ValueError as error:
        raise _Wrong(str(error)) from None
    with contextlib.ExitStack() as stack:
        place: Place
        share = None
        if destination is None:
            here = stack.enter_context(_lab(chapter, kind, within))
            place, share = Device(here), progress.share_sent(here, chapter, options)
        else:
            place = Host(*destination, allow_real_network=allow_real_network)
        with progress.shown(share):
            result = programs.run(place, chapter, lang, options)
    return _show_result(result, as_json)


def _lab(chapter: Chapter, kind: str | None, within: str | None) -> Lab:
    """Make a lab, or enter one that stays; where there can be none, say what works without."""
    if within is not None:
        return Lab.join(within)
    try:
        return Lab(kind)
    except LabError as error:
        if not chapter.takes_destination:
            raise
        raise LabError(
            f"{error}; or send over loopback, which takes no root: --host 127.0.0.1 --port 8888"
        ) from None


def _show_result(result: Result, as_json: bool) -> int:
    if as_json:
        click.echo(json.dumps(result.as_dict()))
    if result.failure is not None or result.rate is None:
        _complain(result.failure or "it has no rate")
        return _FAILED
    click.echo(result.said, err=True, nl=False)
    if not as_json:
        click.echo(f"{result.rate / 1e6:.2f} MB/s")
        click.echo(f"proof: {result.proof}")
    return 0


def _run_receiver(
    receiver: Receiver,
    sender: Chapter,
    languages: tuple[str, str],
    options: ProgramOptions,
    buffers: int | None,
    rate: float | None,
    within: str | None,
    as_json: bool,
) -> int:
    told = _told(receiver, sender, languages, options, buffers)
    far = sender.takes_destination  # and can send to another machine
    if rate is not None and not far:
        raise _Wrong(
            f"chapter {sender.number} sends over loopback, without --rate: take another (--from 6)"
        )
    with Lab(receiver=far) if within is None else Lab.join(within) as here:
        done = delivery.deliver(
            here, receiver, sender, languages, options, told=told, as_json=as_json,
            show=None if as_json else _show_line,
            bits_per_s=None if rate is None else round(8e6 * rate),
        )  # fmt: skip
    if as_json:
        click.echo(json.dumps(_delivered(done)))
    elif done.accounting is not None:
        click.echo(f"proof: {done.accounting.text}")
    if done.failure is not None:
        _complain(done.failure)
        return _FAILED
    return 0


def _told(
    receiver: Receiver,
    sender: Chapter,
    languages: tuple[str, str],
    options: ProgramOptions,
    buffers: int | None,
) -> list[str]:
    """Return what a receiver is told besides, or refuse what one of the two does not take."""
    try:
        programs.command(sender, languages[1], options)
    except ValueError as error:
        raise _Wrong(str(error)) from None
    if buffers is not None and "b" not in receiver.accepted:
        raise _Wrong(f"chapter {receiver.number} has no option -b")
    return [] if buffers is None else ["-b", str(buffers)]


@dataclasses.dataclass(frozen=True, slots=True)
class _Way:
    """Between which hosts, by their names, and at which port."""

    file: Path
    names: tuple[str, str]
    port: int
    allow_real_network: bool

    def hosts(self) -> tuple[Hosts, tuple[FarHost, FarHost]]:
        """Return all that the file has, and the two."""
        found = read_hosts(self.file)
        by_name = {host.name: host for host in found.all}
        for name in self.names:
            if name not in by_name:
                raise _Wrong(f"{self.file} has no host {name}: it has {', '.join(by_name)}")
        near, far = (by_name[name] for name in self.names)
        if near is far:
            raise _Wrong(f"{near.name} is both: say --from-host and --to-host of two")
        if far.destination is None:
            raise _Wrong(f"{self.file} does not say where packets for {far.name} are sent to: give"
                         " it receives_at, an address")  # fmt: skip
        return dataclasses.replace(found, all=(near, far)), (near, far)


def _run_between(
    way: _Way,
    receiver: Receiver,
    sender: Chapter,
    languages: tuple[str, str],
    options: ProgramOptions,
    buffers: int | None,
    rate: float | None,
    as_json: bool,
) -> int:
    told = _told(receiver, sender, languages, options, buffers)
    if not sender.takes_destination:
        raise _Wrong(f"chapter {sender.number} sends over loopback: take another (--from 6)")
    all_hosts, two = way.hosts()
    if not as_json:
        click.echo(f"starting an engine on {two[0].name}, and on {two[1].name}", err=True)
    with Engines(all_hosts) as engines:
        done = crossing.cross(
            engines, two, (sender, receiver), (languages[1], languages[0]), options, told=told,
            port=way.port, rate=None if rate is None else 1e6 * rate,
            allow_real_network=way.allow_real_network, as_json=as_json,
            show=None if as_json else _show_line,
        )  # fmt: skip
    if as_json:
        click.echo(json.dumps(done.as_dict()))
    else:
        width = max(len(where) for where, _ in done.rows)
        for where, count in done.rows:
            click.echo(f"{where:{width}}  {count:>12}")
        if done.failure != done.account:
            click.echo(f"proof: {done.account}")
    if done.failure is not None:
        _complain(done.failure)
        return _FAILED
    return 0


def _show_line(name: str, line: str, is_trouble: bool) -> None:
    report = None if is_trouble else Report.parse(line)
    if report is not None:
        line = f"{report.payload_bytes / report.elapsed_ns * 1e3:.2f} MB/s"
    elif line.startswith("{"):
        return  # a receiver's, which has said it in words, too
    click.echo(line if is_trouble else f"{name}: {line}", err=is_trouble)


def _delivered(done: delivery.Delivery) -> dict[str, object]:
    accounting = done.accounting
    return {
        "receiver": done.received.said or None,
        "sender": done.sent.said or None,
        "statuses": [done.received.status, done.sent.status],
        "accounted": accounting.ok if accounting else None,
        "account": accounting.text if accounting else None,
    }


cli.add_command(lab)
cli.add_command(recv)
cli.add_command(check)
cli.add_command(sink)
cli.add_command(timeline.command)
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
        chapter = find_receiver(program) or find_chapter(program)
    except ValueError:
        raise _Wrong(
            f"there is no program {program!r}: say {', '.join(programs.TOOLS)}, or a chapter,"
            " which spead-tutorial chapters lists"
        ) from None
    click.echo(programs.program_path(chapter.name, lang))
    return 0


@cli.command()
@click.option("--quick", "size", flag_value="quick", default=True,
              help="Three rounds, a minute or two (the default).")  # fmt: skip
@click.option("--full", "size", flag_value="full", help="Nine rounds of longer samples.")
@click.option("--tiny", "size", flag_value="tiny", hidden=True)
@click.option("--loopback", is_flag=True, help="Send to this machine's loopback, without a lab.")
@click.option("--output", type=click.Path(file_okay=False, path_type=Path),
              default=Path("results", "tour"), show_default=True,
              help="Folder for the page, records and pictures.")  # fmt: skip
@click.option("--from-record", is_flag=True,
              help="Measure nothing: show the folder's last tour again.")  # fmt: skip
def tour(size: str, loopback: bool, output: Path, from_record: bool) -> int:
    """Run every chapter in Python and in C, and show what each gained.

    Beside them it runs bare system calls, and the same loops with spead2 where that is
    installed. It prints a table, and writes a page to look at, and to pass on. The exit status
    is 1 where a program failed, or a device did not count what it claims.

    Example: spead-tutorial tour --quick
    """
    if from_record:
        return tour_module.show(output)
    return tour_module.tour(size, output, loopback=loopback)


@cli.command()
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path),
              default=Path(notebook_run.FOLDER), show_default=True,
              help="Where the notebooks are.")  # fmt: skip
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def notebook(folder: Path, arguments: tuple[str, ...]) -> int:
    """Open the notebooks in JupyterLab, at the one to start with.

    ARGUMENTS, after --, are JupyterLab's.

    Example: spead-tutorial notebook -- --no-browser
    """
    start = folder / f"{notebook_run.START}.ipynb"
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


def _complain(message: str) -> None:
    _say("spead-tutorial", message)


def _say(name: str, message: str) -> None:
    click.echo(f"{name}: {' '.join(message.split())}", err=True)


def finish(command: click.Command, name: str, arguments: Sequence[str] | None) -> int:
    """Run a command line and return the exit status; what goes wrong is one line on stderr."""
    _standard_streams.prepare()
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

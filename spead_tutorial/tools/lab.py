# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial lab`` and ``sink``: commands in a fresh lab, labs that stay, a receiver."""

from spead_tutorial_run import how_it_ended

import contextlib
import json
import os
import pwd
import signal
import sys
import time
from pathlib import Path
from typing import Any

import click

from spead_tutorial.lab import (
    ADDRESS,
    ADDRESS6,
    KINDS,
    PORT,
    WAYS,
    Counters,
    Lab,
    LabError,
    LabProcess,
    sink_path,
    staying,
)
from spead_tutorial.lab.device import check_kind
from spead_tutorial.lab.helper import script
from spead_tutorial.lab.namespaces import programs
from spead_tutorial.lab.process import end_interrupted
from spead_tutorial.lab.staying import check_name, names, opened
from spead_tutorial.tools.command_line import parsed, worded

_WORDS = Path(__file__).with_suffix(".jinja")
_LIKE_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

#: The option that names a lab to do something in, for all commands that have it.
IN = click.option(
    "--in", "within", type=parsed(check_name), metavar="NAME", envvar="SPEAD_TUTORIAL_LAB",
    help="A lab that stays, in the place of a fresh one; by default $SPEAD_TUTORIAL_LAB.",
)  # fmt: skip


class _Command(click.Command):
    """A command to run in a lab: all its words are its own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.params["command"] = tuple(args)
        return []


class _Lab(click.Group):
    """A group in which each word that is no subcommand begins a command to run in a lab."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        rest = super().parse_args(ctx, args)
        # After --, a command may be called as a subcommand is.
        ctx.meta[__name__] = given[: -len(rest) - 1][-1:] == ["--"]
        return rest

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in self.commands and not ctx.meta[__name__]:
            typed = click.core.ParameterSource.COMMANDLINE
            if any(ctx.get_parameter_source(option) is typed for option in ctx.params):
                raise click.UsageError(
                    f"--kind, --in and --receiver go with a command, not with {args[0]}", ctx
                )
            return super().resolve_command(ctx, args)
        return None, _Command("lab", callback=_run), args


@click.group(cls=_Lab, no_args_is_help=False, subcommand_metavar="COMMAND ...",
             context_settings={"allow_interspersed_args": False})  # fmt: skip
@click.option("--kind", type=click.Choice(KINDS), help="Kind of the lab's device.")
@IN
@click.option("--receiver", is_flag=True,
              help="On the machine that receives, of a lab that was made with one.")  # fmt: skip
def lab(kind: str | None, within: str | None, receiver: bool) -> None:
    """Run a command in a fresh lab, or in one that stays.

    The device there is dummy1; 192.168.31.2 is the address to send to. The exit status is
    the command's. A lab stays from up until down, and any number of commands can be in it, each
    with --in; it is its user's alone.

    \b
    Example: spead-tutorial lab -- ip -stats link show dummy1
    Example: spead-tutorial lab up && spead-tutorial lab --in main -- bash
    Example: spead-tutorial lab up --receiver && spead-tutorial lab --in main --receiver -- bash
    """


def _run(command: tuple[str, ...]) -> int:
    group = click.get_current_context().parent
    assert group is not None
    kind, within, receiver = (group.params[name] for name in ("kind", "within", "receiver"))
    if within is None:
        if receiver:
            raise click.UsageError(
                "--receiver goes with --in: spead-tutorial lab up --receiver makes such a lab"
            )
        return _run_in_fresh_lab(kind, command)
    check_fresh(kind, within)
    _become(within, command, receiver)
    raise AssertionError("it has not become the command")


def check_fresh(kind: str | None, within: str | None) -> None:
    """Refuse a kind for a lab that is there already."""
    if kind is not None and within is not None:
        raise click.UsageError(
            f"--kind is a fresh lab's: {within!r} is there already (--in, SPEAD_TUTORIAL_LAB)"
        )


def _run_in_fresh_lab(kind: str | None, command: tuple[str, ...]) -> int:
    with Lab(kind) as place:
        try:
            process = place.popen(command)
        except OSError as error:
            reason = " ".join(str(error.strerror or error).split())
            click.echo(f"spead-tutorial: {command[0]}: {reason}", err=True)
            return 127 if isinstance(error, FileNotFoundError) else 126
        status = _wait_for(process)
    return status if status >= 0 else 128 - status


def _become(name: str, command: tuple[str, ...], receiver: bool) -> None:
    """Become a command in a lab that stays: terminal, signals and status are the command's."""
    with opened(name) as found:
        if receiver and not found.facts["receiver"]:
            raise LabError(
                f"in the lab {name!r} no machine receives: spead-tutorial lab up --receiver NAME"
                " makes one in which one does"
            )
        fds = found.way_in(receiver=receiver)
        for fd in fds:
            os.set_inheritable(fd, True)
        sys.stdout.flush()
        # A process with threads cannot enter; to execute ends them. Python would say a lot about
        # Ctrl-C as it starts: it waits until the command can have it.
        signal.pthread_sigmask(signal.SIG_BLOCK, _LIKE_INTERRUPTS)
        os.execv(sys.executable, script("namespaces", ",".join(map(str, fds)), *command))


def _wait_for(process: LabProcess) -> int:
    """Wait for a command, and leave Ctrl-C to it."""
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt as interrupt:
            number = how_it_ended(interrupt)[1] - 128
            # A terminal's Ctrl-C has also reached the command: it decides what to make of it.
            if number == signal.SIGINT and _at_a_terminal():
                continue
            process.send_signal(number)
            end_interrupted(process)
            raise


def _at_a_terminal() -> bool:
    with contextlib.suppress(OSError, ValueError):
        return os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()
    return False


_NAME = click.argument("name", type=parsed(check_name), default="main",
                       envvar="SPEAD_TUTORIAL_LAB")  # fmt: skip


@lab.command()
@_NAME
@click.option("--kind", type=click.Choice(list(dict.fromkeys((*KINDS, *WAYS)))),
              help="Kind of the lab's device; with a receiver veth (by default) or"
                   " loopback.")  # fmt: skip
@click.option("--mtu", type=click.IntRange(1280, 65535), default=9216, show_default=True,
              help="The device's MTU in bytes.")  # fmt: skip
@click.option("--receiver", is_flag=True, help="With a second machine, which gets what is sent.")
def up(name: str, kind: str | None, mtu: int, receiver: bool) -> int:
    """Make a lab that stays, called NAME (main).

    It stays until down, until the machine or its user's last session ends, or its process (see
    status) does. The exit status is 1 where there is one of that name, or can be none.

    \b
    Example: spead-tutorial lab up --kind ifb
    Example: spead-tutorial lab up --receiver
    """  # fmt: skip
    try:
        check_kind(kind, WAYS if receiver else KINDS)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    with staying.room(name) as folder, Lab(kind, mtu=mtu, receiver=receiver) as place:
        # In what is left it is either not made or made and said: Ctrl-C comes too late.
        for number in _LIKE_INTERRUPTS:
            signal.signal(number, signal.SIG_IGN)
        staying.make(place, folder, name)
        click.echo(f"The lab {name} is up: {place.kind} {place.device}, MTU {place.mtu}.")
    click.echo(worded(_WORDS).made(name, place, receiver), nl=False)
    return 0


@lab.command()
@_NAME
@click.option("--all", "every", is_flag=True, help="End all labs of yours that stay.")
def down(name: str, every: bool) -> int:
    """End the lab NAME (main), with all that runs in it.

    Programs are asked to end, and have to after two seconds. The exit status is 1 where there
    is no such lab.

    Example: spead-tutorial lab down --all
    """
    found = names() if every else [name]
    outcome = 0
    for one in found:
        try:
            was_gone, left = staying.end(one)
        except LabError as error:
            click.echo(f"spead-tutorial: {error}", err=True)
            outcome = 1
            continue
        said, pids = ", ".join(map(str, left)), " ".join(str(each.pid) for each in left)
        if was_gone:
            way_out = f"; if it has left {said}, end that: kill {pids}" if left else ""
            click.echo(f"The lab {one} was gone already{way_out}.")
        else:
            click.echo(f"The lab {one} has ended{f', and with it {said}' if left else ''}.")
    if not found:
        click.echo("There is no lab that stays.")
    return outcome


@lab.command()
@click.argument("name", type=parsed(check_name), required=False)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def status(name: str | None, as_json: bool) -> int:
    """Say of the lab NAME, or of all labs of yours that stay, what they are.

    The exit status is 1 where there is none, or one of them is gone or gives no answer.

    Example: spead-tutorial lab status
    """
    states = [look(one) for one in ([name] if name else names())]
    if as_json:
        for state in states:
            state["programs"] = [program._asdict() for program in state["programs"]]
        click.echo(json.dumps(states, indent=2))
    else:
        for state in states:
            click.echo(state["problem"] or _described(state))
        if not states:
            click.echo(f"There is no lab of {_user()}'s that stays: spead-tutorial lab up")
    return 0 if states and not any(state["problem"] for state in states) else 1


def look(name: str) -> dict[str, Any]:
    """Say what is known of a lab: where it is gone or missing, only which `problem` that is."""
    state: dict[str, Any] = {"name": name, "problem": None, "facts": {}, "programs": []}
    try:
        with opened(name) as lab:
            holder, device = lab.facts["holder"], lab.facts["device"]
            table = Path(f"/proc/{holder}/net/dev").read_text()
            counters = Counters.parse(table, device, lab.facts["kind"])
            if counters is None:
                raise LabError(
                    f"its device {device} has been removed: spead-tutorial lab down {name} ends it"
                )
            same = ("kind", "device", "receiver", "mtu", "rootless", "since", "holder")
            state["facts"] = {one: lab.facts[one] for one in same} | {
                "address": ADDRESS,
                "address6": ADDRESS6 if lab.facts["ipv6"] else None,
                "port": PORT,
                "packets": counters.packets,
                "bytes": counters.bytes,
            }
            state["programs"] = programs(lab.networks, holder)
    except (LabError, OSError) as error:
        state["problem"] = str(error)
    return state


def _described(state: dict[str, Any]) -> str:
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(state["facts"]["since"]))
    named = worded(_WORDS).status(state["name"], state["facts"], _user(), since, state["programs"])
    return str(named).rstrip("\n")


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


# ---- The sink ----


@click.command()
@click.argument("host")
@click.argument("port")
@click.option("-b", metavar="BYTES", help="Ask for a socket buffer of this size.")
@click.option("-r", metavar="BYTES", help="Read no more than this a second: a slow listener.")
@click.option("-t", metavar="SECONDS", help="End after so long without a packet.")
@click.option("-c", metavar="HEAPS", help="End after this number of complete heaps.")
@click.option("-s", metavar="STEP", help="By how much heap counts differ: 1 by default.")
@click.option("--gro", is_flag=True, help="Let the kernel hand over merged packets.")
@click.option("--check-fill", is_flag=True,
              help="Check the samples, which the chapters fill with a heap's count.")  # fmt: skip
@click.option("--json", is_flag=True, help="Print the summary as one JSON object.")
@click.pass_context
def sink(context: click.Context, /, host: str, port: str, **options: str | bool | None) -> None:
    """Count what arrives at a port, and check that nothing is missing.

    HOST is an address of this machine, and port 0 any that is free. The first line says where it
    listens, the last one is a summary. It ends with its sender's stream, with Ctrl-C, or as the
    options say. What is in heaps, and where packets were lost, spead-tutorial recv says.

    Example: spead-tutorial sink -t 5 --json 127.0.0.1 8888
    """
    words = [str(sink_path())]
    for parameter in context.command.params:
        given = options.get(parameter.name or "")
        if given:
            words.append(parameter.opts[0])
        if isinstance(given, str):
            words.append(given)
    sys.stdout.flush()
    # In this process's place: Ctrl-C is then the program's alone, which prints its summary.
    os.execv(words[0], [*words, "--", host, port])

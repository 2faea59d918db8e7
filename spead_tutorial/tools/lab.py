# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial lab`` and ``sink``: a command in a fresh lab, and a receiver."""

import contextlib
import os
import shlex
import signal
import sys

import click

from spead_tutorial._shown import shown
from spead_tutorial.lab import ADDRESS, KINDS, Lab, LabError, LabProcess, sink_path
from spead_tutorial.lab.device import instead
from spead_tutorial.lab.process import end_interrupted
from spead_tutorial.tools.command_line import how_it_ended


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--kind", type=click.Choice(KINDS, case_sensitive=False), help="Kind of the lab's device."
)
@click.option("--receiver", is_flag=True,
              help="With what is sent arriving: a program there can receive it.")  # fmt: skip
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def lab(kind: str | None, receiver: bool, command: tuple[str, ...]) -> int:
    """Run a command in a fresh lab.

    The device there is dummy1; 192.168.31.2 is the address to send to. The exit status is
    the command's, and the lab ends with it. With bash, it lasts as long as the shell; with tmux, it
    has several windows.

    With --receiver the lab is a machine that has that address: what one program sends by its
    loopback, another one receives.

    \b
    Example: spead-tutorial lab -- ip -stats link show dummy1
    Example: spead-tutorial lab -- bash
    Example: spead-tutorial lab --receiver -- tmux -L lab
    """
    if receiver and kind is not None:
        raise click.UsageError("--receiver is by loopback, without --kind")
    try:
        made = Lab("loopback" if receiver else kind, receiver=receiver)
    except LabError as error:
        words = [word.replace(ADDRESS, "127.0.0.1") for word in command]
        raise instead(error, f"without root, send over loopback: {shlex.join(words)}") from None
    with made as place:
        try:
            process = place.popen(command)
        except OSError as error:
            reason = " ".join(str(error.strerror or error).split())
            click.echo(shown(f"spead-tutorial: {command[0]}: {reason}"), err=True)
            return 127 if isinstance(error, FileNotFoundError) else 126
        status = _wait_for(process)
    return status if status >= 0 else 128 - status


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

# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial lab``: a command in a fresh lab."""

import contextlib
import os
import shlex
import signal

import click

from spead_tutorial._shown import shown
from spead_tutorial.lab import ADDRESS, KINDS, Lab, LabError, LabProcess
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
        except KeyboardInterrupt:
            number = how_it_ended()[1] - 128
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

# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial lab``: commands in a fresh lab."""

from spead_tutorial_run import how_it_ended

import contextlib
import os
import signal
import subprocess

import click

from .device import KINDS
from .lab import Lab
from .process import LabProcess

__all__ = ["lab"]


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--kind", type=click.Choice(KINDS), help="Kind of the lab's device.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def lab(kind: str | None, command: tuple[str, ...]) -> int:
    """Run a command in a fresh lab.

    The device there is dummy1; 192.168.31.2 is the address to send to. The exit status is
    the command's.

    Example: spead-tutorial lab -- ip -stats link show dummy1
    """
    with Lab(kind) as place:
        try:
            process = place.popen(command)
        except OSError as error:
            reason = " ".join(str(error.strerror or error).split())
            click.echo(f"spead-tutorial: {command[0]}: {reason}", err=True)
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
            # A terminal's Ctrl-C has reached the command too: it decides what to make of it.
            if number != signal.SIGINT or not _at_a_terminal():
                process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(2.0)
                process.kill()
                process.wait()
                raise


def _at_a_terminal() -> bool:
    with contextlib.suppress(OSError, ValueError):
        return os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()
    return False

# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial sink``: the program of that name, with the options that it has."""

import os
import sys

import click

from .lab import sink_path

__all__ = ["sink"]


@click.command()
@click.argument("host")
@click.argument("port")
@click.option("-b", metavar="BYTES", help="Ask for a socket buffer of so many bytes.")
@click.option("-r", metavar="BYTES", help="Read no more than so many a second: a slow listener.")
@click.option("-t", metavar="SECONDS", help="End after so long without a packet.")
@click.option("-c", metavar="HEAPS", help="End after so many complete heaps.")
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

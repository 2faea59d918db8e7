# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial timeline``: who worked when, the program or the network thread."""

import json
import subprocess
from typing import Any

import click
from msgspec.structs import asdict

from spead_tutorial.lab import check_destination
from spead_tutorial.measure.analysis import first_steady, shares, span
from spead_tutorial.measure.records import Timeline
from spead_tutorial.measure.timeline import record
from spead_tutorial.tools.command_line import Whole

_BYTES = Whole(1, in_bytes=True)  # as the programs have it


@click.command()
@click.argument("host")
@click.argument("port", type=Whole(1, 65535))
@click.option("--pipelined", is_flag=True,
              help="Prepare a heap while the last one is sent, as chapter 5 does.")  # fmt: skip
@click.option("--random", is_flag=True, help="Random samples instead of a fill.")
@click.option("-n", "heaps", type=Whole(1), default=24, show_default=True, metavar="HEAPS",
              help="Heaps to send.")  # fmt: skip
@click.option("-H", "heap_size", type=_BYTES, default=1 << 20, show_default=True, metavar="BYTES",
              help="Bytes of samples in a heap.")  # fmt: skip
@click.option("-p", "packet_size", type=_BYTES, default=1472, show_default=True, metavar="BYTES",
              help="Bytes in a packet at most, UDP and IP not counted.")  # fmt: skip
@click.option("-c", "cores", metavar="A,B",
              help="Cores to pin the program's thread and the stream's to.")  # fmt: skip
@click.option("--allow-real-network", is_flag=True,
              help="Let packets leave this machine.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with every time.")
def timeline(host: str, port: int, allow_real_network: bool, as_json: bool, **how: Any) -> int:
    """Say who worked when, the program or the network thread.

    It runs the program of chapter 4, or of chapter 5, in Python, and prints for what share of the
    time it prepared heaps, for what share it waited, and for what share the network thread sent.

    \b
    Example: spead-tutorial lab -- spead-tutorial timeline 192.168.31.2 8888
    Example: spead-tutorial timeline --pipelined --random -n 12 127.0.0.1 8888
    """
    check_destination(host, allow_real_network=allow_real_network)
    found = record(subprocess.run, (host, port), **how)
    click.echo(json.dumps(asdict(found)) if as_json else _in_words(found))
    return 0


def _in_words(timeline: Timeline) -> str:
    parts = shares(timeline)
    begin, end = span(timeline)
    return (
        f"{len(timeline.prepare_ns)} heaps in {(end - begin) / 1e6:.2f} ms; from heap"
        f" {first_steady(timeline)} on, counted from 0, the program prepared"
        f" for {parts.preparing:.1%} of the time, waited for {parts.waiting:.1%}, did other"
        f" things for {parts.rest:.1%}; the network thread sent for {parts.sending:.1%}"
    )

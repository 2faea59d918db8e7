# SPDX-License-Identifier: BSD-3-Clause
"""When heaps were prepared and sent: the programs of chapters 4 and 5, watched.

A program runs in a process of its own, anywhere: `record` is given what runs it, such as a lab's.

>>> with Lab() as lab:  # doctest: +SKIP
...     one = record(lab.run, (lab.address, lab.port), pipelined=True, random=True)
>>> shares(one)  # doctest: +SKIP
Shares(preparing=0.93, waiting=0.06, rest=0.01, sending=0.21)
"""

import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import click
from msgspec.structs import asdict

from spead_tutorial.lab import check_destination
from spead_tutorial.measure.analysis.intervals import first_steady, shares, span
from spead_tutorial.measure.records import Timeline
from spead_tutorial.measure.running import ProgramError, finish

__all__ = ["command", "record"]

_SIZE = click.IntRange(1, 2**63 - 1)  # as the programs have it
_STEPS = (
    "prepare_ns",
    "queued_ns",
    "first_packet_ns",
    "last_packet_ns",
    "completed_ns",
    "resumed_ns",
)


def record(
    run: Callable[..., subprocess.CompletedProcess[Any]],
    destination: tuple[str, int],
    *,
    pipelined: bool,
    random: bool,
    heaps: int = 24,
    heap_size: int = 1 << 20,
    packet_size: int = 1472,
    rate: float = 0.0,
    cores: str | None = None,
    timeout: float | None = None,
) -> Timeline:
    """Send heaps with a chapter's program, and return when each of them was where."""
    name = "tut_4_send_perf" if random else "tut_4_send_constant"
    name = "tut_5_send_pipeline" if pipelined else name
    settings = {"max_packet_size": packet_size, "rate": rate, "timeline": heaps + 1}
    options = ["-n", str(heaps), "-H", str(heap_size)]
    options += ["-r"] if pipelined and random else []
    options += ["-c", cores] if cores is not None else []
    # -P: not the package's source in the working folder.
    argv = [sys.executable, "-P", "-m", "spead_tutorial.measure.watched", json.dumps(settings)]
    to = ["--", destination[0], str(destination[1])]
    done = finish(run, name, [*argv, name, *options, *to], timeout)
    if done.status != 0:
        raise ProgramError(done.complaint)
    times: dict[str, Any] = {step: tuple(done.said[step]) for step in _STEPS}
    timeline = Timeline(
        case="",
        program=name,
        language="python",
        random=random,
        heap_size=heap_size,
        packet_size=packet_size,
        **times,
    )
    _check(timeline)
    return timeline


def _check(timeline: Timeline) -> None:
    """Refuse times that cannot be: each step of a heap follows the one before."""
    for before, after in itertools.pairwise(_STEPS):
        pairs = zip(getattr(timeline, before), getattr(timeline, after), strict=True)
        for heap, (first, second) in enumerate(pairs):
            if first > second:
                raise ProgramError(
                    f"the times of heap {heap} contradict each other: {before} is {first}, but"
                    f" {after} is {second}"
                )


# ---------------------------------------------------------------------------------------
# As a command


@click.command("timeline")
@click.argument("host")
@click.argument("port", type=click.IntRange(1, 65535))
@click.option("--pipelined", is_flag=True,
              help="Prepare a heap while the last one is sent, as chapter 5 does.")  # fmt: skip
@click.option("--random", is_flag=True, help="Random samples instead of a fill.")
@click.option("-n", "heaps", type=_SIZE, default=24, show_default=True, metavar="HEAPS",
              help="Heaps to send.")  # fmt: skip
@click.option("-H", "heap_size", type=_SIZE, default=1 << 20, show_default=True, metavar="BYTES",
              help="Bytes of samples in a heap.")  # fmt: skip
@click.option("-p", "packet_size", type=_SIZE, default=1472, show_default=True, metavar="BYTES",
              help="Bytes in a packet at most, UDP and IP not counted.")  # fmt: skip
@click.option("-c", "cores", metavar="A,B",
              help="Cores to pin the program's thread and the stream's to.")  # fmt: skip
@click.option("--allow-real-network", is_flag=True,
              help="Let packets leave this machine.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with every time.")
def command(host: str, port: int, allow_real_network: bool, as_json: bool, **how: Any) -> int:
    """Say who worked when, the program or the network thread.

    It runs the program of chapter 4, or of chapter 5, in Python, and prints for what share of the
    time it prepared heaps, for what share it waited, and for what share the network thread sent.

    \b
    Example: spead-tutorial lab -- spead-tutorial timeline 192.168.31.2 8888
    Example: spead-tutorial timeline --pipelined --random -n 12 127.0.0.1 8888
    """
    check_destination(host, allow_real_network=allow_real_network)
    timeline = record(subprocess.run, (host, port), **how)
    click.echo(json.dumps(asdict(timeline)) if as_json else _in_words(timeline))
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

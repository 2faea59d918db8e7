# SPDX-License-Identifier: BSD-3-Clause
"""The command that hosts run: it takes samples, and prints each as a line of JSON at once.

Its first line of standard input is a list, as JSON, of the lines of a record: what was taken
before. Where the standard input ends later, whoever asked is gone, and the command ends.
"""

import dataclasses
import json
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import click

from bench.plan import header_of, measure, plan_of
from bench.sweeps import SIZES, find_sweep
from spead_tutorial.measure.case import Step
from spead_tutorial.measure.progress import stage_of
from spead_tutorial.measure.records import object_of, parse

__all__ = ["take"]


@click.command(hidden=True)
@click.argument("sweep")
@click.option("--size", type=click.Choice(list(SIZES)), required=True)
@click.option("--rounds", type=click.IntRange(1), required=True)
@click.option("--part", type=int, required=True)
@click.option("--parts", type=int, required=True)
@click.option("--retry", is_flag=True)
@click.option("--header", "header_alone", is_flag=True)
def take(
    sweep: str, size: str, rounds: int, part: int, parts: int, retry: bool, header_alone: bool
) -> int:
    """Take samples for another machine, which has the record (see `run --hosts`).

    Example: (echo []; cat) | python -m bench take tut-10 --size quick --rounds 5 --part 1 --parts 1
    """
    before = json.loads(_first_line())
    threading.Thread(target=_end_with_the_input, daemon=True).start()
    plan = plan_of(find_sweep(sweep), SIZES[size], rounds, (part, parts))
    if header_alone:
        _print(object_of(header_of(plan)))
        return 0

    def shown(steps: Sequence[Step]) -> Iterator[Step]:
        for step in steps:
            _print({"record": "step", "stage": stage_of(step), "case": step.case.name})
            yield step

    measure(
        dataclasses.replace(plan, retry=retry),
        None,
        {},
        shown,
        lambda line: _print({"record": "said", "text": line}),
        begun=parse(before, "what was taken before") if before else None,
        tell=lambda taken: _print(object_of(taken)),
    )
    return 0


def _print(line: dict[str, Any]) -> None:
    click.echo(json.dumps(line, allow_nan=False))


def _first_line() -> str:
    """Read a line and no more: the thread that waits for the end must not hold a lock on it."""
    text = b""
    while not text.endswith(b"\n"):
        read = os.read(0, 1 << 16)
        if not read:
            break
        text += read
    return text.decode() or "[]"


def _end_with_the_input() -> None:
    while os.read(0, 1 << 16):
        pass
    os.kill(os.getpid(), signal.SIGTERM)

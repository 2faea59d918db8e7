# SPDX-License-Identifier: BSD-3-Clause
"""When packets go: how long a heap waits on an idle stream.

It is measured from outside, and alike for all libraries: by the kernel's time of receipt.
"""

import dataclasses
import json
import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from bench.peers import TIMEOUT_S, interpreter, missing_peer
from bench.plan import SEED, versions
from bench.sweeps import PEER, PEERS
from spead_tutorial.lab import Lab
from spead_tutorial.measure.machine import header
from spead_tutorial.measure.programs import ProgramError, finish
from spead_tutorial.records import OURS, RecordError, Writer, locked
from spead_tutorial.stats import Estimate, median

__all__ = ["Latency", "timing"]

RESULTS = Path("results", "timing")
_FAILED, _SKIPPED = 1, 3
_FOLDER = Path(__file__).resolve().parent
_NO_THREAD = "no thread"
#: Who is measured: an implementation, and what is different about it.
WHO = ((OURS, ""), (OURS, _NO_THREAD), *((peer, "") for peer in PEERS))
#: Heaps at a process's start that do not count: what they run is new to the caches.
WARM_UP = 20


@dataclasses.dataclass(frozen=True, slots=True)
class Size:
    """How thorough a run is: rounds, and heaps a process."""

    rounds: int
    heaps: int


SIZES = {"quick": Size(3, 300), "full": Size(9, 1000), "tiny": Size(1, 30)}


@dataclasses.dataclass(frozen=True, slots=True)
class Latency:
    """One process that sent a heap, of one packet, every few milliseconds.

    Parameters
    ----------
    implementation : str
        ``"ours"``, ``"spead2"`` or ``"spead2-source"``.
    variant : str
        ``"no thread"`` for a stream without a thread of its own; or empty.
    round : int
        In which round it ran, from 0.
    heap_size : int
        Bytes of samples in a heap.
    latency_ns : list of int
        Of each heap the time from just before it was queued until the kernel had received its
        packet, over loopback. The first ``warm_up`` of the header's settings do not count.
    failure : str or None
        Why there are none.
    """

    implementation: str
    variant: str
    round: int
    heap_size: int | None = None
    latency_ns: list[int] = dataclasses.field(default_factory=list)
    failure: str | None = None


# ---------------------------------------------------------------------------------------
# Taking one


def _program(name: str, implementation: str, variant: str) -> list[str]:
    library = "spead_tutorial" if implementation == OURS else "spead2"
    argv = [*interpreter(implementation), str(_FOLDER / "peer" / f"{name}.py"), library]
    return [*argv, "--no-thread"] if variant == _NO_THREAD else argv


def _said(lab: Lab, name: str, argv: Sequence[object]) -> dict[str, Any]:
    done = finish(lab.run, name, list(map(str, argv)), TIMEOUT_S)
    if done.status != 0:
        raise ProgramError(done.complaint)
    said: dict[str, Any] = json.loads(done.output)
    return said


def take_latency(lab: Lab, asked: Latency, size: Size) -> Latency:
    """Run a process that sends over the lab's loopback."""
    argv = [*_program("latency", asked.implementation, asked.variant), "-n", WARM_UP + size.heaps]
    taken = dataclasses.replace(asked, **_said(lab, "latency", [*argv, "--seed", asked.round]))
    if min(taken.latency_ns) <= 0:
        raise ProgramError("latency: a packet came before it was sent: the clock was set meanwhile")
    return taken


# ---------------------------------------------------------------------------------------
# Taking all


def _asked(who: Iterable[tuple[str, str]], number: int) -> list[Latency]:
    """Return what a round has, in an order that follows from the seed and its number."""
    asked = [Latency(implementation, variant, number) for implementation, variant in who]
    random.Random(f"{SEED}/{number}").shuffle(asked)
    return asked


def _taken(lab: Lab, asked: Latency, size: Size) -> Latency:
    try:
        return take_latency(lab, asked, size)
    except ProgramError as error:
        return dataclasses.replace(asked, failure=str(error))


def measure(
    what: str, size: Size, path: Path, show: Callable[[Sequence[Any]], Iterator[Any]]
) -> list[Latency]:
    """Take all of a record: rounds, each of which has everything."""
    reasons = {implementation: missing_peer(implementation) for implementation, _ in WHO}
    who = [one for one in WHO if reasons[one[0]] is None]
    skipped = {name: reason for name, reason in reasons.items() if reason is not None}
    settings = dataclasses.asdict(size) | {"warm_up": WARM_UP, "seed": SEED, "skipped": skipped}
    order = [one for number in range(size.rounds) for one in _asked(who, number)]
    for name, reason in skipped.items():
        click.echo(f"{name} is skipped: {reason}", err=True)
    taken = []
    with Lab() as lab, Writer(path, header(what, lab.facts(), settings, versions())) as writer:
        for asked in show(order):
            taken.append(_taken(lab, asked, size))
            writer.add(taken[-1])
    return taken


# ---------------------------------------------------------------------------------------
# What it comes to


def _groups(taken: Iterable[Latency]) -> dict[tuple[float, str], list[Any]]:
    """Sort what was taken by rate and by who it was, or leave out the rate."""
    groups: dict[tuple[float, str], list[Any]] = {}
    for one in taken:
        name = ", ".join(filter(None, (one.implementation, one.variant)))
        groups.setdefault((0.0, name), []).append(one)
    return dict(sorted(groups.items()))


def _failed(group: Sequence[Latency]) -> str | None:
    return next((one.failure for one in group if one.failure is not None), None)


def _with_interval(values: Iterable[float], digits: int = 1) -> str:
    found: Estimate = median(list(values))
    low, middle, high = (f"{x:.{digits}f}" for x in (found.low, found.median, found.high))
    return f"{middle:>9}  {f'{low} ... {high}':^19}"


def _latency_table(taken: Iterable[Latency]) -> Iterator[str]:
    yield (
        f"{'idle stream of':22} {'n':>3} {'heaps':>6} {'median us':>9}  {'95 % interval':^19}"
        f" {'99 % us':>9}  {'95 % interval':^19}"
    )
    for (_, name), group in _groups(taken).items():
        if failure := _failed(group):
            yield f"{name:22} failed: {failure}"
            continue
        us = [np.array(one.latency_ns[WARM_UP:]) / 1e3 for one in group]
        middle, most = ([float(np.quantile(each, q)) for each in us] for q in (0.5, 0.99))
        yield (
            f"{name:22} {len(group):>3} {sum(map(len, us)):>6} {_with_interval(middle)}"
            f" {_with_interval(most)}"
        )


def table(taken: Sequence[Latency]) -> str:
    """Write what was taken as a table: medians over the rounds, with their intervals."""
    return "\n".join(_latency_table(taken))


def read(path: Path) -> list[Latency]:
    """Read a record that `measure` wrote.

    Raises
    ------
    RecordError
        For a file that is none.
    """
    kinds = {"latency": Latency}
    try:
        lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
        taken = [kinds[line.pop("record")](**line) for line in lines]
    except (ValueError, KeyError, TypeError, AttributeError):
        taken = []
    if not taken:
        raise RecordError(f"{path.name} is no record of python -m bench timing")
    return taken


@click.command()
@click.argument("what", type=click.Choice(["latency"]))
@click.option("--quick", "size", flag_value="quick", help="3 rounds, shorter ones.")
@click.option("--full", "size", flag_value="full", default=True, help="9 rounds (the default).")
@click.option("--tiny", "size", flag_value="tiny", hidden=True)
@click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path), default=RESULTS,
              show_default=True, help="Folder for the record, which is begun anew.")  # fmt: skip
@click.option("--read", "record", type=click.Path(dir_okay=False, path_type=Path),
              help="Measure nothing, show what this record holds.")  # fmt: skip
def timing(what: str, size: str, output: Path, record: Path | None) -> int:
    """Measure when packets go, beside spead2.

    latency: from queueing a heap on an idle stream until the kernel has its packet. The exit
    status is 1 where something failed.

    Example: python -m bench timing latency --quick
    """
    if record is not None:
        taken = read(record)
    else:
        path = output / f"{what}.jsonl"
        with locked(output):
            taken = measure(what, SIZES[size], path, _shown)
        click.echo(path)
    click.echo(table(taken))
    if any(one.failure is not None for one in taken):
        return _FAILED
    return _SKIPPED if record is None and missing_peer(PEER) else 0


def _shown(order: Sequence[Latency]) -> Iterator[Latency]:
    """Yield all, and show how far they have come."""
    if os.isatty(1):
        with click.progressbar(order, label="Running") as bar:
            yield from bar
        return
    for index, one in enumerate(order):
        if index == 0 or one.round != order[index - 1].round:
            click.echo(f"  round {one.round + 1}: process {index + 1} of {len(order)}")
        yield one

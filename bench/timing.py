# SPDX-License-Identifier: BSD-3-Clause
"""When packets go: how long a heap waits on an idle stream, how evenly a rate is kept, and
how chapters 4 and 5 space them.

All are measured from outside: by the kernel's time of receipt, by the device's counter, and by the
kernel's time of sending; the first two alike for all libraries.
"""

import dataclasses
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import click
import msgspec
import numpy as np
from msgspec.structs import replace

from bench.peers import TIMEOUT_S, interpreter, missing_peer, why_no_link
from bench.plan import SEED, versions
from bench.spacing import HEAPS, LINK, LINK_BITS_PER_S, STEADY, spacings, take_spacing
from bench.sweeps import PEERS
from spead_tutorial.lab import Lab, accounted
from spead_tutorial.measure import records
from spead_tutorial.measure.analysis import burst, silence
from spead_tutorial.measure.baselines import PEER
from spead_tutorial.measure.machine import header
from spead_tutorial.measure.programs import ProgramError, finish
from spead_tutorial.measure.records import OURS, Count, Number, RecordError, Spacing, Writer, locked
from spead_tutorial.measure.stats import Estimate, median, spread
from spead_tutorial.results.tables import Column, Table, estimate
from spead_tutorial.tools.progress import Steps

RESULTS = Path("results", "timing")
_FAILED, _SKIPPED = 1, 3
_FOLDER = Path(__file__).resolve().parent / "peer"
_NO_THREAD = "no thread"
#: Who is measured: an implementation, and what is different about it.
WHO = ((OURS, ""), (OURS, _NO_THREAD), *((peer, "") for peer in PEERS))
#: Heaps at a process's start that do not count: what they run is new to the caches.
WARM_UP = 20
#: bytes/s.
RATES = (1e6, 1e8, 1e9, 3e9)


@dataclasses.dataclass(frozen=True, slots=True)
class Amount:
    """How thorough a run is: rounds, heaps a process, and seconds at a rate."""

    rounds: int
    heaps: int
    seconds: float


SIZES = {"quick": Amount(3, 300, 0.5), "full": Amount(9, 1000, 2.0), "tiny": Amount(1, 30, 0.02)}


class Latency(records.Taken, frozen=True):
    """One process that sent a heap, of one packet, every few milliseconds."""

    #: ``"ours"``, ``"spead2"`` or ``"spead2-source"``.
    implementation: str
    #: ``"no thread"`` for a stream without a thread of its own; or empty.
    variant: str
    #: In which round it ran, from 0.
    round: Count
    #: Bytes of samples in a heap.
    heap_size: Count | None = None
    #: Of each heap the time from just before it was queued until the kernel had received its
    #: packet, over loopback. The first ``warm_up`` of the header's settings do not count.
    latency_ns: tuple[Count, ...] = ()
    #: Why there are none.
    failure: str | None = None


class Rate(records.Taken, frozen=True):
    """One process that sent at a rate, as the device's counter saw it."""

    #: ``"ours"``, ``"spead2"`` or ``"spead2-source"``.
    implementation: str
    #: ``"no thread"`` for a stream without a thread of its own; or empty.
    variant: str
    #: In which round it ran, from 0.
    round: Count
    #: Bytes of SPEAD packets a second that it was told.
    rate: Number
    #: How many it sent.
    heaps: Count | None = None
    #: Bytes of samples in each.
    heap_size: Count | None = None
    #: Bytes of a packet at most.
    packet_size: Count | None = None
    #: Bytes that the stream was to send at once, between two waits.
    burst_size: Count | None = None
    #: SPEAD packets that it sent.
    packets: Count | None = None
    #: Their bytes.
    spead_bytes: Count | None = None
    #: What the device counted.
    counted_packets: Count | None = None
    #: What it counted, with the headers of UDP, IP and the link.
    counted_bytes: Count | None = None
    #: SPEAD bytes after the first burst.
    average_bytes: Count | None = None
    #: The time from then to the last step of the counter.
    average_ns: Count | None = None
    #: The longest burst, at least: what a bucket that is emptied at the rate must hold for all
    #: packets to pass, had every step of the counter been as early, or as late, as it can have
    #: been for the bucket to be small. Seen too roughly to say anything, it may be below zero.
    burst_bytes: int | None = None
    #: The longest burst at most: the same, for the bucket to be large.
    burst_most_bytes: Count | None = None
    #: Steps of the counter that were seen.
    steps: Count | None = None
    #: How exactly the time of a step is known: the median.
    grain_ns: Count | None = None
    #: The same of the step whose time is known worst.
    longest_grain_ns: Count | None = None
    #: Why there is nothing of these.
    failure: str | None = None


#: What a line of a record is.
Taken: TypeAlias = Latency | Rate | Spacing
_LINE = msgspec.json.Decoder(Taken)


# ---- Taking one ----


def _program(name: str, implementation: str, variant: str) -> list[str]:
    library = "spead_tutorial" if implementation == OURS else "spead2"
    words = [library, *["--no-thread"] * (variant == _NO_THREAD), name]
    return [*interpreter(implementation), str(_FOLDER / "one_stream.py"), *words]


def _said(lab: Lab, name: str, argv: Sequence[object]) -> dict[str, Any]:
    done = finish(lab.run, name, list(map(str, argv)), TIMEOUT_S)
    if done.status != 0:
        raise ProgramError(done.complaint)
    said: dict[str, Any] = json.loads(done.output)
    return said


def take_latency(lab: Lab, asked: Latency, size: Amount) -> Latency:
    """Run a process that sends over the lab's loopback."""
    argv = [*_program("latency", asked.implementation, asked.variant), "-n", WARM_UP + size.heaps]
    taken = replace(asked, **_said(lab, "latency", [*argv, "--seed", asked.round]))
    if min(taken.latency_ns) <= 0:
        raise ProgramError("latency: a packet came before it was sent: the clock was set meanwhile")
    return taken


def take_rate(lab: Lab, asked: Rate, size: Amount) -> Rate:
    """Run a process that sends to the lab's device, and watch the device meanwhile."""
    argv = [*_program("rate", asked.implementation, asked.variant), "--rate", asked.rate]
    argv += ["--seconds", size.seconds, lab.address, lab.port]
    column = "rx" if lab.kind == "ifb" else "tx"  # as Counters.bytes has it
    watch = [sys.executable, "-P", str(_FOLDER / "watch.py"), lab.device, column]
    before = lab.counters()
    with lab.popen(watch, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = process.stdout.read(24)  # it watches
        said = _said(lab, "rate", argv)
        process.terminate()
        seen = np.frombuffer(first + process.stdout.read(), np.int64).reshape(-1, 3)
    counted = lab.counters() - before
    held = accounted(
        counted.packets,
        counted.bytes,
        packets=said["packets"],
        messages=min(counted.packets, said["packets"]),
        spead_bytes=said["spead_bytes"],
        link_header=counted.link_header,
    )
    if not held.ok:
        raise ProgramError(f"rate: {held.text}")
    if seen[-1, 2] - seen[0, 2] != counted.bytes:
        raise ProgramError("rate: the counter was not watched to the end")
    of_device: dict[str, Any] = {
        "counted_packets": counted.packets,
        "counted_bytes": counted.bytes,
    } | bursts(seen, asked.rate, said["spead_bytes"] / counted.bytes)
    if of_device["average_ns"] == 0:
        raise ProgramError("rate: all was over before the counter was looked at again")
    return replace(asked, **said, **of_device)


#: Steps in this time after the first are taken for the first burst.
_FIRST_BURST_NS = 10**6


def bursts(seen: np.ndarray[Any, Any], rate: float, share: float) -> dict[str, int]:
    """Say how evenly a counter grew."""
    early, late = seen[1:, 0], seen[1:, 1]
    n_bytes = (seen[:, 2] - seen[0, 2]) * share
    # Between the step that ends one look and that which ends another, both included.
    paid_early, paid_late = ((at - late[0]) * rate / 1e9 for at in (early, late))
    after, before = n_bytes[1:], n_bytes[:-1]
    least = after - paid_late + np.maximum.accumulate(paid_early - before)
    most = after - paid_early + np.maximum.accumulate(paid_late - before)
    begin = int(np.searchsorted(late, late[0] + _FIRST_BURST_NS, "right")) - 1
    return {
        "average_bytes": round(after[-1] - after[begin]),
        "average_ns": int(late[-1] - late[begin]),
        "burst_bytes": round(least.max()),
        "burst_most_bytes": round(most.max()),
        "steps": len(early),
        "grain_ns": int(np.median(late - early)),
        "longest_grain_ns": int((late - early).max()),
    }


# ---- Taking all ----


def _asked(what: str, who: Iterable[tuple[str, str]], number: int) -> list[Taken]:
    """Return what a round has, in an order that follows from the seed and its number."""
    asked: list[Taken]
    if what == "spacing":
        asked = [*spacings(number, [variant for _, variant in who])]
    elif what == "latency":
        asked = [Latency(*one, number) for one in who]
    else:
        asked = [Rate(*one, number, rate) for one in who for rate in RATES]
    random.Random(f"{SEED}/{number}").shuffle(asked)
    return asked


def _taken(lab: Lab, asked: Taken, size: Amount) -> Taken:
    try:
        if isinstance(asked, Latency):
            return take_latency(lab, asked, size)
        if isinstance(asked, Rate):
            return take_rate(lab, asked, size)
        return take_spacing(lab, asked)
    except ProgramError as error:
        return replace(asked, failure=str(error))


def measure(what: str, size: Amount, path: Path) -> list[Taken]:
    with Lab() as lab:
        who, skipped = _who_can(what)
        for name, reason in skipped.items():
            click.echo(f"{name} is skipped: {reason}", err=True)
        settings = _settings(what, size) | {"seed": SEED, "skipped": skipped}
        order = [one for number in range(size.rounds) for one in _asked(what, who, number)]
        taken = []
        start = header(what, lab.facts(), settings, versions())
        with Writer(path, start) as writer, Steps() as shown:
            for asked in shown(order, lambda one: f"round {one.round + 1}", _name):
                taken.append(_taken(lab, asked, size))
                writer.add(taken[-1])
    return taken


def _who_can(what: str) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """Return who is measured, an implementation and a variant, and why others are not."""
    if what == "spacing":
        refused = why_no_link(LINK_BITS_PER_S)
        plain = [(OURS, "")]
        return (plain, {LINK: refused}) if refused else ([*plain, (OURS, LINK)], {})
    reasons = {implementation: missing_peer(implementation) for implementation, _ in WHO}
    skipped = {name: reason for name, reason in reasons.items() if reason is not None}
    return [one for one in WHO if one[0] not in skipped], skipped


def _settings(what: str, size: Amount) -> dict[str, Any]:
    if what == "spacing":
        return {"rounds": size.rounds, "heaps": HEAPS, "first": STEADY[0]}
    return dataclasses.asdict(size) | {"warm_up": WARM_UP}


# ---- What it comes to ----


#: All that was taken of one thing: a row.
_Group = list[Any]


def _groups(taken: Iterable[Taken]) -> list[_Group]:
    """Sort what was taken by its rate, if it has one, and by who it was."""
    groups: dict[tuple[float, str], _Group] = {}
    for one in taken:
        groups.setdefault((getattr(one, "rate", 0.0), _name(one)), []).append(one)
    return [its for _, its in sorted(groups.items())]


def _name(one: Taken) -> str:
    if isinstance(one, Spacing):
        who = f"{one.program} {'random' if one.random else 'fill'}"
    else:
        who = one.implementation
    return ", ".join(filter(None, (who, one.variant)))


def _failure(group: _Group) -> str | None:
    return next((f"failed: {one.failure}" for one in group if one.failure is not None), None)


def _quantile_us(q: float) -> Callable[[Latency], float]:
    return lambda one: float(np.quantile(np.array(one.latency_ns[WARM_UP:]) / 1e3, q))


def _columns(kind: type[Taken], ends: str) -> tuple[str, Sequence[Column[_Group]]]:
    """Return what the rows of a kind are called, and what they come to."""

    def medians(
        name: str, value: Callable[[Any], float], digits: int = 1
    ) -> tuple[Column[_Group], Column[_Group]]:
        def of_group(group: _Group) -> Estimate:
            return median(list(map(value, group)))

        return estimate((name, ends), of_group, f"{{:.{digits}f}}".format)

    if kind is Latency:
        return "idle stream of", [
            Column("heaps", lambda group: sum(len(one.latency_ns) - WARM_UP for one in group)),
            *medians("median us", _quantile_us(0.5)),
            *medians("99 % us", _quantile_us(0.99)),
        ]
    if kind is Rate:
        share = medians(
            "% of it", lambda one: one.average_bytes / one.average_ns * 1e11 / one.rate, digits=2
        )
        at_most, _ = medians("at most", lambda one: one.burst_most_bytes / 1024)
        grain, _ = medians("grain us", lambda one: one.grain_ns / 1e3)
        shortest = medians("burst KiB", lambda one: one.burst_bytes / 1024)
        return "stream of", [*share, *shortest, at_most, grain]
    return "messages of", [
        *medians("silent us", lambda one: silence(one) / 1e3),
        *medians("burst KiB", lambda one: burst(one) / 1024),
    ]


def table(taken: Sequence[Taken]) -> str:
    """Write what was taken as a table: medians over the rounds, with their intervals or ranges."""
    groups = _groups(taken)
    ends = spread(len(group) for group in groups if _failure(group) is None)
    who, values = _columns(type(taken[0]), ends)
    names: list[Column[_Group]] = [Column(who, lambda group: _name(group[0]), is_words=True)]
    if isinstance(taken[0], Rate):
        names.insert(0, Column("MB/s asked", lambda group: f"{group[0].rate / 1e6:g}"))
    return str(Table(names, [Column("n", len), *values], groups, _failure))


def read(path: Path) -> list[Taken]:
    lines = path.read_text().splitlines()[1:]
    if not lines:
        raise RecordError(f"{path.name} is no record of python -m bench timing")
    return [records.decoded(_LINE, line, path.name, number) for number, line in enumerate(lines, 2)]


@click.command()
@click.argument("what", type=click.Choice(["latency", "rate", "spacing"]))
@click.option("--quick", "size", flag_value="quick", help="3 rounds, shorter ones.")
@click.option("--full", "size", flag_value="full", default=True, help="9 rounds (the default).")
@click.option("--tiny", "size", flag_value="tiny", hidden=True)
@click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path), default=RESULTS,
              show_default=True, help="Folder for the record, which is begun anew.")  # fmt: skip
@click.option("--read", "record", type=click.Path(dir_okay=False, path_type=Path),
              help="Measure nothing, show what this record holds.")  # fmt: skip
def timing(what: str, size: str, output: Path, record: Path | None) -> int:
    """Measure when packets go.

    latency: from queueing a heap on an idle stream until the kernel has its packet; rate: what
    streams with a rate make of it, and how long their bursts are, both beside spead2; spacing: how
    long the programs of chapters 4 and 5 are silent between packets, and how many come at once.
    The exit status is 1 where something failed.

    Example: python -m bench timing latency --quick
    """
    if record is not None:
        taken = read(record)
    else:
        path = output / f"{what}.jsonl"
        with locked(output):
            taken = measure(what, SIZES[size], path)
        click.echo(path)
    click.echo(table(taken))
    if any(one.failure is not None for one in taken):
        return _FAILED
    return _SKIPPED if record is None and what != "spacing" and missing_peer(PEER) else 0

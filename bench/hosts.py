# SPDX-License-Identifier: BSD-3-Clause
"""A sweep on many hosts of one kind: each measures a part of it, and takes over those of the lost.

Each host has a record here, of all that it took. What is in one of them is not taken again, by
whomever; at the end they are put together. On a host runs the command `take`: it is told what was
taken before, and prints each sample as a line of JSON at once. Where its standard input ends,
whoever asked is gone, and it ends.
"""

import contextlib
import dataclasses
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from bench.plan import SEED, cases_of, header_of, measure, plan_of
from bench.sweeps import SIZES, Size, Sweep, find_sweep
from spead_tutorial.measure.case import Case, Step
from spead_tutorial.measure.machine import differs, revision
from spead_tutorial.measure.records import (
    Header,
    RecordError,
    Recording,
    Sample,
    Timeline,
    Writer,
    object_of,
    parse,
    read,
)
from spead_tutorial.measure.rounds import left, schedule
from spead_tutorial.results.tables import plain
from spead_tutorial.tools.hosts import Command, Host, LostError, end_all, started_whole
from spead_tutorial.tools.progress import Steps, stage_of

_LOOK_S = 0.1


def parts_of(sweep: Sweep, output: Path) -> list[Path]:
    """Return the hosts' records of a sweep that there are in a folder."""
    return sorted((output / "hosts").glob(f"{sweep.name}.*.jsonl"))


class Team:
    """Hosts that measure together."""

    def __init__(self, hosts: Sequence[Host], say: Callable[[str], None]) -> None:
        self._hosts = list(hosts)  # that are not lost
        self._say = say

    def measure(
        self, sweep: Sweep, size: Size, rounds: int, output: Path, show: Steps, *, retry: bool
    ) -> Recording:
        """Take all samples of a sweep that the hosts' records do not hold yet."""
        take = ["-m", "bench", "take", sweep.name, "--size", size.name, "--rounds", str(rounds)]
        headers = self._introduced(take)
        parts = len(headers)
        begun = _Begun(sweep, output, headers)
        skipped = next(iter(headers.values())).settings.get("skipped", {})
        cases, steps = {}, {}
        for part in range(1, parts + 1):
            some = cases_of(sweep, size, (part, parts))
            cases[part] = [case for case in some if case.name not in skipped]
            taken = parse(begun.lines(cases[part]), "what was taken before")
            steps[part] = len(left(schedule(cases[part], rounds, SEED), taken, retry=retry))

        def hear(host: Host, record: dict[str, Any]) -> None:
            match record:
                case {"record": "step", "stage": str(stage), "case": str(case)}:
                    stage, name = (plain(f"{host.name}: {what}") for what in (stage, case))
                    show.begin(stage, name, sum(steps.values()))
                case _:
                    begun.add(host, record)

        to_do = [part for part, n in steps.items() if n]
        with contextlib.closing(begun):
            while to_do:
                if not self._hosts:
                    raise RecordError(
                        f"no host is left: what was taken is in {begun.folder}, and the same"
                        " command goes on from there"
                    )
                given = dict(zip(self._hosts, to_do, strict=False))
                options = [*take, "--parts", str(parts), *["--retry"] * retry]
                orders = {}
                for host, part in given.items():
                    argv = [*options, "--part", str(part)]
                    orders[host] = argv, json.dumps(begun.lines(cases[part]))
                self._run(orders, hear)
                lost = [part for host, part in given.items() if host not in self._hosts]
                to_do = lost + to_do[len(given) :]
        measured = parts_of(sweep, output)
        if not measured:
            raise RecordError(f"none of the cases of {sweep.name} could be measured on these hosts")
        return put_together(measured, output / f"{sweep.name}.jsonl")

    def _run(
        self,
        orders: Mapping[Host, tuple[list[str], str]],
        hear: Callable[[Host, dict[str, Any]], None],
    ) -> None:
        """Have hosts run commands to their ends, but for those that are lost meanwhile."""
        running: dict[Host, Command] = {}
        try:
            for host, (argv, first) in orders.items():
                with self._losing(host), started_whole():
                    running[host] = Command(host, argv, first)
            while running:
                for host, command in list(running.items()):
                    with self._losing(host):
                        for record in command.lines():
                            match record:
                                case {"record": "said", "text": str(text)}:
                                    self._say(f"{host.name}: {text}")
                                case _:
                                    hear(host, record)
                    if command.over or host not in self._hosts:
                        end_all([running.pop(host)])
                time.sleep(_LOOK_S)
        finally:
            end_all(running.values())

    @contextlib.contextmanager
    def _losing(self, host: Host) -> Iterator[None]:
        try:
            yield
        except LostError as error:
            self._say(f"{host.name} is lost: {error}")
            self._hosts.remove(host)

    def _introduced(self, take: list[str]) -> dict[Host, Header]:
        """Have all hosts say what they are, and refuse those that are not of one kind."""
        headers: dict[Host, Header] = {}

        def hear(host: Host, record: dict[str, Any]) -> None:
            if record["record"] == "header":
                headers[host] = _parsed(record).header

        order = [*take, "--part", "1", "--parts", "1", "--header"], "[]"
        self._run(dict.fromkeys(self._hosts, order), hear)
        for host in [one for one in self._hosts if one not in headers]:
            self._say(f"{host.name} is left out: it does not say what it is")
            self._hosts.remove(host)
        if not self._hosts:
            raise RecordError("no host can measure: see the lines above")
        here, first = revision(), self._hosts[0]
        for host in self._hosts:
            there = headers[host].revision
            if None not in (here, there) and there != here:
                raise RecordError(
                    f"{host.name} has revision {there} of the repository, and here it is {here}:"
                    " bring both to the same"
                )
            difference = unlike(headers[first], headers[host])
            if difference is not None:
                raise RecordError(f"{first.name} and {host.name} are not of one kind: {difference}")
        return headers


def _parsed(*said: dict[str, Any]) -> Recording:
    """Make a recording of what a host says; it is lost where that is none."""
    try:
        return parse([json.dumps(line) for line in said], "what it says")
    except RecordError as error:
        raise LostError(str(error)) from None


def unlike(one: Header, other: Header) -> str | None:
    """Say what makes two hosts no hosts of one kind, if anything does."""
    skips, others = (header.settings.get("skipped", {}) for header in (one, other))
    only = (
        f"only one of them can run {name}: {(skips | others)[name]}"
        for name in sorted(skips.keys() ^ others.keys())
    )
    return differs(one, other, of_parts=True) or next(only, None)


class _Begun:
    """What has been taken of a sweep: the hosts' records, and a writer for each host."""

    def __init__(self, sweep: Sweep, output: Path, headers: Mapping[Host, Header]) -> None:
        self._sweep, self._headers = sweep, headers
        self._header = next(iter(headers.values()))
        self.folder = output / "hosts"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._writers: dict[Host, Writer] = {}
        self._lines: list[dict[str, Any]] = []
        merged = output / f"{sweep.name}.jsonl"
        paths = parts_of(sweep, output)
        if merged.exists() and not paths:
            raise RecordError(
                f"{merged} was not measured by hosts: --restart begins it anew, -o keeps it and"
                " measures into another folder"
            )
        for path in paths:
            before = read(path, unfinished=True)
            why = unlike(before.header, self._header)
            if why is not None:
                raise RecordError(
                    f"{path} is of other hosts, or was begun otherwise ({why}): --restart begins"
                    " it anew, -o keeps it and measures into another folder"
                )
            self._lines += map(object_of, before.taken)

    def lines(self, cases: Iterable[Case]) -> list[str]:
        """Return what there is of some cases, below a header."""
        mine = {case.name for case in cases}
        kept = [line for line in self._lines if line["case"] in mine]
        return [json.dumps(line) for line in (object_of(self._header), *kept)]

    def add(self, host: Host, record: dict[str, Any]) -> None:
        """Keep a line of a host's, on the disk at once."""
        header = self._headers[host]
        found = _parsed(object_of(header), record)
        if host not in self._writers:
            path = self.folder / f"{self._sweep.name}.{host.name}.jsonl"
            new = not (path.exists() and path.stat().st_size)
            self._writers[host] = Writer(path, header if new else None)
        taken: list[Sample | Timeline] = [*found.samples, *found.timelines]
        for one in taken:
            self._writers[host].add(one)
            self._lines.append(record)

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()


# ---- What they took, put together ----


def put_together(paths: Sequence[Path], output: Path) -> Recording:
    """Put the parts of a sweep together, in a folder that the caller has locked."""
    _refuse_strangers([(path.name, read(path)) for path in paths])
    unfinished = output.with_suffix(".part")
    try:
        unfinished.write_bytes(b"".join(path.read_bytes() for path in paths))
        unfinished.replace(output)
    finally:
        unfinished.unlink(missing_ok=True)
    return read(output)


def _refuse_strangers(parts: Sequence[tuple[str, Recording]]) -> None:
    first_name, first = parts[0]
    owner: dict[tuple[object, ...], str] = {}
    for name, part in parts:
        if why := differs(first.header, part.header, of_parts=True):
            raise RecordError(f"{first_name} and {name} are not parts of one sweep: {why}")
        for taken in part.taken:
            if taken.key in owner:
                raise RecordError(
                    f"{owner[taken.key]} and {name} both hold {taken}: they are the same part"
                )
        owner |= {taken.key: name for taken in part.taken}


# ---- On a host ----


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
    before = json.loads(sys.stdin.readline() or "[]")
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


def _end_with_the_input() -> None:
    while os.read(0, 1 << 16):  # not by sys.stdin, on which it would hold a lock
        pass
    os.kill(os.getpid(), signal.SIGTERM)

# SPDX-License-Identifier: BSD-3-Clause
"""A sweep on many hosts of one kind: each measures a part of it, and takes over those of the lost.

Each host has a record here, of all that it took. What is in one of them is not taken again, by
whomever; at the end they are put together.
"""

import dataclasses
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from bench.files import put_together
from bench.machines import facts_of
from bench.plan import SEED, cases_of
from bench.sweeps import Size, Sweep
from spead_tutorial.hosts.engines import Engines, Job, LostError
from spead_tutorial.hosts.file import Host
from spead_tutorial.measure.case import Case
from spead_tutorial.measure.machine import revision
from spead_tutorial.measure.rounds import differences, left, schedule
from spead_tutorial.records import (
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

__all__ = ["Progress", "Team", "parts_of"]

_LOOK_S = 0.1
_FACTS_S = 120
#: What `differs` looks at more closely than `differences`.
_TOLD_EXACTLY = {"machine", "lab", "versions", "revision"}


#: Is told how many samples are to be taken, how many have begun, and which host begins one, with
#: its line.
Progress: TypeAlias = Callable[[int, int, str, dict[str, Any]], None]


def parts_of(sweep: Sweep, output: Path) -> list[Path]:
    """Return the hosts' records of a sweep that there are in a folder."""
    return sorted((output / "hosts").glob(f"{sweep.name}.*.jsonl"))


@dataclasses.dataclass(slots=True)
class _Member:
    """A host that measures."""

    host: Host
    job: Job
    header: Header | None = None
    part: int = 0


class _Work:
    """The parts of a sweep: which of them wait for a host, and what comes of the others."""

    def __init__(
        self,
        begun: "_Begun",
        wanted: Mapping[int, Sequence[Case]],
        command: list[str],
        to_do: Mapping[int, int],
        progress: Progress,
    ) -> None:
        self.begun = begun
        self.waiting = deque(part for part, n in to_do.items() if n)
        self._wanted, self._command, self._progress = wanted, command, progress
        self._total, self._steps = sum(to_do.values()), 0

    def order(self, part: int) -> tuple[list[str], str]:
        """Return the command that takes a part, and what it is told."""
        told = self.begun.text(case.name for case in self._wanted[part])
        return [*self._command, "--part", str(part)], told

    def hear(self, member: _Member, say: Callable[[str], None]) -> None:
        """Take in what a host has to tell."""
        for record in member.job.lines():
            if record["record"] == "step":
                self._steps += 1
                self._progress(self._total, self._steps, member.host.name, record)
            elif record["record"] == "said":
                say(f"{member.host.name}: {record['text']}")
            else:
                self.begun.add(member, record)

    def give_back(self, member: _Member) -> None:
        """Have another host take what is left of the part of one that is lost."""
        self.waiting.append(member.part)
        self._steps -= 1  # what it was at is begun again


class Team:
    """Hosts that measure together."""

    def __init__(self, engines: Engines, hosts: Sequence[Host], say: Callable[[str], None]) -> None:
        self._engines = engines
        self._say = say
        self._hosts: list[Host] = []
        for host in hosts:
            try:
                engines.start(host)
                self._hosts.append(host)
            except LostError as error:
                self._lose(host, error)

    def measure(
        self,
        sweep: Sweep,
        size: Size,
        rounds: int,
        output: Path,
        *,
        retry: bool,
        progress: Progress,
    ) -> Recording:
        """Take all samples of a sweep that the hosts' records do not hold yet."""
        members = self._introduced(sweep, size, rounds)
        header = members[0].header
        assert header is not None
        begun = _Begun(sweep, output, header)
        skipped = header.settings.get("skipped", {})
        wanted = {
            part: [case for case in cases_of(sweep, size, (part, len(members)))
                   if case.name not in skipped]
            for part in range(1, len(members) + 1)
        }  # fmt: skip
        taken = begun.recording()
        to_do = {
            part: len(left(schedule(cases, rounds, SEED), taken, retry=retry))
            for part, cases in wanted.items()
        }
        command = ["-m", "bench", "take", sweep.name, "--size", size.name]
        command += ["--rounds", str(rounds), "--parts", str(len(members))]
        command += ["--retry"] * retry
        work = _Work(begun, wanted, command, to_do, progress)
        try:
            self._share(work, members)
        finally:
            begun.close()
        return put_together(parts_of(sweep, output), output / f"{sweep.name}.jsonl")

    def _share(self, work: "_Work", members: Sequence[_Member]) -> None:
        """Give parts to whoever is free, and listen to whoever is not, until nothing is left."""
        idle, busy = deque(members), list[_Member]()
        while work.waiting or busy:
            while work.waiting and idle:
                member = idle.popleft()
                part = work.waiting.popleft()
                try:
                    argv, told = work.order(part)
                    member.part, member.job = part, self._engines.run(member.host, argv, told)
                    busy.append(member)
                except LostError as error:
                    work.waiting.appendleft(part)
                    self._lose(member.host, error)
            if not busy and work.waiting:
                raise RecordError(
                    f"no host is left: what was taken is in {work.begun.folder}, and the same"
                    " command goes on from there"
                )
            for member in list(busy):
                try:
                    work.hear(member, self._say)
                except LostError as error:
                    busy.remove(member)
                    work.give_back(member)
                    self._lose(member.host, error)
                    continue
                if member.job.over:
                    busy.remove(member)
                    idle.append(member)
            time.sleep(_LOOK_S)

    def _lose(self, host: Host, error: LostError) -> None:
        self._say(f"{host.name} is lost: {error}")
        self._hosts = [one for one in self._hosts if one is not host]

    def _introduced(self, sweep: Sweep, size: Size, rounds: int) -> list[_Member]:
        """Have all hosts say what they are, and refuse those that are not of one kind."""
        argv = ["-m", "bench", "take", sweep.name, "--size", size.name, "--rounds", str(rounds)]
        argv += ["--part", "1", "--parts", "1", "--header"]
        members = []
        for host in list(self._hosts):
            try:
                members.append(_Member(host, self._engines.run(host, argv, "[]")))
            except LostError as error:
                self._lose(host, error)
        until = time.monotonic() + _FACTS_S
        for member in list(members):
            try:
                self._listen(member, until)
            except LostError as error:
                members.remove(member)
                self._lose(member.host, error)
        if not members:
            raise RecordError("no host can measure: see the lines above")
        first, *others = members
        here = revision()
        for member in members:
            assert member.header is not None
            if None not in (here, member.header.revision) and member.header.revision != here:
                raise RecordError(
                    f"{member.host.name} has revision {member.header.revision} of the repository,"
                    f" and here it is {here}: bring both to the same"
                )
        for member in others:
            assert first.header is not None
            assert member.header is not None
            difference = differs(first.header, member.header)
            if difference is not None:
                raise RecordError(
                    f"{first.host.name} and {member.host.name} are not of one kind: {difference}"
                )
        return members

    def _listen(self, member: _Member, until: float) -> None:
        while not member.job.over:
            for record in member.job.lines():
                if record["record"] == "header":
                    line = json.dumps(record)
                    member.header = parse([line], member.host.name).header
                elif record["record"] == "said":
                    self._say(f"{member.host.name}: {record['text']}")
            if time.monotonic() > until:
                raise LostError(f"it did not say in {_FACTS_S} s what it is")
            time.sleep(_LOOK_S)
        if member.header is None:
            raise LostError("it did not say what it is")


def differs(one: Header, other: Header) -> str | None:
    """Say what makes two hosts no hosts of one kind, if anything does."""
    mine, theirs = _facts(one), _facts(other)
    if one.revision is not None and not one.revision.endswith("+"):
        # The same source, built in another folder, is another file.
        mine, theirs = (
            {key: value for key, value in facts.items() if not key.endswith("build")}
            for facts in (mine, theirs)
        )
    for key in [*mine, *(theirs.keys() - mine.keys())]:
        if mine.get(key) != theirs.get(key):
            first, second = (
                "unknown" if facts.get(key) is None else facts[key] for facts in (mine, theirs)
            )
            return f"{key} is {first}, and {second}"
    skips, others = (header.settings.get("skipped", {}) for header in (one, other))
    for name in sorted(skips.keys() ^ others.keys()):
        return f"only one of them can run {name}: {(skips | others)[name]}"
    return None


def _facts(header: Header) -> dict[str, object]:
    return facts_of(header) | {"revision": header.revision} | header.versions


class _Begun:
    """What has been taken of a sweep: the hosts' records, and a writer for each host."""

    def __init__(self, sweep: Sweep, output: Path, header: Header) -> None:
        self._sweep = sweep
        self.folder = output / "hosts"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._header = header
        self._writers: dict[str, Writer] = {}
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
            changed = set(differences(before.header, header)) - _TOLD_EXACTLY
            why = f"another {min(changed)}" if changed else differs(before.header, header)
            if why is not None:
                raise RecordError(
                    f"{path} is of other hosts, or was begun otherwise ({why}): --restart begins"
                    " it anew, -o keeps it and measures into another folder"
                )
            for one in (before.superseded, before.samples, before.timelines):
                self._lines += map(object_of, one)

    def recording(self) -> Recording:
        """Return all of it."""
        return parse([json.dumps(line) for line in (object_of(self._header), *self._lines)], "it")

    def text(self, names: Iterable[str]) -> str:
        """Return what there is of some cases, as a command is told it."""
        mine = set(names)
        lines = [line for line in self._lines if line["case"] in mine]
        return json.dumps([json.dumps(line) for line in (object_of(self._header), *lines)])

    def add(self, member: _Member, record: dict[str, Any]) -> None:
        """Keep a line of a host's, on the disk at once."""
        assert member.header is not None
        name = member.host.name
        header = json.dumps(object_of(member.header))
        found = parse([header, json.dumps(record)], name)
        path = self.folder / f"{self._sweep.name}.{name}.jsonl"
        if name not in self._writers:
            new = not (path.exists() and path.stat().st_size)
            self._writers[name] = Writer(path, member.header if new else None)
        taken: list[Sample | Timeline] = [*found.samples, *found.timelines]
        for one in taken:
            self._writers[name].add(one)
            self._lines.append(record)

    def close(self) -> None:
        """Close the hosts' records."""
        for writer in self._writers.values():
            writer.close()

# SPDX-License-Identifier: BSD-3-Clause
"""A sweep on many hosts: complete though one is lost, and nothing left behind on any of them."""

import fcntl
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from msgspec.structs import replace

from bench import hosts
from bench.plan import alone, plan_of
from bench.sweeps import SIZES, Sweep, find_sweep
from spead_tutorial.measure.records import (
    Header,
    RecordError,
    Recording,
    Writer,
    object_of,
    parse,
    read,
)
from spead_tutorial.measure.rounds import left
from spead_tutorial.tools.hosts import Host, LostError, read_hosts
from spead_tutorial.tools.progress import Steps
from support import ROOT
from support.bench import PATIENCE_S, bench, fails, keys, start, succeeds
from support.labs import needs_lab
from support.records import HEADER, SAMPLE
from support.typed import Marked

SWEEP = "tut-6-loopback"
#: What a host is, less what it is called.
HERE = f'python = "{sys.executable}"\nfolder = "{ROOT}"\n'


class Place(Marked):
    """Where a test measures."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def argv(self, *tables: str) -> list[object]:
        """Write a file of hosts, and return the command that measures on them."""
        path = self.folder / "hosts.toml"
        path.write_text("".join(f"[[host]]\n{table}\n" for table in tables))
        return ["run", SWEEP, "--tiny", "--rounds", 1, "--hosts", path, "-o", self.output]

    @property
    def output(self) -> Path:
        return self.folder / "records"

    @property
    def parts(self) -> list[Path]:
        return sorted(self.output.glob("hosts/*.jsonl"))

    def start(self, *tables: str) -> "subprocess.Popen[str]":
        return start(*self.argv(*tables), env=self.environment)

    def taken(self) -> int:
        return sum(path.read_text().count('"record": "sent"') for path in self.parts)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.kill()


# ---- Measuring ----


@needs_lab
@pytest.mark.thorough
def test_a_record_is_complete_though_a_host_is_lost_and_nothing_stays(place):
    tables = [f'name = "{name}"\n{HERE}' for name in "ab"]
    with place.start(*tables) as process:
        while place.taken() < 2 and process.poll() is None:
            time.sleep(0.05)
        os.kill(min(place.processes("take")), signal.SIGKILL)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert err.count(" is lost: its command was ended by SIGKILL\n") == 1
    found = read(place.output / f"{SWEEP}.jsonl")
    assert keys(found) == keys_of(find_sweep(SWEEP))
    assert not found.superseded
    assert len(found.headers) == len(place.parts) <= 2
    assert " MB/s " in out
    place.wait_until_nothing_is_left()
    # `status` knows that it is complete.
    assert "complete" in succeeds("status", place.output / f"{SWEEP}.jsonl")


def keys_of(sweep: Sweep) -> Counter[tuple[str, int, bool]]:
    """What a complete record of a sweep has: each case once to warm up, and once."""
    return Counter(step.key for step in plan_of(sweep, SIZES["tiny"], 1).steps())


def test_hosts_that_cannot_be_reached_are_named_one_by_one(place):
    nowhere = f'folder = "{place.folder}"\npython = "python"\n'
    done = bench(*place.argv(f'name = "a"\n{nowhere}'))
    assert done.returncode == 1
    assert done.stderr == (
        f"a is lost: No such file or directory: {place.folder}/python\n"
        "python -m bench: no host can measure: see the lines above\n"
    )


def test_what_does_not_go_with_hosts_is_refused(place):
    said = fails(*place.argv('name = "a"\n'), "--only-noisy", status=2)
    assert "--hosts goes with none of" in said


@needs_lab
def test_what_measures_on_a_host_ends_with_whoever_asked():
    options = ["--size", "tiny", "--rounds", "1000", "--part", "1", "--parts", "1"]
    with start("take", SWEEP, *options, stdin=subprocess.PIPE) as process:
        process.stdin.write("[]\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["record"] == "step"
        process.stdin.close()
        process.stdin = None
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGTERM


# ---- How they share it ----


class Job:
    """What a host does: some lines whenever somebody listens."""

    def __init__(self, lines: Iterator[list[dict[str, Any]]]) -> None:
        self._lines = lines
        self.over = False

    def lines(self) -> list[dict[str, Any]]:
        self.over = True
        found = next(self._lines, None)
        self.over = found is None
        return found or []

    def end(self) -> None:
        pass

    wait = end


class InProcess:
    """Hosts that take made-up samples, and some of which are lost after so many."""

    def __init__(self, headers: dict[str, Header], patience: dict[str, int]) -> None:
        self.headers, self.patience = headers, patience
        self.taken: Counter[str] = Counter()

    def run(self, host: Host, argv: list[str], first: str) -> Job:
        if host.name not in self.headers:
            raise LostError("it is not there")
        return Job(self._work(host.name, argv, first))

    def _work(self, name: str, argv: list[str], first: str) -> Iterator[list[dict[str, Any]]]:
        if "--header" in argv:
            yield [object_of(self.headers[name])]
            return
        part, parts = (int(argv[argv.index(word) + 1]) for word in ("--part", "--parts"))
        plan = plan_of(MANY, TINY, 1, (part, parts))
        for step in left(plan.steps(), parse(json.loads(first), "it")):
            if self.taken[name] == self.patience.get(name):
                raise LostError("it is gone")
            self.taken[name] += 1
            case, number, warm_up = step.key
            one = replace(SAMPLE, case=case, round=number, warm_up=warm_up)
            step_of = {"record": "step", "case": case, "stage": "a round"}
            yield [step_of, {"record": "said", "text": "well"}]
            yield [object_of(one)]


MANY, TINY = find_sweep("tut-6"), SIZES["tiny"]
SAME = replace(HEADER, experiment=MANY.name)


def shared(
    folder: Path, headers: dict[str, Header], **patience: int
) -> tuple[Recording, InProcess, list[str]]:
    """Measure on hosts a, b and c, those that have a header."""
    said: list[str] = []
    made = InProcess(headers, patience)
    team = hosts.Team([Host(name, str(ROOT), "python") for name in "abc"], said.append)
    with mock.patch.object(hosts, "Command", made.run), Steps() as show:
        found = team.measure(MANY, TINY, 1, folder, show, retry=False)
    return found, made, said


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(hosts, "_LOOK_S", 0)
    monkeypatch.setattr(hosts, "revision", lambda: None)
    monkeypatch.setattr("os.fsync", lambda fd: None)


def test_others_take_over_what_a_lost_host_had_to_do_and_nothing_is_taken_twice(
    tmp_path, impatient
):
    found, engines, said = shared(tmp_path, {"a": SAME, "c": SAME}, a=3)
    wanted = keys_of(MANY)
    assert keys(found) == wanted
    assert engines.taken["a"] == 3
    assert engines.taken.total() == wanted.total()
    assert said[0] == "b is lost: it is not there"
    assert Counter(said)["a is lost: it is gone"] == 1
    assert Counter(said)["c: well"] == engines.taken["c"]
    again, engines, _ = shared(tmp_path, {"a": SAME, "c": SAME})
    assert (again.samples, engines.taken.total()) == (found.samples, 0)


@pytest.mark.parametrize(
    "line",
    [
        {"record": "step"},
        {"record": "said", "text": None},
        {"record": "sent", "case": "nothing else"},
        {"record": "strange"},
        {"record": []},
    ],
)
def test_a_host_that_says_what_is_not_understood_is_lost(tmp_path, impatient, monkeypatch, line):
    work = InProcess._work

    def rubbish(self: InProcess, name: str, argv: list[str], first: str) -> Any:
        if name == "a" and "--header" not in argv:
            return itertools.repeat([line])
        return work(self, name, argv, first)

    monkeypatch.setattr(InProcess, "_work", rubbish)
    found, _, said = shared(tmp_path, {"a": SAME, "c": SAME})
    assert keys(found) == keys_of(MANY)
    (why,) = (one for one in said if one.startswith("a is lost: "))
    assert "what it says line 2" in why


def test_where_no_host_is_left_another_time_goes_on(tmp_path, impatient):
    with pytest.raises(RecordError, match=r"no host is left: .* goes on from there"):
        shared(tmp_path, {"a": SAME, "b": SAME}, a=3, b=2)
    found, engines, _ = shared(tmp_path, {"c": SAME})
    assert set(keys(found).values()) == {1}
    assert engines.taken["c"] == len(found.samples) - 5


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"machine": {"usable_cores": 1}}, "a and b are not of one kind: usable_cores is 2, and 1"),
        ({"revision": "strange"}, "b has revision strange of the repository, and here it is here"),
    ],
)
def test_hosts_of_different_kinds_are_refused_by_what_differs(
    tmp_path, impatient, monkeypatch, other, words
):
    monkeypatch.setattr(hosts, "revision", lambda: "here")
    with pytest.raises(RecordError, match=words):
        shared(tmp_path, {"a": SAME, "b": changed(SAME, other)})


# ---- Which hosts ----


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "missing required field `host`"),
        ("here = 3", "unknown field `here`"),
        ('[[host]]\nname = "../a"', "at `$.host[0].name`"),
        ('[[host]]\nname = "a"\n[[host]]\nname = "a"', "two hosts of the name a"),
        ('[[host]]\nname = "a"\nport = 3', "unknown field `port`"),
        ('[[host]]\nname = "a"\naddress = "b"', "a needs folder, the whole path"),
        ('[[host]]\nname = "a"\nfolder = "b"', "at `$.host[0].folder`"),
        ('[[host]]\nname = "a\\n"', "at `$.host[0].name`"),
        ('[[host]]\nname = "a"\nfolder = "/b\\u0000"', "at `$.host[0].folder`"),
        ('[[host]]\nname = "a"\nprefix = ["b\\u0000"]', "at `$.host[0].prefix[0]`"),
    ],
)
def test_a_file_of_hosts_that_cannot_be_meant_is_refused(tmp_path, text, words):
    path = tmp_path / "hosts.toml"
    path.write_text(text)
    with pytest.raises(RecordError) as error:
        read_hosts(path)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_hosts_are_this_machine_or_those_that_the_guide_shows(tmp_path):
    path = tmp_path / "hosts.toml"
    path.write_text('[[host]]\nname = "a"\n')
    (found,) = read_hosts(path)
    assert (found.folder, found.python_path) == (None, sys.executable)
    page = (ROOT / "docs" / "how-to" / "many-hosts.md").read_text()
    path.write_text(page.partition("```toml\n")[2].partition("```")[0])
    both = read_hosts(path)
    assert [host.name for host in both] == ["a", "b"]
    assert all(host.address for host in both)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ({}, {"machine": {"kernel": "0.1"}}, "kernel is 6.1, and 0.1"),
        ({}, {"machine": {"turbo": "on"}}, "turbo is unknown, and on"),
        ({}, {"lab": {"kind": "strange"}}, "lab kind is dummy, and strange"),
        ({}, {"revision": "another"}, "revision is unknown, and another"),
        ({}, {"settings": {"skipped": {"one": "why"}}}, "only one of them can run one: why"),
        ({}, {"machine": {"load": 99.0}}, None),
        ({"revision": "a", "versions": {"build": "1"}}, {"versions": {"build": "2"}}, None),
        (
            {"revision": "a+", "versions": {"build": "1"}},
            {"versions": {"build": "2"}},
            "build is 1, and 2",
        ),
    ],
)
def test_hosts_differ_by_all_but_load_and_the_file_that_the_same_source_became(
    before, after, words
):
    header = changed(HEADER, before)
    assert hosts.unlike(header, changed(header, after)) == words


def changed(header: Header, fields: dict[str, Any]) -> Header:
    new = {
        name: getattr(header, name) | value if isinstance(value, dict) else value
        for name, value in fields.items()
    }
    return replace(header, **new)


def test_a_record_that_no_hosts_made_is_not_overwritten(tmp_path):
    with Writer(tmp_path / f"{SWEEP}.jsonl", HEADER) as writer:
        writer.add(SAMPLE)
    with pytest.raises(RecordError, match="was not measured by hosts"):
        hosts._Begun(find_sweep(SWEEP), tmp_path, {Host("a"): HEADER})


# ---- One at a time ----


def test_only_one_has_a_machine_at_a_time(tmp_path):
    other = os.open(tmp_path, os.O_RDONLY)
    with alone(tmp_path), pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(other)

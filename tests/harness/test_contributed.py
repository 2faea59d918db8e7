# SPDX-License-Identifier: BSD-3-Clause
"""Which records of other machines are taken, and why others are not."""

import copy
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench import contributed
from bench.sweeps import find_sweep
from spead_tutorial import records
from support.bench import bench

LINES = [json.loads(line) for line in contributed.LADDER.read_text().splitlines()]
Line = dict[str, Any]


@pytest.fixture
def refused(tmp_path: Path) -> Callable[..., list[str]]:
    """Change lines of the reference machine's record, and say why the result is refused."""

    def problems(change: Callable[[list[Line]], object], name: str = "some-machine") -> list[str]:
        lines = [copy.deepcopy(LINES[0]), *map(dict, LINES[1:])]
        change(lines)
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return contributed.problems(path, "somebody")

    return problems


def counted(lines: list[Line]) -> Line:
    """The last sample of C that counts and was sent to the lab's device."""
    return next(
        one
        for one in reversed(lines[1:])
        if one["language"] == "c" and not one["warm_up"] and one["device"] != "lo"
    )


@pytest.mark.parametrize("name", contributed.records())
def test_every_record_of_a_machine_has_all_that_is_asked_of_it(name):
    assert contributed.problems(contributed.records()[name]) == []


def test_no_machine_has_two_records_of_one_time():
    headers = [records.read(path).header for path in contributed.records().values()]
    assert len({(one.time, one.machine["cpu"]) for one in headers}) == len(headers)


def test_records_are_called_as_their_files_and_the_reference_machines_is_the_first(tmp_path):
    for name in ("b-machine", "a-machine"):
        (tmp_path / f"{name}.jsonl").touch()
    assert list(contributed.records(tmp_path)) == ["reference", "a-machine", "b-machine"]


def test_a_record_without_the_peer_is_taken(refused):
    def leave_out(lines):
        lines[:] = [one for one in lines if one.get("implementation") != "spead2-source"]

    assert refused(leave_out) == []


@pytest.mark.parametrize(
    ("part", "name", "value", "why"),
    [
        ("machine", "cpu", None, "machine.cpu is not known"),
        ("machine", "host", "a name", "machine.host is nothing that a record has"),
        ("machine", "kernel", "6.1-somebody", "line 1 has the name of a user, somebody: '6.1-som"),
        ("machine", "cpu", "/home/x/cpu", "line 1 names this machine or a folder of it: '/home/x"),
        ("lab", "kind", "loopback", "it was not measured in a lab of kind dummy, ifb, veth"),
        ("settings", "size", "quick", "it is no whole record of full size"),
        ("settings", "shard", "1/2", "it is no whole record of full size"),
        ("versions", "compiler", "", "versions.compiler is not known"),
    ],
)
def test_a_fact_that_is_wrong_is_named(refused, part, name, value, why):
    found = refused(lambda lines: lines[0][part].update({name: value}))
    assert any(problem.startswith(why) for problem in found), found


def test_a_fact_that_is_missing_is_named(refused):
    assert refused(lambda lines: lines[0]["machine"].pop("turbo")) == ["machine.turbo is missing"]


def test_the_name_of_the_machine_is_found(refused, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "my-machine")
    (problem,) = refused(lambda lines: lines[0]["machine"].update(governor="of my-machine"))
    assert problem == "line 1 names this machine or a folder of it: 'of my-machine'"


@pytest.mark.parametrize(
    ("revision", "why"),
    [
        ("1262a2e4a07f+", "revision 1262a2e4a07f+ had changes: commit or stash them"),
        (None, "it does not say which revision was measured"),
        ("main", "'main' is no revision"),
    ],
)
def test_a_revision_has_to_be_known_and_unchanged(refused, revision, why):
    (problem,) = refused(lambda lines: lines[0].update(revision=revision))
    assert problem.startswith(why)


def test_a_record_of_another_sweep_is_refused(refused):
    (problem,) = refused(lambda lines: lines[0].update(experiment="tut-10"))
    assert problem == "it is of the sweep tut-10: python -m bench run ladder"


def test_a_record_that_was_merged_is_refused(refused):
    (problem,) = refused(lambda lines: lines.append(LINES[0]))
    assert problem.startswith("it was merged")


def test_a_case_that_is_missing_or_of_something_else_is_named(refused):
    case = counted(LINES)["case"]

    def rename(lines):
        for one in lines:
            if one.get("case") == case:
                one["case"] = "another"

    found = refused(rename)
    assert found[0] == f"not measured, and ladder has it: {case}"
    assert found[1] == "no case of ladder: another"


def test_a_round_that_is_missing_is_told(refused):
    case = counted(LINES)["case"]
    (problem,) = refused(lambda lines: lines.remove(counted(lines)))
    assert problem == f"fewer than 9 rounds: {case} (8)"


def test_a_failure_is_told(refused):
    case = counted(LINES)["case"]
    (problem,) = refused(lambda lines: counted(lines).update(failure="it was stopped"))
    assert problem == f"failed (--only-noisy repeats it): {case}: it was stopped"


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("counted_packets", 1, "SPEAD packets"),
        ("counted_bytes", 1, "SPEAD packets"),
        ("counted_bytes", None, "it does not say what was sent and counted"),
        ("errors", 1, "1 of its packets failed"),
        ("payload_bytes", 1, "its report contradicts itself"),
        ("language", "python", "it is of ours python"),
        ("device", "eth0", "it was sent to eth0, which is not the lab's"),
    ],
)
def test_a_sample_that_cannot_be_believed_is_told(refused, field, value, why):
    case = next(
        one
        for one in find_sweep("ladder").cases
        if (one.implementation, one.language, one.program) == ("ours", "c", "tut_13_send_hot")
    ).name

    def change(lines):
        sample = next(one for one in lines if one.get("case") == case and not one["warm_up"])
        sample[field] = value

    (problem,) = refused(change)
    assert problem.startswith(f"cannot be believed: {case}, round 0: ")
    assert why in problem


@pytest.mark.parametrize("name", ["My Machine", "reference", "a_b", "-a"])
def test_the_name_of_a_record_is_plain(refused, name):
    (problem,) = refused(lambda lines: None, name)
    assert problem.startswith(f"a record cannot be called {name}.jsonl: ")


def test_what_is_no_record_is_told_in_one_line(tmp_path):
    path = tmp_path / "some.jsonl"
    path.write_text("no record\n")
    (problem,) = contributed.problems(path)
    assert problem == "some.jsonl line 1 is not a JSON object: 'no record'"


def test_the_command_says_of_each_record_whether_it_can_be_contributed(tmp_path):
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text("no record\n")
    done = bench("check", contributed.LADDER, wrong)
    assert done.returncode == 1
    header = records.read(contributed.LADDER).header
    assert done.stdout.startswith(
        f"{contributed.LADDER}: can be contributed ({header.machine['cpu']}"
    )
    assert done.stderr == f"{wrong}: wrong.jsonl line 1 is not a JSON object: 'no record'\n"
    assert bench("check", contributed.LADDER).returncode == 0

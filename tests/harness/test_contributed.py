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
from spead_tutorial.measure import records
from support.bench import bench, succeeds

LINES = [json.loads(line) for line in contributed.LADDER.read_text().splitlines()]
LADDER = records.read(contributed.LADDER)
PROGRAM = "tut_10_send_reuse_heaps"
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


WHOLE = "it is no whole record of full size"


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        (
            "My Machine",
            [
                ("machine.cpu", None, "machine.cpu is not known"),
                ("machine.host", "a name", "machine.host is nothing that a record has"),
                ("machine.kernel", "6.1-somebody", "line 1 has the name of a user, somebody: '6."),
                ("machine.turbo", ..., "machine.turbo is missing"),
                ("settings.size", "quick", WHOLE),
                ("versions.compiler", "", "versions.compiler is not known"),
                ("revision", "1262a2e4a07f+", "revision 1262a2e4a07f+ had changes: commit or"),
            ],
        ),
        (
            "reference",
            [
                ("machine.cpu", "/home/x/cpu", "line 1 names this machine or a folder of it: '/h"),
                ("settings.shard", "1/2", WHOLE),
                ("revision", None, "it does not say which revision was measured"),
                ("experiment", "tut-10", "it is of the sweep tut-10: python -m bench run ladder"),
            ],
        ),
        (
            "a_b",
            [
                ("machine.governor", "of my-machine", "line 1 names this machine or a folder of"),
                ("lab.kind", "loopback", "it was not measured in a lab of kind dummy, ifb, veth"),
                ("revision", "main", "'main' is no revision"),
            ],
        ),
        ("-a", []),
    ],
)
def test_each_fact_that_is_wrong_is_named(refused, monkeypatch, name, facts):
    monkeypatch.setattr(socket, "gethostname", lambda: "my-machine")

    def change(lines: list[Line]) -> None:
        for path, value, _ in facts:
            part, _, key = path.rpartition(".")
            within = lines[0][part] if part else lines[0]
            within[key] = value
            if value is ...:
                del within[key]

    found = refused(change, name)
    why = [f"a record cannot be called {name}.jsonl: ", *(words for *_, words in facts)]
    assert len(found) == len(why), found
    for words in why:
        assert [one.startswith(words) for one in found].count(True) == 1, (words, found)


def test_a_record_that_was_merged_is_refused(refused):
    (problem,) = refused(lambda lines: lines.append(LINES[0]))
    assert problem.startswith("it was merged")


def test_what_is_wrong_with_samples_is_told(refused):
    def change(lines: list[Line]) -> None:
        names = dict.fromkeys(one["case"] for one in lines[1:] if one["program"] == PROGRAM)
        for case in list(names)[:3]:
            mine = [one for one in lines[1:] if one["case"] == case and not one["warm_up"]]
            cases.append((case, mine))
        for one in lines[1:]:
            if one["case"] == cases[0][0]:
                one["case"] = "another"
        lines.remove(cases[1][1][-1])
        cases[2][1][-1]["failure"] = "it was stopped"

    cases: list[tuple[str, list[Line]]] = []
    found = refused(change)
    names = [name for name, _ in cases]
    assert found == [
        f"not measured, and ladder has it: {names[0]}",
        "no case of ladder: another",
        f"fewer than 9 rounds: {names[1]} (8)",
        f"failed (--only-noisy repeats it): {names[2]}: it was stopped",
    ]


def test_the_command_says_of_each_record_whether_it_can_be_contributed(tmp_path):
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text("no record\n")
    done = bench("check", contributed.LADDER, wrong)
    assert done.returncode == 1
    cpu = LADDER.header.machine["cpu"]
    assert done.stdout.startswith(f"{contributed.LADDER}: can be contributed ({cpu}")
    assert done.stderr == f"{wrong}: wrong.jsonl line 1 is not a JSON object: 'no record'\n"
    succeeds("check", contributed.LADDER)

# SPDX-License-Identifier: BSD-3-Clause
"""The table of machines, with records of machines that do not exist: the reference machine's."""

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.figures import RESULTS
from support.site import extension

LADDER = RESULTS / "ladder.jsonl"

#: What each machine's record says, and how many times as fast it is as the reference machine.
MADE_UP: dict[str, tuple[float, dict[str, Any]]] = {
    "big-server": (3.0, {"cpu": "Made-up <Big> 64", "usable_cores": 64, "kernel": "6.2.10"}),
    "old-laptop": (
        0.5,
        {
            "cpu": "Another that nobody has",
            "usable_cores": 4,
            "kernel": "5.10.1",
            "caches_bytes": None,
        },
    ),
}


def make(path: Path, faster: float, machine: dict[str, Any]) -> Path:
    """Write a record that is the reference machine's, but for its facts, rates and C++."""
    lines = [json.loads(line) for line in LADDER.read_text().splitlines()]
    lines = [one for one in lines if one.get("language") != "cpp"]
    lines[0]["machine"] |= machine
    for one in lines[1:]:
        one["elapsed_ns"] = round(one["elapsed_ns"] / faster)
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    """What makes the table."""
    measured, module = extension("measured"), extension("measured_tables")
    folder = tmp_path_factory.mktemp("results")
    shutil.copy(LADDER, folder)
    (folder / "machines").mkdir()
    make(folder / "elsewhere.jsonl", *next(iter(MADE_UP.values())))
    for name, its in MADE_UP.items():
        make(folder / "machines" / f"{name}.jsonl", *its)
    with pytest.MonkeyPatch.context() as patch:
        for one in (measured, module):
            patch.setattr(one, "RESULTS", folder)
        yield module


def columns(module: Any, language: str) -> dict[str, list[str]]:
    """What each column says, by its head: of roles, what these say."""

    def said(cell: str) -> str:
        role = re.fullmatch(r"\{(rate|gain|of-ceiling)\}`(.+)`", cell)
        return module.SAYS[role[1]](role[2]).text if role else cell

    heads, *rows = module.machines(language).rows
    return {head: list(map(said, its)) for head, *its in zip(heads, *rows, strict=True)}


def number(text: str) -> float:
    return float(re.sub(r"\s|MB/s|%", "", text))


def test_a_machine_has_its_own_rates_beside_what_it_is_and_the_reference_comes_first(machines):
    found = columns(machines, "c")
    for head, cells in found.items():
        if head.startswith("Chapter") and "of bare loop" not in head:
            reference, *others = map(number, cells)
            assert others == pytest.approx([3.0 * reference, 0.5 * reference], rel=0.01), head
        elif "heaps of" in head:
            assert len(set(cells)) == 1, head  # gains do not depend on how fast it is
    reference, other, _ = found["Machine"]
    cpu = re.escape(json.loads(LADDER.open().readline())["machine"]["cpu"])
    assert re.fullmatch(rf"\{{download\}}`{cpu}, 2 .+ladder.jsonl>` \(reference\)", reference)
    assert other.startswith("{download}`Made-up &lt;Big&gt; 64, 64 cores, ")
    assert found["Kernel"][1:] == ["Linux 6.2.10", "Linux 5.10.1"]
    unknown = columns(machines, "cpp").items()  # which these records have nothing of
    assert {cell for head, its in unknown if "heaps of" in head for cell in its} == {"-"}


def test_a_row_is_named_by_what_its_machine_does_not_share_with_all_others():
    told_apart = extension("measured_tables")._told_apart
    one = {"cpu": "A", "cores": "2", "L1d": "32 KiB", "L2": "1 MiB"}
    assert told_apart([one]) == ["A"]
    assert told_apart([one, one]) == ["A", "A (2)"]
    assert told_apart([one, one | {"L2": "512 KiB"}]) == ["1 MiB of L2", "512 KiB of L2"]
    others = [one, one | {"cores": "8"}, {"cpu": "A", "cores": "2", "L2": "1 MiB"}]
    assert told_apart(others) == ["2 cores, 32 KiB of L1d", "8 cores, 32 KiB of L1d", "2 cores"]


def test_a_number_leads_to_what_is_said_of_its_machine(machines):
    where = SimpleNamespace(
        app=SimpleNamespace(builder=SimpleNamespace(get_relative_uri=lambda _, page: page)),
        docname="machines", new_serialno=lambda _: 1,
    )  # fmt: skip
    measured = extension("measured")
    role = measured.Measured(measured.rate)
    role.inliner = SimpleNamespace(document=SimpleNamespace(settings=SimpleNamespace(env=where)))
    said = []
    for record in ("ladder", "elsewhere", *(f"machines/{name}" for name in MADE_UP)):
        number = role._number(measured.Said("1", "sure", record))
        said += re.findall('href="([^"]+)"', number["around"][1]) or [record]
    assert said == ["results#the-reference-machine", "elsewhere", *["machines#machines"] * 2]

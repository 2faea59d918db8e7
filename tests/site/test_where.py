# SPDX-License-Identifier: BSD-3-Clause
"""The page of where the time goes: its roles, its table, and what it explains."""

import dataclasses
import re

import pytest
from msgspec.structs import replace

from spead_tutorial.measure.analysis import PARTS
from support import ROOT
from support.recordings import TEN, make_where
from support.records import TIMELINE
from support.site import extension

PAGE = ROOT / "docs" / "explanation" / "where-the-time-goes.md"


@pytest.fixture
def splits(monkeypatch):
    """The roles, of a made-up record."""
    module = extension("splits")
    made = make_where()
    made = dataclasses.replace(
        made,
        header=replace(made.header, settings={"looks_per_s": 2500}),
        timelines=(TIMELINE,),
        splits=tuple(replace(one, elapsed_ns=24_000) for one in made.splits),
    )
    monkeypatch.setattr(module, "recording", lambda _: made)
    return module


def test_a_part_is_said_of_all_threads_together(splits):
    assert splits.split(f"copy 8KiB c {TEN}").text == "600\N{NO-BREAK SPACE}ns"
    assert splits.split(f"queue 1MiB python {TEN}").text == "7\N{THIN SPACE}500\N{NO-BREAK SPACE}ns"
    assert splits.split(f"'system call' 8KiB c {TEN}").text == "0\N{NO-BREAK SPACE}ns"
    assert splits.split(f"copy 8KiB c {TEN}").detail.startswith("24 % of the CPU time, 600")


def test_a_part_can_be_said_as_a_share_of_the_cpu_time(splits):
    said = splits.split(f"share copy 8KiB c {TEN}")
    assert (said.text, said.detail.split(",")[0]) == ("24 %", "600\N{NO-BREAK SPACE}ns")


def test_what_is_no_cpu_time_is_a_median_of_the_timeline(splits):
    assert splits.split("waking 1MiB").text == "0.01\N{NO-BREAK SPACE}µs"
    assert splits.split("news 1MiB").text == "0.005\N{NO-BREAK SPACE}µs"


def test_looking_is_said_to_cost_what_it_cost_most(splits):
    # 24 us instead of 20 with small heaps, and less than the 1000 of large ones
    assert (splits.split("slowed").text, splits.split("looks").text) == (
        "20 %",
        "2\N{THIN SPACE}500",
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"wishing 8KiB c {TEN}", "'wishing' of"),
        (f"copy 4KiB c {TEN}", "was not measured"),
        ("waking 8KiB", "0 timelines"),
    ],
)
def test_a_role_refuses_what_was_not_measured(splits, text, why):
    with pytest.raises(ValueError, match=re.escape(why)):
        splits.split(text)
    with pytest.raises(ValueError, match="no heaps of 7B"):
        splits.parts("7B")


def test_the_table_has_a_column_for_each_thread_and_what_is_left(splits):
    head, *body = splits.parts("8KiB").rows
    assert list(head) == [
        "ns", "10 Python, program", "10 Python, stream", "10 C, program", "10 C, stream",
        "13 Python", "13 C",
    ]  # fmt: skip
    cells = {name: row for name, *row in body}
    assert cells["copy"] == ["", "600", "", "600", *["286"] * 2]
    assert cells["not running"] == ["1\N{THIN SPACE}000", "500"] * 2 + ["1\N{THIN SPACE}000"] * 2
    assert "lock" not in cells


def test_the_page_says_what_each_part_is():
    found = re.findall(r"^\| ([a-z -]+) \| [A-Z]", PAGE.read_text(), re.MULTILINE)
    assert tuple(found) == PARTS

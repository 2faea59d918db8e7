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


@pytest.mark.parametrize(
    ("text", "said", "detail"),
    [
        # A part is of all threads together, and can be a share of the CPU time.
        (f"copy 8KiB c {TEN}", "600\N{NO-BREAK SPACE}ns", "24 % of the CPU time, 600"),
        (f"queue 1MiB python {TEN}", "7\N{THIN SPACE}500\N{NO-BREAK SPACE}ns", ""),
        (f"'system call' 8KiB c {TEN}", "0\N{NO-BREAK SPACE}ns", ""),
        (f"share copy 8KiB c {TEN}", "24 %", "600 ns,"),
        # What is no CPU time is a median of the timeline.
        ("waking 1MiB", "0.01\N{NO-BREAK SPACE}µs", ""),
        ("news 1MiB", "0.005\N{NO-BREAK SPACE}µs", ""),
        # Looking costs what it cost most: 24 us instead of 20 with small heaps.
        ("slowed", "20 %", ""),
        ("looks", "2\N{THIN SPACE}500", ""),
    ],
)
def test_a_role_says_where_the_time_went(splits, text, said, detail):
    found = splits.split(text)
    assert found.text == said
    assert re.sub(r"\s", " ", found.detail).startswith(detail)


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

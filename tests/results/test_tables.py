# SPDX-License-Identifier: BSD-3-Clause
"""Tables of rows and columns: what a file gets, and a terminal; and how numbers are written."""

import sys

import pytest

from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results import units
from spead_tutorial.results.tables import Column, Table, estimate

WHY = "[bold]it[/bold] \x1b[31mfailed\n:smile: at " + 60 * "y"
RATES = {"the sender of chapter ten": Estimate(1e9, 1e8, 2e9, 3), "bare": None, "broken": None}
TABLE: Table[str] = Table(
    [Column("program", str, is_words=True)],
    [*estimate(("B/s", "range"), RATES.get), Column("nothing", lambda row: None)],
    list(RATES),
    failure=lambda row: WHY if row == "broken" else None,
)


def test_a_file_gets_whole_lines_without_columns_of_nothing_and_without_control():
    assert str(TABLE).splitlines() == [
        "program                           B/s                 range",
        "the sender of chapter ten  1000000000  100000000\N{EN DASH}2000000000",
        "bare                                —                     —",
        f"broken{'':55}[bold]it[/bold] \\x1b[31mfailed :smile: at {60 * 'y'}",
    ]


@pytest.mark.parametrize("width", [100, 80])
def test_a_terminal_gets_words_in_lines_that_fit_and_every_number_whole(monkeypatch, width):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", str(width))
    bold, *lines = str(TABLE).splitlines()
    assert bold.startswith("\x1b[1m")
    assert max(map(len, lines)) <= width
    assert "\x1b" not in "".join(lines)
    assert "1000000000  100000000\N{EN DASH}2000000000" in "\n".join(lines)
    words = "".join(lines).replace(" ", "")
    assert words.count("y") == 60
    assert str(TABLE) == TABLE.text(width) != TABLE.text(40) == TABLE.text(1)


def test_rows_of_a_section_stand_below_its_title():
    alike: Table[str] = Table(TABLE.names, [], ["b", "a", "A"], section=str.upper)
    assert str(alike).splitlines() == ["program", "B", "b", "", "A", "a", "A"]


def test_a_title_over_a_section_is_one_line_where_its_columns_are_narrow():
    title = "programs that are short"
    titled: Table[str] = Table(TABLE.names, [], ["a", "b"], section=lambda row: title)
    assert titled.text(10).splitlines() == ["program", title, "a", "b"]


def test_a_notebook_gets_values_as_they_are():
    frame = TABLE.frame()
    assert list(frame.columns) == ["program", "B/s", "range", "nothing"]
    assert list(frame["program"]) == list(RATES)
    assert frame["B/s"][0] == RATES["the sender of chapter ten"]


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1 KiB"),
        (8192, "8 KiB"),
        (1 << 20, "1 MiB"),
        (1 << 30, "1 GiB"),
        (67420807168, "62.79 GiB"),
    ],
)
def test_a_size_is_in_the_largest_unit_that_there_is_one_of(n, text):
    assert units.size(n) == text

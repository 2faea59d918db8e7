# SPDX-License-Identifier: BSD-3-Clause
"""What is seen of a run while it lasts: on a terminal alone, and only where it lasts."""

import contextlib
import io
import itertools
import re
import sys
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.lab import LabError
from spead_tutorial.measure.place import Device
from spead_tutorial.measure.programs import ProgramOptions, run
from spead_tutorial.tools import progress
from spead_tutorial.tools.progress import share_sent
from support.labs import needs_lab


class Terminal(io.StringIO):
    """What a terminal was told, without its colours."""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return super().write(re.sub(r"\x1b\[[\d;?]*\w", "", text))


def shown(monkeypatch: pytest.MonkeyPatch, *shares: float | LabError) -> str:
    """Show these shares, one after the other, and return what a terminal was told."""

    def share() -> float:
        given = next(left)
        if isinstance(given, LabError):
            raise given
        return given

    left, ends = iter(shares), iter([False] * len(shares) + [True])
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    progress._watch(SimpleNamespace(wait=lambda seconds: next(ends)), share)
    return screen.getvalue()


def test_the_share_that_was_counted_is_shown_as_it_grows(monkeypatch):
    text = shown(monkeypatch, 0.0, 0.25, 0.5, 1.25)
    percents = re.findall(r"(\d+)%", text)
    assert list(dict.fromkeys(percents)) == ["0", "25", "50", "100"]


def test_of_a_run_that_never_ends_the_time_is_seen_to_pass_and_where_nothing_counts(monkeypatch):
    monkeypatch.setattr("rich.console.monotonic", itertools.count().__next__)
    text = shown(monkeypatch, *[1e-15] * 3)
    assert len(set(re.findall(r"0% (0:\d\d:\d\d)", text))) >= 3
    monkeypatch.setattr(progress, "PATIENCE_S", 0.0)
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    with progress.shown(None):
        while not re.search(r"Sending.* 0:00:\d\d", screen.getvalue()):
            time.sleep(0.01)


def test_nothing_is_shown_of_what_is_over_soon_and_nobody_watches_where_nobody_looks(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE_S", 600.0)
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    with progress.shown(None):
        pass
    assert screen.getvalue() == ""
    watched: list[object] = []
    monkeypatch.setattr(progress, "_watch", lambda *what: watched.append(what))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress.shown(None):
        pass
    assert watched == []


def test_a_lab_that_ends_meanwhile_ends_what_is_shown_and_nothing_else(monkeypatch):
    text = shown(monkeypatch, 0.5, LabError("the lab is closed"), 1.0)
    assert "50%" in text
    assert "Traceback" not in text


# ---- Many steps ----


def test_steps_are_shown_at_a_terminal_by_name_and_what_they_are_called_is_no_markup(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "120")
    with progress.Steps() as show:
        assert list(show("ab", stage=str, name="[red]{}[/]".format)) == ["a", "b"]
    text = screen.getvalue()
    for step, percents in zip("ab", (0, 50), strict=True):
        assert re.search(rf"Running +\S* +{percents}% .*\[red\]{step}\[/\]", text), text
    assert "100%" in text


def test_where_there_is_no_terminal_each_stage_is_a_line_without_escape_codes(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress.Steps() as show:
        assert "".join(show("aab", stage=str, name=str)) == "aab"
    out, err = capsys.readouterr()
    assert re.fullmatch(r"a: sample 1 of 3\nb: sample 3 of 3, about \d+ s to go\n", out)
    assert err == ""


# ---- How much has been sent ----


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("10", ProgramOptions(heaps=30, heap_size=1)),
        ("11", ProgramOptions(heaps=30, heap_size=8192, packet_size=1472)),
        ("10", ProgramOptions(heaps=2, heap_size=65 << 20)),
        pytest.param("2", ProgramOptions(), marks=pytest.mark.thorough),
        pytest.param("6", ProgramOptions(heaps=3), marks=pytest.mark.thorough),
        pytest.param("16", ProgramOptions(heaps=30, heap_size=1 << 14), marks=pytest.mark.thorough),
    ],
)
def test_all_of_a_run_is_a_share_of_one_or_nearly_so_of_large_heaps(make_lab, name, options):
    chapter = find_chapter(name)
    with make_lab() as lab:
        share = share_sent(lab, chapter, options)
        assert share() == 0
        assert run(Device(lab), chapter, "c", options).failure is None
        near = 0.001 if (options.heap_size or 0) > 1 << 26 else 0.0
        assert share() == pytest.approx(1, rel=near, abs=0)


@pytest.mark.parametrize("packet_size", [1, 1 << 62])
def test_of_packets_that_cannot_be_nothing_is_ever_sent(make_lab, packet_size):
    with make_lab() as lab:
        assert share_sent(lab, find_chapter("10"), ProgramOptions(packet_size=packet_size))() == 0


@needs_lab
def test_a_run_shows_the_share_that_it_has_sent(monkeypatch, here):
    @contextlib.contextmanager
    def shown(share: Callable[[], float]) -> Iterator[None]:
        shares.append(share())
        yield
        shares.append(share())

    shares: list[float] = []
    monkeypatch.setattr(progress, "shown", shown)
    assert here("run", "10", "--lang", "c", "-n", "30", "-H", "8192").returncode == 0
    assert shares == [0, 1]

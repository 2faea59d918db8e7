# SPDX-License-Identifier: BSD-3-Clause
"""What is seen of a run while it lasts: on a terminal alone, and only where it lasts."""

import contextlib
import io
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.lab import LabError
from spead_tutorial.measure.place import Device
from spead_tutorial.measure.programs import ProgramOptions, run
from spead_tutorial.tools import progress
from spead_tutorial.tools.progress import share_sent
from support.labs import needs_lab
from support.typed import COMMAND, PATIENCE_S, PIPES


class Terminal(io.StringIO):
    """What a terminal was told, without its colours."""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return super().write(re.sub(r"\x1b\[[\d;?]*\w", "", text))


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE_S", 0.0)
    monkeypatch.setattr(progress, "INTERVAL_S", 0.0)


def shown(monkeypatch: pytest.MonkeyPatch, screen: io.StringIO, shares: list[object]) -> str:
    """Show these shares, and return what is on the screen after the last."""
    left = iter(shares)
    last = threading.Event()

    def share() -> float:
        given = next(left, None)
        if given is None:
            last.set()
            return 1.0
        if isinstance(given, Exception):
            last.set()
            raise given
        assert isinstance(given, float)
        return given

    monkeypatch.setattr(sys, "stderr", screen)
    with progress.shown(share):
        assert not screen.isatty() or last.wait(PATIENCE_S)
    return screen.getvalue()


def test_the_share_that_was_counted_is_shown_as_it_grows(monkeypatch):
    text = shown(monkeypatch, Terminal(), [0.0, 0.25, 0.5, 1.25])
    percents = re.findall(r"(\d+)%", text)
    assert list(dict.fromkeys(percents)) == ["0", "25", "50", "100"]


def test_of_a_run_that_never_ends_the_time_is_seen_to_pass(monkeypatch):
    monkeypatch.setattr("rich.console.monotonic", itertools.count().__next__)
    text = shown(monkeypatch, Terminal(), [1e-15] * 3)
    assert len(set(re.findall(r"0% (0:\d\d:\d\d)", text))) >= 3


def test_nothing_is_shown_and_nothing_asked_where_nobody_looks(monkeypatch):
    assert shown(monkeypatch, io.StringIO(), [LabError("nobody is to ask")]) == ""


def test_nothing_is_shown_of_what_is_over_soon(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(progress, "PATIENCE_S", PATIENCE_S)
    monkeypatch.setattr(sys, "stderr", screen)
    with progress.shown(None):
        pass
    assert screen.getvalue() == ""


def test_where_nothing_counts_the_time_is_shown(monkeypatch):
    class Screen(Terminal):
        def write(self, text: str) -> int:
            written = super().write(text)
            if re.search(r"Sending.* 0:00:\d\d", self.getvalue()):
                seen.set()
            return written

    seen = threading.Event()
    monkeypatch.setattr(sys, "stderr", Screen())
    with progress.shown(None):
        assert seen.wait(PATIENCE_S)


def test_a_lab_that_ends_meanwhile_ends_what_is_shown_and_nothing_else(monkeypatch):
    text = shown(monkeypatch, Terminal(), [0.5, LabError("the lab is closed")])
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
        *(
            pytest.param(*one, marks=pytest.mark.thorough)
            for one in (
                ("2", ProgramOptions()),
                ("6", ProgramOptions(heaps=3)),
                ("8", ProgramOptions(heaps=30, heap_size=8192)),
                ("10", ProgramOptions(heaps=2, heap_size=3 << 20)),
                ("16", ProgramOptions(heaps=30, heap_size=1 << 14)),
            )
        ),
    ],
)
def test_all_of_a_run_is_a_share_of_one(make_lab, name, options):
    chapter = find_chapter(name)
    with make_lab() as lab:
        share = share_sent(lab, chapter, options)
        assert share() == 0
        assert run(Device(lab), chapter, "c", options).failure is None
        assert share() == 1


def test_of_large_heaps_the_share_is_about_right(make_lab):
    chapter, options = find_chapter("10"), ProgramOptions(heaps=2, heap_size=65 << 20)
    with make_lab() as lab:
        share = share_sent(lab, chapter, options)
        assert run(Device(lab), chapter, "c", options).failure is None
        assert share() == pytest.approx(1, rel=0.001)


@pytest.mark.parametrize("packet_size", [1, 1 << 62])
def test_of_packets_that_cannot_be_nothing_is_ever_sent(make_lab, packet_size):
    with make_lab() as lab:
        assert share_sent(lab, find_chapter("10"), ProgramOptions(packet_size=packet_size))() == 0


# ---- The command ----


@contextlib.contextmanager
def at_a_terminal(*arguments: str) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """Run a command whose standard error is a terminal; give the process, and that terminal."""
    ours, theirs = os.openpty()
    with (
        os.fdopen(ours),
        subprocess.Popen([COMMAND, *arguments], **PIPES | {"stderr": theirs}) as process,
    ):
        os.close(theirs)
        try:
            yield process, ours
        finally:
            process.kill()


def rest(terminal: int) -> str:
    """All that a terminal is told until nobody has it any more."""
    found = b""
    with contextlib.suppress(OSError):  # EIO, at the end
        while True:
            found += os.read(terminal, 4096)
    return found.decode()


@needs_lab
def test_a_run_that_lasts_shows_progress_on_the_terminal_and_ends_with_ctrl_c():
    run = ["run", "10", "--lang", "c", "-n", str(1 << 40), "-H", "8192"]
    with at_a_terminal(*run) as (process, terminal):
        seen = ""
        while not re.search(r"\d+%.*\d+:\d+:\d+", seen, re.DOTALL):
            seen += os.read(terminal, 4096).decode()
        process.send_signal(signal.SIGINT)
        said = rest(terminal)
        assert process.wait(PATIENCE_S) == 130
        assert process.stdout is not None
        assert process.stdout.read() == ""
    assert said.strip().splitlines()[-1] == "spead-tutorial: interrupted"
    assert "Traceback" not in said

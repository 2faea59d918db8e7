# SPDX-License-Identifier: BSD-3-Clause
"""What is seen of a run while it lasts: on a terminal alone, and only where it lasts."""

import io
import re
import sys
import time

from spead_tutorial.tools import progress


class Terminal(io.StringIO):
    """What a terminal was told, without its colours."""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return super().write(re.sub(r"\x1b\[[\d;?]*\w", "", text))


def test_that_a_run_goes_on_is_seen_at_a_terminal_alone_and_is_gone_at_its_end(monkeypatch):
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    with progress.shown("Sending"):
        while "Sending" not in screen.getvalue():
            time.sleep(0.01)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr("rich.console.Console", None)  # which shows it
    with progress.shown("Sending"):
        pass


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

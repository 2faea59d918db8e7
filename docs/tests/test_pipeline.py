# SPDX-License-Identifier: BSD-3-Clause
"""In the page, two threads do what a model of them says, and it is near to what was recorded."""

import itertools
import json
import random
import re
from pathlib import Path

import pytest

from spead_tutorial.plots import times
from spead_tutorial.records import read

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = "tutorial/5-send-while-preparing.html"


@pytest.fixture
def two_threads(page, site):
    page.goto(f"file://{site}/{PAGE}")
    return page


def lay_out(page, **times):
    return page.evaluate("times => Pipeline.layOut(times)", times)


def test_in_turns_a_heap_takes_the_sum_and_overlapped_the_longer_time(two_threads):
    for prepare, send in ((5, 3), (2, 7), (4, 4)):
        work = {"prepare": prepare, "send": send, "wake": 0, "back": 0, "heaps": 10}
        turns, pair = (lay_out(two_threads, **work, depth=depth) for depth in (1, 2))
        assert turns[-1]["resumed"] == 10 * (prepare + send)
        assert pair[-1]["resumed"] == 10 * max(prepare, send) + min(prepare, send)


def test_neither_thread_does_two_things_at_once_nor_more_than_are_in_flight(two_threads):
    rng = random.Random(4)
    for depth in (1, 2, 3, 4):
        names = ("prepare", "send", "wake", "back")
        rows = lay_out(
            two_threads, **{one: rng.randint(0, 9) for one in names}, depth=depth, heaps=30
        )
        for before, after in itertools.pairwise(rows):
            assert before["queued"] <= after["prepare"]
            assert before["last"] <= after["first"]
        for row in rows:
            moments = [row[name] for name in ("prepare", "queued", "first", "last", "resumed")]
            assert moments == sorted(moments)
            assert sum(one["queued"] <= row["queued"] < one["resumed"] for one in rows) <= depth


def test_a_third_heap_in_flight_gains_only_where_a_thread_would_have_to_be_woken(two_threads):
    rng = random.Random(6)

    def period(depth, **work):
        return two_threads.evaluate("times => Pipeline.period(times)", {**work, "depth": depth})

    for _ in range(20):
        work = {name: rng.randint(1, 50) for name in ("prepare", "send", "back")}
        assert period(3, **work, wake=0) == pytest.approx(period(2, **work, wake=0)), work
    woken = {"prepare": 100, "send": 90, "wake": 50, "back": 0}
    assert period(3, **woken) < period(2, **woken)


@pytest.fixture
def off(two_threads, site):
    """By what part of its time the model is off, for each recorded run that the page has."""
    text = (site / PAGE).read_text()
    runs = json.loads(re.search(r'<script type="application/json">(.*?)</script>', text)[1])
    timelines = times.timelines(read(ROOT / "bench" / "results" / "tut-5.jsonl"))
    assert [run["name"] for run in runs] == list(map(times.title, timelines))
    for run, timeline in zip(runs, timelines, strict=True):
        assert run["last"] == [ns / 1e3 for ns in timeline.last_packet_ns]
    deviations = two_threads.evaluate("runs => runs.map(Pipeline.deviation)", runs)
    return dict(zip(map(times.title, timelines), deviations, strict=True))


def test_the_model_ends_when_recorded_runs_did_and_is_worst_behind_a_link(off):
    free, limited = ([abs(value) for name, value in off.items() if ("link" in name) is link]
                     for link in (False, True))  # fmt: skip
    assert max(free) < 0.1, off
    assert max(limited) < 0.3, off
    assert max(free) < max(limited), off


def test_the_page_says_how_far_off_the_model_is(two_threads, off):
    for name, value in off.items():
        two_threads.get_by_label("Beside it, a recorded run").select_option(label=name)
        said = two_threads.locator(".pipeline .said").inner_text()
        way = "less" if value < 0 else "more"
        assert f"it is {100 * abs(value):.1f} % {way}" in said, name
        assert f"{100 * max(map(abs, off.values())):.1f} % is the most" in said, name
        assert two_threads.get_by_text(f"Recorded: {name}").is_visible()


def test_the_keyboard_moves_a_time_and_the_bars_follow(two_threads):
    bar = two_threads.locator(".pipeline .preparing").first
    before = bar.evaluate("one => one.style.width")
    preparing = two_threads.get_by_label("Preparing a heap")
    preparing.focus()
    for _ in range(20):
        two_threads.keyboard.press("ArrowRight")
    assert preparing.get_attribute("aria-valuetext") == "400 µs"
    assert float(bar.evaluate("one => one.style.width").rstrip("%")) > float(before.rstrip("%"))

# SPDX-License-Identifier: BSD-3-Clause
"""In the page, two threads do what a model of them says, and it is near to what was recorded."""

import itertools
import json
import random
import re
import statistics

import pytest

from spead_tutorial.measure.records import read
from spead_tutorial.results.plots.timeline import timelines, title
from support import ROOT
from support.browser import functions_of

PAGE = "tutorial/5-send-while-preparing.html"


@pytest.fixture
def two_threads(page):
    page.goto(PAGE)
    return page


@pytest.fixture
def model(page):
    return functions_of(page, "pipeline")


def test_in_turns_a_heap_takes_the_sum_and_overlapped_the_longer_time(model):
    for prepare, send in ((5, 3), (2, 7), (4, 4)):
        work = {"prepare": prepare, "send": send, "wake": 0, "back": 0, "heaps": 10}
        single, pair = (model("layOut", {**work, "depth": depth}) for depth in (1, 2))
        assert single[-1]["resumed"] == 10 * (prepare + send)
        assert pair[-1]["resumed"] == 10 * max(prepare, send) + min(prepare, send)
    slow = {"prepare": 5, "send": 3, "wake": 1, "back": 2, "depth": 1, "heaps": 10}
    assert model("layOut", slow)[-1]["resumed"] == 10 * (5 + 1 + 3 + 2)


def test_neither_thread_does_two_things_at_once_nor_more_than_are_in_flight(model):
    rng = random.Random(4)
    for depth in (1, 2, 3, 4):
        work = {one: rng.randint(0, 9) for one in ("prepare", "send", "wake", "back")}
        rows = model("layOut", {**work, "depth": depth, "heaps": 30})
        for before, after in itertools.pairwise(rows):
            assert before["queued"] <= after["prepare"]
            assert before["last"] <= after["first"]
        for row in rows:
            moments = [row[name] for name in ("prepare", "queued", "first", "last", "resumed")]
            assert moments == sorted(moments)
            assert sum(one["queued"] <= row["queued"] < one["resumed"] for one in rows) <= depth
    in_one_call = [{"first": 0, "last": 4}, {"first": 0, "last": 6}]
    assert model("sent", in_one_call) == [[0, 4], [4, 6]]


def test_a_third_heap_in_flight_gains_only_where_a_thread_would_have_to_be_woken(model):
    rng = random.Random(6)

    def period(depth, **work):
        return model("period", {**work, "depth": depth})

    for _ in range(20):
        work = {name: rng.randint(1, 50) for name in ("prepare", "send", "back")}
        assert period(3, **work, wake=0) == pytest.approx(period(2, **work, wake=0)), work
    woken = {"prepare": 100, "send": 90, "wake": 50, "back": 0}
    assert period(3, **woken) < period(2, **woken)


def test_the_page_says_how_far_off_recorded_runs_the_model_is_which_is_most_behind_a_link(
    two_threads, site
):
    text = (site / PAGE).read_text()
    runs = json.loads(re.search(r'<script type="application/json">(.*?)</script>', text)[1])
    recorded = timelines(read(ROOT / "bench" / "results" / "tut-5.jsonl"))
    assert [run["name"] for run in runs] == list(map(title, recorded))
    for run, timeline in zip(runs, recorded, strict=True):
        assert run["last"] == [ns / 1e3 for ns in timeline.last_packet_ns]
    off = two_threads.evaluate("all => all.map((run) => [run.name, Pipeline.deviation(run)])", runs)
    free, limited = (
        max(abs(value) for name, value in off if ("link" in name) is link) for link in (False, True)
    )
    assert statistics.median(abs(value) for _, value in off) < 0.05, off
    assert free < 0.15, off  # one heap held up, and a run is not its medians
    assert free < limited < 0.3, off
    for name, value in off:
        two_threads.get_by_label("Beside it, a recorded run").select_option(label=name)
        said = two_threads.locator(".pipeline .said").inner_text()
        way = "less" if value < 0 else "more"
        assert f"it is {100 * abs(value):.1f} % {way}" in said, name
        assert f"{100 * max(free, limited):.1f} % is the most" in said, name
        assert two_threads.get_by_text(f"Recorded: {name}", exact=True).is_visible()


def gain(page):
    """How many times as fast overlapping is, as the page says."""
    said = page.locator(".pipeline .said").inner_text()
    return float(re.search(r": ([\d.]+) times as fast", said)[1])


def test_what_the_page_suggests_changes_the_gain_as_it_says(two_threads):
    wakes = [two_threads.get_by_label(one) for one in ("Until the network", "Until the program")]
    before = gain(two_threads)
    for wake in wakes:
        wake.fill("0")
    assert before != gain(two_threads) == 2
    for name in ("Preparing a heap", "Sending it"):
        work = two_threads.get_by_label(name)
        equal = work.input_value()
        for other in ("4", "30"):
            work.fill(other)
            assert 1 < gain(two_threads) < 2, (name, other)
        work.fill(equal)
    wakes[0].fill("5")
    assert gain(two_threads) > 2


def test_the_keyboard_moves_a_time_and_the_bars_follow(two_threads):
    bar = two_threads.locator(".pipeline .preparing").first
    before = bar.evaluate("one => one.style.width")
    preparing = two_threads.get_by_label("Preparing a heap")
    preparing.focus()
    for _ in range(20):
        two_threads.keyboard.press("ArrowRight")
    assert preparing.get_attribute("aria-valuetext") == "400 µs"
    assert float(bar.evaluate("one => one.style.width").rstrip("%")) > float(before.rstrip("%"))

# SPDX-License-Identifier: BSD-3-Clause
"""The committed pictures show what the committed records hold."""

import dataclasses
import functools
import html
import os
import re
import statistics
import subprocess
import sys

import pytest

from bench.figures import PICTURES
from bench.status import by_setting
from bench.sweeps import find_sweep
from spead_tutorial.measure import records, search
from spead_tutorial.measure.stats import differs
from spead_tutorial.results import plots
from spead_tutorial.results.units import size
from support import ROOT
from support.pictures import WITHOUT_POINTS, check_that_words_can_be_read, draw

FIGURES = ROOT / "docs" / "figures"
RESULTS = ROOT / "bench" / "results"
DRAWN = sorted(path.name for path in FIGURES.glob("*.svg"))
#: Those that `make test` draws; the thorough run draws all.
FEW = ("tut-ladder.svg", "tut-11-send-batch-heaps.svg")
PICTURES_FEW = [
    one if one.name in FEW else pytest.param(one, marks=pytest.mark.thorough) for one in PICTURES
]
each_few = pytest.mark.parametrize("picture", PICTURES_FEW, ids=lambda one: one.name)
each_sweep = pytest.mark.parametrize(
    "picture",
    [one for one in PICTURES if isinstance(one.draw, plots.Sweep)],
    ids=lambda one: one.name,
)


@functools.cache
def read(sweep: str) -> records.Recording:
    return records.read(RESULTS / f"{sweep}.jsonl")


def texts(svg: str) -> list[str]:
    """What a picture says, drawn and in words, without any spaces."""
    found = re.findall(r"<(?:desc|text|title)\b[^>]*>([^<]*)</", svg)
    return [re.sub(r"\s", "", html.unescape(text)) for text in found]


def marks(svg: str) -> list[float]:
    """Where what a picture marks is, on its scales too: each x and y."""
    return [
        float(at)
        for one in re.findall(r"<use [^>]*>", svg)
        for at in re.findall(r"\b[xy]=\"([^\"]+)", one)
    ]


# ---- Which there are, and what they say ----


def test_there_is_each_picture_and_nothing_else():
    assert sorted(path.name for path in FIGURES.iterdir()) == DRAWN
    assert sorted(picture.name for picture in PICTURES) == DRAWN


@pytest.mark.parametrize("name", DRAWN)
def test_a_title_is_short_and_a_picture_is_no_higher_than_wide(name):
    svg = (FIGURES / name).read_text()
    (title,) = re.findall(r"<title[^>]*>([^<]*)", svg)
    words = title.partition(". ")[0].split(" ")
    assert len([one for one in words if re.search("[A-Za-z]", one)]) <= 18  # the rest are numbers
    (width, height) = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)[0]
    assert float(height) <= float(width)


@pytest.mark.parametrize("name", DRAWN)
def test_no_panel_has_more_than_three_lines(name):
    svg = (FIGURES / name).read_text()
    for panel in re.split(r'<g id="axes_', svg)[1:]:
        assert len(set(re.findall(r'id="FillBetweenPolyCollection_\d+"', panel))) <= 3


@each_few
def test_every_point_of_a_picture_has_the_median_of_its_record(picture):
    """Of those that are rates, with its interval; the others are computed of several samples."""
    recording = read(picture.sweep)
    rates: dict[tuple[str, ...], list[tuple[float, int]]] = {}
    for (series, *_), samples in by_setting(search.settled(recording)).items():
        some = [one.rate / 1e6 for one in samples if one.rate is not None]
        if some:
            middle = statistics.median(some), len(some)
            rates.setdefault(dataclasses.astuple(series), []).append(middle)
    points = draw(picture.draw, recording).points
    assert bool(points) == (picture.name.removesuffix(".svg") not in WITHOUT_POINTS)
    for line, (_, median, low, high, n, *_) in points:
        if line.unit == "MB/s" and line.key:
            known = [one for one, rounds in rates[line.key[:4]] if rounds == n]
            assert min(abs(median - one) for one in known) < 2e-3, line
            assert low <= median <= high


def test_the_peer_is_where_it_is_the_message():
    with_peer = {
        name for name in DRAWN if any("spead2" in x for x in texts((FIGURES / name).read_text()))
    }
    drawn = {
        name
        for name in with_peer
        if any(word.startswith("spead2in") for word in texts((FIGURES / name).read_text()))
    }
    assert drawn == {"tut-ladder.svg", "receivers-ladder.svg", "receive.svg"}


@each_sweep
def test_a_title_speaks_of_the_largest_gain_and_the_subtitle_of_the_largest_loss(picture):
    """Where one differs by 5 %."""
    one, recording = picture.draw, read(picture.sweep)
    known = [
        (gain.median, x)
        for some in one.gains(recording).values()
        for x, gain in some.items()
        if gain and differs(gain) and abs(gain.median - 1) >= 0.05
    ]
    title, _, subtitle = one(recording).name.partition(". ")
    most = f" {size(max(known)[1])} heaps ".replace(" bytes ", "-byte ")
    assert most in title
    lost = min(known)
    if lost[0] < 1 and lost[1] != max(known)[1]:
        assert f"{size(lost[1])} heaps: " in subtitle


# ---- Drawn again ----


@each_few
def test_no_words_of_a_committed_picture_are_small_or_cut_off_or_on_top_of_each_other(picture):
    check_that_words_can_be_read(draw(picture.draw, read(picture.sweep)).figure, smallest=10)


@pytest.mark.thorough
def test_the_committed_pictures_are_those_that_the_committed_records_give(tmp_path):
    """In every word and mark, by another process, whatever its user has told matplotlib."""
    settings, drawn = tmp_path / "matplotlibrc", tmp_path / "drawn"
    settings.write_text("font.size: 20\nsvg.fonttype: path\naxes.grid: True\n")
    told = {"MATPLOTLIBRC": str(settings), "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    command = [sys.executable, "-m", "bench", "plot", "-i", "bench/results", "-o", drawn]
    assert subprocess.run(command, cwd=ROOT, env=os.environ | told, check=False).returncode == 0
    assert sorted(path.name for path in drawn.iterdir()) == DRAWN
    for name in DRAWN:
        now, committed = ((folder / name).read_text() for folder in (drawn, FIGURES))
        assert texts(now) == texts(committed)
        assert marks(now) == pytest.approx(marks(committed), abs=0.5)


# ---- The records ----


#: Records of something else than rates.
OTHERS = ("array", "both-ends", "flat-memory", "latency", "rate", "spacing")


def test_every_reference_record_has_nine_rounds_of_samples_without_a_failure():
    for path in sorted(RESULTS.glob("*.jsonl")):
        if path.stem in OTHERS:
            continue
        recording = read(path.stem)
        searches = any(map(search.is_search, recording.samples))  # of a dozen runs each
        fewest = find_sweep(path.stem).rounds or (5 if searches else 9)
        assert recording.rounds >= fewest, path.name
        failures = [one.failure for one in recording.samples if one.failure is not None]
        assert failures == [], path.name


def test_every_search_of_a_reference_record_is_over_and_has_found_a_rate():
    recording = read("receive-lossless")
    began = {(one.case, one.round, one.warm_up) for one in recording.samples}
    ended = search.settled(recording).samples
    assert {(one.case, one.round, one.warm_up) for one in ended} == began
    assert [one.failure for one in ended if one.failure is not None] == []


def test_the_record_of_spacings_has_nine_rounds_of_every_program_without_a_failure():
    rounds: dict[tuple[str, bool, str], int] = {}
    for one in read("spacing").spacings:
        assert one.failure is None
        point = one.program, one.random, one.variant
        rounds[point] = rounds.get(point, 0) + 1
    assert len(rounds) == 8  # in turns and overlapped, random or not, with a limit or without
    assert min(rounds.values()) >= 9

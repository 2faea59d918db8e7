# SPDX-License-Identifier: BSD-3-Clause
"""The committed pictures show what the committed records hold."""

import html
import re
import statistics
import subprocess
import sys
from pathlib import Path

import matplotlib
import pytest

from bench.figures import PICTURES
from spead_tutorial import plots, records
from spead_tutorial.catalogue import LADDER, MEASURED
from spead_tutorial.measure import search
from spead_tutorial.records import Series
from support import ROOT
from support.once import MadeOnce
from support.pictures import check_that_words_can_be_read, draw, drawn_words

FIGURES = ROOT / "docs" / "figures"
RESULTS = ROOT / "bench" / "results"
DRAWN = sorted(path.name for path in FIGURES.glob("*.svg"))


def texts(svg: str) -> list[str]:
    """What a reader sees in a picture, without any spaces."""
    found = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    return [re.sub(r"\s", "", html.unescape(text)) for text in found]


def drawn_by(svg: str) -> str:
    """The version of matplotlib that drew a picture."""
    found = re.search(r"Matplotlib v([\d.]+)", svg)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def again(made_once: MadeOnce) -> Path:
    """A folder with all pictures, drawn now."""

    def draw(folder: Path) -> None:
        command = [sys.executable, "-m", "bench", "plot", "-i", "bench/results", "-o", folder]
        assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0

    return made_once("figures", draw)


CURVES = [one.name for one in PICTURES if isinstance(one.draw, plots.Sweep | plots.Ways)]


@pytest.mark.parametrize("name", [name for name in CURVES if name in DRAWN])
def test_no_words_of_a_committed_picture_are_cut_off_or_on_top_of_each_other(name):
    picture = next(one for one in PICTURES if one.name == name)
    figure, _, _ = draw(picture.draw, records.read(RESULTS / f"{picture.sweep}.jsonl"))
    check_that_words_can_be_read(figure)


@pytest.mark.parametrize("picture", PICTURES, ids=lambda one: one.name)
def test_no_words_of_a_picture_for_phones_are_cut_off_or_too_small(picture):
    recording = records.read(RESULTS / f"{picture.sweep}.jsonl")
    figure, _, _ = draw(picture.draw, recording, plots.LIGHT.narrow())
    check_that_words_can_be_read(figure)
    pixels_per_point = 320 / (72 * figure.get_figwidth())  # on a page that is 360 wide
    small = min(text.get_fontsize() for text, _ in drawn_words(figure))
    assert small * pixels_per_point > 11


def test_the_peer_is_in_every_picture_of_a_chapter_or_in_none(again):
    """Of those whose record has the peer's samples."""
    with_peer: dict[str, set[bool]] = {}
    for picture in PICTURES:
        chapter = re.match(r"tut-(\d+)-", picture.name)
        record = RESULTS / f"{picture.sweep}.jsonl"
        if chapter is None or not record.exists():
            continue
        if any(one.implementation.startswith("spead2") for one in records.read(record).samples):
            words = texts((again / picture.name).read_text())
            drawn = any(word.startswith("spead2from") for word in words)
            with_peer.setdefault(chapter[1], set()).add(drawn)
    assert with_peer
    assert [chapter for chapter, kinds in with_peer.items() if len(kinds) > 1] == []


@pytest.mark.parametrize("name", ["tut-ladder.svg", "tut-ladder-dark.svg"])
def test_the_ladder_says_the_median_of_every_case_and_of_the_peers_best(name):
    cases: dict[tuple[Series, int], list[float]] = {}
    for sample in records.read(RESULTS / "ladder.jsonl").samples:
        if not sample.warm_up:
            assert sample.rate is not None, sample.failure
            cases.setdefault((sample.series, sample.heap_size), []).append(sample.rate)
    ours = [series for series, _ in cases if series.implementation == "ours"]
    assert len(ours) == len(LADDER) * len(MEASURED)
    svg = (FIGURES / name).read_text()
    shown = set(re.findall(r"\d+", svg[svg.index("<desc") : svg.index("</desc")]))
    peers: dict[int, list[float]] = {}
    for (series, heap_size), rates in cases.items():
        assert len(rates) >= 9
        median = statistics.median(rates) / 1e6
        if series.implementation == "spead2-source":
            peers.setdefault(heap_size, []).append(median)
        else:
            assert f"{median:.0f}" in shown
    assert len(peers) == 2
    assert all(f"{max(medians):.0f}" in shown for medians in peers.values())


def test_the_committed_pictures_are_those_that_the_committed_records_give(again):
    assert sorted(path.name for path in again.glob("*.svg")) == DRAWN
    points = sorted(FIGURES.glob("*.json"))
    assert [path.name for path in points] == sorted(path.name for path in again.glob("*.json"))
    for path in points:
        assert path.read_text() == (again / path.name).read_text(), path.name


@pytest.mark.parametrize("name", DRAWN)
def test_a_committed_picture_is_what_its_record_gives(again, name):
    """To the byte, where the same matplotlib drew it; else in every word and number."""
    committed, now = ((folder / name).read_text() for folder in (FIGURES, again))
    assert texts(now) == texts(committed)
    if drawn_by(committed) == matplotlib.__version__:
        assert now == committed


#: Records of something else than rates.
OTHERS = ("flat-memory", "latency", "rate", "receive-memory", "spacing")


def test_every_reference_record_has_nine_rounds_of_samples_without_a_failure():
    for path in sorted(RESULTS.glob("*.jsonl")):
        if path.stem in OTHERS:
            continue
        recording = records.read(path)
        searches = any(map(search.is_search, recording.samples))  # of a dozen runs each
        assert recording.rounds >= (5 if searches else 9), path.name
        failures = [one.failure for one in recording.samples if one.failure is not None]
        assert failures == [], path.name


def test_every_search_of_a_reference_record_is_over_and_has_found_a_rate():
    recording = records.read(RESULTS / "receive-lossless.jsonl")
    began = {(one.case, one.round, one.warm_up) for one in recording.samples}
    ended = search.settled(recording).samples
    assert {(one.case, one.round, one.warm_up) for one in ended} == began
    assert [one.failure for one in ended if one.failure is not None] == []


def test_the_record_of_receivers_says_that_their_memory_does_not_grow_with_the_heaps():
    peaks: dict[tuple[str, str], dict[int, int]] = {}
    for one in records.read(RESULTS / "receive-memory.jsonl").samples:
        if not one.warm_up:
            assert one.failure is None
            peaks.setdefault((one.language, one.variant), {})[one.heaps] = one.peak_memory_bytes
    assert len(peaks) == 4  # both languages, with packets lost and swapped, and without
    for by_heaps in peaks.values():
        assert set(by_heaps) == {10**5, 10**7}
        assert by_heaps[10**7] < by_heaps[10**5] + (1 << 20)


def test_the_record_of_spacings_has_nine_rounds_of_every_program_without_a_failure():
    rounds: dict[tuple[str, bool, str], int] = {}
    for one in records.read(RESULTS / "spacing.jsonl").spacings:
        assert one.failure is None
        point = one.program, one.random, one.variant
        rounds[point] = rounds.get(point, 0) + 1
    assert len(rounds) == 8  # in turns and overlapped, random or not, with a limit or without
    assert min(rounds.values()) >= 9

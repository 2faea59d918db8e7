# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of rates over sizes: medians, gains within rounds, failures, and what is missing."""

import dataclasses
import statistics
from typing import Any

import pytest
from msgspec.structs import replace

from spead_tutorial.measure.records import Recording, Sample, Series
from spead_tutorial.results import plots
from support.pictures import draw, drawing, fail, typed
from support.recordings import AFTER, BARE, EIGHT, KIB, TEN, example, make_rounds, make_sample
from support.records import HEADER

COLOURS = plots.LIGHT.colours
TIMES = "\N{MULTIPLICATION SIGN}"

#: Where the panels of AFTER are among a figure's axes.
PYTHON, PYTHON_GAIN, C, C_GAIN = range(4)


def lines(figure: Any, panel: int, filled: bool = True) -> dict[str, list[tuple[float, float]]]:
    """Lines by colour, not samples' dots: what became, or with hollow markers what was before."""
    return {
        line.get_color(): list(zip(line.get_xdata(), line.get_ydata(), strict=True))
        for line in figure.axes[panel].lines
        if line.get_linestyle() != "None"
        and len(line.get_xdata()) > 2
        and (line.get_markerfacecolor() == line.get_color()) == filled
    }


def test_panels_beside_each_other_and_pictures_of_one_recording_have_one_scale():
    figure = drawing("sweep").figure
    for pair in ((PYTHON, C), (PYTHON_GAIN, C_GAIN)):
        assert len({figure.axes[panel].get_ylim() for panel in pair}) == 1
        assert len({figure.axes[panel].get_xlim() for panel in pair}) == 1
    assert any(list(line.get_ydata()) == [1, 1] for line in gain_axis(figure).lines)
    before = plots.Sweep("Before", ((Series("spead2", "python", EIGHT), "spead2"),), "tut-10")
    assert draw(before, example("sweep")).figure.axes[0].get_ylim() == figure.axes[0].get_ylim()
    assert figure.axes[0].get_ylim()[0] == 0


def make_pair() -> list[plots.Sweep]:
    after = dataclasses.replace(AFTER, part="after")
    words = {"title": "Chapter 8: {8 KiB} MB/s at 8 KiB", "subtitle": "long " * 20}
    before = dataclasses.replace(AFTER, part="before", **words)
    pairs = (before, after), (after, before)
    return [dataclasses.replace(one, beside=other) for one, other in pairs]


def test_of_a_pair_the_first_has_the_frame_of_the_second_and_what_was_before_alone():
    first, second = (draw(one, example("sweep")) for one in make_pair())
    for panel, language in enumerate(("python", "c")):
        before, after = (one.figure.axes[panel] for one in (first, second))
        assert before.get_window_extent().bounds == after.get_window_extent().bounds
        assert (before.get_xlim(), before.get_ylim()) == (after.get_xlim(), after.get_ylim())
        hollow, filled = (lines(first.figure, panel, is_filled) for is_filled in (False, True))
        assert COLOURS[language] in hollow
        assert COLOURS[language] not in filled
        assert COLOURS[language] in lines(second.figure, panel)
    assert first.figure.bbox.bounds == second.figure.bbox.bounds
    assert len(first.figure.axes) == 2, "there are gains below"
    assert typed(first.title).startswith("Chapter 8: 500 (Python), 900 (C) MB/s at 8 KiB. ")


def test_the_scale_of_a_pair_is_that_of_its_own_lines():
    faster = with_faster(example("sweep"), "one thread, 2 streams")
    tops = [
        {draw(one, recording).figure.axes[0].get_ylim() for recording in (example("sweep"), faster)}
        for one in make_pair()
    ]
    assert tops[0] == tops[1]
    assert len(tops[0]) == 1


def with_faster(recording: Recording, variant: str) -> Recording:
    """The same with another bare loop, which is twice as fast."""
    faster = tuple(
        replace(one, case=f"other {one.case}", variant=variant, elapsed_ns=one.elapsed_ns // 2)
        for one in recording.samples
        if one.series == BARE and one.elapsed_ns is not None
    )
    return dataclasses.replace(recording, samples=(*recording.samples, *faster))


def test_a_gain_is_the_median_of_ratios_within_rounds():
    # The second machine is three times as fast: only ratios within a round mean anything.
    before, after = [100.0, 300.0, 110.0], [250.0, 330.0, 220.0]
    samples = make_rounds(EIGHT, "python", before) + make_rounds(TEN, "python", after)
    drawn = draw(AFTER, Recording(HEADER, tuple(samples)))
    ratios = [new / old for old, new in zip(before, after, strict=True)]
    assert statistics.median(ratios) == 2
    assert statistics.median(after) / statistics.median(before) != 2
    assert (
        f"chapter 10, Python, gain over Python: chapter 8: 1 MiB {TIMES}2.00 (1.10 to 2.50)"
        in drawn.words
    )
    assert any(
        y[0] == pytest.approx(2) for y in (x.get_ydata() for x in gain_axis(drawn.figure).lines)
    )


def gain_axis(figure: Any) -> Any:
    return next(axis for axis in figure.axes if axis.get_yscale() == "log")


def test_rounds_of_different_machines_are_different_rounds():
    samples = [
        make_sample(program, "c", rate, round=0, source=source)
        for source, factor in enumerate((1, 10))
        for program, rate in ((EIGHT, 100.0 * factor), (TEN, 200.0 * factor))
    ]
    recording = Recording(HEADER, tuple(samples), others=(HEADER,))
    assert (
        f"chapter 10, C, gain over C: chapter 8: 1 MiB {TIMES}2.00 (2.00 to 2.00)"
        in draw(AFTER, recording).words
    )


def test_a_gain_that_only_wobbles_does_not_fill_its_panel():
    samples = [
        one
        for program, rates_mb in ((EIGHT, (100.0, 101.0, 99.0)), (TEN, (101.0, 100.0, 100.0)))
        for one in make_rounds(program, "c", rates_mb)
    ]
    low, high = gain_axis(draw(AFTER, Recording(HEADER, tuple(samples))).figure).get_ylim()
    assert low <= 0.8
    assert high >= 1.25


def test_a_point_that_failed_is_a_cross_with_a_word():
    recording = example("sweep")

    def wanted(one: Sample) -> bool:
        return one.program == TEN and one.heap_size == 64 * KIB and one.implementation == "ours"

    drawn = draw(AFTER, recording, samples=fail(recording, wanted))
    assert drawn.seen.count("failed") == 2  # one word for each panel
    panels = (drawn.figure.axes[panel] for panel in (PYTHON, C))
    crosses = [line for axis in panels for line in axis.lines if line.get_marker() == "x"]
    assert [line.get_xdata()[0] for line in crosses] == [64 * KIB, 64 * KIB]
    counts = {" 64 KiB failed (7 of 7)": 2, f" 64 KiB {TIMES}": 0, f" 8 KiB {TIMES}": 2}
    assert {words: drawn.words.count(words) for words in counts} == counts


def test_one_failure_among_good_samples_makes_the_point_fail():
    recording = example("sweep")
    failed = fail(recording, lambda one: one.series == Series("ours", "c", TEN) and one.round == 3)
    drawn = draw(AFTER, recording, samples=failed)
    assert drawn.words.count("failed (1 of 7)") == 4
    assert all(y != y for _, y in lines(drawn.figure, C)[COLOURS["c"]])  # broken everywhere


def test_what_cannot_be_drawn_is_refused():
    recording = example("sweep")
    bare = [one for one in recording.samples if one.series == BARE]
    twice = [make_sample(TEN, "c", 100.0, packet_size=size) for size in (1472, 9000)]
    for samples, words in (
        (bare, f"no sample of {TEN}: python -m bench run tut-10"),
        (twice, "several samples of"),
    ):
        with pytest.raises(ValueError, match=words):
            draw(AFTER, recording, samples=tuple(samples))


def test_another_installation_is_told_apart_without_colours():
    series = (Series("ours", "c", TEN), "now"), (Series("old", "c", TEN), "before")
    samples = make_rounds(TEN, "c", [100.0] * 3)
    samples += make_rounds(TEN, "c", [90.0] * 3, implementation="old")
    figure = draw(plots.Sweep("Now", series, "tut-10"), Recording(HEADER, tuple(samples))).figure
    drawn = [line for line in figure.axes[0].lines if line.get_linestyle() != "None"]
    assert len({line.get_color() for line in drawn}) == 1
    assert len({line.get_markerfacecolor() for line in drawn}) == 2


def test_of_several_peers_the_first_that_the_recording_has_is_drawn():
    recording = example("sweep")
    built = tuple(
        replace(one, case=f"built {one.case}", implementation="spead2-source")
        for one in recording.samples
        if one.implementation == "spead2"
    )
    peers = tuple(
        (Series(name, "python", TEN), f"peer {name}") for name in ("spead2-source", "spead2")
    )
    picture = dataclasses.replace(AFTER, series=AFTER.series[:2], peers=peers)
    both = dataclasses.replace(recording, samples=(*recording.samples, *built))
    for found, name in ((both, "spead2-source"), (recording, "spead2")):
        words = draw(picture, found).seen
        assert [one for one in words if one.startswith("peer")] == [f"peer {name}"]


def test_sizes_above_the_largest_are_left_out_of_lines_titles_and_words():
    few = dataclasses.replace(AFTER, largest=512 * KIB)
    drawn = draw(few, example("sweep"))
    xs, ys = zip(*lines(drawn.figure, C)[COLOURS["c"]], strict=True)
    assert xs == (8 * KIB, 64 * KIB, 512 * KIB)
    assert ys == pytest.approx((2600, 4300, 6000), rel=1e-3)
    dots = [one for one in drawn.figure.axes[C].lines if one.get_linestyle() == "None"]
    assert sum(len(one.get_xdata()) for one in dots) == 3 * 3 * 7  # series, sizes, samples
    assert "4 MiB" not in drawn.words
    assert "4 MiB" not in drawn.title

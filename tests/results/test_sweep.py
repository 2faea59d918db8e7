# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of rates over sizes: medians, gains within rounds, failures, and what is missing."""

import dataclasses
import statistics
from typing import Any

import pytest
from msgspec.structs import replace

from spead_tutorial.measure.records import Recording, Sample
from spead_tutorial.results import plots
from support.pictures import draw, drawing, fail
from support.recordings import AFTER, BARE, EIGHT, KIB, TEN, example, make_rounds, make_sample
from support.records import HEADER

COLOURS = plots.LIGHT.colours

#: Where the panels of AFTER are among a figure's axes.
PYTHON, C = range(2)


def lines(figure: Any, panel: int, filled: bool = True) -> dict[str, list[tuple[float, float]]]:
    """Lines by colour: what became, or with hollow markers what was before."""
    return {
        line.get_color(): list(zip(line.get_xdata(), line.get_ydata(), strict=True))
        for line in figure.axes[panel].lines
        if len(line.get_xdata()) > 2 and (line.get_markerfacecolor() == line.get_color()) == filled
    }


def test_panels_have_one_scale_at_most_three_lines_and_each_its_name_at_its_end():
    figure = drawing("sweep").figure
    assert len({axis.get_ylim() for axis in figure.axes}) == 1
    assert len({axis.get_xlim() for axis in figure.axes}) == 1
    assert figure.axes[0].get_ylim()[0] == 0
    assert figure.legends == []
    for axis, colour in zip(figure.axes, ("python", "c"), strict=True):
        names = {one.get_text(): one.get_color() for one in axis.texts if one.get_text()}
        expected = {"chapter 8": COLOURS[colour], "chapter 10": COLOURS[colour]}
        assert expected | {"bare calls": COLOURS["limit"]} == {
            name: names[name] for name in names if name not in ("C", "Python: payload sent in MB/s")
        }
        ends = {one.get_text(): one.xy[1] for one in axis.texts}
        assert ends["chapter 8"] < ends["chapter 10"] < ends["bare calls"]


def test_the_scale_of_a_picture_is_that_of_its_own_lines():
    recording = example("sweep")
    faster = tuple(
        replace(one, case=f"other {one.case}", variant="two", elapsed_ns=one.elapsed_ns // 2)
        for one in recording.samples
        if one.series == BARE and one.elapsed_ns is not None
    )
    both = dataclasses.replace(recording, samples=(*recording.samples, *faster))
    tops = {draw(AFTER, found).figure.axes[0].get_ylim() for found in (recording, both)}
    assert len(tops) == 1


def test_a_gain_is_the_median_of_ratios_within_rounds():
    # Of the second round all is faster: only ratios within a round mean anything.
    before, after = [100.0, 300.0, 110.0], [250.0, 330.0, 220.0]
    samples = make_rounds(EIGHT, "python", before) + make_rounds(TEN, "python", after)
    ratios = [new / old for old, new in zip(before, after, strict=True)]
    assert statistics.median(ratios) == 2
    assert statistics.median(after) / statistics.median(before) != 2
    gains = AFTER.gains(Recording(HEADER, tuple(samples)))
    assert [one.median for one in gains["python"].values()] == pytest.approx([2])


def test_a_point_that_failed_is_a_cross_with_a_word():
    recording = example("sweep")

    def wanted(one: Sample) -> bool:
        return one.program == TEN and one.heap_size == 64 * KIB and one.implementation == "ours"

    drawn = draw(AFTER, recording, samples=fail(recording, wanted))
    assert drawn.seen.count("failed") == 2  # one word for each panel
    crosses = [
        line for axis in drawn.figure.axes for line in axis.lines if line.get_marker() == "x"
    ]
    assert [line.get_xdata()[0] for line in crosses] == [16, 16]  # 64 KiB is 2 ** 16
    assert drawn.words.count(" 64 KiB failed (7 of 7)") == 2


def test_one_failure_among_good_samples_makes_the_point_fail():
    recording = example("sweep")
    failed = fail(
        recording,
        lambda one: (one.program, one.language, one.round) == (TEN, "c", 3),
    )
    drawn = draw(AFTER, recording, samples=failed)
    assert drawn.words.count("failed (1 of 7)") == 4
    assert all(y != y for _, y in lines(drawn.figure, C)[COLOURS["c"]])  # broken everywhere


def test_what_cannot_be_drawn_is_refused():
    recording = example("sweep")
    bare = [one for one in recording.samples if one.series == BARE]
    twice = [make_sample(TEN, "c", 100.0, packet_size=size) for size in (1472, 9000)]
    for samples, words in (
        (bare, f"no sample of {TEN}: python -m bench run heap-sizes"),
        (twice, "several samples of"),
    ):
        with pytest.raises(ValueError, match=words):
            draw(AFTER, recording, samples=tuple(samples))

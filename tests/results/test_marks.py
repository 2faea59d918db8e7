# SPDX-License-Identifier: BSD-3-Clause
"""The points of a picture as data; that they lie within it, test_plots.py asks of each."""

import functools
import json

import matplotlib.pyplot as plt
import pytest

from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results import plots
from spead_tutorial.results.plots.render import TIMES, Line, in_words, mark, points_of
from support.pictures import drawing
from support.recordings import PICTURES


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Draw a picture for the site, once, and return its files."""
    folder = tmp_path_factory.mktemp("points")
    return functools.cache(
        lambda name: plots.save_for_site(folder / f"{name}.svg", *PICTURES[name])
    )


@pytest.fixture
def read(saved):
    """Read the lines and the points of a picture."""

    def get(name: str) -> tuple[list[dict[str, object]], list[list[float]]]:
        data = json.loads(saved(name)[-1].read_text())
        return data["lines"], data["points"]

    return get


def test_a_gain_is_a_point_too_and_is_of_no_series(read):
    lines, points = read("sweep")
    gains = [number for number, line in enumerate(lines) if line["unit"] == "times"]
    assert len(gains) == 2
    assert all(lines[number]["key"] == [] for number in gains)
    small = [values for line, *values in points if line == gains[0] and values[0] == 8 << 10]
    assert small[0][1] == pytest.approx(4.0, rel=0.05)  # 2000 after 500


THOROUGH = sorted({*PICTURES} - {"timeline", "spacing", "lost", "sweep"})


@pytest.mark.parametrize(
    "name", ["sweep", *(pytest.param(one, marks=pytest.mark.thorough) for one in THOROUGH)]
)
def test_a_point_is_within_the_picture(read, name):
    _, points = read(name)
    assert len(points) > 3
    assert {len(values) for values in points} == {8}
    assert all(0 < part < 1 for values in points for part in values[6:])


def test_what_a_larger_rate_is_farther_to_the_right_in_a_ladder():
    found = points_of(drawing("ladder").figure)
    by_rate = sorted((one for _, one in found if one[0] == 1 << 20), key=lambda one: one[1])
    places = [one[5] for one in by_rate]
    assert places == sorted(places)
    rows = {str(line["name"]).rpartition(", ")[0] for line, _ in found}
    assert rows == {"5 Send while preparing", "6 Bigger packets", "10 Reuse heaps"}


def test_a_picture_for_the_site_is_saved_with_its_points_where_there_are_some(saved):
    written = [path.name for path in saved("sweep")]
    assert written == ["sweep.svg", "sweep-dark.svg", "sweep.json"]
    assert [path.name for path in saved("lost")] == ["lost.svg", "lost-dark.svg"]


def test_what_a_search_has_found_is_another_point_than_a_run():
    searched, ran = (
        {tuple(line["key"]) for line, _ in points_of(drawing(name).figure) if line["key"]}
        for name in ("receivers", "receiving")
    )
    assert {key[-1] for key in searched} == {"searched"}
    assert ran
    assert not any("searched" in key for key in ran)
    assert len({key[4] for key in ran}) == 2  # sizes of packets


def test_a_gain_is_rounded_once_where_it_is_said_in_words():
    figure, axis = plt.subplots()
    mark(axis, 0, 0, Line("gain", "", unit=TIMES), 1024, Estimate(0.9953, 0.98, 1, 9))
    said = in_words(figure, False)
    assert said == "gain: 1 KiB \N{MULTIPLICATION SIGN}1.00 (0.98 to 1.00)."
    plt.close(figure)

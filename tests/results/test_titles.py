# SPDX-License-Identifier: BSD-3-Clause
"""The title of a picture: a sentence that says what its recording says."""

import dataclasses

import pytest

from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.plots import DARK, LIGHT
from spead_tutorial.results.plots.facts import extremes, told
from spead_tutorial.results.plots.picture import Picture
from spead_tutorial.results.plots.sheet import lay_out, spread

NO_WORSE, TWICE, NINE, MORE, HALF = (
    Estimate(*ends, 9)
    for ends in (
        (1.01, 0.98, 1.05),
        (2.04, 1.9, 2.2),
        (9.4, 8, 11),
        (1.71, 1.6, 1.8),
        (0.5, 0.4, 0.6),
    )
)


@pytest.mark.parametrize(
    ("gains", "said"),
    [
        ({"python": TWICE, "c": NINE}, "9.4 times as fast in C, twice in Python"),
        ({"python": NINE, "c": HALF}, "9.4 times as fast in Python, 50 % slower in C"),
        ({"python": TWICE, "c": TWICE}, "twice as fast in Python and C"),
        ({"python": MORE, "c": dataclasses.replace(MORE, median=1.6)},
         "71 % faster in Python, 60 % in C"),
        ({"python": None, "c": TWICE}, "twice as fast in C"),
        ({"python": NO_WORSE, "c": HALF}, "50 % slower in C"),
        ({"python": NO_WORSE, "c": NO_WORSE}, ""),
        ({"python": None, "c": None}, ""),
        ({}, ""),
    ],
)  # fmt: skip
def test_what_was_gained_is_said_of_each_who_has_it_the_most_first(gains, said):
    assert told(gains) == said


def gains(*medians: float | None) -> dict[int, Estimate | None]:
    """Gains at the sizes 1, 2, 4 and so on."""
    return {
        1 << n: one and Estimate(one, one * 0.99, one * 1.01, 9) for n, one in enumerate(medians)
    }


@pytest.mark.parametrize(
    ("found", "sizes"),
    [
        ({"Python": gains(1.3, 1.1), "C": gains(2.5, 1.0)}, [1]),
        ({"Python": gains(1.4, 0.6), "C": gains(1.0, 1.0)}, [1, 2]),
        ({"C": gains(0.8, 1.0)}, [1]),
        ({"C": gains(1.0, 1.04)}, []),
        ({"C": {1: Estimate(2.0, 0.9, 3.0, 9), 2: Estimate(0.5, 0.4, 1.2, 9)}}, []),
        ({"C": gains(None, 2.0, 1.0)}, [2]),
        ({}, []),
    ],
)
def test_a_title_speaks_of_where_most_was_gained_and_a_loss_is_not_kept_quiet(found, sizes):
    assert extremes(found) == sizes


def test_a_title_is_folded_beside_units_and_is_followed_by_what_the_picture_is_of():
    title = "so long that it has to be folded, which is done at 64 KiB"
    picture = Picture(title, "what of", [], "", "where from")
    assert len(title.removesuffix(" KiB")) == 53, "it would have room"
    assert picture.name == f"{title}. what of"
    figure = lay_out(picture, LIGHT)
    y = {text.get_text(): text.get_position()[1] for text in figure.texts}
    folded = title.replace(" 64 KiB", "\n64 KiB")
    assert y[folded] > y["what of"] > y["where from"]


def test_a_legend_has_what_has_no_room_for_its_name_as_it_is_filled():
    picture = Picture("a", "", [], "", "", legend={"one": ("c", False), "other": ("c", True)})
    for theme in (LIGHT, DARK):
        texts = [(one.get_text(), one.get_color()) for one in lay_out(picture, theme).texts]
        marks = [colour for words, colour in texts if words == "\N{BLACK SQUARE}"]
        assert marks == [theme.colours["c"], theme.pale("c")]


@pytest.mark.parametrize(
    ("wanted", "places"),
    [
        ([5.0, 1.0], [5.0, 1.0]),  # where they are wanted
        ([5.0, 5.0], [4.5, 5.5]),  # apart, around there
        ([0.0, 0.2], [0.5, 1.5]),  # and inside
        ([9.9, 9.8, 9.7], [9.5, 8.5, 7.5]),
    ],
)
def test_names_at_the_ends_of_lines_do_not_lie_on_each_other(wanted, places):
    assert spread([(place, 1.0) for place in wanted], 0, 10) == pytest.approx(places)

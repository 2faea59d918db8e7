# SPDX-License-Identifier: BSD-3-Clause
"""The title of a picture: what its recording says, and below it what it is of."""

import pytest

from spead_tutorial.plots import LIGHT
from spead_tutorial.plots.finding import gained, strongest
from spead_tutorial.plots.sheet import Sheet
from spead_tutorial.stats import Estimate, is_told
from support.pictures import typed

NO_WORSE, TWICE, HALF = (
    Estimate(*ends, 9) for ends in ((1.01, 0.98, 1.05), (2.04, 1.9, 2.2), (0.5, 0.4, 0.6))
)


def test_a_difference_is_told_where_the_interval_leaves_out_one():
    assert [is_told(one) for one in (NO_WORSE, TWICE, HALF)] == [False, True, True]
    assert not is_told(Estimate(1.2, 1.0, 1.4, 9))
    assert not is_told(Estimate(1.2, 1.004, 1.4, 9))  # which is printed as 1.00


@pytest.mark.parametrize(
    ("gains", "said"),
    [
        ({"Python": TWICE, "C": HALF}, "x2.04 (Python), x0.50 (C)"),
        ({"Python": TWICE, "C": TWICE}, "x2.04 (Python, C)"),
        ({"Python": None, "C": TWICE}, "x2.04 (C)"),
        ({"Python": NO_WORSE, "C": NO_WORSE}, "no difference found"),
        ({"Python": NO_WORSE, "C": HALF}, "no difference found (Python), x0.50 (C)"),
        ({"Python": None, "C": None}, "not known"),
        ({}, "not known"),
    ],
)
def test_what_was_gained_is_said_of_each_who_has_it(gains, said):
    assert typed(gained(gains)) == said


def test_the_strongest_difference_may_be_a_loss_but_has_to_be_told():
    more = Estimate(9.0, 0.9, 20.0, 9)
    gains = {"here": {"C": TWICE}, "there": {"C": more}, "last": {"C": None}}
    assert strongest(gains) == "here"
    assert strongest({**gains, "there": {"Python": NO_WORSE, "C": Estimate(0.1, 0.1, 0.2, 9)}}) == (
        "there"
    )
    assert strongest({"here": {"C": more}, "last": {}}) == "last"


def test_a_subtitle_stands_between_the_title_and_the_panels():
    bare = Sheet(LIGHT, "What one learns", [(0.3, 1.0)], "where from")
    sheet = Sheet(LIGHT, "What one learns", [(0.3, 1.0)], "where from", subtitle="what of")
    assert sheet.title == "What one learns. what of"
    assert bare.title == "What one learns"
    y = {text.get_text(): text.get_position()[1] for text in sheet.figure.texts}
    panel = sheet.axes(0, 0.2, 0.2).get_position()
    assert y["What one learns"] > y["what of"] > panel.y1
    assert sheet.height > bare.height


def test_a_title_is_not_folded_before_what_is_in_brackets():
    title = "what is so long that it has to be folded, twice (C)"
    assert title[:50].endswith("twice (C"), "here it would be folded otherwise"
    sheet = Sheet(LIGHT, title, [(0.3, 1.0)], "where from")
    assert "what is so long that it has to be folded,\ntwice (C)" in [
        text.get_text() for text in sheet.figure.texts
    ]
    assert sheet.title == title

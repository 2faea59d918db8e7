# SPDX-License-Identifier: BSD-3-Clause
"""The title of a picture: what its recording says, and below it what it is of."""

import pytest

from spead_tutorial.measure.stats import Estimate, differs
from spead_tutorial.results.plots import LIGHT
from spead_tutorial.results.plots.facts import fill, gained, over_sizes, strongest
from spead_tutorial.results.plots.sheet import Sheet
from support.pictures import typed

NO_WORSE, TWICE, HALF = (
    Estimate(*ends, 9) for ends in ((1.01, 0.98, 1.05), (2.04, 1.9, 2.2), (0.5, 0.4, 0.6))
)


def test_a_difference_is_told_where_the_interval_leaves_out_one():
    assert [differs(one) for one in (NO_WORSE, TWICE, HALF)] == [False, True, True]
    assert not differs(Estimate(1.2, 1.0, 1.4, 9))
    assert not differs(Estimate(1.2, 1.004, 1.4, 9))  # which is printed as 1.00


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


def gains(*medians: float | None) -> dict[int, Estimate | None]:
    """Gains at the sizes 1, 2, 4 and so on."""
    return {
        1 << n: one and Estimate(one, one * 0.99, one * 1.01, 9) for n, one in enumerate(medians)
    }


NOT_KNOWN = {}, {"C": gains(None, None)}, {"C": gains(1.5)}


@pytest.mark.parametrize(
    ("found", "title"),
    [
        (
            {"Python": gains(1.3, 1.1), "C": gains(2.5, 1.0)},
            "Faster: x1.30 (Python), x2.50 (C) at 1 bytes",
        ),
        # One of them may be alike, and a loss is not kept quiet.
        (
            {"Python": gains(1.4, 0.6), "C": gains(1.0, 1.0)},
            "Faster: x0.60 (Python), no difference found (C) at 2 bytes",
        ),
        ({"C": gains(1.0, 1.0)}, "Faster: no difference found"),
        (
            {"C": {1: Estimate(2.0, 0.9, 3.0, 9), 2: Estimate(0.5, 0.4, 1.2, 9)}},
            "Faster: no difference found",
        ),
        ({"C": gains(None, 2.0, 1.0)}, "Faster: x2.00 (C) at 2 bytes"),
    ],
)
def test_a_title_has_a_slot_for_where_the_most_was_gained_or_lost(found, title):
    assert typed(fill("Faster: {most}", over_sizes(found))) == title


def test_a_title_has_a_slot_for_each_size_and_claims_nothing_where_that_is_not_known():
    known = {"Python": gains(1.3, 1.1), "C": gains(2.5)}
    said = [typed(fill("Faster: {2 bytes} at two", over_sizes(x))) for x in (known, *NOT_KNOWN)]
    assert said == ["Faster: x1.10 (Python) at two"] + ["Faster"] * 3


def test_a_subtitle_stands_between_the_title_and_the_panels():
    bare = Sheet(LIGHT, "What one learns", [(0.3, 1.0)], "where from")
    sheet = Sheet(LIGHT, "What one learns", [(0.3, 1.0)], "where from", subtitle="what of")
    assert sheet.title == "What one learns. what of"
    assert bare.title == "What one learns"
    y = {text.get_text(): text.get_position()[1] for text in sheet.figure.texts}
    panel = sheet.axes(0, 0.2, 0.2).get_position()
    assert y["What one learns"] > y["what of"] > panel.y1
    assert sheet.height > bare.height


@pytest.mark.parametrize(
    ("last", "fits"),
    [("\ntwice (C)", "twice (C"), (" twice,\n\u2265 2", "\u2265")],
)
def test_a_title_is_not_folded_before_what_is_in_brackets_nor_behind_a_sign(last, fits):
    folded = f"what is so long that it has to be folded,{last}"
    title = folded.replace("\n", " ")
    assert title[:50].endswith(fits), "here it would be folded otherwise"
    sheet = Sheet(LIGHT, title, [(0.3, 1.0)], "where from")
    assert folded in [text.get_text() for text in sheet.figure.texts]
    assert sheet.title == title

# SPDX-License-Identifier: BSD-3-Clause
"""What a title says of gains over sizes."""

import pytest

from spead_tutorial.plots.verdict import gains_over_sizes, shares_over_sizes
from spead_tutorial.stats import Estimate
from support.pictures import typed


def gains(*medians: float | None) -> dict[int, Estimate | None]:
    """Gains at the sizes 1, 2, 4 and so on."""
    return {
        1 << n: one and Estimate(one, one * 0.99, one * 1.01, 9) for n, one in enumerate(medians)
    }


@pytest.mark.parametrize(
    ("found", "said"),
    [
        # Where the gain is largest, and from where on there is none.
        (
            {"Python": gains(1.3, 1.1, 1.0, 1.01), "C": gains(2.5, 1.0, 1.0, 0.99)},
            "x1.30 (Python), x2.50 (C) at 1, no difference found from 4 on",
        ),
        (
            {"Python": gains(1.0, 1.8, 1.0), "C": gains(1.0, 1.9, 1.0)},
            "x1.80 (Python), x1.90 (C) at 2, no difference found at other sizes",
        ),
        (
            {"Python": gains(1.3, 1.0), "C": gains(1.0, 1.0)},
            "x1.30 (Python) at 1, no difference found at other sizes",
        ),
        # A gain at every size.
        (
            {"Python": gains(1.4, 1.9, 1.7), "C": gains(1.5, 1.95, 1.8)},
            "x1.40 to x1.90 (Python), x1.50 to x1.95 (C)",
        ),
        # A loss is not kept quiet; one that is larger than the gain comes first.
        (
            {"Python": gains(1.0, 1.4, 0.9), "C": gains(1.1, 1.39, 0.85)},
            "x1.40 (Python), x1.39 (C) at 2, x0.90 (Python), x0.85 (C) at 4",
        ),
        (
            {"Python": gains(1.3, 0.93, 1.0), "C": gains(1.1, 1.07, 1.0)},
            "x1.30 (Python), x1.10 (C) at 1, x0.93 (Python), x1.07 (C) at 2,"
            " no difference found from 4 on",
        ),
        ({"C": gains(1.1, 0.5)}, "x0.50 (C) at 2, x1.10 (C) at 1"),
        ({"C": gains(0.5, 0.6)}, "x0.50 (C) at 1"),
        # Intervals that include 1, and small differences of so many sizes.
        (
            {"C": {1: Estimate(2.0, 0.9, 3.0, 9), 2: Estimate(0.5, 0.4, 1.2, 9)}},
            "no difference found",
        ),
        ({"C": gains(1.04, 0.97, 1.02)}, "no difference found"),
        # What is not known.
        ({"C": gains(None, None)}, ""),
        ({}, ""),
        ({"C": gains(None, 2.0, 1.0)}, "x2.00 (C) at 2, no difference found at other sizes"),
    ],
)
def test_the_title_says_where_there_are_gains_and_losses_and_where_none(found, said):
    assert typed(gains_over_sizes(found, str)) == said


def test_a_share_is_said_where_it_is_the_least():
    found = {"Python": gains(0.5, 0.06, 0.9), "C": gains(0.6, 0.15, None)}
    assert shares_over_sizes(found, "it", str) == "6 % (Python), 15 % (C) of it at 2"
    assert shares_over_sizes({}, "it", str) == ""

# SPDX-License-Identifier: BSD-3-Clause
"""What a title says of gains over sizes."""

from collections.abc import Mapping

from spead_tutorial.plots.verdict import gains_over_sizes, shares_over_sizes
from spead_tutorial.stats import Estimate


def said_of(gains: Mapping[str, Mapping[int, Estimate | None]]) -> str:
    """What is said, with a letter that can be typed."""
    return gains_over_sizes(gains, str).replace("\N{MULTIPLICATION SIGN}", "x")


def certain(median: float) -> Estimate:
    """An estimate with a narrow interval."""
    return Estimate(median, median * 0.99, median * 1.01, 9)


def gains(*medians: float | None) -> dict[int, Estimate | None]:
    """Gains at the sizes 1, 2, 4 and so on."""
    return {1 << n: None if one is None else certain(one) for n, one in enumerate(medians)}


def test_the_title_says_where_the_gain_is_largest_and_from_where_on_there_is_none():
    found = {"Python": gains(1.3, 1.1, 1.0, 1.01), "C": gains(2.5, 1.0, 1.0, 0.99)}
    assert said_of(found) == "x1.30 (Python), x2.50 (C) at 1, no difference found from 4 on"


def test_a_gain_at_one_size_alone_is_told_from_all_others():
    found = {"Python": gains(1.0, 1.8, 1.0), "C": gains(1.0, 1.9, 1.0)}
    assert said_of(found) == "x1.80 (Python), x1.90 (C) at 2, no difference found at other sizes"


def test_who_has_no_gain_at_that_size_is_not_said_to_have_one():
    found = {"Python": gains(1.3, 1.0), "C": gains(1.0, 1.0)}
    assert said_of(found) == "x1.30 (Python) at 1, no difference found at other sizes"


def test_a_gain_at_every_size_is_said_from_the_least_to_the_most():
    found = {"Python": gains(1.4, 1.9, 1.7), "C": gains(1.5, 1.95, 1.8)}
    assert said_of(found) == "x1.40 to x1.90 (Python), x1.50 to x1.95 (C)"


def test_a_loss_at_the_largest_size_is_not_kept_quiet():
    found = {"Python": gains(1.0, 1.4, 0.9), "C": gains(1.1, 1.39, 0.85)}
    assert said_of(found) == "x1.40 (Python), x1.39 (C) at 2, x0.90 (Python), x0.85 (C) at 4"


def test_a_loss_between_a_gain_and_nothing_is_not_kept_quiet():
    found = {"Python": gains(1.3, 0.93, 1.0), "C": gains(1.1, 1.07, 1.0)}
    assert said_of(found) == (
        "x1.30 (Python), x1.10 (C) at 1, x0.93 (Python), x1.07 (C) at 2,"
        " no difference found from 4 on"
    )


def test_a_loss_that_is_larger_than_the_gain_comes_first():
    found = {"C": gains(1.1, 0.5)}
    assert said_of(found) == "x0.50 (C) at 2, x1.10 (C) at 1"


def test_losses_at_every_size_are_no_range_of_gains():
    assert said_of({"C": gains(0.5, 0.6)}) == "x0.50 (C) at 1"


def test_where_intervals_include_one_no_difference_is_told():
    wide = {1: Estimate(2.0, 0.9, 3.0, 9), 2: Estimate(0.5, 0.4, 1.2, 9)}
    assert said_of({"C": wide}) == "no difference found"


def test_of_so_many_sizes_a_small_difference_is_none():
    assert said_of({"C": gains(1.04, 0.97, 1.02)}) == "no difference found"


def test_what_is_not_known_has_no_finding():
    assert said_of({"C": gains(None, None)}) == ""
    assert said_of({}) == shares_over_sizes({}, "it", str) == ""
    assert said_of({"C": gains(None, 2.0, 1.0)}).startswith("x2.00 (C) at 2")


def test_a_share_is_said_where_it_is_the_least():
    found = {"Python": gains(0.5, 0.06, 0.9), "C": gains(0.6, 0.15, None)}
    assert shares_over_sizes(found, "it", str) == "6 % (Python), 15 % (C) of it at 2"

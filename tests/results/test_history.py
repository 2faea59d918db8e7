# SPDX-License-Identifier: BSD-3-Clause
"""The picture of rates over revisions."""

import math

from spead_tutorial.units import times
from support.pictures import drawing


def medians(axis):
    """What lines with markers that are not dots go through."""
    return [
        list(line.get_ydata())
        for line in axis.lines
        if line.get_linewidth() == 2.0 and line.get_linestyle() != "None"
    ]


def test_each_machine_has_a_panel_of_its_own_with_its_revisions_alone():
    figure = drawing("history").figure
    one, other = figure.axes[:2]
    assert [len(line) for line in medians(one)] == [7, 7]
    assert [len(line) for line in medians(other)] == [2]
    assert [label.get_text() for label in other.get_xticklabels()] == ["0a5e1e9", "1a5e1e9"]


def test_where_a_revision_has_no_rate_the_line_has_none():
    figure = drawing("history").figure
    assert math.isnan(medians(figure.axes[1])[0][0])


def test_a_change_is_ringed_at_its_revision_and_says_how_large_it_is():
    figure = drawing("history").figure
    rings = [
        (line.get_xdata()[0], line.get_ydata()[0])
        for axis in figure.axes
        for line in axis.lines
        if line.get_markersize() == 13
    ]
    assert rings == [(4, 3500.0)]
    assert times(0.7) in drawing("history").seen

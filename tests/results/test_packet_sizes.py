# SPDX-License-Identifier: BSD-3-Clause
"""The picture of the size of packets: two panels, and sizes that are kept apart."""

from typing import Any

import pytest

from spead_tutorial import plots
from spead_tutorial.units import times
from support.pictures import draw, drawing
from support.recordings import make_packets


def marks(axis: Any) -> dict[float, str]:
    """Where the sizes of a panel are along x, and how they are called."""
    ticks = [*axis.xaxis.get_major_ticks(), *axis.xaxis.get_minor_ticks()]
    return {tick.get_loc(): tick.label1.get_text() for tick in sorted(ticks, key=_place)}


def _place(tick: Any) -> float:
    return float(tick.get_loc())


def test_sizes_are_logarithmic_but_never_too_close_to_be_told_apart():
    whole = drawing("packets").figure.axes[0]
    small, default, large, largest = marks(whole)
    assert default - small == pytest.approx(1524, abs=1)  # thousandths of an octave
    assert large - default == pytest.approx(2612, abs=1)
    assert largest - large > 10 * 29
    assert "(logarithmic; 9000 to 9184 drawn apart)" in drawing("packets").seen


@pytest.mark.parametrize("mtu", [65536, None])
def test_without_fragments_or_without_a_known_mtu_there_is_one_panel(mtu):
    drawn = draw(plots.packet_sizes, make_packets(mtu))
    assert len(drawn.figure.axes) == 1
    assert "fragments" not in drawn.title
    assert len(marks(drawn.figure.axes[0])) == 5

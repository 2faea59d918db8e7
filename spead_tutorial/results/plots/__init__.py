# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of recordings, all in one style, light and dark.

The same recording gives the same bytes. Matplotlib comes with the extra ``[lab]``: without
it, drawing raises `MissingError`.
"""

from spead_tutorial.results.plots.facts import caption
from spead_tutorial.results.plots.ladder import ladder, receivers_ladder
from spead_tutorial.results.plots.matrix import matrix
from spead_tutorial.results.plots.packets import packet_sizes
from spead_tutorial.results.plots.render import (
    Draw,
    MissingError,
    render,
    render_both,
    require,
    save,
    save_for_site,
)
from spead_tutorial.results.plots.splits import hot, lost, one_slow, where
from spead_tutorial.results.plots.sweep import Sweep, receiving
from spead_tutorial.results.plots.theme import DARK, LIGHT, Theme
from spead_tutorial.results.plots.timeline import timeline
from spead_tutorial.results.plots.ways import causes, loopback, pipeline

__all__ = [
    "DARK",
    "LIGHT",
    "Draw",
    "MissingError",
    "Sweep",
    "Theme",
    "caption",
    "causes",
    "hot",
    "ladder",
    "loopback",
    "lost",
    "matrix",
    "one_slow",
    "packet_sizes",
    "pipeline",
    "receivers_ladder",
    "receiving",
    "render",
    "render_both",
    "require",
    "save",
    "save_for_site",
    "timeline",
    "where",
]

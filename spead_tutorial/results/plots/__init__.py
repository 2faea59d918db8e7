# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of recordings, all in one style, light and dark.

The same recording gives the same bytes. Matplotlib comes with the extra ``[lab]``: without
it, drawing raises `MissingError`.
"""

from spead_tutorial.results.plots.facts import caption
from spead_tutorial.results.plots.ladder import ladder
from spead_tutorial.results.plots.memory import causes, memory
from spead_tutorial.results.plots.packets import packet_sizes
from spead_tutorial.results.plots.parts import lost, where
from spead_tutorial.results.plots.pipeline import pipeline
from spead_tutorial.results.plots.receiving import loss, receivers_ladder, receiving
from spead_tutorial.results.plots.render import (
    Draw,
    MissingError,
    Rendered,
    render,
    render_both,
    require,
    save,
    save_for_site,
)
from spead_tutorial.results.plots.sweep import Sweep
from spead_tutorial.results.plots.theme import DARK, LIGHT, Theme
from spead_tutorial.results.plots.timeline import spacing, timeline
from spead_tutorial.results.plots.ways import ceiling, loopback

__all__ = [
    "DARK",
    "LIGHT",
    "Draw",
    "MissingError",
    "Rendered",
    "Sweep",
    "Theme",
    "caption",
    "causes",
    "ceiling",
    "ladder",
    "loopback",
    "loss",
    "lost",
    "memory",
    "packet_sizes",
    "pipeline",
    "receivers_ladder",
    "receiving",
    "render",
    "render_both",
    "require",
    "save",
    "save_for_site",
    "spacing",
    "timeline",
    "where",
]

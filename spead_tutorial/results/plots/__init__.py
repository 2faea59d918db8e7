# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of recordings, all in one style, light and dark.

The same recording gives the same bytes. Matplotlib comes with the extra ``[lab]``: without
it, drawing raises `MissingError`.
"""

from spead_tutorial.results.plots.caption import caption
from spead_tutorial.results.plots.causes import causes
from spead_tutorial.results.plots.ladder import ladder
from spead_tutorial.results.plots.loopback import loopback
from spead_tutorial.results.plots.loss import loss
from spead_tutorial.results.plots.lost import lost
from spead_tutorial.results.plots.memory import memory
from spead_tutorial.results.plots.packet_sizes import packet_sizes
from spead_tutorial.results.plots.pipeline import pipeline
from spead_tutorial.results.plots.receivers import receivers_ladder
from spead_tutorial.results.plots.receiving import receiving
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
from spead_tutorial.results.plots.spacing import spacing
from spead_tutorial.results.plots.sweep import Sweep
from spead_tutorial.results.plots.theme import DARK, LIGHT, Theme
from spead_tutorial.results.plots.timeline import timeline
from spead_tutorial.results.plots.ways import Ways, ceiling
from spead_tutorial.results.plots.where import where

__all__ = [
    "DARK",
    "LIGHT",
    "Draw",
    "MissingError",
    "Rendered",
    "Sweep",
    "Theme",
    "Ways",
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

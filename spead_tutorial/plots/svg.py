# SPDX-License-Identifier: BSD-3-Clause
"""Turns what a picture draws into an SVG: always the same bytes, with words for screen readers."""

import html
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from spead_tutorial.plots.theme import DARK, LIGHT, Theme
from spead_tutorial.records import Recording

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Draw", "Drawn", "MissingError", "render", "save"]

#: A figure, its title, and its description in words and numbers.
Drawn: TypeAlias = tuple["Figure", str, str]
#: What draws a picture of a recording.
Draw: TypeAlias = Callable[[Recording, Theme], Drawn]


class MissingError(RuntimeError):
    """What draws the pictures is not installed."""


def save(path: Path, draw: Draw, recording: Recording) -> list[Path]:
    """Draw a picture twice: light to `path`, and dark beside it.

    Parameters
    ----------
    path : path
        The light picture, an SVG; the dark one has ``-dark`` before its suffix.
    draw : function
        Such as `ladder`.
    recording : Recording
        What to draw.

    Returns
    -------
    list of path
        Both files.
    """
    written = []
    for theme, end in ((LIGHT, ""), (DARK, "-dark")):
        target = path.with_name(f"{path.stem}{end}{path.suffix}")
        target.write_bytes(render(draw, recording, theme))
        written.append(target)
    return written


def render(draw: Draw, recording: Recording, theme: Theme) -> bytes:
    """Draw a picture and return its SVG; the same recording gives the same bytes."""
    matplotlib = _matplotlib()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_style(theme))
        figure, title, description = draw(recording, theme)
        out = io.StringIO()
        # The stream's newlines and no date: nothing that differs from one time to the next.
        figure.savefig(out, format="svg", metadata={"Date": None})
    words = description.replace("\N{THIN SPACE}", "")  # it is for the eye
    return _described(out.getvalue(), title, words).encode()


def _style(theme: Theme) -> dict[str, Any]:
    return {
        "font.family": "DejaVu Sans",
        "font.size": 10,
        "svg.hashsalt": "spead_tutorial",
        "svg.fonttype": "none",
        "hatch.linewidth": 0.7,
        "text.color": theme.text,
        "axes.labelcolor": theme.text,
        "axes.edgecolor": theme.faint,
        "axes.facecolor": theme.background,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.facecolor": theme.background,
        "savefig.facecolor": theme.background,
        "xtick.color": theme.faint,
        "xtick.labelcolor": theme.text,
        "ytick.color": theme.faint,
        "ytick.labelcolor": theme.text,
        "grid.color": theme.grid,
        "grid.linewidth": 0.6,
    }


def _described(svg: str, title: str, description: str) -> str:
    """Give an SVG the title and description that screen readers read, and fonts to fall back on."""
    svg = svg.replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif")
    start = svg.index("<svg ")
    end = svg.index(">", start)
    labels = ' role="img" aria-labelledby="picture-title picture-description"'
    texts = (
        f'\n <title id="picture-title">{html.escape(title)}</title>'
        f'\n <desc id="picture-description">{html.escape(description)}</desc>'
    )
    return svg[:end] + labels + ">" + texts + svg[end + 1 :]


def _matplotlib() -> Any:
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError:
        raise MissingError("drawing needs matplotlib: pip install 'spead-tutorial[lab]'") from None
    return matplotlib

# SPDX-License-Identifier: BSD-3-Clause
"""Turns what a picture draws into SVG, with words for screen readers, and into PNG.

The same recording gives the same bytes of either.
"""

import contextlib
import dataclasses
import html
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from spead_tutorial.measure.records import Recording
from spead_tutorial.results.plots.marks import joined, points_of
from spead_tutorial.results.plots.sheet import Drawn
from spead_tutorial.results.plots.theme import LIGHT, Theme, darkened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Draw",
    "Drawn",
    "MissingError",
    "Rendered",
    "render",
    "render_both",
    "require",
    "save",
    "save_for_site",
]

#: What draws a picture: a function of a `Recording` and a `Theme` that returns a figure of
#: Matplotlib's, its title (str), and its description in words and numbers (str).
Draw: TypeAlias = Callable[[Recording, Theme], Drawn]

_PNG_DPI = 100


class MissingError(RuntimeError):
    """What draws the pictures is not installed; the text says how to install it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Rendered:
    """One picture in both kinds."""

    title: str  # what it is called
    svg: bytes  # as `render` returns it
    png: bytes  # the same figure, 100 pixels to an inch


def require() -> None:
    """Find out whether pictures can be drawn, before there is anything to draw."""
    _matplotlib()


def save(path: Path, draw: Draw, recording: Recording) -> list[Path]:
    """Draw a picture to `path`, and the same in the colours of a dark page beside it."""
    svg = render(draw, recording, LIGHT)
    return _both(path, svg)


def save_for_site(path: Path, draw: Draw, recording: Recording) -> list[Path]:
    """Draw a picture, wide and narrow, light and dark, and note where its points are."""
    written, marked = [], []
    for theme, end in ((LIGHT, ""), (LIGHT.narrow(), "-narrow")):
        with _drawn(draw, recording, theme) as drawn:
            written += _both(path.with_stem(path.stem + end), _svg(*drawn))
            marked.append(points_of(drawn[0]))
    if marked[0]:
        written.append(path.with_suffix(".json"))
        written[-1].write_text(joined(*marked))
    return written


def _both(path: Path, light: bytes) -> list[Path]:
    dark = path.with_stem(f"{path.stem}-dark")
    path.write_bytes(light)
    dark.write_bytes(darkened(light))
    return [path, dark]


def render(draw: Draw, recording: Recording, theme: Theme) -> bytes:
    """Draw a picture and return its SVG; the same recording gives the same bytes."""
    with _drawn(draw, recording, theme) as drawn:
        return _svg(*drawn)


def render_both(draw: Draw, recording: Recording, theme: Theme) -> Rendered:
    """Draw a picture once and return it in both kinds; the same recording gives the same bytes."""
    with _drawn(draw, recording, theme) as drawn:
        figure, title, _ = drawn
        return Rendered(title, _svg(*drawn), _png(figure))


@contextlib.contextmanager
def _drawn(draw: Draw, recording: Recording, theme: Theme) -> Iterator[Drawn]:
    """Yield what was drawn, while the settings with which it is to be saved are in force."""
    matplotlib = _matplotlib()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_style(theme))
        yield draw(recording, theme)


def _svg(figure: "Figure", title: str, description: str) -> bytes:
    out = io.StringIO()
    # The stream's newlines and no date: nothing that differs from one time to the next.
    figure.savefig(out, format="svg", metadata={"Date": None})
    words = description.replace("\N{THIN SPACE}", "")  # it is for the eye
    return _described(out.getvalue(), title, words).encode()


def _png(figure: "Figure") -> bytes:
    from PIL import Image  # matplotlib needs it too

    drawn, out = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=_PNG_DPI, metadata={"Software": None})
    # Notebooks store it: with a palette it is a third as long, and looks the same.
    Image.open(drawn).convert("RGB").quantize(256).save(out, "PNG", optimize=True)
    return out.getvalue()


def _style(theme: Theme) -> dict[str, Any]:
    return {
        "font.family": "DejaVu Sans",
        "font.size": 10,
        "svg.hashsalt": "spead_tutorial",
        "svg.fonttype": "none",
        "hatch.linewidth": 0.7,
        "text.parse_math": False,  # a machine may have any name
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

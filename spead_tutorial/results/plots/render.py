# SPDX-License-Identifier: BSD-3-Clause
"""What becomes of a picture: its SVG, its PNG, and its points as data.

The same recording gives the same bytes.
"""

import contextlib
import html
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from spead_tutorial._shown import shown_lines
from spead_tutorial.measure.records import Recording
from spead_tutorial.results.plots.picture import Figure, Picture, as_json
from spead_tutorial.results.plots.sheet import lay_out
from spead_tutorial.results.plots.theme import DARK, FAINT, LIGHT, SIZE, Theme

#: What a recording has to say as a picture.
Draw: TypeAlias = Callable[[Recording], Picture]

_PNG_DPI = 100


class MissingError(RuntimeError):
    """What draws the pictures is not installed; the text says how to install it."""


def require() -> Any:
    """Return matplotlib: find out whether pictures can be drawn before there is any to draw."""
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError:
        raise MissingError("drawing needs matplotlib: pip install 'spead-tutorial[lab]'") from None
    return matplotlib


def save(path: Path, picture: Picture) -> list[Path]:
    """Draw a picture to `path`, and the same in the colours of a dark page next to it."""
    dark = path.with_stem(f"{path.stem}-dark")
    path.write_bytes(render(picture, LIGHT))
    dark.write_bytes(render(picture, DARK))
    return [path, dark]


def save_for_site(path: Path, picture: Picture) -> None:
    """Draw a picture, light and dark, and note where its points are, if it has any."""
    save(path, picture)
    with drawn(picture, LIGHT) as figure:
        if marked := picture.points(figure):
            path.with_suffix(".json").write_text(as_json(marked))


def render(picture: Picture, theme: Theme) -> bytes:
    """Draw a picture and return its SVG; the same picture gives the same bytes."""
    with drawn(picture, theme) as figure:
        return _svg(picture, figure)


def render_both(picture: Picture, theme: Theme) -> tuple[bytes, bytes]:
    """Draw a picture once and return it as SVG, and as PNG with 100 pixels to an inch."""
    with drawn(picture, theme) as figure:
        return _svg(picture, figure), _png(figure)


@contextlib.contextmanager
def drawn(picture: Picture, theme: Theme) -> Iterator[Figure]:
    """Yield what was drawn, while the settings with which it is to be saved are in force."""
    matplotlib = require()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_style(theme))
        yield lay_out(picture, theme)


def _svg(picture: Picture, figure: Figure) -> bytes:
    out = io.StringIO()
    # The stream's newlines and no date: nothing that differs from one time to the next.
    figure.savefig(out, format="svg", metadata={"Date": None})
    return shown_lines(_described(out.getvalue(), picture.name, picture.words)).encode()


def _png(figure: Figure) -> bytes:
    from PIL import Image  # matplotlib needs it too

    drawn, out = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=_PNG_DPI, metadata={"Software": None})
    # Notebooks store it: with a palette it is a third as long, and looks the same.
    Image.open(drawn).convert("RGB").quantize(256).save(out, "PNG", optimize=True)
    return out.getvalue()


def _style(theme: Theme) -> dict[str, Any]:
    return {
        "font.family": "DejaVu Sans",
        "font.size": SIZE,
        "svg.hashsalt": "spead_tutorial",
        "svg.fonttype": "none",
        "text.parse_math": False,  # a machine may have any name
        "text.color": theme.text,
        "axes.labelcolor": theme.text,
        "axes.edgecolor": theme.faint,
        "axes.facecolor": theme.background,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.facecolor": theme.background,
        "savefig.facecolor": theme.background,
        "xtick.labelsize": FAINT,
        "ytick.labelsize": FAINT,
        "axes.labelsize": FAINT,
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

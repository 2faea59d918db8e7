# SPDX-License-Identifier: BSD-3-Clause
"""What becomes of a figure: its points as data, its words, its SVG and its PNG.

What is drawn is marked where it is drawn; nothing else says a picture in words. The same
recording gives the same bytes.
"""

import contextlib
import dataclasses
import html
import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from spead_tutorial._shown import shown_lines
from spead_tutorial.measure.records import Recording
from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.plots.theme import LIGHT, Theme, darkened
from spead_tutorial.results.units import bytes_text, number, size, times

# Matplotlib is imported when something is drawn; here is what types call its classes.
if TYPE_CHECKING:
    from matplotlib.artist import Artist as Artist
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:
    Artist = Axes = Figure = Any

_POINT, _WORDS = "point ", "words "
_SPEED = "MB/s"
#: The units of a gain, and of a share of the packets, whose points are of runs, not of rounds.
TIMES, PERCENT = "times", "% of packets lost"
#: What a line is over, where that is not the size of heaps.
PACKET, RATE = "packet", "rate"


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """What the points of a line have in common."""

    name: str  # what a page calls it
    role: str  # what gives it its colour
    # the implementation, language, program and variant of its samples; empty for a gain
    key: tuple[str, ...] = ()
    unit: str = _SPEED  # of its values
    over: str = ""  # what it is over: `PACKET`, `RATE`, or by default the size of heaps


def mark(axis: Axes, x: float, y: float, line: Line, size: float, estimate: Estimate) -> None:
    """Note a point at data coordinates of a panel, without drawing anything."""
    ends = (float(f"{end:.9g}") for end in (estimate.median, estimate.low, estimate.high))
    _note(axis, _POINT, [dataclasses.asdict(line), [size, *ends, estimate.n]], x, y)


def say(axis: Axes, name: str, words: str) -> None:
    """Note something that a panel shows of a line, and that is no point."""
    _note(axis, _WORDS, [name, words])


def _note(axis: Axes, kind: str, facts: list[Any], x: float = 0.0, y: float = 0.0) -> None:
    from matplotlib.lines import Line2D

    where: Any = {"transform": axis.transData, "visible": False, "gid": kind + json.dumps(facts)}
    axis.figure.add_artist(Line2D([x], [y], **where))


def _noted(figure: Figure, *kinds: str) -> Iterator[tuple[Any, Any, Any]]:
    """Yield what was noted, and the artist that lies where it was noted."""
    for artist in figure.findobj(lambda artist: (artist.get_gid() or "").startswith(kinds)):
        first, second = json.loads((artist.get_gid() or "").partition(" ")[2])
        yield first, second, artist


def points_of(figure: Figure) -> list[tuple[dict[str, Any], list[float]]]:
    """Return what was marked: its line; size, median, ends, rounds, and parts from left and top."""
    found = []
    for line, values, artist in _noted(figure, _POINT):
        ((x, y),) = artist.get_transform().transform(artist.get_xydata())
        place = [x / figure.bbox.width, 1 - y / figure.bbox.height]
        found.append((line, [*values, *(round(float(part), 4) for part in place)]))
    return found


def as_json(points: list[tuple[dict[str, Any], list[float]]]) -> str:
    """Return JSON of what a picture has marked.

    It has ``lines``, and ``points``: of each the index of its line, size, median, the ends of its
    interval, rounds, and how far from the left and from the top it is.
    """
    lines: list[dict[str, Any]] = []
    found = []
    for line, values in points:
        if line not in lines:
            lines.append(line)
        found.append([lines.index(line), *values])
    rows = ",\n".join(json.dumps(point, separators=(",", ":")) for point in found)
    names = ",\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    return f'{{"lines": [\n{names}\n],\n"points": [\n{rows}\n]}}\n'


def in_words(figure: Figure, last_first: bool) -> str:
    """Return a sentence for each line, as they are drawn or backwards, and gains behind rates."""
    said: dict[tuple[bool, str], dict[str, None]] = {}
    for line, what, _ in _noted(figure, _POINT, _WORDS):
        if isinstance(line, str):
            name, words = (False, line), what
        else:
            name = line["unit"] == TIMES, _heading(line)
            words = f"{where_on_x(line, what[0])} {_value(line, *what[1:4])}"
        said.setdefault(name, {})[words] = None
    names = list(reversed(said)) if last_first else list(said)
    names.sort(key=lambda name: name[0])
    return " ".join(f"{name[1]}: {', '.join(said[name])}." for name in names)


def _heading(line: Mapping[str, Any]) -> str:
    unit = line["unit"]
    return str(line["name"] if unit in (_SPEED, TIMES) else f"{line['name']}, {unit}")


def where_on_x(line: Mapping[str, Any], x: float) -> str:
    """Say what a point is at: the size of a heap, or of a packet, or a rate."""
    if line["over"] == RATE:
        return f"at {number(x)} MB/s"
    return bytes_text(x) if line["over"] == PACKET else size(x)


def _value(line: Mapping[str, Any], median: float, low: float, high: float) -> str:
    if line["unit"] == TIMES:
        return f"{times(median)} ({low:.2f} to {high:.2f})"
    return f"{median:.0f}" if line["unit"] == _SPEED else number(median)


# ---- Bytes ----

#: A figure, its title, and its description in words and numbers.
Drawn: TypeAlias = tuple[Figure, str, str]
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


def require() -> Any:
    """Return matplotlib: find out whether pictures can be drawn before there is any to draw."""
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError:
        raise MissingError("drawing needs matplotlib: pip install 'spead-tutorial[lab]'") from None
    return matplotlib


def save(path: Path, draw: Draw, recording: Recording) -> list[Path]:
    """Draw a picture to `path`, and the same in the colours of a dark page next to it."""
    return _both(path, render(draw, recording, LIGHT))


def save_for_site(path: Path, draw: Draw, recording: Recording) -> list[Path]:
    """Draw a picture, light and dark, and note where its points are."""
    with _drawn(draw, recording, LIGHT) as drawn:
        written, marked = _both(path, _svg(*drawn)), points_of(drawn[0])
    if marked:
        written.append(path.with_suffix(".json"))
        written[-1].write_text(as_json(marked))
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
    matplotlib = require()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_style(theme))
        yield draw(recording, theme)


def _svg(figure: Figure, title: str, description: str) -> bytes:
    out = io.StringIO()
    # The stream's newlines and no date: nothing that differs from one time to the next.
    figure.savefig(out, format="svg", metadata={"Date": None})
    words = description.replace("\N{THIN SPACE}", "")  # it is for the eye
    return shown_lines(_described(out.getvalue(), title, words)).encode()


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

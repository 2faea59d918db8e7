# SPDX-License-Identifier: BSD-3-Clause
"""Colours, light and dark, and how lines are told apart without them."""

import dataclasses
import re
from collections.abc import Iterable
from typing import Any

from spead_tutorial.measure.records import Series

WIDTH = 6.4  #: Inches: how wide a picture is.

#: What a picture calls the languages.
NAMES = {"python": "Python", "c": "C", "cpp": "C++"}
HATCHES = {"python": "", "c": "////", "cpp": "\\\\\\\\", "spead2": "....", "limit": ""}
MARKERS = {"python": "o", "c": "D", "cpp": "v", "spead2": "^", "limit": "s"}
#: Matplotlib's dashes: the first point of each, and its pattern.
_DASHES = {
    "python": (0.0, ()),
    "c": (0.0, (7.0, 1.6)),
    "cpp": (0.0, (3.0, 1.4)),
    "spead2": (0.0, (5.0, 1.5, 1.0, 1.5)),
    "limit": (0.0, (1.0, 1.2)),
}
#: Those of further lines of the same colour.
_MORE_DASHES = (
    (0.0, (2.4, 1.6)),
    (0.0, (1.0, 2.4)),
    (0.0, (8.0, 2.0, 1.0, 2.0)),
    (0.0, (4.0, 4.0)),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Theme:
    """Colours of a picture; those of data also differ in lightness."""

    name: str  # `"light"` or `"dark"`
    background: str  # colours of what is not data
    text: str
    faint: str
    grid: str
    # colours of data: `"python"`, `"c"`, `"cpp"`, `"spead2"`, `"limit"`, and of the times of a
    # heap: `"preparing"`, `"sending"`
    colours: dict[str, str]

    def pale(self, role: str) -> tuple[float, float, float]:
        """Return one of the colours such that it is pale, but lets nothing through."""
        from matplotlib.colors import to_rgb

        pairs = zip(to_rgb(self.colours[role]), to_rgb(self.background), strict=True)
        red, green, blue = (0.35 * front + 0.65 * back for front, back in pairs)
        return red, green, blue


# Chosen so that any two lines differ for people with each kind of colour blindness, and that
# each differs from the background: the tests say by how much.
#: Colours on white.
LIGHT = Theme(
    "light",
    "#ffffff",
    "#1a1a1a",
    "#5c5c5c",
    "#dcdcdc",
    {
        "python": "#0067a5",
        "c": "#cc5500",
        "cpp": "#cc7788",
        "spead2": "#a020f0",
        "limit": "#3a3a3a",
        "preparing": "#00805a",
        "sending": "#b0408a",
    },
)
#: Colours on a dark page.
DARK = Theme(
    "dark",
    "#14181d",
    "#eceff2",
    "#a8b0b8",
    "#343b43",
    {
        "python": "#62b6ee",
        "c": "#f0b64d",
        "cpp": "#cc2255",
        "spead2": "#a066ff",
        "limit": "#d8dce0",
        "preparing": "#3fc492",
        "sending": "#e58ac8",
    },
)


def darkened(svg: bytes) -> bytes:
    """Return a light picture in the colours of a dark page."""
    from matplotlib.colors import to_hex

    def colours(theme: Theme) -> list[str]:
        plain = [theme.background, theme.text, theme.faint, theme.grid, *theme.colours.values()]
        return plain + [to_hex(theme.pale(role)) for role in theme.colours]

    other = dict(zip(colours(LIGHT), colours(DARK), strict=True))
    return re.sub(r"#[0-9a-f]{6}\b", lambda found: other[found[0]], svg.decode()).encode()


@dataclasses.dataclass(frozen=True, slots=True)
class LineStyle:
    """How a line is drawn."""

    colour: str  # of all of it
    marker: str  # at its medians, as matplotlib names it
    dashes: tuple[float, tuple[float, ...]]  # matplotlib's line style
    filled: bool  # whether markers are

    def line(self, theme: Theme) -> dict[str, Any]:
        """Return what matplotlib is to be told of the line and its markers."""
        return {
            "color": self.colour,
            "linestyle": self.dashes,
            "linewidth": 2.0,
            "marker": self.marker,
            "markersize": 6.0,
            "markeredgewidth": 1.3,
            "markeredgecolor": self.colour,
            "markerfacecolor": self.colour if self.filled else theme.background,
        }


def line_styles(series: Iterable[Series], theme: Theme) -> dict[Series, LineStyle]:
    """Choose how lines are drawn: further ones of a colour have hollow markers, other dashes."""
    styles: dict[Series, LineStyle] = {}
    for line in series:
        role = role_of(line)
        colour = theme.colours[role]
        before = sum(style.colour == colour for style in styles.values())
        dashes = _MORE_DASHES[(before - 1) % len(_MORE_DASHES)] if before else _DASHES[role]
        styles[line] = LineStyle(colour, MARKERS[role], dashes, filled=not before)
    return styles


def role_of(series: Series) -> str:
    """Return what gives a line its colour."""
    roles = {"spead2": "spead2", "spead2-source": "spead2", "ceiling": "limit"}
    return roles.get(series.implementation, series.language)

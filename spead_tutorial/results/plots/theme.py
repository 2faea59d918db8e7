# SPDX-License-Identifier: BSD-3-Clause
"""Colours, light and dark, and how lines are told apart without them."""

import dataclasses
from typing import Any

from spead_tutorial.measure.records import Series

WIDTH = 7.0  #: Inches: how wide a picture is.
#: Points: of letters, and of those of what is not the most important.
SIZE, FAINT = 11, 10

MARKERS = {"python": "o", "c": "D", "cpp": "v", "spead2": "^", "limit": "s"}


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

    def filled(self, role: str, pale: bool) -> Any:
        """Return a colour as it is, or pale."""
        return self.pale(role) if pale else self.colours[role]


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


def role_of(series: Series) -> str:
    """Return what gives a line its colour."""
    roles = {"spead2": "spead2", "spead2-source": "spead2", "ceiling": "limit"}
    return roles.get(series.implementation, series.language)

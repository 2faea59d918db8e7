# SPDX-License-Identifier: BSD-3-Clause
"""An array: for each sender and receiver, the share of the packets that is missing."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

from spead_tutorial.measure.records import RecordError, Recording
from spead_tutorial.results.account import Account
from spead_tutorial.results.plots.facts import caption
from spead_tutorial.results.plots.picture import Axes, Panel, Picture, Said
from spead_tutorial.results.plots.theme import FAINT, Theme
from spead_tutorial.results.units import percent

_CELL, _MOST = 0.42, 6.0  # inches
_MIDDLE = 0.18  # as light as that, black and white differ from it alike
_MOST_NUMBERS = 12  # rows or columns that have room for numbers

Shares = Sequence[Sequence[float | None]]


@dataclasses.dataclass(frozen=True, slots=True)
class Matrix(Panel):
    """A panel with a row for each sender, a column for each receiver."""

    shares: Shares  # None is what nobody knows

    @property
    def sides(self) -> tuple[float, float]:
        return 1.0, 0.5

    @property
    def height(self) -> float:
        return min(_CELL * len(self.shares), _MOST)

    def said(self) -> Iterator[Said]:
        for i, row in enumerate(self.shares):
            for j, one in enumerate(row):
                if one != 0:
                    yield f"sender {i}", f"receiver {j} {_text(one)}"

    def draw(self, axis: Axes, theme: Theme) -> None:
        from matplotlib.colors import LinearSegmentedColormap as Colours

        n_senders, n_receivers = len(self.shares), len(self.shares[0])
        colours = Colours.from_list("missing", [theme.grid, theme.colours["c"]])
        worst = max([one for row in self.shares for one in row if one is not None], default=0.0)
        values = [[float("nan") if one is None else one for one in row] for row in self.shares]
        axis.pcolormesh(
            values, cmap=colours, vmin=0,
            vmax=worst or 1, edgecolors=theme.background, linewidth=1.5 if n_senders < 40 else 0,
        )  # fmt: skip
        axis.set_xticks(*_ticks(n_receivers))
        axis.set_yticks(*_ticks(n_senders))
        axis.set_xlabel("receiver")
        axis.set_ylabel("sender")
        axis.invert_yaxis()
        axis.tick_params(length=0)
        if max(n_senders, n_receivers) > _MOST_NUMBERS:
            return
        ink = sorted((theme.text, theme.background), key=_light, reverse=True)
        for i, row in enumerate(self.shares):
            for j, one in enumerate(row):
                filled = theme.background if one is None else colours(one / (worst or 1))
                colour = ink[_light(filled) > _MIDDLE]
                style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": FAINT}
                axis.text(j + 0.5, i + 0.5, _text(one), color=colour, **style)


def matrix(recording: Recording) -> Picture:
    """Return the picture of an array."""
    account = Account.of(recording)
    if not account.pairs:
        raise RecordError("there is nothing to draw: nothing was sent")
    what = "Squares: the share of a sender's packets that a receiver is missing."
    title, panel = account.verdict.removesuffix("."), Matrix("", account.shares)
    return Picture(title, account.most, [[panel]], what, caption(recording, account.about))


def _light(colour: Any) -> float:
    """Return how light a colour is, about as WCAG computes it."""
    from matplotlib.colors import to_rgb

    red, green, blue = (math.pow(part, 2.2) for part in to_rgb(colour))
    return 0.21 * red + 0.72 * green + 0.07 * blue


def _text(share: float | None) -> str:
    return "?" if share is None else percent(share)


def _ticks(n: int) -> tuple[list[float], list[str]]:
    numbers = range(0, n, -(-n // _MOST_NUMBERS))
    return [i + 0.5 for i in numbers], [str(i) for i in numbers]

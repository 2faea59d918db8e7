# SPDX-License-Identifier: BSD-3-Clause
"""An array: for each sender and receiver, the share of the packets that is missing."""

import dataclasses
from collections.abc import Iterator, Sequence

from spead_tutorial.results.plots.picture import Axes, Panel, Picture, Said
from spead_tutorial.results.plots.theme import FAINT, Theme
from spead_tutorial.results.units import percent

_CELL, _MOST = 0.42, 6.0  # inches
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
        from matplotlib.colors import LinearSegmentedColormap

        n_senders, n_receivers = len(self.shares), len(self.shares[0])
        colours = [theme.grid, theme.colours["c"]]
        worst = max([one for row in self.shares for one in row if one is not None], default=0.0)
        values = [[float("nan") if one is None else one for one in row] for row in self.shares]
        axis.pcolormesh(
            values, cmap=LinearSegmentedColormap.from_list("missing", colours), vmin=0,
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
        for i, row in enumerate(self.shares):
            for j, one in enumerate(row):
                axis.text(j + 0.5, i + 0.5, _text(one), ha="center", va="center", fontsize=FAINT)


def matrix(shares: Shares, title: str, caption: str) -> Picture:
    """Return the picture of an array."""
    what = "Squares: the share of a sender's packets that a receiver is missing."
    return Picture(title, "", [[Matrix("", shares)]], what, caption)


def _text(share: float | None) -> str:
    return "?" if share is None else percent(share)


def _ticks(n: int) -> tuple[list[float], list[str]]:
    numbers = range(0, n, -(-n // _MOST_NUMBERS))
    return [i + 0.5 for i in numbers], [str(i) for i in numbers]

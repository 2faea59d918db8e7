# SPDX-License-Identifier: BSD-3-Clause
"""The lines of a picture over sizes: what a recording has of them, in panels and in words."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping

from spead_tutorial.catalogue import MEASURED
from spead_tutorial.plots import curves
from spead_tutorial.plots.bare import BEST, bare_name, best_bare
from spead_tutorial.plots.points import Point
from spead_tutorial.plots.points import gains as gains_of
from spead_tutorial.plots.spots import TIMES, Line
from spead_tutorial.plots.theme import Look, Theme, looks, role_of
from spead_tutorial.records import Series
from spead_tutorial.stats import Estimate

__all__ = ["Lines"]

#: What was before, and what it became.
Pair = tuple[Series, Series]


@dataclasses.dataclass(frozen=True, slots=True)
class Lines:
    """What is drawn of a recording."""

    # the points of each series, those that are not drawn too
    points: Mapping[Series, Mapping[int, Point]]
    labels: Mapping[Series, str]  # the series that are drawn, and what the legend calls them
    # the gain at each size, by what was before and what it became; empty where none is known
    gains: Mapping[Pair, Mapping[int, Estimate | None]]
    # the best bare loop at each size, where it is another than the one that is drawn
    best: Mapping[int, tuple[Series, Point]]

    @classmethod
    def of(
        cls,
        found: Mapping[Series, Mapping[int, Point]],
        labels: Mapping[Series, str],
        pairs: Iterable[Pair],
        bare: Series | None,
    ) -> "Lines":
        """Work out what follows from what a recording has."""
        shown = {series: label for series, label in labels.items() if series in found}
        gains = {
            (before, after): gains_of(found[before], found[after])
            for before, after in pairs
            if before in shown and after in shown
        }
        best: dict[int, tuple[Series, Point]] = {}
        if bare in shown:
            sizes = {x for series in shown for x in found[series]}
            best = {x: one for x, one in best_bare(found, bare).items() if x in sizes}
        other = any(series != bare for series, _ in best.values())
        known = any(gains.values())
        return cls(found, shown, gains if known else {}, best if other else {})

    @property
    def sizes(self) -> list[int]:
        """All sizes that something is drawn of."""
        return sorted({x for series in self.labels for x in self.points[series]})

    def columns(self) -> dict[str, list[Series]]:
        """Return the lines of each panel: one for a language that is compared, or one for all.

        What is in no comparison is beside each of them.
        """
        gained = {after.language for _, after in self.gains}
        compared = {series for pair in self.gains for series in pair}
        return {
            language: [
                one for one in self.labels if one.language == language or one not in compared
            ]
            for language in MEASURED
            if language in gained
        } or {"": list(self.labels)}

    def looks(self, theme: Theme) -> dict[Series, Look]:
        """Return how each line is drawn."""
        return dict(zip(self.labels, looks(list(self.labels), theme), strict=True))

    def marked(self, series: Series, before: Series | None = None) -> Line:
        """Return what a page is told of a line, or of the gain over another."""
        role, name = role_of(series), self.labels[series]
        if before is None:
            return Line(name, role, key=next(iter(self.points[series].values())).key)
        return Line(f"{name}, gain over {self.labels[before]}", role, unit=TIMES)

    def in_words(self, write: Callable[[int], str]) -> Iterable[str]:
        """Yield a sentence for each line and each gain, with all their medians."""
        for series, label in self.labels.items():
            rates = [
                f"{write(x)} {curves.in_words(point)}" for x, point in self.points[series].items()
            ]
            yield f"{label}: {', '.join(rates)}."
        if self.best:
            which = [
                f"{write(x)} {curves.in_words(point)} ({bare_name(series.variant)})"
                for x, (series, point) in self.best.items()
            ]
            yield f"{BEST}: {'; '.join(which)}."
        for (before, after), gains in self.gains.items():
            words = curves.gains_in_words(gains, write) or "not known"
            yield f"Gain of {self.labels[after]} over {self.labels[before]}: {words}."

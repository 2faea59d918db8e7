# SPDX-License-Identifier: BSD-3-Clause
"""A table of the best of some programs beside the best of others, for each size of heaps.

    ```{best-of} targets
    :ours: ours c
    :theirs: spead2-source
    ```

The argument names a committed record. An option says which of its samples compete: words as the
roles of ``measured.py`` take them. A variant in quotes is what several streams, or bare loops, are
told apart by; ``any`` takes all of them. The best at a size is what has the highest median rate
there. Both are compared within rounds.
"""

import dataclasses
import shlex
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from measured import Choice, UnknownError, recording
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from spead_tutorial import stats, units
from spead_tutorial.catalogue import STEPS, find_chapter
from spead_tutorial.records import Sample
from spead_tutorial.units import number, thousands

_HEADINGS = ("Heap", "ours", "MB/s", "beside it", "MB/s", "times as fast", "CPU time")
_WIDTHS = (3, 5, 3, 5, 3, 7, 4)


@dataclasses.dataclass(frozen=True, slots=True)
class Best:
    """What won at a size: its name, and what it took and cost in each round."""

    name: str
    rates: dict[int, float]
    costs: dict[int, float]  # CPU seconds per byte


def best(record: str, words: str, heap_size: int) -> Best:
    """Return the fastest of the series that the words choose."""
    wanted = Choice(record).changed(shlex.split(words))
    series: dict[str, list[Sample]] = {}
    for sample in recording(record).samples:
        fits = (
            not sample.warm_up
            and sample.rate is not None
            and sample.heap_size == heap_size
            and sample.implementation == wanted.implementation
            and wanted.language in (None, sample.language)
            and wanted.program in (None, sample.program)
            and wanted.packet_size in (None, sample.packet_size)
            and wanted.variant in (sample.variant, "any")
        )
        if fits:
            name = sample.variant if sample.implementation == "ceiling" else sample.program
            series.setdefault(name, []).append(sample)
    if not series:
        raise UnknownError(f"{record} has no sample of {words} with heaps of {heap_size} bytes")

    def median(name: str) -> float:
        return stats.median([sample.rate or 0 for sample in series[name]]).median

    name = max(series, key=median)
    return Best(
        name,
        {sample.round: sample.rate or 0 for sample in series[name]},
        {sample.round: _cost(sample) for sample in series[name]},
    )


def _cost(sample: Sample) -> float:
    return ((sample.cpu_user_ns or 0) + (sample.cpu_system_ns or 0)) / sample.payload_bytes


def rows(record: str, ours: str, theirs: str) -> list[tuple[str, ...]]:
    """Return the table: a row for each size that the record has."""
    sizes = sorted({sample.heap_size for sample in recording(record).samples})
    return [_row(size, best(record, ours, size), best(record, theirs, size)) for size in sizes]


def _row(size: int, ours: Best, theirs: Best) -> tuple[str, ...]:
    gained, cost = stats.gain(theirs.rates, ours.rates), stats.gain(theirs.costs, ours.costs)
    return (
        units.size(size),
        _named(ours),
        _rate(ours),
        _named(theirs),
        _rate(theirs),
        f"{gained.median:.2f} [{gained.low:.2f}, {gained.high:.2f}]",
        f"{number(cost.median)} times",
    )


def _named(of: Best) -> str:
    """Return what a reader calls it: a chapter, or what is special of a bare loop."""
    if not of.name.startswith("tut_"):
        return of.name
    chapter = find_chapter(of.name)
    step = f", {chapter.title.lower()}" if chapter in STEPS else ""
    return f"chapter {chapter.number}{step}"


def _rate(of: Best) -> str:
    return thousands(float(f"{stats.median(list(of.rates.values())).median / 1e6:.3g}"))


class BestOf(SphinxDirective):
    """The directive."""

    required_arguments = 1
    option_spec: ClassVar = {
        "ours": directives.unchanged_required,
        "theirs": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        record = self.arguments[0]
        try:
            table = rows(record, self.options["ours"], self.options["theirs"])
        except UnknownError as error:
            raise self.error(str(error)) from None
        head = nodes.thead("", _cells(_HEADINGS))
        columns = [nodes.colspec(colwidth=width) for width in _WIDTHS]
        body = nodes.tbody("", *map(_cells, table))
        return [nodes.table("", nodes.tgroup("", *columns, head, body, cols=len(columns)))]


def _cells(texts: tuple[str, ...]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph(text=text)) for text in texts))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("best-of", BestOf)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

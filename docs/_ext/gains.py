# SPDX-License-Identifier: BSD-3-Clause
"""Tables of gains that are made from the catalogue and the records.

    ```{ladder-gains}
    :last: 11
    ```

What each chapter gained over the one before it, with its interval: a row for each step, a column
for each size of heaps in each language. It ends with a chapter, where one is named.

    ```{goals} targets
    the best in C, beside spead2 | 1.3 | ours c | spead2-source
    ```

For each size of heaps that a record has, how many times as fast the best of some programs is as
the best of others, or, after ``cpu``, what multiple of their CPU time it takes. Each line has what
it is, what was asked for, and both sides in the words of ``best-of``. Where one of them was not
measured at a size, there is a dash.
"""

from itertools import pairwise
from typing import ClassVar

from best_of import best
from docutils import nodes
from docutils.parsers.rst import directives
from listings import ROOT
from measured import UnknownError, gain_estimate, recording
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from spead_tutorial import stats, units
from spead_tutorial.catalogue import CHAPTERS, LADDER, LANGUAGES, STEPS, find_chapter
from spead_tutorial.plots.theme import NAMES
from spead_tutorial.records import OURS

_RECORD = "ladder"
_NOTHING = "-"  # in a cell

#: The sizes of heaps at which programs are chained, largest first.
SIZES = tuple(sorted({rung.heap_size for rung in LADDER}, reverse=True))


def columns() -> list[tuple[int, str]]:
    """Return the sizes of heaps, each in all languages that were measured."""
    there = {
        sample.language for sample in recording(_RECORD).samples if sample.implementation == OURS
    }
    return [(size, language) for size in SIZES for language in LANGUAGES if language in there]


def steps(last: int) -> list[tuple[str, str]]:
    """Return each program of the ladder with the one before it."""
    pairs = {pair: None for size in SIZES for pair in _pairs(size)}
    return [pair for pair in pairs if find_chapter(pair[1]).number <= last]


def _pairs(size: int) -> list[tuple[str, str]]:
    return list(pairwise(rung.program for rung in LADDER if rung.heap_size == size))


def gain_cell(pair: tuple[str, str], heap_size: int, language: str) -> str:
    """Return a gain as a role, and its interval; a dash where it is not in the ladder."""
    if pair not in _pairs(heap_size):
        return _NOTHING
    size = units.size(heap_size).replace(" ", "")
    words = f"{_RECORD} {language} {size} {' -> '.join(pair)}"
    estimate = gain_estimate(words)
    ends = f"[{estimate.low:.3g},\N{NO-BREAK SPACE}{estimate.high:.3g}]"
    return f"{{gain}}`{words}` {ends}" + " (range)" * (estimate.n < stats.FEWEST)


def gain_rows(last: int) -> list[tuple[str, ...]]:
    """Return the rows of the table of gains."""
    rows = []
    for pair in steps(last):
        chapter = find_chapter(pair[1])
        page = next((ROOT / "docs" / "tutorial").glob(f"{chapter.number}-*.md")).name
        words = chapter.change if chapter in STEPS else chapter.title
        rows.append(
            (
                f"[{chapter.number}](/tutorial/{page}): {words[0].lower()}{words[1:]}",
                *(gain_cell(pair, size, language) for size, language in columns()),
            )
        )
    return rows


def goal_row(record: str, line: str, sizes: list[int]) -> tuple[str, ...]:
    """Return one row of the table of goals."""
    what, asked, ours, theirs = (part.strip() for part in line.split("|"))
    value = "costs" if ours.startswith("cpu ") else "rates"
    words = theirs, ours.removeprefix("cpu ")
    cells = [_goal_cell(record, words, size, value) for size in sizes]
    if set(cells) == {_NOTHING}:
        raise UnknownError(f"{record} has no sample of {ours!r} and of {theirs!r} at one size")
    return what, asked, *cells


def _goal_cell(record: str, words: tuple[str, str], size: int, value: str) -> str:
    try:
        before, after = (best(record, side, size) for side in words)
    except UnknownError:
        return _NOTHING
    return f"{stats.gain(getattr(before, value), getattr(after, value)).median:.2f}"


def markdown(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table as one writes it."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows))


class LadderGains(SphinxDirective):
    """What each chapter gained over the one before."""

    option_spec: ClassVar = {"last": directives.positive_int}

    def run(self) -> list[nodes.Node]:
        try:
            rows = gain_rows(self.options.get("last", max(chapter.number for chapter in CHAPTERS)))
        except UnknownError as error:
            raise self.error(str(error)) from None
        head = [f"{units.size(size)}, {NAMES[language]}" for size, language in columns()]
        return self.parse_text_to_nodes(markdown(("Chapter", *head), rows))


class Goals(SphinxDirective):
    """What was to be reached, and what is."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        record = self.arguments[0]
        try:
            sizes = sorted({sample.heap_size for sample in recording(record).samples})
            rows = [goal_row(record, line, sizes) for line in self.content]
        except UnknownError as error:
            raise self.error(str(error)) from None
        head = ("What", "Asked", *map(units.size, sizes))
        return self.parse_text_to_nodes(markdown(head, rows))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("ladder-gains", LadderGains)
    app.add_directive("goals", Goals)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

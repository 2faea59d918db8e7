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

    ```{beside} cpp
    Chapter 13 | tut_13_send_hot c -> cpp
    ```

For each size of heaps that a record has, a row with what the gain role says of it and of the words
behind the bar, and the interval: a column for each line.
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
    return _with_interval(f"{_RECORD} {language} {size} {' -> '.join(pair)}")


def _with_interval(words: str) -> str:
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


def beside_row(record: str, size: int, columns: list[str]) -> tuple[str, ...]:
    """Return one row of a table of two things beside each other; a dash where one is missing."""
    row = [units.size(size)]
    for words in columns:
        try:
            row.append(_with_interval(f"{record} {units.size(size).replace(' ', '')} {words}"))
        except UnknownError:
            row.append(_NOTHING)
    if set(row[1:]) == {_NOTHING}:
        return ()
    return tuple(row)


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


class Beside(SphinxDirective):
    """How two things compare at each size of heaps."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        record = self.arguments[0]
        names, columns = zip(*(line.split(" | ") for line in self.content), strict=True)
        try:
            sizes = sorted({sample.heap_size for sample in recording(record).samples})
            rows = [beside_row(record, size, list(columns)) for size in sizes]
        except UnknownError as error:
            raise self.error(str(error)) from None
        if not any(rows):
            raise self.error(f"{record} has no sample of what {', '.join(columns)} say")
        return self.parse_text_to_nodes(markdown(("Heaps of", *names), [*filter(None, rows)]))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("ladder-gains", LadderGains)
    app.add_directive("goals", Goals)
    app.add_directive("beside", Beside)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

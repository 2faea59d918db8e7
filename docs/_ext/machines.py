# SPDX-License-Identifier: BSD-3-Clause
"""The ladder on many machines: a table of their records, and the picture of each.

    ```{machines}
    ```

is a table for each language, with a row for each record that `bench.contributed` finds, in the
order of their names: `machines.js` sorts it by the column that the reader chooses. And

    ```{machine-ladders}
    ```

has a section for each of them with its picture. Those of other machines than the reference machine
are drawn as the site is built: nobody has to draw, or to keep, what a record says already.

The setting ``machines_folder`` names another folder of records, for tests.
"""

import dataclasses
import functools
import html
import os
from pathlib import Path

from docutils import nodes
from measured import pressable
from pictures import drawn, shown
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from bench import contributed
from spead_tutorial import plots, stats, units
from spead_tutorial.catalogue import LADDER, LANGUAGES, Chapter, find_chapter
from spead_tutorial.plots.theme import NAMES
from spead_tutorial.records import OURS, Recording, Series, read
from spead_tutorial.stats import Estimate

#: Where pictures are drawn: in the folder of what is made for the site, and not kept.
_DRAWN = "notebooks/machines"
#: The last chapter of which each program sends in one thread, and the bare loop that does so, too:
#: how many streams chapter 14 has depends on the machine.
_ONE_THREAD, _BARE = find_chapter("13"), Series("ceiling", "c", "ceiling", "one thread")
_SIZES = tuple(sorted({rung.heap_size for rung in LADDER}, reverse=True))
_NOTHING = "-"


@dataclasses.dataclass(frozen=True, slots=True)
class Cell:
    """What a table has in a place."""

    text: str  # what is read
    value: float | None = None  # what it is sorted by, where it is a number
    detail: str = ""  # how sure it is


@functools.cache
def _recording(path: Path) -> Recording:
    return read(path)


def ends(heap_size: int) -> tuple[Chapter, Chapter]:
    """Return the first program whose gain is chained at a size of heaps, and the last."""
    programs = [find_chapter(one.program) for one in LADDER if one.heap_size == heap_size]
    chained = [one for one in programs if one.takes_destination]
    first = min(one.number for one in chained)
    # Of the chapter that is the first, the step from which the next chapter goes on.
    return [one for one in chained if one.number == first][-1], chained[-1]


def languages(recordings: list[Recording]) -> list[str]:
    """Return the languages that any of them has."""
    there = {s.language for one in recordings for s in one.samples if s.implementation == OURS}
    return [language for language in LANGUAGES if language in there]


def heads() -> list[tuple[str, list[str]]]:
    """Return the heads of the columns, and what stands above several of them."""
    above = [("", ["Processor", "Cores"])]
    for heap_size in _SIZES:
        first, last = ends(heap_size)
        words = [
            f"Chapter {first.number}, MB/s",
            f"Chapter {last.number}, MB/s",
            "Gain",
            f"Chapter {_ONE_THREAD.number} of bare loop",
        ]
        above.append((f"Heaps of {units.size(heap_size)}", words))
    machine = ["Virtual machine, container", "Kernel", "Device", "Date", "Rounds", "Revision"]
    return [*above, ("", machine)]


def cells(recording: Recording, language: str) -> list[Cell]:
    """Return what a record has for all columns but the first."""
    header = recording.header
    cores = header.machine["usable_cores"]
    row = [Cell(str(cores), cores)]
    for heap_size in _SIZES:
        first, last, one_thread = (
            _rates(recording, Series(OURS, language, chapter.name), heap_size)
            for chapter in (*ends(heap_size), _ONE_THREAD)
        )
        bare = _rates(recording, _BARE, heap_size)
        row += [_rate(first), _rate(last), _factor(first, last), _share(bare, one_thread)]
    return [
        *row,
        Cell(str(header.machine["virtualisation"])),
        Cell(str(header.machine["kernel"])),
        Cell(str(header.lab["kind"])),
        Cell(header.time[:10]),
        Cell(str(recording.rounds), recording.rounds),
        Cell(str(header.revision)),
    ]


def _rates(recording: Recording, series: Series, heap_size: int) -> dict[int, float]:
    """Return the rate in each round that counts."""
    return {
        one.round: one.rate
        for one in recording.samples
        if (one.series, one.heap_size, one.warm_up) == (series, heap_size, False)
        and one.rate is not None
    }


def _rate(rates: dict[int, float]) -> Cell:
    if not rates:
        return Cell(_NOTHING)
    estimate = stats.median([rate / 1e6 for rate in rates.values()])
    low, high = units.number(estimate.low), units.number(estimate.high)
    return _cell(units.number(estimate.median), estimate, f"{low} to {high} MB/s")


def _factor(before: dict[int, float], after: dict[int, float]) -> Cell:
    if not before.keys() & after.keys():
        return Cell(_NOTHING)
    estimate = stats.gain(before, after)
    low, high = units.times(estimate.low), units.times(estimate.high)
    return _cell(units.times(estimate.median), estimate, f"{low} to {high}")


def _share(bare: dict[int, float], rates: dict[int, float]) -> Cell:
    if not bare.keys() & rates.keys():
        return Cell(_NOTHING)
    estimate = stats.gain(bare, rates)
    low, high = units.percent(estimate.low), units.percent(estimate.high)
    return _cell(units.percent(estimate.median), estimate, f"{low} to {high}")


def _cell(text: str, estimate: Estimate, interval: str) -> Cell:
    detail = f"median of {estimate.n} rounds, {estimate.spread} {interval}"
    return Cell(text, estimate.median, detail)


def table(env: BuildEnvironment, found: dict[str, Recording], language: str) -> str:
    """Return the table of a language as HTML."""
    above = "".join(
        f'<th scope="colgroup" colspan="{len(words)}">{head}</th>'
        if head
        else f'<td colspan="{len(words)}"></td>'
        for head, words in heads()
    )
    columns = "".join(f'<th scope="col">{word}</th>' for _, words in heads() for word in words)
    body = "".join(_row(env, name, one, language) for name, one in found.items())
    return (
        '<div class="pst-scrollable-table-container"><table class="table machines">'
        f"<caption>Programs in {NAMES[language]}</caption>"
        f"<thead><tr>{above}</tr><tr>{columns}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(env: BuildEnvironment, name: str, recording: Recording, language: str) -> str:
    cpu = html.escape(str(recording.header.machine["cpu"]))
    which = " (reference)" * (name == "reference")
    written = [f'<th scope="row"><a href="#machine-{name}">{cpu}</a>{which}</th>']
    for cell in cells(recording, language):
        value = "" if cell.value is None else f' data-value="{cell.value:.6g}" class="number"'
        before, after = pressable(env, cell.detail) if cell.detail else ("", "")
        written.append(f"<td{value}>{before}{html.escape(cell.text)}{after}</td>")
    return f"<tr>{''.join(written)}</tr>"


class _OfAll(SphinxDirective):
    def recordings(self) -> dict[str, tuple[Path, Recording]]:
        folder = Path(self.config.machines_folder or contributed.MACHINES)
        paths = contributed.records(folder)
        for path in paths.values():
            self.env.note_dependency(str(path))
        return {name: (path, _recording(path)) for name, path in paths.items()}


class Machines(_OfAll):
    """A table of all records, for each language."""

    def run(self) -> list[nodes.Node]:
        found = {name: one for name, (_, one) in self.recordings().items()}
        lines = ["::::{tab-set}", ":sync-group: code", ""]
        for language in languages(list(found.values())):
            lines += [f":::{{tab-item}} {NAMES[language]}", f":sync: {language}", ""]
            lines += ["```{raw} html", table(self.env, found, language), "```", ":::", ""]
        # What is to be brought to life, and which script does it: see playable.py.
        script = nodes.raw("", "", format="html", playable="machines")
        return [*self.parse_text_to_nodes("\n".join([*lines, "::::"])), script]


class MachineLadders(_OfAll):
    """The ladder of each machine."""

    def run(self) -> list[nodes.Node]:
        return [self._section(name, *one) for name, one in self.recordings().items()]

    def _section(self, name: str, path: Path, recording: Recording) -> nodes.Node:
        machine = recording.header.machine
        cores = machine["usable_cores"]
        words = f"{machine['cpu']}, {cores} core{'s' * (cores != 1)}"
        section = nodes.section(ids=[f"machine-{name}"])
        section += nodes.title(text=words)
        here = os.path.relpath(path, self.env.srcdir)
        caption = f"Drawn from {{download}}`{path.name} <{here}>`"
        if path == contributed.LADDER:
            caption += ", measured on [the reference machine](#the-reference-machine)."
            section += shown(self, drawn(self.env) / "tut-ladder.svg", caption)
            return section
        light = Path(self.env.srcdir, _DRAWN, name, "ladder.svg")
        light.parent.mkdir(parents=True, exist_ok=True)
        plots.save_for_site(light, plots.ladder, recording)
        section += shown(self, light, f"{caption}.")
        return section


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_config_value("machines_folder", "", "env", str)
    app.add_directive("machines", Machines)
    app.add_directive("machine-ladders", MachineLadders)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

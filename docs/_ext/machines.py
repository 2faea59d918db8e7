# SPDX-License-Identifier: BSD-3-Clause
"""The ladder on many machines: a table of their records, and the picture of each.

    {made-table} machines LANGUAGE      a row for each record that `bench.contributed` finds
    {machine-ladders}                   a section for each, with its picture

The pictures are drawn as the site is built: nobody has to draw, or to keep, what a record says.
"""

import html
import os
from pathlib import Path

from docutils import nodes
from measured import SAYS, machine_facts, recording
from measured_tables import SIZES, known, word
from pictures import shown
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from tables import KINDS, Table

from bench import contributed
from spead_tutorial.chapters.catalogue import LADDER, Chapter, find_chapter
from spead_tutorial.results import plots, units

#: Where pictures are drawn: in the folder of what is made for the site, and not kept.
_DRAWN = "notebooks/machines"
#: The last chapter of which each program sends in one thread, and the bare loop that does so, too:
#: how many streams chapter 14 has depends on the machine.
_ONE_THREAD, _BARE = find_chapter("13"), '"one thread"'
#: The record of each machine by a name for it.
_RECORDS = contributed.records()


def ends(heap_size: int) -> tuple[Chapter, Chapter]:
    """Return the first program whose gain is chained at a size of heaps, and the last."""
    programs = [find_chapter(one.program) for one in LADDER if one.heap_size == heap_size]
    chained = [one for one in programs if one.takes_destination]
    first = min(one.number for one in chained)
    # Of the chapter that is the first, the step from which the next chapter goes on.
    return [one for one in chained if one.number == first][-1], chained[-1]


def machines(language: str) -> Table:
    """Return a row for each machine, with what it says of programs in a language."""
    heads = ["Processor", "Cores", "Caches of a core"]
    for heap_size in SIZES:
        first, last = ends(heap_size)
        at = f"heaps of {units.size(heap_size)}"
        heads += [f"Chapter {one.number}, {at}" for one in (first, last)]
        heads += [f"Gain, {at}", f"Chapter {_ONE_THREAD.number} of bare loop, {at}"]
    heads += ["Virtual machine, container", "Kernel", "Device", "Date", "Rounds", "Revision"]
    rows = [_row(name, language) for name in _RECORDS]
    return Table([heads, *rows], stubs=1, classes=["machines"])


def _row(name: str, language: str) -> list[str]:
    record = str(_RECORDS[name].with_suffix(""))
    found = recording(record)
    machine = found.header.machine
    row = [
        f"[{html.escape(machine['cpu'])}](#machine-{name})"
        + " (reference)" * (name == "reference"),
        str(machine["usable_cores"]),
        machine_facts(found)["caches"] or "unknown",
    ]
    for heap_size in SIZES:
        first, last = (one.name for one in ends(heap_size))
        words = f"{record} {language} {word(heap_size)}"
        loop = f"{record} {word(heap_size)} {_BARE}"
        row += [
            known(_role, "rate", f"{words} {first}"),
            known(_role, "rate", f"{words} {last}"),
            known(_role, "gain", f"{words} {first} -> {last}"),
            known(_role, "of-ceiling", f"{loop} -> {language} {_ONE_THREAD.name}"),
        ]
    header = found.header
    facts = (machine["virtualisation"], machine["kernel"], header.lab["kind"], header.time[:10])
    return [*row, *map(str, facts), str(found.rounds), str(header.revision)]


def _role(name: str, words: str) -> str:
    SAYS[name](words)  # refused here where it was not measured
    return f"{{{name}}}`{words}`"


class MachineLadders(SphinxDirective):
    """The ladder of each machine."""

    def run(self) -> list[nodes.Node]:
        return [self._section(name, path) for name, path in _RECORDS.items()]

    def _section(self, name: str, path: Path) -> nodes.Node:
        self.env.note_dependency(str(path))
        found = recording(str(path.with_suffix("")))
        machine = found.header.machine
        cores = machine["usable_cores"]
        section = nodes.section(ids=[f"machine-{name}"], names=[f"machine-{name}"])
        self.state.document.note_explicit_target(section)
        caches = machine_facts(found)["caches"]
        own = " (reference)" if path == contributed.LADDER else caches and f", {caches}"
        section += nodes.title(text=f"{machine['cpu']}, {cores} core{'s' * (cores != 1)}{own}")
        here = os.path.relpath(path, self.env.srcdir)
        caption = f"Drawn from {{download}}`{path.name} <{here}>`"
        if path == contributed.LADDER:
            caption += ", measured on [the reference machine](#the-reference-machine)"
        light = Path(self.env.srcdir, _DRAWN, name, "ladder.svg")
        light.parent.mkdir(parents=True, exist_ok=True)
        plots.save_for_site(light, plots.ladder, found)
        section += shown(self, light, f"{caption}.")
        return section


def setup(app: Sphinx) -> dict[str, bool]:
    KINDS["machines"] = machines
    app.add_directive("machine-ladders", MachineLadders)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

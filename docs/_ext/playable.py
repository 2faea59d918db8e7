# SPDX-License-Identifier: BSD-3-Clause
"""Things to play with, with forms of ``_templates`` and scripts of ``_static``.

    {play} dissector            a heap that the reader types in, with the bytes of its packets
    {play} pipeline RECORD      a model of two threads, with the timelines of a record beside it
    {play} messages equal=1     sizes of heaps and packets, with the messages and calls they make
    {play} pause rate=0.5       a socket's buffer and a rate, with the pause that they allow

Where there is an `=`, it says with which value of a form a page begins; that may be left out.

Each has a template, a script for its form, and one that computes. A page has those of what is in
it, and no others. Without scripts there is a line that says so.
"""

from typing import Any

import jinja2
from docutils import nodes
from listings import TEMPLATES
from measured import recording
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from bench.figures import RESULTS
from spead_tutorial.measure.analysis import first_steady
from spead_tutorial.measure.records import Timeline
from spead_tutorial.results.plots.timeline import OVERLAPPED, mode, timelines, title

#: What computes, for each kind; the script of its form is named after the kind.
_COMPUTES = {
    "dissector": ("packets", "dissector"),
    "messages": ("packets",),
    "pause": ("packets",),
    "pipeline": ("pipeline",),
}


class Play(SphinxDirective):
    """A place for one of these things."""

    required_arguments = 1
    optional_arguments = 3

    def run(self) -> list[nodes.Node]:
        kind, *words = self.arguments
        names = [word for word in words if "=" not in word]
        for name in names:
            self.env.note_dependency(str(RESULTS / f"{name}.jsonl"))
        try:
            runs = [_run(one) for name in names for one in timelines(recording(name))]
            given = {
                name: float(to) for name, to in (one.split("=") for one in words if "=" in one)
            }
            html = TEMPLATES.get_template(f"{kind}.html").render(runs=runs, given=given)
        except (jinja2.TemplateNotFound, ValueError) as error:
            raise self.error(str(error)) from None
        return [nodes.raw("", html, format="html", playable=kind)]


def _run(one: Timeline) -> dict[str, Any]:
    """Return what the page needs of a timeline: times in µs, how many heaps, which count."""
    moments = {
        "prepare": one.prepare_ns,
        "queued": one.queued_ns,
        "first": one.first_packet_ns,
        "last": one.last_packet_ns,
        "resumed": one.resumed_ns,
    }
    return {
        "name": title(one),
        "depth": 2 if mode(one) == OVERLAPPED else 1,
        "steady": first_steady(one),
        **{name: [ns / 1e3 for ns in all_ns] for name, all_ns in moments.items()},
    }


def _add_scripts(app: Sphinx, _page: str, _template: str, _context: object, tree: object) -> None:
    if not isinstance(tree, nodes.document):
        return
    kinds = {raw["playable"] for raw in tree.findall(nodes.raw) if "playable" in raw}
    scripts = [name for kind in sorted(kinds) for name in (*_COMPUTES[kind], f"{kind}-form")]
    for name in dict.fromkeys(("play", *scripts) if scripts else ()):
        app.add_js_file(f"{name}.js")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("play", Play)
    app.add_css_file("play.css")
    app.connect("html-page-context", _add_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

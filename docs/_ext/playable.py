# SPDX-License-Identifier: BSD-3-Clause
"""Things to play with, with forms of ``_templates`` and scripts of ``_static``.

    ```{play} dissector
    ```

is a heap that the reader types in, with the bytes of its packets. And

    ```{play} pipeline tut-5
    ```

is a model of two threads, with the timelines of a record beside it.

    ```{play} python
    What it is about.
    ```

is Python about the packets of the dissector. It is there only if ``make pyodide`` was called before
``make docs``: without it there are neither the words nor the form.

Each has a template, a script for its form, and one that computes: in the page, or for Python in a
worker. A page has those of what is in it, and no others. Without scripts there is a line that says
so. What ``machines.py`` makes asks for its script in the same way.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
from docutils import nodes
from measured import UnknownError, recording
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxDirective

from bench.figures import RESULTS
from spead_tutorial import wire
from spead_tutorial.measure.analysis import first_steady
from spead_tutorial.measure.records import Timeline
from spead_tutorial.results.plots.timeline import OVERLAPPED, timelines, title, way

_STATIC = Path(__file__).resolve().parent.parent / "_static"
_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_STATIC.parent / "_templates"), autoescape=True
)
#: Where ``make pyodide`` puts it.
PYODIDE = _STATIC.parent.parent / "build" / "python" / "pyodide"


class Play(SphinxDirective):
    """A place for one of these things, and what is said about it."""

    required_arguments = 1
    optional_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        kind, *names = self.arguments
        if kind == "python" and not PYODIDE.is_dir():
            return []
        makes: dict[str, Callable[..., dict[str, Any]]]
        makes = {"dissector": dict, "pipeline": self._pipeline, "python": self._python}
        if kind not in makes:
            raise self.error(f"there is no {kind}: there are {', '.join(makes)}")
        try:
            values = makes[kind](*names)
        except (UnknownError, ValueError) as error:
            raise self.error(str(error)) from None
        html = _TEMPLATES.get_template(f"{kind}.html").render(values)
        place = nodes.raw("", html, format="html", playable=kind)
        return [*self.parse_content_to_nodes(), place]

    def _pipeline(self, name: str) -> dict[str, Any]:
        self.env.note_dependency(str(RESULTS / f"{name}.jsonl"))
        return {"runs": [_run(one) for one in timelines(recording(name))]}

    def _python(self) -> dict[str, Any]:
        self.env.note_dependency(wire.__file__)
        n_bytes = sum(path.stat().st_size for path in PYODIDE.iterdir())
        return {
            "base": "../" * self.env.docname.count("/"),
            "source": Path(wire.__file__).read_text(),
            "size": f"{n_bytes / 1e6:.0f} MB",
        }


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
        "depth": 2 if way(one) == OVERLAPPED else 1,
        "steady": first_steady(one),
        **{name: [ns / 1e3 for ns in all_ns] for name, all_ns in moments.items()},
    }


def _add_scripts(app: Sphinx, _page: str, _template: str, _context: object, tree: object) -> None:
    if not isinstance(tree, nodes.document):
        return
    kinds = {raw["playable"] for raw in tree.findall(nodes.raw) if "playable" in raw}
    scripts = [f"{kind}{part}.js" for kind in sorted(kinds) for part in ("", "-form")]
    for name in ("play.js", *scripts) if scripts else ():
        if (_STATIC / name).is_file():
            app.add_js_file(name)


def _add_pyodide(_app: Sphinx, config: Config) -> None:
    config.html_extra_path = [*config.html_extra_path, str(PYODIDE.parent)]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("play", Play)
    if PYODIDE.is_dir():
        app.connect("config-inited", _add_pyodide)
    app.add_css_file("play.css")
    app.connect("html-page-context", _add_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

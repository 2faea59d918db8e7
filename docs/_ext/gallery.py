# SPDX-License-Identifier: BSD-3-Clause
"""All notebooks on a page, each with a picture.

    ```{notebook-cards}
    00_start_here: tut-ladder
    01_spead_on_the_wire: heap-to-packets
    ```

gives each notebook a card with a part of the picture or drawing that is named, and with what the
notebooks themselves say: its title, what it is about, and how long it ran. All are to be named.
"""

import re
from typing import Any

import nbformat
from docutils import nodes
from listings import ROOT
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from spead_tutorial.tools import notebooks

_NAMES = notebooks.names(ROOT / notebooks.FOLDER)
_ROW = re.compile(r"(?m)^\| \[[^]]*\]\((\w+)\.ipynb\) \| (.+?) \|$")


class NotebookCards(SphinxDirective):
    """A card for each notebook."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        pictures = dict(re.split(r":\s+", line, maxsplit=1) for line in self.content)
        if tuple(pictures) != _NAMES:
            raise self.error(f"each of these needs a picture: {', '.join(_NAMES)}")
        stored = {name: self._read(name) for name in pictures}
        about = subjects(stored[notebooks.START])
        lines = ["::::{grid} 1 2 2 2", ":gutter: 3", ""]
        for name, notebook in stored.items():
            lines += card(name, notebook, about[name], pictures[name])
        return self.parse_text_to_nodes("\n".join([*lines, "::::"]))

    def _read(self, name: str) -> Any:
        path = self.env.srcdir.parent / notebooks.FOLDER / f"{name}.ipynb"
        self.env.note_dependency(str(path))
        return nbformat.read(path, 4)


def card(name: str, notebook: Any, about: str, picture: str) -> list[str]:
    """Return the lines of a notebook's card."""
    file = f"{notebooks.FOLDER}/{name}.ipynb"
    return [
        f":::{{grid-item-card}} [{notebooks.title(notebook)}]({file})",
        ":class-card: notebook",
        f"```{{thumbnail}} {picture}",
        "```",
        about,
        "",
        f"{{download}}`{name}.ipynb <../{file}>`{lasted(notebook)}",
        ":::",
    ]


def lasted(notebook: Any) -> str:
    """Say how long the run took that is stored; nothing where that has not been noted."""
    seconds = notebook.metadata.get(notebooks.METADATA, {}).get("seconds")
    if seconds is None:
        return ""
    return f", ran for {seconds} s" if seconds < 100 else f", ran for {seconds / 60:.0f} min"


def subjects(start: Any) -> dict[str, str]:
    """Return what each notebook is about: the first one has a table of them."""
    text = "\n".join(cell.source for cell in start.cells if cell.cell_type == "markdown")
    first = re.search(r"(?ms)^# .*?\n\n(.+?\.)\s", text)
    said = {notebooks.START: " ".join(first[1].split()) if first else ""}
    said |= {name: _sentence(about) for name, about in _ROW.findall(text)}
    without = [name for name in _NAMES if not said.get(name)]
    if without:
        raise ValueError(f"{notebooks.START} does not say what it is about: {without}")
    return said


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:] + ("" if words.endswith("?") else ".")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("notebook-cards", NotebookCards)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

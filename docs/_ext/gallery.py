# SPDX-License-Identifier: BSD-3-Clause
"""All notebooks on a page, each with a picture.

    ```{notebook-cards}
    ```

gives each notebook a card with a part of a picture or drawing, and with what the notebook says
itself: its title, how long it ran, and below ``card`` in its metadata what it is about, and which
picture that is.
"""

from typing import Any

import nbformat
from docutils import nodes
from listings import ROOT
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from spead_tutorial.tools import notebooks


class NotebookCards(SphinxDirective):
    """A card for each notebook."""

    def run(self) -> list[nodes.Node]:
        lines = ["::::{grid} 1 2 2 2", ":gutter: 3", ""]
        for name in notebooks.names(ROOT / notebooks.FOLDER):
            path = ROOT / notebooks.FOLDER / f"{name}.ipynb"
            self.env.note_dependency(str(path))
            lines += card(name, nbformat.read(path, 4))
        return self.parse_text_to_nodes("\n".join([*lines, "::::"]))


def card(name: str, notebook: Any) -> list[str]:
    """Return the lines of a notebook's card."""
    file = f"{notebooks.FOLDER}/{name}.ipynb"
    told = notebook.metadata.card
    return [
        f":::{{grid-item-card}} [{notebooks.title(notebook)}]({file})",
        ":class-card: notebook",
        f"```{{thumbnail}} {told.picture}",
        "```",
        _sentence(told.about),
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


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:] + ("" if words.endswith("?") else ".")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("notebook-cards", NotebookCards)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

# SPDX-License-Identifier: BSD-3-Clause
"""Notebooks as pages: copies of what is stored, their links as seen from here, their titles, words
for pictures.

Copies, because Sphinx reads what is in its folder, and through a symbolic link myst-parser would
look for the pages that notebooks link to in the wrong place.
"""

import html
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from spead_tutorial import notebook_run

_FOLDER = "notebooks"


def copy(app: Sphinx) -> None:
    """Put into the site's folder the notebooks that are not there as they are now."""
    target = Path(app.srcdir, _FOLDER)
    target.mkdir(exist_ok=True)
    for name in notebook_run.NAMES:
        path = app.srcdir.parent / notebook_run.FOLDER / f"{name}.ipynb"
        there = target / path.name
        text = led_to_files(path.read_text())
        if not there.is_file() or there.read_text() != text:
            there.write_text(text)


def led_to_files(text: str) -> str:
    """Let links to the repository's other folders start one folder deeper, as the copy does."""
    text = re.sub(r"\]\(\.\./(?!docs/)", "](../../", text)
    return text.replace("](../docs/", "](../")


def tell_apart(app: Sphinx, document: nodes.document) -> None:
    """Let the title of a notebook say that it is one: its chapter's page has the same."""
    if app.env.docname.startswith(f"{_FOLDER}/"):
        title = next(iter(document.findall(nodes.title)))
        title += nodes.Text(" (notebook)")


class Alternatives(SphinxPostTransform):
    """Give a notebook's pictures the title that each has in itself."""

    default_priority = 300

    def run(self, **kwargs: Any) -> None:
        if not self.env.docname.startswith(f"{_FOLDER}/"):
            return
        for image in self.document.findall(nodes.image):
            path = Path(self.app.srcdir, image["uri"].lstrip("/"))
            if not image.get("alt") and path.suffix == ".svg" and path.is_file():
                title = re.search(r"<title[^>]*>([^<]*)", path.read_text())
                image["alt"] = html.unescape(title[1]) if title else ""


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", copy)
    app.connect("doctree-read", tell_apart, priority=400)  # before Sphinx collects titles
    app.add_post_transform(Alternatives)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

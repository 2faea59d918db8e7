# SPDX-License-Identifier: BSD-3-Clause
"""Notebooks beside the chapters that they run: as pages, and as cards.

Their pages are copies of what is stored, with links as seen from here, titles, and words for
pictures: copies, because Sphinx reads what is in its folder, and through a symbolic link
myst-parser would look for the pages that notebooks link to in the wrong place. A chapter's page
begins with how to run it: by a command, and in its notebook.

    {notebook-cards}    a card for each, with a part of a picture, and with what the notebook says
                        itself: its title, how long it ran, and below ``card`` in its metadata what
                        it is about, and which picture that is
"""

import html
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from listings import ROOT, TEMPLATES
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

from spead_tutorial.chapters.catalogue import CHAPTERS, RECEIVERS
from spead_tutorial.tools import notebooks

_SOURCES = ROOT / notebooks.FOLDER
_FOLDER = "notebooks"
_RUN = "run-the-notebooks"  # the part of a page that says how
_WITH_PROGRAMS = {chapter.number for chapter in (*CHAPTERS, *RECEIVERS)}


def copy(app: Sphinx) -> None:
    """Put into the site's folder the notebooks that are not there as they are now."""
    target = Path(app.srcdir, _FOLDER)
    target.mkdir(exist_ok=True)
    for old in {path.stem for path in target.glob("*.ipynb")} - {*notebooks.names(_SOURCES)}:
        (target / f"{old}.ipynb").unlink()
    for name in notebooks.names(_SOURCES):
        file = f"{name}.ipynb"
        notebook = nbformat.reads(led_to_files((_SOURCES / file).read_text()), 4)
        first = notebook.cells[0]
        line = f"[Download {file}](path:../../notebooks/{file}), or [run it yourself](#{_RUN})."
        first.source = below_title(first.source, line, " (notebook)")  # its chapter has the same
        text, there = nbformat.writes(notebook), target / file
        if not there.is_file() or there.read_text() != text:
            there.write_text(text)


def leave_out_of_search(app: Sphinx) -> list[Any]:
    """Have search find a chapter, and not its notebook again: called before its index is stored."""
    if indexer := getattr(app.builder, "indexer", None):
        indexer.prune({page for page in app.env.all_docs if not page.startswith(f"{_FOLDER}/")})
    return []


def led_to_files(text: str) -> str:
    """Let links to the repository's other folders start one folder deeper, as the copy does."""
    text = re.sub(r"\]\(\.\./(?!docs/)", "](../../", text)
    return text.replace("](../docs/", "](../")


class Pictures(SphinxPostTransform):
    """Give a notebook's pictures the title that each has in itself, and a box to be scrolled in."""

    default_priority = 300

    def run(self, **kwargs: Any) -> None:
        if not self.env.docname.startswith(f"{_FOLDER}/"):
            return
        for image in self.document.findall(nodes.image):
            path = Path(self.app.srcdir, image["uri"].lstrip("/"))
            if not image.get("alt") and path.suffix == ".svg" and path.is_file():
                title = re.search(r"<title[^>]*>([^<]*)", path.read_text())
                image["alt"] = html.unescape(title[1]) if title else ""
                box = nodes.container(classes=["output", "picture"])
                image.replace_self(box)
                box += image


def offer_to_run(app: Sphinx, page: str, source: list[str]) -> None:
    """Put below a chapter's title the command that runs it, and a link to its notebook."""
    if chapter := re.match(r"tutorial/(\d+)-", page):
        number = int(chapter[1])
        command = f"`spead-tutorial run {number}`, or " if number in _WITH_PROGRAMS else ""
        name = next(one for one in notebooks.names(_SOURCES) if one.startswith(f"{number:02d}_"))
        link = f"[its notebook](/{_FOLDER}/{name}.ipynb)"
        line = f"{{.run-chapter}}\nRun this chapter: {command}{link}."
        source[0] = below_title(source[0], line)


def below_title(text: str, line: str, more: str = "") -> str:
    """Return a page with a line below its title, and more in that."""
    return re.sub("^# .+", lambda title: f"{title[0]}{more}\n\n{line}", text, count=1, flags=re.M)


class NotebookCards(SphinxDirective):
    """A card for each notebook."""

    def run(self) -> list[nodes.Node]:
        paths = {name: _SOURCES / f"{name}.ipynb" for name in notebooks.names(_SOURCES)}
        for path in paths.values():
            self.env.note_dependency(str(path))
        stored = {name: nbformat.read(path, 4) for name, path in paths.items()}
        return self.parse_text_to_nodes(cards(stored))


def cards(stored: Mapping[str, Any]) -> str:
    return TEMPLATES.get_template("notebook-cards.jinja").render(
        notebooks=stored, title=notebooks.title, metadata=notebooks.METADATA
    )


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", copy)
    app.connect("source-read", offer_to_run)
    app.connect("html-collect-pages", leave_out_of_search)
    app.add_directive("notebook-cards", NotebookCards)
    app.add_post_transform(Pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

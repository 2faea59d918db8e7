# SPDX-License-Identifier: BSD-3-Clause
"""Notebooks as pages: copies of what is stored, their links as seen from here, their titles, words
for pictures; and as files, to be downloaded one by one or all together.

Copies, because Sphinx reads what is in its folder, and through a symbolic link myst-parser would
look for the pages that notebooks link to in the wrong place.
"""

import html
import re
import zipfile
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from spead_tutorial.tools import notebooks

_FOLDER = "notebooks"
_BUNDLE = "spead-tutorial-notebooks.zip"
_RUN = "run-the-notebooks"  # the part of a page that says how
_LICENSE = "LICENSE"
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # of what a zip can say


def copy(app: Sphinx) -> None:
    """Put into the site's folder the notebooks that are not there as they are now."""
    target = Path(app.srcdir, _FOLDER)
    target.mkdir(exist_ok=True)
    for source in notebooks.sources(app.srcdir.parent / notebooks.FOLDER):
        path = source.with_suffix(".ipynb")
        there = target / path.name
        text = led_to_files(path.read_text())
        if not there.is_file() or there.read_text() != text:
            there.write_text(text)
    bundle(app.srcdir.parent, target / _BUNDLE)


def led_to_files(text: str) -> str:
    """Let links to the repository's other folders start one folder deeper, as the copy does."""
    text = re.sub(r"\]\(\.\./(?!docs/)", "](../../", text)
    return text.replace("](../docs/", "](../")


def bundle(root: Path, target: Path) -> None:
    """Put all notebooks into a zip, with the programs that they link to; it is always the same."""
    folder = root / notebooks.FOLDER
    texts = {
        f"{folder.name}/{name}.ipynb": (folder / f"{name}.ipynb").read_text()
        for name in notebooks.names(folder)
    }
    linked = {link for text in texts.values() for link in re.findall(r"\]\(\.\./([^)#]+)\)", text)}
    programs = sorted(link for link in linked if not link.startswith("docs/"))
    texts = {path: without_pages(text) for path, text in texts.items()}
    texts |= {path: (root / path).read_text() for path in (*programs, _LICENSE)}
    with zipfile.ZipFile(target, "w") as file:
        for path, text in texts.items():
            member = zipfile.ZipInfo(f"{target.stem}/{path}", _EARLIEST)
            file.writestr(member, text, zipfile.ZIP_DEFLATED)


def without_pages(text: str) -> str:
    """Leave of a notebook's links to pages of the site their words: the pages stay here."""
    return re.sub(r"\[([^][]*)\]\(\.\./docs/[^)]*\)", r"\1", text)


def offer(app: Sphinx, document: nodes.document) -> None:
    """Let a notebook's page begin with a link to its file, and to how it is run."""
    if not app.env.docname.startswith(f"{_FOLDER}/"):
        return
    file = f"../../{notebooks.FOLDER}/{Path(app.env.docname).name}.ipynb"
    words = f"Download {Path(file).name}"
    download = addnodes.download_reference("", words, reftarget=file)
    to_run = {"refdomain": "std", "reftype": "ref", "reftarget": _RUN, "refexplicit": True}
    run = addnodes.pending_xref("", nodes.inline("", "run it yourself"), **to_run)
    title = next(iter(document.findall(nodes.title)))
    line = nodes.paragraph("", "", download, nodes.Text(", or "), run, nodes.Text("."))
    title.parent.insert(title.parent.index(title) + 1, line)


def tell_apart(app: Sphinx, document: nodes.document) -> None:
    """Let the title of a notebook say that it is one: its chapter's page has the same."""
    if app.env.docname.startswith(f"{_FOLDER}/"):
        title = next(iter(document.findall(nodes.title)))
        title += nodes.Text(" (notebook)")


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


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", copy)
    # Before Sphinx collects titles and downloads.
    app.connect("doctree-read", tell_apart, priority=400)
    app.connect("doctree-read", offer, priority=400)
    app.add_post_transform(Pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

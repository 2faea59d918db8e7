# SPDX-License-Identifier: BSD-3-Clause
"""Two ways through the site, side by side: chapters to read, and notebooks to run.

Each chapter's page begins with how to run it: by a command, and in its notebook. *Next* and
*Previous* at the foot of a page stay in its section, so that the last chapter does not lead into
the notebooks.
"""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from spead_tutorial.chapters.catalogue import CHAPTERS, RECEIVERS
from spead_tutorial.tools import notebooks

_CHAPTER = re.compile(r"tutorial/(\d+)-")
_WITH_PROGRAMS = {chapter.number for chapter in (*CHAPTERS, *RECEIVERS)}


def offer_to_run(app: Sphinx, document: nodes.document) -> None:
    """Put below a chapter's title the command that runs it, and a link to its notebook."""
    chapter = _CHAPTER.match(app.env.docname)
    if not chapter:
        return
    number = int(chapter[1])
    line = nodes.paragraph("", "Run this chapter: ", classes=["run-chapter"])
    if number in _WITH_PROGRAMS:
        line += [nodes.literal("", f"spead-tutorial run {number}"), nodes.Text(", or ")]
    line += [_to_notebook(app, number), nodes.Text(".")]
    title = next(iter(document.findall(nodes.title)))
    title.parent.insert(title.parent.index(title) + 1, line)


def _to_notebook(app: Sphinx, number: int) -> nodes.Node:
    there = notebooks.names(app.srcdir.parent / notebooks.FOLDER)
    name = next(name for name in there if name.startswith(f"{number:02d}_"))
    target = {"refdomain": "std", "reftype": "doc", "reftarget": f"/notebooks/{name}"}
    return addnodes.pending_xref(
        "", nodes.inline("", "its notebook"), refexplicit=True, refwarn=True, **target
    )


def stay_in_the_section(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Take away *Next* and *Previous* where they would lead into another section."""
    relations = app.builder.relations  # type: ignore[attr-defined]
    root = app.config.root_doc
    if page not in relations:
        return
    for name, other in zip(("prev", "next"), relations[page][1:], strict=True):
        apart = _section(relations, root, page) != _section(relations, root, other)
        if other and root not in (page, other) and apart:
            context[name] = None


def _section(relations: dict[str, list[str | None]], root: str, page: str | None) -> str | None:
    """Return the page of the first level that a page is below."""
    while page and (above := relations[page][0]) and above != root:
        page = above
    return page


def setup(app: Sphinx) -> dict[str, bool]:
    # Before Sphinx resolves links.
    app.connect("doctree-read", offer_to_run, priority=400)
    app.connect("html-page-context", stay_in_the_section)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

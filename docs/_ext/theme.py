# SPDX-License-Identifier: BSD-3-Clause
"""What the theme leaves undone, and neither style sheets nor scripts can do.

A page has the colours that the system asks for, also where no script says which: the theme's script
makes ``data-theme`` of a page ``light`` or ``dark``, and without scripts it stays ``auto``, for
which no style sheet has a rule. ``_static/auto.css`` has the rules of both again, for ``auto``, and
the media query of the system chooses between them.

Short words of inline code in a table stay whole. A browser would break them after a hyphen, and
``-H`` is not to be taken for a dash. CSS cannot tell long words from short ones, and the long ones
still have to break.
"""

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

_AUTO = "auto.css"
_COMMENT = re.compile(r"/\*.*?\*/", re.S)
_RULE = re.compile(r"([^{};]*)(\{[^{}]*\})")
#: Letters that fit in a cell of a table.
_CELL = 8


def _rules(sheets: list[str], theme: str) -> str:
    """Return the rules for a theme, as those of a system that asks for it."""
    chosen = re.compile(rf"""\[data-theme=(["']?){theme}\1\]""")
    rules = (
        chosen.sub("[data-theme=auto]", where) + what
        for sheet in sheets
        for where, what in _RULE.findall(_COMMENT.sub("", sheet))
        if chosen.search(where)
    )
    return f"@media (prefers-color-scheme: {theme}) {{{''.join(rules)}\n}}\n"


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    # Those of the theme are in a folder of their own, and come first on a page.
    paths = sorted(static.rglob("*.css"), key=lambda path: (path.parent == static, path))
    sheets = [path.read_text() for path in paths if path.name != _AUTO]
    (static / _AUTO).write_text(_rules(sheets, "light") + _rules(sheets, "dark"))


class WholeWords(SphinxPostTransform):
    """Mark inline code of a table that has no long words."""

    default_priority = 900  # once references have their texts

    def run(self, **kwargs: Any) -> None:
        for cell in self.document.findall(nodes.entry):
            for code in cell.findall(nodes.literal):
                if all(len(word) <= _CELL for word in code.astext().split()):
                    code["classes"].append("whole-words")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_css_file(_AUTO, priority=900)
    app.connect("build-finished", _write, priority=900)  # the theme writes one then, too
    app.add_post_transform(WholeWords)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

# SPDX-License-Identifier: BSD-3-Clause
"""Words of inline code that a line of a phone has room for: they get a class, and stay whole.

A browser would break them after a hyphen, and ``-H`` is not to be taken for a dash. CSS cannot
tell long words from short ones, and the long ones still have to break.
"""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

CLASS = "whole-words"
#: Letters that fit on a line, and in a cell of a table.
_LINE, _CELL = 20, 8


class WholeWords(SphinxPostTransform):
    """Mark inline code that has no long words."""

    default_priority = 900  # once references have their texts

    def run(self, **kwargs: Any) -> None:
        for code in self.document.findall(nodes.literal):
            most = _CELL if _is_in_cell(code) else _LINE
            if all(len(word) <= most for word in code.astext().split()):
                code["classes"].append(CLASS)


def _is_in_cell(node: nodes.Node | None) -> bool:
    while node is not None and not isinstance(node, nodes.entry):
        node = node.parent
    return node is not None


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_post_transform(WholeWords)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

# SPDX-License-Identifier: BSD-3-Clause
"""A page has the colours that the system asks for, also where no script says which.

The theme's script makes ``data-theme`` of a page ``light`` or ``dark``. Without scripts it stays
``auto``, for which no style sheet has a rule. ``_static/auto.css`` has the rules of both again, for
``auto``, and the media query of the system chooses between them.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx

_NAME = "auto.css"
_COMMENT = re.compile(r"/\*.*?\*/", re.S)
_RULE = re.compile(r"([^{};]*)(\{[^{}]*\})")


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
    sheets = [path.read_text() for path in paths if path.name != _NAME]
    (static / _NAME).write_text(_rules(sheets, "light") + _rules(sheets, "dark"))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_css_file(_NAME, priority=900)
    app.connect("build-finished", _write, priority=900)  # the theme writes one then, too
    return {"parallel_read_safe": True, "parallel_write_safe": True}

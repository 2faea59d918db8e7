# SPDX-License-Identifier: BSD-3-Clause
"""How text of strangers is shown, in terminals, pages and pictures: no program does it otherwise.

It may come out of a packet, a record, a file, the environment, or a program under test. Where
angle brackets mean something, what makes the page escapes them.
"""

import re

#: What Unicode has as letters or marks, and draws as nothing.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
#: Spaces that take room.
_SPACES = (
    "\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
)


def shown(text: str, longest: int | None = None) -> str:
    """Write text in one line of characters that can be seen, cut where it is long.

    The end of a line becomes a space. What a terminal would obey, what turns the direction of a
    text, what has no width, and halves of characters become escapes, as in Python.
    """
    seen = text if longest is None else text[: longest + 1]
    if not seen.isprintable() or _UNSEEN.search(seen):
        seen = "".join(map(_seen, seen))
    return seen if longest is None or len(seen) <= longest else f"{seen[: longest - 1]}…"


def _seen(c: str) -> str:
    if c == "\n":
        return " "
    if c in _SPACES or (c.isprintable() and not _UNSEEN.match(c)):
        return c
    return ascii(c)[1:-1]


def shown_lines(text: str) -> str:
    """Write each line of a text so."""
    return "\n".join(map(shown, text.split("\n")))

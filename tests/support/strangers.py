# SPDX-License-Identifier: BSD-3-Clause
"""What strangers may call something: all that a terminal would obey, or a reader would not see."""

import re

#: A command in colour, its end by a bell, C1, a line's end; marks that turn the direction of text
#: round it; what has no width; ends of lines that only Unicode knows; tags, and half a character.
CONTROLS = "\x1b[31m", "\x07", "\x9b2J", "\r", "\x00", "\x7f"
DIRECTIONS = "\u202e", "\u202d", "\u2066", "\u2069", "\u200f", "\u061c"
WIDTHLESS = "\u200b", "\u200d", "\u2060", "\ufeff", "\xad", "\u3164", "\ufe0f", "\U000e0100"
ENDS = "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"
TAGS = "\U000e0041", "\U000e007f"
HALVES = "\ud800", "\udfff"
#: A byte of a file's name that is no text, as Python has it.
NO_TEXT = "\udcff"
#: All but halves, which no file in UTF-8 has.
HOSTILE = "".join(f"{one}x" for one in (*CONTROLS, *DIRECTIONS, *WIDTHLESS, *ENDS, *TAGS))
_FORBIDDEN = re.compile(
    "[" + re.escape("".join(c for c in HOSTILE if c not in "x[312mJ") + NO_TEXT) + "]"
)


def obeyed(text: str) -> list[str]:
    """Return what of all this a text still has as it is."""
    return sorted(set(_FORBIDDEN.findall(text)))

# SPDX-License-Identifier: BSD-3-Clause
"""The C++ headers' parts, each with all that is documented in it, in the header's order.

    .. cpp-part:: Errors

    .. cpp-part:: Received heaps
       :header: spt_recv.hpp

The headers are read as they are laid out, which a formatter sees to: that takes neither a compiler
nor the standard library of C++.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from c_header import Part
from sphinx.application import Sphinx

_COMMENT = re.compile(r"^( *)/\*\*\n?(.*?)\*/\n(.*?)$", re.MULTILINE | re.DOTALL)
_END = re.compile(r";|\{| : (?!public)|\n *: ")
_WORDS = re.compile(r"\[\[\w+(?:, \w+)*\]\] |\b(?:inline|constexpr|friend) ")
_FUNCTION = re.compile(r"\boperator\b|\w+\(")


@dataclass(frozen=True)
class Entry:
    """What a header documents: a directive, its declaration, and the text."""

    line: int
    kind: str
    declaration: str
    text: list[str]
    depth: int


def _declared(text: str, start: int) -> str:
    """Return what is declared from there on, without its body and on one line."""
    depth = 0
    for position in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0 and _END.match(text, position):
            return " ".join(text[start:position].split())
    raise ValueError(f"a declaration has no end: {text[start : start + 80]!r}")


def _kind(declaration: str) -> tuple[str, str]:
    """Return the directive for a declaration, and what it is given."""
    plain = _WORDS.sub("", declaration)
    template, rest = "", plain
    if found := re.match(r"template <(.*?)> (?=class|struct|using|concept|\w)", plain):
        template, rest = f"template<{found[1]}> ", plain[found.end() :]
    if found := re.match(r"concept (\w+) =", rest):
        return "concept", f"{template}{found[1]}"
    if found := re.match(r"using (\w+) = (.*)", rest):
        return "type", f"{template}{found[1]}" + (f" = {found[2]}" if not template else "")
    if found := re.match(r"(class|struct) (\w+)", rest):
        return found[1], f"{template}{found[2]}"
    if _FUNCTION.search(rest.split(" = ")[0]):
        return "function", template + rest
    return "var", template + rest.split(" =")[0]


def entries(text: str) -> Iterator[Entry]:
    """Yield what a header documents, in its order."""
    lines = text.split("\n")
    scopes: list[tuple[int, int]] = []  # indentation, and the line where it ends
    for found in _COMMENT.finditer(text):
        number = text.count("\n", 0, found.start()) + 1
        indentation = len(found[1])
        words = [re.sub(r"^ *\* ?|^ ", "", line).rstrip() for line in found[2].split("\n")]
        if found[3].startswith("#"):  # the header itself
            yield Entry(number, "", "", words, 0)
            continue
        scopes = [(width, last) for width, last in scopes if number < last]
        kind, declaration = _kind(_declared(text, found.start(3)))
        yield Entry(number, kind, declaration, words, len(scopes))
        if kind in ("class", "struct") and not found[3].endswith("};"):
            ends = (i for i in range(number, len(lines)) if lines[i] == " " * indentation + "};")
            scopes.append((indentation, next(ends) + 1))


class CppPart(Part):
    """All that one part of a header documents."""

    default_header = "spt.hpp"

    def documented(self, path: Path, text: str, part: range) -> Iterator[tuple[str, int]]:
        for entry in entries(text):
            if entry.line not in part:
                continue
            indent = "   " * entry.depth
            lines = [f"{indent}.. cpp:{entry.kind}:: {entry.declaration}", ""] if entry.kind else []
            inner = indent + "   " * bool(entry.kind)
            lines += [f"{inner}{line}" if line else "" for line in entry.text]
            yield from ((line, entry.line) for line in [*lines, ""])


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("cpp-part", CppPart)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

# SPDX-License-Identifier: BSD-3-Clause
"""The parts of the headers in C and C++, each with all that is documented in it, in its order.

    .. c-part:: Status and errors

    .. cpp-part:: Received heaps
       :header: spt_recv.hpp

What stands before the first part is ``.. c-part:: Introduction``. Parts are in the header that is
named, or in those that it includes. They are read as they are laid out, which a formatter sees to:
that takes no compiler. An enumeration that is made from a list macro gets its enumerators from
there, as they have no comments of their own.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from listings import ROOT
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

_FOLDER = ROOT / "csrc" / "include" / "spead_tutorial"
_MAIN = {"c": "spt.h", "cpp": "spt.hpp"}
_PART = re.compile(r"^/\* ---- \d+\. (.+?) -+ \*/$", re.MULTILINE)
_COMMENT = re.compile(r"^( *)/\*\*\n?(.*?)\*/\n(.*?)$", re.MULTILINE | re.DOTALL)
#: That of a member or an enumerator, behind it on its line.
_BEHIND = re.compile(r"^( +)(\w.*?)[;,] +/\*\*< (.*) \*/$", re.MULTILINE)
_END = re.compile(r";|\{| : (?!public)|\n *: ")
_WORDS = {
    "c": re.compile(r"\bSPT_(?:API|MUST_CHECK) |^typedef (?!struct|enum)"),
    "cpp": re.compile(r"\[\[\w+(?:, \w+)*\]\] |\b(?:inline|constexpr|friend) "),
}
_FUNCTION = re.compile(r"\boperator\b|\w+\(")
#: An enumeration that is made from a list, and an entry of such a list.
_LISTED = re.compile(r"\{\n#define .*\n +(\w+_LIST)\(")
_ENTRY = re.compile(r'^ +X\((\w+), (-?\d+), "([^"]+)"\)', re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """What a header documents: a directive, its declaration, and the text."""

    line: int
    kind: str
    declaration: str
    text: list[str]
    depth: int


def parts(text: str) -> dict[str, range]:
    """Return which lines of the header each part has, counted from 1."""
    marks = [(text.count("\n", 0, mark.start()) + 1, mark[1]) for mark in _PART.finditer(text)]
    starts = [(1, "Introduction"), *marks]
    ends = [line for line, _ in marks] + [text.count("\n") + 1]
    return {title: range(start, end) for (start, title), end in zip(starts, ends, strict=True)}


def _included(text: str) -> list[Path]:
    return [_FOLDER / name for name in re.findall(r'#include "spead_tutorial/(.*)"', text)]


def _declared(text: str, start: int) -> str:
    """Return what is declared from there on, without its body and on one line."""
    depth = 0
    for position in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0 and _END.match(text, position):
            return " ".join(text[start:position].split())
    raise ValueError(f"a declaration has no end: {text[start : start + 80]!r}")


def _kind_of_c(text: str, start: int, scope: str) -> tuple[str, str]:
    """Return the directive for a declaration, and what it is given."""
    line = text[start : text.index("\n", start)]
    if scope in ("enum", "nameless"):
        return "enumerator", line.partition(" /**<")[0].strip(" ,")
    if found := re.match(r"#define (\w+(?:\(\w+\))?)", line):
        return "macro", found[1]
    if line == "enum {":
        return "nameless", ""
    plain = _WORDS["c"].sub("", declared := _declared(text, start).strip())
    if found := re.match(r"typedef (struct|enum) (\w+)( \w+)?", plain):
        return "type" if found[3] else found[1], found[2]
    if declared.startswith("typedef"):
        return "type", plain
    return "member" if scope else "function", plain


def _kind_of_cpp(text: str, start: int) -> tuple[str, str]:
    plain = _WORDS["cpp"].sub("", _declared(text, start))
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


def entries(text: str, language: str) -> Iterator[Entry]:
    """Yield what a header documents, in its order."""
    lines = text.split("\n")
    scopes: list[tuple[str, int]] = []  # what it is, and the line where it ends
    comments = [*_COMMENT.finditer(text), *_BEHIND.finditer(text)]
    for found in sorted(comments, key=lambda found: found.start()):
        said, of = (3, 2) if found.re is _BEHIND else (2, 3)
        number, start = text.count("\n", 0, found.start()) + 1, found.start(of)
        words = [re.sub(r"^ *\* ?|^ ", "", line).rstrip() for line in found[said].split("\n")]
        if found[3].startswith("#") and not found[3].startswith("#define"):  # the header itself
            yield Entry(number, "", "", words, 0)
            continue
        scopes = [(kind, last) for kind, last in scopes if number < last]
        depth = sum(kind != "nameless" for kind, _ in scopes)
        if language == "c":
            kind, declaration = _kind_of_c(text, start, scopes[-1][0] if scopes else "")
        else:
            kind, declaration = _kind_of_cpp(text, start)
        yield Entry(number, "" if kind == "nameless" else kind, declaration, words, depth)
        if kind == "enum" and (made := _LISTED.match(text, text.index("{", start))):
            yield from _listed(text, made[1], number)
        if kind in ("class", "struct", "enum", "nameless") and not found[3].endswith("};"):
            ends = (i for i in range(number, len(lines)) if lines[i].startswith(f"{found[1]}}}"))
            scopes.append((kind, next(ends) + 1))


def _listed(text: str, macro: str, number: int) -> Iterator[Entry]:
    start = text.index(f"#define {macro}(X)")
    for name, value, meaning in _ENTRY.findall(text, start, text.index("\n\n", start)):
        words = [f"{meaning[0].upper()}{meaning[1:]}."]
        yield Entry(number, "enumerator", f"{name} = {value}", words, 1)


class Part(SphinxDirective):
    """All that one part of a header documents."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"header": directives.unchanged_required}  # noqa: RUF012 - as docutils has it

    def run(self) -> list[nodes.Node]:
        language = self.name.removesuffix("-part")
        title = self.arguments[0]
        main = _FOLDER / self.options.get("header", _MAIN[language])
        for path in (main, *_included(main.read_text())):
            self.env.note_dependency(str(path))
            text = path.read_text()
            if title in (lines := parts(text)):
                break
        else:
            raise self.error(f"no header that {main.name} includes has a part {title!r}")
        content = StringList()
        for entry in entries(text, language):
            if entry.line in lines[title]:
                for written in _written(entry, language):
                    content.append(written, str(path), entry.line)
        holder = nodes.Element()
        self.state.nested_parse(content, 0, holder)
        return holder.children


def _written(entry: Entry, language: str) -> Iterator[str]:
    """Yield lines of reST."""
    indent = "   " * entry.depth
    if entry.kind:
        yield from (f"{indent}.. {language}:{entry.kind}:: {entry.declaration}", "")
        indent += "   "
    yield from (f"{indent}{line}" if line else "" for line in [*entry.text, ""])


def setup(app: Sphinx) -> dict[str, bool]:
    for language in _MAIN:
        app.add_directive(f"{language}-part", Part)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

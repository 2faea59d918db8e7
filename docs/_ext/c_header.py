# SPDX-License-Identifier: BSD-3-Clause
"""The C headers' parts, each with all that is documented in it, in the header's order.

    .. c-part:: Status and errors

    .. c-part:: Depacketizer
       :header: spt_recv.h

What stands before the first part is ``.. c-part:: Introduction``. An enumeration that is made from
a list macro gets its enumerators from there, as they have no comments of their own.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from hawkmoth.docstring import (
    Docstring,
    DocstringProcessor,
    EnumDocstring,
    RootDocstring,
    TextDocstring,
)
from hawkmoth.parser import ErrorLevel, parse
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

_PART = re.compile(r"^/\* ---- \d+\. (.+?) -+ \*/$", re.MULTILINE)
_ENTRY = re.compile(r'^ +X\((\w+), (-?\d+), "([^"]+)"\)', re.MULTILINE)
_GUARDS = ("SPEAD_TUTORIAL_SPT_H", "SPEAD_TUTORIAL_SPT_RECV_H")
#: Enumerations that are made from a list, and the list.
_LISTS = {
    "spt_status": "SPT_STATUS_LIST",
    "spt_fault": "SPT_FAULT_LIST",
    "spt_fate": "SPT_FATE_LIST",
}


def parts(text: str) -> dict[str, range]:
    """Return which lines of the header each part has, counted from 1."""
    marks = [(text.count("\n", 0, mark.start()) + 1, mark[1]) for mark in _PART.finditer(text)]
    starts = [(1, "Introduction"), *marks]
    ends = [line for line, _ in marks] + [text.count("\n") + 1]
    return {title: range(start, end) for (start, title), end in zip(starts, ends, strict=True)}


def entries(text: str, macro: str) -> list[tuple[str, str, str]]:
    """Return names, values and meanings from a list macro."""
    start = text.index(f"#define {macro}(X)")
    return _ENTRY.findall(text, start, text.index("\n\n", start))


class Part(SphinxDirective):
    """All that one part of a header documents."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"header": directives.unchanged_required}  # noqa: RUF012 - as docutils has it
    default_header: str

    def run(self) -> list[nodes.Node]:
        name = self.options.get("header", self.default_header)
        path = Path(self.config.hawkmoth_root, "spead_tutorial", name)
        self.env.note_dependency(str(path))
        text = path.read_text()
        title = self.arguments[0]
        if title not in parts(text):
            raise self.error(f"{path.name} has no part {title!r}: it has {list(parts(text))}")
        content = StringList()
        for line, number in self.documented(path, text, parts(text)[title]):
            content.append(line, str(path), number)
        holder = nodes.Element()
        self.state.nested_parse(content, 0, holder)
        return holder.children

    def documented(self, path: Path, text: str, part: range) -> Iterator[tuple[str, int]]:
        """Yield lines of reST, and where in the header each is from."""
        raise NotImplementedError


class CPart(Part, DocstringProcessor):
    """What hawkmoth finds in one part of a header in C."""

    default_header = "spt.h"

    def documented(self, path: Path, text: str, part: range) -> Iterator[tuple[str, int]]:
        for child in self._root(path):
            if child.get_line() not in part:
                continue
            for docstring in _shown(child):
                lines, number = docstring.get_docstring(processor=self)
                if any(line.lstrip().startswith("* ") for line in lines):
                    raise self.error(f"{path.name}:{number}: end the comment on a line of its own")
                yield from ((line, number + offset - 1) for offset, line in enumerate(lines))
            for line in self._listed(child, text):
                yield line, child.get_line() - 1

    def _root(self, path: Path) -> RootDocstring:
        """Return what the header documents; it is parsed once for each page."""
        key = f"c_header {path.name}"
        root = self.env.current_document.get(key)
        if root is None:
            arguments = [*self.config.hawkmoth_clang, f"-I{self.config.hawkmoth_root}"]
            root, problems = parse(str(path), domain="c", clang_args=arguments)
            serious = [problem for problem in problems if problem.level >= ErrorLevel.WARNING]
            if serious:
                raise self.error("; ".join(problem.get_message() for problem in serious))
            self.env.current_document[key] = root
        return root

    @staticmethod
    def _listed(docstring: Docstring, text: str) -> list[str]:
        if not isinstance(docstring, EnumDocstring) or docstring.get_name() not in _LISTS:
            return []
        lines = []
        for name, value, meaning in entries(text, _LISTS[docstring.get_name()]):
            lines += ["", f"   .. c:enumerator:: {name} = {value}", ""]
            lines += [f"      {meaning[0].upper()}{meaning[1:]}."]
        return [*lines, ""]


def _shown(docstring: Docstring) -> Iterator[Docstring]:
    """Yield what is shown of a docstring and its members, in order."""
    if docstring.get_name() in _GUARDS:  # the comment before it is about the header
        yield TextDocstring(docstring._text, docstring.get_meta())
    elif docstring._decl_name is None and isinstance(docstring, EnumDocstring):
        # An enumeration without a name is its enumerators.
        yield TextDocstring(docstring._text, docstring.get_meta())
        for member in docstring:
            member._nest = 0
            yield member
    else:
        yield from docstring.walk()


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("c-part", CPart)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

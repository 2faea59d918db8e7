# SPDX-License-Identifier: BSD-3-Clause
"""The site's extensions, and rates that are typed into its pages."""

import dataclasses
import importlib
import re
import sys
from collections.abc import Iterator
from types import ModuleType

from markdown_it import MarkdownIt
from mdit_py_plugins.colon_fence import colon_fence_plugin

from support import ROOT

_MARKDOWN = MarkdownIt().use(colon_fence_plugin)
_BLOCKS = {"code", "code-block", "code-cell", "sourcecode"}

#: Rates that are typed, as they have not been measured.
CHOSEN = {
    "0.05 GB/s": "what chapter 17's program is sent while it works",
    "5 MB/s": "the slow link of an array in the lab",
    "100 MB/s": "the rate that chapter 2 asks for",
    "200 MB/s": "what chapter 6's slow listener reads",
    "1 GB/s": "an example of what somebody may need",
    "3 GB/s": "what why sends to a receiver that takes 1 GB/s",
    "1 Gb/s": "a link",
    "4 Gb/s": "a link",
    "8 Gb/s": "a link",
    "16 Gb/s": "a link",
    "10 Gb/s": "a link",
    "25 Gb/s": "a link",
    "40 Gb/s": "a link",
    "100 Gb/s": "a link",
    "1250 MB/s": "a link of 10 Gb/s, in bytes",
}

_RATE = re.compile(r"\d[\d ,.\u00a0\u2009]*[ \u00a0]?(?:[kMG]i?B|[kMG]b(?:it)?)/s")


@dataclasses.dataclass
class Block:
    """A fenced block of a page."""

    line: int  # where its fence is, from 1
    info: str  # what the fence says, such as "python" or "{literalinclude} ../file.py"
    lines: list[str]

    @property
    def language(self) -> str:
        """What its code is written in, if it is typed into the page."""
        directive = re.fullmatch(r"\{([\w-]+)\}\s*(.*)", self.info)
        if not directive:
            return self.info.partition(" ")[0].lower()
        return directive[2].strip().lower() if directive[1] in _BLOCKS else ""

    @property
    def options(self) -> set[str]:
        return {option for line in self.lines if (option := _option(line))}


def _option(line: str) -> str:
    found = re.match(r"\s*:([\w-]+):", line)
    return found[1] if found else ""


def fences(text: str, above: int = 0) -> Iterator[Block]:
    """Find the fenced blocks of a page in Markdown, those in others too."""
    for token in _MARKDOWN.parse(text):
        if token.type in ("fence", "colon_fence"):
            assert token.map is not None
            line = above + token.map[0] + 1
            block = Block(line, token.info.strip(), token.content.splitlines())
            yield block
            if not block.language:
                yield from fences(token.content, line)


def typed_rates(text: str) -> list[str]:
    """Find the rates in a page that come from no role, and are none that somebody chose."""
    lines = text.splitlines()
    for block in fences(text):
        if block.language or not block.info.startswith("{"):
            lines[block.line : block.line + len(block.lines)] = [""] * len(block.lines)
    prose = re.sub(r"(?s)(?:\{[\w-]+\})?(`+).+?\1", "", "\n".join(lines))
    found = (re.sub(r"[\s\u00a0]+", " ", one) for one in _RATE.findall(prose))
    return [one for one in found if one not in CHOSEN]


def extension(module: str) -> ModuleType:
    """Import an extension of the site; it imports the harness, which is beside the package."""
    for folder in (ROOT / "docs" / "_ext", ROOT):
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
    return importlib.import_module(module)

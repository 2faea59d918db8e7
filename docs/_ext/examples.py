# SPDX-License-Identifier: BSD-3-Clause
"""What a program prints, asked of the program itself whenever the site is built.

    ```{output} a_packet.py
    :table:
    ```

runs ``examples/a_packet.py`` and shows its output, so that a page cannot say what the program does
not. More words are arguments of the program. With ``table``, lines in columns become a table,
whose long cells are wrapped where there is little room; the first line has the columns' heads.
"""

import dataclasses
import functools
import re
import subprocess
import sys
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from tables import built

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
_PATIENCE_S = 60
_BYTES = re.compile("[0-9a-f]{2}( [0-9a-f]{2})*( …)?")


class ExampleError(RuntimeError):
    """A program that did not do what a page shows; the text says how it ended."""


@functools.cache
def printed(name: str, *arguments: str) -> str:
    """Run an example, and return what it prints."""
    path = EXAMPLES / name
    if not path.is_file():
        raise ExampleError(f"there is no example {name} in {EXAMPLES.name}")
    try:
        done = subprocess.run(
            [sys.executable, path, *arguments],
            capture_output=True,
            text=True,
            cwd=EXAMPLES,
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ExampleError(f"{name} did not end within {_PATIENCE_S} s") from None
    if done.returncode != 0 or done.stderr or not done.stdout.strip():
        said = done.stderr.strip() or "nothing"
        raise ExampleError(f"{name} ended with status {done.returncode} and said: {said}")
    return done.stdout.rstrip("\n")


class Output(SphinxDirective):
    """What an example prints."""

    required_arguments = 1
    optional_arguments = 20
    option_spec = {"table": directives.flag}  # noqa: RUF012 (as docutils wants it)

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(EXAMPLES / self.arguments[0]))
        try:
            text = printed(*self.arguments)
        except ExampleError as error:
            raise self.error(str(error)) from None
        if "table" in self.options:
            return [_table(columns(text))]
        return [nodes.literal_block(text, text, language="none", classes=["output"])]


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """A column of an output: what it is, and its cells from the head on."""

    kind: str
    cells: list[str]


def columns(text: str) -> list[Column]:
    """Cut lines where all of them have two blanks or more."""
    lines = text.splitlines()
    width = max(map(len, lines))
    lines = [line.ljust(width) for line in lines]
    used = "".join(" " if {line[i] for line in lines} == {" "} else "x" for i in range(width))
    table = []
    for match in re.finditer("x+(?: x+)*", used):
        cells = [line[slice(*match.span())] for line in lines]
        kind = "text"
        if all(_BYTES.fullmatch(cell.strip()) for cell in cells[1:]) and cells[0][0] != " ":
            kind = "bytes"
        elif not any(cell.endswith(" ") for cell in cells):
            kind = "number"
        table.append(Column(kind, cells))
    return table


def _table(table: list[Column]) -> nodes.table:
    rows = [
        [_entry(column.kind, cell) for column, cell in zip(table, cells, strict=True)]
        for cells in zip(*(column.cells for column in table), strict=True)
    ]
    return built(rows, classes=["output"])


def _entry(kind: str, cell: str) -> nodes.entry:
    text = cell.strip()
    indented = kind == "text" and cell.startswith(" ")
    classes = [kind, "set-in"] if indented else [kind]
    return nodes.entry("", nodes.paragraph("", text), classes=classes)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("output", Output)
    app.add_css_file("examples.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}

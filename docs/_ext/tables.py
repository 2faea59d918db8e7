# SPDX-License-Identifier: BSD-3-Clause
"""Tables and records that are made from what they describe, so that they cannot differ from it.

    {made-table} KIND WORD ...      a table of one of these kinds, or of ``measured_tables.py``
        chapters            what each changes, as the catalogue says it; of one without a program
            1 | what it is about        a line says it
        make-targets        what ``make help`` lists
        findings            what ``why`` may find, what to check, and which chapters mend it
        fields NAME         the fields of a class: types from its annotations, meanings from the
                            comments on them, or on those of a sample that are called alike
    record-line:: tut-8 sent 4      the first line of that kind in a committed record, laid out;
                            with a number, lists are cut after so many elements
    {record-account} array  what a committed record of an array says, as its command printed it

The examples in the help of the commands are set as code.
"""

import dataclasses
import importlib
import inspect
import itertools
import json
import re
import typing
from collections.abc import Callable, Sequence
from typing import Any

from docutils import nodes
from listings import ROOT, chapter_page
from public_names import comment_on, linked
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from spead_tutorial.chapters.catalogue import ARRAY, CHAPTERS, RECEIVERS
from spead_tutorial.measure.records import Sample, read
from spead_tutorial.results.account import Account
from spead_tutorial.tools.why.stacks import KINDS as KINDS_OF_TIME

_UNITS = {"_ns": "ns", "_bytes": "bytes", "heap_size": "bytes", "packet_size": "bytes"}


@dataclasses.dataclass(frozen=True, slots=True)
class Table:
    """Cells, each a line of text with markup, or several lines, and how they are laid out."""

    rows: Sequence[Sequence[str]]
    stubs: int = 0
    widths: Sequence[int] = ()
    classes: Sequence[str] = ()


#: What stands to the right in a column that has nothing else: numbers, roles that say one, dashes.
_NUMBER = re.compile(r"[\d<-]|\{[a-z-]+\}`")
#: What makes each kind of table, of the words and lines that a page has.
KINDS: dict[str, Callable[..., Table]] = {}


class MadeTable(SphinxDirective):
    """A table of one of these kinds."""

    required_arguments = 1
    optional_arguments = 2
    has_content = True

    def run(self) -> list[nodes.Node]:
        kind, *words = self.arguments
        if kind not in KINDS:
            raise self.error(f"there is no table of {kind}: there are {', '.join(KINDS)}")
        try:
            table = KINDS[kind](*words, *self.content)
        except ValueError as error:
            raise self.error(str(error)) from None
        columns = zip(*table.rows[1:], strict=True)
        aligned = [all(map(_NUMBER.match, column)) for column in columns]
        rows = [
            [self._entry(text, right) for text, right in zip(row, aligned, strict=True)]
            for row in table.rows
        ]
        return [built(rows, table.stubs, table.widths, table.classes)]

    def _entry(self, text: str, right: bool) -> nodes.entry:
        lines = [self.parse_inline(line)[0] for line in _unbroken(text).split("\n")]
        if len(lines) == 1:
            classes = ["number"] * right
            return nodes.entry("", nodes.paragraph("", "", *lines[0]), classes=classes)
        block = (nodes.line("", "", *line) for line in lines)
        return nodes.entry("", nodes.line_block("", *block))


def built(
    rows: Sequence[Sequence[nodes.entry]],
    stubs: int = 0,
    widths: Sequence[int] = (),
    classes: Sequence[str] = (),
) -> nodes.table:
    """Return a table, of which the first row and so many columns are heads."""
    group = nodes.tgroup(cols=len(rows[0]))
    for n, width in enumerate(widths or [1] * len(rows[0])):
        column = nodes.colspec(colwidth=width)
        if n < stubs:
            column["stub"] = 1
        group += column
    head, *body = (nodes.row("", *row) for row in rows)
    group += [nodes.thead("", head), nodes.tbody("", *body)]
    return nodes.table("", group, classes=[*classes, *(() if widths else ["colwidths-auto"])])


def chapters(*lines: str) -> Table:
    found = {one.number: ("sends", one.change) for one in CHAPTERS}
    found |= {one.number: ("receives", one.change) for one in RECEIVERS}
    change = "; the receiver has ".join(one.change for one in ARRAY)
    found |= {ARRAY[0].number: ("sends, receives", change)}
    found |= {int(number): ("", words) for number, words in (line.split(" | ") for line in lines)}
    rows = [(f"[]({chapter_page(number)})", *words) for number, words in sorted(found.items())]
    return Table([("Chapter", "Its program", "What changes"), *rows])


def make_targets() -> Table:
    text = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z-]+):.*?## (.*)", text, re.MULTILINE)
    rows = [(f"``make {target}``", f"{what[0].upper()}{what[1:]}.") for target, what in targets]
    return Table([("Command", "What it does"), *rows], widths=(30, 70))


def findings() -> Table:
    rows: list[tuple[str, ...]] = [
        ("Finding", "What it is, and what to check", "Sender", "Receiver")
    ]
    for name, kind in KINDS_OF_TIME.items():
        if kind.check:
            links = [f"[]({chapter_page(number)})" for number in kind.chapters]
            said = f"{kind.words[0].upper()}{kind.words[1:]}. {kind.check}"
            rows.append((f"``{name}``", said, *links))
    return Table(rows, widths=(16, 54, 15, 15))


def fields(full_name: str) -> Table:
    """Return the fields of a class, without those of its bases."""
    module, _, name = full_name.rpartition(".")
    cls = getattr(importlib.import_module(module), name)
    hints = typing.get_type_hints(cls)
    there = {field: hints[field] for field in inspect.get_annotations(cls) if field[0] != "_"}
    rows = [("Field, type, unit", "Meaning")]
    for field, hint in there.items():
        said = [comment_on(owner.__module__, owner, field) for owner in (cls, Sample)]
        if not any(said):
            raise ValueError(f"{name}.{field} has no comment that begins with #:")
        (meaning,) = linked([" ".join(said[0] or said[1]).strip()], full_name, set(there))
        unit = [unit for end, unit in _UNITS.items() if field.endswith(end)]
        rows.append((f"``{field}``\n{', '.join([_type(hint), *unit[:1]])}", meaning))
    return Table(rows, widths=(35, 65))


def _type(hint: Any) -> str:
    """Return what JSON has there, its types by their Python names."""
    if typing.get_origin(hint) is typing.Literal:
        hint = type(typing.get_args(hint)[0])
    text = hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)
    text = re.sub(r"typing\.Optional\[(\w+)\]", r"\1 or null", text)
    text = text.replace("tuple[int, ...]", "list[int]").replace("| None", "or null")
    return re.sub(r"dict\[.*\]", "dict", text)


class RecordLine(SphinxDirective):
    """A line of a committed record."""

    required_arguments = 2
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        name, kind, *most = self.arguments
        path = ROOT / "bench" / "results" / f"{name}.jsonl"
        self.env.note_dependency(str(path))
        with path.open() as file:
            lines = map(json.loads, file)
            line = next((entry for entry in lines if entry["record"] == kind), None)
        if line is None:
            raise self.error(f"{path.name} has no line of kind {kind!r}")
        text = shown(line, int(most[0]) if most else None)
        return [nodes.literal_block(text, text, language="none", classes=["record"])]


class RecordAccount(SphinxDirective):
    """The account of an array's committed record, below the command that it is of."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        path = ROOT / "bench" / "results" / f"{self.arguments[0]}.jsonl"
        self.env.note_dependency(str(path))
        recording = read(path)
        lines = Account.of(recording).lines()
        text = "\n".join([f"$ .venv/bin/{recording.header.settings['drawn_by']}", *lines])
        return [nodes.literal_block(text, text, language="console")]


def shown(line: dict[str, Any], most: int | None) -> str:
    """Return a line to be read: short lists in one line, of longer ones their beginning."""
    text = json.dumps(_cut(line, most), indent=2, ensure_ascii=False)
    short = re.compile(r"\[\n[^\[\]{}]+\]")
    text = short.sub(lambda found: json.dumps(json.loads(found[0]), ensure_ascii=False), text)
    return text.replace('"…"', "…")


def _cut(value: Any, most: int | None) -> Any:
    if isinstance(value, dict):
        return {key: _cut(element, most) for key, element in value.items()}
    if isinstance(value, list) and most is not None and len(value) > most:
        return [*itertools.islice(value, most), "…"]
    return value


def _unbroken(text: str) -> str:
    """Have no number end a line in its midst."""
    return text.replace("\N{THIN SPACE}", "\N{NARROW NO-BREAK SPACE}")


# ---- Commands ----


def set_examples(app: Sphinx, context: Any, lines: list[str]) -> None:
    """Set the examples and the names in a command's help as code."""
    text = re.sub(r"(?<!`)`([\w-]+)`(?!`)", r"``\1``", "\n".join(lines))
    examples = re.compile(r"^(\| )?Example: (.*)\n?", re.MULTILINE)
    if commands := [match[2] for match in examples.finditer(text)]:
        text = examples.sub("", text).rstrip("| \n")
        code = "\n".join(f"   {command}" for command in commands)
        text += f"\n\nFor example:\n\n.. code-block:: sh\n\n{code}\n"
    lines[:] = text.split("\n")


def set_defaults(app: Sphinx, context: Any, lines: list[str]) -> None:
    """Say what an option may be, and what it is by default, as one types it."""
    for index, line in enumerate(lines):
        line = re.sub(r"``PosixPath\('(.*)'\)``|``'(.*)'``", r"``\1\2``", line)
        lines[index] = line.replace(":options:", ":choices:")


def setup(app: Sphinx) -> dict[str, bool]:
    KINDS.update({"chapters": chapters, "fields": fields, "findings": findings})
    KINDS["make-targets"] = make_targets
    app.add_directive("made-table", MadeTable)
    app.add_directive("record-account", RecordAccount)
    app.add_directive("record-line", RecordLine)
    app.connect("sphinx-click-process-description", set_examples)
    app.connect("sphinx-click-process-options", set_defaults)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

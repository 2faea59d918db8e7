# SPDX-License-Identifier: BSD-3-Clause
"""Tables that are made from what they describe, so that they cannot differ from it.

    .. make-targets::

        what ``make help`` lists;

    .. fields:: spead_tutorial.records.Sample

        the fields of a dataclass: types from its annotations, meanings from its docstring;

    .. record-line:: tut-8 sample

        the first line of that kind in a committed record, laid out to be read. With a number, lists
        are cut after so many elements;

    .. schema-version::

        which version of the format the package writes.

The examples in the help of the commands are set as code.
"""

import dataclasses
import importlib
import inspect
import itertools
import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from numpydoc.docscrape import NumpyDocString
from public_names import linked
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from spead_tutorial import records

ROOT = Path(__file__).resolve().parent.parent.parent
_UNITS = {"_ns": "ns", "_bytes": "bytes", "heap_size": "bytes", "packet_size": "bytes"}


class MakeTargets(SphinxDirective):
    """The targets of the Makefile that say what they do."""

    def run(self) -> list[nodes.Node]:
        path = ROOT / "Makefile"
        self.env.note_dependency(str(path))
        targets = re.findall(r"^([a-z-]+):.*?## (.*)", path.read_text(), re.MULTILINE)
        rows = [[f"``make {target}``", f"{what[0].upper()}{what[1:]}."] for target, what in targets]
        return self.parse_text_to_nodes(table(["Command", "What it does"], rows, "30 70"))


class Fields(SphinxDirective):
    """The fields of a dataclass."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module, _, name = self.arguments[0].rpartition(".")
        cls = getattr(importlib.import_module(module), name)
        self.env.note_dependency(inspect.getfile(cls))
        rows = []
        said = {
            field_name.strip(): " ".join(parameter.desc)
            for parameter in NumpyDocString(inspect.getdoc(cls) or "")["Parameters"]
            for field_name in parameter.name.split(",")
        }
        fields = {field.name: field for field in dataclasses.fields(cls)}
        if said.keys() != fields.keys():
            raise self.error(f"the docstring of {name} and its fields differ")
        for field in fields.values():
            (meaning,) = linked([said[field.name]], self.arguments[0], set(fields))
            unit = [unit for end, unit in _UNITS.items() if field.name.endswith(end)]
            kind = ", ".join([_type(field), *unit[:1]])
            rows.append([f"| ``{field.name}``\n       | {kind}", meaning])
        return self.parse_text_to_nodes(table(["Field, type, unit", "Meaning"], rows, "35 65"))


def _type(field: dataclasses.Field[Any]) -> str:
    """Return what JSON has there, its types by their Python names."""
    text = str(getattr(field.type, "__name__", field.type))
    if not isinstance(field.type, type) or "[" in str(field.type):
        text = str(field.type)
    text = text.replace("typing.", "").replace("tuple[int, ...]", "list[int]")
    return re.sub(r"dict\[.*\]", "dict", text).replace("| None", "or null")


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


def shown(line: dict[str, Any], most: int | None) -> str:
    """Return a line to be read: short lists in one line, of longer ones their beginning."""
    text = json.dumps(_cut(line, most), indent=2, ensure_ascii=False)
    text = re.sub(r"\[\s+([^\[\]{}]+?)\s+\]", lambda m: f"[{_joined(m[1])}]", text)
    return text.replace('"…"', "…")


class SchemaVersion(SphinxDirective):
    """The version of the format of records."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(inspect.getfile(records))
        return self.parse_text_to_nodes(
            f"The format's version is **{records.SCHEMA}**: "
            ":py:data:`spead_tutorial.records.SCHEMA`, and ``schema`` in every header."
        )


def _cut(value: Any, most: int | None) -> Any:
    if isinstance(value, dict):
        return {key: _cut(element, most) for key, element in value.items()}
    if isinstance(value, list) and most is not None and len(value) > most:
        return [*itertools.islice(value, most), "…"]
    return value


def _joined(text: str) -> str:
    return re.sub(r",\s+", ", ", text)


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


def table(heads: list[str], rows: list[list[str]], widths: str) -> str:
    """Return reST of a table."""
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in [heads, *rows]:
        for index, cell in enumerate(row):
            lines.append(f"   {'*' if index == 0 else ' '} - {cell}".rstrip())
    return "\n".join([*lines, ""])


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("make-targets", MakeTargets)
    app.add_directive("fields", Fields)
    app.add_directive("record-line", RecordLine)
    app.add_directive("schema-version", SchemaVersion)
    app.connect("sphinx-click-process-description", set_examples)
    app.connect("sphinx-click-process-options", set_defaults)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

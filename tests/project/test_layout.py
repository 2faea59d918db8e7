# SPDX-License-Identifier: BSD-3-Clause
"""The map in CONTRIBUTING.md is true: nothing imports, or includes, what comes after it."""

import ast
import graphlib
import re
from pathlib import Path

from support import ROOT

MAP = (ROOT / "CONTRIBUTING.md").read_text()
PACKAGE = ROOT / "spead_tutorial"


def ranks() -> dict[str, int]:
    """The row of each module, or folder of modules, in the table of the Python package."""
    table = MAP.split("| wing | modules | hold |")[1].split("\n\n")[0]
    rows = [line.split("|")[2] for line in table.splitlines() if line.startswith("| ")]
    return {name: i for i, row in enumerate(rows) for name in re.findall(r"`(\w+)`", row)}


def modules() -> dict[str, Path]:
    """Every module of the package, by the name that it is imported by."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of the package that one of them imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            above = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
            within = ".".join(above) + "." if node.level else ""
            module = f"{within}{node.module or ''}".strip(".")
            wholes = (f"{module}.{alias.name}" for alias in node.names)
            found |= {whole if whole in known else module for whole in wholes}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & known.keys() - {name, "spead_tutorial"}


def imports() -> dict[str, set[str]]:
    """What each module of the package imports of it."""
    known = modules()
    return {name: imported(name, path, known) for name, path in known.items()}


def room(module: str) -> str:
    """The part of a module's name that the map has."""
    return f"{module}.".split(".")[1]


def test_every_module_is_on_the_map_and_every_name_there_is_a_module():
    there = {room(name) for name in modules()} - {""} | {"_core"}
    hidden = {name for name in there if name.startswith("_")}
    assert there - hidden <= ranks().keys() <= there


def test_no_module_imports_one_that_comes_after_it():
    rank = ranks()
    upward = [
        f"{name} imports {other}"
        for name, others in imports().items()
        for other in others
        if rank.get(room(other), -1) > rank.get(room(name), len(rank))
    ]
    assert upward == []


def test_no_modules_import_each_other_in_a_circle():
    graphlib.TopologicalSorter(imports()).prepare()  # it names the circle


def part_of_the_core(file: str) -> str:
    wholes = ("source", "stream", "thread_pool", "transport")
    return next((whole for whole in wholes if file.startswith(f"{whole}_")), file)


def test_no_file_of_the_core_includes_one_that_comes_after_it():
    row = next(line for line in MAP.splitlines() if line.startswith("| `csrc/src` |"))
    order = re.findall(r"\w+", row.split("includes only those before it:")[1])
    sources = sorted((ROOT / "csrc/src").glob("*.[ch]"))
    assert {part_of_the_core(path.stem) for path in sources} == set(order)
    for path in sources:
        own = order.index(part_of_the_core(path.stem))
        for name in re.findall(r'#include "(\w+)\.h"', path.read_text()):
            assert order.index(part_of_the_core(name)) <= own, f"{path.name} includes {name}.h"

# SPDX-License-Identifier: BSD-3-Clause
"""The map in CONTRIBUTING.md is true: nothing imports, or includes, what comes after it."""

import ast
import re
from pathlib import Path

from support import ROOT

MAP = (ROOT / "CONTRIBUTING.md").read_text()
PACKAGE = ROOT / "spead_tutorial"
#: Modules without a row: what every one may use, and programs.
OUTSIDE = {"__init__", "_standard_streams", "chapters", "peer"}


def ranks() -> dict[str, int]:
    """The row of each module in the table of the Python package."""
    table = MAP.split("nothing imports upwards:")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {name: i for i, row in enumerate(rows) for name in re.findall(r"`(\w+)`", row)}


def modules() -> dict[str, list[Path]]:
    """The files of each module, or package, right below ours."""
    found: dict[str, list[Path]] = {}
    for path in PACKAGE.rglob("*.py"):
        found.setdefault(path.relative_to(PACKAGE).parts[0].removesuffix(".py"), []).append(path)
    found["_core"] = []  # Cython
    return {name: paths for name, paths in found.items() if name not in OUTSIDE}


def imported(path: Path) -> set[str]:
    """The modules of the package that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            whole = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in whole if name.startswith("spead_tutorial.")}
    return found


def test_every_module_is_on_the_map_and_every_name_there_is_a_module():
    on_the_map = {name for name in ranks() if not name.startswith("_") or name == "_core"}
    public = {name for name in modules() if not name.startswith("_") or name == "_core"}
    assert on_the_map == public


def test_no_module_imports_one_that_comes_after_it():
    rank = ranks()
    upward = [
        f"{path.relative_to(ROOT)} imports {name}"
        for module, paths in modules().items()
        if module in rank
        for path in paths
        for name in imported(path)
        if rank.get(name, -1) > rank[module]
    ]
    assert upward == []


def part_of_the_core(file: str) -> str:
    return "transport" if file.startswith("transport_") else file


def test_no_file_of_the_core_includes_one_that_comes_after_it():
    row = next(line for line in MAP.splitlines() if line.startswith("| `csrc/src` |"))
    order = re.findall(r"\w+", row.split("includes only those before it:")[1])
    sources = sorted((ROOT / "csrc/src").glob("*.[ch]"))
    assert {part_of_the_core(path.stem) for path in sources} == set(order)
    for path in sources:
        own = order.index(part_of_the_core(path.stem))
        for name in re.findall(r'#include "(\w+)\.h"', path.read_text()):
            assert order.index(part_of_the_core(name)) <= own, f"{path.name} includes {name}.h"

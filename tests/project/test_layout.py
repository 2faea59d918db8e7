# SPDX-License-Identifier: BSD-3-Clause
"""The map in CONTRIBUTING.md is true of the core: no file includes one that comes after it.

What the Python package may import, ``make lint`` sees to: see pyproject.toml.
"""

import re
import tomllib

from support import ROOT

MAP = (ROOT / "CONTRIBUTING.md").read_text()


def rows_of_the_map() -> list[set[str]]:
    """The modules, or folders of them, in each row of the table of the Python package."""
    table = MAP.split("| wing | modules | hold |")[1].split("\n\n")[0]
    rows = [line.split("|")[2] for line in table.splitlines() if line.startswith("| ")]
    return [{*re.findall(r"`(\w+)`", row)} for row in rows]


def test_the_map_has_the_layers_that_imports_are_held_to():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = [{*one.split(" : ")} for one in contracts["contracts"][0]["layers"]]
    mapped = [row - {"_core"} for row in rows_of_the_map()]
    for row, layer in zip(mapped, reversed(layers), strict=True):
        assert {name for name in layer if name[0] != "_"} <= row <= layer


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

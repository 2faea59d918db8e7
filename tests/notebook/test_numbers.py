# SPDX-License-Identifier: BSD-3-Clause
"""Numbers that readers are invited to change: ``HEAP = 8192  # try 1000, 65536``."""

import ast
import re
from collections.abc import Iterator

import pytest

from spead_tutorial.tools import notebooks
from support import ROOT
from support.labs import needs_lab

FOLDER = ROOT / "notebooks"
NAMES = notebooks.names(FOLDER)

_INVITED = re.compile(r"(?m)^(\w+ = )(.+?)(  # try (.+))$")


def changes(name: str) -> Iterator[tuple[str, str]]:
    """Yield lines of a notebook that a reader may change, each with what may be in its place."""
    for line in _INVITED.finditer((FOLDER / f"{name}.md").read_text()):
        values = ast.parse(f"({line[4]},)", mode="eval").body
        assert isinstance(values, ast.Tuple)
        for value in values.elts:
            yield line[0], f"{line[1]}{ast.unparse(value)}{line[3]}"


@pytest.mark.parametrize("name", NAMES)
def test_a_reader_is_invited_to_change_a_number(name):
    assert list(changes(name))


@needs_lab
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "line", "changed"),
    [
        pytest.param(name, *change, id=f"{name}: {change[1].partition('  #')[0]}")
        for name in NAMES
        for change in changes(name)
    ],
)
def test_a_notebook_goes_on_when_a_number_is_changed(name, line, changed, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    notebook = notebooks.lesson(notebooks.read(FOLDER / f"{name}.md"))
    for cell in notebook.cells:
        cell.source = cell.source.replace(line, changed)
    notebooks.execute(notebook, FOLDER, quick=True)

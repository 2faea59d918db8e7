# SPDX-License-Identifier: BSD-3-Clause
"""A reader's own copies of the notebooks: what is changed in them is kept, and seen by no git."""

import shutil
from pathlib import Path

import nbformat
import pytest

from spead_tutorial.tools import notebooks
from spead_tutorial.tools.notebooks import OWN, START, copies
from support import ROOT
from support.needs import need
from support.typed import run

FOLDER = ROOT / "notebooks"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Some notebooks and their sources, as a clone has them."""
    target = tmp_path / "notebooks"
    target.mkdir()
    for name in (START, "04_measure_it"):
        for kind in ("md", "ipynb"):
            shutil.copy(FOLDER / f"{name}.{kind}", target)
    return target


@pytest.fixture
def own(folder: Path) -> Path:
    copies(folder, folder.parent / OWN)
    return folder.parent / OWN / f"{START}.ipynb"


def change(path: Path, old: str, new: str) -> None:
    """Change a notebook's cells; each has to have been there."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_each_notebook_is_there_once_without_its_tests_and_its_outputs_look_stored(own):
    files = [path.name for path in sorted(own.parent.iterdir())]
    assert files == [f"{START}.ipynb", "04_measure_it.ipynb"]
    for path in own.parent.iterdir():
        notebook = nbformat.read(path, 4)
        nbformat.validate(notebook)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert {cell.execution_count for cell in code} == {None}
        assert any(cell.outputs for cell in code)
        assert not any("assert" in cell.source for cell in code)
        assert "stored" in notebook.cells[1].source
        assert "jupytext" not in notebook.metadata


def test_what_a_reader_has_changed_is_kept_and_what_is_missing_made(folder, own):
    change(own, "# Ask the doctor", "# Ask the nurse")
    other = own.with_name("04_measure_it.ipynb")
    other.unlink()
    copies(folder, own.parent)
    assert "# Ask the nurse" in own.read_text()
    assert other.exists()


def test_git_sees_no_copies():
    need("git")
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone")
    done = run("git", "check-ignore", f"{OWN}/{START}.ipynb", cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_a_file_where_the_copies_go_is_a_line(folder, own, here, monkeypatch):
    shutil.rmtree(own.parent)
    own.parent.write_text("")
    monkeypatch.chdir(folder.parent)
    done = here("notebook")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(f"{notebooks.OWN} is no folder for your copies: rename it\n")

# SPDX-License-Identifier: BSD-3-Clause
"""A reader's own copies of the notebooks: what is changed in them is kept, and seen by no git."""

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest

from spead_tutorial.tools import notebooks
from spead_tutorial.tools.notebooks import OWN, START, copies
from support import ROOT
from support.needs import need

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


@pytest.mark.timeout(600)  # a busy machine takes minutes to import JupyterLab
def test_notebooks_that_are_open_and_saved_leave_the_clone_as_it_was(folder, tmp_path):
    need("git")
    shutil.copy(ROOT / ".gitignore", tmp_path)
    commit = ["-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qm", "all"]
    for words in (["init", "-q"], ["add", "."], commit):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    command = [sys.executable, "-P", "-m", "spead_tutorial.tools.cli", "notebook", "--"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ["--no-browser", "--IdentityProvider.token=a", "--allow-root"]
    options += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    log = tmp_path.with_name(f"{tmp_path.name}.log")
    with log.open("w") as said:
        server = subprocess.Popen([*command, *options], cwd=tmp_path, stderr=said, stdout=said)
    try:
        while not answers(f"http://127.0.0.1:{port}/api"):
            assert server.poll() is None, log.read_text()
            time.sleep(0.05)
        for name in (START, "04_measure_it"):
            place = f"http://127.0.0.1:{port}/api/contents/{OWN}/{name}.ipynb?token=a"
            with urllib.request.urlopen(place, timeout=60) as answer:
                model = json.load(answer)
            model["content"]["cells"][3]["metadata"]["seen"] = True
            saved = urllib.request.Request(place, json.dumps(model).encode(), method="PUT")
            urllib.request.urlopen(saved, timeout=60).close()
            assert '"seen": true' in (tmp_path / OWN / f"{name}.ipynb").read_text()
    finally:
        server.terminate()
        server.wait(60)
    status = ["git", "status", "--porcelain"]
    done = subprocess.run(status, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout == ""


def answers(place: str) -> bool:
    """Say whether a server listens; JupyterLab says so before it does."""
    with contextlib.suppress(OSError), urllib.request.urlopen(place, timeout=60):
        return True
    return False


def test_a_file_where_the_copies_go_is_a_line(folder, own, here, monkeypatch):
    shutil.rmtree(own.parent)
    own.parent.write_text("")
    monkeypatch.chdir(folder.parent)
    done = here("notebook")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(f"{notebooks.OWN} is no folder for your copies: rename it\n")

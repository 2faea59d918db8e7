# SPDX-License-Identifier: BSD-3-Clause
"""The stored notebooks, and what runs them: what is wrong must be noticed, nothing may hang."""

import itertools
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from nbval.plugin import get_sanitize_patterns

from spead_tutorial.tools import notebooks
from spead_tutorial.tools.notebooks import START, names
from support import ROOT, load
from support.labs import needs_lab
from support.stored import complaints, unchecked

FOLDER = ROOT / "notebooks"
NAMES = names(FOLDER)
SCRIPT = load("ci_notebooks", ".ci/notebooks.py")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the first notebook, with what nbval needs."""
    for name in ("conftest.py", "sanitize.cfg", f"{START}.ipynb", f"{START}.md"):
        shutil.copy(FOLDER / name, tmp_path)
    return tmp_path


def make(*cells: str, outputs: Any = ()) -> Any:
    """Make a notebook of such cells, each with these outputs."""
    made = [nbformat.v4.new_code_cell(one, outputs=[*outputs]) for one in cells]
    return nbformat.v4.new_notebook(cells=made)


# ---- What is stored ----


def wrong(name: str, folder: Path = FOLDER) -> list[str]:
    """Say what is wrong with a notebook that is stored, also with whose machine it tells of."""
    stored = nbformat.read(folder / f"{name}.ipynb", 4)
    found = complaints(notebooks.read(folder / f"{name}.md"), stored)
    return [*found, *SCRIPT.private(stored)]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_stored_is_what_the_sources_give_and_tells_nothing_of_whose_machine_it_was(name):
    assert wrong(name) == []


def test_every_notebook_has_the_headings_and_files_that_readers_look_for():
    assert NAMES[0] == START
    for kind in ("md", "ipynb"):
        assert [path.stem for path in sorted(FOLDER.glob(f"*.{kind}"))] == list(NAMES)
    texts = {name: (FOLDER / f"{name}.md").read_text() for name in NAMES}
    for name, text in texts.items():
        assert re.search(r"(?m)^# \S", text), name
        for words in ("What you will learn", "What you need", "What to take away"):
            assert words in text, name
        links = re.findall(r"\]\(([^)#]+)\)", text)
        local = [link for link in links if "://" not in link]
        assert [link for link in local if not (FOLDER / link).exists()] == [], name
    for name, following in itertools.pairwise(NAMES):
        assert f"]({following}.ipynb)" in texts[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_lesson_is_free_of_tests(name):
    lesson = notebooks.lesson(notebooks.read(FOLDER / f"{name}.md"))
    code = "\n".join(cell.source for cell in lesson.cells if cell.cell_type == "code")
    assert re.findall(r"(?m)^\s*assert\b.*|.*QUICK.*", code) == []


def test_the_sanitizers_rules_are_all_understood():
    text = (FOLDER / "sanitize.cfg").read_text()
    rules = get_sanitize_patterns(text)
    assert len(rules) == len(re.findall(r"(?m)^regex:", text))
    runs = [
        "<X at 0x7f011201> heap 2, packet 1, sample 0: expected 1, found 2\n",
        "<X at 0x7f011202> heap 3, packet 2, sample 7: expected 2, found 3\n",
    ]
    for pattern, replacement in rules:
        runs = [re.sub(pattern, replacement, run) for run in runs]
    assert runs == ["<X at ADDRESS> HEAP\n"] * 2


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda cell: cell.update(source="1"), "is not what the source has"),
        (lambda cell: cell.update(execution_count=None), "has not been run"),
        (lambda cell: cell.outputs[0].update(text="in /home/me/x"), "'/home/me' in its output"),
        (lambda cell: cell.outputs[0].update(name="stderr"), "wrote to stderr"),
        (lambda cell: cell.outputs.append(picture()), "a picture without words"),
    ],
)
def test_what_is_wrong_with_a_stored_notebook_is_found(folder, change, complaint):
    path = folder / f"{START}.ipynb"
    notebook = nbformat.read(path, 4)
    change(next(cell for cell in notebook.cells if cell.get("outputs")))
    nbformat.write(notebook, path)
    assert any(complaint in one for one in wrong(START, folder))


def test_a_stored_notebook_says_how_long_its_run_took(folder, monkeypatch):
    clock = iter((100.0, 142.7))
    monkeypatch.setattr(SCRIPT, "FOLDER", folder)
    monkeypatch.setattr(SCRIPT, "time", SimpleNamespace(monotonic=clock.__next__))
    monkeypatch.setattr(notebooks, "execute", lambda *_, **__: None)
    assert SCRIPT.refresh([START]) == 0
    stored = nbformat.read(folder / f"{START}.ipynb", 4)
    assert stored.metadata[notebooks.METADATA] == {"seconds": 43}


def picture() -> Any:
    """Make an output that shows a picture, and tells nothing of it."""
    return nbformat.v4.new_output("display_data", {"image/png": "iVBORw=="})


def test_a_measurement_that_nothing_makes_sure_of_is_found():
    cells = ["a = notebook.measure(place, runs)", "b = notebook.measure(place, runs)", "assert b"]
    found = list(unchecked(make(*cells)))
    assert found[0] == "code cell 0 measures, but no cell after it asserts something"
    assert found[1:] == [
        f"code cell {i} measures, but has no tag nbval-ignore-output" for i in (0, 1)
    ]


def words(text: str) -> Any:
    """Make a notebook that has printed this."""
    return make("", outputs=[nbformat.v4.new_output("stream", text=text)])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("min/max, in MB/s", None),
        ("in /home/max/x", "/home/max"),
        ("max@box:~$ make", "max@box"),
    ],
)
def test_a_user_is_found_in_paths_and_prompts(text, found):
    complaints = [] if found is None else [f"cell 0 has {found!r} in its output"]
    assert list(SCRIPT.private(words(text))) == complaints


def test_bytes_of_a_picture_tell_of_nobody():
    picture = nbformat.v4.new_output("display_data", {"image/png": "iVBOR+/home/somebody"})
    assert list(SCRIPT.private(make("", outputs=[picture]))) == []


# ---- Running ----


def test_a_kernel_listens_where_no_other_program_can():
    notebook = make("import ipykernel, json; json.load(open(ipykernel.get_connection_file()))")
    notebooks.execute(notebook, FOLDER, quick=True)
    assert "'transport': 'ipc'" in str(notebook.cells[-1].outputs)


@needs_lab
@pytest.mark.thorough
@pytest.mark.parametrize("name", [START, "04_measure_it"])
def test_all_cells_can_be_run_twice_in_one_kernel(name, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))  # others measure at the same time
    notebook, again = (notebooks.read(FOLDER / f"{name}.md") for _ in range(2))
    for cell in again.cells:
        cell["id"] += "-again"
    notebook.cells += again.cells
    notebooks.execute(notebook, FOLDER, quick=True)
    assert sum("The lab is open" in str(cell.get("outputs")) for cell in notebook.cells) == 2


# ---- As pages ----


def test_pages_are_whole_and_lead_to_each_other(tmp_path):
    source = tmp_path / "notebooks"
    source.mkdir()
    (source / f"{START}.md").write_text(
        "# A <title>\n\n[on](01_spead_on_the_wire.ipynb), [program](../a.py)\n\n"
        "```{code-cell} ipython3\nfrom IPython.display import display\n"
        "svg = '<svg xmlns=\"http://www.w3.org/2000/svg\"/>'\n"
        "display({'image/svg+xml': svg, 'image/png': 'iVBORw==', 'text/plain': 'its title'},\n"
        "    raw=True, metadata={'image/svg+xml': {'alt': 'a <picture>'}})\n```\n"
    )
    (source / "01_spead_on_the_wire.md").write_text(
        "# Two\n\n```{code-cell} ipython3\n1 / 0\n```\n"
    )
    lines: list[str] = []
    output = tmp_path / "out" / "pages"
    failures = notebooks.write_pages(source, output, lines.append, quick=True)
    assert lines == [f"notebook 1 of 2: {START}", "notebook 2 of 2: 01_spead_on_the_wire"]
    assert failures == ["notebook 01_spead_on_the_wire: ZeroDivisionError: division by zero"]
    page = (output / f"{START}.html").read_text()
    assert 'href="01_spead_on_the_wire.html"' in page
    assert 'href="../../a.py"' in page
    assert 'alt="a &lt;picture&gt;"' in page
    assert page.count("<img") == 1
    assert "data:image/png;base64,iVBORw==" not in page  # one kind of it is enough
    assert "<script" not in page
    assert "No description" not in page
    assert "<title>A &lt;title&gt;</title>" in page


def test_without_notebooks_it_says_what_to_do(tmp_path):
    with pytest.raises(notebooks.MissingError, match="there is no folder"):
        notebooks.write_pages(tmp_path, tmp_path / "out", print, quick=True)

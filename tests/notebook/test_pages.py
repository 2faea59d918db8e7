# SPDX-License-Identifier: BSD-3-Clause
"""Notebooks on the site: as pages, where code that only draws is folded away, and as files."""

import ast
import re
import zipfile
from collections.abc import Iterator

import nbformat
import pytest

from spead_tutorial.tools.notebooks import names
from support import ROOT
from support.site import extension

FOLDER = ROOT / "notebooks"
NAMES = names(FOLDER)

_FOLDED = "hide-input"
#: What code speaks of that draws, and how many lines of that a reader may have to pass over.
_DRAWN_WITH = {"Patch", "Sheet", "axes", "axis", "figure", "plots", "plt", "sheet", "theme"}
_MOST_DRAWING = 3
_AWAITING = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def drawing(source: str) -> int:
    """Count the lines of statements that draw: with matplotlib, our plots, or elements of SVG."""
    code = compile(source, "cell", "exec", _AWAITING)
    simple = [
        one for one in ast.walk(code) if isinstance(one, ast.stmt) and not hasattr(one, "body")
    ]
    found = [one for one in simple if any(map(_draws, ast.walk(one)))]
    return sum((one.end_lineno or one.lineno) - one.lineno + 1 for one in found)


def _draws(one: ast.AST) -> bool:
    if isinstance(one, ast.Constant):
        return isinstance(one.value, str) and one.value.lstrip().startswith(("<div", "<svg"))
    return isinstance(one, ast.Name) and one.id in _DRAWN_WITH


def imported(source: str) -> Iterator[str]:
    """Yield the packages that a cell imports from."""
    for one in ast.walk(compile(source, "cell", "exec", _AWAITING)):
        if isinstance(one, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in one.names)
        elif isinstance(one, ast.ImportFrom):
            yield (one.module or "").partition(".")[0]


def test_code_that_only_draws_is_folded_away_on_the_site_and_in_jupyterlab():
    for name in NAMES:
        for cell in nbformat.read(FOLDER / f"{name}.ipynb", 4).cells:
            if cell.cell_type == "code":
                where = f"{name}: {cell.source.splitlines()[0]}"
                folded = _FOLDED in cell.metadata.get("tags", [])
                draws = drawing(cell.source) > _MOST_DRAWING
                if draws or "matplotlib" in imported(cell.source):
                    assert folded, f"{where}: it draws, so it needs the tag {_FOLDED}"
                hidden = cell.metadata.get("jupyter", {}).get("source_hidden", False)
                assert hidden == folded, where


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("recording = await measure(\n    place,\n)\nprint(recording)", 0),
        ("notebook.picture(\n    plots.timeline,\n    recording,\n)", 4),
        ("def draw(x):\n    '''Draw.'''\n    axis.plot(x)\n    x += 1\n    axis.grid()\n", 2),
        ("html = f'<div>{x}</div>'\nname = 'a < b'", 1),
    ],
)
def test_lines_that_draw_are_told_from_others(source, lines):
    assert drawing(source) == lines


# ---- Cards ----


@pytest.mark.parametrize("name", NAMES)
def test_a_card_says_what_its_notebook_is_about_and_shows_a_picture(name):
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", 4)
    text = extension("notebook_pages").cards({name: notebook})
    assert re.search(r"^```\{thumbnail\} [\w-]+\n```\n[A-Z].+[.?]\n\n", text, re.M)


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({}, ""),
        ({"spead_tutorial": {"seconds": 43}}, ", ran for 43 s"),
        ({"spead_tutorial": {"seconds": 140}}, ", ran for 2 min"),
    ],
)
def test_a_card_says_how_long_the_stored_run_took_where_that_is_known(metadata, said):
    cells = [nbformat.v4.new_markdown_cell("# One")]
    card = {"about": "some", "picture": "one"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"card": card} | metadata)
    assert f"<../notebooks/one.ipynb>`{said}\n" in extension("notebook_pages").cards(
        {"one": notebook}
    )


# ---- Files ----


def test_the_zip_has_all_notebooks_with_what_they_link_to_and_is_always_the_same(tmp_path):
    one, other = tmp_path / "all.zip", tmp_path / "again" / "all.zip"
    other.parent.mkdir()
    for path in (one, other):
        extension("notebook_pages").bundle(ROOT, path)
    assert one.read_bytes() == other.read_bytes()
    zipfile.ZipFile(one).extractall(tmp_path)
    folder = tmp_path / "all" / "notebooks"
    assert sorted(path.stem for path in folder.iterdir()) == list(NAMES)
    for path in folder.iterdir():
        nbformat.validate(nbformat.read(path, 4))
        links = re.findall(r"\]\(([^)#:]+)\)", path.read_text())
        assert [link for link in links if not (folder / link).is_file()] == [], path.name

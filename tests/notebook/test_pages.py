# SPDX-License-Identifier: BSD-3-Clause
"""Notebooks on the site: as pages, where code that only draws is folded away."""

import re

import nbformat
import pytest

from spead_tutorial.tools.notebooks import names
from support import ROOT
from support.site import extension

FOLDER = ROOT / "notebooks"
NAMES = names(FOLDER)

_FOLDED = "hide-input"


def test_code_that_is_folded_away_on_the_site_is_so_in_jupyterlab():
    folded = 0
    for name in NAMES:
        for cell in nbformat.read(FOLDER / f"{name}.ipynb", 4).cells:
            is_folded = _FOLDED in cell.metadata.get("tags", [])
            assert cell.metadata.get("jupyter", {}).get("source_hidden", False) == is_folded, name
            folded += is_folded
    assert folded > 10


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

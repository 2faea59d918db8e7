# SPDX-License-Identifier: BSD-3-Clause
"""What the README shows works as it stands there."""

import re
from pathlib import Path

import nbformat
import pytest
from PIL import Image

from spead_tutorial.tools import notebooks
from support import ROOT
from support.processes import run_script
from support.site import extension, typed_rates

README = ROOT / "README.md"
#: A number that was measured, between the site's role that says it and a mark where it ends.
_MEASURED = re.compile(r"<!-- \{([\w-]+)\}`([^`]+)` -->(.*?)<!-- -->", re.DOTALL)
_MOST_BYTES = 400_000


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL)


def test_the_python_example_runs(tmp_path):
    (example,) = blocks("python")
    done = run_script(example, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"\d+ bytes\n", done.stdout)


def test_the_python_example_runs_in_a_notebook_with_the_line_that_is_said(elsewhere):
    (example,) = blocks("python")
    (line,) = re.findall(r"In a notebook[^.`]*, write `([^`]+)`", README.read_text())
    *source, last = example.splitlines()
    assert last == "asyncio.run(main())"
    cell = nbformat.v4.new_code_cell("\n".join([*source, line]))
    notebook = nbformat.v4.new_notebook(cells=[cell])
    notebooks.execute(notebook, Path(), quick=True)
    assert re.fullmatch(r"\d+ bytes\n", cell.outputs[0].text)


@pytest.mark.parametrize("target", re.findall(r"^make ([\w-]+)", "\n".join(blocks("sh")), re.M))
def test_every_make_target_that_is_named_exists(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M)


def test_every_file_that_is_linked_exists():
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text())
    local = [link for link in links if "://" not in link]
    assert local
    assert [link for link in local if not (ROOT / link).exists()] == []


def test_every_number_that_was_measured_is_what_its_record_says():
    roles, numbers = extension("measured"), _MEASURED.findall(README.read_text())
    assert numbers
    for role, choice, number in numbers:
        said = getattr(roles, role.replace("-", "_"))(choice).text
        assert number.split() == said.split(), f"the record of {choice!r} says {said}"


def test_no_rate_was_typed():
    assert typed_rates(_MEASURED.sub("", README.read_text())) == []


def test_the_screenshots_are_pictures_and_take_a_moment_to_load():
    shots = sorted((ROOT / "docs" / "screenshots").glob("*"))
    for shot in shots:
        with Image.open(shot) as picture:
            assert picture.width >= 1000, shot.name
    assert 0 < sum(shot.stat().st_size for shot in shots) <= _MOST_BYTES
    shown = set(re.findall(r"\((docs/screenshots/[^)]+)\)", README.read_text()))
    assert shown == {shot.relative_to(ROOT).as_posix() for shot in shots}

# SPDX-License-Identifier: BSD-3-Clause
"""A program that is registered is everywhere: what says that a new chapter was forgotten somewhere.

Some places have tests of their own: docs/how-to/add-a-chapter.md lists all.
"""

import pytest

from spead_tutorial.catalogue import PROGRAMS, RECEIVERS
from spead_tutorial.notebook_run import NAMES
from support import ROOT

PROGRAMS_IN = {
    "spead_tutorial/chapters": ".py",
    "csrc/chapters": ".c",
    "csrc/chapters/cpp": ".cpp",
}

each_program = pytest.mark.parametrize(
    "program",
    [*PROGRAMS, *RECEIVERS],
    ids=lambda program: program.name,
)


@pytest.mark.parametrize(("folder", "suffix"), PROGRAMS_IN.items())
def test_a_programs_file_in_each_language_is_there_and_registered(folder, suffix):
    there = {path.stem for path in (ROOT / folder).glob(f"tut_*{suffix}")}
    assert there == {program.name for program in (*PROGRAMS, *RECEIVERS)}, (
        f"{folder} and the catalogue differ"
    )


@each_program
def test_a_program_is_in_the_notebook_of_its_chapter(program):
    name = next((one for one in NAMES if one.startswith(f"{program.number:02}_")), None)
    assert name, f"no notebook of chapter {program.number} is in NAMES of notebook_run.py"
    text = (ROOT / "notebooks" / f"{name}.md").read_text()
    for folder, suffix in PROGRAMS_IN.items():
        link = f"(../{folder}/{program.name}{suffix})"
        assert link in text, f"{name} does not link to the program: {link}"

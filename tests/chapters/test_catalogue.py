# SPDX-License-Identifier: BSD-3-Clause
"""A program that is registered is everywhere, and has the form that all programs have.

It says that something of a new chapter was forgotten. Some places have tests of their own:
docs/how-to/add-a-chapter.md lists all.
"""

import re

import pytest

from spead_tutorial.chapters.catalogue import (
    ARRAY,
    CHAPTERS,
    PROGRAMS,
    RECEIVERS,
    STEPS,
    Receiver,
    find_chapter,
    find_language,
    find_sender,
)
from support import ROOT
from support.programs import FOLDERS, name_of, source

each_program = pytest.mark.parametrize("program", [*PROGRAMS, *RECEIVERS, *ARRAY], ids=name_of)
each_language = pytest.mark.parametrize("language", FOLDERS)


@each_language
def test_a_programs_file_in_each_language_is_there_and_registered(language):
    folder, suffix = FOLDERS[language]
    there = {path.stem for path in (ROOT / folder).glob(f"tut_*{suffix}")}
    assert there == {program.name for program in (*PROGRAMS, *RECEIVERS, *ARRAY)}, (
        f"{folder} and the catalogue differ"
    )


@each_program
def test_a_program_is_in_the_notebook_of_its_chapter(program):
    (path,) = (ROOT / "notebooks").glob(f"{program.number:02}_*.md")
    text = path.read_text()
    for folder, suffix in FOLDERS.values():
        link = f"(../{folder}/{program.name}{suffix})"
        assert link in text, f"{path.name} does not link to the program: {link}"


# ---- All leave to what they share what that does ----


@each_program
def test_a_program_leaves_its_report_and_how_it_fails_and_ends_to_what_is_shared(program):
    python, c, cpp = (source(program.name, language) for language in ("python", "c", "cpp"))
    receives = isinstance(program, Receiver)
    start = "asyncio.run(main())" if "async def main" in python else "main()"
    assert python.endswith(f'\n\nif __name__ == "__main__":\n    {start}\n')
    assert f'#include "{"receiving" if receives else "report"}.h"\n' in c
    assert f'#include "{"receiving" if receives else "chapter"}.hpp"\n' in cpp
    if receives:
        calls = "parse_receiver_options(", "report_heaps("
        assert [re.sub(r"\w+\.report\(", calls[1], python).count(one) for one in calls] == [1, 1]
    else:
        calls = "parse_options(", " report("
        assert [python.count(one) for one in calls] == [1, 1]
    for text in (c, cpp):
        assert [text.count(one) for one in calls] == [1, 1]


# ---- Finding one ----


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("10", 10),
        ("tut_10_send_reuse_heaps", 10),
        ("tut_10_send_reuse_heaps.py", 10),
    ],
)
def test_a_chapter_is_found_by_number_and_name(text, number):
    assert find_chapter(text).number == number


@pytest.mark.parametrize("step", STEPS, ids=name_of)
def test_a_step_is_found_by_its_name_and_its_number_finds_the_chapter(step):
    assert find_chapter(step.name) is find_chapter(f"{step.name}.py") is step
    assert find_chapter(str(step.number)) in CHAPTERS


def test_what_sends_to_a_receiver_may_also_be_an_arrays_sender():
    assert find_sender("19") is find_sender("tut_19_send_corner_turn.py") is ARRAY[0]
    assert find_sender("10") is find_chapter("10")
    assert {find_sender(one.sender).number for one in RECEIVERS} == {2, 19}


@pytest.mark.parametrize("text", ["", "1", "3", "tut_3", "99", "-2", "tut_send_1", "None"])
def test_an_unknown_chapter_is_an_error_that_lists_those_there_are(text):
    with pytest.raises(
        ValueError, match="those that send are 2, 4, 5, 6, 8, 10, 11, 13, 14, 15, 16"
    ):
        find_chapter(text)


@pytest.mark.parametrize(
    ("words", "language"),
    [("python Python PYTHON", "python"), ("c C", "c"), ("cpp CPP c++ C++ Cpp", "cpp")],
)
def test_a_language_is_found_by_what_pages_call_it(words, language):
    assert {find_language(word) for word in words.split()} == {language}


@pytest.mark.parametrize("text", ["", "c#", "c+", "py", "rust", "C++20"])
def test_an_unknown_language_is_an_error_that_lists_those_there_are(text):
    with pytest.raises(ValueError, match="say python, c, cpp"):
        find_language(text)

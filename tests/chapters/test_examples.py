# SPDX-License-Identifier: BSD-3-Clause
"""What pages show as the output of programs is what those programs print."""

import functools
import re
import sys
from pathlib import Path

import pytest

from spead_tutorial.chapters import catalogue
from support import ROOT
from support.labs import needs_lab
from support.programs import ended

DOCS = ROOT / "docs"
EXAMPLES = DOCS / "examples"
PAGES = {
    page: re.findall(r"```\{program-output\} python (\w.+)", page.read_text())
    for page in sorted(DOCS.glob("*/*.md"))
}
SHOWN = sorted({name for names in PAGES.values() for name in names})


def run(words: str) -> str:
    done = ended([sys.executable, *words.split()], cwd=EXAMPLES)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


#: What a program prints, as it printed it the first time.
printed = functools.cache(run)


def quoted(page: Path) -> list[str]:
    """Bytes in a page, as they are dumped."""
    return re.findall(r"`((?:[0-9a-f]{2} ){3,}[0-9a-f]{2})`", page.read_text())


@pytest.mark.thorough
@pytest.mark.parametrize("name", SHOWN)
def test_a_program_whose_output_a_page_shows_prints_something_that_is_always_the_same(name):
    assert printed(name).strip()
    assert run(name) == printed(name)


@pytest.mark.parametrize("page", [*filter(quoted, PAGES)], ids=lambda page: page.stem)
def test_bytes_that_a_page_quotes_are_in_an_output_that_it_shows(page):
    outputs = "".join(printed(name) for name in PAGES[page])
    assert [one for one in quoted(page) if one not in outputs] == []


def without_numbers(lines: list[str]) -> list[str]:
    """What two programs print side by side is in any order; a lab has the device that it can.

    Nor has a receiver always a rate, as heaps may come at once.
    """
    some = (line for line in lines if "MB/s from the first" not in line)
    plain = (re.sub(r"\d[\d.]*|\w+ \(\w+\)", "…", line) for line in some)
    return sorted(" ".join(line.split()) for line in plain)  # columns are as wide as numbers


@needs_lab
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.thorough] * (path.stem != "2"))
        for path in sorted(EXAMPLES.glob("runs/*.txt"))
    ],
)
def test_a_run_that_a_page_begins_with_prints_what_was_stored(path):
    command, *stored = path.read_text().splitlines()
    done = ended([sys.executable, "-P", "-m", "spead_tutorial.tools.cli", *command.split()[2:]])
    assert done.returncode == 0, done.stderr
    assert without_numbers(done.stdout.splitlines()) == without_numbers(stored)


@pytest.mark.parametrize(
    "chapter",
    [*catalogue.CHAPTERS, *catalogue.RECEIVERS, catalogue.ARRAY[0]],
    ids=lambda one: one.name,
)
def test_a_chapter_is_run_before_its_first_listing_and_takes_as_long_as_it_says(chapter):
    (page,) = DOCS.glob(f"tutorial/{chapter.number}-*.md")
    first = re.search(r"```\{(?:literalinclude|record-account|stage-diff)\} (.*)", page.read_text())
    assert first is not None
    is_array = chapter in catalogue.ARRAY
    assert first[1] == ("array" if is_array else f"../examples/runs/{chapter.number}.txt")
    (takes,) = re.findall(r"(\d+) minutes to read, and (\d+) to try", page.read_text())
    assert chapter.minutes == sum(map(int, takes))


@pytest.mark.thorough
def test_the_mean_of_squares_is_right_where_chapter_7_says_so():
    rows = [re.split(" {2,}", line)[:2] for line in printed("mean_squares.py").splitlines()[1:]]
    right = dict(rows)["in 64 bits"]
    ways = {way for way, result in rows if result == right}
    assert ways - {"in a loop, compiled"} == {"in 64 bits", "summed at once"}
    assert float(dict(rows)["in 8 bits"]) < 0

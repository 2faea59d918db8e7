# SPDX-License-Identifier: BSD-3-Clause
"""The page of machines, as it is, and with records of machines that do not exist.

Those are made of the reference machine's, and the page alone is built with them, somewhere else.
"""

import html
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spead_tutorial.measure import records
from spead_tutorial.results import plots
from support import ROOT
from support.once import MadeOnce

pytestmark = pytest.mark.timeout(400)  # a site is built, and a machine can be busy

LADDER = ROOT / "bench" / "results" / "ladder.jsonl"
PAGE = "machines.html"
#: What each machine's record says, and how many times as fast it is as the reference machine.
MADE_UP = {
    "big-server": (3.0, {"cpu": "Made-up <Big> 64", "usable_cores": 64, "kernel": "6.2.10"}),
    "old-laptop": (0.5, {"cpu": "Another that nobody has", "usable_cores": 4, "kernel": "5.10.1"}),
}
#: The language that only the first of them has.
THIRD = "cpp"


def make(path: Path, faster: float, machine: dict[str, object], with_third: bool) -> None:
    """Write a record that is the reference machine's, but for its rates, facts and languages."""
    lines = [json.loads(line) for line in LADDER.read_text().splitlines()]
    lines = [one for one in lines if one.get("language") != THIRD]
    lines[0]["machine"] |= machine
    for one in lines[1:]:
        one["elapsed_ns"] = round(one["elapsed_ns"] / faster)
    if with_third:
        lines += [
            {**one, "language": THIRD, "case": one["case"].replace("ours c ", f"ours {THIRD} ")}
            for one in lines[1:]
            if one["implementation"] == "ours" and one["language"] == "c"
        ]
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))


def build(folder: Path) -> None:
    """Build a site of this one page, with machines that do not exist."""
    pages, found = folder / "docs", folder / "records"
    pages.mkdir()
    found.mkdir()
    for name, (faster, machine) in MADE_UP.items():
        make(found / f"{name}.jsonl", faster, machine, name == "big-server")
    shutil.copy(ROOT / "docs" / "machines.md", pages)
    drawn = Path("notebooks", "pictures")
    if (ROOT / "docs" / drawn).is_dir():  # it would draw them all again, which takes a minute
        shutil.copytree(ROOT / "docs" / drawn, pages / drawn)
    for name in ("docs/figures", "notebooks", "LICENSE", "spead_tutorial", "csrc"):
        (folder / name).symlink_to(ROOT / name)
    settings = ("root_doc=machines", f"machines_folder={found}", "exclude_patterns=notebooks")
    command = [sys.executable, "-P", "-m", "sphinx", "-q", "-b", "html", "-c", ROOT / "docs"]
    for setting in settings:
        command += ["-D", setting]
    command += [pages, folder / "site"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def made_up(site: Path, made_once: MadeOnce) -> Path:
    return made_once("machines", build) / "site"


@pytest.fixture
def table(page, made_up):
    """The table of C."""
    page.goto(f"file://{made_up}/{PAGE}")
    return shown(page, "c")


def shown(page, language):
    """The table of a language, whose tab is chosen."""
    page.locator(f".sd-tab-label[data-sync-id='{language}']").click()
    return page.locator("table.machines:visible")


@pytest.fixture(scope="module")
def rows(made_up):
    """The head and the rows of the table of C, as they are without scripts."""
    page = (made_up / PAGE).read_text()
    table = re.search(r'data-sync-id="c".*?<table class="machines(.*?)</table>', page, re.DOTALL)
    return re.findall(r"<tr.*?</tr>", table[1], re.DOTALL)


@pytest.fixture(scope="module")
def columns(rows):
    """What each column says, its head first."""
    seen = [re.sub("<span popover.*?</span>", "", row) for row in rows]
    cells = [re.findall("<t[hd].*?</t[hd]>", row, re.DOTALL) for row in seen]
    return [
        [html.unescape(re.sub("<[^>]*>", "", cell)) for cell in one]
        for one in zip(*cells, strict=True)
    ]


def column(table, number):
    """What a column says, from the first row to the last; the columns count from 0."""
    return table.locator(f"tbody tr > :nth-child({number + 1})").all_inner_texts()


def number(text):
    return float(re.sub(r"\s|MB/s", "", text))


def head(table, words):
    """The first head of a column with these words, and which it is."""
    heads = table.locator("thead th").all()
    texts = [one.inner_text().strip() for one in heads]
    number = next(n for n, text in enumerate(texts) if text.startswith(words))
    return heads[number], number


# ---- What it says ----


def test_the_page_has_a_row_and_a_picture_for_each_record_that_is_there(page, site):
    page.goto(f"file://{site}/{PAGE}")
    others = list((LADDER.parent / "machines").glob("*.jsonl"))
    assert page.locator("table.machines:visible tbody tr").count() == 1 + len(others)
    assert page.locator("section[id^='machine-'] figure.picture").count() == 1 + len(others)
    assert page.locator("section#machine-reference figure.picture").count() == 1


def test_rates_are_of_a_machines_own_record_and_gains_do_not_depend_on_how_fast_it_is(columns):
    for place in (2, 3, 6, 7):
        reference, *others = map(number, columns[place][1:])
        assert others == pytest.approx([3.0 * reference, 0.5 * reference], rel=0.01)
    for place in (4, 5, 8, 9):
        assert len(set(columns[place][1:])) == 1


def test_a_number_leads_to_the_section_of_its_machine(rows):
    places = re.findall('<span popover.*?href="[^"#]*#([^"]+)"', rows[2])
    assert set(places) == {"machine-big-server"}


def test_the_reference_machine_is_first_and_what_a_machine_is_stands_behind_its_rates(columns):
    assert columns[0][1].endswith("(reference)")
    said = {head: others for head, _, *others in columns}
    for name, words in (("Processor", "cpu"), ("Kernel", "kernel"), ("Cores", "usable_cores")):
        assert said[name] == [str(machine[words]) for _, machine in MADE_UP.values()]


def test_without_scripts_it_is_a_plain_table_that_has_everything(rows, columns):
    assert "<button" not in rows[0]
    assert columns[-1][0] == "Revision"


def test_each_machine_has_its_own_picture_in_all_forms(page, made_up):
    page.goto(f"file://{made_up}/{PAGE}")
    titles = []
    for name in MADE_UP:
        section = page.locator(f"section#machine-{name}")
        pictures = section.locator("figure.picture img")
        assert pictures.count() == 4  # light and dark, wide and narrow
        assert pictures.evaluate_all("all => all.every((one) => one.naturalWidth > 0)")
        titles.append(pictures.first.get_attribute("src"))
        record = section.locator("figcaption a.download").get_attribute("href")
        assert Path(made_up, record).name == f"{name}.jsonl"
        first, second = (
            float(section.locator(f".spot[data-key*='|{program}|'][data-role='c']").first
                  .get_attribute("data-value"))
            for program in ("tut_4_send_constant", "tut_13_send_hot")
        )  # fmt: skip
        assert 0 < first < second
    assert len(set(titles)) == len(titles)
    svg = plots.render(plots.ladder, records.read(LADDER), plots.LIGHT).decode()
    assert svg not in [Path(made_up, one).read_text() for one in titles]


# ---- Sorting ----


def version(text):
    return [int(part) for part in re.findall(r"\d+", text)[:2]]


def test_numbers_are_sorted_from_the_largest_words_from_a_and_a_row_stays_whole(table):
    """And the other way round when the head is pressed again; versions by their numbers."""

    def whole():
        return sorted(row.inner_text() for row in table.locator("tbody tr").all())

    before, orders = whole(), ["descending", "ascending", "descending", "ascending"]
    assert table.locator("thead button").count() == table.locator("thead th").count()
    for words, key, first in (
        *((words, number, 0) for words in ("Cores", "Chapter 4", "Chapter 14")),
        ("Processor", str.lower, 1),
        ("Kernel", version, 1),  # 5.10, 6.2, 6.18
    ):
        pressed, place = head(table, words)
        for direction in orders[first : first + 3]:
            pressed.locator("button").click()
            values = [key(text) for text in column(table, place)]
            assert values == sorted(values, reverse=direction == "descending")
            assert pressed.get_attribute("aria-sort") == direction
            assert table.locator("[aria-sort]").count() == 1
        assert whole() == before


def test_what_was_not_measured_is_a_dash_and_last_whichever_way(page, made_up):
    page.goto(f"file://{made_up}/{PAGE}")
    table = shown(page, THIRD)
    rates = dict(zip(column(table, 0), column(table, 2), strict=True))
    assert rates["Another that nobody has"] == "-"
    assert rates["Made-up <Big> 64"] != "-"
    pressed, number = head(table, "Chapter 4")
    for _ in range(2):
        pressed.locator("button").click()
        values = column(table, number)
        assert values[0] != "-"
        assert values[-1] == "-"


@pytest.mark.thorough
def test_many_machines_fit_wide_and_narrow_screens_and_can_be_read_by_all(looker, made_up):
    assert looker.look(f"file://{made_up}/{PAGE}") == []

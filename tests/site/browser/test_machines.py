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


def number(text):
    return float(re.sub(r"\s|MB/s", "", text))


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


def test_the_last_column_is_the_revision(columns):
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


def test_what_was_not_measured_is_a_dash(page, made_up):
    page.goto(f"file://{made_up}/{PAGE}")
    page.locator(f".sd-tab-label[data-sync-id='{THIRD}']").click()
    rows = page.locator("table.machines:visible tbody tr").all()
    rates = {row.locator("th, td").first.inner_text(): row.locator("td").nth(1) for row in rows}
    assert rates["Another that nobody has"].inner_text() == "-"
    assert rates["Made-up <Big> 64"].inner_text() != "-"


@pytest.mark.thorough
def test_many_machines_fit_wide_and_narrow_screens_and_can_be_read_by_all(looker, made_up):
    assert looker.look(f"file://{made_up}/{PAGE}") == []

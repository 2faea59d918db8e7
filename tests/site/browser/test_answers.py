# SPDX-License-Identifier: BSD-3-Clause
"""What pictures answer, with a record of one's own too; and what they are on phones and paper."""

import dataclasses
import functools
import re
import statistics

import pytest

from spead_tutorial.measure import records, search, stats
from spead_tutorial.results import plots, units
from support import ROOT
from support.browser import violations
from support.pictures import WITHOUT_POINTS

RESULTS = ROOT / "bench" / "results"
STATIC = ROOT / "docs" / "_static"
PICTURE = '<figure class="picture'
#: Has one picture, of lines over the size of heaps.
CURVES = "tutorial/14-a-stream-for-each-core.html"


@functools.cache
def rates(name):
    """The rates of each series and size of a record in MB/s, by what a point calls it."""
    found = {}
    for one in search.settled(records.read(RESULTS / f"{name}.jsonl")).samples:
        if not one.warm_up:
            searched = ["searched"] * search.is_search(one)
            sizes = [str(one.packet_size), *searched, str(one.heap_size)]
            key = "|".join([*dataclasses.astuple(one.series), *sizes])
            found.setdefault(key, []).append(one.rate / 1e6)
    return found


@functools.cache
def medians(name):
    """The median of each of them."""
    return {key: statistics.median(some) for key, some in rates(name).items()}


def values(marks):
    """What marks say in their data: the value by the key."""
    pairs = "all => all.map((one) => [one.dataset.key, Number(one.dataset.value)])"
    return dict(marks.evaluate_all(pairs))


@pytest.fixture
def ladder(page):
    """The picture of the first page."""
    page.goto("index.html")
    return page.locator("figure.picture").first


@pytest.fixture
def curves(page):
    """A picture of lines over the size of heaps."""
    page.goto(CURVES)
    return page.locator("figure.picture")


# ---- Points ----


def test_points_tell_their_values_to_the_mouse_to_a_tap_and_to_the_keyboard(page, ladder):
    tip, points = ladder.locator(".tip"), ladder.locator(".spot")

    def middle(spot):
        spot.scroll_into_view_if_needed()
        box = spot.bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    for spot in points.all()[::7]:
        page.mouse.move(*middle(spot))
        rate = units.number(medians("ladder")[spot.get_attribute("data-key")])
        words = tip.inner_text()
        assert words == spot.get_attribute("aria-label")
        assert re.search(rf": {rate} MB/s \(.+ to .+\), \d+ rounds$", words), words
    page.mouse.move(0, 0)
    assert not tip.is_visible()

    assert ladder.locator(".spot[tabindex='0']").count() == 1  # it takes one Tab, and not dozens
    points.first.focus()
    for spot in points.all()[1:4]:
        page.keyboard.press("ArrowRight")
        assert spot.evaluate("one => one === document.activeElement")
        assert tip.inner_text() == spot.get_attribute("aria-label")
    page.keyboard.press("Escape")
    assert not tip.is_visible()

    page.set_viewport_size({"width": 360, "height": 800})
    page.mouse.click(*middle(points.first))
    assert tip.inner_text() == points.first.get_attribute("aria-label")
    there = tip.bounding_box()
    assert 0 <= there["x"] <= 360 - there["width"]


def test_the_higher_a_rate_is_the_higher_is_its_point(curves):
    points = curves.locator(".spot:not([data-key=''])").evaluate_all(
        "all => all.map((one) => [Number(one.dataset.value), one.getBoundingClientRect().y])"
    )
    heights = [y for _, y in sorted(points, key=lambda one: one[0])]
    assert len(set(heights)) > 20
    assert heights == sorted(heights, reverse=True)


# ---- What one chooses and adds ----


def test_only_the_lines_that_are_chosen_are_drawn(ladder):
    ladder.locator("summary").click()
    drawn = ladder.locator("svg g.c .point")
    drawn.first.wait_for()
    assert drawn.count() > 5
    ladder.get_by_label("C", exact=True).uncheck()
    assert drawn.count() == 0
    assert ladder.locator("svg g.python .point").count() > 5
    large = ladder.locator("svg .point").count()
    ladder.get_by_label("8 KiB", exact=True).check()
    assert ladder.locator("svg .point").count() > large


def drop(page, figure, name, content, points=True):
    """Drop a file on what is opened below a figure: text, bytes, or as many zeros."""
    script = """([name, content]) => {
        const data = new DataTransfer();
        data.items.add(new File([content.trim ? content : new Uint8Array(content)], name));
        return data;
    }"""
    content = list(content) if isinstance(content, bytes) else content
    data = page.evaluate_handle(script, [name, content])
    figure.locator("details.explore").dispatch_event("drop", {"dataTransfer": data})
    if points:
        figure.get_by_text(re.compile(rf"{re.escape(name)}: \d+ points")).wait_for()


def test_a_record_that_is_dropped_lies_over_the_picture_with_the_medians_of_python(page, curves):
    curves.locator("summary").click()
    drop(page, curves, "mine.jsonl", (RESULTS / "targets.jsonl").read_text())
    found, known = values(curves.locator("g.own .point")), medians("targets")
    assert len(found) > 20
    assert found == pytest.approx({key: known[key] for key in found}, rel=1e-12)
    words = curves.locator("g.own .point").first.get_attribute("aria-label")
    assert "Yours: " in words
    assert re.search(r"MB/s \([^r]+ to [^r]+\), \d+ rounds", words), words


def test_a_record_that_is_chosen_lies_over_the_ladder(ladder):
    ladder.locator("summary").click()
    ladder.locator("input[type=file]").set_input_files(RESULTS / "ladder.jsonl")
    ladder.get_by_text(re.compile(r"ladder\.jsonl: \d+ points")).wait_for()
    reference = values(ladder.locator("g:not(.own) > .point"))
    assert values(ladder.locator("g.own .point")) == pytest.approx(reference, abs=1e-3)


def test_a_value_has_the_interval_that_python_has_and_of_few_values_the_range(page):
    page.add_script_tag(path=STATIC / "records.js")
    some = dict(list(rates("targets").items())[::9])
    found = page.evaluate("all => all.map((some) => Records.estimate(some))", [*some.values()])
    for (key, its), (middle, *ends, n) in zip(some.items(), found, strict=True):
        # Python's own ends, which depend a little on the random numbers.
        others = [stats.median(its, seed=seed) for seed in range(20)]
        assert (middle, n) == (pytest.approx(others[0].median), others[0].n), key
        for end, name in zip(ends, ("low", "high"), strict=True):
            known = sorted(getattr(one, name) for one in others)
            room = 0.01 * middle
            assert known[0] - room <= end <= known[-1] + room, (key, name)
    assert page.evaluate("Records.estimate([3, 1, 2])") == [2, 1, 3, 3]
    few, enough = stats.FEWEST - 1, stats.FEWEST
    assert page.evaluate("all => all.map(Records.spread)", [few, enough]) == ["range ", ""]
    nothing = re.sub(
        r'"payload_bytes": \d+', '"payload_bytes": 0', (RESULTS / "ladder.jsonl").read_text()
    )
    assert (
        page.evaluate("text => Records.read(new File([text], '')).then(all => all.size)", nothing)
        == 0
    )


def test_what_searches_have_found_lies_over_the_ladder_of_receivers(page):
    page.goto("tutorial/7-keep-up.html")
    figure = page.locator("figure.picture").first
    points = values(figure.locator(".spot"))
    known = medians("receive-lossless")
    assert len(points) > 20
    assert points == pytest.approx({key: known[key] for key in points}, abs=1e-3)
    figure.locator("summary").click()
    for box in figure.locator(".explore [type=checkbox]").all():
        box.check()
    drop(page, figure, "mine.jsonl", (RESULTS / "receive-lossless.jsonl").read_text())
    assert values(figure.locator("g.own .point")) == pytest.approx(points, abs=1e-3)


@pytest.fixture(scope="module")
def figures(site, pages_with):
    """The HTML of all pictures of the site."""
    pages = ((site / path).read_text() for path in pages_with(PICTURE))
    return [one for page in pages for one in re.findall(rf"(?s){PICTURE}.*?</figure>", page)]


def test_every_picture_of_samples_answers(figures):
    """All but those of single runs, and that of the means of what became of packets."""
    silent = "".join(one for one in figures if 'class="spot"' not in one)
    images = re.findall(r'class="only-light wide" src="[./]*_images/([^"]+)\.svg"', silent)
    assert set(images) == WITHOUT_POINTS


def test_every_machine_has_a_picture(site):
    html = (site / "machines.html").read_text()
    assert html.count('<section id="machine-') == html.count('<figure class="picture') > 0


def test_a_point_says_what_it_is_of(figures):
    points = re.findall(r'<span class="spot"[^>]*>', "".join(figures))
    said = [re.search(r'aria-label="([^"]*)"', one)[1] for one in points]
    for pattern in (
        r"^chapter 7, C, at .+ MB/s: .+ % of packets lost \(.+ to .+\), \d+ runs$",
        r"^Python, 9000 bytes: .+ MB/s \(",
        r"^memory kept, C, 64 MiB: .+ page faults a heap \(",
        r"^Chapter 13, C, program: copy, 1 MiB: .+ ns \(",
    ):
        assert any(re.search(pattern, words) for words in said), pattern


@pytest.mark.thorough
def test_every_picture_needs_no_scrolling_on_a_phone(page, pages_with):
    page.set_viewport_size({"width": 360, "height": 800})
    for path in pages_with(PICTURE):
        page.goto(path)
        wide = page.locator("figure.picture .frame").evaluate_all(
            "all => all.filter((one) => one.scrollWidth > one.clientWidth).length"
        )
        assert wide == 0, path


def test_of_a_case_that_failed_once_no_median_is_shown(page, ladder):
    first, *lines = (RESULTS / "ladder.jsonl").read_text().splitlines()
    counted = (one for one in lines if '"warm_up": false' in one)
    line = next(one for one in counted if '"implementation": "ours"' in one)
    failed = f'{line[:-1]}, "failure": "it did"}}'
    ladder.locator("summary").click()
    text = "\n".join([first, *(failed if one == line else one for one in lines)])
    ladder.get_by_label("8 KiB", exact=True).check()
    counts = []
    for some in ("\n".join([first, *lines]), text):
        drop(page, ladder, f"{len(counts)}.jsonl", some)
        counts.append(ladder.locator("g.own .point").count())
    assert counts[1] == counts[0] - 1


HEADER = '{"tool": "spead_tutorial", "record": "header", "schema": 3}\n'

NO_RECORDS = [
    ("", "it is empty"),
    (" \n\n", "it is empty"),
    ("words", "its line 1 is not a JSON object"),
    ("{\n  'a': 1\n}", "its line 1 is not a JSON object"),
    ("null", "its line 1 is not a JSON object"),
    (HEADER + '\n{"record": "sam', "its line 3 is not a JSON object"),
    ("[]", "it has no header of a record"),
    ('{"tool": "another", "schema": 3}\n', "it has no header of a record"),
    ('{"record": "sample"}\n', "it has no header of a record"),
    (HEADER.replace("3", "99"), "it is newer than this page"),
    (b"\x89PNG\r\n\x1a\n\0\0", "it is not text"),
    (b"\xff\xd8\xff\xe0", "it is not text"),
    (65 << 20, "it is larger than 64 MiB"),
]


def test_of_what_is_no_record_one_line_says_why_and_what_is_needed(page, ladder):
    ladder.locator("summary").click()
    for number, (content, why) in enumerate(NO_RECORDS):
        drop(page, ladder, f"photo{number}.jpg", content, points=False)
        said = ladder.get_by_role("status").filter(has_text=f"photo{number}.jpg")
        said.wait_for()
        needed = "A record is needed, results/….jsonl, as make bench writes it."
        assert said.inner_text() == f"photo{number}.jpg cannot be shown: {why}. {needed}"
        assert ladder.locator("g.own").count() == 0
        assert ladder.locator("svg .point").count() > 10
    drop(page, ladder, "mine.jsonl", HEADER, points=False)
    ladder.get_by_text("mine.jsonl: a record, but none of its points is in this picture").wait_for()


def test_what_was_opened_can_be_read_by_all(page, ladder, axe):
    ladder.locator("summary").click()
    page.evaluate(axe.axe_script)
    assert violations(page, within="figure.picture") == []


# ---- Phones, paper, and no scripts ----


def shown(figure):
    """Which forms of a picture can be seen."""
    return [one.get_attribute("class") for one in figure.locator("img:visible").all()]


def test_a_phone_gets_a_narrow_picture_that_needs_no_scrolling(page, curves):
    page.set_viewport_size({"width": 360, "height": 800})
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(f"document.documentElement.dataset.theme === '{scheme}'")
        (form,) = shown(curves)
        assert set(form.split()) == {f"only-{scheme}", "narrow"}
        width = "one => one.scrollWidth - one.clientWidth"
        assert curves.locator(".frame").evaluate(width) <= 0


def test_paper_gets_the_picture_alone(page, curves):
    curves.locator("summary").click()
    page.set_viewport_size({"width": 360, "height": 800})
    page.emulate_media(media="print")
    (form,) = shown(curves)
    assert set(form.split()) == {"only-light", "wide"}
    assert not curves.locator("details").is_visible()
    assert curves.locator(".spot:visible").count() == 0


def test_without_scripts_the_picture_is_there_and_nothing_that_does_nothing(plain_page):
    plain_page.goto("index.html")
    figure = plain_page.locator("figure.picture").first
    (form,) = shown(figure)
    assert set(form.split()) == {"only-light", "wide"}
    assert not figure.locator("details").is_visible()
    assert figure.locator(".spot").first.get_attribute("aria-label")


# ---- What is said twice is the same ----


@pytest.mark.parametrize("theme", [plots.LIGHT, plots.DARK], ids=["light", "dark"])
def test_what_is_drawn_anew_has_the_colours_of_the_pictures(theme):
    dark = 'html[data-theme="dark"] ' if theme is plots.DARK else ""
    lines = (STATIC / "figures.css").read_text().splitlines()
    for role in ("python", "c", "spead2", "limit"):
        assert f"{dark}.explore .{role} {{ color: {theme.colours[role]}; }}" in lines


def test_the_script_of_figures_is_small_and_what_reads_records_is_apart():
    scripts = [(STATIC / name).read_text() for name in ("figures.js", "records.js")]
    assert max(len(script.encode()) for script in scripts) < 10 * 1024


def test_the_script_that_reads_records_knows_this_version_and_its_searches():
    script = (STATIC / "records.js").read_text()
    thorough = search.THOROUGH
    assert f"SCHEMA = {records.SCHEMA};" in script
    assert f"FEWEST = {stats.FEWEST}," in script
    assert f"IN_A_ROW = {thorough.runs}, FORGIVEN = {thorough.forgiven}," in script
    assert thorough.narrow == 2 ** (1 / 8)
    assert "NARROW = 2 ** (1 / 8)," in script

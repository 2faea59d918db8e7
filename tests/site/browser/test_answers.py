# SPDX-License-Identifier: BSD-3-Clause
"""What pictures answer, and what they are on phones, on paper and without scripts."""

import re
import statistics

import pytest

from bench.status import by_setting
from spead_tutorial.measure import records
from spead_tutorial.results import units
from support import ROOT

PICTURE = '<figure class="picture'
#: Has one picture, of lines over the size of heaps.
CURVES = "tutorial/14-a-stream-for-each-core.html"


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

    settings = by_setting(records.read(ROOT / "bench" / "results" / "ladder.jsonl")).values()
    rates = [[one.rate / 1e6 for one in some] for some in settings]
    medians = {units.number(statistics.median(some)) for some in rates}
    for spot in points.all()[::7]:
        page.mouse.move(*middle(spot))
        words = tip.inner_text()
        assert words == spot.get_attribute("aria-label")
        assert re.search(r": (.+) MB/s \(.+ to .+\), \d+ rounds$", words)[1] in medians
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
    points = curves.locator(".spot").evaluate_all(
        "all => all.map((one) => [one.ariaLabel, one.getBoundingClientRect().y])"
    )
    for panel in ("Python", "C"):
        rates = [
            (float(re.sub(r"\s", "", said[1])), -y)
            for words, y in points
            if words.startswith(f"{panel}, ") and (said := re.search(r": ([\d.\s]+) MB/s", words))
        ]
        heights = [height for _, height in sorted(rates)]
        assert len(set(heights)) > 20
        assert heights == sorted(heights)


@pytest.fixture(scope="module")
def figures(site, pages_with):
    """The HTML of all pictures of the site."""
    pages = ((site / path).read_text() for path in pages_with(PICTURE))
    return [one for page in pages for one in re.findall(rf"(?s){PICTURE}.*?</figure>", page)]


def test_a_point_says_what_it_is_of(figures):
    points = re.findall(r'<span class="spot"[^>]*>', "".join(figures))
    said = [re.search(r'aria-label="([^"]*)"', one)[1] for one in points]
    for pattern in (
        r"^no thread, 40 ms a heap: .+ % of packets lost, .+ \(.+ to .+\), \d+ rounds$",
        r"^Python, 9000 bytes: .+ MB/s \(",
        r"^memory kept, .+, C, 64 MiB: .+ page faults a heap \(",
        r"^Chapter 13, C, program: copy, 1 MiB: .+ ns \(",
    ):
        assert any(re.search(pattern, words) for words in said), pattern


# ---- Phones, paper, and no scripts ----


def shown(figure):
    """Which of a picture's colours can be seen."""
    return [one.get_attribute("class") for one in figure.locator("img:visible").all()]


def test_on_a_phone_a_picture_scrolls_in_its_frame(page, curves):
    page.set_viewport_size({"width": 360, "height": 800})
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(f"document.documentElement.dataset.theme === '{scheme}'")
        assert shown(curves) == [f"only-{scheme}"]
    beyond = "one => one.scrollWidth - one.clientWidth"
    assert curves.locator(".frame").evaluate(beyond) > 0
    assert page.locator("html").evaluate(beyond) == 0
    last = curves.locator(".spot").last
    last.scroll_into_view_if_needed()
    assert last.bounding_box()["x"] < 360


def test_paper_gets_the_picture_alone(page, curves):
    page.set_viewport_size({"width": 360, "height": 800})
    page.emulate_media(media="print")
    assert shown(curves) == ["only-light"]
    assert curves.locator(".spot:visible").count() == 0

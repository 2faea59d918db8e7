# SPDX-License-Identifier: BSD-3-Clause
"""In a browser, what can be used works: tabs, buttons, numbers, search, cards."""

import itertools
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bench import figures
from spead_tutorial.chapters.catalogue import ARRAY
from spead_tutorial.tools import notebooks
from support import ROOT
from support.browser import wait_for_tab_stops
from support.programs import PROGRAMS

NAMES = notebooks.names(ROOT / notebooks.FOLDER)
TABS = '<label aria-controls="sd-tab-item-'
PICTURES = '<figure class="picture'
FEW_AND_ALL = pytest.mark.parametrize(
    "few", [True, pytest.param(False, marks=pytest.mark.thorough)], ids=["few", "all"]
)


# ---- Tabs ----


def shown(page):
    """The labels of the tabs that are open, a tab set each; what is open is visible."""
    labels = page.locator(".sd-tab-set > input:checked + label")
    for content in page.locator(".sd-tab-set > input:checked + label + .sd-tab-content").all():
        assert content.is_visible()
    return {label.strip() for label in labels.all_inner_texts()}


def label(page, language):
    """The tabs with the name of a language, one of each set."""
    name = re.compile(rf"^\s*{re.escape(language)}\s*$")
    return page.locator(".sd-tab-set > label", has_text=name)


@pytest.fixture
def tabs(page, pages_with):
    """A page with tabs."""
    first, *_ = pages_with(TABS, 3 * 3)
    page.goto(first)
    assert shown(page) == {"Python"}, first
    assert page.locator(".sd-tab-set").count() > 1, f"{first} has but one set of tabs"
    return page


def test_tabs_switch_together_and_stay_over_a_reload_and_on_other_pages(tabs, pages_with):
    page = tabs
    for language in ("C", "Python", "C++"):
        label(page, language).last.click()
        assert shown(page) == {language}, page.url
    page.reload()
    assert shown(page) == {"C++"}, page.url
    page.goto(pages_with(TABS, 3 * 3)[1])
    assert shown(page) == {"C++"}, page.url


def test_a_tab_that_is_chosen_stays_where_it_is(tabs):
    page, moved = tabs, []
    settled = "new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"
    ways = itertools.product((False, True), range(label(page, "C").count()))
    for by_keyboard, n in ways:
        tab = label(page, ("C", "Python")[n % 2]).nth(n)
        around = tab.locator("xpath=..")  # for a tab that is open lies 2 px lower
        tab.evaluate("one => window.scrollBy(0, one.getBoundingClientRect().top - 300)")
        page.evaluate(settled)
        before = around.bounding_box()["y"]
        if by_keyboard:
            around.locator("> input:checked").focus()
            page.keyboard.press(("ArrowRight", "ArrowLeft")[n % 2])
        else:
            tab.click()
        page.evaluate(settled)
        moved.append(around.bounding_box()["y"] - before)
    assert moved == pytest.approx([0] * len(moved), abs=1), page.url


def test_the_keyboard_can_scroll_what_a_tab_showed(tabs):
    page = tabs
    page.set_viewport_size({"width": 360, "height": 800})
    label(page, "C").first.click()
    assert wait_for_tab_stops(page) == [], page.url


def test_what_goes_on_beyond_its_box_fades_out_until_it_is_scrolled_there(page, pages_with):
    path, *_ = pages_with("cell_output", 10)
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto(path)
    wide = """() => [...document.querySelectorAll('article :is(pre, .cell_output > .output)')]
        .filter((one) => one.clientWidth && one.scrollWidth > one.clientWidth + 1)"""
    masks = f"({wide})().map((one) => getComputedStyle(one).maskImage !== 'none')"
    page.wait_for_function(f"{masks}.length && {masks}.every(Boolean)")
    page.evaluate(f"({wide})().forEach((one) => one.scrollTo(one.scrollWidth, 0))")
    page.wait_for_function(f"!{masks}.some(Boolean)")


@FEW_AND_ALL
def test_a_word_of_code_that_fits_a_line_of_a_phone_does_not_break(page, pages_with, few):
    page.set_viewport_size({"width": 360, "height": 800})
    for path in pages_with('<span class="pre">-', 10 if few else 1):
        page.goto(path)
        broken = page.evaluate(
            """() => [...document.querySelectorAll('article code > .pre')]
                .filter((one) => one.checkVisibility())
                .filter((one) => one.textContent.length <= (one.closest('td, th') ? 8 : 20))
                .filter((one) => {
                    const range = document.createRange();
                    range.selectNodeContents(one);
                    return new Set([...range.getClientRects()].map((line) => line.top)).size > 1;
                })
                .map((one) => one.textContent)"""
        )
        assert broken == [], path


@pytest.mark.parametrize("path", ["explanation/receiving.html", "how-to/cpp-from-spead2.html"])
def test_a_table_on_a_phone_scrolls_and_breaks_no_word(page, path):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(path)
    broken = page.evaluate(
        """() => {
            const range = document.createRange(), found = [];
            for (const cell of document.querySelectorAll('article table.table :is(td, th)')) {
                const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
                while (texts.nextNode())
                    for (const word of texts.currentNode.data.matchAll(/[A-Za-z0-9]+/g)) {
                        range.setStart(texts.currentNode, word.index);
                        range.setEnd(texts.currentNode, word.index + word[0].length);
                        const lines = [...range.getClientRects()].map((line) => line.top);
                        if (new Set(lines).size > 1) found.push(word[0]);
                    }
            }
            return found;
        }"""
    )
    assert broken == []


def test_the_index_is_as_wide_as_a_phone(page):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto("genindex.html")
    widths = "[...document.querySelectorAll('.genindextable td')].map((one) => one.clientWidth)"
    assert min(page.evaluate(widths)) > 300


# ---- Copying, colours, searching ----


@FEW_AND_ALL
def test_the_copy_button_of_a_whole_listing_gives_the_program_as_it_is(page, pages_with, few):
    programs = {path.read_text(): path.name for path in PROGRAMS}
    copied = []
    for path in pages_with(TABS, 3 * 3):
        if few and copied:
            break
        page.goto(path)
        page.add_style_tag(content=".sd-tab-content { display: block !important; }")
        for listing in page.locator(".highlight-python, .highlight-c, .highlight-cpp").all():
            name = programs.get(listing.locator("pre").text_content())
            if name is not None:
                listing.hover()
                listing.locator("button.copybtn").click()
                got = page.evaluate("navigator.clipboard.readText()")
                assert programs.get(got + "\n") == name, f"{path}: what is copied of {name}"
                copied.append(name)
    assert copied, "no page has a whole program"


def themes(page):
    """What the pictures are for that can be seen; each has its caption."""
    figures = page.locator("figure.picture:visible")
    images = figures.locator("img:visible")
    assert images.count() == figures.count(), f"{page.url}: a figure without one picture"
    captions = figures.locator("figcaption:visible")
    assert captions.count() == figures.count(), f"{page.url}: a picture without its caption"
    names = images.evaluate_all("all => all.flatMap((one) => [...one.classList])")
    return {name for name in names if name.startswith("only-")}


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.thorough), "dark"])
def test_without_scripts_a_page_has_the_colours_that_the_system_asks_for(page, plain_page, scheme):
    names = [
        *("html", "body", "header.bd-header", ".navbar-brand p", ".bd-sidebar-primary", "h1"),
        *("article p", "article a", "article code", ".admonition", "div.highlight pre"),
        *(".highlight .k", ".highlight .gi", ".sd-tab-label", "article td", "footer"),
    ]
    script = """(names) => names.map((name) => {
        const style = getComputedStyle(document.querySelector(name));
        return [name, style.color, style.backgroundColor, style.borderLeftColor, style.colorScheme];
    })"""
    found = []
    for one in (page, plain_page):
        one.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        one.goto("tutorial/16-equal-packets.html")
        found.append((one.evaluate(script, names), themes(one)))
    assert found[0] == found[1]


# ---- Keys ----


def test_a_table_of_numbers_takes_one_tab_and_arrows_go_from_number_to_number(page):
    page.goto("tutorial/10-reuse-heaps.html")
    table = page.locator("article table:has(button.measured)").first
    numbers = table.locator("button.measured")
    assert table.locator("button.measured:not([tabindex='-1'])").count() == 1
    numbers.first.focus()
    page.keyboard.press("ArrowRight")
    assert numbers.nth(1).evaluate("one => one === document.activeElement")
    page.keyboard.press("Enter")
    assert about(page).is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert numbers.last.evaluate("one => one === document.activeElement")
    page.keyboard.press("Tab")
    assert not table.evaluate("one => one.contains(document.activeElement)")


@pytest.mark.parametrize("width", [360, 1280])
def test_without_scripts_other_pages_are_in_reach_and_no_button_is_dead(plain_page, width):
    plain_page.set_viewport_size({"width": width, "height": 900})
    plain_page.goto("tutorial/10-reuse-heaps.html")
    assert plain_page.locator("button:visible:not([popovertarget])").count() == 0
    for name in ("9. Receive into memory of your own", "How-to guides"):
        plain_page.get_by_role("link", name=name).locator("visible=true").first.click(trial=True)


# ---- Results ----


def test_small_pictures_lead_by_keyboard_to_all_large_ones(page):
    page.goto("results.html")
    links = page.locator(".gallery").last.locator("a")
    assert links.count() == len(figures.PICTURES)
    for link in links.all():
        assert link.locator("img:visible").count() == 1
    link = page.get_by_role("link", name="Packets of equal size")
    link.press("Enter")
    page.wait_for_url("**/tutorial/16-equal-packets.html#picture-tut-16-send-equal-packets")
    assert page.locator("#picture-tut-16-send-equal-packets + figure img:visible").count() == 1


# ---- Measured numbers ----


@pytest.fixture(
    params=[
        "machines.html",
        pytest.param("tutorial/5-send-while-preparing.html", marks=pytest.mark.thorough),
    ]
)
def measured(request):
    """A page with measured numbers, in text or in the table of machines."""
    return request.param


def about(page):
    """What is shown of a number that was pressed."""
    return page.locator(".measured:popover-open")


def test_a_number_that_is_tapped_shows_its_interval_and_stays_on_the_page(browser, home, measured):
    phone = {"width": 360, "height": 700}
    with browser.new_context(has_touch=True, viewport=phone, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(home + measured)
        numbers = page.locator("article button.measured:visible")
        for tapped in (numbers.nth(n) for n in range(8)):
            tapped.tap()
            assert re.match(r"median of \d+|of one|from", about(page).inner_text())
            box, its = about(page).bounding_box(), tapped.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= phone["width"]
            upper, lower = sorted((box, its), key=lambda one: one["y"])
            assert upper["y"] + upper["height"] <= lower["y"], "the number is covered"
            page.touchscreen.tap(2, 2)
            assert about(page).count() == 0
        assert page.url == home + measured


def test_a_number_says_its_interval_to_the_keyboard_and_a_screen_reader_too(page, measured):
    page.goto(measured)
    number = page.locator("article button.measured:visible").first
    said, name = number.get_attribute("title"), " ".join(number.inner_text().split())
    assert re.search(r"interval|range|heaps", said)
    assert number.aria_snapshot().startswith(f'- button "{name}"')
    for key in ("Space", "Enter"):
        number.press(key)
        assert about(page).inner_text().startswith(said)
        assert re.search("interval|range", about(page).inner_text())
        page.keyboard.press("Escape")
        assert about(page).count() == 0
        assert number.evaluate("one => one === document.activeElement")


def test_what_a_number_says_leads_to_the_machine_by_the_tab_key(page):
    page.goto("tutorial/2-first-sender.html")
    # The page with all pictures need not be loaded.
    page.route("**/results.html", lambda route: route.fulfill(body="results"), times=1)
    page.locator("article button.measured").first.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/results.html#the-reference-machine")


def test_search_lists_first_what_is_called_so_and_a_chapter_without_its_notebook(page):
    page.goto("search.html?q=slow")
    page.get_by_text("Search finished").wait_for()
    links = page.locator("#search-results li > a, #search-results li > span > a")
    found = [urlsplit(one.get_attribute("href")).path for one in links.all()]
    assert found[0].endswith("how-to/why.html")
    assert [one for one in found if "notebooks/" in one] == []


def test_a_dark_page_is_printed_black_on_white(page):
    page.emulate_media(color_scheme="dark")
    page.goto("how-to/why.html")
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(colour)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(colour) == "rgb(255, 255, 255)" != dark
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(colour) == dark


@pytest.mark.parametrize("path", ["how-to/why.html", "machines.html"])
def test_paper_cuts_off_no_line_and_no_column(page, path):
    page.set_viewport_size({"width": 720, "height": 1100})
    page.emulate_media(media="print")
    page.goto(path)
    cut = page.evaluate(
        """() => [...document.querySelectorAll('pre, .pst-scrollable-table-container')]
            .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1)
            .map((one) => one.textContent.slice(0, 60))"""
    )
    assert cut == []


@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_a_heading_that_a_link_leads_to_is_below_the_header(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("tutorial/4-measure-it.html#what-we-measured")
    heading, header = (
        page.locator(one).bounding_box() for one in ("#what-we-measured h2", ".bd-header")
    )
    assert header["y"] + header["height"] <= heading["y"] < 200


# ---- The way through: chapters to read, and notebooks to run ----


def test_next_leads_through_all_chapters_and_then_through_all_notebooks(site):
    pages = [path.stem for path in (site / "tutorial").glob("[0-9]*.html")]
    chapters = sorted(pages, key=lambda name: int(name.partition("-")[0]))
    path, found = site / "tutorial" / "index.html", []
    for _ in range(4 + len(chapters) + len(NAMES)):
        found.append(path.stem)
        (link,) = re.findall(r'<a class="right-\w+"\s+href="([^"]+)"', path.read_text())
        path = (path.parent / link).resolve()
    assert found == ["index", "five-edits", *chapters, "exercises", "notebooks", *NAMES]


@pytest.mark.parametrize("number", range(1, len(NAMES)))
def test_a_chapter_leads_to_its_notebook_and_that_leads_back_and_on(site, number):
    (chapter,) = (site / "tutorial").glob(f"{number}-*.html")
    (line,) = re.findall(r'<p class="[^"]*run-chapter[^"]*">.*?</p>', chapter.read_text(), re.S)
    alone = number == 1 or number in (one.number for one in ARRAY)  # no program, or many at once
    assert alone or f"spead-tutorial run {number}" in re.sub("<[^>]*>", "", line)
    name = NAMES[number]
    (link,) = re.findall(r'<a [^>]*href="([^"]+)"', line)
    assert link == f"../notebooks/{name}.html"
    article = (site / "notebooks" / f"{name}.html").read_text().partition("<article")[2]
    leads_to = {Path(one).stem for one in re.findall(r'<a [^>]*href="([^"#]+)', article)}
    assert {chapter.stem, *NAMES[number + 1 : number + 2]} <= leads_to


# ---- Notebooks ----


def test_every_notebook_has_a_card_with_a_picture_that_leads_to_it_by_keyboard_and_mouse(page):
    page.goto("notebooks.html")
    pictures = page.locator(".sd-card .thumbnail").locator("img:visible, svg:visible")
    links = page.locator(".sd-card.notebook a")
    links.first.focus()
    for link in links.all():
        assert link.evaluate("one => one === document.activeElement"), link.inner_text()
        page.keyboard.press("Tab")
    assert links.count() == 2 * len(NAMES)
    assert pictures.count() == len(NAMES)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    assert pictures.count() == len(NAMES)
    assert page.locator(".thumbnail img.only-light:visible").count() == 0
    card, name = page.locator(".sd-card.notebook").last, NAMES[-1]
    card.get_by_role("link", name=f"{name}.ipynb").click(trial=True)  # nothing covers it
    card.click(position={"x": 40, "y": 40})
    page.wait_for_url(f"**/{name}.html")

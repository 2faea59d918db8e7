# SPDX-License-Identifier: BSD-3-Clause
"""Every page is whole: title, language, headings, words for pictures, links that lead somewhere."""

import dataclasses
import functools
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from spead_tutorial import notebook_run
from support import ROOT

_LEVELS = ("h1", "h2", "h3", "h4", "h5", "h6")
_LINKS = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src"}
_FILES = re.compile(r"\.(svg|png|jpe?g|gif|webp)$", re.I)


@dataclasses.dataclass
class Page(HTMLParser):
    """What is on a page."""

    lang: str | None = None
    title: str = ""
    headings: list[tuple[int, str]] = dataclasses.field(default_factory=list)
    ids: list[str] = dataclasses.field(default_factory=list)
    links: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    images: list[tuple[str, str]] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._open: list[str] = []  # the elements around it whose text is wanted
        self._drawing = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        if tag == "html":
            self.lang = named.get("lang")
        elif tag in _LEVELS:
            self.headings.append((int(tag[1]), ""))
        elif tag == "img":
            self.images.append((named.get("src", ""), named.get("alt", "")))
        elif tag == "svg":
            self._drawing += 1
        if tag in (*_LEVELS, "title"):
            self._open.append(tag)
        if "id" in named:
            self.ids.append(named["id"])
        if _LINKS.get(tag) in named:
            self.links.append((tag, named[_LINKS[tag]]))

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1] == tag:
            self._open.pop()
        self._drawing -= tag == "svg"

    def handle_data(self, data: str) -> None:
        if not self._open or self._drawing:
            return
        if self._open[-1] == "title":
            self.title += data
        else:
            level, text = self.headings[-1]
            self.headings[-1] = (level, text + data)


@functools.cache
def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text())
    return page


def has(path: Path, fragment: str) -> bool:
    """Whether a page has the place that a link to it names."""
    return unquote(fragment) in read(path.resolve()).ids


@pytest.fixture
def page(site, path):
    return read(site / path)


def test_a_page_says_its_title_and_its_language(page, path):
    assert page.title.strip(), f"{path} has no title"
    assert page.lang == "en", f"{path} does not say that it is English"


def test_a_page_has_one_heading_of_the_first_level(page, path):
    firsts = [text for level, text in page.headings if level == 1]
    assert len(firsts) == 1, f"{path} has {len(firsts)}: {firsts}"


def test_headings_go_down_one_level_at_a_time(page, path):
    before = 0
    for level, text in page.headings:
        assert level <= before + 1, f"{path}: {text!r} is of level {level}, below {before}"
        before = level


def test_every_image_has_words_for_it(page, path):
    without = [src for src, alt in page.images if not alt.strip() or _FILES.search(alt)]
    assert without == [], f"{path} has images without alternative text"


def test_no_two_places_of_a_page_have_one_name(page, path):
    twice = sorted({one for one in page.ids if page.ids.count(one) > 1})
    assert twice == [], f"{path} has several places of one name"


def test_every_link_within_the_site_leads_somewhere(page, path, site):
    broken = []
    for tag, link in page.links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (site / path).parent / unquote(parts.path) if parts.path else site / path
        if not target.resolve().is_relative_to(site) or not target.is_file():
            broken.append(f"{tag} {link}: there is no such file")
        elif parts.fragment and target.suffix == ".html" and not has(target, parts.fragment):
            broken.append(f"{tag} {link}: the page has no such place")
    assert broken == [], f"broken links on {path}"


@pytest.mark.parametrize("name", notebook_run.NAMES)
def test_a_page_of_a_notebook_leads_to_it_as_it_is_stored(site, name):
    path = site / "notebooks" / f"{name}.html"
    links = [link for tag, link in read(path).links if link.endswith(f"/{name}.ipynb")]
    stored = ROOT / notebook_run.FOLDER / f"{name}.ipynb"
    assert {(path.parent / link).read_bytes() for link in links} == {stored.read_bytes()}

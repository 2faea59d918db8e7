# SPDX-License-Identifier: BSD-3-Clause
"""Every page is whole, is quiet, fits, and can be read by all; its links lead somewhere."""

import collections
import dataclasses
import functools
import itertools
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from spead_tutorial.tools import notebooks
from support import ROOT
from support.browser import PAGES, few_of_all_kinds

NAMES = notebooks.names(ROOT / notebooks.FOLDER)
_LEVELS = ("h1", "h2", "h3", "h4", "h5", "h6")
_LINKS = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src"}
_FILES = re.compile(r"\.(svg|png|jpe?g|gif|webp)$", re.I)
FEW = few_of_all_kinds()


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


def check(site: Path, path: str) -> Iterator[str]:
    """Say what is wrong with what is written on a page."""
    page = read(site / path)
    if not page.title.strip() or page.lang != "en":
        yield f"its title is {page.title!r}, and its language {page.lang!r}"
    firsts = [text for level, text in page.headings if level == 1]
    if len(firsts) != 1:
        yield f"it has {len(firsts)} headings of the first level: {firsts}"
    for (above, _), (level, text) in itertools.pairwise([(0, ""), *page.headings]):
        if level > above + 1:
            yield f"{text!r} is of level {level}, below {above}"
    for src, alt in page.images:
        if not alt.strip() or _FILES.search(alt):
            yield f"no words for {src}"
    for name, n in collections.Counter(page.ids).items():
        if n > 1:
            yield f"{n} places are called {name}"
    for tag, link in page.links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (site / path).parent / unquote(parts.path) if parts.path else site / path
        if not target.resolve().is_relative_to(site) or not target.is_file():
            yield f"{tag} {link}: there is no such file"
        elif parts.fragment and target.suffix == ".html" and not has(target, parts.fragment):
            yield f"{tag} {link}: the page has no such place"


def test_what_is_written_on_pages_is_whole_and_every_link_leads_somewhere(site):
    assert [f"{path}: {wrong}" for path in PAGES for wrong in check(site, path)] == []


@pytest.mark.parametrize(("number", "path"), list(enumerate(FEW)))
def test_a_page(looker, site, number, path):
    """It is quiet, asks for what is there, fits, and can be read by all, light and dark.

    What is drawn as on a page before it was looked at there; all pages are below, as files, and
    here every fourth.
    """
    found = looker.look(path if number % 4 else f"file://{site}/{path}")
    assert not found, "\n".join([path, *found])


@pytest.mark.thorough
@pytest.mark.parametrize("path", PAGES)
def test_a_page_by_itself(looker, site, path):
    found = looker.look(f"file://{site}/{path}", again=True)
    assert not found, "\n".join([path, *found])


@pytest.mark.parametrize("name", NAMES)
def test_a_page_of_a_notebook_leads_to_it_as_it_is_stored(site, name):
    path = site / "notebooks" / f"{name}.html"
    links = [link for tag, link in read(path).links if link.endswith(f"/{name}.ipynb")]
    stored = ROOT / notebooks.FOLDER / f"{name}.ipynb"
    assert {(path.parent / link).read_bytes() for link in links} == {stored.read_bytes()}

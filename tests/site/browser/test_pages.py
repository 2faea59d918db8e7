# SPDX-License-Identifier: BSD-3-Clause
"""Every page is whole, is quiet, fits, and can be read by all; its links lead somewhere."""

import collections
import dataclasses
import functools
import html
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from spead_tutorial.tools import notebooks
from support import ROOT
from support.browser import PAGES, few_of_all_kinds

NAMES = notebooks.names(ROOT / notebooks.FOLDER)
_FILES = re.compile(r"\.(svg|png|jpe?g|gif|webp)$", re.I)
FEW = few_of_all_kinds()


@dataclasses.dataclass(frozen=True)
class Page:
    """What is on a page."""

    lang: str
    title: str
    headings: list[tuple[int, str]]
    ids: list[str]
    links: list[tuple[str, str]]
    images: list[tuple[str, str]]


@functools.cache
def read(path: Path) -> Page:
    """Find what is on a page, whose HTML is as docutils and Jinja write it."""
    text = re.sub(r"(?s)(<script\b[^>]*>).*?</script>|<!--.*?-->", r"\1", path.read_text())
    headings = re.findall(r"(?s)<h([1-6])\b[^>]*>(.*?)</h\1>", text)
    links = re.findall(r'<(a|link)\b[^>]*?\shref="([^"]*)"', text)
    links += re.findall(r'<(img|script|source)\b[^>]*?\ssrc="([^"]*)"', text)
    return Page(
        lang=attribute(text, "lang"),
        title=text.partition("<title>")[2].partition("</title>")[0],
        headings=[(int(level), re.sub(r"<[^>]*>", "", words)) for level, words in headings],
        ids=[html.unescape(one) for one in re.findall(r'<[^>]*?\sid="([^"]*)"', text)],
        links=[(tag, html.unescape(link)) for tag, link in links],
        images=[
            (attribute(one, "src"), attribute(one, "alt"))
            for one in re.findall(r"<img\b[^>]*>", text)
        ],
    )


def attribute(text: str, name: str) -> str:
    """The first value of an attribute."""
    found = re.search(rf'\s{name}="([^"]*)"', text)
    return html.unescape(found[1]) if found else ""


def has(path: Path, fragment: str) -> bool:
    """Whether a page has the place that a link to it names."""
    return unquote(fragment) in read(path.resolve()).ids


def check(site: Path, path: str) -> Iterator[str]:
    """Say what is wrong with what is written on a page."""
    page = read(site / path)
    if not page.title.strip() or page.lang != "en":
        yield f"its title is {page.title!r}, and its language {page.lang!r}"
    if "<p>| " in (site / path).read_text():
        yield "a table has an empty line within, or a row too many"
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

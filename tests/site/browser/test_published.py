# SPDX-License-Identifier: BSD-3-Clause
"""The site as it is published: in one archive, unpacked below a folder, and served as Pages do.

``make test-published`` builds it first.
"""

import dataclasses
import html
import json
import os
import re
import shlex
import shutil
import subprocess
import urllib.request
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urljoin, urlsplit
from xml.etree import ElementTree

import pytest

from support import load
from support.browser import listening, new_context, serving

publish = load("ci_publish", ".ci/publish.py")
#: As upload-pages-artifact makes it, with what it leaves out.
TAR = "tar --dereference --hard-dereference -cf {0} --exclude=.git --exclude=.github -C {1} ."
CHAPTER = "tutorial/2-first-sender.html"
OTHER = "v0.0.1"
_LINKS = re.compile(r'<(?:a|img|link|script)\b[^>]*?\b(?:href|src)="([^"#]+)')
_PROPERTY = re.compile(r'<meta (?:property|name)="([\w:]+)" content="([^"]*)"')


@dataclasses.dataclass(frozen=True, slots=True)
class Published:
    """Where it is, and what it said that its address would be."""

    folder: Path
    url: str
    path: str


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    named = os.environ.get("SPEAD_TUTORIAL_PUBLISHED")
    if not named:
        pytest.skip("no published site: make test-published")
    made = Path(named).resolve()
    latest, *_ = json.loads((made / publish.LIST).read_text())
    path = latest["url"].removesuffix(f"{publish.LATEST}/")
    top = tmp_path_factory.mktemp("pages")
    folder = top / path.strip("/")
    folder.mkdir(parents=True, exist_ok=True)
    archive = tmp_path_factory.mktemp("artifact") / "artifact.tar"
    subprocess.run(
        shlex.split(TAR.format(shlex.quote(str(archive)), shlex.quote(str(made)))), check=True
    )
    subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)
    with_another_version(folder, path)
    with serving(top, folder / "404.html") as url:
        yield Published(folder, url + path, path)


def with_another_version(folder, path):
    """Publish beside it a version that has but one chapter."""
    other = folder / OTHER
    shutil.copytree(folder / publish.LATEST, other, copy_function=os.link, dirs_exist_ok=True)
    for page in other.glob("tutorial/*.html"):
        if page != other / CHAPTER:
            page.unlink()
    publish.finish(folder, f"https://example.org{path}", [publish.LATEST, OTHER])


@pytest.fixture
def online(browser, published):
    with new_context(browser) as context:
        page = context.new_page()
        with listening(page, published.url) as found:
            yield page
    # What is not there is told on its console, too.
    assert [one for one in found if one.startswith(("not of", "failed"))] == []


def latest(published, page):
    return f"{published.url}{publish.LATEST}/{page}"


# ---- Files ----


def fetched(url):
    """Return what is served there, or None."""
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.read()
    except HTTPError:
        return None


def test_every_link_of_the_latest_version_leads_to_a_file_that_is_served(published):
    """Beginning with the page for those who were led astray, which is served anywhere."""
    wanted, broken = {published.url: "", latest(published, "404.html"): ""}, []
    for url in (queue := list(wanted)):
        answer = fetched(url)
        if answer is None:
            broken.append(f"{wanted[url]} has a link to {url}, where there is nothing")
        if answer is None or not url.endswith((".html", "/")):
            continue
        for link in map(html.unescape, _LINKS.findall(answer.decode())):
            target = urlsplit(urljoin(url, link))._replace(query="", fragment="").geturl()
            if target.startswith("http://127.0.0.1:") and target not in wanted:
                wanted[target] = url
                queue.append(target)
    assert broken == []
    assert [url for url in wanted if not url.startswith(published.url)] == []
    assert latest(published, CHAPTER) in wanted


def test_the_sitemap_names_every_page_by_its_address(published):
    folder = published.folder / publish.LATEST
    root = ElementTree.parse(folder / "sitemap.xml").getroot()
    named = {urlsplit(place.text).path for place in root.findall(".//{*}loc")}
    pages = {
        page.relative_to(published.folder).as_posix()
        for page in folder.rglob("*.html")
        if not page.relative_to(folder).parts[0].startswith("_")
    }
    left_out = {"404.html", "genindex.html", "py-modindex.html", "search.html"}
    expected = {page for page in pages if page.removeprefix(f"{publish.LATEST}/") not in left_out}
    assert named == {f"{published.path}{page}" for page in expected}


def test_what_shows_a_link_is_told_a_title_words_and_a_picture(published):
    from PIL import Image

    text = (published.folder / publish.LATEST / CHAPTER).read_text()
    said = dict(_PROPERTY.findall(text))
    assert said["og:title"] == "2. A first sender"
    assert len(said["og:description"]) > 50
    assert urlsplit(said["og:url"]).path == f"{published.path}{publish.LATEST}/{CHAPTER}"
    address = urlsplit(said["og:image"])
    assert address.scheme.startswith("http"), "who shows a link takes whole addresses only"
    with Image.open(published.folder / address.path.removeprefix(published.path)) as card:
        assert card.width >= 1200
    assert said["og:image:alt"]


# ---- In a browser ----


def test_the_address_of_the_site_leads_to_the_latest_version(online, published):
    online.goto(published.url)
    online.wait_for_url(latest(published, "index.html"))


def test_where_there_is_nothing_a_page_leads_back_and_can_search(online, published):
    missing = []
    online.on("response", lambda one: missing.append(one.url) if one.status >= 400 else None)
    url = latest(published, "tutorial/of/what-was-moved.html")
    assert online.goto(url).status == 404
    assert missing == [url]
    assert online.locator("h1").inner_text().startswith("Page not found")
    online.get_by_role("link", name="first page").click()
    online.wait_for_url(latest(published, "index.html"))
    online.goto(url)
    online.locator(".search-button__button:visible").first.click()
    online.keyboard.type("heap")
    online.keyboard.press("Enter")
    online.locator("#search-results li a").first.click()
    online.wait_for_url(re.compile(r"^(?!.*search\.html)"))
    assert online.url.startswith(latest(published, "")), online.url


def switch(page, name):
    page.locator(".version-switcher__button:visible").click()
    page.locator(".version-switcher__menu:visible").get_by_text(name, exact=True).click()


def test_the_switch_leads_to_the_same_page_of_another_version_or_to_its_first(online, published):
    for page, there in ((CHAPTER, CHAPTER), ("tutorial/index.html", "")):
        online.goto(latest(published, page))
        switch(online, OTHER)
        online.wait_for_url(f"{published.url}{OTHER}/{there}")
    online.goto(f"{published.url}{OTHER}/{CHAPTER}")
    switch(online, publish.LATEST)
    online.wait_for_url(latest(published, CHAPTER))

# SPDX-License-Identifier: BSD-3-Clause
"""A browser that is kept off the network, and pages in it.

The site is opened from a server on this machine, where scripts and styles are kept from page to
page; and some pages as files.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.browser import (
    PAGES,
    SITE,
    Looker,
    listening,
    load_axe,
    make_new,
    missing,
    new_context,
    open_browser,
    serving,
)


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built site."""
    if not PAGES:
        missing(f"no site in {SITE}: make docs")
    return SITE


@pytest.fixture(scope="session")
def pages_with(site: Path) -> Callable[..., list[str]]:
    """Find the pages whose HTML has a piece of text, and has it often enough, small ones first."""
    texts = sorted(
        ((path, (site / path).read_text()) for path in PAGES), key=lambda one: len(one[1])
    )

    def find(text: str, often: int = 1) -> list[str]:
        found = [path for path, html in texts if html.count(text) >= often]
        return found or missing(f"no page of {site} has {text}: make docs")

    return find


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """A browser for the tests of this folder. While there is one, an event loop runs, beside
    which a worker could run none for tests of others."""
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="session")
def axe() -> Any:
    return load_axe()


@pytest.fixture(scope="session")
def home(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the site is served, below another folder."""
    top = tmp_path_factory.mktemp("served")
    (top / "below").symlink_to(site)
    (top / "favicon.ico").symlink_to(site / "_static" / "icon.svg")  # a list of files has none
    with serving(top) as url:
        yield f"{url}/below/"


@pytest.fixture(scope="package")
def looker(browser: Any, axe: Any, home: str) -> Iterator[Looker]:
    """What looks at the pages of the site."""
    with new_context(browser, home) as context:
        yield Looker(context, axe, home)


@pytest.fixture(scope="package")
def tab(browser: Any, home: str) -> Iterator[Any]:
    """The page that tests have in turns, for a new one costs many times as much as to load one."""
    with new_context(browser, home) as context:
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield context.new_page()


@pytest.fixture
def page(tab: Any, home: str) -> Iterator[Any]:
    """The page of a reader who comes for the first time; it may complain of nothing.

    Its addresses are those below `home`, unless whole.
    """
    make_new(tab)
    with listening(tab, home) as found:
        yield tab
    assert found == []


@pytest.fixture(scope="package")
def plain_tab(browser: Any, home: str) -> Iterator[Any]:
    with browser.new_context(java_script_enabled=False, base_url=home) as context:
        yield context.new_page()


@pytest.fixture
def plain_page(plain_tab: Any) -> Any:
    """A page in a browser that runs no scripts, and whose system is a light one."""
    plain_tab.emulate_media(color_scheme="light", reduced_motion="reduce")
    return plain_tab

# SPDX-License-Identifier: BSD-3-Clause
"""A browser that is kept off the network, and pages in it. The site is opened as files."""

import contextlib
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


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="session")
def axe() -> Any:
    return load_axe()


@pytest.fixture(scope="session")
def looker(browser: Any, axe: Any) -> Iterator[Looker]:
    """What looks at the pages of the site."""
    with new_context(browser) as context:
        yield Looker(context, axe)


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[..., str]]:
    """Serve folders, and say where each is."""
    with contextlib.ExitStack() as stack:
        yield lambda *told: stack.enter_context(serving(*told))


@pytest.fixture
def served(site: Path, tmp_path: Path, serve: Callable[..., str]) -> str:
    """Where the site is on a server of its own, below another folder."""
    (tmp_path / "below").symlink_to(site)
    return f"{serve(tmp_path)}/below"


@pytest.fixture(scope="session")
def tab(browser: Any) -> Iterator[Any]:
    """The page that tests have in turns, for a new one costs twice as much as to load one."""
    with new_context(browser) as context:
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield context.new_page()


@pytest.fixture
def page(tab: Any) -> Iterator[Any]:
    """The page of a reader who comes for the first time; it may complain of nothing."""
    make_new(tab)
    with listening(tab) as found:
        yield tab
    assert found == []


@pytest.fixture(scope="session")
def plain_page(browser: Any) -> Iterator[Any]:
    """A page in a browser that runs no scripts."""
    with browser.new_context(java_script_enabled=False, offline=True) as context:
        yield context.new_page()


@pytest.fixture
def page_of(browser: Any) -> Iterator[Callable[[str], Any]]:
    """Make pages that may ask one server, and nobody else."""
    with contextlib.ExitStack() as stack:
        context = stack.enter_context(browser.new_context(reduced_motion="reduce"))
        found: list[list[str]] = []

        def page_of(url: str) -> Any:
            page = context.new_page()
            found.append(stack.enter_context(listening(page, url)))
            return page

        yield page_of
    # What is not there is told on its console, too.
    assert [one for some in found for one in some if one.startswith(("not of", "failed"))] == []

# SPDX-License-Identifier: BSD-3-Clause
"""The built site, a browser, and what one visit to each page finds.

The site is opened as files, and the browser is kept off the network. Without a site, a browser or
the packages (``[browser]``), tests are skipped; ``SPEAD_TUTORIAL_BROWSER=required`` fails them.

``SPEAD_TUTORIAL_SITE`` names the folder of another site, ``SPEAD_TUTORIAL_CHROMIUM`` a browser,
``SPEAD_TUTORIAL_PUBLISHED`` what ``make published`` has made: that is served, as Pages do.
"""

import contextlib
import dataclasses
import functools
import http.server
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from support import ROOT

SITE = Path(os.environ.get("SPEAD_TUTORIAL_SITE") or ROOT / "build" / "site").resolve()
#: All pages, from the site's folder. What is below `_static` are parts of the theme.
PAGES = sorted(
    path.relative_to(SITE).as_posix()
    for path in SITE.rglob("*.html")
    if not any(part.startswith("_") for part in path.relative_to(SITE).parts)
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: Browsers ask name servers about their makers as they start; here there is nobody to answer.
ASK_NOBODY = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"

#: Widths of a phone, a tablet and a laptop, in CSS pixels.
WIDTHS = (1280, 768, 360)
# On a phone more boxes scroll than on a laptop, so that is looked at there; and the theme takes a
# moment to let the keyboard reach them.
_SCROLLING = "scrollable-region-focusable"
_MOMENT = 400  # ms
_WCAG = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]},
    "rules": {_SCROLLING: {"enabled": False}},
    "resultTypes": ["violations"],
    "preload": False,  # it would fetch style sheets, which files cannot
}
# What is drawn in other colours, and the pictures that only the dark have.
_WCAG_DARK = {
    "runOnly": {
        "type": "rule",
        "values": ["color-contrast", "link-in-text-block", "image-alt", "svg-img-alt"],
    },
    "resultTypes": ["violations"],
    "preload": False,
}
_WCAG_PHONE = {
    "runOnly": {"type": "rule", "values": [_SCROLLING]},
    "resultTypes": ["violations"],
    "preload": False,  # it would fetch style sheets, which files cannot
}
# What is behind tabs and in closed boxes is part of a page too. Colours are to be seen as they
# are in the end, rather than on their way there.
_ALL_SHOWN = """
    .sd-tab-set > .sd-tab-content { display: block !important; }
    *, *::before, *::after { transition: none !important; animation: none !important; }
"""
_OPEN_ALL = "document.querySelectorAll('details').forEach(one => { one.open = true; })"
# Contrast takes long to find out, and a page has thousands of words in a few dozen of styles: one
# of each kind is looked at for all, drawn with the same within boxes that are drawn with the same.
_ONE_OF_A_KIND = """() => {
    const drawn = ['color', 'fontSize', 'fontWeight', 'textShadow', 'opacity', 'backgroundColor',
        'backgroundImage', 'display', 'position'];
    const known = new Map(), kinds = new Set();
    const kind = (one) => {
        if (!one) return '';
        if (!known.has(one)) {
            const style = getComputedStyle(one);
            const own = [one.tagName, one.className, ...drawn.map((name) => style[name])];
            known.set(one, kind(one.parentElement) + own.join() + ' ');
        }
        return known.get(one);
    };
    const hasWords = (one) => [...one.childNodes].some(
        (node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    for (const one of document.querySelectorAll('body *')) {
        one.toggleAttribute('data-first-of-kind', hasWords(one) && !kinds.has(kind(one)));
        if (hasWords(one)) kinds.add(kind(one));
    }
    axe.configure({rules: [{id: 'color-contrast', selector: '[data-first-of-kind]'}]});
}"""
# The theme would let the whole article scroll sideways, so that is held to its width as well.
_TOO_WIDE = """() => {
    const frames = [...document.querySelectorAll('html, .bd-article-container')];
    const wide = frames.filter((one) => one.scrollWidth > one.clientWidth);
    if (!wide.length) return [];
    const scrolls = (one) => {
        for (let box = one.parentElement; box && !frames.includes(box); box = box.parentElement)
            if (getComputedStyle(box).overflowX !== 'visible') return true;
        return false;
    };
    const name = (one) => [one.tagName.toLowerCase(), ...one.classList].join('.');
    const end = Math.min(...wide.map((one) => one.getBoundingClientRect().left + one.clientWidth));
    const found = [...document.querySelectorAll('article *')].filter(
        (one) => one.getBoundingClientRect().right > end && !scrolls(one));
    const over = (one) => `${name(one)} is ${one.scrollWidth - one.clientWidth} px too wide`;
    return [...wide.map(over),
        ...found.slice(-5).map((one) => `${name(one)}: ${one.textContent.trim().slice(0, 60)}`)];
}"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "path" in metafunc.fixturenames:
        # One page after the other, so that a worker has most of what is asked of a page.
        metafunc.parametrize("path", PAGES or ["no site"], scope="module")
    if "chapter" in metafunc.fixturenames:
        chapters = [path for path in PAGES if path.startswith("tutorial/")]
        metafunc.parametrize("chapter", chapters or ["no site"])


def missing(reason: str) -> NoReturn:
    """Skip a test for want of something, or fail it where that is required."""
    if os.environ.get("SPEAD_TUTORIAL_BROWSER") == "required":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built site."""
    if not PAGES:
        missing(f"no site in {SITE}: make docs")
    return SITE


@pytest.fixture(scope="session")
def pages_with(site: Path) -> Callable[[str], list[str]]:
    """Find the pages whose HTML has a piece of text most often, those first."""
    texts = {path: (site / path).read_text() for path in PAGES}

    def find(text: str) -> list[str]:
        counts = {path: html.count(text) for path, html in texts.items()}
        found = sorted((path for path in PAGES if counts[path]), key=lambda path: -counts[path])
        return found or missing(f"no page of {site} has {text}: make docs")

    return find


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A browser, without a window."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("no playwright: pip install '.[browser]'")
    named = os.environ.get("SPEAD_TUTORIAL_CHROMIUM")
    program = named or next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        missing("there is no browser: apt install chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=[ASK_NOBODY])
        yield chromium
        chromium.close()


@pytest.fixture
def served(site: Path, tmp_path: Path, serve: Callable[..., str]) -> str:
    """Where the site is on a server of its own, below another folder."""
    (tmp_path / "below").symlink_to(site)
    return f"{serve(tmp_path)}/below"


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page of one's own, of a reader who comes for the first time; it may complain of nothing."""
    with offline(browser) as context:
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page, found = context.new_page(), Visit()
        with listening(page, found):
            yield page
    assert (found.console, found.requests) == ([], [])


@pytest.fixture
def page_of(browser: Any) -> Iterator[Callable[[str], Any]]:
    """Make pages that may ask one server, and nobody else."""
    with contextlib.ExitStack() as stack:
        context = stack.enter_context(browser.new_context(reduced_motion="reduce"))
        found = Visit()

        def page_of(url: str) -> Any:
            page = context.new_page()
            stack.enter_context(listening(page, found, url))
            return page

        yield page_of
    # What a page asks for as it is left is given up.
    assert [one for one in found.requests if "ERR_ABORTED" not in one] == []


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[..., str]]:
    """Serve folders, and say where each is."""
    with contextlib.ExitStack() as stack:
        yield lambda *told: stack.enter_context(_serving(*told))


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


class PagesHandler(QuietHandler):
    """Answers as GitHub's Pages do: with the site's own page where there is nothing."""

    def __init__(self, *told: Any, nothing: Path, **named: Any) -> None:
        self._nothing = nothing
        super().__init__(*told, **named)

    def send_error(self, code: int, *_: object) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(self._nothing.read_bytes())


@contextlib.contextmanager
def _serving(folder: Path, nothing: Path | None = None) -> Iterator[str]:
    kind = functools.partial(PagesHandler, nothing=nothing) if nothing else QuietHandler
    handler = functools.partial(kind, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def offline(browser: Any) -> Any:
    """Make a context that gets nothing from the network."""
    return browser.new_context(
        viewport={"width": WIDTHS[0], "height": 900},
        color_scheme="light",
        reduced_motion="reduce",
        offline=True,
    )


_OWN = ("file:", "data:", "blob:", "about:")


# ---------------------------------------------------------------------------------------
# One visit to each page


@dataclasses.dataclass(frozen=True, slots=True)
class Visit:
    """What was found wrong with a page, in words."""

    console: list[str] = dataclasses.field(default_factory=list)
    requests: list[str] = dataclasses.field(default_factory=list)
    too_wide: dict[int, list[str]] = dataclasses.field(default_factory=dict)
    violations: dict[str, list[str]] = dataclasses.field(default_factory=dict)


@pytest.fixture(scope="session")
def axe() -> Any:
    """What finds out whether a page can be read by all."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        missing("no axe: pip install '.[browser]'")
    return Axe()


@pytest.fixture(scope="session")
def _visits(site: Path, browser: Any, axe: Any) -> Iterator[Callable[[str], Visit]]:
    visits: dict[str, Visit] = {}
    with offline(browser) as context:
        page = context.new_page()  # for all: a new one costs as much as what is asked of it

        def visit(path: str) -> Visit:
            if path not in visits:
                visits[path] = Visit()
                with listening(page, visits[path]):
                    _look(page, f"file://{site}/{path}", axe, visits[path])
                page.goto("about:blank")  # what it still asks for is not the next one's
            return visits[path]

        yield visit


@pytest.fixture
def visit(_visits: Callable[[str], Visit], path: str) -> Visit:
    """What a visit to the page found; pages are visited once for all tests."""
    return _visits(path)


@pytest.fixture
def look(axe: Any) -> Callable[[Any, str], Visit]:
    """Look at a page for what is wrong with it, all of which is returned."""

    def look(page: Any, url: str) -> Visit:
        found = Visit()
        with listening(page, found, url[: url.index("/", len("http://"))]):
            _look(page, url, axe, found)
        return found

    return look


@contextlib.contextmanager
def listening(page: Any, found: Visit, *own: str) -> Iterator[None]:
    """Note what the page complains about, and what it asks for in vain, or of others."""

    def complain(message: Any) -> None:
        if message.type in ("error", "warning"):
            found.console.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    def throw(error: Any) -> None:
        found.console.append(f"exception: {error}")

    def fail(request: Any) -> None:
        if request.url.startswith((*_OWN, *own)):
            found.requests.append(f"failed: {request.url} ({request.failure})")

    def ask(request: Any) -> None:
        if not request.url.startswith((*_OWN, *own)):
            found.requests.append(f"not of the site: {request.url}")

    listeners = {
        "console": complain,
        "pageerror": throw,
        "request": ask,
        "requestfailed": fail,
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    try:
        yield
    finally:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)


def _look(page: Any, url: str, axe: Any, found: Visit) -> None:
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    page.goto(url, wait_until="load")
    page.add_style_tag(content=_ALL_SHOWN)
    page.evaluate(_OPEN_ALL)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        found.too_wide[width] = page.evaluate(_TOO_WIDE)
    page.wait_for_timeout(_MOMENT)
    page.evaluate(axe.axe_script)
    scrolling = _violations(page, _WCAG_PHONE)
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    for mode, rules in (("light", _WCAG), ("dark", _WCAG_DARK)):
        page.emulate_media(color_scheme=mode)
        page.wait_for_function(f"document.documentElement.dataset.theme === '{mode}'")
        page.evaluate(_ONE_OF_A_KIND)
        found.violations[mode] = _violations(page, rules) + scrolling


def _violations(page: Any, options: dict[str, Any]) -> list[str]:
    response = page.evaluate("options => axe.run(options)", options)
    return [
        f"{rule['id']} ({rule['help']}): {' '.join(map(str, node['target']))}:"
        f" {' '.join(node['html'].split())[:160]}"
        + "".join(f"; {check['message']}" for check in [*node["any"], *node["all"]][:1])
        for rule in response["violations"]
        for node in rule["nodes"]
    ]

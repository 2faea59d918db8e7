# SPDX-License-Identifier: BSD-3-Clause
"""The built site, a browser, and what a look at a page finds wrong with it.

``SPEAD_TUTORIAL_SITE`` names the folder of another site, ``SPEAD_TUTORIAL_CHROMIUM`` a browser.
Where either is missing tests are skipped; ``SPEAD_TUTORIAL_BROWSER=required`` fails them.
"""

import contextlib
import functools
import http.server
import importlib
import os
import re
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
    {
        path.relative_to(SITE).as_posix()
        for path in SITE.rglob("*.html")
        if not any(part.startswith("_") for part in path.relative_to(SITE).parts)
    }
)
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: Browsers ask name servers about their makers as they start; here there is nobody to answer, and
#: nobody to see what a graphics card that there is not would draw.
_ARGUMENTS = [
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    *("--disable-gpu", "--disable-software-rasterizer"),
]
_OWN = ("file:", "data:", "blob:", "about:")
#: Widths of a phone, a tablet and a laptop, in CSS pixels.
_WIDTHS = (360, 768, 1280)
_LAPTOP = {"width": _WIDTHS[-1], "height": 900}

#: What is told of all that axe tries: styles cannot be fetched from files.
ONLY_VIOLATIONS = {"resultTypes": ["violations"], "preload": False}
#: What depends on colours, for which axe looks at what is below each word.
_COLOURS = ONLY_VIOLATIONS | {"runOnly": ["color-contrast", "link-in-text-block"]}
WCAG = ONLY_VIOLATIONS | {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"],  # with those of colours
    "rules": {"scrollable-region-focusable": {"enabled": False}},  # see _STUCK
}
# What is behind tabs and in closed boxes is part of a page too. Colours are to be seen as they
# are in the end, rather than on their way there.
_ALL_SHOWN = """document.addEventListener('DOMContentLoaded', () => {
    const style = document.createElement('style');
    style.textContent = `.sd-tab-set > .sd-tab-content { display: block !important; }
        *, *::before, *::after { transition: none !important; animation: none !important; }`;
    document.head.append(style);
    document.querySelectorAll('details').forEach((one) => { one.open = true; });
});"""
# Contrast takes long to find out, and pages have thousands of words in a few dozen of styles: one
# of each kind is looked at for all, drawn the same within the same on what is painted below it.
_MARK_WHAT_IS_NEW = """(known) => {
    const letters = ['color', 'fontSize', 'fontWeight', 'textShadow', 'textDecorationLine'];
    const paint = ['backgroundColor', 'backgroundImage', 'opacity', 'position'];
    const nothing = 'rgba(0, 0, 0, 0),none,1,static';
    const of = (style, names) => names.map((name) => style[name]).join();
    const hasWords = (one) => [...one.childNodes].some(
        (node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    const seen = new Set(known), below = new Map(), drawn = new Map(), found = new Map();
    const all = [...document.querySelectorAll('body, body *')];
    for (const one of all) {
        const style = getComputedStyle(one), own = of(style, paint), within = one.parentElement;
        below.set(one, (below.get(within) ?? '') + (own === nothing ? '' : `${own};`));
        drawn.set(one, of(style, letters));
        const around = one.tagName === 'A' ? drawn.get(within) : '';
        const kind = [drawn.get(one), below.get(one), around].join(' ');
        if (!seen.has(kind) && !found.has(kind) && hasWords(one)) found.set(kind, one);
    }
    for (const one of all) one.removeAttribute('data-new');
    for (const one of found.values()) one.setAttribute('data-new', '');
    axe.configure({rules: [{id: 'color-contrast', selector: '[data-new]'},
        {id: 'link-in-text-block', selector: 'a[href][data-new]'}]});
    return [...found.keys()];
}"""
# The theme would let the whole article scroll sideways, so that is held to its width as well.
_TOO_WIDE = """[...document.querySelectorAll('html, .bd-article-container')]
    .filter((one) => one.scrollWidth > one.clientWidth)
    .map((one) => `${one.localName} is ${one.scrollWidth - one.clientWidth} px too wide`)"""
#: Boxes that scroll, and that the keyboard does not reach; on a phone there are most.
_STUCK = """[...document.querySelectorAll('body *')]
    .filter((one) => one.tabIndex < 0 && ['Width', 'Height'].some((size) =>
        one[`client${size}`] && one[`scroll${size}`] > one[`client${size}`] + 13
        && /auto|scroll/.test(getComputedStyle(one)[size === 'Width' ? 'overflowX' : 'overflowY'])))
    .filter((one) => !one.querySelector('a[href], button, input, select, summary, [tabindex="0"]'))
    .map((one) => `${one.tagName.toLowerCase()}.${one.className}: ${one.textContent.slice(0, 60)}`)
"""


def few_of_all_kinds() -> list[str]:
    """Choose pages, small ones first, that have all elements and classes of the site's styles."""
    sheets = "".join(path.read_text() for path in (ROOT / "docs" / "_static").glob("*.css"))
    selectors = re.sub(r"/\*.*?\*/|\{[^{}]*\}", " ", sheets, flags=re.DOTALL)
    styled = set(re.findall(r"\.?[A-Za-z][\w-]*", selectors))
    kinds, sizes = {}, {}
    for path in PAGES:
        html = (SITE / path).read_text()
        elements = re.findall(r'<(\w+)(?=[\s>])(?:[^>]*?\sclass="([^"]*)")?', html)
        names = {f".{name}" for _, classes in elements for name in classes.split()}
        kinds[path] = styled & (names | {tag for tag, _ in elements})
        sizes[path] = len(html)
    few: list[str] = []
    left = set().union(*kinds.values())
    while left:
        few.append(max(PAGES, key=lambda path: len(kinds[path] & left) / sizes[path]))
        left -= kinds[few[-1]]
    for path in few.copy():  # those chosen early may have nothing that those after them have not
        if kinds[path] <= set().union(*(kinds[one] for one in few if one != path)):
            few.remove(path)
    return few


def missing(reason: str) -> NoReturn:
    """Skip a test for want of something, or fail it where that is required."""
    if os.environ.get("SPEAD_TUTORIAL_BROWSER") == "required":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        missing(f"no {module}: pip install '.[browser]'")


@contextlib.contextmanager
def open_browser() -> Iterator[Any]:
    """Start a browser without a window."""
    playwright_api = _imported("playwright.sync_api")
    named = os.environ.get("SPEAD_TUTORIAL_CHROMIUM")
    program = named or next(filter(None, map(shutil.which, _BROWSERS)), None)
    if program is None:
        missing("there is no browser: apt install chromium")
    with playwright_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=_ARGUMENTS)
        yield chromium
        chromium.close()


def load_axe() -> Any:
    """Return what finds out whether a page can be read by all."""
    return _imported("axe_playwright_python.sync_playwright").Axe()


def new_context(browser: Any, home: str | None = None) -> Any:
    """Make a context for a reader who comes for the first time."""
    return browser.new_context(
        base_url=home, viewport=_LAPTOP, color_scheme="light", reduced_motion="reduce"
    )


def make_new(page: Any) -> None:
    """Make a page that was used as one of a reader who comes for the first time."""
    page.goto("_static/")  # a list of files: the page that is left may use what is cleared
    page.evaluate("localStorage.clear(); sessionStorage.clear()")
    page.set_viewport_size(_LAPTOP)
    page.emulate_media(media="null", color_scheme="light", reduced_motion="reduce")
    page.mouse.move(0, 0)


# ---- Servers ----


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "max-age=3600")  # nothing changes while tests run
        super().end_headers()


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a folder, and say where."""
    handler = functools.partial(_Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


# ---- Looking at a page ----


@contextlib.contextmanager
def listening(page: Any, *own: str) -> Iterator[list[str]]:
    """Note what the page complains about, and what it asks for in vain, or of others."""
    found: list[str] = []

    def complain(message: Any) -> None:
        if message.type in ("error", "warning"):
            found.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    def fail(request: Any) -> None:
        given_up = "ERR_ABORTED" in (request.failure or "")  # as the page was left
        if request.url.startswith((*_OWN, *own)) and not given_up:
            found.append(f"failed: {request.url} ({request.failure})")

    def ask(request: Any) -> None:
        if not request.url.startswith((*_OWN, *own)):
            found.append(f"not of the site: {request.url}")

    listeners = {
        "console": complain,
        "pageerror": lambda error: found.append(f"exception: {error}"),
        "request": ask,
        "requestfailed": fail,
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    try:
        yield found
    finally:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)


class Looker:
    """Looks at one page after the other in a page of its own: a new one costs as much as a look."""

    def __init__(self, context: Any, axe: Any, home: str) -> None:
        self._home = home
        context.add_init_script(axe.axe_script)
        context.add_init_script(_ALL_SHOWN)
        self._page = context.new_page()
        self._known: dict[str, set[str]] = {"light": set(), "dark": set()}

    def look(self, url: str, again: bool = False) -> list[str]:
        """Return all that is wrong with a page; again at all that was seen on others, too."""
        page = self._page
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": _WIDTHS[0], "height": 900})
        with listening(page, self._home) as found:
            page.goto(url)
            found += wait_for_tab_stops(page)
            for width in _WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                found += [f"{width} px: {one}" for one in page.evaluate(_TOO_WIDE)]
            for mode in ("light", "dark"):
                page.emulate_media(color_scheme=mode)
                page.wait_for_function(f"document.documentElement.dataset.theme === '{mode}'")
                known = set() if again else self._known[mode]
                new = page.evaluate(_MARK_WHAT_IS_NEW, list(known))
                known.update(new)
                if mode == "light":
                    found += violations(page, WCAG)
                elif new:
                    found += violations(page, _COLOURS, "dark: ")
        return found


def wait_for_tab_stops(page: Any) -> list[str]:
    """Wait until the keyboard reaches all boxes that scroll, or return which it does not."""
    try:
        page.wait_for_function(f"!({_STUCK}).length", timeout=3000)
    except _imported("playwright.sync_api").TimeoutError:
        stuck = page.evaluate(_STUCK)
        return [f"not reached by the Tab key: {one}" for one in stuck]
    return []


def violations(
    page: Any, options: dict[str, Any] = WCAG, words: str = "", within: str = "html"
) -> list[str]:
    """Run axe, which the page has, on a part of it, and say what it finds."""
    run = "([within, options]) => axe.run(within, options)"
    response = page.evaluate(run, [within, options])
    return [
        f"{words}{rule['id']} ({rule['help']}): {' '.join(map(str, node['target']))}:"
        f" {' '.join(node['html'].split())[:160]}"
        + "".join(f"; {check['message']}" for check in [*node["any"], *node["all"]][:1])
        for rule in response["violations"]
        for node in rule["nodes"]
    ]


def functions_of(page: Any, name: str) -> Callable[..., Any]:
    """Return what calls functions of a script that knows no page: by name, with what it is told."""
    page.add_script_tag(url=f"{name}.js")
    script = f"([name, given]) => {name.title()}[name](...given)"
    return lambda function, *given: page.evaluate(script, [function, given])

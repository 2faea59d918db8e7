# SPDX-License-Identifier: BSD-3-Clause
"""Python in the page: where the site has it, it takes the reader's packets apart."""

import numpy as np
import pytest

from spead_tutorial import wire
from spead_tutorial.send import ItemGroup, PacketGenerator

PAGE = "tutorial/1-spead-on-the-wire.html"
_LONG = 60_000  # ms: it is much to load, and to compile


@pytest.fixture
def python(browser, site, home):
    """The page, from a server: it may ask that for its files, and nobody else for anything."""
    if not (site / "pyodide").is_dir():
        pytest.skip("the site has no Python: make pyodide docs")
    with browser.new_context() as context:
        page, asked = context.new_page(), []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(home + PAGE)
        yield page
    assert [url for url in asked if not url.startswith((home, "data:", "blob:"))] == []


def run(page, code=None):
    """Run what is in the field, or something else; return what it prints."""
    if code is not None:
        page.locator(".python textarea").fill(code)
    page.get_by_role("button", name="Run it").click()
    page.get_by_text("It has ended.").wait_for(timeout=_LONG)
    return page.locator(".python pre").inner_text()


def test_python_in_the_page_prints_what_python_prints_here(python, axe):
    group = ItemGroup()
    samples = (np.arange(4000) % 100).astype(np.int8)
    group.add_item(0x1600, "timestamp", "", (), format=[("u", 40)], value=1000)
    group.add_item(0x3300, "adc_samples", "", (4000,), np.int8, value=samples)
    packets = PacketGenerator(group.get_heap(descriptors="none", data="all"), 7, 1472)
    printed = "\n".join(wire.format_table(wire.dissect(one)) for one in packets)
    assert run(python).strip() == printed.strip()
    assert axe.run(python, context=".python").response["violations"] == []


def test_what_cannot_run_in_a_browser_says_so_in_one_line(python):
    said = run(python, "from spead_tutorial import send").strip()
    assert "\n" not in said
    assert "spead_tutorial.send is compiled" in said
    assert run(python, "print(len(packets))").strip() == "3"


def test_python_that_does_not_end_can_be_stopped(python):
    run(python, "print(1)")
    python.locator(".python textarea").fill("while True: pass")
    python.get_by_role("button", name="Run it").click()
    python.get_by_role("button", name="Stop").click()
    python.get_by_text("It was stopped.").wait_for()
    assert run(python, "print(2)").strip() == "2"


def test_a_page_that_is_read_from_a_file_says_that_python_needs_a_server(page, site):
    if not (site / "pyodide").is_dir():
        pytest.skip("the site has no Python: make pyodide docs")
    page.goto(f"file://{site}/{PAGE}")
    page.get_by_role("button", name="Run it").click()
    assert "http.server" in page.locator(".python .said").inner_text()

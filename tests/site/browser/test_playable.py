# SPDX-License-Identifier: BSD-3-Clause
"""What one can play with is in the pages that are to have it, and can be done without."""

import pytest

PAGES = (
    "index.html",
    "tutorial/1-spead-on-the-wire.html",
    "tutorial/5-send-while-preparing.html",
    "tutorial/7-keep-up.html",
    "tutorial/11-batches-of-heaps.html",
    "tutorial/16-equal-packets.html",
    "tutorial/17-receive-where-the-data-is-read.html",
)


@pytest.mark.parametrize("name", PAGES)
def test_without_scripts_a_page_says_so_and_keeps_its_picture(plain_page, name):
    plain_page.goto(name)
    for place in plain_page.locator(".play").all():
        assert "in a browser that runs scripts" in place.inner_text()
    assert plain_page.locator(".play").count() > 0
    assert plain_page.locator("article figure").locator("img, svg").count() > 0


def test_pages_that_have_nothing_to_play_with_have_no_scripts_for_it(site):
    with_script = {path for path in site.rglob("*.html") if "_static/play.js" in path.read_text()}
    assert with_script == {site / page for page in PAGES}

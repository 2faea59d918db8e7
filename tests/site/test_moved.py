# SPDX-License-Identifier: BSD-3-Clause
"""Who follows a link to a page that is gone comes to where its matter is now."""

import posixpath
import re
import tomllib
from urllib.parse import urlsplit

import pytest
from docutils.nodes import make_id

from support import ROOT

DOCS = ROOT / "docs"
MOVED = tomllib.loads((DOCS / "moved.toml").read_text())


def source(page: str) -> str | None:
    """The text that a page is made of, if there is one."""
    found = [path for end in (".md", ".rst") if (path := DOCS / f"{page}{end}").is_file()]
    return found[0].read_text() if found else None


@pytest.mark.parametrize("page", MOVED)
def test_a_page_that_is_gone_leads_to_a_heading_that_there_is(page):
    assert source(page) is None, "it is there, and would be written over"
    target = urlsplit(MOVED[page])
    text = source(posixpath.normpath(f"{page}/../{target.path}").removesuffix(".html"))
    assert text is not None
    headings = {make_id(one.replace("'", "-")) for one in re.findall("^#+ (.+)", text, re.M)}
    assert target.fragment in {"", *headings}

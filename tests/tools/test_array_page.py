# SPDX-License-Identifier: BSD-3-Clause
"""The page of an array: it has all of the account, needs nothing else, and obeys no stranger."""

import re
import xml.etree.ElementTree as ET

from msgspec.structs import replace

from spead_tutorial.measure.corner_turn import Ended, Lost
from spead_tutorial.results.account import Account
from spead_tutorial.tools.array.page import page
from support.arrays import account, receiver, recorded, sender
from support.strangers import HOSTILE, obeyed


def test_a_page_is_one_file_with_picture_matrix_losses_machine_and_command():
    found = account([sender(0, 10, 10)], [receiver(0, 10), receiver(1, 6)], switch=[Lost(4)])
    text = page(recorded(found), "All arrives at 5 MB/s.")
    assert f"<h1>{found.verdict}</h1>\n<p>{found.most}</p>" in text
    cells = "</td><td>".join(["0", "4", "4", "20, 5000 MB/s"])
    assert f'<tr><th scope="row">sender 0</th><td>{cells}</td></tr>' in text
    assert "<li>host0 (receiver 0, 1): 4 missing = 4 by the switch, whose port to it" in text
    for words in (*found.times(), "a processor", "All arrives at 5", "<code>spead-tutorial array"):
        assert words in text
    assert text.count("<svg ") == 2
    assert "What failed" not in text
    assert not re.search(r"<(script|link|img|iframe|object)|@import|(href|src)=\"[^#]", text)
    ids = re.findall(r'\sid="([^"]+)"', text)
    assert len(set(ids)) == len(ids)


def test_a_page_obeys_nothing_that_a_worker_calls_itself_or_says():
    name = f"<b>{HOSTILE}"
    dead = Ended("sender 1", 0, 1, errors=name)
    found = account([sender(0, 10), dead], [receiver(0, 8, 0)], trouble=[name]).measured
    found.machines = [replace(one, name=name) for one in found.machines]
    text = page(recorded(Account(found)))
    assert obeyed(text) == []
    assert text.count("&lt;b&gt;") >= 3
    assert "<b>" not in text
    assert "What failed" in text
    for svg in re.findall("<svg.*?</svg>", text, re.DOTALL):
        ET.fromstring(svg)


def test_where_nothing_was_sent_a_page_says_why_without_a_picture():
    found = account([], [receiver(0, 0)], trouble=["nothing was sent: receiver 0 did not listen"])
    text = page(recorded(found))
    assert "<li>nothing was sent: receiver 0 did not listen</li>" in text
    assert "<svg" not in text

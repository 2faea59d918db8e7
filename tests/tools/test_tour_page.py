# SPDX-License-Identifier: BSD-3-Clause
"""The page of a tour: that it is whole, needs nothing else, and shows what failed."""

import dataclasses
import html.parser
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from spead_tutorial import plots
from spead_tutorial.records import Recording
from spead_tutorial.tour.arrivals import read_arrivals
from spead_tutorial.tour.page import page
from spead_tutorial.tour.rows import entries
from support.tours import arrived, recorded

#: Elements that have no end.
EMPTY = {"meta", "link", "br", "hr", "img", "input"}


class Elements(html.parser.HTMLParser):
    """What a page is made of; what is begun has to be ended, in its order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.used: list[str] = []
        self.open: list[str] = []
        self.names: set[str] = set()
        self.links: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        for name, value in attrs:
            text = value or ""
            self.ids += [text] * (name == "id")
            self.links += [text] * (name in ("href", "src") and not text.startswith("#"))
            self.used += text.split() if name == "aria-labelledby" else []
            self.used += [text[1:]] * (name.endswith("href") and text.startswith("#"))
            self.used += re.findall(r"url\(#([^)]+)\)", text)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def drawn(recording: Recording, folder: Path) -> str:
    pictures = plots.save(folder / "tut-ladder.svg", plots.ladder, recording)
    return page(recording, entries(recording), read_arrivals(recording), pictures, folder)


def test_a_page_is_one_whole_file_with_both_pictures_that_asks_for_nothing(tmp_path):
    text = drawn(recorded(), tmp_path)
    elements = Elements(text)
    assert len(text.encode()) < 1_000_000
    assert not elements.names & {"script", "link", "img", "iframe", "object"}
    assert elements.links == []
    assert "@import" not in text
    assert set(re.findall(r"https?://[^\s\"<]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    # Each picture uses what is its own.
    assert len(set(elements.ids)) == len(elements.ids) > 0
    assert elements.used
    assert set(elements.used) <= set(elements.ids)
    for name in ("light", "dark"):
        assert f"{name}-picture-title" in elements.used


def test_a_page_says_what_was_measured(tmp_path):
    recording = recorded()
    text = drawn(recording, tmp_path)
    for one in entries(recording):
        assert one.section in text
        assert one.title.strip().replace("'", "&#39;") in text
    for words in ("times", "a processor", "spead-tutorial tour --quick", "is no network"):
        assert words in text


def test_what_failed_is_in_the_page_with_its_reason(tmp_path):
    def rates(case, number):
        return None if (case.program, case.language) == ("tut_6_send_pktsize", "c") else 1e9

    text = drawn(recorded(rates), tmp_path)
    Elements(text)
    reason = "counted 1, not &lt;2&gt;"
    assert f"6 Bigger packets, C: {reason}" in text
    assert f"✗ failed: {reason}" in text
    assert "What failed" not in drawn(recorded(), tmp_path)


def test_a_page_has_what_arrived_and_every_packet_that_did_not(tmp_path):
    values = ("Timestamp: 0          Power: <1>", "Timestamp: 4096       Power: 2.00")
    lossy = {"received": 11790, "lost": 4, "dropped": 7}
    text = drawn(
        arrived(recorded(), {"values": values}, lossy, {"failure": "one is <missing>"}), tmp_path
    )
    Elements(text)
    assert "Here chapter 7 receives 100 heaps of 1 MiB from chapter 6, over a link (veth)" in text
    cells = ("100", "11\u2009801", "11\u2009790", "4", "7 ✓")
    assert "".join(f"<td>{cell}</td>" for cell in cells) in text
    assert "<code>Timestamp: 0          Power: &lt;1&gt;\n…\nTimestamp: 4096" in text
    assert "✗ failed: one is &lt;missing&gt;" in text
    assert "<li>What arrives, C: one is &lt;missing&gt;</li>" in text
    assert "What arrives" not in drawn(recorded(), tmp_path)


def test_a_page_links_to_what_is_beside_it(tmp_path):
    for name in ("site/index.html", "site/tutorial/6-packet-size.html", "notebooks/index.html"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    links = set(Elements(drawn(recorded(), tmp_path)).links)
    assert links == {"site/index.html", "site/tutorial/6-packet-size.html", "notebooks/index.html"}


@pytest.mark.parametrize("kind", ["ifb", "loopback, no lab"])
def test_a_page_says_what_was_sent_to_and_what_counted_means_there(tmp_path, kind):
    recording = recorded()
    header = replace(recording.header, lab={"kind": kind, "mtu": 9216})
    text = drawn(dataclasses.replace(recording, header=header), tmp_path)
    loopback = kind != "ifb"
    assert f"To {kind}, MTU 9216:" in text
    assert ("the receiver got" in text) == loopback
    assert ("throws packets away is no network" in text) != loopback
    assert (" --loopback" in text) == loopback

# SPDX-License-Identifier: BSD-3-Clause
"""The page of a tour: that it is whole, needs nothing else, and shows what failed."""

import dataclasses
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from spead_tutorial.measure.records import Recording
from spead_tutorial.results import plots
from spead_tutorial.tools.tour.page import page
from spead_tutorial.tools.tour.rows import entries
from support.tours import recorded


def drawn(recording: Recording, folder: Path) -> str:
    pictures = plots.save(folder / "tut-ladder.svg", plots.ladder(recording))
    text = page(recording, entries(recording), pictures, folder)
    alone = re.sub("<svg.*?</svg>", "", text, flags=re.DOTALL)
    for tag in set(re.findall(r"</(\w+)>", alone)):
        assert len(re.findall(rf"<{tag}[ >]", alone)) == alone.count(f"</{tag}>")
    return text


def links(text: str) -> set[str]:
    """What a page refers to outside of it."""
    return set(re.findall(r'(?:href|src)="([^"#]+)"', text))


def test_a_page_is_one_whole_file_with_both_pictures_that_asks_for_nothing(tmp_path):
    text = drawn(recorded(), tmp_path)
    assert len(text.encode()) < 1_000_000
    assert not re.search(r"<(script|link|img|iframe|object)|@import", text)
    assert links(text) == set()
    assert set(re.findall(r"https?://[^\s\"<]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    # Each picture uses what is its own.
    ids = re.findall(r'\sid="([^"]+)"', text)
    named = " ".join(re.findall(r'aria-labelledby="([^"]+)"', text)).split()
    used = {*re.findall(r'(?:href="#|url\(#)([^")]+)', text), *named}
    assert len(set(ids)) == len(ids)
    assert {f"{name}-picture-title" for name in ("light", "dark")} <= used <= set(ids)


def test_a_page_says_what_was_measured(tmp_path):
    recording = recorded()
    text = drawn(recording, tmp_path)
    for one in entries(recording):
        assert one.section in text
        assert one.title.strip().replace("'", "&#39;") in text
    assert text.index("<li>gain: ") < text.index("<table>") < text.index("<details>")
    for words in ("times", "a processor", "spead-tutorial tour --quick", "is no network"):
        assert words in text


def test_what_failed_is_in_the_page_with_its_reason(tmp_path):
    def rates(case, number):
        return None if (case.program, case.language) == ("tut_6_send_pktsize", "c") else 1e9

    text = drawn(recorded(rates), tmp_path)
    reason = "counted 1, not &lt;2&gt;"
    assert f"6 Bigger packets, C: {reason}" in text
    assert f"✗ failed: {reason}" in text
    assert "What failed" not in drawn(recorded(), tmp_path)


def test_a_page_links_to_what_is_beside_it(tmp_path):
    names = "site/index.html", "site/tutorial/6-packet-size.html", "notebooks/00_start_here.html"
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert links(drawn(recorded(), tmp_path)) == set(names)


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

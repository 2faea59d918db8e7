# SPDX-License-Identifier: BSD-3-Clause
"""The committed pictures show what the committed records hold."""

import html
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from spead_tutorial import records

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "docs" / "figures"
RECORD = ROOT / "bench" / "results" / "tour.jsonl"


def texts(svg: str) -> list[str]:
    """What a reader sees in a picture, without any spaces."""
    found = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    return [re.sub(r"\s", "", html.unescape(text)) for text in found]


@pytest.mark.parametrize("name", ["tut-ladder.svg", "tut-ladder-dark.svg"])
def test_the_ladder_shows_the_median_of_every_case(name):
    cases: dict[tuple[int, str, bool, int], list[float]] = {}
    for sample in records.read(RECORD).samples:
        if sample.chapter != 2 and not sample.warm_up:
            assert sample.rate is not None, sample.failure
            key = (sample.chapter, sample.language, sample.random, sample.heap_size)
            cases.setdefault(key, []).append(sample.rate)
    assert len(cases) == 20
    shown = texts((FIGURES / name).read_text())
    for rates in cases.values():
        assert len(rates) >= 9
        assert f"{statistics.median(rates) / 1e6:.0f}" in shown


def test_every_committed_picture_can_be_drawn_again(tmp_path):
    """Not byte by byte: another matplotlib may draw the same numbers a little differently."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.figures", "-o", tmp_path], cwd=ROOT, check=False
    )
    assert done.returncode == 0
    committed = sorted(path.name for path in FIGURES.glob("*.svg"))
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == committed
    for name in committed:
        assert texts((tmp_path / name).read_text()) == texts((FIGURES / name).read_text())

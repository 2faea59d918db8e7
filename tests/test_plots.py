# SPDX-License-Identifier: BSD-3-Clause
"""The pictures: the same bytes every time, readable by everybody, and true to their records."""

import dataclasses
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from test_records import HEADER, SAMPLE

from spead_tutorial import plots
from spead_tutorial.records import Recording, Sample, Writer

pytest.importorskip("matplotlib")

SVG = "{http://www.w3.org/2000/svg}"


def make_sample(
    chapter: int, language: str, heap_size: int, rate_mb: float, **more: object
) -> Sample:
    payload = 10 << 20
    return dataclasses.replace(
        SAMPLE,
        chapter=chapter,
        language=language,
        heap_size=heap_size,
        payload_bytes=payload,
        elapsed_ns=round(payload / rate_mb * 1e3),
        **more,
    )


@pytest.fixture
def recording() -> Recording:
    samples = [
        make_sample(chapter, language, heap_size, 1000.0 * chapter + 10 * number, round=number)
        for chapter, heap_size in ((4, 1 << 20), (6, 1 << 20), (10, 1 << 20), (10, 8192))
        for language in ("python", "c")
        for number in range(3)
    ]
    return Recording(HEADER, tuple(samples))


def texts(svg: bytes) -> str:
    """All words in a picture."""
    return "\n".join(ET.fromstring(svg).itertext())


@pytest.mark.parametrize("theme", [plots.LIGHT, plots.DARK], ids=lambda theme: theme.name)
def test_the_same_recording_gives_the_same_bytes(recording, theme):
    first = plots.render(plots.ladder, recording, theme)
    assert first == plots.render(plots.ladder, recording, theme)


def test_another_process_with_other_settings_gives_the_same_bytes(recording, tmp_path):
    path = tmp_path / "some.jsonl"
    with Writer(path, recording.header) as writer:
        for sample in recording.samples:
            writer.add(sample)
    (tmp_path / "matplotlibrc").write_text("font.size: 20\nsvg.fonttype: path\n")
    script = (
        "import sys; from spead_tutorial import plots, records\n"
        "svg = plots.render(plots.ladder, records.read(sys.argv[1]), plots.LIGHT)\n"
        "sys.stdout.buffer.write(svg)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        capture_output=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"},
        timeout=60,
        check=True,
    )
    assert done.stdout == plots.render(plots.ladder, recording, plots.LIGHT)


def test_a_picture_is_saved_light_and_dark(recording, tmp_path):
    written = plots.save(tmp_path / "tut-ladder.svg", plots.ladder, recording)
    assert [path.name for path in written] == ["tut-ladder.svg", "tut-ladder-dark.svg"]
    light, dark = (path.read_bytes() for path in written)
    assert light != dark
    assert plots.LIGHT.background.encode() in light
    assert plots.DARK.background.encode() in dark


def test_a_picture_has_a_title_and_its_numbers_in_words(recording):
    root = ET.fromstring(plots.render(plots.ladder, recording, plots.LIGHT))
    assert root.get("role") == "img"
    names = (root.get("aria-labelledby") or "").split()
    title, description = (root.find(f"{SVG}{tag}") for tag in ("title", "desc"))
    assert title is not None
    assert description is not None
    assert names == [title.get("id"), description.get("id")]
    assert title.text == "What each chapter gained"
    words = description.text or ""
    assert "chapter 6 Bigger packets: Python 6010, C 6010" in words
    assert "Heaps of 8 KiB: chapter 10 Reuse heaps: Python 10010, C 10010" in words


def test_a_picture_says_where_its_numbers_come_from(recording):
    words = texts(plots.render(plots.ladder, recording, plots.LIGHT))
    for part in ("a processor", "Linux 6.1", "dummy, MTU 9216", "3 rounds", "governor unknown"):
        assert part in words


def test_a_picture_says_which_chapter_did_not_send_to_the_labs_device(recording):
    other = make_sample(2, "c", 1 << 20, 50.0, device="lo", kind="loopback")
    words = texts(
        plots.render(plots.ladder, Recording(HEADER, (other, *recording.samples)), plots.LIGHT)
    )
    assert "dummy, MTU 9216 (chapter 2: loopback)" in words


def test_a_program_that_failed_has_no_bar_but_a_word(recording):
    failed = [
        dataclasses.replace(one, failure="it failed") if one.chapter == 6 else one
        for one in recording.samples
    ]
    words = texts(plots.render(plots.ladder, Recording(HEADER, tuple(failed)), plots.LIGHT))
    assert words.count("failed: no rate") == 2
    assert "Python failed, C failed" in words
    assert "6010" not in words


def test_warm_ups_are_not_drawn(recording):
    warm = make_sample(6, "c", 1 << 20, 99999.0, warm_up=True)
    more = Recording(HEADER, (warm, *recording.samples))
    assert plots.render(plots.ladder, more, plots.LIGHT) == plots.render(
        plots.ladder, recording, plots.LIGHT
    )


def test_a_recording_in_which_all_failed_is_drawn_all_the_same(recording):
    failed = tuple(dataclasses.replace(one, failure="it failed") for one in recording.samples)
    assert "failed: no rate" in texts(
        plots.render(plots.ladder, Recording(HEADER, failed), plots.LIGHT)
    )


def test_without_matplotlib_drawing_says_what_to_install(recording, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(plots.MissingError, match=r"spead-tutorial\[lab\]"):
        plots.render(plots.ladder, recording, plots.LIGHT)


def test_the_package_does_not_import_matplotlib_by_itself(tmp_path: Path):
    script = "import sys, spead_tutorial.cli; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=tmp_path).returncode == 0

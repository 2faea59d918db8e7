# SPDX-License-Identifier: BSD-3-Clause
"""All pictures: the same bytes every time, readable by everybody, and true to their records."""

import dataclasses
import itertools
import os
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spead_tutorial import plots
from spead_tutorial.catalogue import LANGUAGES, find_chapter
from spead_tutorial.records import Recording, Writer
from spead_tutorial.units import times
from support import ROOT
from support.pictures import (
    SVG,
    THEMES,
    check_that_words_can_be_read,
    chunks,
    described,
    draw,
    drawing,
    drawn_words,
    fail,
    rendered,
    rendered_both,
    seen,
    texts,
)
from support.recordings import (
    IN_CPP,
    OF_SAMPLES,
    PICTURES,
    around,
    make_ladder,
    make_rounds,
    make_sample,
)
from support.records import HEADER, SAMPLE

# ---------------------------------------------------------------------------------------
# Made-up recordings


# ---------------------------------------------------------------------------------------
# What a picture says


# ---------------------------------------------------------------------------------------
# Every picture


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("theme", THEMES)
def test_the_same_recording_gives_the_same_bytes(name, theme):
    assert plots.render(*PICTURES[name], THEMES[theme]) == rendered(name, theme)


@pytest.mark.parametrize("name", PICTURES)
def test_both_kinds_of_a_picture_are_of_one_figure_and_the_same_bytes_every_time(name):
    picture, recording = PICTURES[name]
    figures = []

    def count(recording: Recording, theme: plots.Theme) -> Any:
        figures.append(picture(recording, theme))
        return figures[-1]

    both = plots.render_both(count, recording, plots.LIGHT)
    assert [title for _, title, _ in figures] == [both.title]
    assert both.svg == rendered(name)
    assert both.png == rendered_both(name).png


@pytest.mark.parametrize("name", PICTURES)
def test_a_png_is_as_large_as_its_figure_and_says_nothing_of_what_made_it(name):
    figure, _, _ = drawing(name)
    png = rendered_both(name).png
    assert len(png) < 60_000  # notebooks store it
    found = chunks(png)
    inches = figure.get_size_inches()
    assert struct.unpack(">II", found["IHDR"][:8]) == tuple(round(100 * one) for one in inches)
    assert set(found) == {"IHDR", "PLTE", "IDAT", "IEND"}


def test_another_process_with_other_settings_gives_the_same_bytes(tmp_path):
    for name, (_, recording) in PICTURES.items():
        with Writer(tmp_path / f"{name}.jsonl", recording.header) as writer:
            lines = (recording.samples, recording.timelines, recording.splits, recording.spacings)
            for one in itertools.chain(*lines):
                writer.add(one)
    (tmp_path / "matplotlibrc").write_text("font.size: 20\nsvg.fonttype: path\naxes.grid: True\n")
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from support import recordings\n"
        "from spead_tutorial import plots, records\n"
        "for name, (picture, _) in recordings.PICTURES.items():\n"
        "    recording = records.read(f'{name}.jsonl')\n"
        "    both = plots.render_both(picture, recording, plots.LIGHT)\n"
        "    open(f'{name}.svg', 'wb').write(both.svg)\n"
        "    open(f'{name}.png', 'wb').write(both.png)\n"
    )
    subprocess.run(
        [sys.executable, "-c", script, str(ROOT / "tests")],
        cwd=tmp_path,
        env=os.environ | {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"},
        timeout=100,
        check=True,
    )
    for name in PICTURES:
        here = rendered_both(name)
        assert (tmp_path / f"{name}.svg").read_bytes() == here.svg, name
        assert (tmp_path / f"{name}.png").read_bytes() == here.png, name


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_saved_light_and_dark(name, tmp_path):
    written = plots.save(tmp_path / "some.svg", *PICTURES[name])
    assert [path.name for path in written] == ["some.svg", "some-dark.svg"]
    light, dark = (path.read_bytes() for path in written)
    assert plots.LIGHT.background.encode() in light
    assert plots.DARK.background.encode() in dark
    assert plots.LIGHT.text.encode() not in dark


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_has_a_title_and_its_numbers_in_words(name):
    root = ET.fromstring(rendered(name))
    assert root.get("role") == "img"
    names = (root.get("aria-labelledby") or "").split()
    title, description = (root.find(f"{SVG}{tag}") for tag in ("title", "desc"))
    assert title is not None
    assert description is not None
    assert names == [title.get("id"), description.get("id")]
    assert title.text
    assert len(re.findall(r"\d+", description.text or "")) > 20


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_says_where_its_numbers_come_from(name):
    words = described(rendered(name))
    for part in ("a processor", "Linux 6.1", "dummy, MTU 9216", "governor unknown", "make figures"):
        assert part in words
    rounds = {"ladder": "3 rounds", IN_CPP: "3 rounds", "timeline": "one run"}
    assert rounds.get(name, "7 rounds") in words


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_its_machine_and_its_rounds_and_leaves_the_rest_to_its_description(name):
    shown = " ".join(seen(rendered(name)))
    assert "a processor" in shown
    assert "governor" not in shown
    assert "make figures" not in shown


@pytest.mark.parametrize("name", OF_SAMPLES)
def test_warm_ups_are_not_drawn(name):
    picture, recording = PICTURES[name]
    warm = [
        dataclasses.replace(one, warm_up=True, elapsed_ns=10, round=0, page_faults=10**9)
        for one in recording.samples
    ]
    more = dataclasses.replace(recording, samples=(*warm, *recording.samples))
    assert plots.render(picture, more, plots.LIGHT) == rendered(name)


@pytest.mark.parametrize("name", OF_SAMPLES)
def test_a_recording_in_which_all_failed_is_drawn_and_says_so(name):
    picture, recording = PICTURES[name]
    svg = plots.render(picture, fail(recording), plots.LIGHT)
    assert any("failed" in words for words in seen(svg))
    assert "failed" in described(svg)


@pytest.mark.parametrize("name", sorted(set(PICTURES) - {"history"}))  # it has its rates itself
def test_a_recording_of_something_else_is_refused_in_a_line_that_says_what_to_run(name):
    other = make_sample("tut_2_send", "c", 50.0, implementation="old")
    with pytest.raises(ValueError, match=r"^the recording has no .*: (python -m bench|spead)"):
        plots.render(PICTURES[name][0], Recording(HEADER, (other,)), plots.LIGHT)


@pytest.mark.parametrize("name", [one for one in OF_SAMPLES if one != "lost"])  # it has but one
def test_one_language_is_enough(name):
    picture, recording = PICTURES[name]
    ours = tuple(one for one in recording.samples if one.language == "c")
    svg = plots.render(picture, dataclasses.replace(recording, samples=ours), plots.LIGHT)
    assert "Python " not in described(svg).split("a processor")[0].split("MB/s.", 1)[-1]


@pytest.mark.parametrize("name", PICTURES)
def test_letters_are_large_enough_for_a_telephone(name):
    figure, _, _ = drawing(name)
    assert figure.get_figwidth() <= 7
    for text, _ in drawn_words(figure):
        assert text.get_fontsize() >= 9, text


@pytest.mark.parametrize("name", PICTURES)
def test_no_words_are_cut_off_or_on_top_of_each_other(name):
    check_that_words_can_be_read(drawing(name)[0])


# ---------------------------------------------------------------------------------------
# The ladder


def test_the_ladder_says_the_median_of_every_step():
    words = described(rendered("ladder"))
    assert "chapter 6 Bigger packets: Python 6010, C 6010" in words
    assert "Heaps of 8 KiB: chapter 10 Reuse heaps: Python 10010, C 10010" in words


def test_the_ladder_has_a_dot_for_each_language_that_was_measured():
    drawn = rendered(IN_CPP)
    assert "Dots: the rate of each chapter's program, in Python, C and C++" in described(drawn)
    assert "chapter 6 Bigger packets: Python 6010, C 6010, C++ 6010" in described(drawn)
    assert seen(drawn).count(times(1.5)) == len(LANGUAGES)
    assert "C++" in seen(drawn)
    assert "C++" not in seen(rendered("ladder"))


def quoted(name: str) -> str:
    return f"\N{LEFT DOUBLE QUOTATION MARK}{name}\N{RIGHT DOUBLE QUOTATION MARK}"


def test_the_title_of_the_ladder_is_what_its_chapters_gained_that_send_to_the_same_place():
    recording = make_ladder()
    gain = f"{times(2.5)} (Python, C)"
    elsewhere = make_rounds("tut_2_send", "c", [50.0] * 3, kind="loopback")
    later = make_rounds("tut_4_send_constant", "c", [2000.0] * 3, chapter=4)
    aside = make_rounds("tut_16_send_equal_packets", "c", [9000.0] * 3)
    for more, words in (
        ([], f"from chapter 4, {quoted('Measure it')}, to 10: {gain}"),
        (elsewhere, f"from chapter 4, {quoted('Measure it')}, to 10: {gain}"),
        (aside, f"from chapter 4, {quoted('Measure it')}, to 10: {gain}"),
        # It is the last program of chapter 4 that is gone on from.
        (later, f"from chapter 4, {quoted('Constant samples')}, to 10: {times(5.01)} (C)"),
    ):
        _, title, _ = draw(plots.ladder, Recording(HEADER, (*recording.samples, *more)))
        assert title.replace("\N{NO-BREAK SPACE}", " ").startswith(f"1 MiB heaps, {words}.")
    alone = Recording(HEADER, tuple(elsewhere))
    assert "MiB heaps: nothing to compare." in draw(plots.ladder, alone)[1]


def test_the_ladder_says_beside_each_dot_what_its_step_gained():
    words = seen(rendered("ladder"))
    assert words.count(times(1.5)) == 2  # chapter 6, in both languages
    assert words.count(times(1.67)) == 2
    assert not any("GB/s" in one and one[0].isdigit() for one in words)


def test_the_ladder_names_the_steps_that_gain_nothing():
    rates = {4: 1000.0, 6: 2000.0, 8: 2000.0, 10: 2000.0, 11: 3000.0}
    samples = [
        one
        for chapter, rate in rates.items()
        for language in ("python", "c")
        for one in make_rounds(find_chapter(str(chapter)).name, language, around(rate))
    ]
    recording = Recording(HEADER, tuple(samples))
    assert "No difference found in steps 8 to 10 at" in draw(plots.ladder, recording)[1]
    words = seen(plots.render(plots.ladder, recording, plots.LIGHT))
    assert sum(one.startswith("no difference found") for one in words) == 4
    # With one panel there is room for the rates, too.
    assert f"{times(1.5)}, 3 GB/s" in words


def test_a_picture_says_which_chapter_did_not_send_to_the_labs_device():
    other = make_sample("tut_2_send", "c", 50.0, device="lo", kind="loopback")
    samples = (other, *make_ladder().samples)
    words = described(plots.render(plots.ladder, Recording(HEADER, samples), plots.LIGHT))
    assert "dummy, MTU 9216 (chapter 2: loopback)" in words


def test_a_program_that_failed_has_no_bar_but_a_word():
    recording = fail(make_ladder(), lambda one: one.chapter == 6)
    svg = plots.render(plots.ladder, recording, plots.LIGHT)
    assert seen(svg).count("failed: no rate") == 2
    assert "Python failed, C failed" in described(svg)
    assert "6010" not in texts(svg)


def test_a_program_of_which_the_warm_up_failed_has_failed_in_the_ladder():
    recording = make_ladder()
    warm = make_sample("tut_6_send_pktsize", "c", 1.0, warm_up=True, failure="it failed")
    more = Recording(HEADER, (warm, *recording.samples))
    assert "Python 6010, C failed" in described(plots.render(plots.ladder, more, plots.LIGHT))


def test_the_ladder_leaves_out_what_is_not_ours():
    recording = make_ladder()
    others = [
        dataclasses.replace(one, implementation="spead2", elapsed_ns=1) for one in recording.samples
    ]
    more = Recording(HEADER, (*others, *recording.samples))
    words = described(plots.render(plots.ladder, more, plots.LIGHT))
    assert words == described(rendered("ladder"))


def test_below_the_chapters_are_the_peers_best_and_the_bare_loops_of_each_size():
    beside = [
        dataclasses.replace(one, implementation="spead2-source", elapsed_ns=one.elapsed_ns * 2)
        for one in make_ladder().samples
        if one.language == "python" and one.chapter in (6, 10)
    ]
    for variant, rate in (("one thread", 12000), ("one thread, 2 streams", 23000)):
        beside += make_rounds(
            "ceiling", "c", around(rate), implementation="ceiling", variant=variant
        )
    more = Recording(HEADER, (*beside, *make_ladder().samples))
    large, small = described(plots.render(plots.ladder, more, plots.LIGHT)).split("Heaps of 8 KiB")
    assert "its best chapter, 10, in Python: spead2 from source: 5005" in large
    assert "one thread: bare system calls: 12000" in large
    assert "one thread, 2 streams: bare system calls: 23000" in large
    assert "its best chapter, 10" in small
    assert "bare system calls" not in small


def test_ways_are_beside_each_other_in_their_order_with_bare_loops_below():
    words = described(rendered("ways"))
    assert (
        "Heaps of 64 KiB: copied, by the kernel: Python 2000, C 2000;"
        " read in place: Python 3000, C 3000; bare system calls, copied: 4000;"
    ) in words
    assert "filled" not in words


def test_the_title_of_ways_is_what_one_of_them_gained_over_another():
    title = drawing("ways")[1]
    assert title.replace("\N{MULTIPLICATION SIGN}", "x") == (
        "A recording: x1.50 to x1.50 (Python), x1.50 to x1.50 (C). Chapter 15"
    )


# ---------------------------------------------------------------------------------------
# The caption


def test_a_caption_counts_machines_whose_facts_differ():
    same = dataclasses.replace(HEADER, machine=HEADER.machine | {"load": 3.0})
    other = dataclasses.replace(HEADER, machine=HEADER.machine | {"cpu": "another processor"})
    one, two = (
        " ".join(plots.caption(Recording(HEADER, (SAMPLE,), others=(header,))).split())
        for header in (same, other)
    )
    assert "machines" not in one
    assert "2 machines · a processor, 2 cores, another processor, 2 cores" in two


def test_a_caption_says_how_many_rounds_there_were_and_what_the_interval_is():
    few, many = ([dataclasses.replace(SAMPLE, round=n) for n in range(count)] for count in (3, 9))
    other = [dataclasses.replace(one, heap_size=1) for one in few]
    for samples, words in (
        (few, "median of 3 rounds, dots: samples, line: their range"),
        (many, "median of 9 rounds, dots: samples, line: 95 % interval"),
        (many + other, "median of 3 to 9 rounds, dots: samples, line: 95 % interval (range below"),
    ):
        assert words in " ".join(plots.caption(Recording(HEADER, tuple(samples))).split())


def test_no_line_of_a_caption_is_wider_than_the_picture():
    machine = HEADER.machine | {"cpu": "Wide Name (Wonderful) " * 20, "virtualisation": "kvm"}
    versions = HEADER.versions | {"compiler": "GCC: (MNW 12.2.0-14+deb12u1) " * 2}
    header = dataclasses.replace(HEADER, machine=machine, versions=versions, revision="4a8f077e+")
    recording = dataclasses.replace(make_ladder(), header=header)
    assert plots.caption(recording).replace("\n", " ").count("Wide Name") == 20
    figure, _, _ = draw(plots.ladder, recording)
    widest = max(box.x1 for text, box in drawn_words(figure) if "Wide" in text.get_text())
    assert widest <= figure.bbox.x1


# ---------------------------------------------------------------------------------------
# Colours


def luminance(colour: str) -> float:
    """As WCAG 2 defines it."""
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_words_and_lines_stand_out_from_the_background(theme):
    for colour in (theme.text, theme.faint):
        assert contrast(colour, theme.background) >= 4.5
    for colour in theme.colours.values():
        assert contrast(colour, theme.background) >= 3


# How people see who lack one kind of cones: from linear RGB (Machado and others, 2009).
BLINDNESS = {
    "protanopia": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "deuteranopia": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "tritanopia": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
    "none": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
}


def as_lab(colour: str, seen_by: Sequence[Sequence[float]]) -> list[float]:
    """A colour as CIE L*a*b*, as somebody sees it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    r, g, b = (
        min(1.0, max(0.0, sum(k * x for k, x in zip(row, linear, strict=True)))) for row in seen_by
    )
    xyz = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
    )
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz)
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)]


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
@pytest.mark.parametrize("kind", BLINDNESS)
def test_colours_of_lines_differ_for_everybody(theme, kind):
    names = ("python", "c", "cpp", "spead2", "limit")
    seen_as = {name: as_lab(theme.colours[name], BLINDNESS[kind]) for name in names}
    for one, other in itertools.combinations(names, 2):
        pairs = zip(seen_as[one], seen_as[other], strict=True)
        assert sum((a - b) ** 2 for a, b in pairs) ** 0.5 > 20, (one, other)


# ---------------------------------------------------------------------------------------
# Without matplotlib


def test_without_matplotlib_drawing_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(plots.MissingError, match=r"spead-tutorial\[lab\]"):
        plots.render(plots.ladder, make_ladder(), plots.LIGHT)


def test_the_package_does_not_import_matplotlib_by_itself(tmp_path: Path):
    script = "import sys, spead_tutorial.cli; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=tmp_path).returncode == 0

# SPDX-License-Identifier: BSD-3-Clause
"""All pictures: the same bytes every time, readable by everybody, and true to their records."""

import dataclasses
import io
import itertools
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence

import numpy as np
import pytest
from matplotlib.colors import to_hex
from msgspec.structs import replace
from PIL import Image

from spead_tutorial.measure.records import Recording
from spead_tutorial.results import plots
from support import arrays
from support.pictures import SVG, check_that_words_can_be_read, draw, drawing, fail
from support.recordings import IN_CPP, OF_SAMPLES, PICTURES, make_ladder, make_sample
from support.records import HEADER, SAMPLE

THEMES = {theme.name: theme for theme in (plots.LIGHT, plots.DARK)}
FEW = ("ladder",)
#: Pictures of single runs have no points, nor has that of the means of what became of packets.
WITHOUT_POINTS = {"timeline", "lost"}


def few_of(names: Sequence[str]) -> list[object]:
    """All of the names, of which most are for the thorough run."""
    return [one if one in FEW else pytest.param(one, marks=pytest.mark.thorough) for one in names]


# ---- Every picture ----


@pytest.mark.parametrize("name", few_of([*PICTURES]))
def test_a_picture_can_be_read_and_says_in_words_what_it_shows_and_of_what(name):
    drawn = drawing(name)
    root = ET.fromstring(drawn.svg)
    assert root.get("role") == "img"
    title, description = (root.find(f"{SVG}{tag}") for tag in ("title", "desc"))
    assert (root.get("aria-labelledby") or "").split() == [title.get("id"), description.get("id")]
    assert (title.text, description.text) == (drawn.title, drawn.words)
    assert drawn.title
    assert len(re.findall(r"\d+", f"{drawn.title} {drawn.words}")) > 20
    for part in ("a processor", "Linux 6.1", "dummy, MTU 9216", "governor unknown", "make figures"):
        assert part in drawn.words
    rounds = {"ladder": "3 rounds", IN_CPP: "3 rounds", "timeline": "one run"}
    assert rounds.get(name, "7 rounds") in drawn.words
    shown = " ".join(drawn.seen)
    assert "a processor" in shown
    assert "governor" not in shown
    assert "make figures" not in shown
    assert drawn.figure.get_figwidth() <= 7
    check_that_words_can_be_read(drawn.figure, smallest=10)
    points = [place for _, (*_, x, y) in drawn.points for place in (x, y)]
    assert len(points) > 6 if name not in WITHOUT_POINTS else not points
    assert all(0 < place < 1 for place in points)


@pytest.mark.parametrize("name", few_of([*PICTURES]))
def test_a_picture_is_saved_light_and_dark_and_both_kinds_are_of_one_figure(name, tmp_path):
    picture = drawing(name).picture
    written = plots.save(tmp_path / "some.svg", picture)
    assert [path.name for path in written] == ["some.svg", "some-dark.svg"]
    light, dark = (path.read_bytes() for path in written)
    assert light == drawing(name).svg
    assert plots.LIGHT.background.encode() in light
    assert plots.DARK.background.encode() in dark
    assert plots.LIGHT.text.encode() not in dark

    svg, png = plots.render_both(picture, plots.LIGHT)
    assert svg == light
    assert len(png) < 60_000  # notebooks store it
    with Image.open(io.BytesIO(png)) as image:
        inches = drawing(name).figure.get_size_inches()
        assert image.size == tuple(round(100 * one) for one in inches)
        assert (image.mode, image.info) == ("P", {}), "it says what made it"


@pytest.mark.parametrize("name", few_of(OF_SAMPLES))
def test_warm_ups_are_not_drawn(name):
    picture, recording = PICTURES[name]
    counted = tuple(one for one in recording.samples if not one.warm_up)
    assert draw(picture, recording, samples=counted).svg == drawing(name).svg


@pytest.mark.parametrize("name", OF_SAMPLES)
def test_a_recording_in_which_all_failed_is_drawn_and_says_so(name):
    picture, recording = PICTURES[name]
    drawn = draw(picture, recording, samples=fail(recording))
    assert "failed" in drawn.words
    assert name not in FEW or any("failed" in words for words in drawn.seen)


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_a_recording_of_something_else_is_refused_in_a_line_that_says_what_to_run(name):
    other = make_sample("tut_2_send", "c", 50.0, implementation="old")
    with pytest.raises(ValueError, match=r"^the recording has no .*: (python -m bench|spead)"):
        draw(PICTURES[name][0], Recording(HEADER, (other,)))


@pytest.mark.parametrize("name", few_of([one for one in OF_SAMPLES if one not in ("lost", "hot")]))
def test_one_language_is_enough(name):
    picture, recording = PICTURES[name]
    ours = tuple(one for one in recording.samples if one.language == "c")
    words = draw(picture, recording, samples=ours).words
    assert "Python " not in words.split("a processor")[0].split("MB/s.", 1)[-1]


# ---- The caption ----


def captions(*recordings: Recording) -> list[str]:
    return [" ".join(plots.caption(one).split()) for one in recordings]


def test_a_caption_says_how_many_rounds_there_were_and_what_the_interval_is():
    few, many = ([replace(SAMPLE, round=n) for n in range(count)] for count in (3, 9))
    other = [replace(one, heap_size=1) for one in few]
    for samples, words in (
        (few, "median of 3 rounds, line: their range"),
        (many, "median of 9 rounds, line: 95 % interval"),
        (many + other, "median of 3 to 9 rounds, line: 95 % interval (range below"),
    ):
        assert words in captions(Recording(HEADER, tuple(samples)))[0]


def test_no_line_of_a_caption_is_wider_than_the_picture():
    machine = HEADER.machine | {"cpu": "Wide Name (Wonderful) " * 20, "virtualisation": "kvm"}
    versions = HEADER.versions | {"compiler": "GCC: (MNW 12.2.0-14+deb12u1) " * 2}
    header = replace(HEADER, machine=machine, versions=versions, revision="4a8f077e+")
    recording = dataclasses.replace(make_ladder(), header=header)
    assert plots.caption(recording).replace("\n", " ").count("Wide Name") == 20
    check_that_words_can_be_read(draw(plots.ladder, recording).figure)


# ---- Colours ----


#: Of linear RGB, as D65 is white.
LIGHT_TO_XYZ = np.array(
    [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
)
WHITE = np.array([0.9505, 1.0, 1.089])


def linear(colour: str) -> np.ndarray:
    """Red, green and blue as light, as WCAG 2 defines them."""
    parts = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(*colours: str) -> float:
    dark, bright = sorted(linear(one) @ LIGHT_TO_XYZ[1] for one in colours)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_words_and_lines_stand_out_from_the_background(theme):
    for colour in (theme.text, theme.faint):
        assert contrast(colour, theme.background) >= 4.5
    for colour in theme.colours.values():
        assert contrast(colour, theme.background) >= 3


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_a_number_differs_from_its_square_however_much_is_lost(theme):
    lost = [arrays.sender(0, *[1000] * 11)], [arrays.receiver(j, 1000 - 100 * j) for j in range(11)]
    axis = draw(plots.matrix, arrays.recorded(arrays.account(*lost)), theme).figure.axes[0]
    squares = axis.collections[0].to_rgba(axis.collections[0].get_array()).reshape(-1, 4)
    for square, text in zip(squares, axis.texts, strict=True):
        assert contrast(to_hex(square), text.get_color()) >= 3.9


# How people see who lack one kind of cones: from linear RGB (Machado and others, 2009).
BLINDNESS = {
    "protanopia": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "deuteranopia": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "tritanopia": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
    "none": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
}


def as_lab(colour: str, matrix: Sequence[Sequence[float]]) -> np.ndarray:
    """A colour as CIE L*a*b*, as somebody sees it."""
    light = np.clip(np.array(matrix) @ linear(colour), 0, 1)
    share = LIGHT_TO_XYZ @ light / WHITE
    x, y, z = np.where(share > 0.008856, np.cbrt(share), 7.787 * share + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
@pytest.mark.parametrize("kind", BLINDNESS)
def test_colours_of_lines_differ_for_everybody(theme, kind):
    names = ("python", "c", "cpp", "spead2", "limit")
    seen_as = {name: as_lab(theme.colours[name], BLINDNESS[kind]) for name in names}
    for one, other in itertools.combinations(names, 2):
        assert np.linalg.norm(seen_as[one] - seen_as[other]) > 20, (one, other)


# ---- Without matplotlib ----


def test_without_matplotlib_drawing_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(plots.MissingError, match=r"spead-tutorial\[lab\]"):
        plots.render(plots.ladder(make_ladder()), plots.LIGHT)

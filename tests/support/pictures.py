# SPDX-License-Identifier: BSD-3-Clause
"""What a picture says: its figure, its words, its bytes."""

import dataclasses
import functools
import itertools
import struct
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from spead_tutorial import plots
from spead_tutorial.records import Recording
from support.recordings import PICTURES

SVG = "{http://www.w3.org/2000/svg}"


THEMES = {theme.name: theme for theme in (plots.LIGHT, plots.DARK)}


def draw(
    picture: plots.Draw, recording: Recording, theme: plots.Theme = plots.LIGHT
) -> tuple[Any, str, str]:
    """Draw a picture as `render` does; return the figure too."""
    found: list[Any] = []

    def keep(recording: Recording, theme: plots.Theme) -> Any:
        found.extend(picture(recording, theme))
        return tuple(found)

    plots.render(keep, recording, theme)
    return tuple(found)


@functools.cache
def drawing(name: str) -> tuple[Any, str, str]:
    """What `draw` makes of a picture; it is for looking at, as are the other two."""
    return draw(*PICTURES[name])


@functools.cache
def rendered(name: str, theme: str = "light") -> bytes:
    return plots.render(*PICTURES[name], THEMES[theme])


@functools.cache
def rendered_both(name: str) -> plots.Rendered:
    return plots.render_both(*PICTURES[name], plots.LIGHT)


def drawn_words(figure: Any) -> list[tuple[Any, Any]]:
    """Each text that is really drawn, and its box in pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    found: list[tuple[Any, Any]] = []
    as_it_was: Any = Text.draw

    def watch(text: Any, renderer: Any) -> None:
        as_it_was(text, renderer)
        if text.get_text().strip():
            found.append((text, Text.get_window_extent(text, renderer)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", watch)
        FigureCanvasAgg(figure).draw()  # type: ignore[no-untyped-call]
    return found


def texts(svg: bytes) -> str:
    """All words in a picture, its description among them."""
    return "\n".join(ET.fromstring(svg).itertext())


def seen(svg: bytes) -> list[str]:
    """The words that are drawn."""
    return ["".join(one.itertext()) for one in ET.fromstring(svg).iter(f"{SVG}text")]


def described(svg: bytes) -> str:
    return ET.fromstring(svg).findtext(f"{SVG}desc") or ""


def chunks(png: bytes) -> dict[str, bytes]:
    """The parts of a PNG by their names; of those that are there more than once, the last."""
    found, at = {}, 8
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        found[png[at + 4 : at + 8].decode()] = png[at + 8 : at + 8 + length]
        at += 12 + length
    return found


def fail(recording: Recording, wanted: Any = lambda one: True) -> Recording:
    """The same recording, in which some samples failed."""
    samples = tuple(
        dataclasses.replace(one, failure="it failed", elapsed_ns=None) if wanted(one) else one
        for one in recording.samples
    )
    return dataclasses.replace(recording, samples=samples)


def check_that_words_can_be_read(figure: Any) -> None:
    """All of them are inside the picture, and none is on top of another."""
    inside = [(text.get_text(), box) for text, box in drawn_words(figure)]
    assert len(inside) > 10
    whole = figure.bbox
    for words, box in inside:
        assert whole.x0 <= box.x0, words
        assert box.x1 <= whole.x1, words
        assert whole.y0 <= box.y0, words
        assert box.y1 <= whole.y1, words
    for (one, box), (other, its) in itertools.combinations(inside, 2):
        width = min(box.x1, its.x1) - max(box.x0, its.x0)
        height = min(box.y1, its.y1) - max(box.y0, its.y0)
        assert width <= 1 or height <= 2, (one, other)

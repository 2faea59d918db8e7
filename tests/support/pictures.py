# SPDX-License-Identifier: BSD-3-Clause
"""What a picture says: its figure, its words, its bytes."""

import dataclasses
import functools
import itertools
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from spead_tutorial.measure.records import Recording, Sample
from spead_tutorial.results import plots
from spead_tutorial.results.plots.picture import Line, Picture
from spead_tutorial.results.plots.render import drawn
from support.recordings import PICTURES

#: Committed pictures of single runs, and of what became of packets: without points.
WITHOUT_POINTS = {
    "tut-5-send-pipeline-timeline",
    "tut-7-recv-power-lost",
    "tut-19-array",
}
SVG = "{http://www.w3.org/2000/svg}"
_TYPED = str.maketrans("\N{MULTIPLICATION SIGN}\N{NO-BREAK SPACE}\N{THIN SPACE}", "x  ")


def typed(words: str) -> str:
    """The words in letters that can be typed."""
    return words.translate(_TYPED)


@dataclasses.dataclass
class Drawing:
    """A picture that was drawn once, and what it says."""

    picture: Picture
    figure: Any
    theme: plots.Theme

    @property
    def title(self) -> str:
        """What it is called."""
        return self.picture.name

    @property
    def words(self) -> str:
        """The description, as the SVG has it."""
        return self.picture.words

    @property
    def points(self) -> list[tuple[Line, list[float]]]:
        """Its points, as data."""
        return self.picture.points(self.figure)

    @functools.cached_property
    def svg(self) -> bytes:
        """The bytes of `plots.render`."""
        return plots.render(self.picture, self.theme)

    @functools.cached_property
    def seen(self) -> list[str]:
        """The words that are drawn."""
        return seen(self.svg)


def seen(svg: bytes) -> list[str]:
    """The words that are drawn in an SVG."""
    return ["".join(one.itertext()) for one in ET.fromstring(svg).iter(f"{SVG}text")]


def draw(
    picture: plots.Draw, recording: Recording, theme: plots.Theme = plots.LIGHT, **changes: Any
) -> Drawing:
    """Draw a picture of a recording, or of one with such changes, as `plots.render` does."""
    shown = picture(dataclasses.replace(recording, **changes))
    with drawn(shown, theme) as figure:
        return Drawing(shown, figure, theme)


@functools.cache
def drawing(name: str) -> Drawing:
    """One of `PICTURES`, which is for looking at."""
    return draw(*PICTURES[name])


def _drawn_words(figure: Any) -> list[tuple[Any, Any]]:
    """Each text that is really drawn, and its box in pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    found: list[tuple[Any, Any]] = []
    as_it_was: Any = Text.draw

    def watch(text: Any, renderer: Any) -> None:
        as_it_was(text, renderer)
        if words := text.get_text().strip():
            box = Text.get_window_extent(text, renderer).frozen()
            lines = text.get_text().count("\n") + 1
            box.y1 -= box.height * (lines - words.count("\n") - 1) / lines  # without empty ones
            found.append((text, box))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", watch)
        FigureCanvasAgg(figure).draw()  # type: ignore[no-untyped-call]
    return found


def check_that_words_can_be_read(figure: Any, smallest: float = 0) -> None:
    """None is smaller than so many points, all are inside, and none is on top of another."""
    words = _drawn_words(figure)
    assert len(words) > 10
    assert [text for text, _ in words if text.get_fontsize() < smallest] == []
    whole = figure.bbox
    for text, box in words:
        assert whole.x0 <= box.x0 <= box.x1 <= whole.x1, text
        assert whole.y0 <= box.y0 <= box.y1 <= whole.y1, text
    for (one, box), (other, its) in itertools.combinations(words, 2):
        width = min(box.x1, its.x1) - max(box.x0, its.x0)
        height = min(box.y1, its.y1) - max(box.y0, its.y0)
        assert width <= 1 or height <= 2, (one.get_text(), other.get_text())


def fail(
    recording: Recording, wanted: Callable[[Sample], bool] = lambda one: True
) -> tuple[Sample, ...]:
    """The samples of a recording, some of which failed."""
    return tuple(
        replace(one, failure="it failed", elapsed_ns=None) if wanted(one) else one
        for one in recording.samples
    )


def bars_of(axis: Any) -> list[tuple[float, float, float]]:
    """Left and right ends of a panel's bars, and in which row they are."""
    return sorted(
        (round(bar.get_x(), 3), round(bar.get_x() + bar.get_width(), 3), round(bar.get_y(), 3))
        for bar in axis.patches
        if bar.get_width()
    )

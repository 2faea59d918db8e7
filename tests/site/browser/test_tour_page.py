# SPDX-License-Identifier: BSD-3-Clause
"""The page of a tour in a browser: it can be read by all, on a phone too, light and dark."""

import pytest

from spead_tutorial.results import plots
from spead_tutorial.tools.tour.page import page as written
from spead_tutorial.tools.tour.rows import entries, read_arrivals
from support.browser import ONLY_VIOLATIONS, violations
from support.tours import arrived, recorded


@pytest.fixture(scope="module")
def tour_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tour")

    def rates(case, number):
        return None if (case.program, case.language) == ("tut_6_send_pktsize", "c") else 1e9

    recording = arrived(recorded(rates), {}, {"failure": "it has failed"})
    arrivals = read_arrivals(recording)
    pictures = plots.save(folder / "tut-ladder.svg", plots.ladder(recording))
    path = folder / "index.html"
    text = written(recording, entries(recording), arrivals, pictures, folder)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("width", "mode"),
    [
        (360, "light"),
        (1280, "dark"),
        pytest.param(360, "dark", marks=pytest.mark.thorough),
        pytest.param(1280, "light", marks=pytest.mark.thorough),
    ],
)
def test_a_tours_page_can_be_read_by_all(page, axe, tour_page, width, mode):
    page.emulate_media(color_scheme=mode)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(tour_page.as_uri())
    shown = [name for name in ("light", "dark") if page.locator(f".{name}").is_visible()]
    assert shown == [mode]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.evaluate(axe.axe_script)
    assert violations(page, ONLY_VIOLATIONS) == []

# SPDX-License-Identifier: BSD-3-Clause
"""Pages of records in a browser: they can be read by all, on a phone too, light and dark."""

import pytest

from spead_tutorial.measure.corner_turn import Ended
from spead_tutorial.results import plots
from spead_tutorial.tools.array.page import page as page_of_array
from spead_tutorial.tools.tour.page import page as written
from spead_tutorial.tools.tour.rows import entries
from support.arrays import account, receiver, sender
from support.arrays import recorded as recorded_array
from support.browser import ONLY_VIOLATIONS, violations
from support.tours import recorded


@pytest.fixture(scope="module")
def tour_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tour")

    def rates(case, number):
        return None if (case.program, case.language) == ("tut_6_send_pktsize", "c") else 1e9

    recording = recorded(rates)
    pictures = plots.save(folder / "tut-ladder.svg", plots.ladder(recording))
    path = folder / "index.html"
    text = written(recording, entries(recording), pictures, folder)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def array_page(tmp_path_factory):
    dead = Ended("sender 1", 0, -9)
    receivers = [receiver(j, 1000 - 100 * j, 0) for j in range(10)]
    path = tmp_path_factory.mktemp("array") / "index.html"
    found = account([sender(0, *[1000] * 10), dead], receivers)
    path.write_text(page_of_array(recorded_array(found)), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["tour_page", "array_page"])
@pytest.mark.parametrize(
    ("width", "mode"),
    [
        (360, "light"),
        (1280, "dark"),
        pytest.param(360, "dark", marks=pytest.mark.thorough),
        pytest.param(1280, "light", marks=pytest.mark.thorough),
    ],
)
def test_a_page_can_be_read_by_all(page, axe, request, width, mode, name):
    page.emulate_media(color_scheme=mode)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(request.getfixturevalue(name).as_uri())
    shown = [name for name in ("light", "dark") if page.locator(f".{name}").is_visible()]
    assert shown == [mode]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.evaluate(axe.axe_script)
    assert violations(page, ONLY_VIOLATIONS) == []

# SPDX-License-Identifier: BSD-3-Clause
"""The harness: flame graphs of the chapters' programs."""

import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from bench import flame, profile, stacks
from spead_tutorial import plots
from spead_tutorial.records import Recording
from support.bench import bench, fails
from support.labs import needs_lab
from support.perf import frames, needs_perf
from support.pictures import SVG, seen
from support.records import HEADER

needs_py_spy = pytest.mark.skipif(
    profile._py_spy() is None, reason="no py-spy here: pip install 'spead-tutorial[profile]'"
)


def profiled(folder: Path, *arguments: object) -> bytes:
    """Draw a flame graph of a moment of a program, and return it."""
    done = bench("profile", *arguments, "--seconds", "0.2", "-o", folder)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip()).read_bytes()


@needs_lab
@needs_perf
def test_perf_shows_the_kernel_and_both_threads_of_a_program_in_c(tmp_path):
    svg = profiled(tmp_path, "10", "--lang", "c")
    assert [path.name for path in tmp_path.iterdir()] == ["tut_10_send_reuse_heaps-c-perf.svg"]
    assert {"program", "stream", "main", "udp_sendmsg"} <= set(seen(svg))


@needs_lab
@needs_py_spy
def test_py_spy_shows_the_lines_of_a_program_in_python(tmp_path):
    svg = profiled(tmp_path, "10", "--tool", "py-spy")
    titles = "\n".join(one.text or "" for one in ET.fromstring(svg).iter(f"{SVG}title"))
    assert re.search(r"main \(.*tut_10_send_reuse_heaps\.py:\d+\)", titles)


@pytest.mark.parametrize(
    ("language", "tool", "why"),
    [
        ("c", None, r"perf is missing: apt install [^;]+$"),
        ("python", None, r"perf is missing: apt .*; or pip install 'spead-tutorial\[profile\]'$"),
        ("python", "py-spy", r"py-spy is missing: pip install 'spead-tutorial\[profile\]'"),
        ("c", "py-spy", "py-spy sees programs in Python alone"),
    ],
)
def test_what_is_missing_is_one_line_that_says_what_to_do(monkeypatch, language, tool, why):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(profile.ProgramError, match=why):
        profile.tool_for(language, tool)


def test_a_chapter_that_is_none_is_one_line():
    assert "there is no chapter" in fails("profile", "99", status=2)


def look(*names: str, thread: int = 1) -> stacks.Look:
    return stacks.Look(1, thread, 0.0, tuple(frames(*names)))


def made() -> flame.Box:
    return flame.grown(
        [
            look("k:ip_output", "udp_send", "main"),
            look("udp_send", "main"),
            look("main"),
            look("p:eval", "[unknown]", thread=2),
        ]
    )


def test_functions_are_as_wide_as_their_looks_and_stand_on_what_called_them():
    found = [(name, box.kind, left, box.looks, depth) for name, box, left, depth in made().boxes()]
    assert found == [
        ("program", "thread", 0, 3, 0),
        ("main", "ours", 0, 3, 1),
        ("udp_send", "ours", 0, 2, 2),
        ("ip_output", "kernel", 0, 1, 3),
        ("stream", "thread", 3, 1, 0),
        ("eval", "else", 3, 1, 1),
    ]


def test_a_flame_graph_says_in_words_where_the_time_went():
    def draw(recording: Recording, theme: plots.Theme) -> Any:
        return flame.draw_flame(made(), "Some program", recording, theme)

    svg = plots.render(draw, Recording(HEADER, ()), plots.LIGHT)
    assert {"Some program", "program", "udp_send", "ip_output", "eval"} <= set(seen(svg))
    described = ET.fromstring(svg).findtext(f"{SVG}desc") or ""
    assert described.startswith("Some program, 4 looks. Most often in: ")
    assert "udp_send 25 %" in described

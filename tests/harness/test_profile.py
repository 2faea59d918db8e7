# SPDX-License-Identifier: BSD-3-Clause
"""The harness: the stacks of the chapters' programs."""

import json
import shutil
from pathlib import Path

import pytest

from bench import profile
from support.bench import bench, fails
from support.labs import needs_lab
from support.perf import needs_perf

needs_py_spy = pytest.mark.skipif(
    profile._py_spy() is None, reason="no py-spy here: pip install 'spead-tutorial[profile]'"
)


def profiled(folder: Path, *arguments: object) -> Path:
    """Write down a moment of a program, and return the file."""
    done = bench("profile", *arguments, "--seconds", "0.2", "-o", folder)
    assert done.returncode == 0, done.stderr
    path = Path(done.stdout.strip())
    assert list(folder.iterdir()) == [path]
    return path


@needs_lab
@needs_perf
def test_perf_shows_the_kernel_and_both_threads_of_a_program_in_c(tmp_path):
    path = profiled(tmp_path, "10", "--lang", "c")
    assert path.name == "tut_10_send_reuse_heaps-c.perf.txt"
    stacks = [one.splitlines() for one in path.read_text().split("\n\n") if one.strip()]
    assert len({one[0].split()[1] for one in stacks}) > 1, "threads, as perf numbers them"
    frames = {line.split()[1].partition("+")[0] for one in stacks for line in one[1:]}
    assert {"main", "udp_sendmsg"} <= frames


@needs_lab
@needs_py_spy
def test_py_spy_shows_the_lines_of_a_program_in_python(tmp_path):
    path = profiled(tmp_path, "10", "--tool", "py-spy")
    assert path.name == "tut_10_send_reuse_heaps-python.speedscope.json"
    frames = json.loads(path.read_text())["shared"]["frames"]
    assert any(one["name"] == "main" and one["file"].endswith("reuse_heaps.py") for one in frames)


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

# SPDX-License-Identifier: BSD-3-Clause
"""What the README shows works as it stands there."""

import re
from pathlib import Path

import pytest
from conftest import run_script

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL)


def test_the_python_example_runs(tmp_path):
    (example,) = blocks("python")
    done = run_script(example, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"\d+ bytes\n", done.stdout)


@pytest.mark.parametrize("target", re.findall(r"^make ([\w-]+)", "\n".join(blocks("sh")), re.M))
def test_every_make_target_that_is_named_exists(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M)


def test_every_file_that_is_linked_exists():
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text())
    local = [link for link in links if "://" not in link]
    assert local
    assert [link for link in local if not (ROOT / link).exists()] == []

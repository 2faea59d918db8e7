# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial check`` of senders in C: they are compiled, and checked like others."""

import re
from pathlib import Path

import pytest

from spead_tutorial import cli as cli_module
from spead_tutorial.check.worth import SKELETON, YOURS, Worth, verdict
from support import ROOT
from support.c_library import install
from support.labs import needs_lab
from support.needs import need
from support.once import MadeOnce
from support.records import row, worth_of

EIGHT = ROOT / "csrc" / "chapters" / "tut_8_send_reuse_memory.c"


@pytest.fixture
def library(made_once: MadeOnce, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pkg-config know a library that has been installed somewhere."""
    need("pkg-config", "cc")
    (pc,) = made_once("installed", install).glob("prefix/**/spead_tutorial.pc")
    monkeypatch.setenv("PKG_CONFIG_PATH", str(pc.parent))


def sender(tmp_path: Path, old: str = "", new: str = "") -> Path:
    """Change chapter 8's program in one place."""
    text = EIGHT.read_text()
    assert not old or text.count(old) == 1
    path = tmp_path / "my_sender.c"
    path.write_text(text.replace(old, new) if old else text)
    return path


def checked(*arguments: str | Path) -> int:
    return cli_module.finish(
        cli_module.cli, "spead-tutorial", ["check", *map(str, arguments), "--no-measure"]
    )


@needs_lab
@pytest.mark.usefixtures("library")
def test_a_sender_in_c_is_compiled_and_checked(tmp_path, capfd):
    assert checked("8", sender(tmp_path)) == 0
    assert capfd.readouterr().out == "my_sender.c sends what it should.\n"


@needs_lab
@pytest.mark.usefixtures("library")
def test_of_a_wrong_sender_in_c_one_line_says_what_is_wrong_first(tmp_path, capfd):
    assert checked("8", sender(tmp_path, "(int)(i % 256)", "(int)(i % 2)")) == 1
    said = capfd.readouterr().err
    assert said == "spead-tutorial: heap 3, packet 1, sample 0: expected 2, found 0\n"


@pytest.mark.usefixtures("library")
def test_what_the_compiler_does_not_take_is_said_in_one_line(tmp_path, capfd):
    assert checked("8", sender(tmp_path, "size_t heap_size = ", "size_t heap_size ")) == 1
    said = capfd.readouterr().err
    assert re.fullmatch(r"spead-tutorial: [^\n]*my_sender\.c:\d+:\d+: error: [^\n]+\n", said)


def test_without_a_compiler_one_line_says_so(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert checked("8", sender(tmp_path)) == 1
    said = capfd.readouterr().err
    assert said.startswith("spead-tutorial: there is no C compiler 'no-such-compiler': install one")
    assert said.count("\n") == 1


@pytest.mark.usefixtures("library")
def test_without_the_library_one_line_says_so(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("PKG_CONFIG_PATH", "")
    monkeypatch.setenv("PKG_CONFIG_LIBDIR", str(tmp_path))
    assert checked("8", sender(tmp_path)) == 1
    said = capfd.readouterr().err
    assert said.startswith("spead-tutorial: pkg-config knows no library spead_tutorial: install it")
    assert said.count("\n") == 1


def test_a_receiver_has_to_be_in_python(tmp_path, capfd):
    assert checked("7", sender(tmp_path)) == 2
    assert "a program that receives has to be in Python" in capfd.readouterr().err


def test_without_a_skeleton_it_is_compared_with_the_chapter_alone():
    with_skeleton = worth_of(2e9)
    found = {who: its for who, its in with_skeleton.found.items() if who != SKELETON}
    assert verdict(Worth(found, None), "x.c") == "x.c is slower than the chapter's own program"
    found[YOURS] = row(YOURS, [3e9 * 2**number for number in range(3)])
    assert verdict(Worth(found, None), "x.c") == "x.c is as fast as the chapter's own program"

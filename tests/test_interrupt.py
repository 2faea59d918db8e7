# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C, whenever it comes: one line, and 130, from the first import on."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from spead_tutorial.catalogue import CHAPTERS, STEPS, Chapter, find_chapter
from spead_tutorial.measure.programs import command

ROOT = Path(__file__).parent.parent
PATIENCE_S = 60
COMMAND = str(Path(sys.executable).parent / "spead-tutorial")
PROGRAMS = (*CHAPTERS, *STEPS)
PEERS = sorted(ROOT.glob("spead_tutorial/peer/tut_*.py"))


def interrupted_while_importing(
    module: str, argv: list[str], tmp_path: Path, **more: Path
) -> tuple[int, str, str]:
    """Run a process that gets SIGINT when it imports a module; return all that it says."""
    (tmp_path / f"{module}.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    done = subprocess.run(
        argv,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        stdin=subprocess.DEVNULL,
        **more,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("module", ["numpy", "spead_tutorial", "click"])
def test_the_command_can_be_interrupted_while_it_imports(tmp_path, module):
    said = interrupted_while_importing(module, [COMMAND, "chapters"], tmp_path)
    assert said == (130, "", "spead-tutorial: interrupted\n")


@pytest.mark.parametrize("module", ["numpy", "click"])
def test_the_harness_can_be_interrupted_while_it_imports(tmp_path, module):
    argv = [sys.executable, "-m", "bench", "list"]
    said = interrupted_while_importing(module, argv, tmp_path, cwd=ROOT)
    assert said == (130, "", "python -m bench: interrupted\n")


@pytest.mark.parametrize("chapter", PROGRAMS, ids=lambda chapter: chapter.name)
@pytest.mark.parametrize("module", ["numpy", "spead_tutorial", "argparse"])
def test_a_program_can_be_interrupted_while_it_imports(tmp_path, chapter, module):
    said = interrupted_while_importing(module, command(chapter, "python"), tmp_path)
    assert said == (130, "", f"{chapter.name}: interrupted\n")


@pytest.mark.parametrize("peer", PEERS, ids=lambda path: path.stem)
def test_a_peers_program_can_be_interrupted_while_it_imports(tmp_path, peer):
    said = interrupted_while_importing("spead2", [sys.executable, str(peer)], tmp_path)
    assert said == (130, "", f"{peer.stem}: interrupted\n")


def interrupted_while_sending(argv: list[str], receiver: socket.socket) -> tuple[int, str, str]:
    """Run a process that gets SIGINT when it has sent something; return all that it says."""
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        receiver.recv(1)
        process.send_signal(signal.SIGINT)
        return process.wait(PATIENCE_S), *process.communicate()


def endless(chapter: Chapter, language: str, receiver: socket.socket) -> list[str]:
    argv = [word for word in command(chapter, language) if word != "--json"]
    host, port = receiver.getsockname()
    return [*argv, "-n", str(1 << 62), host, str(port)]


each_that_goes_on = pytest.mark.parametrize(
    "chapter", [c for c in PROGRAMS if "n" in c.accepted], ids=lambda chapter: chapter.name
)


@each_that_goes_on
def test_a_python_program_can_be_interrupted_while_it_sends(receiver, chapter):
    said = interrupted_while_sending(endless(chapter, "python", receiver), receiver)
    assert said == (130, "", f"{chapter.name}: interrupted\n")


@each_that_goes_on
def test_a_c_program_is_ended_by_the_signal_which_a_shell_calls_130(receiver, chapter):
    said = interrupted_while_sending(endless(chapter, "c", receiver), receiver)
    assert said == (-signal.SIGINT, "", "")


@pytest.mark.parametrize("renamed", [True, False])
def test_a_renamed_program_or_a_module_can_be_interrupted_while_it_sends(
    receiver, tmp_path, renamed
):
    _, program, *arguments = endless(find_chapter("10"), "python", receiver)
    start, name = ["-P", "-m", f"spead_tutorial.chapters.{Path(program).stem}"], Path(program).stem
    if renamed:
        shutil.copy(program, tmp_path / "x.py")
        start, name = [str(tmp_path / "x.py")], "x"
    said = interrupted_while_sending([sys.executable, *start, *arguments], receiver)
    assert said == (130, "", f"{name}: interrupted\n")


def test_a_timeline_can_be_interrupted_while_it_is_taken(receiver):
    host, port = receiver.getsockname()
    argv = [sys.executable, "-P", "-m", "spead_tutorial.timeline", "-n", "1000000", host, str(port)]
    said = interrupted_while_sending(argv, receiver)
    assert said == (130, "", "timeline: interrupted\n")


def test_a_program_that_ignores_interrupts_as_under_nohup_goes_on(receiver):
    host, port = receiver.getsockname()
    argv = command(find_chapter("6"), "python", destination=(host, port))[:-3]
    ignore = "import os, signal, sys; signal.signal(2, 1); os.execv(sys.argv[1], sys.argv[1:])"
    argv = [sys.executable, "-c", ignore, *argv, "-n", "3", host, str(port)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        receiver.recv(1)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0


def test_looking_at_a_program_as_a_module_leaves_interrupts_alone():
    code = (
        "import signal, spead_tutorial.chapters.tut_2_send;"
        "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")

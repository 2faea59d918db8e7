# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C, SIGTERM and SIGHUP, whenever they come: one line, a status, and nothing left behind."""

import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import product

import pytest

from spead_tutorial.chapters.catalogue import PROGRAMS, Chapter, find_chapter
from spead_tutorial.measure.programs import command
from support import ROOT
from support.labs import needs_lab
from support.processes import wait_until_it_takes_signals
from support.programs import PATIENCE_S, cases, name_of
from support.receivers import CHAPTER_3
from support.typed import COMMAND, PIPES, Marked

USUAL = find_chapter("10")
#: What a command says of each signal that ends it as Ctrl-C does.
WORDS = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "ended by SIGTERM",
    signal.SIGHUP: "ended by SIGHUP",
}


def interrupted_while_sending(argv: list[str], receiver: socket.socket) -> tuple[int, str, str]:
    """Run a process that gets SIGINT when it has sent something; return all that it says."""
    with subprocess.Popen(argv, **PIPES) as process:
        try:
            receiver.recv(1)
            process.send_signal(signal.SIGINT)
            return process.wait(PATIENCE_S), *process.communicate()
        finally:
            process.kill()


def endless(chapter: Chapter, language: str, receiver: socket.socket) -> list[str]:
    argv = [word for word in command(chapter, language) if word != "--json"]
    host, port = receiver.getsockname()
    return [*argv, "-n", str(1 << 62), host, str(port)]


@pytest.mark.parametrize(
    ("chapter", "language"),
    cases(
        product((one for one in PROGRAMS if "n" in one.accepted), ("python", "c")),
        lambda chapter, language: chapter is USUAL,
    ),
    ids=name_of,
)
def test_a_program_can_be_interrupted_while_it_sends(receiver, chapter, language):
    said = interrupted_while_sending(endless(chapter, language, receiver), receiver)
    assert said == (-signal.SIGINT, "", "")  # which a shell calls 130


# ---- A command line, which has something to clean up ----


@pytest.fixture
def marked() -> Iterator[Marked]:
    """End what a test that failed has left behind: it would send for ever, and take a core."""
    marked = Marked()
    yield marked
    marked.kill()


def start(marked: Marked, *argv: str) -> subprocess.Popen[str]:
    """Start a command in a session of its own."""
    environment = marked.environment | {"PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(argv, **PIPES, start_new_session=True, cwd=ROOT, env=environment)


WAITER = (COMMAND, "lab", "--", "sh", "-c", "echo ready; read line; echo went on")
ENDLESS = ("--lang", "c", "-n", str(1 << 40), "-H", "8192")
SLEEPER = (COMMAND, "lab", "--", "sh", "-c", "sleep 1000 & echo ready; sleep 1000")


def check_end(
    marked: Marked, process: subprocess.Popen[str], number: int, output: str | None = ""
) -> str:
    """A signal has ended a command: one line says so, and nothing of it is left."""
    out, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + number
    if output is None:  # of what may have said more
        assert errors.splitlines()[-1] == f"spead-tutorial: {WORDS[number]}"
    else:
        assert (out, errors.strip()) == (output, f"spead-tutorial: {WORDS[number]}")
    marked.wait_until_nothing_is_left()
    return out


def sent_to(*plain: tuple[Callable[[int, int], None], int]) -> pytest.MarkDecorator:
    """Parametrize with each signal to a process or to its group, some in `make test`."""
    each = cases(product((os.kill, os.killpg), WORDS), lambda *one: one in plain)
    return pytest.mark.parametrize(("send", "number"), each)


@needs_lab
@sent_to((os.killpg, signal.SIGINT), (os.kill, signal.SIGHUP))
def test_a_command_in_a_lab_ends_with_its_caller_and_the_callers_signal(marked, send, number):
    with start(marked, *SLEEPER) as process:
        assert process.stdout.readline() == "ready\n"
        send(process.pid, number)
        check_end(marked, process, number)


@needs_lab
def test_a_command_that_ignores_the_signal_is_ended_all_the_same(marked):
    ignore = "trap '' TERM; echo ready; while :; do sleep 1000; done"
    with start(marked, COMMAND, "lab", "--", "sh", "-c", ignore) as process:
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        check_end(marked, process, signal.SIGTERM)


@needs_lab
@sent_to((os.killpg, signal.SIGTERM), (os.killpg, signal.SIGINT))
def test_a_receiver_and_its_sender_end_together_and_what_came_until_ctrl_c_is_accounted_for(
    marked, send, number
):
    with start(marked, COMMAND, "run", "3", "--from", "10", *ENDLESS) as process:
        while "Timestamp" not in process.stdout.readline():
            pass
        send(process.pid, number)
        out = check_end(marked, process, number, output=None)
    if number == signal.SIGINT:
        assert f"{CHAPTER_3}: It was interrupted before the stream had ended.\n" in out
        (row,) = re.findall(rf"^{CHAPTER_3}: packets: (.*)$", out, re.M)
        received, *fates = map(int, re.findall(r"\d+", row))
        assert received == sum(fates) > 0


@needs_lab
@sent_to((os.kill, signal.SIGTERM))
def test_whenever_the_signal_comes_it_is_one_line_and_nothing_stays(marked, send, number, tmp_path):
    source = random.Random(number)
    with start(marked, COMMAND, "tour", "--output", str(tmp_path)) as process:
        wait_until_it_takes_signals(process)
        time.sleep(source.uniform(0, 1.4))
        for _ in range(source.randint(1, 2) if number != signal.SIGINT else 1):
            send(process.pid, number)
        check_end(marked, process, number, None)
    assert list(tmp_path.glob("*")) == []


@needs_lab
def test_under_nohup_the_end_of_the_terminal_is_none_of_its_business():
    ignore = "import os, signal, sys; signal.signal(1, 1); os.execv(sys.argv[1], sys.argv[1:])"
    with subprocess.Popen(
        [sys.executable, "-c", ignore, *WAITER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout.readline() == "ready\n"
        os.killpg(process.pid, signal.SIGHUP)
        out, _ = process.communicate("\n", timeout=PATIENCE_S)
    assert (process.returncode, out) == (0, "went on\n")

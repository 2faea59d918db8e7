# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial`` as one types it: a process, how it ends, and what is below it."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

#: Far more than anything takes: to fail instead of hanging.
PATIENCE_S = 120

COMMAND = str(Path(sys.executable).with_name("spead-tutorial"))

Typed = subprocess.CompletedProcess[str]
Run = Callable[..., Typed]

#: What a process is started with whose streams are read.
PIPES: dict[str, Any] = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
    "text": True,
}


def typed(*words: str | Path, **how: Any) -> Typed:
    """Run the command as a process."""
    return run(COMMAND, *words, **how)


def run(*command: str | Path, **how: Any) -> Typed:
    """Run any command, and keep what it says."""
    how = PIPES | {"timeout": PATIENCE_S} | how
    done: Typed = subprocess.run([*map(str, command)], check=False, **how)
    return done


def check_refused(done: Typed, status: int, words: str) -> None:
    """Check that all a command said is one line, which has these words."""
    assert (done.returncode, done.stdout) == (status, ""), done.stderr
    assert re.fullmatch(r"spead-tutorial: [^\n]+\n", done.stderr)
    assert "Traceback" not in done.stderr
    assert words in done.stderr


def processes(word: str, environment: str = "") -> Iterator[int]:
    """Find processes with a word in their command, and another in their environment."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            has = word.encode() in (folder / "cmdline").read_bytes()
            if has and environment.encode() in (folder / "environ").read_bytes():
                yield int(folder.name)
        except OSError:  # it has just ended, or is another's
            continue


class Marked:
    """Processes that can be found, with all that came of them, by a mark in their environment."""

    def __init__(self) -> None:
        self._mark = uuid.uuid4().hex
        self.environment = os.environ | {"SPEAD_TUTORIAL_TEST": self._mark}

    def processes(self, word: str = "") -> list[int]:
        """Return all that is left, or what of it has a word in its command."""
        return list(processes(word, self._mark))

    def wait_for(self, word: str) -> list[int]:
        """Wait until something runs that has a word in its command."""
        until = time.monotonic() + PATIENCE_S
        while not (found := self.processes(word)):
            assert time.monotonic() < until, f"{word} never ran"
            time.sleep(0.05)
        return found

    def wait_until_nothing_is_left(self) -> None:
        """Wait for the end of all."""
        until = time.monotonic() + PATIENCE_S
        while self.processes():
            assert time.monotonic() < until, self.processes()
            time.sleep(0.1)

    def kill(self) -> None:
        """Leave none behind."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

# SPDX-License-Identifier: BSD-3-Clause
"""How much a sender gets from memory: counters of the processor, where perf may read them."""

import contextlib
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from spead_tutorial.tools.why.facts import Traffic

__all__ = ["counted", "parse"]

_EVENT = "cache-misses"  # of the last cache, as perf names it for every processor
_LINE_BYTES = 64
_PATIENCE_S = 5.0
_MISSING = "there is no perf: apt install linux-perf"
_UNSUPPORTED = "this machine shows no hardware counters, as most virtual ones"
_NOTHING = "perf counted nothing, for want of time or of permission (kernel.perf_event_paranoid)"


def parse(text: str) -> Traffic:
    """Read what ``perf stat -x,`` wrote."""
    found = re.search(rf"^([^,\n]*),[^,\n]*,{_EVENT}(:u)?,", text, re.M)
    if found is None:
        return Traffic(None, False, _NOTHING)
    if not found[1].isdigit():
        return Traffic(None, False, _UNSUPPORTED)
    return Traffic(int(found[1]) * _LINE_BYTES, found[2] is not None, "")


@contextlib.contextmanager
def counted(pid: int) -> Iterator[list[Traffic]]:
    """Count what a process and what it starts get from memory, for the time of a block."""
    made: list[Traffic] = []
    perf = shutil.which("perf")
    if perf is None:
        made.append(Traffic(None, False, _MISSING))
        yield made
        return
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "counts")
        command = [perf, "stat", "-x", ",", "-e", _EVENT, "-o", str(output), "-p", str(pid)]
        nothing = subprocess.DEVNULL
        with subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing) as process:
            try:
                yield made
            finally:
                process.send_signal(signal.SIGINT)  # it writes what it has counted
                try:
                    process.wait(_PATIENCE_S)
                except subprocess.TimeoutExpired:
                    process.kill()
        made.append(parse(output.read_text() if output.exists() else ""))

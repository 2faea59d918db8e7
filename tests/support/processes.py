# SPDX-License-Identifier: BSD-3-Clause
"""Programs as processes."""

import contextlib
import importlib.metadata
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.typed import Typed, run


def run_script(text: str, tmp_path: Path, *args: str) -> Typed:
    """Run Python source as a process of its own."""
    script = tmp_path / "script.py"
    script.write_text(text)
    return run(sys.executable, script, *args, timeout=60)


def python_for_anyone() -> tuple[str, dict[str, Any]]:
    """Find a Python for a user who is not root, and how that one runs it; or skip the test."""
    package = importlib.metadata.distribution("pyroute2").locate_file("")
    how: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": [], "cwd": "/"}
    how |= {"env": os.environ | {"PYTHONPATH": str(package)}}
    installed = shutil.which("python3", path="/usr/local/bin:/usr/bin")
    for candidate in filter(None, (sys.executable, installed)):
        with contextlib.suppress(OSError):
            done = run(candidate, "-c", "import sys; print(sys.version_info >= (3, 11))", **how)
            if done.stdout == "True\n":
                return candidate, how
    pytest.skip("there is no Python that an ordinary user may execute")


def wait_until_it_takes_signals(process: subprocess.Popen[str]) -> None:
    """Wait until a command's own first line has run: before that, Python answers, or the kernel."""
    bit = 1 << (signal.SIGTERM - 1)
    while process.poll() is None:
        said = Path(f"/proc/{process.pid}/status").read_text()
        caught = re.search(r"^SigCgt:\s+(\w+)", said, re.M)
        if caught is not None and int(caught[1], 16) & bit:
            return
        time.sleep(0.001)


def sleeps(pid: int) -> bool:
    """Whether all threads of a process wait for something."""
    try:
        stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:  # one of them has just ended
        return False
    return all(stat.rpartition(") ")[2].startswith("S") for stat in stats)


def resident_bytes() -> int:
    """How much memory this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")

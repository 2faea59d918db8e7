# SPDX-License-Identifier: BSD-3-Clause
"""Programs as processes."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path


def run_script(text: str, tmp_path: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run Python source as a process of its own."""
    script = tmp_path / "script.py"
    script.write_text(text)
    return subprocess.run(
        [sys.executable, str(script), *args],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def python_for_anyone() -> str | None:
    """Find a Python that a user other than root may execute."""
    for candidate in (sys.executable, shutil.which("python3", path="/usr/local/bin:/usr/bin")):
        if candidate is None:
            continue
        try:
            found = subprocess.run(
                [candidate, "-c", "import sys; print(sys.version_info >= (3, 11))"],
                user=65534,
                group=65534,
                extra_groups=[],
                cwd="/",
                capture_output=True,
                check=True,
            )
        except (OSError, subprocess.CalledProcessError):
            continue
        if found.stdout == b"True\n":
            return candidate
    return None


def wait_until_it_takes_signals(process: subprocess.Popen[str]) -> None:
    """Wait until a command's own first line has run: before that, Python answers, or the kernel."""
    bit = 1 << (signal.SIGTERM - 1)
    while process.poll() is None:
        said = Path(f"/proc/{process.pid}/status").read_text()
        caught = re.search(r"^SigCgt:\s+(\w+)", said, re.M)
        if caught is not None and int(caught[1], 16) & bit:
            return
        time.sleep(0.001)


def resident_bytes() -> int:
    """How much memory this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")

# SPDX-License-Identifier: BSD-3-Clause
"""Labs, where there can be some; and processes that have begun to take signals."""

import functools
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from spead_tutorial import lab

#: What this machine offers for a lab, which a process asks for once.
probe = functools.cache(lab.probe)
REASON = f"no lab here: {probe().reason}"
needs_lab = pytest.mark.skipif(probe().reason is not None, reason=REASON)


def open_lab() -> lab.Lab:
    """Open a lab, or skip the test where there can be none."""
    if probe().reason is not None:
        pytest.skip(REASON)
    return lab.Lab()


def wait_until_it_takes_signals(process: subprocess.Popen[str]) -> None:
    """Wait until a command's own first line has run: before that, Python answers, or the kernel."""
    bit = 1 << (signal.SIGTERM - 1)
    while process.poll() is None:
        said = Path(f"/proc/{process.pid}/status").read_text()
        if int(re.search(r"^SigCgt:\s+(\w+)", said, re.M)[1], 16) & bit:
            return
        time.sleep(0.001)

# SPDX-License-Identifier: BSD-3-Clause
"""The C library, installed into a folder."""

import os
import subprocess
import sys
from pathlib import Path

from support import ROOT


def build(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Run a command that must succeed, with meson and ninja found; return what it printed."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def install(folder: Path) -> None:
    """Install the C library into a folder."""
    build("meson", "setup", "build", str(ROOT), f"--prefix={folder}/prefix", cwd=folder)
    build("meson", "install", "-C", "build", cwd=folder)

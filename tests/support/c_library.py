# SPDX-License-Identifier: BSD-3-Clause
"""The C library, installed into a folder."""

import os
import sys
from pathlib import Path

from support import ROOT
from support.typed import run

PATIENCE_S = 600  # a machine can be busy


def build(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Run a command that must succeed, with meson and ninja found; return what it printed."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, **environment}
    done = run(*command, cwd=cwd, env=environment, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def install(folder: Path) -> None:
    """Install the C library into a folder; of what is built for it, only that, and quickly."""
    setup = ("meson", "setup", "build", str(ROOT), f"--prefix={folder}/prefix")
    build(*setup, "--buildtype=plain", cwd=folder)
    build("meson", "compile", "-C", "build", "spt:static_library", "spt:shared_library", cwd=folder)
    build("meson", "install", "-C", "build", "--no-rebuild", cwd=folder)

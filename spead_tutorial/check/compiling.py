# SPDX-License-Identifier: BSD-3-Clause
"""Making a program of a sender in C that a reader wrote, with what the chapters' programs share."""

import importlib.resources
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from spead_tutorial.measure.programs import ProgramError

__all__ = ["compiled"]

_LIBRARY = "spead_tutorial"
_HOW = "see 'Use the core from C' in the documentation"


def compiled(source: Path, folder: Path) -> Path:
    """Compile a sender in C, against the library that is installed, and the chapters' report."""
    compiler = shlex.split(os.environ.get("CC", "")) or ["cc"]
    if shutil.which(compiler[0]) is None:
        raise ProgramError(
            f"there is no C compiler {compiler[0]!r}: install one (apt install gcc), or name it in"
            " CC"
        )
    if shutil.which("pkg-config") is None:
        raise ProgramError(
            "there is no pkg-config, which knows where the library is: apt install pkg-config"
        )
    flags = _run(["pkg-config", "--cflags", "--libs", _LIBRARY])
    where = _run(["pkg-config", "--variable=libdir", _LIBRARY])
    if flags.returncode != 0 or where.returncode != 0:
        raise ProgramError(f"pkg-config knows no library {_LIBRARY}: install it, {_HOW}")
    shared = importlib.resources.files("spead_tutorial").joinpath("chapters")
    program = folder / source.stem
    made = _run(
        [
            *compiler,
            *("-std=c11", "-O2", "-D_GNU_SOURCE", f"-I{shared}"),
            *map(str, (source, shared.joinpath("report.c"), shared.joinpath("command_line.c"))),
            *("-o", str(program)),
            *shlex.split(flags.stdout),
            f"-Wl,-rpath,{where.stdout.strip()}",
            *("-lpthread", "-lm"),
        ]
    )
    if made.returncode != 0:
        raise ProgramError(_first_error(made.stderr) or f"{source.name}: it cannot be compiled")
    return program


def _run(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, check=False, capture_output=True, text=True, errors="replace")


def _first_error(said: str) -> str | None:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    wrong = (line for line in lines if "error:" in line or "undefined reference" in line)
    return next(wrong, lines[-1] if lines else None)

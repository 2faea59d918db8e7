# SPDX-License-Identifier: BSD-3-Clause
"""Say in one line what building lacks on this machine, and what to type: ``make setup`` asks first.

The interpreter that is built for runs this, and may be one that is too old: so it has to be able to
read this, and to get to where that is said.
"""

import argparse
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

OLDEST = (3, 11)
#: What can be missing, in words.
WORDS = {
    "environments": "ensurepip (which puts pip into an environment)",
    "headers": "Python.h (Python's headers for C)",
    "compiler": "a C compiler",
    "library": "the C library's headers (the compiler cannot build a program)",
}
#: What installs it, by a system's name in os-release: a command, and packages in the same order.
SYSTEMS = {
    "debian": ("apt install", "{python}-venv", "{python}-dev", "gcc", "libc6-dev"),
    "fedora": ("dnf install", "{python}", "{python}-devel", "gcc", "glibc-devel"),
    "arch": ("pacman -S --needed", "python", "python", "gcc", "glibc"),
}

_PROGRAM = "#include <stdio.h>\nint main(void) { return puts(__FILE__) < 0; }\n"
_EXTENSION = "#include <Python.h>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("goals", nargs="*", default=["setup"], help="what make is to make")
    parser.add_argument("--packages", action="store_true", help="print the packages alone")
    given = parser.parse_args()
    again = f"make {' '.join(given.goals)} PYTHON="
    if sys.version_info < OLDEST:
        mine, oldest = (".".join(map(str, one[:2])) for one in (sys.version_info, OLDEST))
        sys.exit(
            f"{sys.executable} is Python {mine}, and this takes {oldest} or newer:"
            f" {again}python{oldest} (or newer; without root, uv, conda and pyenv have them)"
        )
    lacking = missing()
    command, packages = packages_for(lacking)
    if given.packages:
        print(" ".join(packages))
    elif lacking:
        sys.exit(advice(lacking, command, packages, again))


# ---- What is missing ----


def missing():
    """Return which of WORDS are missing."""
    found = []
    if not all(map(importlib.util.find_spec, ("venv", "ensurepip"))):
        found.append("environments")
    folders = [sysconfig.get_path(name) for name in ("include", "platinclude")]
    compiler = find_compiler()
    works = compiler is not None and builds(compiler, _PROGRAM)
    if works:
        headers = builds(compiler, _EXTENSION, "-c", *[f"-I{folder}" for folder in folders])
    else:
        headers = any(Path(folder, "Python.h").is_file() for folder in folders)
    if not headers:
        found.append("headers")
    if not works:
        found.append("compiler" if compiler is None else "library")
    return found


def find_compiler():
    """Return the command of the compiler that meson takes, or None."""
    chosen = shlex.split(os.environ.get("CC", ""))
    for command in [chosen] if chosen else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(command[0]):
            return command
    return None


def builds(compiler, source, *options):
    """Return whether a compiler makes something of a source, with the flags that meson gives it."""
    flags = [os.environ.get(name, "") for name in ("CPPFLAGS", "CFLAGS", "LDFLAGS")]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "source.c")
        path.write_text(source)
        command = [*compiler, path, "-o", path.with_suffix(""), *options]
        command += shlex.split(" ".join(flags))
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


# ---- What to type ----


def packages_for(lacking):
    """Return the command that installs, and the packages; nothing for a system that is unknown."""
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        return "", []
    for name in [system["ID"], *system.get("ID_LIKE", "").split()]:
        if name in SYSTEMS:
            command, *packages = SYSTEMS[name]
            found = [packages[list(WORDS).index(one)] for one in lacking]
            return command, [one.format(python=python_name()) for one in dict.fromkeys(found)]
    return "", []


def python_name():
    """Return the interpreter's name as packages have it: python3.13 has others than python3."""
    typed = Path(sys.executable).name
    return typed if typed.startswith("python3") else f"python3.{sys.version_info.minor}"


def advice(lacking, command, packages, again):
    line = f"to build this, the machine lacks {', '.join(WORDS[one] for one in lacking)}"
    root = os.geteuid() == 0
    if packages:
        line += f". Type: {'' if root else 'sudo '}{command} {' '.join(packages)}"
    if packages and root:
        return line
    if "compiler" in lacking or "library" in lacking:
        return f"{line} (without root: conda's packages python and c-compiler)"
    return f"{line} (without root: uv, conda and pyenv have it for their Python: {again}...)"


if __name__ == "__main__":
    main()

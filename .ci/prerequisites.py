# SPDX-License-Identifier: BSD-3-Clause
"""Say in one line what building lacks on this machine, and what to type: ``make setup`` asks first.

The interpreter that is built for runs this, and may be one that is too old: so it has to be able to
read this, and to get to where that is said.
"""

import argparse
import importlib.util
import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path

OLDEST = (3, 11)
#: What can be missing, in words, and Debian's package of it.
WORDS = {
    "environments": ("ensurepip (which puts pip into an environment)", "{python}-venv"),
    "headers": ("Python.h (Python's headers for C)", "{python}-dev"),
    "compiler": ("a C compiler", "gcc libc6-dev"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("goals", nargs="*", default=["setup"], help="what make is to make")
    parser.add_argument("--packages", action="store_true", help="print the packages alone")
    given = parser.parse_args()
    if sys.version_info < OLDEST:
        mine, oldest = (".".join(map(str, one[:2])) for one in (sys.version_info, OLDEST))
        again = f"make {' '.join(given.goals)} PYTHON="
        sys.exit(
            f"{sys.executable} is Python {mine}, and this takes {oldest} or newer:"
            f" {again}python{oldest} (or newer; without root, uv, conda and pyenv have them)"
        )
    lacking = missing()
    packages = " ".join(WORDS[one][1] for one in lacking).format(python=python_name())
    if given.packages:
        print(packages)
    elif lacking:
        sudo = "" if os.geteuid() == 0 else "sudo "
        sys.exit(
            f"to build this, the machine lacks {', '.join(WORDS[one][0] for one in lacking)}. Type:"
            f" {sudo}apt install {packages} (or what your system calls them; without root, conda's"
            " packages python and c-compiler)"
        )


def missing():
    """Return which of WORDS are missing."""
    there = {
        "environments": all(map(importlib.util.find_spec, ("venv", "ensurepip"))),
        "headers": any(
            Path(sysconfig.get_path(name), "Python.h").is_file()
            for name in ("include", "platinclude")
        ),
        "compiler": has_compiler(),
    }
    return [name for name in WORDS if not there[name]]


def has_compiler():
    """Whether there is one that meson takes."""
    chosen = shlex.split(os.environ.get("CC", ""))[:1]
    return any(map(shutil.which, chosen or ("cc", "gcc", "clang")))


def python_name():
    """Return the interpreter's name as packages have it: python3.13 has others than python3."""
    typed = Path(sys.executable).name
    return typed if typed.startswith("python3") else f"python3.{sys.version_info.minor}"


if __name__ == "__main__":
    main()

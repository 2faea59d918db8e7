# SPDX-License-Identifier: BSD-3-Clause
"""Say in one line what building lacks on this machine, and what to type: ``make setup`` asks first.

The interpreter that is built for runs this, and may be one that is too old: so this is written for
any of them, and imports only what comes with all.
"""

import argparse
import importlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile

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
    parser.add_argument("--os-release", default="/etc/os-release", help="which system this is")
    given = parser.parse_args()
    again = "make {} PYTHON=".format(" ".join(given.goals))
    if sys.version_info < OLDEST:
        sys.exit(too_old(again))
    lacking = missing()
    command, packages = packages_for(given.os_release, lacking)
    if given.packages:
        print(" ".join(packages))
    elif lacking:
        sys.exit(advice(lacking, command, packages, again))


def too_old(again):
    return (
        "{} is Python {}.{}, and this takes {}.{} or newer: {}python{}.{} (or newer; without root,"
        " uv, conda and pyenv have them)"
    ).format(sys.executable, *(sys.version_info[:2] + OLDEST + (again,) + OLDEST))


# ---- What is missing ----


def missing():
    """Return which of WORDS are missing."""
    found = []
    if not (importable("venv") and importable("ensurepip")):
        found.append("environments")
    compiler = find_compiler()
    works = compiler is not None and builds(compiler, _PROGRAM)
    if works:
        headers = builds(compiler, _EXTENSION, "-c", *["-I" + folder for folder in includes()])
    else:
        headers = any(os.path.isfile(os.path.join(folder, "Python.h")) for folder in includes())
    if not headers:
        found.append("headers")
    if not works:
        found.append("compiler" if compiler is None else "library")
    return found


def importable(module):
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def includes():
    """Return the folders in which this interpreter has its headers."""
    return [sysconfig.get_path(name) for name in ("include", "platinclude")]


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
        path = os.path.join(folder, "source.c")
        with open(path, "w") as file:
            file.write(source)
        command = compiler + [path, "-o", path[:-2]] + list(options) + shlex.split(" ".join(flags))
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.call(command, **silent) == 0


# ---- What to type ----


def packages_for(os_release, lacking):
    """Return the command that installs, and the packages; nothing for a system that is unknown."""
    lines = []
    if os.path.isfile(os_release):
        with open(os_release) as file:
            lines = [line.strip().partition("=") for line in file]
    system = {name: value.strip("\"'") for name, _, value in lines}
    for name in [system.get("ID", "")] + system.get("ID_LIKE", "").split():
        if name in SYSTEMS:
            command, packages = SYSTEMS[name][0], dict(zip(WORDS, SYSTEMS[name][1:], strict=True))
            found = [packages[one].format(python=python_name()) for one in lacking]
            return command, sorted(set(found), key=found.index)
    return "", []


def python_name():
    """Return the interpreter's name as packages have it: python3.13 has others than python3."""
    typed = os.path.basename(sys.executable)
    return typed if typed.startswith("python3") else "python{}.{}".format(*sys.version_info)


def advice(lacking, command, packages, again):
    line = "to build this, the machine lacks " + ", ".join(WORDS[one] for one in lacking)
    root = os.geteuid() == 0
    if packages:
        line += ". Type: {}{} {}".format("" if root else "sudo ", command, " ".join(packages))
    if packages and root:
        return line
    if "compiler" in lacking or "library" in lacking:
        return line + " (without root: conda's packages python and c-compiler)"
    return line + " (without root: uv, conda and pyenv have it for their Python: {}...)".format(
        again
    )


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""What building lacks is said in one line, before anything is built."""

import ast
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from support import ROOT
from support.needs import needs

SCRIPT = ROOT / ".ci" / "prerequisites.py"
SUDO = "" if os.geteuid() == 0 else "sudo "
#: Variables that tell the script, or make, what this process was told.
TOLD = ("CFLAGS", "CPPFLAGS", "LDFLAGS", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHONPATH")
SYSTEMS = {
    "debian": {"ID": "debian"},
    "ubuntu": {"ID": "ubuntu", "ID_LIKE": "debian"},
    "fedora": {"ID": "fedora"},
    "rocky": {"ID": "rocky", "ID_LIKE": "rhel centos fedora"},
    "arch": {"ID": "arch"},
    "manjaro": {"ID": "manjaro", "ID_LIKE": "arch"},
    "unknown": {"ID": "unknown"},
}


class Machine:
    """A machine that has what this one has, less what a test takes away."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.environment = {name: os.environ[name] for name in os.environ if name not in TOLD}
        self.environment |= {"PATH": f"{self.bin}:{os.environ['PATH']}", "PYTHONPATH": str(folder)}
        self.python = self.interpreter("python3")
        self.system("debian")

    def interpreter(self, name: str) -> Path:
        path = self.bin / name
        path.symlink_to(Path(sys.executable).resolve())
        return path

    def system(self, name: str) -> None:
        found = f"platform.freedesktop_os_release = lambda: {SYSTEMS[name]}"
        self.begin_python_with(f"import platform; {found}")

    def begin_python_with(self, source: str) -> None:
        """Have the interpreter run this first."""
        with (self.folder / "sitecustomize.py").open("a") as file:
            file.write(f"{source}\n")

    def without_ensurepip(self) -> None:
        self.begin_python_with("import sys; sys.modules['ensurepip'] = None")

    def without_headers(self) -> None:
        """Have the interpreter's headers where there are none."""
        nowhere = f"sysconfig.get_path = lambda name: {str(self.folder)!r}"
        self.begin_python_with(f"import sysconfig; {nowhere}")

    def without_compiler(self) -> None:
        self.environment["PATH"] = str(self.bin)
        self.environment.pop("CC", None)
        for tool in ("find", "grep"):  # which make needs to begin
            (self.bin / tool).symlink_to(str(shutil.which(tool)))

    def without_headers_of_the_c_library(self) -> None:
        path = self.bin / "a-compiler"
        path.write_text("#!/bin/sh\nexit 1\n")
        path.chmod(0o755)
        self.environment["CC"] = path.name

    def check(self, *options: str) -> tuple[int, str]:
        return self.run(str(self.python), str(SCRIPT), *options, "tour")

    def run(self, *command: str) -> tuple[int, str]:
        """Run a command; return its status and all that it said."""
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_where_nothing_is_missing_nothing_is_said(machine):
    assert machine.check() == (0, "")
    assert machine.check("--packages") == (0, "\n")


def test_a_compiler_that_is_named_and_is_not_there_is_missing(machine):
    machine.environment["CC"] = "no-such-compiler -m64"
    assert "lacks a C compiler. " in machine.check()[1]


@pytest.mark.parametrize(
    ("takes_away", "words"),
    [
        (Machine.without_compiler, f"the machine lacks a C compiler. Type: {SUDO}apt install gcc"),
        (
            Machine.without_headers_of_the_c_library,
            f"lacks the C library's headers. Type: {SUDO}apt install libc6-dev",
        ),
        (
            Machine.without_headers,
            f"lacks Python.h (Python's headers for C). Type: {SUDO}apt install python3-dev",
        ),
        (Machine.without_ensurepip, f"lacks ensurepip. Type: {SUDO}apt install python3-venv"),
    ],
)
def test_what_alone_is_missing_is_said_with_its_package(machine, takes_away, words):
    takes_away(machine)
    status, said = machine.check()
    assert (status, said.count("\n")) == (1, 1)
    lacks, _, package = words.partition(". Type: ")
    assert lacks in said
    assert f"Type: {package}" in said


def test_headers_that_a_flag_leads_to_are_found(machine):
    machine.without_headers()
    machine.environment["CFLAGS"] = f"-I{sysconfig.get_path('include')}"
    assert machine.check() == (0, "")


@pytest.mark.parametrize(
    ("system", "command"),
    [
        ("debian", "apt install python3-venv python3-dev gcc"),
        ("ubuntu", "apt install python3-venv python3-dev gcc"),
        ("fedora", "dnf install python3 python3-devel gcc"),
        ("rocky", "dnf install python3 python3-devel gcc"),
        ("arch", "pacman -S --needed python gcc"),
        ("manjaro", "pacman -S --needed python gcc"),
    ],
)
def test_all_that_is_missing_is_one_command_of_the_system(machine, system, command):
    machine.system(system)
    machine.without_ensurepip()
    machine.without_headers()
    machine.without_compiler()
    status, said = machine.check()
    assert status == 1
    assert f". Type: {SUDO}{command}" in said
    assert said.count("\n") == 1
    # The README asks for these, and for make: without that, nobody would say anything.
    assert f"sudo {command} make" in (ROOT / "README.md").read_text()


def test_on_an_unknown_system_what_is_missing_is_said_without_a_command(machine):
    machine.system("unknown")
    machine.without_ensurepip()
    status, said = machine.check()
    assert status == 1
    assert "lacks ensurepip" in said
    assert "Type:" not in said
    assert "without root: uv, conda and pyenv have it for their Python: " in said
    assert "make tour PYTHON=" in said
    assert said.count("\n") == 1


def test_another_interpreter_is_in_packages_of_its_own(machine):
    machine.python = machine.interpreter("python3.13")
    machine.without_ensurepip()
    machine.without_headers()
    assert machine.check("--packages") == (0, "python3.13-venv python3.13-dev\n")


def test_an_interpreter_that_is_too_old_is_told_how_to_name_another(machine):
    machine.begin_python_with("import sys; sys.version_info = (3, 9, 2, 'final', 0)")
    status, said = machine.check()
    assert status == 1
    assert "is Python 3.9, and this takes 3.11 or newer: make tour PYTHON=python3.11" in said
    assert said.count("\n") == 1


def test_an_interpreter_that_is_too_old_can_read_it():
    ast.parse(SCRIPT.read_text(), feature_version=(3, 6))


@needs("make")
def test_make_says_what_is_missing_and_builds_nothing(machine):
    machine.without_compiler()
    environment = machine.folder / "environment"
    make = [str(shutil.which("make")), f"PYTHON={machine.python}", f"VENV={environment}"]
    status, said = machine.run(*make, "tour")
    assert status == 2
    first, *rest = said.splitlines()
    assert "lacks a C compiler" in first
    assert [line for line in rest if not line.startswith("make")] == []
    assert not environment.exists()


@needs("make")
def test_make_says_that_the_interpreter_is_missing(machine):
    environment = machine.folder / "environment"
    make = ["make", "PYTHON=python3.99", f"VENV={environment}"]
    status, said = machine.run(*make, "tour")
    assert status == 2
    assert said.startswith("python3.99 is missing: install it, or say make tour PYTHON=")
    assert not environment.exists()


@needs("make")
def test_make_runs_every_part_of_the_tests_though_one_fails(machine):
    programs = machine.folder / "environment" / "bin"
    programs.mkdir(parents=True)
    for name, status in (("python", 1), ("meson", 1), ("pytest", 1), ("sphinx-build", 0)):
        (programs / name).write_text(f'#!/bin/sh\necho "ran: {name} $*"; exit {status}\n')
        (programs / name).chmod(0o755)
    for name in (".installed", ".browser"):
        (programs / name).touch()
    made = [f"VENV={programs.parent}", f"BUILD={machine.folder / 'build'}"]
    status, said = machine.run("make", *made, "test")
    assert status == 2
    parts = ("meson setup", "sphinx-build", "pytest -n", "--nbval ")
    ran = [line for line in said.splitlines() if line.startswith("ran: ")]
    assert [part for part in parts if not any(part in line for line in ran)] == []

# SPDX-License-Identifier: BSD-3-Clause
"""What building lacks is said in one line, before anything is built."""

import ast
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

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
    """This machine, as Debian's, less what a test takes away from it."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch = folder, patch
        spec = importlib.util.spec_from_file_location("prerequisites", SCRIPT)
        assert spec is not None
        assert spec.loader is not None
        self.script: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.script)
        for name in TOLD:
            patch.delenv(name, raising=False)
        patch.setattr(sys, "executable", "/usr/bin/python3")
        self.system("debian")

    def system(self, name: str) -> None:
        self.patch.setattr(platform, "freedesktop_os_release", lambda: SYSTEMS[name])

    def without_ensurepip(self) -> None:
        self.patch.setitem(sys.modules, "ensurepip", None)

    def without_headers(self) -> None:
        """Have the interpreter's headers where there are none."""
        self.patch.setattr(sysconfig, "get_path", lambda _: str(self.folder))

    def without_compiler(self) -> None:
        self.patch.setenv("PATH", str(self.folder))
        self.patch.delenv("CC", raising=False)

    def without_headers_of_the_c_library(self) -> None:
        path = self.folder / "a-compiler"
        path.write_text("#!/bin/sh\nexit 1\n")
        path.chmod(0o755)
        self.patch.setenv("CC", str(path))

    def check(self, *options: str) -> str:
        """Return what the script has to complain of; nothing where it goes well."""
        self.patch.setattr(sys, "argv", [str(SCRIPT), *options, "tour"])
        try:
            self.script.main()
        except SystemExit as error:
            return str(error)
        return ""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_where_nothing_is_missing_nothing_is_said(machine, capsys):
    assert machine.check() == ""
    assert machine.check("--packages") == ""
    assert capsys.readouterr() == ("\n", "")


def test_a_compiler_that_is_named_and_is_not_there_is_missing(machine, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler -m64")
    assert "lacks a C compiler. " in machine.check()


@pytest.mark.parametrize(
    ("takes_away", "lacks", "package"),
    [
        (Machine.without_compiler, "a C compiler", "gcc"),
        (Machine.without_headers_of_the_c_library, "the C library's headers", "libc6-dev"),
        (Machine.without_headers, "Python.h (Python's headers for C)", "python3-dev"),
        (Machine.without_ensurepip, "ensurepip", "python3-venv"),
    ],
)
def test_what_alone_is_missing_is_said_with_its_package(machine, takes_away, lacks, package):
    takes_away(machine)
    said = machine.check()
    assert f"the machine lacks {lacks}" in said
    assert f"Type: {SUDO}apt install {package}" in said
    assert "\n" not in said


def test_headers_that_a_flag_leads_to_are_found(machine, monkeypatch):
    monkeypatch.setenv("CFLAGS", f"-I{sysconfig.get_path('include')}")
    machine.without_headers()
    assert machine.check() == ""


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
    said = machine.check()
    assert f". Type: {SUDO}{command}" in said
    assert "\n" not in said
    # The README asks for these, and for make: without that, nobody would say anything.
    assert f"sudo {command} make" in (ROOT / "README.md").read_text()


def test_on_an_unknown_system_what_is_missing_is_said_without_a_command(machine):
    machine.system("unknown")
    machine.without_ensurepip()
    said = machine.check()
    assert "lacks ensurepip" in said
    assert "Type:" not in said
    assert "without root: uv, conda and pyenv have it for their Python: make tour PYTHON=" in said


def test_another_interpreter_is_in_packages_of_its_own(machine, monkeypatch, capsys):
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3.13")
    machine.without_ensurepip()
    machine.without_headers()
    machine.check("--packages")
    assert capsys.readouterr().out == "python3.13-venv python3.13-dev\n"


def test_an_interpreter_that_is_too_old_is_told_how_to_name_another(machine, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 2, "final", 0))
    said = machine.check()
    assert "is Python 3.9, and this takes 3.11 or newer: make tour PYTHON=python3.11" in said


def test_an_interpreter_that_is_too_old_can_read_it():
    ast.parse(SCRIPT.read_text(), feature_version=(3, 6))


# ---- make ----


def make(*words: str, path: str = os.environ["PATH"]) -> tuple[int, str]:
    """Run make; return its status and all that it said."""
    program = str(shutil.which("make"))
    environment = {name: os.environ[name] for name in os.environ if name not in (*TOLD, "CC")}
    how: dict[str, Any] = {"env": environment | {"PATH": path}, "stderr": subprocess.STDOUT}
    done = subprocess.run(
        [program, *words], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False, **how
    )
    return done.returncode, done.stdout


@needs("make")
def test_make_says_what_is_missing_and_builds_nothing(tmp_path):
    for tool in ("find", "grep"):  # which make needs to begin
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    (tmp_path / "python3").symlink_to(Path(sys.executable).resolve())
    environment = tmp_path / "environment"
    words = f"PYTHON={tmp_path / 'python3'}", f"VENV={environment}"
    status, said = make(*words, "tour", path=str(tmp_path))
    assert status == 2
    first, *rest = said.splitlines()
    assert "lacks a C compiler" in first
    assert [line for line in rest if not line.startswith("make")] == []
    assert not environment.exists()


@needs("make")
def test_make_says_that_the_interpreter_is_missing(tmp_path):
    environment = tmp_path / "environment"
    status, said = make("PYTHON=python3.99", f"VENV={environment}", "tour")
    assert status == 2
    assert said.startswith("python3.99 is missing: install it, or say make tour PYTHON=")
    assert not environment.exists()


@needs("make")
def test_make_runs_every_part_of_the_tests_though_one_fails(tmp_path):
    programs = tmp_path / "environment" / "bin"
    programs.mkdir(parents=True)
    for name, status in (("python", 1), ("meson", 1), ("pytest", 1), ("sphinx-build", 0)):
        (programs / name).write_text(f'#!/bin/sh\necho "ran: {name} $*"; exit {status}\n')
        (programs / name).chmod(0o755)
    for name in (".installed", ".browser"):
        (programs / name).touch()
    status, said = make(f"VENV={programs.parent}", f"BUILD={tmp_path / 'build'}", "test")
    assert status == 2
    parts = ("meson setup", "sphinx-build", "pytest -n", "--nbval ")
    ran = [line for line in said.splitlines() if line.startswith("ran: ")]
    assert [part for part in parts if not any(part in line for line in ran)] == []

# SPDX-License-Identifier: BSD-3-Clause
"""What building lacks is said in one line, before anything is built."""

import ast
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from support import ROOT, load
from support.needs import needs
from support.typed import run

SCRIPT = ROOT / ".ci" / "prerequisites.py"
SUDO = "" if os.geteuid() == 0 else "sudo "
#: Variables that tell the script, or make, what this process was told.
TOLD = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHONPATH")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, run by the system's Python."""
    module = load("ci_prerequisites", ".ci/prerequisites.py")
    for name in (*TOLD, "CC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    return module


def says(script: Any, monkeypatch: pytest.MonkeyPatch, *options: str) -> str:
    """Return what the script has to complain of; nothing where it goes well."""
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *options, "tour"])
    try:
        script.main()
    except SystemExit as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("environment", "without", "lacks"),
    [
        ({}, (), []),
        ({}, ("ensurepip",), ["environments"]),
        ({}, ("headers",), ["headers"]),
        ({"PATH": "nowhere"}, (), ["compiler"]),
        ({"CC": "no-such-compiler -m64"}, (), ["compiler"]),
    ],
)
def test_what_is_missing_is_found(script, elsewhere, monkeypatch, environment, without, lacks):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    if "ensurepip" in without:
        monkeypatch.setitem(sys.modules, "ensurepip", None)
    if "headers" in without:
        monkeypatch.setattr(sysconfig, "get_path", lambda _: str(elsewhere))
    assert script.missing() == lacks


def test_all_that_is_missing_is_one_command(script, monkeypatch):
    monkeypatch.setattr(script, "missing", lambda: ["environments", "headers", "compiler"])
    said = says(script, monkeypatch)
    assert "the machine lacks ensurepip (which puts pip into an environment), Python.h" in said
    command = "apt install python3-venv python3-dev gcc"
    assert f". Type: {SUDO}{command} libc6-dev" in said
    assert "\n" not in said
    # The README asks for these, and for make: without that, nobody would say anything.
    assert f"sudo {command} make" in (ROOT / "README.md").read_text()


def test_where_nothing_is_missing_nothing_is_said(script, monkeypatch, capsys):
    monkeypatch.setattr(script, "missing", list)
    assert says(script, monkeypatch) == ""
    assert says(script, monkeypatch, "--packages") == ""
    assert capsys.readouterr() == ("\n", "")


def test_another_interpreter_is_in_packages_of_its_own_and_one_too_old_is_told_of_another(
    script, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3.13")
    monkeypatch.setattr(script, "missing", lambda: ["environments", "headers"])
    says(script, monkeypatch, "--packages")
    assert capsys.readouterr().out == "python3.13-venv python3.13-dev\n"
    monkeypatch.setattr(sys, "version_info", (3, 9, 2, "final", 0))
    said = says(script, monkeypatch)
    assert "is Python 3.9, and this takes 3.11 or newer: make tour PYTHON=python3.11" in said


def test_an_interpreter_that_is_too_old_can_read_it():
    ast.parse(SCRIPT.read_text(), feature_version=(3, 6))


# ---- make ----


def make(*words: str, path: str = os.environ["PATH"]) -> tuple[int, str]:
    """Run make; return its status and all that it said."""
    program = str(shutil.which("make"))
    environment = {name: os.environ[name] for name in os.environ if name not in (*TOLD, "CC")}
    how: dict[str, Any] = {"env": environment | {"PATH": path}, "stderr": subprocess.STDOUT}
    done = run(program, *words, cwd=ROOT, **how)
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
    words = (f"VENV={programs.parent}", f"BUILD={tmp_path / 'build'}", "test")
    assert "ran: " not in make("--dry-run", *words)[1]
    status, said = make(*words)
    assert status == 2
    parts = ("meson setup", "sphinx-build", "pytest -n", "--nbval ")
    ran = [line for line in said.splitlines() if line.startswith("ran: ")]
    assert [part for part in parts if not any(part in line for line in ran)] == []

# SPDX-License-Identifier: BSD-3-Clause
"""What is said of the machine and of how the programs were built: read, never guessed."""

import importlib.resources
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spead_tutorial import doctor
from spead_tutorial.measure import machine

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_build_writes_down_its_compiler_and_flags_without_the_builders_folders(
    tmp_path, compiler
):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here")
    pytest.importorskip("mesonbuild")
    flags = "-O2 -funroll-loops -Wall -DX=1 -I/home/me/src -ffile-prefix-map=/home/me=."
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # where pip puts ninja
    subprocess.run(
        [sys.executable, "-m", "mesonbuild.mesonmain", "setup", str(tmp_path), str(ROOT)],
        env=os.environ | {"CC": compiler, "CFLAGS": flags, "PATH": path},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    facts = json.loads((tmp_path / "_build.json").read_text())
    name, version = facts["compiler"].split()
    itself = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
    assert name == compiler
    assert version in itself
    assert facts["compiler_flags"] == "-std=gnu11 -O3 -O2 -funroll-loops"


def test_the_package_says_how_its_programs_were_built():
    found = machine.versions()
    assert re.fullmatch(r"\S+ \d+\.\S+", found["compiler"] or "")
    assert "-std=gnu11" in (found["compiler_flags"] or "").split()


def test_how_a_package_was_built_that_does_not_tell_is_unknown(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.resources, "files", lambda _: tmp_path)
    assert machine.compiler() is None
    assert machine.compiler_flags() is None


def test_facts_are_plain_values_and_what_cannot_be_read_is_none(monkeypatch, tmp_path):
    facts = machine.machine_facts()
    assert json.loads(json.dumps(facts)) == facts
    for name in ("_MEMORY", "_NODES", "_CPUS"):
        monkeypatch.setattr(machine, name, tmp_path / "missing")
    facts = machine.machine_facts()
    for name in ("huge_pages_reserved", "huge_page_bytes", "numa_nodes", "governor", "turbo"):
        assert facts[name] is None


def test_huge_pages_and_nodes_are_what_the_kernel_says(monkeypatch, tmp_path):
    (tmp_path / "meminfo").write_text(
        "AnonHugePages:     12288 kB\nHugePages_Total:       8\nHugepagesize:       2048 kB\n"
    )
    for name in ("node0", "node1", "has_cpu", "nodes"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(machine, "_MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(machine, "_NODES", tmp_path)
    facts = machine.machine_facts()
    assert (facts["huge_pages_reserved"], facts["huge_page_bytes"]) == (8, 2 << 20)
    assert facts["numa_nodes"] == 2
    found = {finding.name: finding.value for finding in doctor.examine()}
    assert "8 reserved, of 2 MiB" in found["huge pages"]
    assert "in 2 NUMA nodes" in found["cores"]
    assert f"with {machine.compiler_flags()}" in found["compiler"]

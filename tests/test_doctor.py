# SPDX-License-Identifier: BSD-3-Clause
"""What is said of the machine and of how the programs were built: read, never guessed."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from spead_tutorial import doctor
from spead_tutorial.lab import sink_path

GCC = b"GNU C11 12.2.0 -mtune=generic -march=x86-64 -O3 -std=gnu11 -fPIC\0"
OLD_GCC = b"-I /home/me/src\0-I ../q\0a.c\0-D_GNU_SOURCE\0-O2\0-std=gnu11\0-frecord-gcc-switches\0"
CLANG = (
    b'/usr/lib/llvm-14/bin/clang -I /home/me/src -I ../q -D FOO="/home/b\\ c" -D _GNU_SOURCE'
    b" -O3 -std=gnu11 -Wall -fmacro-prefix-map=/home/me=. -frecord-command-line a.c -o a\0"
)


@pytest.mark.parametrize(
    ("recorded", "flags"),
    [
        (GCC, "-mtune=generic -march=x86-64 -O3 -std=gnu11 -fPIC"),
        (GCC + GCC, "-mtune=generic -march=x86-64 -O3 -std=gnu11 -fPIC"),
        (OLD_GCC, "-O2 -std=gnu11"),
        (CLANG, "-O3 -std=gnu11"),
        (b"cc -O3 -O2 -O3 a.c\0", "-O2 -O3"),
        (b"", None),
        (b"cc a.c\0", None),
    ],
    ids=["gcc", "two files", "gcc before 11", "clang", "twice", "nothing", "none"],
)
def test_flags_are_found_in_what_each_compiler_records(recorded, flags):
    assert doctor._flags(recorded) == flags


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_flags_are_read_out_of_a_program_without_the_folders_of_its_build(tmp_path, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here")
    source, program = tmp_path / "a.c", tmp_path / "a b"
    source.write_text("int main(void) { return 0; }\n")
    flags = ["-O2", "-std=gnu11", f"-I{tmp_path}", f'-DWHERE="{tmp_path}/a b"', "-Wall"]
    more = [f"-ffile-prefix-map={tmp_path}=.", "-frecord-gcc-switches"]
    subprocess.run([compiler, *flags, *more, str(source), "-o", str(program)], check=True)
    section = doctor._elf_section(program.read_bytes(), b".GCC.command.line")
    if section is None:
        pytest.skip(f"{compiler} records nothing")
    found = doctor._flags(section)
    assert found is not None
    assert {"-O2", "-std=gnu11"} <= set(found.split())
    assert "/" not in found
    assert "WHERE" not in found


def test_a_section_that_is_not_there_is_none():
    data = sink_path().read_bytes()
    assert doctor._elf_section(data, b".text")
    assert doctor._elf_section(data, b".tex") is None
    assert doctor._elf_section(data, b"") == b""
    assert doctor._elf_section(b"#!/bin/sh\n", b".text") is None
    # The header of a program that has lost its table of sections.
    assert doctor._elf_section(b"\x7fELF\x02".ljust(64, b"\0"), b".text") is None


def test_the_programs_say_how_they_were_built():
    flags = doctor.versions()["compiler_flags"]
    if doctor.compiler() is None:
        pytest.skip("made by neither gcc nor clang")
    assert flags is not None
    assert "-std=gnu11" in flags.split()
    assert "/" not in flags


def test_flags_of_a_program_that_is_missing_are_unknown(monkeypatch):
    def missing() -> Path:
        raise doctor.LabError("no sink")

    monkeypatch.setattr(doctor, "sink_path", missing)
    assert doctor.compiler_flags() is None
    assert doctor.compiler() is None


def test_facts_are_plain_values_and_what_cannot_be_read_is_none(monkeypatch, tmp_path):
    facts = doctor.machine_facts()
    assert json.loads(json.dumps(facts)) == facts
    for name in ("_MEMORY", "_NODES", "_CPUS"):
        monkeypatch.setattr(doctor, name, tmp_path / "missing")
    facts = doctor.machine_facts()
    for name in ("huge_pages_reserved", "huge_page_bytes", "numa_nodes", "governor", "turbo"):
        assert facts[name] is None


def test_huge_pages_and_nodes_are_what_the_kernel_says(monkeypatch, tmp_path):
    (tmp_path / "meminfo").write_text(
        "AnonHugePages:     12288 kB\nHugePages_Total:       8\nHugepagesize:       2048 kB\n"
    )
    for name in ("node0", "node1", "has_cpu", "nodes"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(doctor, "_MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(doctor, "_NODES", tmp_path)
    facts = doctor.machine_facts()
    assert (facts["huge_pages_reserved"], facts["huge_page_bytes"]) == (8, 2 << 20)
    assert facts["numa_nodes"] == 2
    found = {finding.name: finding.value for finding in doctor.examine()}
    assert "8 reserved, of 2 MiB" in found["huge pages"]
    assert "in 2 NUMA nodes" in found["cores"]
    assert f"with {doctor.compiler_flags()}" in found["compiler"]

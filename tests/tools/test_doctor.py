# SPDX-License-Identifier: BSD-3-Clause
"""What is said of the machine and of how the programs were built: read, never guessed."""

import importlib.resources
import json
import os
import re
import socket
import sys
from pathlib import Path

import pytest

from spead_tutorial import recv
from spead_tutorial.lab import LabProbe, root_commands
from spead_tutorial.measure import machine
from spead_tutorial.tools import doctor
from support import ROOT
from support.needs import need
from support.typed import run


@pytest.mark.thorough
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_build_writes_down_its_compiler_and_flags_without_the_builders_folders(
    tmp_path, compiler
):
    need(compiler)
    flags = "-O2 -funroll-loops -Wall -DX=1 -I/home/me/src -ffile-prefix-map=/home/me=."
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # where pip puts ninja
    environment = os.environ | {"CC": compiler, "CFLAGS": flags, "PATH": path}
    meson = [sys.executable, "-m", "mesonbuild.mesonmain"]
    assert run(*meson, "setup", tmp_path, ROOT, env=environment).returncode == 0
    facts = json.loads((tmp_path / "_build.json").read_text())
    name, version = facts["compiler"].split()
    assert name == compiler
    assert version in run(compiler, "--version").stdout
    assert facts["compiler_flags"] == "-std=gnu11 -O3 -O2 -funroll-loops"


def test_the_package_says_how_its_programs_were_built_unless_it_does_not_tell(
    monkeypatch, tmp_path
):
    found = machine.versions()
    assert re.fullmatch(r"\S+ \d+\.\S+", found["compiler"] or "")
    assert "-std=gnu11" in (found["compiler_flags"] or "").split()
    monkeypatch.setattr(importlib.resources, "files", lambda _: tmp_path)
    assert machine.build_fact("compiler") is None


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
        "AnonHugePages:     12288 kB\nHugePages_Total:       8\n"
        "HugePages_Free:        5\nHugepagesize:       2048 kB\n"
    )
    for name in ("node0", "node1", "has_cpu", "nodes"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(machine, "_MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(machine, "_NODES", tmp_path)
    facts = machine.machine_facts()
    assert (facts["huge_pages_reserved"], facts["huge_page_bytes"]) == (8, 2 << 20)
    assert facts["numa_nodes"] == 2
    found = findings()
    assert "in 2 NUMA nodes" in found["cores"].value
    assert f"with {machine.build_fact('compiler_flags')}" in found["compiler"].value


@pytest.fixture(autouse=True)
def without_a_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no examination make a lab, but that which is about one."""
    monkeypatch.setattr(doctor, "probe", lambda: LabProbe((), False, False, "none is wanted"))


def findings() -> dict[str, doctor.Check]:
    """What the doctor finds, by its name."""
    return {finding.name: finding for finding in doctor.examine()}


def test_where_there_can_be_no_lab_the_doctor_fails_and_names_the_commands_for_root(here):
    done = here("doctor")
    assert done.returncode == 1
    assert "FAIL  lab                none is wanted\n" in done.stdout
    lines = done.stdout.splitlines()
    first = lines.index(next(line for line in lines if line.startswith("FAIL  lab")))
    assert (
        "→ without root, over loopback: spead-tutorial run 10 --host 127.0.0.1" in lines[first + 1]
    )
    begin = first + 3
    assert "(programs then take --host 192.168.31.2 --port 8888):" in lines[first + 2]
    by_hand = [line.strip() for line in lines[begin : begin + len(root_commands())]]
    assert by_hand == [*root_commands()]
    assert lines[-1] == (
        "There can be no lab here; chapters that send run over loopback, as said above."
    )


VETH, DUMMY = (LabProbe(kinds, True, True, None) for kinds in (("ifb", "veth"), ("dummy",)))
NONE = LabProbe((), False, False, "it is forbidden\nallow it: much")


@pytest.mark.parametrize(
    ("found", "state", "value", "mend"),
    [
        (next(doctor._lab(NONE)), "fail", "it is forbidden", "without root, over loopback: "),
        ([*doctor._lab(NONE)][1], "fail", "this user may have none", "see the line above"),
        (doctor._receiver(NONE), "warn", "no lab, no machine that receives", "see the lines above"),
        (doctor._receiver(DUMMY), "warn", "by loopback only, for this ", "as root: modprobe veth"),
        (doctor._receiver(VETH), "ok", "a machine of its own in the lab, by veth", None),
        (doctor._huge_pages("always"), "ok", "transparent: always", None),
        (doctor._huge_pages("never"), "warn", "transparent: never", "as root: echo madvise > "),
        (doctor._huge_pages(None), "warn", "unknown", None),
    ],
)
def test_a_finding_says_what_there_is_and_how_to_mend_it(found, state, value, mend):
    assert (found.state, found.value[: len(value)]) == (state, value)
    assert found.mend == mend or found.mend.startswith(mend)


def test_what_the_kernel_does_not_offer_to_sockets_is_a_warning(monkeypatch):
    for name in ("_UDP_SEGMENT", "_SO_ZEROCOPY"):
        monkeypatch.setattr(doctor, name, 9999)
    found = findings()
    for name in ("UDP GSO", "zero-copy"):
        assert found[name].value == "not offered (Protocol not available)"
        assert found[name].state == "warn"
        assert found[name].mend is not None


def test_what_the_kernel_offers_to_sockets_is_said_by_name(monkeypatch):
    monkeypatch.setattr(doctor, "_UDP_SEGMENT", 1)  # UDP_CORK, that all kernels have
    monkeypatch.setattr(doctor, "_SO_ZEROCOPY", socket.SO_REUSEADDR)
    found = findings()
    assert found["UDP GSO"] == doctor.Check("UDP GSO", "ok", "offered: many packets in one message")
    assert found["zero-copy"].value == "offered: the kernel reads payload in place"


@pytest.mark.parametrize(
    ("name", "file", "said", "state", "value", "mend"),
    [
        ("zero-copy notes", "optmem_max", "131072", "ok", "at most 128 KiB", None),
        ("zero-copy notes", "optmem_max", "20480", "warn", "at most 20 KiB", 131072),
        ("zero-copy notes", "optmem_max", None, "warn", "unknown", None),
        ("receive buffer", "rmem_max", "4194304", "warn", "at most 4 MiB, in labs too",
         recv.Stream.DEFAULT_UDP_BUFFER_SIZE),
    ],
)  # fmt: skip
def test_a_limit_of_the_kernel_is_said_with_what_raises_it(
    monkeypatch, name, file, said, state, value, mend
):
    monkeypatch.setattr(doctor, "read_text", {Path("/proc/sys/net/core", file): said}.get)
    words = mend and f"as root: sysctl -w net.core.{file}={mend}"
    assert findings()[name] == doctor.Check(name, state, value, words)


def test_every_program_of_others_that_commands_run_is_named_where_it_is_missing(
    monkeypatch, tmp_path
):
    sources = [path.read_text() for path in (ROOT / "spead_tutorial").rglob("*.py")]
    wanted = {name for text in sources for name in re.findall(r'which\("([\w-]+)"\)', text)}
    wanted -= {"gcc", "clang", "systemd-detect-virt", "lscpu"}
    wanted -= {"py-spy", "jcmd"}  # which come with the package, and with what runs Java
    wanted |= {"git"}
    assert {"strace", "perf", "pkg-config"} < wanted
    monkeypatch.setenv("PATH", str(tmp_path))
    named = findings()
    for name in wanted - {"cc"}:
        assert named[name].state == "warn"
        assert (named[name].mend or "").startswith("as root: apt install ")
    assert named["compiler"].mend is not None


# ---- The verdict ----

FINE, SLOW, TOOL = (
    doctor.Check(name, state, "so")
    for name, state in (("lab", "ok"), ("load", "warn"), ("strace", "warn"))
)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([FINE], "All chapters run here; nothing was found that makes rates vary."),
        ([FINE, SLOW], "All chapters run here; 1 thing may make rates vary."),
        ([SLOW] * 5, "All chapters run here; 5 things may make rates vary."),
        ([SLOW, SLOW, TOOL], "All chapters run here; 2 things may make rates vary; 1 thing is"
         " missing that other commands use."),
        ([TOOL, TOOL], "All chapters run here; nothing was found that makes rates vary; 2 things"
         " are missing that other commands use."),
    ],
)  # fmt: skip
def test_the_verdict_is_a_sentence_that_counts(found, said):
    assert doctor.verdict(found) == said


def test_the_verdict_is_the_last_line(here):
    assert re.match(r"(All|Not all|There can) .*\.$", here("doctor").stdout.splitlines()[-1])

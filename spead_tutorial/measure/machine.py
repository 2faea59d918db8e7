# SPDX-License-Identifier: BSD-3-Clause
"""Facts of the machine, of the build and of the source, and the header of a record.

What cannot be read is None, never guessed.
"""

import datetime
import filecmp
import importlib.resources
import json
import os
import platform
import re
import shutil
import subprocess
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import spead_tutorial
from spead_tutorial.measure.records import Header

_CPUS = Path("/sys/devices/system/cpu")
_NODES = Path("/sys/devices/system/node")
_CPU, _MEMORY = Path("/proc/cpuinfo"), Path("/proc/meminfo")
_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def header(
    experiment: str,
    lab: dict[str, Any],
    settings: dict[str, Any],
    more: Mapping[str, str | None] | None = None,
) -> Header:
    """Return what a record says of where, when and with what its samples are taken."""
    return Header(
        experiment=experiment,
        time=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        machine=machine_facts(),
        lab=lab,
        settings=settings,
        versions=versions() | dict(more or {}),
        revision=revision(),
    )


def facts_of(header: Header) -> dict[str, object]:
    """Return what makes a machine, with its lab, another one: all that is known but its load."""
    facts = {key: value for key, value in header.machine.items() if key != "load"}
    return facts | {f"lab {key}": value for key, value in header.lab.items()}


def differs(one: Header, other: Header) -> str | None:
    """Say what makes one header's samples no continuation of another's."""
    may_differ = {"rounds", "skipped"}
    mine, theirs = (
        facts_of(header)
        | {"experiment": header.experiment, "revision": header.revision}
        | {name: value for name, value in header.settings.items() if name not in may_differ}
        | header.versions
        for header in (one, other)
    )
    for key in [*mine, *(theirs.keys() - mine.keys())]:
        if mine.get(key) != theirs.get(key):
            values = (facts.get(key) for facts in (mine, theirs))
            first, second = ("unknown" if x is None else x for x in values)
            return f"{key} is {first}, and {second}"
    return None


def machine_facts() -> dict[str, Any]:
    """Return what a record says of the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": _cpu_model(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)),
        "caches_bytes": _caches(),
        "memory_bytes": memory,
        "kernel": platform.release(),
        "virtualisation": _virtualisation(),
        "governor": read_text(_CPUS / "cpu0/cpufreq/scaling_governor"),
        "turbo": _turbo(),
        "transparent_huge_pages": _found(r"\[(\w+)\]", read_text(_HUGE_PAGES)),
        "huge_pages_reserved": memory_fact("HugePages_Total"),
        "huge_page_bytes": memory_fact("Hugepagesize"),
        "numa_nodes": len(list(_NODES.glob("node[0-9]*"))) or None,
        "load": round(os.getloadavg()[0], 2),
    }


def one_core() -> tuple[int, int]:
    """Return one core to pin both of two threads to."""
    first = min(os.sched_getaffinity(0))
    return first, first


def two_cores() -> tuple[int, int] | None:
    """Return two cores to pin threads to, of which none hinders the other; None without two."""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        return None
    first, *others = usable
    topology = "cpu{}/topology/thread_siblings_list"
    siblings = [read_text(_CPUS / topology.format(core)) for core in usable]
    apart = (core for core, its in zip(others, siblings[1:], strict=True) if its != siblings[0])
    return first, next(apart, others[0])


def a_core_each() -> tuple[int, int] | tuple[None, None]:
    """Return a core for a sender and one for its receiver; None where there are no two."""
    return two_cores() or (None, None)


def versions() -> dict[str, str | None]:
    """Return the versions of the software that measurements depend on."""
    return {
        "spead_tutorial": spead_tutorial.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "compiler": build_fact("compiler"),
        "compiler_flags": build_fact("compiler_flags"),
    }


def build_fact(name: str) -> str | None:
    """Return what meson.build noted: ``compiler``, or ``compiler_flags`` that name no folder."""
    # An editable install has it in its build folder, and only importlib knows where.
    path = importlib.resources.files("spead_tutorial").joinpath("_build.json")
    try:
        fact: str = json.loads(path.read_text())[name]
    except OSError:
        return None
    return fact


def revision() -> str | None:
    """Return the source's revision, with a ``+`` where it was changed; None where not known."""
    package = Path(spead_tutorial.__file__).parent
    source = _installed_from()
    if source is None:
        source = package.parent
    elif not _same_python(package, source / "spead_tutorial"):
        return None
    git = "git", "-C", str(source)
    if not _said_by(*git, "ls-files", "spead_tutorial/__init__.py"):
        return None
    head = _said_by(*git, "rev-parse", "--short=12", "HEAD")
    changed = _said_by(*git, "status", "--porcelain", "--untracked-files=no")
    return None if head is None else head + ("+" if changed else "")


def _installed_from() -> Path | None:
    """Return the folder that the package was installed from, if from one."""
    import importlib.metadata  # it reads mails, and few commands ask

    try:
        origin = importlib.metadata.distribution("spead-tutorial").read_text("direct_url.json")
        url = urllib.parse.urlparse(json.loads(origin or "{}").get("url", ""))
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None
    return Path(urllib.parse.unquote(url.path)) if url.scheme == "file" else None


def _same_python(package: Path, source: Path) -> bool:
    names = [path.relative_to(package) for path in package.rglob("*.py")]
    return all(
        (source / name).is_file() and filecmp.cmp(package / name, source / name, shallow=False)
        for name in names
    )


def _said_by(*argv: str) -> str | None:
    """Return what a program prints, in English; None where it is not there, or fails."""
    in_english = os.environ | {"LC_ALL": "C"}
    try:
        done = subprocess.run(argv, capture_output=True, text=True, env=in_english, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def read_text(path: Path) -> str | None:
    """Return what a file of the kernel's says; None where it cannot be read, or says nothing."""
    try:
        return path.read_text().strip() or None
    except OSError:
        return None


def _found(pattern: str, text: str | None) -> str | None:
    """Return the part of a text that a pattern is about; None where there is none."""
    found = re.search(pattern, text or "", re.MULTILINE)
    return found[1].strip() if found else None


def _cpu_model() -> str | None:
    """Return what the kernel calls it, or lscpu: on ARM the kernel has but numbers."""
    name = _found(r"^(?:model name|cpu model|Model)\s*:(.*)$", read_text(_CPU))
    return name or _found(r"^Model name:\s*(\S.*)$", _said_by("lscpu"))


def _caches() -> dict[str, int]:
    """Return the sizes in bytes of the first core's caches, such as ``"L1d"`` and ``"L2"``."""
    caches = {}
    for folder in sorted((_CPUS / "cpu0/cache").glob("index*")):
        level, kind, size = (read_text(folder / name) for name in ("level", "type", "size"))
        if level is None or size is None:
            continue
        letter = {"Data": "d", "Instruction": "i"}.get(kind or "", "")
        caches[f"L{level}{letter}"] = int(size.rstrip("KM")) << (20 if size.endswith("M") else 10)
    return caches


def _virtualisation() -> str | None:
    """Name the hypervisor and the container, ``"none"`` where there is neither."""
    if shutil.which("systemd-detect-virt"):
        names = [_said_by("systemd-detect-virt", what) for what in ("--vm", "--container")]
        return ", ".join(name for name in names if name and name != "none") or "none"
    flags = _found(r"^flags\s*:(.*)$", read_text(_CPU)) or ""
    return "a hypervisor" if "hypervisor" in flags.split() else None


def _turbo() -> str | None:
    no_turbo = read_text(_CPUS / "intel_pstate/no_turbo")
    if no_turbo is not None:
        return "off" if no_turbo == "1" else "on"
    boost = read_text(_CPUS / "cpufreq/boost")
    return None if boost is None else "on" if boost == "1" else "off"


def memory_fact(name: str) -> int | None:
    """Return a line of the kernel's table of memory, in bytes where it is a size."""
    line = re.search(rf"^{name}: +(\d+)( kB)?$", read_text(_MEMORY) or "", re.MULTILINE)
    return None if line is None else int(line[1]) << (10 if line[2] else 0)

# SPDX-License-Identifier: BSD-3-Clause
"""What this machine is and what it can do: for ``spead-tutorial doctor`` and for records.

What cannot be read is "unknown", never guessed.
"""

import ctypes
import dataclasses
import errno
import filecmp
import importlib.metadata
import importlib.resources
import importlib.util
import json
import os
import platform
import re
import resource
import shutil
import socket
import struct
import subprocess
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import spead_tutorial
from spead_tutorial import units
from spead_tutorial.catalogue import CHAPTERS, LANGUAGES, STEPS
from spead_tutorial.lab import LabError, LabProbe, probe, root_commands, sink_path
from spead_tutorial.measure.programs import ProgramError, command

__all__ = [
    "Finding",
    "compiler",
    "compiler_flags",
    "examine",
    "machine_facts",
    "revision",
    "versions",
]

UNKNOWN = "unknown"
_CPUS = Path("/sys/devices/system/cpu")
_NODES = Path("/sys/devices/system/node")
_MEMORY = Path("/proc/meminfo")
_UDP_SEGMENT, _SO_ZEROCOPY = 103, 60
_WANTED_BUFFER = 1 << 20
_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
_PERF_ATTR_BYTES, _PERF_EXCLUDE = 64, 0b1100001  # disabled, exclude_kernel, exclude_hv


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Parameters
    ----------
    name : str
        What.
    state : str
        ``"ok"``, ``"warn"`` (it works, but less well, or it cannot be told) or ``"fail"``.
    value : str
        What was found.
    mend : str or None
        What to do about it.
    """

    name: str
    state: str
    value: str
    mend: str | None = None


# ---------------------------------------------------------------------------------------
# Facts


def machine_facts() -> dict[str, Any]:
    """Return what a record says of the machine.

    Returns
    -------
    dict
        ``cpu``, its model; ``architecture``; ``cores``, and ``usable_cores``, those that this
        process may use; ``caches_bytes``, the size of each of the first core's caches by its
        name, such as ``L2``; ``memory_bytes``; ``kernel``, its release; ``virtualisation``;
        ``governor``, which sets the clock of the CPU, and ``turbo``; ``transparent_huge_pages``,
        ``huge_pages_reserved`` and ``huge_page_bytes``; ``numa_nodes``; ``load``, the average of
        the last minute. None stands for what cannot be read.
    """
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
        "governor": _text(_CPUS / "cpu0/cpufreq/scaling_governor"),
        "turbo": _turbo(),
        "transparent_huge_pages": _transparent_huge_pages(),
        "huge_pages_reserved": _memory_fact("HugePages_Total"),
        "huge_page_bytes": _memory_fact("Hugepagesize"),
        "numa_nodes": len(list(_NODES.glob("node[0-9]*"))) or None,
        "load": round(os.getloadavg()[0], 2),
    }


def versions() -> dict[str, str | None]:
    """Return the versions of the software that measurements depend on.

    Returns
    -------
    dict
        ``spead_tutorial``, ``python``, ``numpy``, and `compiler` and `compiler_flags`; None
        stands for what is not known.
    """
    return {
        "spead_tutorial": spead_tutorial.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "compiler": compiler(),
        "compiler_flags": compiler_flags(),
    }


def compiler() -> str | None:
    """Name the compiler that made the programs.

    Returns
    -------
    str or None
        Its name and version; None where they are not known.
    """
    return _build_fact("compiler")


def compiler_flags() -> str | None:
    """Return the flags that decided on the programs' code; of two that disagree, the last counts.

    Flags that name folders are left out: they are those of the machine that built it.
    """
    return _build_fact("compiler_flags")


def _build_fact(name: str) -> str | None:
    """Return what the build, meson.build, wrote down of itself."""
    # An editable install has it in its build folder, and only importlib knows where.
    path = importlib.resources.files("spead_tutorial").joinpath("_build.json")
    try:
        fact: str = json.loads(path.read_text())[name]
    except OSError:
        return None
    return fact


def revision() -> str | None:
    """Return the revision of the source that is running, with a ``+`` where it was changed.

    It is known where the package runs from its repository, or was installed from one whose
    Python files are still the same.
    """
    package = Path(spead_tutorial.__file__).parent
    source = _installed_from()
    if source is None:
        source = package.parent
    elif not _same_python(package, source / "spead_tutorial"):
        return None
    if _git(source, "ls-files", "spead_tutorial/__init__.py") in (None, ""):
        return None
    head = _git(source, "rev-parse", "--short=12", "HEAD")
    changed = _git(source, "status", "--porcelain", "--untracked-files=no")
    return None if head is None else head + ("+" if changed else "")


def _installed_from() -> Path | None:
    """Return the folder that the package was installed from, if from one."""
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


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except OSError:
        return None


def _cpu_model() -> str | None:
    for line in (_text(Path("/proc/cpuinfo")) or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "cpu model", "Model"):
            return value.strip()
    return None


def _caches() -> dict[str, int]:
    """Return the sizes in bytes of the first core's caches, such as ``"L1d"`` and ``"L2"``."""
    found = {}
    for folder in sorted((_CPUS / "cpu0/cache").glob("index*")):
        level, kind, size = (_text(folder / name) for name in ("level", "type", "size"))
        if level is None or size is None:
            continue
        letter = {"Data": "d", "Instruction": "i"}.get(kind or "", "")
        found[f"L{level}{letter}"] = int(size.rstrip("KM")) << (20 if size.endswith("M") else 10)
    return found


def _virtualisation() -> str | None:
    """Name the hypervisor and the container, ``"none"`` where there is neither."""
    if shutil.which("systemd-detect-virt"):
        found = []
        for what in ("--vm", "--container"):
            done = subprocess.run(
                ["systemd-detect-virt", what], capture_output=True, text=True, check=False
            )
            found.append(done.stdout.strip())
        named = [name for name in found if name not in ("", "none")]
        return ", ".join(named) or "none"
    flags = re.search(r"^flags\s*:(.*)$", _text(Path("/proc/cpuinfo")) or "", re.MULTILINE)
    return "a hypervisor" if flags and "hypervisor" in flags[1].split() else None


def _turbo() -> str | None:
    no_turbo = _text(_CPUS / "intel_pstate/no_turbo")
    if no_turbo is not None:
        return "off" if no_turbo == "1" else "on"
    boost = _text(_CPUS / "cpufreq/boost")
    return None if boost is None else "on" if boost == "1" else "off"


def _transparent_huge_pages() -> str | None:
    found = re.search(
        r"\[(\w+)\]", _text(Path("/sys/kernel/mm/transparent_hugepage/enabled")) or ""
    )
    return found[1] if found else None


def _memory_fact(name: str) -> int | None:
    """Return a line of the kernel's table of memory, in bytes where it is a size."""
    found = re.search(rf"^{name}: +(\d+)( kB)?$", _text(_MEMORY) or "", re.MULTILINE)
    return None if found is None else int(found[1]) << (10 if found[2] else 0)


# ---------------------------------------------------------------------------------------
# Findings


def examine() -> Iterator[Finding]:
    """Yield what was found, one thing after the other; the lab, which matters most, first."""
    found = probe()
    yield _lab(found)
    yield _namespaces(found)
    yield from _programs()
    yield from _sockets()
    yield from _memory()
    yield _hardware_counters()
    yield from _processor()
    yield _compiler()
    yield from _pictures()


def _lab(found: LabProbe) -> Finding:
    if found.reason is None:
        return Finding("lab", "ok", f"{found.kinds[0]} (offered: {', '.join(found.kinds)})")
    why = found.reason.partition(", or, as root, type:")[0]
    return Finding("lab", "fail", why, f"or, as root: {' && '.join(root_commands())}")


def _namespaces(found: LabProbe) -> Finding:
    if not found.namespaces:
        return Finding("namespaces", "fail", "this user may have none", "see the line above")
    how = "in user namespaces, without root" if found.rootless else "with this user's privileges"
    return Finding("namespaces", "ok", how)


def _programs() -> Iterator[Finding]:
    missing = []
    for chapter in (*CHAPTERS, *STEPS):
        for language in LANGUAGES:
            try:
                command(chapter, language)
            except ProgramError:
                missing.append(f"{chapter.name} in {language}")
    try:
        sink_path()
    except LabError:
        missing.append("sink")
    if missing:
        mend = "build and install the package: pip install ."
        yield Finding("programs", "fail", f"missing: {', '.join(missing)}", mend)
    else:
        yield Finding("programs", "ok", f"{len(CHAPTERS)} chapters in {' and '.join(LANGUAGES)}")


def _sockets() -> Iterator[Finding]:
    for name, level, option, value, why in (
        ("UDP GSO", socket.IPPROTO_UDP, _UDP_SEGMENT, 1472, "many packets in one message"),
        ("zero-copy", socket.SOL_SOCKET, _SO_ZEROCOPY, 1, "the kernel reads payload in place"),
    ):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            try:
                sock.setsockopt(level, option, value)
            except OSError as error:
                mend = "a newer kernel has it; without it sending is slower"
                yield Finding(name, "warn", f"not offered ({error.strerror})", mend)
            else:
                yield Finding(name, "ok", f"offered: {why}")
    yield _sendmmsg()
    yield _buffer("send buffer", "wmem_max")
    yield _buffer("receive buffer", "rmem_max")


def _buffer(name: str, setting: str) -> Finding:
    limit = _text(Path("/proc/sys/net/core", setting))
    if limit is None:
        # Older kernels do not show it in a network namespace other than the first.
        return Finding(name, "warn", UNKNOWN)
    if int(limit) >= _WANTED_BUFFER:
        return Finding(name, "ok", f"at most {units.size(int(limit))}")
    mend = f"as root: sysctl -w net.core.{setting}={_WANTED_BUFFER}"
    return Finding(name, "warn", f"at most {units.size(int(limit))}", mend)


def _sendmmsg() -> Finding:
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "sendmmsg"):
        return Finding("sendmmsg", "fail", "the C library has none", "use glibc or musl")
    libc.sendmmsg(-1, None, 0, 0)
    if ctypes.get_errno() == errno.ENOSYS:
        return Finding("sendmmsg", "fail", "the kernel has none", "use Linux 3.0 or newer")
    return Finding("sendmmsg", "ok", "offered: many messages in one call")


def _memory() -> Iterator[Finding]:
    facts = machine_facts()
    yield Finding("memory", "ok", units.size(facts["memory_bytes"]))
    yield _huge_pages(facts)
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    value = "no limit" if locked == resource.RLIM_INFINITY else f"at most {units.size(locked)}"
    yield Finding("locked memory", "ok", value)


def _huge_pages(facts: dict[str, Any]) -> Finding:
    setting, reserved = facts["transparent_huge_pages"], facts["huge_pages_reserved"]
    value = f"transparent: {setting or UNKNOWN}"
    if reserved is not None and facts["huge_page_bytes"] is not None:
        value += f"; {reserved} reserved, of {units.size(facts['huge_page_bytes'])}"
    if setting == "never":
        mend = "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
        return Finding("huge pages", "warn", value, mend)
    return Finding("huge pages", "warn" if setting is None else "ok", value)


def _hardware_counters() -> Finding:
    """Try to open a counter of cache misses for this process."""
    name = "hardware counters"
    number = _PERF_EVENT_OPEN.get(platform.machine())
    if number is None:
        return Finding(name, "warn", UNKNOWN)
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = struct.pack("=IIQQQQQ", 0, _PERF_ATTR_BYTES, 3, 0, 0, 0, _PERF_EXCLUDE)
    fd = libc.syscall(number, attributes.ljust(_PERF_ATTR_BYTES, b"\0"), 0, -1, -1, 0)
    if fd >= 0:
        os.close(fd)
        return Finding(name, "ok", "cache misses can be counted")
    error = ctypes.get_errno()
    if error in (errno.EACCES, errno.EPERM):
        paranoid = _text(Path("/proc/sys/kernel/perf_event_paranoid")) or UNKNOWN
        mend = "as root: sysctl -w kernel.perf_event_paranoid=2"
        return Finding(name, "warn", f"forbidden (perf_event_paranoid is {paranoid})", mend)
    mend = "use a machine that is not virtual, or one whose hypervisor passes them on"
    return Finding(name, "warn", f"cache misses cannot be counted ({os.strerror(error)})", mend)


def _processor() -> Iterator[Finding]:
    facts = machine_facts()
    yield Finding("CPU", "ok" if facts["cpu"] else "warn", facts["cpu"] or UNKNOWN)
    cores, usable = facts["cores"], facts["usable_cores"]
    mend = "preparing and sending share a core: pipelining shows no gain" if usable < 2 else None
    nodes = f", in {facts['numa_nodes']} NUMA nodes" if (facts["numa_nodes"] or 1) > 1 else ""
    value = f"{cores}, of which {usable} usable{nodes}"
    yield Finding("cores", "warn" if mend else "ok", value, mend)
    caches = ", ".join(f"{name} {units.size(n)}" for name, n in facts["caches_bytes"].items())
    yield Finding("caches", "ok" if caches else "warn", caches or UNKNOWN)
    governor = facts["governor"]
    if governor is None:
        yield Finding("governor", "warn", UNKNOWN, "a virtual machine cannot tell: ask its host")
    elif governor != "performance":
        mend = "as root: cpupower frequency-set -g performance"
        yield Finding("governor", "warn", governor, mend)
    else:
        yield Finding("governor", "ok", governor)
    yield Finding("turbo", "ok" if facts["turbo"] else "warn", facts["turbo"] or UNKNOWN)
    virtual = facts["virtualisation"]
    noisy = "rates vary with what its neighbours do" if virtual != "none" else None
    yield Finding("virtualisation", "warn" if noisy else "ok", virtual or UNKNOWN, noisy)
    yield Finding("kernel", "ok", facts["kernel"])
    busy = facts["load"] > 0.5
    mend = "measure when nothing else runs" if busy else None
    yield Finding("load", "warn" if busy else "ok", f"{facts['load']:.2f}", mend)


def _compiler() -> Finding:
    made_by = f"{compiler() or UNKNOWN} with {compiler_flags() or 'flags unknown'}"
    here = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if here is None:
        mend = "to build the package, install one: gcc or clang"
        return Finding("compiler", "warn", f"programs made by {made_by}; none found here", mend)
    return Finding("compiler", "ok", f"programs made by {made_by}; {Path(here).name} is here")


def _pictures() -> Iterator[Finding]:
    missing = [n for n in ("matplotlib", "pandas") if importlib.util.find_spec(n) is None]
    if missing:
        mend = "pip install 'spead-tutorial[lab]'"
        yield Finding("pictures", "warn", f"missing: {', '.join(missing)}", mend)
    else:
        yield Finding("pictures", "ok", "matplotlib and pandas are here")

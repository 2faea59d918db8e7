# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial doctor``: what this machine can do, and how to mend what is missing.

What cannot be read is "unknown", never guessed.
"""

import dataclasses
import importlib.resources
import importlib.util
import resource
import shutil
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from spead_tutorial._shown import shown
from spead_tutorial.chapters.catalogue import ARRAY, CHAPTERS, LANGUAGES, RECEIVERS
from spead_tutorial.lab import (
    ADDRESS,
    PORT,
    LabProbe,
    probe,
    root_commands,
)
from spead_tutorial.lab.device import BY_HAND
from spead_tutorial.measure.machine import (
    build_fact,
    machine_facts,
    read_text,
)
from spead_tutorial.measure.programs import built
from spead_tutorial.results import units
from spead_tutorial.tools.command_line import as_typed

UNKNOWN = "unknown"
_OVER_LOOPBACK = "without root, over loopback: spead-tutorial run 10 --host 127.0.0.1 --port 8888"
_MARKS = {"ok": ("ok", "green"), "warn": ("warn", "yellow"), "fail": ("FAIL", "red")}
_UDP_SEGMENT, _SO_ZEROCOPY = 103, 60
_WANTED_BUFFER = 1 << 20
_WANTED_RECEIVE_BUFFER = 1 << 23  # what streams ask for
_WANTED_NOTES = 1 << 17  # what newer kernels begin with
#: Programs that commands run, the package of Debian that has them, and what there is without them.
_TOOLS = (
    ("strace", "strace", "why sees no calls and no sleeps, and ranks nothing"),
    ("perf", "linux-perf", "why counts no memory traffic"),
    ("pkg-config", "pkg-config", "check compiles no sender in C"),
    ("git", "git", "records name no revision of a clone"),
)
#: What rates do not depend on.
_NOT_OF_RATES = {"receiver", "programs", "compiler", "pictures", *(tool for tool, *_ in _TOOLS)}


@dataclasses.dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str  # what
    state: str  # `"ok"`, `"warn"` (it works, but less well, or it cannot be told) or `"fail"`
    value: str  # what was found
    mend: str | None = None  # what to do about it


def _found(name: str, value: str | None, mend: str | None = None) -> Check:
    """Make a finding: all is well where something was found, and nothing is to be mended."""
    well = value is not None and mend is None
    return Check(name, "ok" if well else "warn", UNKNOWN if value is None else value, mend)


def examine() -> Iterator[Check]:
    """Yield what was found, one thing after the other; the lab, which matters most, first."""
    offer = probe()
    yield from _lab(offer)
    yield _receiver(offer)
    yield _programs()
    yield from _sockets()
    yield from _memory()
    yield from _processor()
    yield from _software()


def _lab(offer: LabProbe) -> Iterator[Check]:
    if offer.reason is None:
        yield Check("lab", "ok", f"{offer.kinds[0]} (offered: {', '.join(offer.kinds)})")
    else:
        why, *ways = offer.reason.split("\n")
        ways = [_OVER_LOOPBACK, *(way for way in ways if way != BY_HAND)]
        yield Check("lab", "fail", why, "\n".join([*ways, *_by_hand()]))
    how = "in user namespaces, without root" if offer.rootless else "with this user's privileges"
    if offer.namespaces:
        yield Check("namespaces", "ok", how)
    else:
        yield Check("namespaces", "fail", "this user may have none", "see the line above")


def _by_hand() -> list[str]:
    """Say how root makes the device, and how programs reach it then."""
    then = f"as root, make its device by hand (programs then take --host {ADDRESS} --port {PORT}):"
    return [then, *(f"    {command}" for command in root_commands())]


def _receiver(offer: LabProbe) -> Check:
    """Say which way a lab can have to a machine that receives."""
    if offer.reason is not None:
        return _found("receiver", "no lab, no machine that receives", "see the lines above")
    if "veth" in offer.kinds:
        return _found("receiver", "a machine of its own in the lab, by veth")
    why = "by loopback only, for this kernel offers no veth"
    return _found("receiver", why, "as root: modprobe veth")


def _programs() -> Check:
    there, number = built(), len({one.number for one in (*CHAPTERS, *RECEIVERS, *ARRAY)})
    how = "get a C++ compiler (apt install g++), and install the package again"
    mend = None if there == LANGUAGES else f"for those in {LANGUAGES[-1]}: {how}"
    value = f"{number} chapters in {', '.join(there[:-1])} and {there[-1]}"
    return Check("programs", "ok", value, mend)


def _sockets() -> Iterator[Check]:
    for name, level, option, value, why in (
        ("UDP GSO", socket.IPPROTO_UDP, _UDP_SEGMENT, 1472, "many packets in one message"),
        ("zero-copy", socket.SOL_SOCKET, _SO_ZEROCOPY, 1, "the kernel reads payload in place"),
    ):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            try:
                sock.setsockopt(level, option, value)
            except OSError as error:
                mend = "a newer kernel has it; without it sending is slower"
                yield _found(name, f"not offered ({error.strerror})", mend)
            else:
                yield _found(name, f"offered: {why}")
    yield _limit("send buffer", "wmem_max", _WANTED_BUFFER)
    # One limit for the whole machine: a network namespace has none of its own, and cannot set it.
    yield _limit("receive buffer", "rmem_max", _WANTED_RECEIVE_BUFFER, ", in labs too")
    # Zero-copy fails with ENOBUFS where there are more notes on messages than this has room for.
    yield _limit("zero-copy notes", "optmem_max", _WANTED_NOTES)


def _limit(name: str, setting: str, wanted: int, where: str = "") -> Check:
    limit = read_text(Path("/proc/sys/net/core", setting))
    if limit is None:
        # Older kernels do not show it in a network namespace other than the first.
        return _found(name, None)
    mend = None if int(limit) >= wanted else f"as root: sysctl -w net.core.{setting}={wanted}"
    return _found(name, f"at most {units.size(int(limit))}{where}", mend)


def _memory() -> Iterator[Check]:
    facts = machine_facts()
    yield _found("memory", units.size(facts["memory_bytes"]))
    yield _huge_pages(facts["transparent_huge_pages"])
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    no_limit = locked == resource.RLIM_INFINITY
    yield _found("locked memory", "no limit" if no_limit else f"at most {units.size(locked)}")


def _huge_pages(setting: str | None) -> Check:
    mend = "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
    value = None if setting is None else f"transparent: {setting}"
    return _found("huge pages", value, mend if setting == "never" else None)


def _processor() -> Iterator[Check]:
    facts = machine_facts()
    lscpu = None if facts["cpu"] or shutil.which("lscpu") else "as root: apt install util-linux"
    yield _found("CPU", facts["cpu"], lscpu)
    nodes = f", in {facts['numa_nodes']} NUMA nodes" if (facts["numa_nodes"] or 1) > 1 else ""
    usable = facts["usable_cores"]
    mend = "preparing and sending share a core: pipelining shows no gain" if usable < 2 else None
    yield _found("cores", f"{facts['cores']}, of which {usable} usable{nodes}", mend)
    caches = ", ".join(f"{name} {units.size(n)}" for name, n in facts["caches_bytes"].items())
    yield _found("caches", caches or None)
    mends = {None: "a virtual machine cannot tell: ask its host", "performance": None}
    mend = mends.get(facts["governor"], "as root: cpupower frequency-set -g performance")
    yield _found("governor", facts["governor"], mend)
    yield _found("turbo", facts["turbo"])
    virtual = facts["virtualisation"]
    noisy = "rates vary with what its neighbours do" if virtual != "none" else None
    if virtual is None and shutil.which("systemd-detect-virt") is None:
        noisy = "as root: apt install systemd, whose systemd-detect-virt tells"
    yield _found("virtualisation", virtual, noisy)
    yield _found("kernel", facts["kernel"])
    mend = "measure when nothing else runs" if facts["load"] > 0.5 else None
    yield _found("load", f"{facts['load']:.2f}", mend)


def _software() -> Iterator[Check]:
    """Say which compiler there is, and which programs and packages of others that commands use."""
    flags = build_fact("compiler_flags") or "flags unknown"
    made_by = f"{build_fact('compiler') or UNKNOWN} with {flags}"
    here = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    mend = None if here else "to build the package, install one: gcc or clang"
    found = f"{Path(here).name} is here" if here else "none found here"
    yield _found("compiler", f"programs made by {made_by}; {found}", mend)
    for tool, package, what in _TOOLS:
        if shutil.which(tool) is None:
            value = f"missing: without {tool} {what}"
            yield _found(tool, value, f"as root: apt install {package}")
        else:
            yield _found(tool, "here")
    missing = [n for n in ("matplotlib", "pandas") if importlib.util.find_spec(n) is None]
    if missing:
        value = f"missing: {', '.join(missing)}"
        yield _found("pictures", value, "pip install 'spead-tutorial[lab]'")
    else:
        yield _found("pictures", "matplotlib and pandas are here")


def verdict(findings: Sequence[Check]) -> str:
    """Say in a sentence what all of it comes to."""
    if any(finding.state == "fail" for finding in findings):
        return "There can be no lab here; chapters that send run over loopback, as said above."
    warned = [finding.name for finding in findings if finding.state == "warn"]
    n_others = sum(name in _NOT_OF_RATES for name in warned)
    n_of_rates = len(warned) - n_others
    varies = "nothing was found that makes"
    if n_of_rates:
        varies = f"{_counted(n_of_rates)} may make"
    more = ""
    if n_others:
        has = "is" if n_others == 1 else "are"
        more = f"; {_counted(n_others)} {has} missing that other commands use"
    return f"All chapters run here; {varies} rates vary{more}."


def _counted(n: int) -> str:
    return f"{n} thing{'s' * (n != 1)}"


# ---- The command ----


@click.command()
def doctor() -> int:
    """Say what this machine can do, and how to mend what is missing.

    The exit status is 1 where the lab cannot work.

    Example: spead-tutorial doctor
    """
    findings = []
    for finding in examine():
        findings.append(finding)
        mark, colour = _MARKS[finding.state]
        value = shown(finding.value)
        click.echo(f"{click.style(f'{mark:>4}', fg=colour)}  {finding.name:18} {value}")
        for line in (finding.mend or "").splitlines():
            begin = "  " if line.startswith(" ") else "→ "
            click.echo(as_typed(f"{'':25}{begin}{shown(line)}"))
    click.echo(as_typed(f"\n{verdict(findings)}"))
    return int(any(finding.state == "fail" for finding in findings))

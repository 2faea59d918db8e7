# SPDX-License-Identifier: BSD-3-Clause
"""Senders with one known fault each, and some without: what a diagnosis is tried on.

Each is started as PROGRAM HOST PORT [HEAPS], sends heaps of 1 MiB, and ends by itself. Those in C
are compiled by the fixture `planted`, against the sources of the core.

What is expected of each is what there is to be found, in this order: what costs most comes first.
spead2's wheel merges no packets, so that ``no-segmentation-offload`` is found in each of its
senders, but for one whose packets the kernel has to cut, which cannot be merged. It comes first
where packets are small, for a price is paid for each message, so that merging would mend both. It
comes last where the other fault takes several times as long as the messages do.
"""

import dataclasses
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from spead_tutorial.measure.programs import program
from support import ROOT

__all__ = ["FINDINGS", "SENDERS", "Planted", "compile_senders"]

HERE = Path(__file__).parent
CORE = ROOT / "csrc"

#: What can be wrong with one of them.
FINDINGS = (
    "no-segmentation-offload",
    "call-per-packet",
    "fresh-memory",
    "sleeps",
    "small-packets",
    "fragments",
    "shared-core",
    "slow-data",
)

#: Takes the folder of the programs in C, host, port, and how many heaps; returns how it is started.
Argv = Callable[[Path, str, str, int], list[str]]


@dataclasses.dataclass(frozen=True, slots=True)
class Planted:
    """A sender whose faults are known.

    Parameters
    ----------
    name : str
        What it is called: the language or the library, and the fault.
    language : str
        ``"c"``, ``"python"``, or ``"spead2"`` for Python with spead2's wheel.
    findings : tuple of str
        What is to be found: of `FINDINGS`, what costs most first.
    argv : function
        Returns how it is started.
    packet_size : int
        Bytes of most of its packets, headers of UDP and IP not included.
    in_order : bool
        Whether that order is certain: false where the faults cost about the same.
    """

    name: str
    language: str
    findings: tuple[str, ...]
    argv: Argv
    packet_size: int = 9000
    in_order: bool = True

    @property
    def needs_two_cores(self) -> bool:
        """Whether there is a fault only where the machine has another core to use."""
        return "shared-core" in self.findings


def compile_senders(folder: Path) -> None:
    """Make the programs in C, and the core that some of them send with.

    Parameters
    ----------
    folder : path
        Where they go.
    """
    compiler = shlex.split(os.environ.get("CC", "")) or ["cc"]
    options = ["-std=gnu11", "-O2", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
    options.append(f"-I{CORE / 'include'}")

    def compiled(source: Path) -> Path:
        made = folder / f"{source.stem}.o"
        subprocess.run([*compiler, *options, "-c", source, "-o", made], check=True)
        return made

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        core = list(pool.map(compiled, sorted((CORE / "src").glob("*.c"))))
        for made in pool.map(compiled, sorted(HERE.glob("*.c"))):
            linked: list[str | Path] = ["-o", made.with_suffix(""), "-lpthread", "-lm"]
            subprocess.run([*compiler, made, *core, *linked], check=True)


def _in_c(name: str) -> Argv:
    return lambda folder, host, port, heaps: [str(folder / name), host, port, str(heaps)]


def _in_python(name: str, library: str | None) -> Argv:
    words = [sys.executable, str(HERE / f"{name}.py"), *([library] if library else [])]
    return lambda _, host, port, heaps: [*words, host, port, str(heaps)]


def _chapter(name: str, language: str) -> Argv:
    options = ["-H", str(1 << 20)]

    def argv(_: Path, host: str, port: str, heaps: int) -> list[str]:
        return [*program(name, language), "-n", str(heaps), *options, "--", host, port]

    return argv


def _planted(name: str, findings: tuple[str, ...], packet_size: int = 9000) -> list[Planted]:
    """Return the same fault in C, and in Python with both libraries."""
    wheel = findings
    if findings[:1] == ("small-packets",):
        wheel = ("no-segmentation-offload", *findings)
    elif findings != ("fragments",):
        wheel = (*findings, "no-segmentation-offload")
    words = name.replace("_", " ")
    ours, theirs = _in_python(name, "spead_tutorial"), _in_python(name, "spead2")
    in_order = name != "shared_core"
    made = [
        Planted(f"python {words}", "python", findings, ours, packet_size),
        Planted(f"spead2 {words}", "spead2", wheel, theirs, packet_size, in_order),
    ]
    if (HERE / f"{name}.c").exists():
        made.insert(0, Planted(f"c {words}", "c", findings, _in_c(name), packet_size))
    return made


_OFFLOAD = ("no-segmentation-offload",)
_CALLS = ("call-per-packet", "no-segmentation-offload")

#: Every one.
SENDERS = (
    Planted("c no offload", "c", _OFFLOAD, _in_c("message_per_packet")),
    Planted("spead2 nothing else", "spead2", _OFFLOAD, _in_python("filled_in_turn", "spead2")),
    Planted("python nothing wrong", "python", (), _in_python("filled_in_turn", "spead_tutorial")),
    Planted("c call per packet", "c", _CALLS, _in_c("call_per_packet")),
    Planted("python call per packet", "python", _CALLS, _in_python("call_per_packet", None)),
    *_planted("fresh_memory", ("fresh-memory",)),
    *_planted("sleeping", ("sleeps",)),
    *_planted("rate_limited", ("sleeps",)),
    *_planted("small_packets", ("small-packets",), 1000),
    *_planted("fragments", ("fragments",), 32000),
    *_planted("shared_core", ("shared-core",)),
    *_planted("slow_data", ("slow-data",)),
    Planted("c bare loop", "c", (), _in_c("bare")),
    Planted("python bare loop", "python", (), _in_python("bare", None)),
    *(
        Planted(f"{language} chapter {name.split('_')[1]}", language, (), _chapter(name, language))
        for name in ("tut_10_send_reuse_heaps", "tut_14_send_many_streams")
        for language in ("c", "python")
    ),
)

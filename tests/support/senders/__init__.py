# SPDX-License-Identifier: BSD-3-Clause
"""Senders with one known fault each, and some without: what a diagnosis is tried on.

Each is started as PROGRAM HOST PORT [HEAPS], sends heaps of 1 MiB, and ends by itself. Those in C
are compiled by the fixture `planted`; those that need it, against the sources of the core.

What is expected of each is what there is to be found, in this order: what costs most comes first.
spead2's wheel merges no packets, so that ``no-segmentation-offload`` is found in each of its
senders, but for one whose packets the kernel has to cut, which cannot be merged. It comes first
where packets are small, for a price is paid for each message, so that merging would mend both. It
comes last where the other fault takes several times as long as the messages do.
"""

import dataclasses
import functools
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from spead_tutorial.measure.programs import program
from support import ROOT
from support.once import MadeOnce

__all__ = ["FINDINGS", "SENDERS", "Planted", "made"]

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
    in_order : bool
        Whether that order is certain: false where the faults cost about the same.
    source : path or None
        What is to be compiled before it is started.
    """

    name: str
    language: str
    findings: tuple[str, ...]
    argv: Argv
    in_order: bool = True
    source: Path | None = None

    @property
    def needs_two_cores(self) -> bool:
        """Whether there is a fault only where the machine has another core to use."""
        return "shared-core" in self.findings

    @property
    def needs_core(self) -> bool:
        """Whether it sends with the core."""
        return self.source is not None and '#include "core.h"' in self.source.read_text()


def made(sender: Planted, made_once: MadeOnce) -> Path:
    """Compile a sender, once for all tests, and return the folder that its program is in."""
    if sender.source is None:
        return HERE
    core = made_once("planted-core", _compile_core) if sender.needs_core else None
    name = f"planted-{sender.source.stem}"
    return made_once(name, functools.partial(_compile_sender, sender.source, core))


def _compile(*words: str | Path) -> None:
    compiler = shlex.split(os.environ.get("CC", "")) or ["cc"]
    options = ["-std=gnu11", "-O2", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
    subprocess.run([*compiler, *options, f"-I{CORE / 'include'}", *words], check=True)


def _compile_core(folder: Path) -> None:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(
            lambda source: _compile("-c", source, "-o", folder / f"{source.stem}.o"),
            sorted((CORE / "src").glob("*.c")),
        ):
            pass  # but raise what one has raised


def _compile_sender(source: Path, core: Path | None, folder: Path) -> None:
    objects = sorted(core.glob("*.o")) if core is not None else []
    _compile(source, *objects, "-o", folder / source.stem, "-lpthread", "-lm")


def _c(name: str, findings: tuple[str, ...]) -> Planted:
    def argv(folder: Path, host: str, port: str, heaps: int) -> list[str]:
        return [str(folder / name), host, port, str(heaps)]

    words, source = name.replace("_", " "), HERE / "c" / f"{name}.c"
    return Planted(f"c {words}", "c", findings, argv, source=source)


def _in_python(name: str, library: str | None) -> Argv:
    words = [sys.executable, str(HERE / "python" / f"{name}.py"), *([library] if library else [])]
    return lambda _, host, port, heaps: [*words, host, port, str(heaps)]


def _chapter(name: str, language: str) -> Argv:
    options = ["-H", str(1 << 20)]

    def argv(_: Path, host: str, port: str, heaps: int) -> list[str]:
        return [*program(name, language), "-n", str(heaps), *options, "--", host, port]

    return argv


def _planted(name: str, findings: tuple[str, ...]) -> list[Planted]:
    """Return the same fault in C, and in Python with both libraries."""
    wheel = findings
    if findings[:1] == ("small-packets",):
        wheel = ("no-segmentation-offload", *findings)
    elif findings != ("fragments",):
        wheel = (*findings, "no-segmentation-offload")
    words = name.replace("_", " ")
    ours, theirs = _in_python(name, "spead_tutorial"), _in_python(name, "spead2")
    in_order = name != "shared_core"
    planted = [
        Planted(f"python {words}", "python", findings, ours),
        Planted(f"spead2 {words}", "spead2", wheel, theirs, in_order),
    ]
    if (HERE / "c" / f"{name}.c").exists():
        planted.insert(0, _c(name, findings))
    return planted


_OFFLOAD = ("no-segmentation-offload",)
_CALLS = ("call-per-packet", "no-segmentation-offload")

#: Every one.
SENDERS = (
    _c("message_per_packet", _OFFLOAD),
    Planted("spead2 nothing else", "spead2", _OFFLOAD, _in_python("filled_in_turn", "spead2")),
    Planted("python nothing wrong", "python", (), _in_python("filled_in_turn", "spead_tutorial")),
    _c("call_per_packet", _CALLS),
    Planted("python call per packet", "python", _CALLS, _in_python("call_per_packet", None)),
    *_planted("fresh_memory", ("fresh-memory",)),
    *_planted("sleeping", ("sleeps",)),
    *_planted("rate_limited", ("sleeps",)),
    *_planted("small_packets", ("small-packets",)),
    *_planted("fragments", ("fragments",)),
    *_planted("shared_core", ("shared-core",)),
    *_planted("slow_data", ("slow-data",)),
    *(
        Planted(f"{language} chapter {name.split('_')[1]}", language, (), _chapter(name, language))
        for name in ("tut_10_send_reuse_heaps", "tut_14_send_many_streams")
        for language in ("c", "python")
    ),
)

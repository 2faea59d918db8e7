# SPDX-License-Identifier: BSD-3-Clause
"""Receivers with one known fault each, and some without: what a diagnosis is tried on.

Each is started as PROGRAM HOST PORT …, and reads until it is ended. One more word mends it.
"""

import dataclasses
import functools
import os
import shlex
import subprocess
import sys
from pathlib import Path

from spead_tutorial.lab import sink_path
from support.once import MadeOnce

__all__ = ["RECEIVERS", "PlantedReceiver", "made"]

HERE = Path(__file__).parent
_FOLDER, _WHERE = "{folder}", ("{host}", "{port}")


@dataclasses.dataclass(frozen=True, slots=True)
class PlantedReceiver:
    """A receiver whose fault is known.

    Parameters
    ----------
    name : str
        The language and the fault.
    finding : str or None
        The kind of finding that has to come first; None where there is nothing to be found.
    words : tuple of str
        How it is started: ``{folder}`` stands for where compiled programs are.
    source : str
        What is to be compiled before; empty where nothing is.
    compiler : str
        The program that compiles or runs it.
    options : tuple of str
        What the command needs to find it.
    """

    name: str
    finding: str | None
    words: tuple[str, ...]
    source: str = ""
    compiler: str = ""
    options: tuple[str, ...] = ()

    def command(self, folder: Path, *, mended: bool = False) -> list[str]:
        """Return how it is started."""
        words = [word.replace(_FOLDER, str(folder)) for word in self.words]
        return [*words, "mended"] if mended else words


def made(receiver: PlantedReceiver, made_once: MadeOnce) -> Path:
    """Compile a receiver, once for all tests, and return the folder that it is in."""
    if not receiver.source:
        return HERE
    compile_ = functools.partial(_compile, receiver.source)
    return made_once(f"receiver-{receiver.source}", compile_)


def _compile(source: str, folder: Path) -> None:
    path, program = HERE / source, folder / Path(source).stem
    warnings = ["-O2", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-pthread"]
    commands = {
        ".c": [*_compiler("CC", "cc"), "-std=gnu11", "-D_GNU_SOURCE", *warnings],
        ".cpp": [*_compiler("CXX", "c++"), "-std=c++17", *warnings],
        ".go": ["go", "build"],
        ".java": ["javac", "-d", str(folder)],
    }
    to = [] if path.suffix == ".java" else ["-o", str(program)]
    cache = {"GOCACHE": os.environ.get("GOCACHE", str(folder / "cache"))}
    subprocess.run([*commands[path.suffix], *to, str(path)], check=True, env=os.environ | cache)


def _compiler(variable: str, usual: str) -> list[str]:
    return shlex.split(os.environ.get(variable, "")) or [usual]


def _c(fault: str, *options: str) -> PlantedReceiver:
    words = (f"{_FOLDER}/reading", *_WHERE, fault)
    return PlantedReceiver(f"c {fault}", fault, words, "reading.c", "cc", options)


def _python(fault: str, finding: str) -> PlantedReceiver:
    words = (sys.executable, str(HERE / "reading.py"), *_WHERE, fault)
    return PlantedReceiver(f"python {fault}", finding, words)


#: Every one.
RECEIVERS = (
    _c("sleeps"),
    _c("small-buffer"),
    _c("call-per-packet", "--mtu", "1500"),
    _c("fresh-memory"),
    PlantedReceiver("c++ waits-for-lock", "waits-for-lock", (f"{_FOLDER}/locked", *_WHERE),
                    "locked.cpp", "c++"),
    _python("computes", "computes"),
    _python("pauses", "pauses"),
    _python("stream", "waits-for-thread"),
    PlantedReceiver("go other-calls", "other-calls", (f"{_FOLDER}/logging", *_WHERE), "logging.go",
                    "go"),
    PlantedReceiver("java sleeps", "sleeps", ("java", "-cp", _FOLDER, "Napping", *_WHERE),
                    "Napping.java", "javac"),
    PlantedReceiver("node computes", "computes", ("node", str(HERE / "writing.js"), *_WHERE),
                    "", "node"),
    PlantedReceiver("c faultless", None, (f"{_FOLDER}/reading", *_WHERE), "reading.c", "cc"),
    PlantedReceiver("sink faultless", None, (str(sink_path()), *_WHERE)),
)  # fmt: skip

# SPDX-License-Identifier: BSD-3-Clause
"""Senders with one known fault each, and some without: what a diagnosis is tried on.

Each is started as PROGRAM HOST PORT HEAPS [mended], sends heaps of 1 MiB, and ends by itself. With
``mended`` it does the same without its fault. A fault is so large that it comes first among what is
found; others that the language or the library brings along may come after it: no sender in Java or
JavaScript has segmentation offload, and spead2's wheel merges no packets.
"""

import dataclasses
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from spead_tutorial.measure.programs import program
from support.needs import lacking
from support.once import MadeOnce

__all__ = ["LANGUAGES", "PLANTED", "SENDERS", "Planted", "made"]

HERE = Path(__file__).parent

#: Where Go is that needs no package of the system, and that PATH may lack.
_USUAL = "/usr/local/go/bin"
_CC = "-O2 -D_GNU_SOURCE -Wall -Wextra -Wconversion -Werror {source} -o {program} -lpthread -lm"
#: Of each language the folder, the tools, how they compile a sender, and how it is started.
_TOOLS = {
    "c": ("c", ("cc",), f"cc -std=gnu11 {_CC}", "{program}"),
    "c++": ("cpp", ("c++",), f"c++ -std=c++20 {_CC}", "{program}"),
    "go": ("go", ("go",), "go build -o {program} {shared} {source}", "{program}"),
    "java": ("java", ("javac", "java"), "javac -d {folder} {shared} {source}",
             "java -cp {folder} {name}"),
    "javascript": ("javascript", ("node",), "", "node {source}"),
    "python": ("python", (), "", "{python} {source}"),
    "spead2": ("python", (), "", "{python} {source}"),
}  # fmt: skip
LANGUAGES = tuple(_TOOLS)


@dataclasses.dataclass(frozen=True, slots=True)
class Planted:
    """A sender whose fault is known."""

    name: str  # the language or the library, and the file
    kind: str | None  # what has to be found first; None where nothing is to be found
    source: Path | None = None
    library: str = ""  # what a program in Python is told to send with
    is_mended: bool = False  # whether it is the twin without a fault
    argv_of: Callable[[str, str, int], list[str]] | None = None  # for what is no planted program

    @property
    def language(self) -> str:
        """The language, or the library."""
        return self.name.partition(" ")[0]

    @property
    def is_certain(self) -> bool:
        """Whether its fault costs most.

        Those in Java make a call for each packet, mended or not, which costs more than their lock.
        """
        return self.name not in ("java OneLock", "java OneSocket")

    @property
    def lacking(self) -> str | None:
        """Say what is missing to make and run it; None where nothing is."""
        return lacking(*(tool for tool in _TOOLS[self.language][1] if _tool(tool) == tool))

    def start(self, folder: Path) -> list[str]:
        """Return the program, from the folder that it was made in."""
        return _words(self, _TOOLS[self.language][3], folder)

    def argv(
        self, folder: Path, host: str, port: str, heaps: int, mended: bool = False
    ) -> list[str]:
        """Return how it is started."""
        if self.argv_of is not None:
            return self.argv_of(host, port, heaps)
        words = [*self.start(folder), *filter(None, [self.library])]
        return [*words, host, port, str(heaps), *["mended"] * (mended or self.is_mended)]


def made(sender: Planted, made_once: MadeOnce) -> Path:
    """Compile a sender, once for all tests, and return the folder that its program is in."""
    return made_once(f"planted-{sender.name}", functools.partial(compile_sender, sender))


def compile_sender(sender: Planted, folder: Path) -> None:
    """Compile a sender into a folder, with nothing but what comes with the language."""
    pattern = _TOOLS[sender.language][2]
    if sender.source is None or not pattern:  # a chapter, or a script
        return
    offline = {"GO111MODULE": "off", "GOTOOLCHAIN": "local", "GOFLAGS": ""}
    command = _words(sender, pattern, folder)
    subprocess.run(command, check=True, env=os.environ | offline)


def _words(sender: Planted, pattern: str, folder: Path) -> list[str]:
    source = sender.source or HERE
    shared = next(source.parent.glob(f"[sS]ending{source.suffix}"), "")
    names = {"source": source, "shared": shared, "folder": folder, "name": source.stem}
    names["python"] = sys.executable
    words = [word.format(**names, program=folder / source.stem) for word in pattern.split()]
    return [*map(_tool, words[:1]), *filter(None, words[1:])]


def _tool(name: str) -> str:
    """Return the path of a tool; its name where it is not to be found."""
    places = os.pathsep.join([os.environ.get("PATH", ""), _USUAL])
    return shutil.which(name, path=places) or name


#: What is found first, and in which programs.
PLANTED = {
    "sleeps": "c/sleeping c++/wait_for go/sleeping java/FlushTimer javascript/sleeping",
    "spins": "c/spinning python/spinning",
    "computes": "c/slow_data python/urandom c++/slow_producer",
    "formats": "javascript/json_per_packet python/json_per_packet",
    "looks-up": "c++/resolving",
    "logs": "go/log_per_packet",
    "waits-for-thread": "c++/one_lock java/OneLock java/OneSocket",
    "waits-for-input": "python/slow_input",
    "small-packets": "c/small_packets",
    "fresh-memory": "c/fresh_memory",
    "fragments": "c/fragments",
    "call-per-packet": "c/call_per_packet python/call_per_packet c/small_heaps go/small_packets",
    "no-segmentation-offload": "c/message_per_packet",
}
#: The same for those that send with a stream of this package's, and with one of spead2's.
_STREAMS = {
    "sleeping": "sleeps",
    "rate_limited": "sleeps",
    "slow_data": "computes",
    "fresh_memory": "fresh-memory",
    "fragments": "fragments",
}
_LIBRARIES = {"python": "spead_tutorial", "spead2": "spead2"}


def _planted(place: str, kind: str) -> Planted:
    language, _, stem = place.partition("/")
    (source,) = (HERE / _TOOLS[language][0]).glob(f"{stem}.*")
    return Planted(f"{language} {stem.replace('_', ' ')}", kind, source)


def _stream(language: str, name: str, kind: str | None) -> Planted:
    library, source = _LIBRARIES[language], HERE / "python" / f"{name}.py"
    return Planted(f"{language} stream {name.replace('_', ' ')}", kind, source, library)


def _fast(place: str) -> Planted:
    """Return what is mended as one without a fault."""
    one = _planted(place, "")
    return dataclasses.replace(one, name=f"{one.name} mended", kind=None, is_mended=True)


def _chapter(name: str, language: str) -> Planted:
    def argv(host: str, port: str, heaps: int) -> list[str]:
        return [*program(name, language), "-n", str(heaps), "-H", str(1 << 20), "--", host, port]

    return Planted(f"{language} chapter {name.split('_')[1]}", None, argv_of=argv)


#: Every one.
SENDERS = (
    *(_planted(place, kind) for kind, places in PLANTED.items() for place in places.split()),
    *(_stream(one, name, kind) for name, kind in _STREAMS.items() for one in _LIBRARIES),
    _stream("spead2", "small_packets", "no-segmentation-offload"),
    _stream("spead2", "filled_in_turn", "no-segmentation-offload"),
    _stream("python", "filled_in_turn", None),
    *map(_fast, ("c/message_per_packet", "python/call_per_packet", "go/small_packets")),
    *(
        _chapter(name, language)
        for name in ("tut_10_send_reuse_heaps", "tut_14_send_many_streams")
        for language in ("c", "python")
    ),
)

# SPDX-License-Identifier: BSD-3-Clause
"""What the chapters' programs are compared with: bare loops, and the same loops with spead2."""

import importlib.resources
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.measure.case import Case
from spead_tutorial.measure.programs import Launch

__all__ = ["CEILING", "PEER", "launch", "missing", "missing_peer", "started"]

#: What the bare loops are called, as a program and as an implementation.
CEILING = "ceiling"
#: The implementation whose programs are the peer's, as it is installed.
PEER = "spead2"

#: What the words of a case's variant are to the bare loops.
_FLAGS = {
    "one thread": ["-t", "1"],
    "two threads": ["-t", "2"],
    "no fill": ["--no-fill"],
    "zero-copy": ["-z"],
    "huge pages": ["--huge-pages"],
}


def missing(case: Case) -> str | None:
    """Say why a case cannot run here; None where it can."""
    if case.implementation != CEILING and (reason := missing_peer()):
        return reason
    return None if _path(case).is_file() else "it has not been built: pip install ."


def missing_peer() -> str | None:
    """Say why no program of the peer can run here; None where they can."""
    if importlib.util.find_spec(PEER) is None:
        return f"{PEER} is not installed: pip install 'spead-tutorial[peer]'"
    return None


def launch(case: Case, heaps: int | None, interpreter: Sequence[str] = (sys.executable,)) -> Launch:
    """Return how a case's program is started."""
    words = [] if case.implementation == CEILING else interpreter
    return started([*words, str(_path(case))], _arguments(case, heaps))


def started(command: Sequence[str], arguments: Sequence[str]) -> Launch:
    """Return how a program is started that takes a host and a port after its arguments."""

    def start(destination: tuple[str, int] | None) -> list[str]:
        words = [*command, *arguments, "--json"]
        return words if destination is None else [*words, destination[0], str(destination[1])]

    return start


def _path(case: Case) -> Path:
    bare = case.implementation == CEILING
    where = ("bin", CEILING) if bare else ("peer", f"{case.program}.py")
    return Path(str(importlib.resources.files("spead_tutorial").joinpath(*where)))


def _arguments(case: Case, heaps: int | None) -> list[str]:
    if case.implementation != CEILING:
        return case.options(heaps).arguments(find_chapter(case.program))
    flags = [flag for word in case.words for flag in _FLAGS[word]]
    if case.streams is not None:
        flags += ["-s", str(case.streams)]
    sizes = ["-n", heaps, "-H", case.heap_size, "-p", case.packet_size]
    return [*flags, *map(str, sizes)]

# SPDX-License-Identifier: BSD-3-Clause
"""The ladder, and what chapters' programs are compared with: bare loops, and spead2's."""

import dataclasses
import importlib.resources
import importlib.util
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from spead_tutorial.chapters.catalogue import LADDER, MEASURED, Rung, find_chapter
from spead_tutorial.measure.case import Case
from spead_tutorial.measure.programs import Launch
from spead_tutorial.measure.records import OURS

#: What the bare loops are called, as a program and as an implementation.
CEILING = "ceiling"
#: The implementation whose programs are the peer's, as it is installed.
PEER = "spead2"

_HEAP_SIZES = tuple(dict.fromkeys(rung.heap_size for rung in LADDER))


def ladder(rungs: Iterable[Rung] = LADDER, languages: Sequence[str] = MEASURED) -> tuple[Case, ...]:
    """Return the programs of rungs, in some languages."""
    return tuple(
        Case(OURS, language, rung.program, rung.heap_size, rung.packet_size)
        for rung in rungs
        for language in languages
    )


def peers(implementation: str, languages: Sequence[str] = ("python",)) -> tuple[Case, ...]:
    """Return the same loops with the peer, where it can do the same."""
    return tuple(
        Case(implementation, language, find_chapter(number).name, heap_size)
        for heap_size in _HEAP_SIZES
        for number in ("8", "10", "11")
        for language in languages
    )


def bare(streams: Iterable[int | None]) -> tuple[Case, ...]:
    """Return bare loops, of one thread that fills and sends for each of some numbers of streams."""
    one = Case(CEILING, "c", CEILING, variant="one thread")
    return tuple(
        dataclasses.replace(one, heap_size=heap_size, streams=n)
        for n in streams
        for heap_size in _HEAP_SIZES
    )


def _path(case: Case) -> Path:
    is_bare = case.implementation == CEILING
    where = ("bin", CEILING) if is_bare else ("peer", f"{case.program}.py")
    return Path(str(importlib.resources.files("spead_tutorial").joinpath(*where)))


def missing_peer() -> str | None:
    """Say why no program of the peer can run here; None where they can."""
    if importlib.util.find_spec(PEER) is None:
        return f"{PEER} is not installed: pip install 'spead-tutorial[peer]'"
    return None


def missing(case: Case) -> str | None:
    """Say why a case cannot run here; None where it can."""
    if case.implementation != CEILING and (reason := missing_peer()):
        return reason
    return None if _path(case).is_file() else "it has not been built: pip install ."


def started(command: Sequence[str], arguments: Sequence[str]) -> Launch:
    """Return how a program is started that takes a host and a port after its arguments."""

    def start(destination: tuple[str, int] | None) -> list[str]:
        words = [*command, *arguments, "--json"]
        return words if destination is None else [*words, destination[0], str(destination[1])]

    return start


#: What the words of a case's variant are to the bare loops.
_FLAGS = {
    "one thread": ["-t", "1"],
    "two threads": ["-t", "2"],
    "no fill": ["--no-fill"],
    "zero-copy": ["-z"],
    "huge pages": ["--huge-pages"],
}


def launch(case: Case, heaps: int | None, interpreter: Sequence[str] = (sys.executable,)) -> Launch:
    """Return how a case's program is started."""
    if case.implementation != CEILING:
        arguments = case.options(heaps).arguments(find_chapter(case.program))
        return started([*interpreter, str(_path(case))], arguments)
    flags = [flag for word in case.words for flag in _FLAGS[word]]
    if case.streams is not None:
        flags += ["-s", str(case.streams)]
    sizes = ["-n", heaps, "-H", case.heap_size, "-p", case.packet_size]
    return started([str(_path(case))], [*flags, *map(str, sizes)])

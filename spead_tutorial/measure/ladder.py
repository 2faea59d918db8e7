# SPDX-License-Identifier: BSD-3-Clause
"""The ladder's cases: every chapter at common settings, and what is measured beside them.

The sweep `ladder` measures them at length, and a tour shows them.
"""

import dataclasses
from collections.abc import Iterable, Sequence

from spead_tutorial.chapters.catalogue import LADDER, MEASURED, Rung, find_chapter
from spead_tutorial.measure.baselines import CEILING
from spead_tutorial.measure.case import Case
from spead_tutorial.measure.records import OURS

__all__ = ["bare", "chapters", "peers"]

_HEAP_SIZES = tuple(dict.fromkeys(rung.heap_size for rung in LADDER))


def chapters(
    rungs: Iterable[Rung] = LADDER, languages: Sequence[str] = MEASURED
) -> tuple[Case, ...]:
    """Return the programs of rungs, in some languages."""
    return tuple(
        Case(OURS, language, rung.program, rung.heap_size, rung.packet_size)
        for rung in rungs
        for language in languages
    )


def peers(implementation: str) -> tuple[Case, ...]:
    """Return the same loops with the peer, where it can do the same."""
    return tuple(
        Case(implementation, "python", find_chapter(number).name, heap_size)
        for heap_size in _HEAP_SIZES
        for number in ("8", "10", "11")
    )


def bare(streams: Iterable[int | None]) -> tuple[Case, ...]:
    """Return bare loops, of one thread that fills and sends for each of some numbers of streams."""
    one = Case(CEILING, "c", CEILING, variant="one thread")
    return tuple(
        dataclasses.replace(one, heap_size=heap_size, streams=n)
        for n in streams
        for heap_size in _HEAP_SIZES
    )

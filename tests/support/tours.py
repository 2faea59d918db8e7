# SPDX-License-Identifier: BSD-3-Clause
"""Tours that nobody made: samples of every case, with rates of one's choice."""

import os
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.measure.case import Case
from spead_tutorial.measure.records import Recording, Sample
from spead_tutorial.tools import tour
from support.records import HEADER, SAMPLE

_MIB = 1 << 20


def rate(case: Case, number: int) -> float:
    """10⁹ bytes/s for everything, in every round."""
    return 1e9


def recorded(
    rates: Callable[[Case, int], float | None] = rate,
    rounds: int = 3,
    cases: Sequence[Case] | None = None,
) -> Recording:
    """Make a tour of all that can run here, or of some cases; what has no rate has failed."""
    all_cases, _ = tour.planned("tiny", False)
    samples = [
        _sample(case, number, rates(case, number))
        for number in range(rounds)
        for case in (all_cases if cases is None else cases)
    ]
    header = replace(HEADER, settings={"rounds": rounds, "size": "quick"})
    return Recording(header, tuple(samples))


def _sample(case: Case, number: int, bytes_per_s: float | None) -> Sample:
    chapter = 0 if case.program == "ceiling" else find_chapter(case.program).number
    streams = len(os.sched_getaffinity(0)) if chapter == 14 else case.streams or 1
    return replace(
        SAMPLE,
        case=case.name,
        round=number,
        chapter=chapter,
        program=case.program,
        language=case.language,
        heap_size=case.heap_size,
        implementation=case.implementation,
        variant=case.different,
        streams=streams,
        packets=1170,
        counted_packets=170,
        payload_bytes=10 * _MIB,
        elapsed_ns=round(10 * _MIB / (bytes_per_s or 1) * 1e9),
        failure=None if bytes_per_s else "counted 1, not <2>",
    )

# SPDX-License-Identifier: BSD-3-Clause
"""The timelines of a recording, and what they are called."""

from spead_tutorial.analysis.timeline import first_steady
from spead_tutorial.catalogue import find_chapter
from spead_tutorial.records import Recording, Timeline

__all__ = ["IN_TURNS", "OVERLAPPED", "counted", "samples", "timelines", "title", "way"]

#: The two ways to send.
IN_TURNS, OVERLAPPED = "in turns", "overlapped"


def timelines(recording: Recording) -> list[Timeline]:
    """Return a recording's timelines: random samples before constant, in turns before overlapped.

    Those with a limit to the rate come last.
    """
    runs = [run for run in recording.timelines if run.prepare_ns]
    if not runs:
        raise ValueError("the recording has no timeline: python -m bench run tut-5")
    return sorted(
        runs,
        key=lambda run: (
            run.variant,
            not run.random,
            find_chapter(run.program).number,
            run.language != "python",
        ),
    )


def counted(one: Timeline) -> str:
    """Return which heaps of a timeline its shares are of."""
    return f"heaps {first_steady(one)} to {len(one.prepare_ns) - 1}"


def samples(one: Timeline) -> str:
    """Return which samples a timeline is of, and where they were sent to."""
    kind = "Random samples" if one.random else "Constant samples"
    return f"{kind}, {one.variant}" if one.variant else kind


def way(one: Timeline) -> str:
    """Return whether it was in turns or overlapped."""
    return OVERLAPPED if find_chapter(one.program).number == 5 else IN_TURNS


def title(one: Timeline) -> str:
    """Return what a timeline is of."""
    kind = "Random samples" if one.random else "Constant samples"
    return ", ".join(filter(None, (kind, way(one), one.variant)))

# SPDX-License-Identifier: BSD-3-Clause
"""The timelines of a recording, and what they are called."""

from spead_tutorial.catalogue import find_chapter
from spead_tutorial.records import Recording, Timeline
from spead_tutorial.timeline import first_steady

__all__ = ["counted", "timelines", "title"]


def timelines(recording: Recording) -> list[Timeline]:
    """Return a recording's timelines: random samples before constant, in turns before overlapped.

    Those with a limit to the rate come last.

    Raises
    ------
    ValueError
        Where it has none.
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


def title(one: Timeline) -> str:
    """Return what a timeline is of."""
    samples = "Random" if one.random else "Constant"
    way = "overlapped" if find_chapter(one.program).number == 5 else "in turns"
    where = f", {one.variant}" if one.variant else ""
    return f"{samples} samples, {way}{where}"

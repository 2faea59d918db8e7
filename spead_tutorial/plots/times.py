# SPDX-License-Identifier: BSD-3-Clause
"""The timelines of a recording, and what they are called."""

from spead_tutorial.catalogue import find_chapter
from spead_tutorial.plots.ladder import step_title
from spead_tutorial.records import Recording, Timeline

__all__ = ["timelines", "title"]


def timelines(recording: Recording) -> list[Timeline]:
    """Return a recording's timelines in the order of chapters, random samples before the fill.

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
            find_chapter(run.program).number,
            not run.random,
            run.language != "python",
        ),
    )


def title(one: Timeline) -> str:
    """Return the chapter of a timeline, and what became of the random samples."""
    return step_title(find_chapter(one.program), one.random)

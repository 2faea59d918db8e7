# SPDX-License-Identifier: BSD-3-Clause
"""The command that looks at the records of many revisions: ``python -m bench history``."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import click

from bench import history as history_module
from bench.history import Line, Track
from bench.machines import pooled
from bench.options import ChapterType, SizeType, Threshold, ThresholdType, thresholds
from spead_tutorial import plots
from spead_tutorial.catalogue import Chapter
from spead_tutorial.plots import History, HistoryLine, HistoryPanel
from spead_tutorial.records import RecordError, Recording, Sample
from spead_tutorial.units import bytes_text, size

__all__ = ["history"]

_FAILED = 1
_MOST_LINES = 8
_Found = list[tuple[Track, list[Line]]]


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--chapter", "chapters", type=ChapterType(), multiple=True, metavar="CHAPTER",
              help="Only this chapter's programs; may be repeated.")  # fmt: skip
@click.option("--heap-size", type=SizeType(), metavar="SIZE",
              help="Only heaps of this size: 8192, 64KiB, 1MiB.")  # fmt: skip
@click.option("--case", "words", metavar="TEXT", help="Only cases whose name has this in it.")
@click.option("--threshold", "limits", type=ThresholdType(), multiple=True,
              metavar="[CHAPTER=]SHARE",
              help="As for compare: changes that are smaller do not count.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
              help="Also draw it: an SVG, and a dark one beside it.")  # fmt: skip
def history(
    folder: Path,
    chapters: tuple[Chapter, ...],
    heap_size: int | None,
    words: str | None,
    limits: tuple[Threshold, ...],
    output: Path | None,
) -> int:
    """Say since which revisions programs have been faster or slower, by the records in FOLDER.

    All records in it are read, at any depth. What different machines measured is never joined.
    The exit status is 1 where a file could not be read.

    \b
    Example: python -m bench history results/history
    Example: python -m bench history results/history --chapter 10 --heap-size 1MiB -o ten.svg
    """
    if not folder.is_dir():
        raise RecordError(f"there is no folder {folder}")
    recordings, problems = history_module.read_all(folder)
    for problem in problems:
        click.echo(f"left out: {problem}", err=True)
    numbers = {chapter.number for chapter in chapters}

    def wanted(sample: Sample) -> bool:
        return (
            (not numbers or sample.chapter in numbers)
            and heap_size in (None, sample.heap_size)
            and (words is None or words in sample.case)
        )

    tracks = history_module.tracks(recordings)
    found = [(track, _lines(track, wanted, limits)) for track in tracks]
    found = [(track, lines) for track, lines in found if lines]
    if not found:
        raise RecordError(_why_nothing(recordings, wanted, folder))
    click.echo("\n\n".join(history_module.table(track, lines) for track, lines in found))
    if output is not None:
        for path in _draw(found, output):
            click.echo(path)
    return _FAILED if problems else 0


def _lines(
    track: Track, wanted: history_module.Wanted, limits: tuple[Threshold, ...]
) -> list[Line]:
    return history_module.lines_of(track, wanted, thresholds(limits))


def _why_nothing(
    recordings: Sequence[Recording], wanted: history_module.Wanted, folder: Path
) -> str:
    if not any(wanted(sample) for recording in recordings for sample in recording.samples):
        return f"the records in {folder} have no case that is asked for"
    return (
        f"no case that is asked for has rates of two revisions on one machine in {folder}: a"
        " history takes two"
    )


# ---------------------------------------------------------------------------------------
# The picture


def _draw(found: _Found, output: Path) -> list[Path]:
    """Draw lines, a panel for each track."""
    most = max(len(lines) for _, lines in found)
    if most > _MOST_LINES:
        raise RecordError(
            f"{most} lines are too many for a picture, which holds {_MOST_LINES}: choose by"
            " --chapter, --heap-size or --case"
        )
    if output.suffix != ".svg":
        raise RecordError(f"{output.name} does not end with .svg")
    output.parent.mkdir(parents=True, exist_ok=True)
    places = {line.place[1:] for _, lines in found for line in lines}
    panels = tuple(_panel(track, lines, one_size=len(places) == 1) for track, lines in found)
    title = "Rates over revisions"
    if len(places) == 1:
        ((heap_size, packet_size),) = places
        title += f", heaps of {size(heap_size)}, packets of {bytes_text(packet_size)}"
    newest = pooled([_newest(*one, samples=one is found[0]) for one in found])
    return plots.save(output, History(title, panels), newest)


def _panel(track: Track, lines: Sequence[Line], one_size: bool) -> HistoryPanel:
    def name(line: Line) -> str:
        series, heap_size, packet_size = line.place
        return f"{series}" if one_size else f"{series}, {size(heap_size)}/{packet_size}"

    return HistoryPanel(
        track.name,
        tuple(revision.name for revision in track.revisions),
        tuple(
            HistoryLine(
                line.place[0],
                name(line),
                line.rates,
                tuple((change.at, change.ratio) for change in line.changes if change.of_program),
            )
            for line in lines
        ),
    )


def _newest(track: Track, lines: Sequence[Line], *, samples: bool) -> Recording:
    """Return what a caption is to speak of: the newest revision, and the samples that it counts."""
    first, last = track.revisions[0], track.revisions[-1]
    places = {line.place for line in lines}
    header = dataclasses.replace(
        last.recording.header,
        revision=f"{first.name} to {last.name}",
        settings=last.recording.header.settings | {"drawn_by": "python -m bench history"},
    )
    counted = tuple(
        dataclasses.replace(sample, source=0)
        for sample in last.recording.samples
        if (sample.series, sample.heap_size, sample.packet_size) in places
    )
    return Recording(header, counted if samples else ())

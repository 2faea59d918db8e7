# SPDX-License-Identifier: BSD-3-Clause
"""The command that holds records against each other: ``python -m bench compare``."""

import math
from pathlib import Path

import click

from bench import compare as compare_module
from spead_tutorial.chapters.catalogue import Chapter, find_chapter
from spead_tutorial.measure.records import RecordError, Recording, read
from spead_tutorial.measure.search import settled
from spead_tutorial.tools.options import parsed

__all__ = ["compare"]

_FAILED = 1
_FILE = click.Path(dir_okay=False, path_type=Path)
#: A chapter's number, or None for all, and a share.
_Threshold = tuple[int | None, float]


def _threshold(text: str) -> _Threshold:
    """Take a share apart, such as ``0.05``; or that of a chapter, such as ``10=0.1``."""
    chapter, equals, share = text.rpartition("=")
    try:
        number = find_chapter(chapter).number if equals else None
        if not (0 <= float(share) < math.inf):
            raise ValueError
    except ValueError:
        raise ValueError(
            f"--threshold is {text!r}: it must be like 0.05, or like 10=0.1 for chapter 10"
        ) from None
    return number, float(share)


def _thresholds(given: tuple[_Threshold, ...]) -> compare_module.Thresholds:
    """Put together what was given; of two for the same, the last one counts."""
    shares = dict(given)
    general = shares.pop(None, compare_module.Thresholds().general)
    others = {number: share for number, share in shares.items() if number is not None}
    return compare_module.Thresholds(general, others)


@click.command()
@click.argument("one", type=_FILE)
@click.argument("other", type=_FILE, required=False)
@click.option("--before", metavar="NAME", help="Implementation to take of the first.")
@click.option("--after", metavar="NAME", help="Implementation to take of the second.")
@click.option("--chapter", "chapters", type=parsed(find_chapter), multiple=True, metavar="CHAPTER",
              help="Only points of this chapter's programs; may be repeated.")  # fmt: skip
@click.option("--threshold", "limits", type=parsed(_threshold), multiple=True,
              metavar="[CHAPTER=]SHARE",
              help="Differences that are smaller do not count (default 0.05); in one chapter:"
              " 10=0.1. May be repeated.")  # fmt: skip
@click.option("--different-machines", is_flag=True, help="Compare them all the same.")
def compare(
    one: Path,
    other: Path | None,
    before: str | None,
    after: str | None,
    chapters: tuple[Chapter, ...],
    limits: tuple[_Threshold, ...],
    different_machines: bool,
) -> int:
    """Say for each point whether OTHER is faster or slower than ONE, or one cannot tell.

    With one record and --before and --after, two implementations in it are compared, round by
    round. Of receivers that were looked at for their highest rate without loss, it is these rates
    that are compared. The exit status is 1 where something is slower, or failed.

    \b
    Example: python -m bench compare old/tut-10.jsonl new/tut-10.jsonl
    Example: python -m bench compare bench/results/tut-10.jsonl --before spead2 --after ours
    Example: python -m bench compare old.jsonl new.jsonl --chapter 10 --threshold 10=0.1
    """
    if other is None and (before is None or after is None):
        raise click.UsageError("give two records, or one with --before and --after")
    first = settled(read(one))
    second = first if other is None else settled(read(other))
    comparison = compare_module.compare(
        first,
        second,
        thresholds=_thresholds(limits),
        chapters={chapter.number for chapter in chapters},
        before=before,
        after=after,
        different_machines=different_machines,
    )
    if not comparison.verdicts:
        raise RecordError(_why_nothing(second, chapters))
    click.echo(compare_module.table(comparison))
    return _FAILED if any(v.word in ("slower", "failed") for v in comparison.verdicts) else 0


def _why_nothing(recording: Recording, chapters: tuple[Chapter, ...]) -> str:
    there = sorted({sample.chapter for sample in recording.samples if sample.chapter})
    if not chapters or not there:
        return "the records have no point in common"
    wanted, found = (", ".join(map(str, n)) for n in ([c.number for c in chapters], there))
    return f"the records have nothing of chapter {wanted}: they have {found}"

# SPDX-License-Identifier: BSD-3-Clause
"""Whether one thing is faster than another: ``python -m bench compare``.

Of each point it is the median of the ratios within rounds. Between two recordings these are rounds
of the same number, and what the machine did between the two is in the ratios.
"""

import dataclasses
import functools
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import click

from bench.status import Setting, by_setting
from spead_tutorial.chapters.catalogue import Chapter, Receiver, find_program
from spead_tutorial.measure.analysis import rates_by_round
from spead_tutorial.measure.baselines import CEILING
from spead_tutorial.measure.machine import different, facts_of
from spead_tutorial.measure.records import RecordError, Recording, Sample, read
from spead_tutorial.measure.search import settled
from spead_tutorial.measure.stats import Estimate, differs, gain, median, spread
from spead_tutorial.results.tables import Column, Table, estimate, filled
from spead_tutorial.tools.command_line import Number, parsed

FASTER, SLOWER, CANNOT_TELL = "faster", "slower", "cannot tell"
#: Of so few, the range covers too little for a verdict.
_FEWEST_ROUNDS = 5
#: How much a difference has to be for it to count, as a share.
_THRESHOLD = 0.05
_APART = (
    "The records were measured one after the other: what the machine did in between is in the"
    " ratios. (run --beside measures two builds in the same rounds.)"
)


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """One point of a comparison."""

    setting: Setting  # series (of the second), heap size and packet size
    before: Estimate | None  # payload bytes/s; None for one that failed, or is not there
    after: Estimate | None
    ratio: Estimate | None  # of the second to the first; None where one of them has no rate
    word: str  # `"faster"`, `"slower"`, `"cannot tell"`, or why there is no ratio


# ---- What is held against what ----


def compare(
    one: Recording,
    other: Recording,
    *,
    threshold: float = _THRESHOLD,
    chapters: Collection[int] = (),
    before: str | None = None,
    after: str | None = None,
    different_machines: bool = False,
) -> list[Verdict]:
    """Hold one recording against another, or one implementation against another in one."""
    _require(one, before)
    _require(other, after)
    if not different_machines:
        _require_one_machine(one, other)
    earlier, judged = by_setting(one), []
    for setting, theirs in by_setting(other).items():
        is_wanted = not chapters or theirs[0].chapter in chapters
        if is_wanted and after in (None, setting[0].implementation):
            mine = _partner(setting, earlier, before)
            judged.append(_judge(setting, (mine, theirs), threshold))
    return sorted(judged, key=lambda one: (one.setting[1:], str(one.setting[0])))


def _require(recording: Recording, implementation: str | None) -> None:
    there = sorted({sample.implementation for sample in recording.samples if not sample.warm_up})
    if implementation is not None and implementation not in there:
        raise RecordError(
            f"the record has nothing of {implementation!r}: it has {', '.join(there)}"
        )


def _require_one_machine(one: Recording, other: Recording) -> None:
    """Refuse what was not measured on one kind of machine, in the same lab."""
    found = different(facts_of(one.header), facts_of(other.header))
    if found:
        facts = "; ".join(f"{key}: {a} and {b}" for key, (a, b) in sorted(found.items()))
        raise RecordError(
            f"the records are of different machines ({facts[:300]}): --different-machines"
            " compares them all the same"
        )


def _partner(
    setting: Setting, first: dict[Setting, list[Sample]], implementation: str | None
) -> list[Sample]:
    """Find what a setting is to be held against: the same, of another implementation."""
    if implementation is None:
        return first.get(setting, [])
    series, *sizes = setting
    for (candidate, *its_sizes), samples in first.items():
        same = (candidate.program, candidate.variant) == (series.program, series.variant)
        if (
            candidate.implementation == implementation
            and (candidate.language, its_sizes) == (series.language, sizes)
            and (same or candidate.program == CEILING)
        ):
            return samples
    return []


# ---- Judging ----


def _judge(
    setting: Setting, samples: tuple[list[Sample], list[Sample]], threshold: float
) -> Verdict:
    before, after = map(rates_by_round, samples)
    first, second = (median(list(its.values())) if its else None for its in (before, after))
    made = functools.partial(Verdict, setting, first, second)
    if any(sample.failure is not None for its in samples for sample in its):
        return made(None, "failed")
    if not before or not after:
        return made(None, "only in one")
    if not before.keys() & after.keys():
        return made(None, "no common round")
    ratio = gain(before, after)
    return made(ratio, _word(ratio, threshold))


def _word(ratio: Estimate, threshold: float) -> str:
    """Say what a ratio is: never faster or slower where its interval has one in it."""
    if ratio.n < _FEWEST_ROUNDS or not differs(ratio):
        return CANNOT_TELL
    if ratio.median < 1 / (1 + threshold):
        return SLOWER
    return FASTER if ratio.median > 1 + threshold else CANNOT_TELL


# ---- Saying it ----


def table(verdicts: Sequence[Verdict], threshold: float, *notes: str) -> str:
    """Write a comparison as a table, and sum it up."""
    counts = dict.fromkeys((FASTER, SLOWER, CANNOT_TELL), 0)
    counts |= Counter(verdict.word for verdict in verdicts)
    summary = ", ".join(f"{n} {word}" for word, n in counts.items())
    said = f"{summary}. MB/s; a difference below {threshold:.0%} does not count."
    return "\n".join([_rows(verdicts), "", *map(filled, [said, *notes])])


def _rows(verdicts: Sequence[Verdict]) -> str:
    kind = spread(verdict.ratio.n for verdict in verdicts if verdict.ratio is not None)
    names: list[Column[Verdict]] = [
        Column("heap", lambda verdict: verdict.setting[1]),
        Column("packet", lambda verdict: verdict.setting[2]),
        Column("program", lambda verdict: verdict.setting[0], is_words=True),
    ]
    values: list[Column[Verdict]] = [
        Column("before", lambda verdict: verdict.before, _megabytes),
        Column("after", lambda verdict: verdict.after, _megabytes),
        *estimate(("ratio", kind), lambda verdict: verdict.ratio, "{:.2f}".format),
        Column("n", lambda verdict: verdict.ratio, lambda one: str(one.n)),
        Column("", lambda verdict: verdict.word, is_words=True),
    ]
    return str(Table(names, values, verdicts))


def _megabytes(rate: Estimate) -> str:
    return f"{rate.median / 1e6:.0f}"


# ---- The command ----


_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("compare")
@click.argument("one", type=_FILE)
@click.argument("other", type=_FILE, required=False)
@click.option("--before", metavar="NAME", help="Implementation to take of the first.")
@click.option("--after", metavar="NAME", help="Implementation to take of the second.")
@click.option("--chapter", "chapters", type=parsed(find_program), multiple=True, metavar="CHAPTER",
              help="Only points of this chapter's programs; may be repeated.")  # fmt: skip
@click.option("--threshold", type=Number(0), default=_THRESHOLD, show_default=True, metavar="SHARE",
              help="Differences that are smaller do not count.")  # fmt: skip
@click.option("--different-machines", is_flag=True, help="Compare them all the same.")
def command(
    one: Path, other: Path | None, chapters: tuple[Chapter | Receiver, ...], **how: Any
) -> int:
    """Say for each point whether OTHER is faster or slower than ONE, or one cannot tell.

    It is the median of the ratios within rounds that counts, unless its interval has 1 in it. With
    one record and --before and --after, two implementations in it are compared. Of receivers that
    were looked at for their highest rate without loss, it is these rates that are compared. The
    exit status is 1 where something is slower, or failed.

    \b
    Example: python -m bench compare old/tut-10.jsonl new/tut-10.jsonl
    Example: python -m bench compare bench/results/tut-10.jsonl --before spead2 --after ours
    Example: python -m bench compare old.jsonl new.jsonl --chapter 10 --threshold 0.1
    """
    if other is None and None in (how["before"], how["after"]):
        raise click.UsageError("give two records, or one with --before and --after")
    first = settled(read(one))
    second = first if other is None else settled(read(other))
    numbers = {chapter.number for chapter in chapters}
    verdicts = compare(first, second, chapters=numbers, **how)
    if not verdicts:
        raise RecordError(_why_nothing(second, chapters))
    click.echo(table(verdicts, how["threshold"], *[_APART] * (other is not None)))
    return int(any(verdict.word in (SLOWER, "failed") for verdict in verdicts))


def _why_nothing(recording: Recording, chapters: tuple[Chapter | Receiver, ...]) -> str:
    there = sorted({sample.chapter for sample in recording.samples if sample.chapter})
    if not chapters or not there:
        return "the records have no point in common"
    wanted, found = (", ".join(map(str, n)) for n in ([c.number for c in chapters], there))
    return f"the records have nothing of chapter {wanted}: they have {found}"

# SPDX-License-Identifier: BSD-3-Clause
"""Whether one thing is faster than another: ``python -m bench compare``.

Within a recording, ratios are taken within rounds. Between two recordings there are no common
rounds, and the whole machine may have become faster or slower in between: `bench.controls` says by
how much, and ratios are judged against that.
"""

import dataclasses
import functools
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import click

from bench.controls import STILL, Drift, drift
from bench.status import Setting, by_setting
from spead_tutorial.chapters.catalogue import Chapter, Receiver, find_program
from spead_tutorial.measure.analysis import rates_by_round
from spead_tutorial.measure.baselines import CEILING
from spead_tutorial.measure.machine import different, facts_of
from spead_tutorial.measure.records import RecordError, Recording, Sample, read
from spead_tutorial.measure.search import settled
from spead_tutorial.measure.stats import FEWEST, Estimate, differs, gain, median, ratio
from spead_tutorial.results.tables import Column, Table, ends, filled
from spead_tutorial.tools.command_line import Number, parsed

FASTER, SLOWER, CANNOT_TELL = "faster", "slower", "cannot tell"
#: Of so few, the range covers too little for a verdict.
_FEWEST_ROUNDS = 5
_JUDGED = (FASTER, SLOWER, CANNOT_TELL)
#: A difference that chance makes more often than this is not named.
SIGNIFICANCE = 0.05
#: How much a difference has to be for it to count, as a share.
_THRESHOLD = 0.05


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """One point of a comparison."""

    setting: Setting  # series (of the second), heap size and packet size
    before: Estimate | None  # payload bytes/s; None for one that failed, or is not there
    after: Estimate | None
    ratio: Estimate | None  # of the second to the first; None where one of them has no rate
    word: str  # `"faster"`, `"slower"`, `"cannot tell"`, or why there is no ratio
    chance: float = 0.0  # how likely such a difference is by chance alone


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    verdicts: tuple[Verdict, ...]  # in the order of sizes
    threshold: float  # a ratio has to be away from one, and from the drift, by more than this
    drift: Drift  # what the machine did


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
) -> Comparison:
    """Hold one recording against another, or one implementation against another in one."""
    _require(one, before)
    _require(other, after)
    if not different_machines:
        _require_one_machine(one, other)
    what = STILL if one is other else drift(one, other, threshold)
    earlier, judged = by_setting(one), []
    for setting, theirs in by_setting(other).items():
        is_wanted = not chapters or theirs[0].chapter in chapters
        if is_wanted and after in (None, setting[0].implementation):
            mine = _partner(setting, earlier, before)
            judged.append(_judge(setting, (mine, theirs), threshold, what))
    judged.sort(key=lambda one: (one.setting[1:], str(one.setting[0])))
    return Comparison(_only_the_significant(judged), threshold, what)


def _require(recording: Recording, implementation: str | None) -> None:
    there = sorted({sample.implementation for sample in recording.samples if not sample.warm_up})
    if implementation is not None and implementation not in there:
        raise RecordError(
            f"the record has nothing of {implementation!r}: it has {', '.join(there)}"
        )


def _require_one_machine(one: Recording, other: Recording) -> None:
    """Refuse what was not measured on one kind of machine, in the same lab."""
    for header in (*one.headers, *other.headers):
        found = different(facts_of(one.header), facts_of(header))
        facts = "; ".join(f"{key}: {a} and {b}" for key, (a, b) in sorted(found.items()))
        if found:
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
    setting: Setting,
    samples: tuple[list[Sample], list[Sample]],
    threshold: float,
    drift: Drift,
) -> Verdict:
    """Judge a point: by ratios within rounds, if it was measured in the same."""
    before, after = map(rates_by_round, samples)
    first, second = (median(list(its.values())) if its else None for its in (before, after))
    made = functools.partial(Verdict, setting, first, second)
    if any(sample.failure is not None for its in samples for sample in its):
        return made(None, "failed")
    if not before or not after:
        return made(None, "only in one")
    if drift is STILL:
        if not before.keys() & after.keys():
            raise RecordError("the two have no round in common: they were not measured together")
        estimate, chance = gain(before, after), 0.0
    else:
        earlier, later = list(before.values()), list(after.values())
        expected = [rate * drift.ratio for rate in earlier]
        estimate = ratio(earlier, later)
        chance = float(_scipy_stats().mannwhitneyu(expected, later).pvalue)
    return made(estimate, _word(estimate, threshold, drift), chance)


def _word(ratio: Estimate, threshold: float, drift: Drift) -> str:
    """Say what a ratio is, if it is no accident: never one of which the interval has one in it.

    A point is not faster for having stayed where it was while the machine became slower. And what
    became faster beside it, be it the machine or a control by itself, makes it no less slow.
    """
    least = min(1.0, drift.ratio) / (1 + threshold)
    most = max(1.0, drift.ratio) * (1 + threshold)
    if ratio.n < _FEWEST_ROUNDS or not differs(ratio):
        return CANNOT_TELL
    if ratio.median < min(least, drift.low):
        return SLOWER
    return FASTER if ratio.median > max(most, drift.high) else CANNOT_TELL


def _only_the_significant(judged: list[Verdict]) -> tuple[Verdict, ...]:
    """Take back what may be an accident."""
    compared = [one for one in judged if one.word in _JUDGED]
    chances = corrected([one.chance for one in compared])
    accidents = {id(one) for one, p in zip(compared, chances, strict=True) if p > SIGNIFICANCE}
    return tuple(
        dataclasses.replace(one, word=CANNOT_TELL) if id(one) in accidents else one
        for one in judged
    )


def corrected(chances: list[float]) -> list[float]:
    """Correct probabilities: of points that are called faster or slower, one in 20 may be wrong."""
    # Benjamini and Hochberg, 1995. To be right about all (Holm, 1979) takes more than quick runs.
    return [float(p) for p in _scipy_stats().false_discovery_control(chances)] if chances else []


def _scipy_stats() -> Any:
    try:
        from scipy import stats
    except ImportError:
        raise RecordError("this needs SciPy: pip install 'spead-tutorial[bench]'") from None
    return stats


# ---- Saying it ----


def table(found: Comparison) -> str:
    """Write a comparison as a table, and sum it up."""
    counts = dict.fromkeys(_JUDGED, 0) | Counter(verdict.word for verdict in found.verdicts)
    summary = ", ".join(f"{n} {word}" for word, n in counts.items())
    notes = [f"{summary}. MB/s; a difference below {found.threshold:.0%} does not count."]
    notes += [f"{line}." for line in found.drift.why]
    return "\n".join([_rows(found), "", *map(filled, notes)])


def _rows(found: Comparison) -> str:
    kinds = {_kind(verdict.ratio) for verdict in found.verdicts if verdict.ratio is not None}
    kind = kinds.pop() if len(kinds) == 1 else ""

    def named_ends(verdict: Verdict) -> str | None:
        if verdict.ratio is None:
            return None
        both = ends(verdict.ratio, "{:.2f}".format)
        return both if kind else f"{both} {_kind(verdict.ratio)}"

    names: list[Column[Verdict]] = [
        Column("heap", lambda verdict: verdict.setting[1]),
        Column("packet", lambda verdict: verdict.setting[2]),
        Column("program", lambda verdict: verdict.setting[0], is_words=True),
    ]
    values: list[Column[Verdict]] = [
        Column("before", lambda verdict: verdict.before, _megabytes),
        Column("after", lambda verdict: verdict.after, _megabytes),
        Column("ratio", lambda verdict: verdict.ratio, lambda one: f"{one.median:.2f}"),
        Column(kind, named_ends, is_words=True),
        Column("", lambda verdict: verdict.word, is_words=True),
    ]
    return str(Table(names, values, found.verdicts))


def _megabytes(rate: Estimate) -> str:
    return f"{rate.median / 1e6:.0f}"


def _kind(ratio: Estimate) -> str:
    """Say what the ends of an estimate are."""
    return "95 % interval" if ratio.n >= FEWEST else f"range of {ratio.n}"


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

    With one record and --before and --after, two implementations in it are compared, round by
    round. Of receivers that were looked at for their highest rate without loss, it is these rates
    that are compared. The exit status is 1 where something is slower, or failed.

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
    comparison = compare(first, second, chapters=numbers, **how)
    if not comparison.verdicts:
        raise RecordError(_why_nothing(second, chapters))
    click.echo(table(comparison))
    return int(any(verdict.word in (SLOWER, "failed") for verdict in comparison.verdicts))


def _why_nothing(recording: Recording, chapters: tuple[Chapter | Receiver, ...]) -> str:
    there = sorted({sample.chapter for sample in recording.samples if sample.chapter})
    if not chapters or not there:
        return "the records have no point in common"
    wanted, found = (", ".join(map(str, n)) for n in ([c.number for c in chapters], there))
    return f"the records have nothing of chapter {wanted}: they have {found}"

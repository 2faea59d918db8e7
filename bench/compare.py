# SPDX-License-Identifier: BSD-3-Clause
"""Whether one thing is faster than another: ``python -m bench compare``.

Of each point it is the median of the ratios within rounds.
"""

import dataclasses
import functools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from bench.status import Setting, by_setting
from spead_tutorial.measure.analysis import rates_by_round
from spead_tutorial.measure.baselines import CEILING
from spead_tutorial.measure.records import RecordError, Recording, Sample, read
from spead_tutorial.measure.search import settled
from spead_tutorial.measure.stats import Estimate, differs, gain, median, spread
from spead_tutorial.results.tables import Column, Table, estimate, filled
from spead_tutorial.tools.command_line import Number

FASTER, SLOWER, CANNOT_TELL = "faster", "slower", "cannot tell"
#: Of so few, the range covers too little for a verdict.
_FEWEST_ROUNDS = 5
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


# ---- What is held against what ----


def compare(
    recording: Recording, before: str, after: str, threshold: float = _THRESHOLD
) -> list[Verdict]:
    """Hold one implementation against another one of the same rounds."""
    _require(recording, before)
    _require(recording, after)
    there = by_setting(recording)
    judged = [
        _judge(setting, (_partner(setting, there, before), theirs), threshold)
        for setting, theirs in there.items()
        if setting[0].implementation == after
    ]
    return sorted(judged, key=lambda one: (one.setting[1:], str(one.setting[0])))


def _require(recording: Recording, implementation: str) -> None:
    there = sorted({sample.implementation for sample in recording.samples if not sample.warm_up})
    if implementation not in there:
        raise RecordError(
            f"the record has nothing of {implementation!r}: it has {', '.join(there)}"
        )


def _partner(
    setting: Setting, there: dict[Setting, list[Sample]], implementation: str
) -> list[Sample]:
    """Find what a setting is to be held against: the same, of another implementation."""
    series, *sizes = setting
    for (candidate, *its_sizes), samples in there.items():
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


def table(verdicts: Sequence[Verdict], threshold: float) -> str:
    """Write a comparison as a table, and sum it up."""
    counts = dict.fromkeys((FASTER, SLOWER, CANNOT_TELL), 0)
    counts |= Counter(verdict.word for verdict in verdicts)
    summary = ", ".join(f"{n} {word}" for word, n in counts.items())
    said = f"{summary}. MB/s; a difference below {threshold:.0%} does not count."
    return f"{_rows(verdicts)}\n\n{filled(said)}"


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


@click.command("compare")
@click.argument("record", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--before", metavar="NAME", required=True, help="The implementation to compare with.")
@click.option("--after", metavar="NAME", required=True, help="The one to judge.")
@click.option("--threshold", type=Number(0), default=_THRESHOLD, show_default=True, metavar="SHARE",
              help="Differences that are smaller do not count.")  # fmt: skip
def command(record: Path, before: str, after: str, threshold: float) -> int:
    """Say for each point of RECORD whether one implementation is faster or slower than another.

    It is the median of the ratios within rounds that counts, unless its interval has 1 in it. Of
    receivers that were looked at for their highest rate without loss, it is these rates that are
    compared. The exit status is 1 where something is slower, or failed.

    \b
    Example: python -m bench compare bench/results/heap-sizes.jsonl --before spead2 --after ours
    Example: python -m bench compare new.jsonl --before old --after ours --threshold 0.1
    """
    verdicts = compare(settled(read(record)), before, after, threshold)
    click.echo(table(verdicts, threshold))
    return int(any(verdict.word in (SLOWER, "failed") for verdict in verdicts))

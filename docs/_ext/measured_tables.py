# SPDX-License-Identifier: BSD-3-Clause
"""Tables of what was measured, which the directive of ``tables.py`` shows.

    best RECORD         the fastest of some programs beside that of others, compared within rounds;
        ours c | spead2-source      the line has the words for both, as the roles take them
    goals RECORD        how many times as fast the best of some programs is as that of others, or,
        the best in C | 1.3 | ours c | spead2-source    after ``cpu``, what multiple of the
                        others' CPU time it takes; what was asked for stands before both sides
    sizes RECORD        what the gain role says, with its interval: a column for each line
        Chapter 13 | tut_13_send_hot c -> cpp
    ladder RECORD VARIANT   what each chapter gained over the one before it; both may be left out
    over-best RECORD    what each program gained over the best of those before it, at three sizes;
        tut_8_send_reuse_memory     a line has a program, and the first is only compared with
    parts SIZE          the time of a heap, part by part: see splits.py
    machines LANGUAGE   a row for the ladder of each machine of which there is a record

The role ``best-ends`` says the least and the most of what ``best`` has: it takes a record, and its
line.

The first three are for each size of heaps that a record has. What was not measured is a dash.
"""

import contextlib
import dataclasses
import html
import os
import shlex
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from listings import ROOT, chapter_page
from measured import (
    SAYS,
    Choice,
    Measured,
    Said,
    UnknownError,
    gain_estimate,
    machine_facts,
    megabytes,
    recording,
)
from sphinx.application import Sphinx
from splits import parts
from tables import KINDS, Table

from bench.figures import RESULTS
from spead_tutorial.chapters.catalogue import (
    LADDER,
    LANGUAGES,
    MEASURED,
    NAMES,
    STEPS,
    Chapter,
    find_chapter,
)
from spead_tutorial.measure import stats
from spead_tutorial.measure.analysis import cpu_s_per_gb, rates_by_round
from spead_tutorial.measure.records import OURS, Sample
from spead_tutorial.results import units
from spead_tutorial.results.units import number

NOTHING = "-"
#: The sizes of heaps at which programs are chained, largest first.
SIZES = tuple(sorted({rung.heap_size for rung in LADDER}, reverse=True))
_RECORD = "ladder"
_KIB = 1024
_ROUTED = (8 * _KIB, 64 * _KIB, _KIB * _KIB)  # sizes that stand for small, middle and large heaps
#: What may tell machines apart, and how it is said.
_APART = {
    "cpu": "{}",
    "cores": "{} cores",
    **{one: f"{{}} of {one}" for one in ("L1d", "L2", "L3")},
}
#: The last chapter of which each program sends in one thread, and the bare loop that does so, too:
#: how many streams chapter 14 has depends on the machine.
_ONE_THREAD, _BARE = find_chapter("13"), '"one thread"'


def heap_sizes(record: str) -> list[int]:
    return sorted({sample.heap_size for sample in recording(record).samples})


def word(heap_size: int) -> str:
    """Return a size of heaps as roles take it."""
    return units.size(heap_size).replace(" ", "").replace("bytes", "B")


# ---- The best of some programs beside the best of others ----


@dataclasses.dataclass(frozen=True, slots=True)
class Best:
    """What won at a size: its name, and what it took and cost in each round."""

    name: str
    rates: dict[int, float]  # by round
    costs: dict[int, float]  # CPU seconds for 10⁹ bytes


def best(record: str, words: str, heap_size: int) -> Best:
    """Return the series with the highest median rate of those that the words choose."""
    series: dict[str, list[Sample]] = {}
    for sample in Choice(record).changed([*shlex.split(words), word(heap_size)]).candidates():
        if sample.rate is not None:
            name = sample.variant if sample.implementation == "ceiling" else sample.program
            series.setdefault(name, []).append(sample)
    if not series:
        raise UnknownError(f"{record} has no sample of {words} with heaps of {heap_size} bytes")
    rates = {name: rates_by_round(samples) for name, samples in series.items()}
    name = max(rates, key=lambda name: stats.median(list(rates[name].values())).median)
    costs = {one.round: cpu_s_per_gb(one) or 0.0 for one in series[name]}
    return Best(name, rates[name], costs)


def best_of(record: str, sides: str) -> Table:
    heads = ("Heap", "ours", "MB/s", "spead2", "MB/s", "times as fast", "CPU time")
    rows = [
        _best_row(size, *(best(record, words.strip(), size) for words in sides.split("|")))
        for size in heap_sizes(record)
    ]
    return Table([heads, *rows], widths=(3, 5, 3, 5, 3, 7, 4))


def best_ends(words: str) -> Said:
    """Say how many times as fast the best of some programs is at least, and at most, by size."""
    record, _, sides = words.partition(" ")
    gains: dict[int, stats.Estimate] = {}
    for size in heap_sizes(record):
        with contextlib.suppress(UnknownError):  # not every program was measured at every size
            ours, theirs = (best(record, side.strip(), size) for side in sides.split("|"))
            gains[size] = stats.gain(theirs.rates, ours.rates)
    if not gains:
        raise UnknownError(f"{record} has no size at which both sides of {sides!r} were measured")
    low, high = (pick(gains, key=lambda size: gains[size].median) for pick in (min, max))
    detail = ", ".join(
        f"{units.size(size)}: {gains[size].low:.2f} to {gains[size].high:.2f}"
        for size in dict.fromkeys((low, high))
    )
    return Said(f"{gains[low].median:.2f} to {gains[high].median:.2f}", detail, record)


def _best_row(size: int, ours: Best, theirs: Best) -> tuple[str, ...]:
    gained, cost = stats.gain(theirs.rates, ours.rates), stats.gain(theirs.costs, ours.costs)
    return (
        units.size(size),
        _named(ours),
        megabytes(stats.median(list(ours.rates.values())).median),
        _named(theirs),
        megabytes(stats.median(list(theirs.rates.values())).median),
        f"{gained.median:.2f} [{gained.low:.2f}, {gained.high:.2f}]",
        f"{number(cost.median)} times",
    )


def _named(of: Best) -> str:
    """Return what a reader calls it: a chapter, or what is special of a bare loop."""
    if not of.name.startswith("tut_"):
        return of.name
    chapter = find_chapter(of.name)
    step = f", {chapter.title.lower()}" if chapter in STEPS else ""
    return f"chapter {chapter.number}{step}"


def goals(record: str, *lines: str) -> Table:
    sizes = heap_sizes(record)
    rows = [("What", "Asked", *map(units.size, sizes))]
    for line in lines:
        what, asked, ours, theirs = (part.strip() for part in line.split("|"))
        value = "costs" if ours.startswith("cpu ") else "rates"
        words = theirs, ours.removeprefix("cpu ")
        cells = [known(_times, record, words, size, value) for size in sizes]
        if set(cells) == {NOTHING}:
            raise UnknownError(f"{record} has no sample of {ours!r} and of {theirs!r} at one size")
        rows.append((what, asked, *cells))
    return Table(rows)


def _times(record: str, words: tuple[str, str], size: int, value: str) -> str:
    before, after = (getattr(best(record, name, size), value) for name in words)
    return f"{stats.gain(before, after).median:.2f}"


def known(say: Callable[..., str], *of: Any) -> str:
    """Return what is said, or a dash where it was not measured."""
    try:
        return say(*of)
    except UnknownError:
        return NOTHING


# ---- Gains, as the role says them ----


def with_interval(words: str) -> str:
    """Return a gain as a role, and its interval."""
    estimate = gain_estimate(words)
    ends = f"[{estimate.low:.3g},\N{NO-BREAK SPACE}{estimate.high:.3g}]"
    return f"{{gain}}`{words}` {ends}" + " (range)" * (estimate.n < stats.FEWEST)


def sizes(record: str, *lines: str) -> Table:
    """Return gains at each size of heaps; a size at which there is none is left out."""
    names, columns = zip(*(line.split(" | ") for line in lines), strict=True)
    rows = [("Heaps of", *names)]
    for size in heap_sizes(record):
        cells = [known(with_interval, f"{record} {word(size)} {words}") for words in columns]
        if set(cells) != {NOTHING}:
            rows.append((units.size(size), *cells))
    if len(rows) == 1:
        raise UnknownError(f"{record} has no sample of what {', '.join(columns)} say")
    return Table(rows)


def ladder(record: str = _RECORD, variant: str = "") -> Table:
    there = {one.language for one in recording(record).samples if one.implementation == OURS}
    columns = [(size, language) for size in SIZES for language in LANGUAGES if language in there]
    rows = [("Chapter", *(f"{units.size(size)}, {NAMES[language]}" for size, language in columns))]
    for pair in steps():
        chapter = find_chapter(pair[1])
        words = chapter.change if chapter in STEPS else chapter.title
        link = f"[{chapter.number}]({chapter_page(chapter.number)})"
        cells = [gain_cell(pair, *column, record, variant) for column in columns]
        if set(cells) != {NOTHING}:
            rows.append((f"{link}: {words[0].lower()}{words[1:]}", *cells))
    return Table(rows)


def over_best(record: str, *lines: str) -> Table:
    columns = [(size, language) for size in _ROUTED for language in MEASURED]
    rows = [("Chapter", *(f"{units.size(size)}, {NAMES[language]}" for size, language in columns))]
    for n, line in enumerate(lines[1:], 1):
        chapter = find_chapter(shlex.split(line)[0])
        cells = [_over_best(record, lines[: n + 1], *column) for column in columns]
        rows.append((f"[]({chapter_page(chapter.number)})", *cells))
    return Table(rows)


def _over_best(record: str, lines: Sequence[str], heap_size: int, language: str) -> str:
    """Return the gain of the last program over the best of the others, bold where it is sure."""
    found = [best(record, f"ours {language} {line}", heap_size) for line in lines]
    medians = [stats.median(list(one.rates.values())).median for one in found]
    before = found[max(range(len(found) - 1), key=medians.__getitem__)]
    gained = stats.gain(before.rates, found[-1].rates)
    text = f"{gained.median:.2f}"
    ends = f"[{gained.low:.2f}, {gained.high:.2f}]"
    return f"**{text}** {ends}" if gained.low > 1 else f"{text} {ends}"


def steps() -> list[tuple[str, str]]:
    """Return each program of the ladder with the one before it."""
    return list({pair: None for size in SIZES for pair in pairs(size)})


def pairs(size: int) -> list[tuple[str, str]]:
    return list(pairwise(rung.program for rung in LADDER if rung.heap_size == size))


def gain_cell(
    pair: tuple[str, str], heap_size: int, language: str, record: str = _RECORD, variant: str = ""
) -> str:
    """Return a gain; a dash where it is not in the ladder, or was not measured."""
    if pair not in pairs(heap_size):
        return NOTHING
    before, after = pair
    words = f"{record} {language} {word(heap_size)} {before}"
    return known(with_interval, f'{words} "variant={variant}" -> {after}')


# ---- Machines ----


def machines(language: str) -> Table:
    """Return a row for each machine, with what it says of programs in a language."""
    heads = ["Machine"]
    for heap_size in SIZES:
        first, last = _ends(heap_size)
        at = f"heaps of {units.size(heap_size)}"
        heads += [f"Chapter {one.number}, {at}" for one in (first, last)]
        heads += [f"Gain, {at}", f"Chapter {_ONE_THREAD.number} of bare loop, {at}"]
    heads += ["Processor", "Cores", "Virtual machine, container", "Kernel", "Device", "Date"]
    names = [_RECORD, *(f"machines/{one.stem}" for one in sorted(RESULTS.glob("machines/*.jsonl")))]
    apart = _told_apart([machine_facts(recording(name)) for name in names])
    rows = [_machine(name, its, language) for name, its in zip(names, apart, strict=True)]
    return Table([[*heads, "Rounds", "Revision"], *rows], stubs=1, classes=["machines"])


def _ends(heap_size: int) -> tuple[Chapter, Chapter]:
    """Return the first program whose gain is chained at a size of heaps, and the last."""
    programs = [find_chapter(one.program) for one in LADDER if one.heap_size == heap_size]
    chained = [one for one in programs if one.takes_destination]
    first = min(one.number for one in chained)
    # Of the chapter that is the first, the step from which the next chapter goes on.
    return [one for one in chained if one.number == first][-1], chained[-1]


def _told_apart(machines: list[dict[str, str]]) -> list[str]:
    """Say of each machine what it does not share with all others; equal ones have numbers."""
    apart = [name for name in _APART if len({one.get(name) for one in machines}) > 1]
    names = [
        ", ".join(_APART[name].format(one[name]) for name in apart if name in one) or one["cpu"]
        for one in machines
    ]
    before = [names[:n].count(name) for n, name in enumerate(names)]
    return [f"{name} ({n + 1})" if n else name for n, name in zip(before, names, strict=True)]


def _machine(record: str, name: str, language: str) -> list[str]:
    path = os.path.relpath(RESULTS / f"{record}.jsonl", ROOT / "docs")
    row = [f"{{download}}`{html.escape(name)} <{path}>`" + " (reference)" * (record == _RECORD)]
    for heap_size in SIZES:
        first, last = (one.name for one in _ends(heap_size))
        words = f"{record} {language} {word(heap_size)}"
        loop = f"{record} {word(heap_size)} {_BARE}"
        row += [
            known(_role, "rate", f"{words} {first}"),
            known(_role, "rate", f"{words} {last}"),
            known(_role, "gain", f"{words} {first} -> {last}"),
            known(_role, "of-ceiling", f"{loop} -> {language} {_ONE_THREAD.name}"),
        ]
    facts = machine_facts(recording(record))
    what = ("cpu", "cores", "virtualisation", "kernel", "lab")
    date = recording(record).header.time[:10]
    row += [*(html.escape(facts[one]) for one in what), date]
    return [*row, facts["rounds"], facts["revision"]]


def _role(name: str, words: str) -> str:
    SAYS[name](words)  # refused here where it was not measured
    return f"{{{name}}}`{words}`"


def setup(app: Sphinx) -> dict[str, bool]:
    KINDS.update(best=best_of, goals=goals, ladder=ladder, parts=parts, sizes=sizes)
    KINDS.update({"machines": machines, "over-best": over_best})
    app.add_role("best-ends", Measured(best_ends))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 5: when the program prepares each heap, and when its messages leave."""

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any, TypeAlias

from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.measure.analysis import (
    Interval,
    burst,
    first_steady,
    preparing,
    sending,
    shares,
    silence,
    waiting,
)
from spead_tutorial.measure.records import Recording, Spacing, Timeline, joined
from spead_tutorial.measure.stats import Estimate, differs, gain, median
from spead_tutorial.results.plots import facts
from spead_tutorial.results.plots.bars import part_style
from spead_tutorial.results.plots.render import Artist, Axes, Drawn, say
from spead_tutorial.results.plots.sheet import FAINT, Sheet, count_down, write
from spead_tutorial.results.plots.theme import NAMES, WIDTH, Theme
from spead_tutorial.results.units import number, percent, size

#: The two ways to send.
_IN_TURNS, OVERLAPPED = "in turns", "overlapped"
#: Runs to be compared: the same samples, sent to the same place.
Group: TypeAlias = Sequence[Timeline]


def mode(run: Timeline | Spacing) -> str:
    """Return whether it was in turns or overlapped."""
    return OVERLAPPED if find_chapter(run.program).number >= 5 else _IN_TURNS


def _kind(run: Timeline | Spacing) -> str:
    return "Random samples" if run.random else "Constant samples"


# ---- When each heap is prepared, and sent ----

_HEAPS = 7
_SIDES = (0.86, 0.2)
#: Inches: the room above a block and its height; in it, its rows of bars, and how high they are.
_ROOM, _HEIGHT = 0.36, 1.1
_PROGRAM, _NETWORK, _BAR = 0.36, 0.88, 0.26
#: Inches from the number of a heap to that of the next, at least; and of what is said of a gap.
_NUMBER, _WORD = 0.18, 0.46
#: When the network thread has nothing to do for so large a part of what is shown, it says so.
_LONG = 0.1


def timeline(recording: Recording, theme: Theme) -> Drawn:
    """Draw a block for each run of those samples where overlapping changes most, on one scale."""
    runs = timelines(recording)
    groups = [
        list(runs_of) for _, runs_of in groupby(runs, key=lambda run: (run.variant, run.random))
    ]
    group = max(groups, key=_change)
    span, first = _span(group), group[0]
    shown = " or ".join(dict.fromkeys(map(_counted, group)))
    sheet = Sheet(
        theme,
        _title(group),
        [(_ROOM, _HEIGHT)] * len(group),
        facts.caption(
            recording, f"times of one run each, bars: heaps from its middle, shares: {shown}"
        ),
        subtitle=f"{joined(_kind(first), first.variant)}, heaps of {size(first.heap_size)},"
        f" in {NAMES[first.language]}",
        legend=[_patch(theme, role) for role in ("preparing", "waiting", "sending")],
        columns=3,
    )
    for row, run in enumerate(group):
        axis = sheet.axes(row, *_SIDES)
        _draw_block(axis, run, span, theme)
        write(axis, mode(run).capitalize(), (0, 1), (0, 2), "axes fraction", va="bottom")
        _say_block(axis, run, span)
        axis.tick_params(axis="x", labelbottom=run is group[-1])
    axis.set_xlabel("time in ms")
    return sheet.drawn(
        "A block for each program; in it, bars in time: when the program prepares each heap and"
        " when it waits, and when the network thread sends each heap."
    )


def timelines(recording: Recording) -> list[Timeline]:
    """Return a recording's timelines: by link, random samples first, in turns before overlapped."""
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


def _counted(run: Timeline) -> str:
    """Return which heaps of a timeline its shares are of."""
    return f"heaps {first_steady(run)} to {len(run.prepare_ns) - 1}"


def title(run: Timeline) -> str:
    """Return what a timeline is of."""
    return joined(_kind(run), mode(run), run.variant)


def _span(group: Group) -> int:
    """Return for how many ns each run of a group is shown: none of them ends before."""
    shown, left = [], []
    for run in group:
        heaps = _first_heaps(run)
        begin = run.prepare_ns[heaps[0]]
        shown.append(max(_end(run, heap) for heap in heaps) - begin)
        left.append(max(_end(run, heap) for heap in range(heaps[0], len(run.prepare_ns))) - begin)
    return min(max(shown), *left) or 1


def _first_heaps(run: Timeline) -> range:
    """Return a few heaps from the middle of a run."""
    n = len(run.prepare_ns)
    first = max(0, n - _HEAPS) // 2
    return range(first, min(n, first + _HEAPS))


def _end(run: Timeline, heap: int) -> int:
    return max(run.resumed_ns[heap], run.last_packet_ns[heap])


def _change(group: Group) -> float:
    """Return by how much overlapping changes what share of the time the network thread works."""
    busy = [shares(run).sending for run in group]
    return abs(busy[-1] - busy[0])


def _title(group: Group) -> str:
    """Say how busy the network thread is, overlapped and in turns."""
    first, last = (percent(shares(run).sending) for run in (group[0], group[-1]))
    if len(group) < 2:
        return f"{mode(group[0]).capitalize()}, the network thread works {first}"
    return f"{OVERLAPPED.capitalize()}, the network thread works {last}, not {first}"


def _draw_block(axis: Axes, run: Timeline, span: int, theme: Theme) -> None:
    begin, most = run.prepare_ns[_first_heaps(run)[0]], span / 1e6

    def inside(intervals: Sequence[Interval]) -> list[tuple[int, float, float]]:
        """Return which of them are shown, and their ends in ms."""
        ms = [((start - begin) / 1e6, (end - begin) / 1e6) for start, end in intervals]
        return [(heap, *ends) for heap, ends in enumerate(ms) if ends[0] < most and ends[1] > 0]

    axis.set_xlim(0, most)
    count_down(axis, _HEIGHT, {_PROGRAM: "program", _NETWORK: "network\nthread"})
    apart = _NUMBER * most / (WIDTH - sum(_SIDES))
    sent = inside(sending(run))
    above: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": FAINT}
    for y, role, shown in (
        (_PROGRAM, "preparing", inside(preparing(run))),
        (_NETWORK, "sending", sent),
    ):
        last = -apart
        for heap, left, right in shown:
            axis.barh(y, right - left, _BAR, left, **_fill(theme, role, pale=heap % 2 == 1))
            middle = (max(left, 0) + min(right, most)) / 2
            if middle - last >= apart:
                axis.text(middle, y - _BAR / 2 - 0.04, f"{heap}", **above)
                last = middle
    for _, left, right in inside(waiting(run)):
        axis.barh(_PROGRAM, right - left, _BAR, left, **_fill(theme, "waiting"))
    # In the longest gap between two heaps, the network thread has nothing to do.
    ends = sorted((left, right) for _, left, right in sent)
    gaps = [(after[0] - before[1], before[1]) for before, after in pairwise(ends)]
    longest, start = max(gaps, default=(0.0, 0.0))
    if longest >= _LONG * most and longest / most * (WIDTH - sum(_SIDES)) >= _WORD:
        centre: dict[str, Any] = {"ha": "center", "va": "center", "style": "italic"}
        axis.text(start + longest / 2, _NETWORK, "asleep", fontsize=FAINT, **centre)


def _fill(theme: Theme, role: str, pale: bool = False) -> dict[str, Any]:
    """Return how a bar of time is filled: those of work have a colour."""
    if role not in theme.colours:
        return {**part_style(None, theme), "hatch": "/////" if role == "waiting" else ""}
    colour = theme.colours[role]
    front = theme.pale(role) if pale else colour
    return {"facecolor": front, "edgecolor": colour, "linewidth": 1}


def _patch(theme: Theme, role: str) -> Artist:
    """Return what a legend shows of such a bar."""
    from matplotlib.patches import Patch

    return Patch(label=role, **_fill(theme, role))


def _say_block(axis: Axes, run: Timeline, span: int) -> None:
    """Say which heaps are begun within what is shown, and what their times are."""
    first = _first_heaps(run)[0]
    begins = [time for time in run.prepare_ns[first:] if time < run.prepare_ns[first] + span]
    shown = f"heaps {first} to {first + len(begins) - 1} of {len(run.prepare_ns)}"
    parts = shares(run)
    busy = (
        f"network thread busy {percent(parts.sending)} of the time, program preparing"
        f" {percent(parts.preparing)}, waiting {percent(parts.waiting)}"
    )
    middle = f"{_milliseconds(preparing(run))} ms to prepare, {_milliseconds(sending(run))} ms"
    words = f"{shown}, {number(span / 1e6)} ms; {busy}; median of a heap: {middle} to send"
    say(axis, title(run), words)


def _milliseconds(intervals: Sequence[Interval]) -> str:
    return number(median([(end - begin) / 1e6 for begin, end in intervals]).median)


# ---- When the messages of a program leave, heap by heap ----

_SPACING_SIDES = (0.98, 0.2)
#: Inches: the room above the rows, the height of each, and of the lines in it.
_ROWS_ROOM, _ROW, _STROKE = 0.1, 0.6, 0.3
#: As many heaps of its slowest row are shown.
_FEW = 3
#: The rounds of one program, and those of the programs with the same samples and link.
_Rounds: TypeAlias = list[Spacing]
_Block: TypeAlias = list[_Rounds]


def spacing(recording: Recording, theme: Theme) -> Drawn:
    """Draw when messages leave, a row for each program, where overlapping changes most."""
    runs = [run for run in recording.spacings if run.failure is None]
    blocks = _blocks(runs)
    block = blocks[facts.strongest({n: {"": _gain(block)} for n, block in enumerate(blocks)})]
    # It is shown for as long as the slowest of its programs takes.
    span = max(end - begin for begin, end in (_few_heaps(_middle(rounds)) for rounds in block))
    first = block[0][0]
    where = joined(_kind(first), first.variant or "no limit", f"in {NAMES[first.language]}")
    sheet = Sheet(
        theme,
        _most_at_once(block),
        [(_ROWS_ROOM, _ROW * len(block))],
        facts.caption(recording, _shown(runs)),
        subtitle=f"When packets leave: {where[0].lower()}{where[1:]}",
        legend=_legend(theme),
    )
    axis = sheet.axes(0, *_SPACING_SIDES)
    _draw_rows(axis, block, span, theme)
    axis.set_xlabel("time in ms")
    return sheet.drawn(
        "A row for each program, with a line in time for each message that the device gets. Of"
        " each heap, the longest silence between its messages, and the most that a queue must"
        " hold which is emptied at the heap's average rate."
    )


def _blocks(runs: Sequence[Spacing]) -> list[_Block]:
    """Sort what was measured: by link and samples, the slowest first; then by chapter."""
    found: dict[tuple[str, bool], dict[str, _Rounds]] = {}
    for run in runs:
        block = found.setdefault((run.variant, not run.random), {})
        block.setdefault(run.program, []).append(run)
    if not found:
        raise ValueError("the recording has no spacing: python -m bench run spacing")
    return [
        [of[name] for name in sorted(of, key=lambda name: find_chapter(name).number)]
        for _, of in sorted(found.items())
    ]


def _most_at_once(block: _Block) -> str:
    """Say how much leaves at once, in turns and overlapped."""
    change, words = _gain(block), [f"{_at_once(rounds)} {mode(rounds[0])}" for rounds in block]
    if change is not None and not differs(change):
        return f"What leaves at once: {facts.NO_DIFFERENCE}"
    words[0] = f"{_at_once(block[0])} leave at once {mode(block[0][0])}"
    return ", ".join(words)


def _gain(block: _Block) -> Estimate | None:
    """Return how many times as much leaves at once, within rounds; None where it is alone."""
    before, after = ({run.round: burst(run) for run in rounds} for rounds in (block[0], block[-1]))
    alone = len(block) == 1 or not before.keys() & after.keys()
    return None if alone else gain(before, after)


def _shown(runs: Sequence[Spacing]) -> str:
    rounds = len({run.round for run in runs})
    most = max(-(-max(run.message_bytes) // run.packet_size) for run in runs)
    pinned = "threads pinned to a core each, " if all(run.cores for run in runs) else ""
    return (
        f"{pinned}{most} packets in a message at most,"
        f" shown: the middle of {rounds} rounds, numbers: their medians"
    )


def _legend(theme: Theme) -> list[Artist]:
    from matplotlib.lines import Line2D

    style: dict[str, Any] = {"linestyle": "", "marker": "|", "markersize": 12}
    return [
        Line2D([], [], color=colour, label=f"a message of {heap} heap", **style)
        for colour, heap in zip(_colours(theme), ("one", "the next"), strict=True)
    ]


def _colours(theme: Theme) -> tuple[str, str]:
    return theme.colours["sending"], theme.colours["limit"]


def _draw_rows(axis: Axes, block: _Block, span: int, theme: Theme) -> None:
    low, high = -0.01 * span / 1e6, 1.01 * span / 1e6
    axis.set_xlim(low, high)
    middles = [_ROW * (place + 1) - _STROKE / 2 - 0.03 for place in range(len(block))]
    names = [mode(rounds[0]) for rounds in block]
    count_down(axis, _ROW * len(block), dict(zip(middles, names, strict=True)))
    for middle, rounds in zip(middles, block, strict=True):
        run, above = _middle(rounds), middle - _STROKE / 2 - 0.03
        begin, _ = _few_heaps(run)
        write(axis, _numbers(rounds), (low, above), (4, 0), va="bottom", fontsize=FAINT)
        say(axis, mode(run).capitalize(), _numbers(rounds))
        for parity, colour in enumerate(_colours(theme)):
            times = [
                ms
                for heap, time in zip(run.heaps, run.time_ns, strict=True)
                if heap % 2 == parity and low <= (ms := (time - begin) / 1e6) <= high
            ]
            ends = middle - _STROKE / 2, middle + _STROKE / 2
            axis.vlines(times, *ends, colors=colour, linewidth=1.2)


def _middle(rounds: _Rounds) -> Spacing:
    """Return the run whose silence is the median."""
    return sorted(rounds, key=silence)[len(rounds) // 2]


def _few_heaps(run: Spacing) -> Interval:
    """Return begin and end of some heaps: they took as long as half of all do, or less."""
    begins: dict[int, int] = {}
    for heap, time in zip(run.heaps, run.time_ns, strict=True):
        begins.setdefault(heap, time)
    times = list(begins.values())
    n = min(_FEW, len(times) - 1)
    stretches = sorted(zip(times, times[n:], strict=False), key=lambda ends: ends[1] - ends[0])
    return stretches[(len(stretches) - 1) // 2]


def _numbers(rounds: _Rounds) -> str:
    silent = median([silence(run) / 1e3 for run in rounds]).median
    time = f"{number(silent / 1e3)} ms" if silent >= 1e3 else f"{number(silent)} µs"
    return f"silent for {time}, {_at_once(rounds)} at once"


def _at_once(rounds: _Rounds) -> str:
    return f"{number(median([burst(run) / 1024 for run in rounds]).median)} KiB"

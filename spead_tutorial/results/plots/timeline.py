# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 5: when the program prepares each heap, and when its messages leave."""

import dataclasses
from collections.abc import Iterator, Sequence
from itertools import groupby
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
)
from spead_tutorial.measure.records import Recording, Spacing, Timeline, joined
from spead_tutorial.measure.stats import Estimate, differs, gain, median
from spead_tutorial.results.plots import facts
from spead_tutorial.results.plots.picture import Axes, Picture, Said
from spead_tutorial.results.plots.sheet import count_down
from spead_tutorial.results.plots.theme import FAINT, NAMES, WIDTH, Theme
from spead_tutorial.results.units import number, percent, size

#: The two ways to send.
_IN_TURNS, OVERLAPPED = "in turns", "overlapped"
#: Runs to be compared: the same samples, sent to the same place.
Group: TypeAlias = Sequence[Timeline]
#: Inches: of a lane, of what is in it, beside it, and from a heap's name to the next at least.
_LANE, _BAR, _SIDES, _NAME = 0.52, 0.26, (1.5, 0.2), 0.26


def mode(run: Timeline | Spacing) -> str:
    """Return whether it was in turns or overlapped."""
    return OVERLAPPED if find_chapter(run.program).number >= 5 else _IN_TURNS


def _kind(run: Timeline | Spacing) -> str:
    return "Random samples" if run.random else "Constant samples"


@dataclasses.dataclass(frozen=True, slots=True)
class Lane:
    """What happens in a row of time: of each heap, from when to when in ms, or at which moments."""

    name: str
    roles: tuple[str, ...]  # colours, of one heap, and the next
    heaps: Sequence[tuple[int, Sequence[tuple[float, float]]]]


@dataclasses.dataclass(frozen=True, slots=True)
class Times:
    """A panel of lanes on one scale of time."""

    name: str
    lanes: Sequence[Lane]
    span: float  # ms
    words: tuple[str, str]  # whose it is, and what is said of it
    is_last: bool

    @property
    def sides(self) -> tuple[float, float]:
        """Room for the names of lanes."""
        return _SIDES

    @property
    def below(self) -> float:
        """Room for the scale."""
        return 0.55 if self.is_last else 0.1

    @property
    def height(self) -> float:
        """Room for each lane."""
        return _LANE * len(self.lanes) + 0.05

    def said(self) -> Iterator[Said]:
        """Return what it shows in words."""
        yield self.words

    def draw(self, axis: Axes, theme: Theme) -> None:
        """Draw each lane, with the numbers of its heaps."""
        places = [_LANE * (n + 1) - _BAR / 2 for n in range(len(self.lanes))]
        names = [lane.name for lane in self.lanes]
        count_down(axis, self.height, dict(zip(places, names, strict=True)))
        axis.set_xlim(-0.005 * self.span, self.span * 1.005)
        axis.tick_params(axis="x", labelbottom=self.is_last)
        axis.tick_params(axis="y", labelsize=11)
        axis.set_xlabel("time in ms" if self.is_last else "")
        for y, lane in zip(places, self.lanes, strict=True):
            self._draw(axis, y, lane, theme)

    def _draw(self, axis: Axes, y: float, lane: Lane, theme: Theme) -> None:
        apart = _NAME * self.span / (WIDTH - sum(_SIDES))
        above: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": FAINT}
        last = -apart
        for heap, times in lane.heaps:
            colour = theme.colours[lane.roles[heap % len(lane.roles)]]
            shown = [(left, right) for left, right in times if right >= 0 and left <= self.span]
            if not shown:
                continue
            for left, right in shown:
                if left < right:
                    axis.barh(y, right - left, _BAR, left, color=colour)
            moments = [left for left, right in shown if left == right]
            axis.vlines(moments, y - _BAR / 2, y + _BAR / 2, colors=colour, linewidth=1.2)
            first, end = shown[0][0], shown[-1][1]
            middle = (max(first, 0) + min(end, self.span)) / 2
            if middle - last >= apart:
                axis.text(middle, y - _BAR / 2 - 0.02, f"{heap}", color=theme.faint, **above)
                last = middle


# ---- When each heap is prepared, and sent ----

_HEAPS = 7


def timeline(recording: Recording) -> Picture:
    """Show when each run of those samples where overlapping changes most does what."""
    runs = timelines(recording)
    groups = [
        list(runs_of) for _, runs_of in groupby(runs, key=lambda run: (run.variant, run.random))
    ]
    group = max(groups, key=_change)
    span, first = _span(group), group[0]
    shown = " or ".join(dict.fromkeys(map(_counted, group)))
    kind = f"{joined(_kind(first), first.variant)}, heaps of {size(first.heap_size)}"
    return Picture(
        _title(group),
        f"Chapter 5: {kind[0].lower()}{kind[1:]}, in {NAMES[first.language]}; numbers: heaps",
        [[_block(run, span, run is group[-1])] for run in group],
        "A block for each program; in it, bars in time: when the program prepares each heap, and"
        " when the network thread sends each heap.",
        facts.caption(
            recording, f"times of one run each, bars: heaps from its middle, shares: {shown}"
        ),
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
        return f"The network thread sends {first} of the time {mode(group[0])}"
    return f"Overlapping keeps the network thread sending {last} of the time, not {first}"


def _block(run: Timeline, span: int, is_last: bool) -> Times:
    """Return the lanes of a run, and what its times are in words."""
    first = _first_heaps(run)[0]
    begin = run.prepare_ns[first]
    begins = [time for time in run.prepare_ns[first:] if time < begin + span]
    shown = f"heaps {first} to {first + len(begins) - 1} of {len(run.prepare_ns)}"
    its = shares(run)
    busy = (
        f"network thread busy {percent(its.sending)} of the time, program preparing"
        f" {percent(its.preparing)}, waiting {percent(its.waiting)}"
    )
    middle = f"{_milliseconds(preparing(run))} ms to prepare, {_milliseconds(sending(run))} ms"
    words = f"{shown}, {number(span / 1e6)} ms; {busy}; median of a heap: {middle} to send"

    def lane(name: str, role: str, intervals: Sequence[Interval]) -> Lane:
        times = [[((one - begin) / 1e6, (end - begin) / 1e6)] for one, end in intervals]
        return Lane(name, (role,), list(enumerate(times)))

    lanes = (
        lane("program prepares", "preparing", preparing(run)),
        lane("thread sends", "sending", sending(run)),
    )
    name = f"{mode(run).capitalize()}: the thread sends {percent(its.sending)} of the time"
    return Times(name, lanes, span / 1e6, (title(run), words), is_last)


def _milliseconds(intervals: Sequence[Interval]) -> str:
    return number(median([(end - begin) / 1e6 for begin, end in intervals]).median)


# ---- When the messages of a program leave, heap by heap ----

#: As many heaps of its slowest row are shown.
_FEW = 3
#: The rounds of one program, and those of the programs with the same samples and link.
_Rounds: TypeAlias = list[Spacing]
_Block: TypeAlias = list[_Rounds]


def spacing(recording: Recording) -> Picture:
    """Show when messages leave, a panel for each program, where overlapping changes most."""
    runs = [run for run in recording.spacings if run.failure is None]
    blocks = _blocks(runs)
    block = blocks[facts.strongest({n: {"": _gain(block)} for n, block in enumerate(blocks)})]
    # It is shown for as long as the slowest of its programs takes.
    span = max(end - begin for begin, end in (_few_heaps(_middle(rounds)) for rounds in block))
    first = block[0][0]
    where = joined(_kind(first), first.variant or "no limit", f"in {NAMES[first.language]}")
    return Picture(
        _most_at_once(block),
        f"When packets leave: {where[0].lower()}{where[1:]}; numbers: heaps",
        [[_messages(rounds, span, rounds is block[-1])] for rounds in block],
        "A row for each program, with a line in time for each message that the device gets. Of"
        " each heap, the longest silence between its messages, and the most that a queue must"
        " hold which is emptied at the heap's average rate.",
        facts.caption(recording, _shown(runs)),
    )


def _messages(rounds: _Rounds, span: int, is_last: bool) -> Times:
    """Return the lane of a program: the moments of each heap's messages."""
    run = _middle(rounds)
    begin, _ = _few_heaps(run)
    moments: dict[int, list[tuple[float, float]]] = {}
    for heap, time in zip(run.heaps, run.time_ns, strict=True):
        ms = (time - begin) / 1e6
        moments.setdefault(heap, []).append((ms, ms))
    name, words = mode(run).capitalize(), _numbers(rounds)
    lane = Lane("messages leave", ("sending", "limit"), sorted(moments.items()))
    return Times(f"{name}: {words}", [lane], span / 1e6, (name, words), is_last)


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
        return f"Overlapping makes {facts.NO_DIFFERENCE} in what leaves at once"
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

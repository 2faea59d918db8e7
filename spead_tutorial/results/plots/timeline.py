# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 5: when the program prepares each heap, and when its messages leave."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spead_tutorial.chapters.catalogue import NAMES, find_chapter
from spead_tutorial.measure.analysis import Interval, first_steady, preparing, sending, shares
from spead_tutorial.measure.records import Recording, Timeline, joined
from spead_tutorial.measure.stats import median
from spead_tutorial.results.plots import facts
from spead_tutorial.results.plots.picture import Axes, Panel, Picture, Said
from spead_tutorial.results.plots.sheet import count_down
from spead_tutorial.results.plots.theme import FAINT, WIDTH, Theme
from spead_tutorial.results.units import number, percent, size

#: The two ways to send.
_IN_TURNS, OVERLAPPED = "in turns", "overlapped"
#: Inches: of a lane, of what is in it, beside it, and from a heap's name to the next at least.
_LANE, _BAR, _SIDES, _NAME = 0.52, 0.26, (1.5, 0.2), 0.26
#: So many heaps from the middle of the slowest run are shown.
_HEAPS = 7


@dataclasses.dataclass(frozen=True, slots=True)
class Times(Panel):
    """A panel of lanes on one scale of time."""

    #: By what is done in a lane: its colour, and from when to when each heap has it done, in ms.
    lanes: Mapping[str, tuple[str, Sequence[tuple[float, float]]]]
    span: float  # ms
    words: tuple[str, str]  # whose it is, and what is said of it
    is_last: bool

    @property
    def sides(self) -> tuple[float, float]:
        return _SIDES

    @property
    def below(self) -> float:
        return 0.55 if self.is_last else 0.1

    @property
    def height(self) -> float:
        return _LANE * len(self.lanes) + 0.05

    def said(self) -> Iterator[Said]:
        yield self.words

    def draw(self, axis: Axes, theme: Theme) -> None:
        """Draw each lane, with the numbers of its heaps."""
        places = {_LANE * (n + 1) - _BAR / 2: name for n, name in enumerate(self.lanes)}
        count_down(axis, self.height, places)
        axis.set_xlim(-0.005 * self.span, self.span * 1.005)
        axis.tick_params(axis="x", labelbottom=self.is_last)
        axis.tick_params(axis="y", labelsize=11)
        axis.set_xlabel("time in ms" if self.is_last else "")
        apart = _NAME * self.span / (WIDTH - sum(_SIDES))
        style: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": FAINT}
        for y, name in places.items():
            role, times = self.lanes[name]
            last = -apart
            for heap, (begin, end) in enumerate(times):
                if end < 0 or begin > self.span:
                    continue
                axis.barh(y, end - begin, _BAR, begin, color=theme.colours[role])
                middle = (max(begin, 0) + min(end, self.span)) / 2
                if middle - last >= apart:
                    axis.text(middle, y - _BAR / 2 - 0.02, f"{heap}", color=theme.faint, **style)
                    last = middle


def timeline(recording: Recording) -> Picture:
    """Show when each run does what: those of constant samples without a limit, if there are any."""
    runs = timelines(recording)
    group = [run for run in runs if not run.random and not run.variant] or runs
    span, first = _span(group), group[0]
    shown = " or ".join(
        dict.fromkeys(f"heaps {first_steady(run)} to {len(run.prepare_ns) - 1}" for run in group)
    )
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


def title(run: Timeline) -> str:
    """Return what a timeline is of."""
    return joined(_kind(run), mode(run), run.variant)


def mode(run: Timeline) -> str:
    """Return whether it was in turns or overlapped."""
    return OVERLAPPED if find_chapter(run.program).number >= 5 else _IN_TURNS


def _kind(run: Timeline) -> str:
    return "Random samples" if run.random else "Constant samples"


def _first(run: Timeline) -> int:
    """Return the first of some heaps in the middle of a run."""
    return max(0, len(run.prepare_ns) - _HEAPS) // 2


def _span(group: Sequence[Timeline]) -> int:
    """Return for how many ns each run of a group is shown: none of them ends before."""
    ends = [
        [
            max(times) - run.prepare_ns[_first(run)]
            for times in zip(run.resumed_ns, run.last_packet_ns, strict=True)
        ][_first(run) :]
        for run in group
    ]
    return min(max(max(some[:_HEAPS]) for some in ends), *map(max, ends)) or 1


def _title(group: Sequence[Timeline]) -> str:
    """Say how busy the network thread is, overlapped and in turns."""
    first, last = (percent(shares(run).sending) for run in (group[0], group[-1]))
    if len(group) < 2:
        return f"The network thread sends {first} of the time {mode(group[0])}"
    return f"Overlapping keeps the network thread sending {last} of the time, not {first}"


def _block(run: Timeline, span: int, is_last: bool) -> Times:
    """Return the lanes of a run, and what its times are in words."""
    first, its = _first(run), shares(run)
    begin = run.prepare_ns[first]
    begins = [time for time in run.prepare_ns[first:] if time < begin + span]

    def lane(role: str, intervals: Sequence[Interval]) -> tuple[str, list[tuple[float, float]]]:
        return role, [((one - begin) / 1e6, (end - begin) / 1e6) for one, end in intervals]

    words = (
        f"heaps {first} to {first + len(begins) - 1} of {len(run.prepare_ns)},"
        f" {number(span / 1e6)} ms; network thread busy {percent(its.sending)} of the time,"
        f" program preparing {percent(its.preparing)}, waiting {percent(its.waiting)};"
        f" median of a heap: {_milliseconds(preparing(run))} ms to prepare,"
        f" {_milliseconds(sending(run))} ms to send"
    )
    lanes = {
        "program prepares": lane("preparing", preparing(run)),
        "thread sends": lane("sending", sending(run)),
    }
    name = f"{mode(run).capitalize()}: the thread sends {percent(its.sending)} of the time"
    return Times(name, lanes, span / 1e6, (title(run), words), is_last)


def _milliseconds(intervals: Sequence[Interval]) -> str:
    return number(median([(end - begin) / 1e6 for begin, end in intervals]).median)

# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 5: when the messages of a program leave, heap by heap."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.measure.analysis import burst, silence
from spead_tutorial.measure.records import Recording, Spacing
from spead_tutorial.measure.stats import Estimate, differs, gain, median
from spead_tutorial.results.plots import scales
from spead_tutorial.results.plots.caption import caption
from spead_tutorial.results.plots.marks import say
from spead_tutorial.results.plots.sheet import FAINT, Drawn, Sheet, write
from spead_tutorial.results.plots.theme import NAMES, Theme
from spead_tutorial.results.plots.titles import NO_DIFFERENCE, strongest
from spead_tutorial.results.units import number

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["spacing"]

_SIDES = (0.98, 0.2)
#: Inches: the room above a block, and the height of each of its rows and of the lines in it.
_ROOM, _ROW, _LINE = 0.22, 0.5, 0.24
#: Inches: the room above the band that heads a block, and where the mark of its scale is.
_BAND_ROOM, _MARK = 0.42, 0.08
#: As many heaps of its slowest row does a block show.
_HEAPS = 3
#: The rounds of one program.
_Rounds: TypeAlias = list[Spacing]


def spacing(recording: Recording, theme: Theme) -> Drawn:
    """Draw a block for each kind of samples and link, and a row in it for each program."""
    blocks = _blocks(recording)
    spans = [_span(block) for block in blocks]
    rows = []
    for place, block in enumerate(blocks):
        rows += [
            (_BAND_ROOM if place else 0.2, scales.band_height(theme)),
            (_ROOM, _ROW * len(block)),
        ]
    languages = " or ".join(dict.fromkeys(NAMES[block[0][0].language] for block in blocks))
    sheet = Sheet(
        theme,
        _title(blocks),
        rows,
        caption(recording, _shown(recording)),
        subtitle=f"When packets leave: in turns and overlapped ({languages})",
        legend=_legend(theme),
    )
    for place, (block, span) in enumerate(zip(blocks, spans, strict=True)):
        scales.draw_band(sheet, 2 * place, _place(block[0][0]), span, max(spans))
        axis = sheet.axes(2 * place + 1, *_SIDES)
        _draw_block(axis, block, span, theme)
        scales.draw_mark(axis, scales.mark(spans), _MARK, theme)
    since = "" if theme.is_narrow else " since the first message of a heap"
    axis.set_xlabel(f"time in ms{since}")
    return sheet.drawn(
        "A block for each kind of samples and each link; in it a row for each program, with a"
        " line in time for each message that the device gets. Of each heap, the longest silence"
        " between its messages, and the most that a queue must hold which is emptied at the"
        " heap's average rate."
    )


def _blocks(recording: Recording) -> list[list[_Rounds]]:
    """Sort what was measured: by link and samples, the slowest first; then by chapter."""
    found: dict[tuple[str, bool], dict[str, _Rounds]] = {}
    for run in recording.spacings:
        if run.failure is None:
            block = found.setdefault((run.variant, not run.random), {})
            block.setdefault(run.program, []).append(run)
    if not found:
        raise ValueError("the recording has no spacing: python -m bench timing spacing")
    return [
        [of[name] for name in sorted(of, key=lambda name: find_chapter(name).number)]
        for _, of in sorted(found.items())
    ]


def _title(blocks: Sequence[Sequence[_Rounds]]) -> str:
    """Say how much leaves at once, in turns and overlapped, where that differs most."""
    changes = {place: {"": _change(block)} for place, block in enumerate(blocks)}
    place = strongest(changes)
    block, change = blocks[place], changes[place][""]
    if change is not None and not differs(change):
        return f"{_place(block[0][0])}: {NO_DIFFERENCE} in how much leaves at once"
    first, *others = block
    words = [f"{_at_once(first)} leave at once {_way(first[0])}"]
    words += [f"{_at_once(rounds)} {_way(rounds[0])}" for rounds in others]
    return f"{_place(first[0])}: {', '.join(words)}"


def _change(block: Sequence[_Rounds]) -> Estimate | None:
    """Return how many times as much leaves at once, within rounds; None where it is alone."""
    before, after = ({run.round: burst(run) for run in rounds} for rounds in (block[0], block[-1]))
    alone = len(block) == 1 or not before.keys() & after.keys()
    return None if alone else gain(before, after)


def _shown(recording: Recording) -> str:
    runs = [run for run in recording.spacings if run.failure is None]
    rounds = len({run.round for run in runs})
    most = max(-(-max(run.message_bytes) // run.packet_size) for run in runs)
    pinned = "threads pinned to a core each, " if all(run.cores for run in runs) else ""
    return (
        f"{pinned}{most} packets in a message at most,"
        f" shown: the middle of {rounds} rounds, numbers: their medians"
    )


def _place(one: Spacing) -> str:
    samples = "Random samples" if one.random else "Constant samples"
    return f"{samples}, {one.variant or 'no limit'}"


def _legend(theme: Theme) -> list["Artist"]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color=colour, linestyle="", marker="|", markersize=12, label=name)
        for colour, name in zip(
            _colours(theme), ("a message of one heap", "a message of the next heap"), strict=True
        )
    ]


def _colours(theme: Theme) -> tuple[str, str]:
    return theme.colours["sending"], theme.colours["limit"]


def _span(block: Sequence[_Rounds]) -> int:
    """Return for how many ns the programs of a block are shown: as long as the slowest takes."""
    windows = [_window(_middle(rounds)) for rounds in block]
    return max(end - begin for begin, end in windows)


def _draw_block(axis: "Axes", block: Sequence[_Rounds], span: int, theme: Theme) -> None:
    shown = [_middle(rounds) for rounds in block]
    windows = [_window(run) for run in shown]
    low, high = -0.01 * span / 1e6, 1.01 * span / 1e6
    axis.set_xlim(low, high)
    axis.set_ylim(_ROW * len(block), 0)
    middles = [_ROW * (place + 1) - _LINE / 2 - 0.03 for place in range(len(block))]
    axis.set_yticks(middles, [_way(run) for run in shown])
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x")
    axis.set_axisbelow(True)
    for middle, run, (begin, _), rounds in zip(middles, shown, windows, block, strict=True):
        above = middle - _LINE / 2 - 0.03
        write(axis, _numbers(rounds), (low, above), (4, 0), va="bottom", fontsize=FAINT)
        say(axis, f"{_place(run)}, {_way(run)}", _numbers(rounds))
        for parity, colour in enumerate(_colours(theme)):
            times = [
                (time - begin) / 1e6
                for heap, time in zip(run.heaps, run.time_ns, strict=True)
                if heap % 2 == parity and low <= (time - begin) / 1e6 <= high
            ]
            ends = middle - _LINE / 2, middle + _LINE / 2
            axis.vlines(times, *ends, colors=colour, linewidth=1.2)


def _middle(rounds: _Rounds) -> Spacing:
    """Return the run whose silence is the median."""
    return sorted(rounds, key=silence)[len(rounds) // 2]


def _window(run: Spacing) -> tuple[int, int]:
    """Return begin and end of some heaps: they took as long as half of all do, or less."""
    begins: dict[int, int] = {}
    for heap, time in zip(run.heaps, run.time_ns, strict=True):
        begins.setdefault(heap, time)
    times = list(begins.values())
    n = min(_HEAPS, len(times) - 1)
    stretches = sorted(zip(times, times[n:], strict=False), key=lambda ends: ends[1] - ends[0])
    return stretches[(len(stretches) - 1) // 2]


def _way(run: Spacing) -> str:
    return "in turns" if find_chapter(run.program).number < 5 else "overlapped"


def _numbers(rounds: _Rounds) -> str:
    silent = median([silence(run) / 1e3 for run in rounds]).median
    time = f"{number(silent / 1e3)} ms" if silent >= 1e3 else f"{number(silent)} µs"
    return f"silent for {time}, {_at_once(rounds)} at once"


def _at_once(rounds: _Rounds) -> str:
    return f"{number(median([burst(run) / 1024 for run in rounds]).median)} KiB"

# SPDX-License-Identifier: BSD-3-Clause
"""An account of time as bars: of blocks in a terminal, and as a picture."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from spead_tutorial.measure.records import Recording
from spead_tutorial.results.tables import plain
from spead_tutorial.results.units import number, percent
from spead_tutorial.tools.why.account import KINDS, LOOKS, RUNNING, Account, ThreadTime
from spead_tutorial.tools.why.facts import Seen

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from spead_tutorial.results.plots.bars import PartLook
    from spead_tutorial.results.plots.render import Drawn
    from spead_tutorial.results.plots.theme import Theme

#: Part of a thread's time from which a kind is said by itself, and a thread that works matters.
_MATTERS, _BUSY = 0.02, 0.05
_MOST_THREADS = 12
#: One for each kind that is shown, such that neighbours differ without colours.
_BLOCKS, _REST, _UNEXPLAINED = "█▒▓░#=%+o*:x", "~", "·"


# ---- What is shown ----


def threads_that_matter(account: Account) -> list[ThreadTime]:
    """Return the threads that send, and others that work or are long without a core."""
    send = [one.tid for one in account.senders]
    least = {one.tid: _BUSY * one.seconds for one in account.threads}
    works = (*RUNNING, "core")
    return [
        one
        for one in account.threads
        if one.seconds and (one.tid in send or sum(map(one.of, works)) >= least[one.tid])
    ][:_MOST_THREADS]


def _shares(threads: Iterable[ThreadTime]) -> dict[str, float]:
    """Return what part of the time of some threads is of each kind, in the order of the bar."""
    threads = list(threads)
    whole = sum(one.seconds for one in threads) or 1.0
    return {kind: sum(one.of(kind) for one in threads) / whole for kind in KINDS}


def _name(thread: ThreadTime) -> str:
    return plain(f"{thread.name} ({thread.tid})")


# ---- In a terminal ----


def lines(account: Account, width: int) -> "list[RenderableType]":
    """Write what the time of the threads that send went to, and of the others that matter."""
    from rich.text import Text

    shown, senders = threads_that_matter(account), account.senders
    shares = _shares(senders)
    every = [shares, *(_shares([one]) for one in shown)]
    kinds = [kind for kind in KINDS if max(one[kind] for one in every) >= _MATTERS]
    blocks = dict(zip([one for one in kinds if one != "unexplained"], _BLOCKS, strict=False))
    blocks["unexplained"] = _UNEXPLAINED
    whose = "its thread" if len(senders) == 1 else f"its {len(senders)} threads"
    does = "read" if account.receives else "send"
    if any(one.sends for one in senders):
        whose += f" that {does}s" if len(senders) == 1 else f" that {does}"
    made: list[RenderableType] = [
        Text(f"Where the time of {whose} goes, in {number(account.seconds)} s:"),
        _bar(shares, blocks, width),
    ]
    if len(shown) > 1:
        room = min(24, width // 3)
        for one in shown:
            name = Text(f"{_name(one)}{f' {does}s' * one.sends}")
            name.truncate(room - 1, overflow="ellipsis", pad=True)
            made.append(name + " " + _bar(_shares([one]), blocks, width - room))
    return [*made, *_legend(account, shares, blocks)]


def _bar(shares: dict[str, float], blocks: dict[str, str], width: int) -> "Text":
    from rich.text import Text

    bar, until, drawn = Text(), 0.0, 0
    for kind, share in shares.items():
        until += share
        end = min(width, round(until * width))
        bar.append(blocks.get(kind, _REST) * (end - drawn), LOOKS[kind].style)
        drawn = end
    return bar


def _legend(
    account: Account, shares: dict[str, float], blocks: dict[str, str]
) -> "list[RenderableType]":
    from rich.table import Table
    from rich.text import Text

    table, said = Table.grid(padding=(0, 1)), account.words
    table.add_column()
    table.add_column(justify="right")
    rest = [kind for kind, share in shares.items() if share and kind not in blocks]
    whole = sum(one.seconds for one in account.senders)
    for kind, block in blocks.items():
        if kind == "unexplained" and rest:
            words = Text("; ".join(said[one] for one in rest))
            table.add_row(_REST, percent(sum(shares[one] for one in rest)), words)
        # In which calls, libraries or threads most of it is.
        parts = [one for one in account.parts if one.kind == kind and one.what]
        large = [one for one in parts if one.seconds >= _MATTERS * whole][:3]
        told = [
            one.what + ("" if one.calls is None else f" ({number(one.calls)} for a packet)")
            for one in large
        ]
        words = Text(plain(said[kind] + ": " * bool(told) + ", ".join(told)))
        share = percent(shares[kind]) if shares[kind] or kind == "unexplained" else ""
        table.add_row(Text(block, LOOKS[kind].style), share, words)
    return [table]


# ---- As a picture ----

#: Inches from thread to thread, and of a bar; and next to the panel; and of a letter in a bar.
_PITCH, _BAR, _LETTER = 0.42, 0.3, 0.078
_SIDES, _NARROW_SIDES = (1.7, 0.3), (1.2, 0.2)


def picture(recording: Recording, theme: "Theme", *, seen: Seen) -> "Drawn":
    """Draw what the time of each thread of a sender went to."""
    from spead_tutorial.results.plots import bars, facts, sheet
    from spead_tutorial.results.plots.render import say

    account = seen.account
    threads = threads_that_matter(account) if account else []
    sides = _NARROW_SIDES if theme.is_narrow else _SIDES
    room = theme.width - sum(sides)
    every = [{k: v for k, v in _shares([one]).items() if v} for one in threads]
    parts = [part for shares in every for part in shares.items() if part[1] >= _MATTERS / 4]
    unnamed = {kind for kind, _ in parts} - {kind for kind, v in parts if _label(kind, v, room)}
    title, subtitle = f"{number(seen.run.rate / 1e6)} MB/s", "Where the time goes is not known"
    if account and account.parts:
        most = max(KINDS, key=account.of)
        subtitle = f"{title}; {percent(account.share('unexplained'))} of the time is unexplained"
        title = f"{percent(account.share(most))} {KINDS[most]}"
    looks: dict[str, PartLook] = {
        kind: (look.colour, look.hatch) if look.colour else None for kind, look in LOOKS.items()
    }
    drawn = sheet.Sheet(
        theme,
        plain(f"{seen.program}: {title}"),
        [(0.1, _PITCH * max(1, len(threads)))],
        facts.caption(recording, f"one run of {number(seen.run.seconds)} s"),
        subtitle=subtitle,
        legend=bars.part_legend({KINDS[one]: looks[one] for one in KINDS if one in unnamed}, theme),
    )
    axis = drawn.axes(0, *sides)
    axis.set_ylim(max(1, len(threads)) - 0.5, -0.5)
    axis.set_xlim(0, 1)
    axis.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.0f}")
    axis.grid(axis="x")
    axis.set_axisbelow(True)
    for y, (thread, shares) in enumerate(zip(threads, every, strict=True)):
        said = (f"{KINDS[kind]} {percent(share)}" for kind, share in shares.items())
        say(axis, _name(thread), ", ".join(said))
        bars.draw_parts(
            axis, y, _BAR / _PITCH, shares, looks, theme, lambda k, w: _label(k, w, room), rims=True
        )
    names = [f"{plain(one.name)}\n{one.tid}{', sends' * one.sends}" for one in threads]
    axis.set_yticks(range(len(threads)), names)
    axis.tick_params(axis="y", length=0)
    axis.set_xlabel("% of the time")
    return drawn.drawn("Bars: what the time of each thread went to while the sender sent.")


def _label(kind: str, share: float, room: float) -> str:
    """Return the longest name of a part that there is room for in its bar, or none."""
    if kind == "unexplained":  # of which there is but an outline
        return ""
    short, full = LOOKS[kind].short, KINDS[kind]
    names = (f"{full} {percent(share)}", f"{short} {percent(share)}", short)
    fits: Any = (one for one in names if (len(one) + 1) * _LETTER <= share * room)
    return next(fits, "")

# SPDX-License-Identifier: BSD-3-Clause
"""How far a run has come, for who waits at a terminal."""

import contextlib
import itertools
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import click

from spead_tutorial.catalogue import Chapter
from spead_tutorial.lab import Lab, LabError
from spead_tutorial.measure.case import Step
from spead_tutorial.measure.programs import ProgramOptions
from spead_tutorial.measure.verify import IP_UDP_HEADERS, packet_sizes

__all__ = ["INTERVAL_S", "PATIENCE_S", "rounds_shown", "share_sent", "shown"]

#: What is over by then shows nothing.
PATIENCE_S = 2.0
#: How often what is shown is renewed. Seldom, so that it costs nothing beside what is measured.
INTERVAL_S = 1.0
_STEPS = 10**9  # so many that a long run, too, soon shows when it will be over


@contextlib.contextmanager
def shown(share: Callable[[], float] | None) -> Iterator[None]:
    """Show on the standard error how far it has come what the ``with`` block does, if it lasts.

    Nothing is shown, and nothing asked, where the standard error is no terminal.
    """
    if not sys.stderr.isatty():
        yield
        return
    over = threading.Event()
    show = _show_time if share is None else _show_share
    watcher = threading.Thread(target=show, args=(over, share), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _show_share(over: threading.Event, share: Callable[[], float]) -> None:
    start = time.monotonic()

    def passed(_: int | None) -> str:
        return f"{time.monotonic() - start:.0f} s so far"

    bar = click.progressbar(  # its clock begins
        length=_STEPS, label="Sending", file=sys.stderr, item_show_func=passed
    )
    if over.wait(PATIENCE_S):
        return
    with bar, contextlib.suppress(LabError):
        ended = False
        while not ended:
            ended = over.wait(INTERVAL_S)
            bar.update(min(_STEPS, int(share() * _STEPS)) - bar.pos)
            bar.render_progress()  # a share may be too small to be seen, but time passes


def _show_time(over: threading.Event, _: None) -> None:
    start = time.monotonic()
    if over.wait(PATIENCE_S):
        return
    with click.progressbar(
        itertools.count(),
        bar_template="%(label)s%(info)s",
        show_eta=False,
        item_show_func=lambda _: f"Sending for {time.monotonic() - start:.0f} s",
        file=sys.stderr,
    ) as bar:
        while not over.wait(INTERVAL_S):
            bar.update(1)


def share_sent(lab: Lab, chapter: Chapter, options: ProgramOptions) -> Callable[[], float]:
    """Begin to watch how far a program comes that is run next in a lab."""
    device = lab.device if chapter.takes_destination else "lo"
    before = lab.counters(device)
    expected = _spead_bytes(chapter, options, lab.mtu - IP_UDP_HEADERS)

    def share() -> float:
        counted = lab.counters(device) - before
        headers = (counted.link_header + IP_UDP_HEADERS) * counted.packets
        return (counted.bytes - headers) / expected

    return share


def _spead_bytes(chapter: Chapter, options: ProgramOptions, fits: int) -> float:
    """Return about how many bytes the packets of a run have; infinitely many cannot be made.

    Equal packets have as many: they are no more than others.
    """
    heap_size = options.heap_size or chapter.heap_size
    looked_at = min(heap_size, 1 << 26)  # as many bytes for each of its bytes as the whole heap
    try:
        packets = packet_sizes(looked_at, options.packet_size or chapter.packet_size or fits)
    except (ValueError, MemoryError):
        return math.inf
    first, other, end = map(sum, packets)
    more = (options.heaps or chapter.heaps) - 1
    return (first + more * other) * heap_size / looked_at + end


def rounds_shown(steps: Sequence[Step], rounds: int) -> Iterator[Step]:
    """Yield the steps of all rounds, and show on the standard output how far they have come."""
    if os.isatty(1):
        with click.progressbar(
            steps, label="Running", item_show_func=lambda step: step.case.name if step else None
        ) as bar:
            yield from bar
        return
    shown = None
    for step in steps:
        if (step.number, step.warm_up) != shown:
            shown = (step.number, step.warm_up)
            click.echo("warming up" if step.warm_up else f"round {step.number + 1} of {rounds}")
        yield step

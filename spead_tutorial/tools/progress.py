# SPDX-License-Identifier: BSD-3-Clause
"""How far a run has come, for who waits at a terminal."""

import contextlib
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click

from spead_tutorial.chapters.catalogue import Chapter
from spead_tutorial.lab import Lab, LabError
from spead_tutorial.measure.case import Step
from spead_tutorial.measure.programs import ProgramOptions
from spead_tutorial.measure.verify import IP_UDP_HEADERS, packet_sizes

if TYPE_CHECKING:
    from rich.progress import Progress

#: What is over by then shows nothing.
PATIENCE_S = 2.0
#: How often what is shown is renewed. Seldom, so that it disturbs no measurement.
INTERVAL_S = 1.0
_T = TypeVar("_T")


def _bar() -> "Progress":
    """Make what shows progress on a terminal: on the standard error, when it is told to."""
    from rich import progress
    from rich.console import Console
    from rich.table import Column

    one_line = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    return progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(30),
        progress.TaskProgressColumn("{task.percentage:3.0f}%"),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.fields[name]}", markup=False, table_column=one_line),
        console=Console(stderr=True),
        auto_refresh=False,
        redirect_stdout=False,  # it has results
        expand=True,
    )


# ---- Of one run ----


@contextlib.contextmanager
def shown(share: Callable[[], float] | None) -> Iterator[None]:
    """Show on a terminal how far the ``with`` block's sending has come, if it lasts."""
    if not sys.stderr.isatty():
        yield
        return
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(over, share), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _watch(over: threading.Event, share: Callable[[], float] | None) -> None:
    bar = _bar()
    task = bar.add_task("Sending", total=1.0 if share else None, name="")  # its clock begins
    if over.wait(PATIENCE_S):
        return
    with bar, contextlib.suppress(LabError):
        ended = False
        while not ended:
            ended = over.wait(INTERVAL_S)
            bar.update(task, completed=share() if share else 0, refresh=True)


def share_sent(lab: Lab, chapter: Chapter, options: ProgramOptions) -> Callable[[], float]:
    """Begin to watch how far a program comes that is run next in a lab."""
    device = lab.device if chapter.takes_destination else "lo"
    before = lab.counters(device)
    heap_size = options.heap_size or chapter.heap_size
    packet_size = options.packet_size or chapter.packet_size or lab.mtu - IP_UDP_HEADERS
    looked_at = min(heap_size, 1 << 26)  # as many bytes for each of its bytes as the whole heap
    expected = math.inf  # of packets that cannot be made nothing is ever sent
    with contextlib.suppress(ValueError, MemoryError):
        first, other, end = map(sum, packet_sizes(looked_at, packet_size))
        more = (options.heaps or chapter.heaps) - 1
        expected = (first + more * other) * heap_size / looked_at + end

    def share() -> float:
        counted = lab.counters(device) - before
        headers = (counted.link_header + IP_UDP_HEADERS) * counted.packets
        return (counted.bytes - headers) / expected

    return share


# ---- Of many ----


def stage_of(step: Step) -> str:
    if step.case.observer.once:
        return "after the rounds"
    return "warming up" if step.warm_up else f"round {step.number + 1}"


class Steps:
    """How far a measurement has come, in a ``with`` block: a bar on a terminal, or lines."""

    def __init__(self) -> None:
        self._bar = _bar() if sys.stderr.isatty() else None
        self._task: Any = None
        self._stages: set[str] = set()
        self._begun = 0
        self._start = time.monotonic()

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(
        self,
        steps: Sequence[_T],
        stage: Callable[[Any], str] = stage_of,
        name: Callable[[Any], str] = lambda step: step.case.name,
    ) -> Iterator[_T]:
        """Yield steps, and show each that begins."""
        for step in steps:
            self.begin(stage(step), name(step), len(steps))
            yield step
        if self._bar is not None and steps:
            self._bar.update(self._task, completed=len(steps), name="", refresh=True)

    def begin(self, stage: str, name: str, total: int) -> None:
        """Show that one of `total` steps begins."""
        done, self._begun = self._begun, self._begun + 1
        if self._bar is not None:
            if self._task is None:
                self._task = self._bar.add_task("Running", total=total, name=name)
            self._bar.update(self._task, completed=min(done, total), name=name, refresh=True)
        elif stage not in self._stages:
            self._stages.add(stage)
            left_s = (time.monotonic() - self._start) / done * (total - done) if done else None
            about = "" if left_s is None else f", about {duration(left_s)} to go"
            click.echo(f"{stage}: sample {min(done + 1, total)} of {total}{about}")


def duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"

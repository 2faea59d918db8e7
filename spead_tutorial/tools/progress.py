# SPDX-License-Identifier: BSD-3-Clause
"""How far a run has come, for who waits at a terminal."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click

from spead_tutorial.measure.case import Step

if TYPE_CHECKING:
    from rich.progress import Progress

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


@contextlib.contextmanager
def shown(what: str) -> Iterator[None]:
    """Show on a terminal that something goes on in the ``with`` block."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what, refresh_per_second=1):  # more would disturb it
        yield


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

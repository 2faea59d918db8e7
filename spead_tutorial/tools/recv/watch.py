# SPDX-License-Identifier: BSD-3-Clause
"""Taking heaps as they come, and saying so: each of them, or how many there are in a second."""

from __future__ import annotations

import select
import shutil
import sys
import time
from collections.abc import Mapping

import click

from spead_tutorial import Empty, Stopped
from spead_tutorial.recv import HeapBase, Stream
from spead_tutorial.recv._stats import losses
from spead_tutorial.tools.recv.items import Items

__all__ = ["Pace", "Screen", "Watch", "pace_line"]

_WINDOW_S = 1.0
_LOOK_S = 0.1  # the longest wait before the time is looked at


class Screen:
    """Lines on the standard output, below which a terminal has one that is renewed."""

    def __init__(self, is_quiet: bool) -> None:
        self._is_quiet = is_quiet
        self._is_terminal = sys.stdout.isatty()
        self._has_last = False

    def line(self, line: str) -> None:
        """Show a line."""
        if not self._is_quiet:
            self.clear()
            click.echo(line)

    def last(self, line: str) -> None:
        """Show a line in the place of the last one that was shown so, where that can be."""
        if not self._is_terminal:
            self.line(line)
        elif not self._is_quiet:
            columns = shutil.get_terminal_size().columns
            click.echo(f"\r{line[: columns - 1]}\x1b[K", nl=False)
            self._has_last = True

    def warn(self, message: str) -> None:
        """Say on the standard error what is not as it should be."""
        self.clear()
        click.echo(f"spead-tutorial: {message}", err=True)

    def clear(self) -> None:
        """Have nothing below the lines."""
        if self._has_last:
            click.echo("\r\x1b[K", nl=False)
            self._has_last = False


class Pace:
    """Whether heaps come so slowly that one can look at each of them.

    Those of a window of time are counted; when there are too many, none is shown until a window
    has few.
    """

    #: How many can be looked at.
    FEW = 10

    def __init__(self) -> None:
        self.is_fast = False
        self._n = 0

    def shows(self) -> bool:
        """Count a heap, and return whether it is shown."""
        self._n += 1
        self.is_fast = self.is_fast or self._n > self.FEW
        return not self.is_fast

    def end_window(self) -> bool:
        """Begin the next window, and return whether some of this one's heaps were not shown."""
        was_fast = self.is_fast
        self.is_fast = self._n > self.FEW
        self._n = 0
        return was_fast


class Watch:
    """Takes the heaps of a stream, and says what they are."""

    def __init__(self, stream: Stream, screen: Screen, *, values: bool) -> None:
        self.items = Items()
        self.seconds = 0.0
        self._stream = stream
        self._screen = screen
        self._values = values
        self._pace = Pace()
        self._n = 0
        self._before = stream.stats
        self._window_s = time.monotonic()
        self._first_s: float | None = None
        self._first_bytes = 0

    @property
    def payload_bytes(self) -> int:
        """Bytes of payload that have arrived since the first heap was taken."""
        return self._stream.stats.payload_bytes - self._first_bytes

    def run(self, heaps: int | None = None, silence_s: float | None = None) -> str:
        """Take heaps until the end, and return what that was.

        It is the stream's, or comes after so many heaps, or so many seconds without a packet.
        """
        look_s = _LOOK_S if silence_s is None else min(_LOOK_S, silence_s)
        ready = select.poll()
        ready.register(self._stream.fd, select.POLLIN)
        heard, heard_s = 0, time.monotonic()
        while True:
            is_quiet = False
            try:
                self._take(self._stream.get_nowait())
            except Stopped:
                return "stream"
            except Empty:
                is_quiet = not ready.poll(1000 * look_s)
            now_s = time.monotonic()
            if now_s >= self._window_s + _WINDOW_S:
                self._end_window(now_s)
            if self._n == heaps:
                return "heaps"
            if is_quiet and silence_s is not None:
                packets = self._stream.stats.packets_received  # of a heap that is not whole, too
                if packets != heard:
                    heard, heard_s = packets, now_s
                elif now_s >= heard_s + silence_s:
                    return "silence"

    def _take(self, heap: HeapBase) -> None:
        self._n += 1
        now_s = time.monotonic()
        if self._first_s is None:
            self._first_s, self._first_bytes = now_s, self._stream.stats.payload_bytes
        self.seconds = now_s - self._first_s
        is_shown = self._pace.shows()
        if not self._values:
            return
        for line in self.items.take(heap):
            self._screen.line(line)
        if is_shown:
            for line in self.items.lines(heap):
                self._screen.line(line)

    def _end_window(self, now_s: float) -> None:
        stats = self._stream.stats
        if self._pace.end_window() or (not self._values and stats.heaps > self._before.heaps):
            self._screen.last(pace_line(self._before, stats, now_s - self._window_s))
        self._before, self._window_s = stats, now_s


def pace_line(before: Mapping[str, int], now: Mapping[str, int], seconds: float) -> str:
    """Write how fast it came, and what is missing."""
    rate = (now["payload_bytes"] - before["payload_bytes"]) / seconds / 1e6
    heaps = (now["heaps"] - before["heaps"]) / seconds
    return f"{rate:.1f} MB/s, {heaps:.0f} heaps/s, {now['heaps']} heaps in all; {losses(now)}"

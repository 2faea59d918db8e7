# SPDX-License-Identifier: BSD-3-Clause
"""Watch a device's counter of bytes as closely as one core can, until SIGTERM.

It is run in a lab, by itself: another thread of the bench's would be in another namespace. For
each step of the counter that it saw it prints three integers of 64 bits: the time at which the
counter was last seen as it was before, the time at which it had been read anew (both ns of
``CLOCK_MONOTONIC``), and what it was then. The first three are those before any step.
"""

import gc
import os
import signal
import sys
import time
from array import array

#: Where the bytes received and those sent are in a line of ``/proc/net/dev``.
COLUMNS = {"rx": 0, "tx": 8}


def watch(device: str, column: int) -> None:
    """Print the steps of a counter."""
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    fd = os.open("/proc/net/dev", os.O_RDONLY)
    mark = f"{device}:".encode()
    clock = time.monotonic_ns

    def counted() -> int:
        text = os.pread(fd, 8192, 0)
        return int(text[text.index(mark) + len(mark) :].split(None, column + 1)[column])

    gc.disable()
    begin, last = clock(), counted()
    steps = array("q", [begin, clock(), last])
    os.write(1, steps.tobytes())  # whoever waits for it may begin
    steps = array("q")
    before = begin
    last_look = False
    while not last_look:
        last_look = bool(ended)
        begin, now = clock(), counted()
        if now != last:
            steps.extend((before, clock(), now))
            last = now
        before = begin
    sys.stdout.buffer.write(steps.tobytes())


if __name__ == "__main__":
    watch(sys.argv[1], COLUMNS[sys.argv[2]])

# SPDX-License-Identifier: BSD-3-Clause
"""What receivers in Python share: their options, and what they claim in the end.

Their twin in C is receiving.c.
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spead_tutorial.chapters.report import PROGRAM, Usage

#: Options that take a number: default, and what it is of.
_NUMBERS = (
    ("-w", 0, "HEAPS", "heaps that warm up"),
    ("-H", 1 << 20, "BYTES", "bytes of samples in a heap"),
    ("-p", 9000, "BYTES", "bytes in a packet at most"),
    ("-r", 4, "HEAPS", "heaps that may wait to be got"),
)
#: How heaps come to be incomplete: others take their room, or the stream ends.
_HOW = ("evicted", "flushed")


def parser_of(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that all of them have."""
    example = f"example, with a socket that a shell cannot make: {PROGRAM}.py spead2 --socket 3"
    parser = argparse.ArgumentParser(description=doc, epilog=example)
    parser.add_argument("library", choices=["spead_tutorial", "spead2"])
    for option, default, what, about in _NUMBERS:
        parser.add_argument(option, type=int, default=default, metavar=what, help=about)
    parser.add_argument(
        "--check", action="store_true", help="see whether the samples are those of blast --fill"
    )
    parser.add_argument("--socket", type=int, required=True, metavar="FD", help="that is bound")
    return parser


def _peak_memory_bytes() -> int:
    """Return the most memory this process has had; what getrusage says is its parent's, too."""
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return 1024 * int(found[1]) if found else 0


class Claims:
    """What has come; make it when packets may come."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self.heaps = 0
        self._wrong = 0
        self._right = np.arange(options.H) if options.check else None
        print(f"{PROGRAM}: listening on its socket", file=sys.stderr, flush=True)
        self._start = Usage.now()

    def count(self, n: int) -> None:
        """Count heaps of which all has come."""
        cold = self.heaps < self._options.w
        self.heaps += n
        if cold and self.heaps >= self._options.w:
            self._start = Usage.now()

    def check(self, cnt: int, samples: NDArray[np.uint8]) -> None:
        """Look whether a heap has what was sent, where that is wanted."""
        if self._right is not None:
            right = (cnt + self._right + (self._right >> 8)).astype(np.uint8)
            self._wrong += not np.array_equal(samples, right)

    def end(self, stats: Mapping[str, int]) -> None:
        """Say what has come, and fail where it was wrong."""
        used = Usage.now() - self._start
        heaps = max(0, self.heaps - self._options.w)
        payload_bytes = heaps * self._options.H
        if self._wrong:
            sys.exit(f"{PROGRAM}: {self._wrong} heaps have other samples than were sent")
        claims = {
            "program": PROGRAM,
            "language": "python",
            "heaps": heaps,
            "heap_size": self._options.H,
            "packet_size": self._options.p,
            "payload_bytes": payload_bytes,
            "packets": stats["packets"],
            "incomplete_heaps": sum(stats[f"incomplete_heaps_{how}"] for how in _HOW),
            "peak_memory_bytes": _peak_memory_bytes(),
        }
        print(json.dumps(claims | {name: getattr(used, name) for name in used.__slots__}))

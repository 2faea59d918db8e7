# SPDX-License-Identifier: BSD-3-Clause
"""What has arrived, in lines for a terminal. It knows nothing of streams and sockets.

Packets come from strangers: what is in them is never written as it is where it could be more than
letters to a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from spead_tutorial import Descriptor
from spead_tutorial.recv import IncompleteHeap, RawItem

__all__ = [
    "described",
    "heap_line",
    "incomplete_line",
    "missing",
    "pace_line",
    "plain",
    "raw_value",
    "value",
]

_FIRST = 4  # elements of an array
_LONGEST = 60  # letters of a text, or of an element
_MOST_FIELD_BYTES = 1024  # of an element with fields, each of which takes time
_MOST_DECIMAL_BITS = 64
_KINDS_WITH_ORDER = "iufb"


def plain(text: str, longest: int = _LONGEST) -> str:
    """Write text in one line, of characters that can be seen, cut where it is long."""
    seen = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[: longest + 1])
    return seen if len(seen) <= longest else f"{seen[: longest - 1]}…"


def described(what: str, item: Descriptor) -> str:
    """Write what a descriptor says."""
    if item.format is not None:
        fields = ", ".join(f"{letter}{bits}" for letter, bits in item.format)
        kind = fields if len(item.format) == 1 else f"({fields})"
    else:
        kind = str(item.dtype)
    shape = "".join(f"[{'any' if n is None else n}]" for n in item.shape)
    about = f": {plain(item.description)}" if item.description else ""
    return f"{what} {item.id:#x} {plain(item.name)}, {plain(kind + shape)}{about}"


def heap_line(cnt: int, n_items: int) -> str:
    """Write what came of a heap of which all has arrived."""
    return f"heap {cnt}: {n_items} item{'' if n_items == 1 else 's'}"


def incomplete_line(heap: IncompleteHeap) -> str:
    """Write what came of a heap that something is missing of."""
    length = f"{heap.heap_length} bytes" if heap.heap_length >= 0 else "an unknown number of bytes"
    return f"heap {heap.cnt}: incomplete, {heap.received_length} of {length} arrived"


def value(of: Any) -> str:
    """Write the value of an item: a number, a text, or an array's first elements and its range."""
    if isinstance(of, str):
        return plain(repr(of[: _LONGEST + 1]))
    if not isinstance(of, np.ndarray):
        return _element(of)
    kind = f"{plain(str(of.dtype))}{''.join(f'[{n}]' for n in of.shape)}"
    more = " …" if of.size > _FIRST else ""
    shown = " ".join(_element(element) for element in of.flat[:_FIRST]) + more
    if of.size <= _FIRST or of.dtype.kind not in _KINDS_WITH_ORDER:
        return f"{kind} {shown}".rstrip()
    return f"{kind} {shown} from {of.min()} to {of.max()}"


def _element(of: Any) -> str:
    if isinstance(of, int) and of.bit_length() > _MOST_DECIMAL_BITS:
        return plain(hex(of))  # Python writes no more than 4300 decimal digits
    if isinstance(of, np.void) and of.dtype.names and of.nbytes > _MOST_FIELD_BYTES:
        return f"{of.nbytes} bytes"
    return plain(str(of))


def raw_value(raw: RawItem) -> str:
    """Write the value of an item that has not been described."""
    what = raw.immediate_value if raw.is_immediate else f"{memoryview(raw).nbytes} bytes"
    return f"{what}, not described"


def missing(stats: Mapping[str, int]) -> str:
    """Write what is missing so far, or that nothing is."""
    incomplete = stats["incomplete_heaps_evicted"] + stats["incomplete_heaps_flushed"]
    found = [
        f"{count} {what}"
        for count, what in (
            (incomplete, "heaps incomplete"),
            (stats["heaps_never_begun"], "never begun"),
            (stats["socket_dropped"], "dropped by the socket"),
            (stats["packets_malformed"], "malformed packets"),
        )
        if count
    ]
    return ", ".join(found) or "nothing missing"


def pace_line(before: Mapping[str, int], now: Mapping[str, int], seconds: float) -> str:
    """Write how fast it came, and what is missing."""
    rate = (now["payload_bytes"] - before["payload_bytes"]) / seconds / 1e6
    heaps = (now["heaps"] - before["heaps"]) / seconds
    return f"{rate:.1f} MB/s, {heaps:.0f} heaps/s, {now['heaps']} heaps in all; {missing(now)}"

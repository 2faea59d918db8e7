# SPDX-License-Identifier: BSD-3-Clause
"""How evenly a counter grew: its rate, and its longest burst."""

from typing import Any

import numpy as np

__all__ = ["bursts"]

#: Steps in this time after the first are taken for the first burst.
_FIRST_BURST_NS = 10**6


def bursts(seen: np.ndarray[Any, Any], rate: float, share: float) -> dict[str, int]:
    """Say how evenly a counter grew."""
    early, late = seen[1:, 0], seen[1:, 1]
    n_bytes = (seen[:, 2] - seen[0, 2]) * share
    # Between the step that ends one look and that which ends another, both included.
    paid_early, paid_late = ((at - late[0]) * rate / 1e9 for at in (early, late))
    after, before = n_bytes[1:], n_bytes[:-1]
    least = after - paid_late + np.maximum.accumulate(paid_early - before)
    most = after - paid_early + np.maximum.accumulate(paid_late - before)
    begin = int(np.searchsorted(late, late[0] + _FIRST_BURST_NS, "right")) - 1
    return {
        "average_bytes": round(after[-1] - after[begin]),
        "average_ns": int(late[-1] - late[begin]),
        "burst_bytes": round(least.max()),
        "burst_most_bytes": round(most.max()),
        "steps": len(early),
        "grain_ns": int(np.median(late - early)),
        "longest_grain_ns": int((late - early).max()),
    }

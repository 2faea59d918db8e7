# SPDX-License-Identifier: BSD-3-Clause
"""Heaps to send, and a stream that stays busy with one."""

from typing import Any

import numpy as np

import spead_tutorial
import spead_tutorial.send


def make_heap(n_bytes: int = 1000, value: int = 1) -> spead_tutorial.send.Heap:
    """A heap with one array of bytes."""
    group = spead_tutorial.send.ItemGroup()
    group.add_item(
        0x3300, "samples", "", shape=(n_bytes,), dtype=np.int8, value=np.full(n_bytes, value, "i1")
    )
    return group.get_heap(descriptors="none", data="all")


def slow_config(**more: Any) -> spead_tutorial.send.StreamConfig:
    """A stream that sends one packet, and then nothing for hours: what follows stays in flight."""
    return spead_tutorial.send.StreamConfig(rate=0.1, burst_size=1, **more)


def same(ours: Any, theirs: Any) -> bool:
    """Whether two values are of the same kind, type and content."""
    if type(ours) is not type(theirs):
        return False
    if isinstance(ours, np.ndarray):
        return bool(
            ours.dtype == theirs.dtype
            and ours.shape == theirs.shape
            and ours.tolist() == theirs.tolist()
        )
    return repr(ours) == repr(theirs)  # nan is not itself

# SPDX-License-Identifier: BSD-3-Clause
"""Heaps to send, a stream that stays busy with one, and what was sent."""

from typing import Any

import numpy as np

import spead_tutorial
import spead_tutorial.send
from support.ref_decode import Packet, parse


def make_heap(n_bytes: int = 1000, value: int = 1, samples: Any = None) -> spead_tutorial.send.Heap:
    """A heap with one array: these samples, or so many bytes of a value."""
    group = spead_tutorial.send.ItemGroup()
    array = np.full(n_bytes, value, np.int8) if samples is None else samples
    group.add_item(0x3300, "samples", "", shape=array.shape, dtype=array.dtype, value=array)
    return group.get_heap(descriptors="none", data="all")


def slow_config(**more: Any) -> spead_tutorial.send.StreamConfig:
    """A stream that sends one packet, and then nothing for hours: what follows stays in flight."""
    return spead_tutorial.send.StreamConfig(rate=0.1, burst_size=1, **more)


def split(data: bytes) -> list[Packet]:
    """Take packets apart that follow each other."""
    packets = []
    while data:
        packets.append(parse(data))
        data = data[packets[-1].size :]
    return packets


def counts(stream: spead_tutorial.send.BytesStream) -> list[int]:
    """The heap counts of the packets that a stream has sent to memory."""
    return [packet.cnt for packet in split(stream.getvalue())]


def same(ours: Any, theirs: Any) -> bool:
    """Whether two values are of the same kind, type and content."""
    if type(ours) is not type(theirs):
        return False
    if isinstance(ours, np.ndarray):
        return bool(
            ours.dtype == theirs.dtype
            and ours.shape == theirs.shape
            and repr(ours.tolist()) == repr(theirs.tolist())  # elements may be arrays
        )
    return repr(ours) == repr(theirs)  # nan is not itself

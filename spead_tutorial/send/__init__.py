# SPDX-License-Identifier: BSD-3-Clause
"""Sending heaps: synchronous streams, and what all streams use.

A program makes a `spead_tutorial.ThreadPool`, a `StreamConfig` and a `UdpStream`; an `ItemGroup`
makes heaps; the stream sends them. Streams that return futures are in
`spead_tutorial.send.asyncio`.
"""

from spead_tutorial._core import (
    BytesStream,
    Heap,
    HeapReference,
    HeapReferenceList,
    PacketGenerator,
    Stream,
    SyncStream,
    route_packet_size,
)
from spead_tutorial._types import GroupMode, RateMethod, StreamConfig, StreamStats
from spead_tutorial.send._generator import HeapGenerator, ItemGroup
from spead_tutorial.send._ibverbs import IbvArguments as _IbvArguments
from spead_tutorial.send._ibverbs import UdpIbvConfig
from spead_tutorial.send._inproc import InprocArguments as _InprocArguments
from spead_tutorial.send._tcp import TcpArguments as _TcpArguments
from spead_tutorial.send._udp import UdpArguments as _UdpArguments

__all__ = [
    "BytesStream",
    "GroupMode",
    "Heap",
    "HeapGenerator",
    "HeapReference",
    "HeapReferenceList",
    "InprocStream",
    "ItemGroup",
    "PacketGenerator",
    "RateMethod",
    "Stream",
    "StreamConfig",
    "StreamStats",
    "SyncStream",
    "TcpStream",
    "UdpIbvConfig",
    "UdpIbvStream",
    "UdpStream",
    "route_packet_size",
]


class InprocStream(_InprocArguments, SyncStream):
    __doc__ = _InprocArguments.__doc__


class TcpStream(_TcpArguments, SyncStream):
    __doc__ = _TcpArguments.__doc__


class UdpStream(_UdpArguments, SyncStream):
    __doc__ = _UdpArguments.__doc__


class UdpIbvStream(_IbvArguments, SyncStream):
    __doc__ = _IbvArguments.__doc__

# SPDX-License-Identifier: BSD-3-Clause
"""What streams that receive count: names and modes, and the counts of a moment."""

from __future__ import annotations

import enum
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from spead_tutorial import _core
from spead_tutorial._types import whole

__all__ = ["ACCOUNT", "COMMON", "FATES", "StreamStatConfig", "StreamStats", "account_values"]


class StreamStatConfig:
    """A count: its name, and how two of them are put together.

    Parameters
    ----------
    name : str
        Its name.
    mode : StreamStatConfig.Mode
        ``COUNTER``: two are added; ``MAXIMUM``: the larger one counts.
    """

    class Mode(enum.Enum):
        """How two counts become one."""

        #: They are added.
        COUNTER = 0
        #: The larger one counts.
        MAXIMUM = 1

    __slots__ = ("_mode", "_name")

    def __init__(self, name: str, mode: StreamStatConfig.Mode = Mode.COUNTER) -> None:
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {name!r}")
        if not isinstance(mode, StreamStatConfig.Mode):
            raise TypeError(f"mode must be a StreamStatConfig.Mode, not {mode!r}")
        self._name = name
        self._mode = mode

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def mode(self) -> StreamStatConfig.Mode:
        """How two of them are put together."""
        return self._mode

    def combine(self, a: int, b: int) -> int:
        """Put two counts together.

        Parameters
        ----------
        a, b : int
            The counts.

        Returns
        -------
        int
            Their sum, or the larger one.
        """
        return a + b if self.mode is StreamStatConfig.Mode.COUNTER else max(a, b)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StreamStatConfig):
            return NotImplemented
        return self.name == other.name and self.mode is other.mode

    def __hash__(self) -> int:
        return hash((self.name, self.mode))

    def __repr__(self) -> str:
        return f"StreamStatConfig({self.name!r}, {self.mode})"


_MAXIMUM = StreamStatConfig.Mode.MAXIMUM

#: The counts that every stream has, and spead2's have, too. `stream_stat_indices` has their places.
COMMON = (
    StreamStatConfig("heaps"),
    StreamStatConfig("incomplete_heaps_evicted"),
    StreamStatConfig("incomplete_heaps_flushed"),
    StreamStatConfig("packets"),
    StreamStatConfig("batches"),
    StreamStatConfig("max_batch", _MAXIMUM),
    StreamStatConfig("single_packet_heaps"),
    StreamStatConfig("search_dist"),
    StreamStatConfig("worker_blocked"),
)

#: What becomes of a packet: the core's list, and what was read behind the end of the stream.
FATES = {**_core.FATES, "after_end": "it came after the end of the stream"}

#: What ours have besides, behind all others.
ACCOUNT = (
    # Packets that came, which is the sum of what became of them.
    StreamStatConfig("packets_received"),
    *(StreamStatConfig(f"packets_{name}") for name in FATES),
    # Malformed packets: why.
    *(StreamStatConfig(f"malformed_{name}") for name in _core.FAULTS),
    # Heaps: "heaps" are those that ended; dropped ones brought the stop.
    StreamStatConfig("heaps_begun"),
    StreamStatConfig("heaps_complete"),
    StreamStatConfig("heaps_live"),
    StreamStatConfig("heaps_dropped"),
    StreamStatConfig("heaps_never_begun"),
    StreamStatConfig("incomplete_heaps_dropped"),
    # Bytes of payload: in their place, and of heaps that something is missing of.
    StreamStatConfig("payload_bytes"),
    StreamStatConfig("incomplete_bytes"),
    # The sockets, all together.
    StreamStatConfig("socket_datagrams"),
    StreamStatConfig("socket_bytes"),
    StreamStatConfig("socket_messages"),
    StreamStatConfig("socket_calls"),
    StreamStatConfig("socket_in_place"),
    StreamStatConfig("socket_dropped"),
    StreamStatConfig("socket_buffer"),
    # The ring.
    StreamStatConfig("ring_dropped"),
    StreamStatConfig("longest_ring_wait_ns", _MAXIMUM),
)


def common_values(counts: Mapping[str, Any]) -> list[int]:
    """Return the values of `COMMON`.

    Parameters
    ----------
    counts : mapping
        What the core counts.
    """
    finished = counts["heaps_complete"] + counts["heaps_evicted"] + counts["heaps_flushed"]
    return [
        finished,
        counts["heaps_evicted"],
        counts["heaps_flushed"],
        counts["packets"] - counts["fates"][1],
        counts["batches"],
        counts["max_batch"],
        counts["single_packet_heaps"],
        counts["searches"],
        counts["ring_waits"],
    ]


def account_values(counts: Mapping[str, Any]) -> list[int]:
    """Return the values of `ACCOUNT`.

    Parameters
    ----------
    counts : mapping
        What the core counts.
    """
    return [
        counts["packets"] + counts["after_end"],
        *counts["fates"],
        counts["after_end"],
        *counts["faults"][1:],
        counts["heaps_begun"],
        counts["heaps_complete"],
        counts["heaps_live"],
        counts["heaps_dropped"],
        counts["heaps_never_begun"],
        counts["incomplete_dropped"],
        counts["placed_bytes"],
        counts["incomplete_bytes"],
        counts["datagrams"],
        counts["datagram_bytes"],
        counts["messages"],
        counts["calls"],
        counts["in_place"],
        counts["socket_dropped"],
        counts["buffer_size"],
        counts["ring_dropped"],
        counts["longest_ring_wait_ns"],
    ]


class StreamStats(Mapping[str, int]):
    """Counts of a stream since it was made, all of one moment.

    It is a mapping from names to counts, in order. A count is also found by its place, and as an
    attribute: ``stats["heaps"]``, ``stats[stream_stat_indices.HEAPS]``, ``stats.heaps``. In each of
    these ways it can be set, too. Counts of several streams can be added.

    Parameters
    ----------
    config : sequence of StreamStatConfig
        Their names and modes.
    values : sequence of int
        The counts.

    Attributes
    ----------
    config : list of StreamStatConfig
        Their names and modes.
    heaps : int
        Heaps that ended, complete or not, but for the one that says that the stream ends.
    incomplete_heaps_evicted : int
        Heaps that something was missing of when another one needed the room.
    incomplete_heaps_flushed : int
        Heaps that something was missing of at the end.
    packets : int
        Packets that are well-formed, whatever became of them.
    batches, max_batch : int
        Times that a reader found packets, and the most that it found at once.
    single_packet_heaps : int
        Heaps that were complete with their first packet.
    search_dist : int
        Packets whose heap was not that of the packet before, and had to be looked for.
    worker_blocked : int
        Times that a reader had to wait because the ring was full.
    packets_received : int
        Packets that were read: the sum of the next eleven.
    packets_placed, packets_malformed, packets_duplicate, packets_late : int
        Packets that have a place in a heap; that are wrong by themselves; that bring what has
        arrived before; whose heap is finished, or was given up.
    packets_after_loss, packets_inconsistent : int
        Packets that come, in order, behind one that is missing; that contradict others of their
        heap.
    packets_too_large, packets_unsized, packets_no_memory, packets_no_place : int
        Packets whose heap is larger than allowed; does not say how large it is, and has to; got no
        memory; has no place in a chunk.
    packets_after_end : int
        Packets that had been read when the stream ended, and were not looked at.
    malformed_header, malformed_flavour, malformed_pointers, malformed_missing : int
        Malformed packets: that do not begin as packets of SPEAD do; have no flavour of 64 bits;
        are too short for their item pointers; lack their heap count, payload offset or length.
    malformed_payload, malformed_beyond, malformed_surplus : int
        Malformed packets: that are too short for their payload; reach beyond the end of their
        heap; are longer than they say, or than allowed.
    heaps_begun, heaps_complete, heaps_live : int
        Heaps that a packet was placed into; of which all has arrived; of which packets are awaited.
    heaps_dropped : int
        Heaps that ended with the stream, as they brought the packet that says so.
    heaps_never_begun : int
        Heaps that were not begun, nor refused a place, as far as the counts of others tell.
    incomplete_heaps_dropped : int
        Incomplete heaps that ``contiguous_only`` kept from you.
    payload_bytes, incomplete_bytes : int
        Bytes of payload that have a place, and those of them in heaps that are not complete.
    socket_datagrams, socket_bytes, socket_messages, socket_calls : int
        Datagrams of all sockets, their bytes (UDP and IP headers not counted), the messages that
        the kernel handed them over in (with GRO, runs of datagrams), and system calls to receive.
    socket_in_place : int
        Datagrams that were expected: the kernel has written their payload to its place in a heap.
    socket_dropped : int
        What the sockets had no room for, counted as the kernel keeps it: datagrams, or with GRO
        runs of them.
    socket_buffer : int
        Bytes of all sockets' buffers, as the kernel counts them: twice what was granted.
    ring_dropped, longest_ring_wait_ns : int
        Heaps that were dropped because the ring was full; the longest time, in ns, that a reader
        waited for it.
    """

    __slots__ = ("_places", "_values", "config")

    config: list[StreamStatConfig]
    _values: list[int]
    _places: dict[str, int]

    def __init__(self, config: Sequence[StreamStatConfig], values: Sequence[int]) -> None:
        places = {stat.name: i for i, stat in enumerate(config)}
        members = {"config": list(config), "_values": list(values), "_places": places}
        for name, member in members.items():
            object.__setattr__(self, name, member)

    def _place(self, key: str | int) -> int:
        if isinstance(key, str):
            return self._places[key]
        place = operator.index(key)
        if place < 0:
            raise TypeError(f"the place of a count is not negative, but {place}")
        return place

    def __getitem__(self, key: str | int) -> int:
        return self._values[self._place(key)]

    def __setitem__(self, key: str | int, value: int) -> None:
        place = self._place(key)
        self._values[place] = whole("a count", value)

    def __getattr__(self, name: str) -> int:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no count {name!r}", name=name, obj=self) from None

    def __setattr__(self, name: str, value: int) -> None:
        try:
            self[name] = value
        except KeyError:
            raise AttributeError(f"there is no count {name!r}", name=name, obj=self) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return StreamStats, (self.config, self._values)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __add__(self, other: StreamStats) -> StreamStats:
        if not isinstance(other, StreamStats):
            return NotImplemented
        if self.config != other.config:
            raise ValueError("the counts of these streams have different names or modes")
        rows = zip(self.config, self._values, other._values, strict=True)
        return StreamStats(self.config, [stat.combine(a, b) for stat, a, b in rows])

    def __iadd__(self, other: StreamStats) -> Self:
        self._values[:] = (self + other)._values
        return self

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._places]

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}={count}" for name, count in self.items() if count)
        return f"<StreamStats {counts or 'nothing yet'}>"

# SPDX-License-Identifier: BSD-3-Clause
"""How streams receive, and how their counts are put together."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from spead_tutorial._core import COUNTS, MemoryAllocator, check_place
from spead_tutorial._types import MEMCPY_NONTEMPORAL, MEMCPY_STD, Settings, at_least_one, whole
from spead_tutorial.flavour import BUG_COMPAT_PYSPEAD_0_5_2
from spead_tutorial.recv import stream_stat_indices


@dataclass(frozen=True, slots=True)
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

    name: str
    mode: Mode = Mode.COUNTER

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"name must be a str, not {self.name!r}")
        if not isinstance(self.mode, StreamStatConfig.Mode):
            raise TypeError(f"mode must be a StreamStatConfig.Mode, not {self.mode!r}")

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


def stats_named(*names: str) -> tuple[StreamStatConfig, ...]:
    """Return counts of these names: what is largest or longest is so of two, others are added."""
    maximum, counter = StreamStatConfig.Mode.MAXIMUM, StreamStatConfig.Mode.COUNTER
    return tuple(
        StreamStatConfig(name, maximum if name.startswith(("max_", "longest_")) else counter)
        for name in names
    )


_N_COMMON = len(stream_stat_indices.__all__)
#: The counts that every stream has, and spead2's also have. `stream_stat_indices` has their places.
COMMON = stats_named(*COUNTS[:_N_COMMON])
#: What ours have besides, behind all others.
ACCOUNT = stats_named(*COUNTS[_N_COMMON:])


@dataclass(kw_only=True, eq=False)
class StreamConfig(Settings):
    """How packets become heaps.

    All are given by keyword; attributes have the same names, and may be changed. A stream copies
    what it is made with.

    Parameters
    ----------
    max_heaps : int
        Heaps of a substream that packets are awaited of at a time, at least 1. Where one more
        begins, the oldest one ends as it is.
    substreams : int
        Sequences of heaps that are independent, at least 1: that of a heap is its count modulo
        this.
    bug_compat : int
        Sum of ``BUG_COMPAT_*`` bits: how the sender's descriptors differ.
    memcpy : int
        ``MEMCPY_STD`` or ``MEMCPY_NONTEMPORAL``: accepted, and makes no difference.
    memory_allocator : MemoryAllocator, optional
        Where the payload of heaps is kept; by default what ``malloc`` gives.
    stop_on_stop_item : bool
        Whether the stream ends with a packet that says so. Otherwise that is an item like others.
    allow_unsized_heaps : bool
        Whether packets are taken that do not say how long their heap is.
    allow_out_of_order : bool
        Whether a heap's packets may come in any order. Otherwise each has to begin where the one
        before ended, and none is taken after a loss.
    stream_id : int
        Yours.
    explicit_start : bool
        Whether nothing is received before `Stream.start`.
    max_heap_size : int
        Bytes of payload that a heap may have at most; packets of longer ones are counted and
        dropped.
    by_sender : bool
        Whether heaps of different senders (address and port, where there are any) are different
        heaps, though their counts are the same. Otherwise several senders may send parts of one.

    Attributes
    ----------
    stats : list of StreamStatConfig
        The counts of a stream that is made with this; all of them only in the stream's own copy.

    Raises
    ------
    TypeError
        For an unknown name, what is not a whole number, or a negative one.
    ValueError
        For a value out of its range.
    """

    #: Default of ``max_heaps``.
    DEFAULT_MAX_HEAPS: ClassVar[int] = 4
    #: Default of ``max_heap_size``, in bytes.
    DEFAULT_MAX_HEAP_SIZE: ClassVar[int] = 1 << 30

    max_heaps: int = DEFAULT_MAX_HEAPS
    substreams: int = 1
    bug_compat: int = 0
    memcpy: int = MEMCPY_STD
    memory_allocator: MemoryAllocator = None  # type: ignore[assignment]  # which makes one
    stop_on_stop_item: bool = True
    allow_unsized_heaps: bool = True
    allow_out_of_order: bool = False
    stream_id: int = 0
    explicit_start: bool = False
    max_heap_size: int = DEFAULT_MAX_HEAP_SIZE
    by_sender: bool = True

    _POSITIVE = ("max_heaps", "substreams", "max_heap_size")

    def __post_init__(self) -> None:
        self._stats = list(COMMON)
        self._behind: tuple[StreamStatConfig, ...] = ()  # what a stream of this one adds to them

    def _checked(self, name: str, value: Any) -> Any:
        if name == "memory_allocator":
            value = MemoryAllocator() if value is None else value
            if not isinstance(value, MemoryAllocator):
                raise TypeError(f"memory_allocator must be a MemoryAllocator, not {value!r}")
            return value
        value = super()._checked(name, value)
        if name == "bug_compat" and value > BUG_COMPAT_PYSPEAD_0_5_2:
            raise ValueError(f"bug_compat is {value}: it has to be a sum of BUG_COMPAT_* bits")
        if name == "memcpy" and value not in (MEMCPY_STD, MEMCPY_NONTEMPORAL):
            raise ValueError(f"memcpy is {value}: it has to be MEMCPY_STD or MEMCPY_NONTEMPORAL")
        return value

    @property
    def stats(self) -> list[StreamStatConfig]:
        """The counts of a stream that is made with this; all of them in the stream's own copy."""
        return [*self._stats, *self._behind]

    def add_stat(
        self, name: str, mode: StreamStatConfig.Mode = StreamStatConfig.Mode.COUNTER
    ) -> int:
        """Add a count of your own, which place functions of streams of chunks count in.

        Parameters
        ----------
        name : str
            Its name.
        mode : StreamStatConfig.Mode
            How it is put together.

        Returns
        -------
        int
            Its place.

        Raises
        ------
        ValueError
            If there is one of that name.
        """
        if any(stat.name == name for stat in self.stats):
            raise ValueError(f"there is a count {name!r} already")
        self._stats.append(StreamStatConfig(name, mode))
        return len(self._stats) - 1

    def next_stat_index(self) -> int:
        """Return the place that the next count gets."""
        return len(self._stats)

    def get_stat_index(self, name: str) -> int:
        """Return the place of a count.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        int
            Its place.

        Raises
        ------
        IndexError
            If there is none of that name.
        """
        for i, stat in enumerate(self.stats):
            if stat.name == name:
                return i
        raise IndexError(f"there is no count {name!r}")


@dataclass(kw_only=True, eq=False)
class RingStreamConfig(Settings):
    """How finished heaps wait until they are got.

    All are given by keyword; attributes have the same names, and may be changed. A stream copies
    what it is made with.

    Parameters
    ----------
    heaps : int
        How many may wait, at least 1.
    contiguous_only : bool
        Whether heaps that something is missing of are dropped, with a warning. Otherwise they are
        handed out as `IncompleteHeap`.
    incomplete_keep_payload_ranges : bool
        Whether those say which bytes have arrived.
    drop_when_full : bool
        What happens to a heap that finds no room: it is dropped, and counted. Otherwise nothing is
        received until there is room, so that packets are lost in the socket instead.

    Raises
    ------
    TypeError
        For an unknown name, what is not a whole number, or a negative one.
    ValueError
        For 0 heaps.
    """

    #: Default of ``heaps``.
    DEFAULT_HEAPS: ClassVar[int] = 4

    heaps: int = DEFAULT_HEAPS
    contiguous_only: bool = True
    incomplete_keep_payload_ranges: bool = False
    drop_when_full: bool = False

    _POSITIVE = ("heaps",)


@dataclass(kw_only=True, eq=False)
class ChunkStreamConfig(Settings):
    """How heaps are gathered in chunks.

    All are given by keyword; attributes have the same names, and may be changed. A stream copies
    what it is made with.

    Parameters
    ----------
    items : iterable of int
        Ids of the items whose values the place function wants to know: immediates.
    max_chunks : int
        Chunks that are filled at a time, at least 1. A newer one pushes out the oldest.
    place : tuple, optional
        The place function: a tuple that begins with a capsule, such as a
        ``scipy.LowLevelCallable``, whose signature is ``"void (void *, size_t)"`` or, with user
        data, ``"void (void *, size_t, void *)"``. The first argument is a record
        ``spead_tutorial.recv.numba.chunk_place_data``. It may be left open until a stream is made.
    max_heap_extra : int
        Bytes that the place function may tell of a heap.

    Raises
    ------
    TypeError
        For an unknown name, what is not a whole number, or a negative one.
    ValueError
        For 0 chunks, or a place function of another signature.
    IndexError
        For an empty tuple in place of a place function.
    """

    #: Default of ``max_chunks``.
    DEFAULT_MAX_CHUNKS: ClassVar[int] = 2

    items: Iterable[int] = ()
    max_chunks: int = DEFAULT_MAX_CHUNKS
    place: tuple[Any, ...] | None = None
    max_heap_extra: int = 0

    _POSITIVE = ("max_chunks",)

    def __post_init__(self) -> None:
        self._packet_payload_size = 0

    def _checked(self, name: str, value: Any) -> Any:
        if name == "items":
            return [whole("an item's id", item) for item in value]
        if name == "place":
            if value is not None:
                check_place(value)
            return value
        return super()._checked(name, value)

    def enable_packet_presence(self, payload_size: int) -> Self:
        """Have a byte of ``present`` for each packet, instead of each heap.

        A packet's is that of its heap's index, and one more for every ``payload_size`` bytes of the
        heap before it.

        Parameters
        ----------
        payload_size : int
            Bytes of payload in a packet, at least 1.

        Returns
        -------
        ChunkStreamConfig
            This one.
        """
        self._packet_payload_size = at_least_one("payload_size", payload_size)
        return self

    def disable_packet_presence(self) -> Self:
        """Have a byte of ``present`` for each heap again.

        Returns
        -------
        ChunkStreamConfig
            This one.
        """
        self._packet_payload_size = 0
        return self

    @property
    def packet_presence_payload_size(self) -> int:
        """Bytes of payload in a packet, where packets have a byte each; else 0."""
        return self._packet_payload_size


@dataclass(kw_only=True, eq=False)
class ChunkStreamGroupConfig(Settings):
    """What streams share that fill the same chunks.

    All are given by keyword; attributes have the same names, and may be changed. A group copies
    what it is made with.

    Parameters
    ----------
    max_chunks : int
        Chunks that are filled at a time, at least 1. A newer one pushes out the oldest.
    eviction_mode : ChunkStreamGroupConfig.EvictionMode
        Whether the oldest chunk then waits for members that lag.

    Raises
    ------
    TypeError
        For an unknown name, what is not a whole number, or a negative one; for what is no mode.
    ValueError
        For 0 chunks.
    """

    class EvictionMode(enum.Enum):
        """What happens to the oldest chunk when a newer one pushes it out."""

        #: It leaves at once; what members that lag have for it then is lost, and counted.
        LOSSY = 0
        #: It leaves once all members have left it; one that receives nothing holds up all.
        LOSSLESS = 1

    #: Default of ``max_chunks``.
    DEFAULT_MAX_CHUNKS: ClassVar[int] = 2

    max_chunks: int = DEFAULT_MAX_CHUNKS
    eviction_mode: EvictionMode = EvictionMode.LOSSY

    _POSITIVE = ("max_chunks",)


@dataclass(kw_only=True, eq=False)
class UdpIbvConfig:
    """How spead2 receives with ibverbs, which there is not here: see `Stream.add_udp_reader`.

    Parameters
    ----------
    endpoints, interface_address, buffer_size, max_size, comp_vector, max_poll
        As spead2's; not looked at.
    """

    DEFAULT_BUFFER_SIZE: ClassVar[int] = 16777216
    DEFAULT_MAX_SIZE: ClassVar[int] = 9200
    DEFAULT_MAX_POLL: ClassVar[int] = 10

    endpoints: Sequence[tuple[str, int]] = ()
    interface_address: str = ""
    buffer_size: int = DEFAULT_BUFFER_SIZE
    max_size: int = DEFAULT_MAX_SIZE
    comp_vector: int = 0
    max_poll: int = DEFAULT_MAX_POLL

# SPDX-License-Identifier: BSD-3-Clause
"""Streams that receive heaps, or gather them in chunks: what is left to say of them in Python."""

from __future__ import annotations

import atexit
import contextlib
import errno
import logging
import os
import socket as sockets
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, overload

from spead_tutorial._core import (
    Chunk,
    ChunkGroup,
    ChunkRing,
    ChunkStream,
    HeapBase,
    HeapStream,
    ReceiveStream,
    ThreadPool,
)
from spead_tutorial._forms import Forms
from spead_tutorial._types import Stopped
from spead_tutorial.recv._config import (
    ACCOUNT,
    COMMON,
    ChunkStreamConfig,
    ChunkStreamGroupConfig,
    RingStreamConfig,
    StreamConfig,
    StreamStatConfig,
    UdpIbvConfig,
    stats_named,
)
from spead_tutorial.recv._stats import StreamStats

_log = logging.getLogger(__name__)
_SECOND_NS = 1_000_000_000
_T = TypeVar("_T")

#: What streams of chunks count besides: first what spead2's also do.
_OF_CHUNKS = stats_named(
    "too_old_heaps",
    "rejected_heaps",
    "misplaced_heaps",
    "chunks",
    "chunk_waits",
    "longest_chunk_wait_ns",
    "room_waits",
    "longest_room_wait_ns",
)


def _given(name: str, value: object, kind: type[_T]) -> _T:
    """Return an argument, if it is of its kind."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, not {type(value).__name__}")
    return value


class Iterated(Generic[_T]):
    """What is got, one after the other, until it is stopped."""

    if TYPE_CHECKING:

        def _get(self) -> _T: ...

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> _T:
        try:
            return self._get()
        except Stopped:
            raise StopIteration from None


class Readers(ReceiveStream):
    """What all streams that receive have in Python: it is not made itself."""

    #: Default of ``max_size`` of `add_udp_reader`, in bytes.
    DEFAULT_UDP_MAX_SIZE: ClassVar[int] = 9200
    #: Default of ``buffer_size`` of `add_udp_reader`, in bytes.
    DEFAULT_UDP_BUFFER_SIZE: ClassVar[int] = 8388608

    #: Default of ``max_size`` of `add_tcp_reader`, in bytes.
    DEFAULT_TCP_MAX_SIZE: ClassVar[int] = 65536
    #: Default of ``buffer_size`` of `add_tcp_reader`, in bytes.
    DEFAULT_TCP_BUFFER_SIZE: ClassVar[int] = 212992

    _config: StreamConfig
    _said: dict[str, int]  # how much of some counts has been spoken of
    _next_look_ns: int

    def _configure(self, config: StreamConfig | None, *of_this_kind: StreamStatConfig) -> None:
        """Check and copy how packets become heaps, which streams of a kind count more of."""
        config = StreamConfig() if config is None else config
        self._config = _given("config", config, StreamConfig).copy()
        self._config._behind = (*of_this_kind, *ACCOUNT)
        self._said = {}
        self._next_look_ns = 0

    @property
    def config(self) -> StreamConfig:
        """How packets become heaps: a copy."""
        return self._config.copy()

    @overload
    def add_udp_reader(
        self,
        port: int,
        max_size: int = DEFAULT_UDP_MAX_SIZE,
        buffer_size: int = DEFAULT_UDP_BUFFER_SIZE,
        bind_hostname: str = "",
        *,
        gro: bool = True,
        reuse_port: bool = False,
    ) -> None: ...
    @overload
    def add_udp_reader(
        self,
        socket: sockets.socket,
        max_size: int = DEFAULT_UDP_MAX_SIZE,
        *,
        gro: bool = True,
    ) -> None: ...
    @overload
    def add_udp_reader(
        self,
        multicast_group: str,
        port: int,
        max_size: int = DEFAULT_UDP_MAX_SIZE,
        buffer_size: int = DEFAULT_UDP_BUFFER_SIZE,
        interface_address: str | int = "0.0.0.0",
        *,
        interface_index: int = 0,
        gro: bool = True,
    ) -> None: ...

    def add_udp_reader(self, *args: Any, **kwargs: Any) -> None:
        """Receive UDP datagrams, each of which is a packet.

        Parameters
        ----------
        *args, **kwargs
            One of three forms, which are told apart by the first argument:

            - ``port, max_size=9200, buffer_size=8388608, bind_hostname=""``: listen on a port of
              this machine, at that address or name, or at any, of IPv4 and IPv6; 0 lets the system
              choose the port.
            - ``socket, max_size=9200``: receive from a UDP socket that is bound. It is
              duplicated, stays yours, and may be closed.
            - ``multicast_group, port, max_size=9200, buffer_size=8388608,
              interface_address="0.0.0.0"`` (or ``interface_index=0`` for IPv6): join a group, on
              the interface with that address or index, or one that the system chooses.

            ``max_size`` is how many bytes a packet has at most (UDP and IP headers not counted);
            longer ones are malformed. ``buffer_size`` is asked of the system for the socket's
            buffer, in bytes; 0 leaves what it has. Where less is granted, a warning says how to
            allow more. All have ``gro=True``: the kernel may hand over runs of equal packets as
            one (generic receive offload).

            The first form also has ``reuse_port=False``. Sockets that are opened with
            ``reuse_port=True`` by one user share a port (``SO_REUSEPORT``). The kernel chooses a
            socket for each flow, which is what one socket sends, by a hash of its addresses and
            ports: a heap of one sender stays whole, and a socket may get several flows or none. It
            chooses anew for all when one is opened or closed, and heaps on their way may be cut in
            two: open all before anything is sent, and stop the streams when all has come. A socket
            that is read too slowly drops, and no other does. Other programs of the same user can
            join in, and take a share. `port` is what 0 has become, for those that follow.

        Raises
        ------
        OSError
            Where the port is in use, or cannot be listened on (also a RuntimeError): all who
            share a port must do so with ``reuse_port=True``, and be one user.
        ValueError
            For a name that cannot be looked up, or a value out of its range.
        TypeError
            For a port that cannot be, a socket that is not one of UDP, and other arguments that
            are none of these forms.
        Stopped, RuntimeError
            As `add_buffer_reader`.
        """
        first = args[0] if args else None
        with _UDP_FORMS.told():
            if isinstance(first, sockets.socket) or "socket" in kwargs:
                self._add_socket(False, **_UDP_FORMS.bind(1, args, kwargs))
            elif isinstance(first, str) or "multicast_group" in kwargs:
                given = _UDP_FORMS.bind(2, args, kwargs)
                if not isinstance(given["interface_address"], str):  # for IPv6 it is the index
                    given["interface_index"] = given["interface_address"]
                    given["interface_address"] = ""
                self._add_host(False, given.pop("multicast_group"), **given)
            else:
                given = _UDP_FORMS.bind(0, args, kwargs)
                self._add_host(False, given.pop("bind_hostname"), **given)

    def _add_socket(self, tcp: bool, max_size: int, gro: bool = False, **named: object) -> None:
        ((name, value),) = named.items()
        socket = _given(name, value, sockets.socket)
        if socket.type != (sockets.SOCK_STREAM if tcp else sockets.SOCK_DGRAM):
            kind = "TCP" if tcp else "UDP"
            raise TypeError(f"{name} must be a {kind} socket, not of type {socket.type!r}")
        self._add_given(tcp, socket.fileno(), max_size, gro)

    def _add_host(self, tcp: bool, host: str, buffer_size: int, **given: Any) -> None:
        before = self._counts()["socket_buffer"]
        self._listen(tcp, host, buffer_size=buffer_size, **given)
        granted = (self._counts()["socket_buffer"] - before) // 2
        if 0 < granted < buffer_size:
            _log.warning(
                "the receive buffer of port %d has %d bytes, not %d: allow more with"
                " 'sysctl -w net.core.rmem_max=%d'",
                self.port, granted, buffer_size, buffer_size,
            )  # fmt: skip

    @overload
    def add_tcp_reader(
        self,
        port: int,
        max_size: int = DEFAULT_TCP_MAX_SIZE,
        buffer_size: int = DEFAULT_TCP_BUFFER_SIZE,
        bind_hostname: str = "",
    ) -> None: ...
    @overload
    def add_tcp_reader(
        self, acceptor: sockets.socket, max_size: int = DEFAULT_TCP_MAX_SIZE
    ) -> None: ...

    def add_tcp_reader(self, *args: Any, **kwargs: Any) -> None:
        """Receive the packets of a TCP connection, one after the other.

        The first connection is taken, and no second. The stream ends with it, and the connection
        with the stream. While heaps are not got, the sender has to wait.

        Parameters
        ----------
        *args, **kwargs
            One of two forms, which are told apart by the first argument:

            - ``port, max_size=65536, buffer_size=212992, bind_hostname=""``: listen on a port of
              this machine, at that address or name, or at any, of IPv4 and IPv6; 0 lets the system
              choose the port.
            - ``acceptor, max_size=65536``: take a connection from a TCP socket that listens. It is
              duplicated, stays yours, and may be closed; its ``accept`` does not wait any more.

            ``max_size`` is how many bytes a packet has at most; a longer one is counted as
            malformed, and passed over. Behind one that does not say how long it is no other can be
            found: the stream ends, which is logged. ``buffer_size`` is asked of the system for the
            socket's buffer, in bytes; 0 leaves what it has.

        Raises
        ------
        OSError
            Where the port is in use, or cannot be listened on (also a RuntimeError).
        ValueError
            For a name that cannot be looked up, a socket that does not listen, or a value out of
            its range.
        TypeError
            For a port that cannot be, a socket that is not one of TCP, and other arguments that
            are none of these forms.
        Stopped, RuntimeError
            As `add_buffer_reader`.
        """
        with _TCP_FORMS.told():
            if "acceptor" in kwargs or (args and isinstance(args[0], sockets.socket)):
                self._add_socket(True, **_TCP_FORMS.bind(1, args, kwargs))
            else:
                given = _TCP_FORMS.bind(0, args, kwargs)
                self._add_host(True, given.pop("bind_hostname"), **given)

    def add_udp_ibv_reader(self, config: UdpIbvConfig) -> None:
        """Raise NotImplementedError: `add_udp_reader` is what receives here.

        Parameters
        ----------
        config : UdpIbvConfig
            Not looked at.
        """
        raise NotImplementedError(
            "there is no ibverbs here: add_udp_reader(multicast_group, port, max_size, buffer_size,"
            " interface_address) receives through the kernel"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    @property
    def stats(self) -> StreamStats:
        """Counts since the stream was made: those of what has been read so far, at one moment."""
        counts = self._counts()
        n_stats = len(self._config._stats)
        # Those of the user only chunks' place functions count.
        of_the_user = counts.get("place", [0] * n_stats)[len(COMMON) : n_stats]
        common, behind = (
            [counts[stat.name] for stat in some] for some in (COMMON, self._config._behind)
        )
        return StreamStats(self._config.stats, [*common, *of_the_user, *behind])

    def _ended(self) -> None:
        self._warn_of_all()
        counts = self._counts()
        if self._unsaid("sys_errno", counts):
            why = os.strerror(counts["sys_errno"])
            if counts["sys_errno"] == errno.EPROTO:
                why = "a packet over TCP does not say how long it is, so no other can be found"
            failed = f"a socket failed, which ended the stream: {why}"
            _log.error("%s", counts["failure"] or failed)

    def _waiting(self) -> None:
        if time.monotonic_ns() >= self._next_look_ns:
            self._next_look_ns = time.monotonic_ns() + _SECOND_NS
            self._warn_of_all()

    def _warn_of_all(self) -> None:
        self._warn()
        if new := self._unsaid("packets_unsized", self._counts()):
            _log.warning(
                "packets that do not say how long their heap is, and have to, were dropped: %d", new
            )

    def _warn(self) -> None:
        """Say what was dropped, if that has not been spoken of."""

    def _unsaid(self, name: str, counts: Mapping[str, int]) -> int:
        """Return how much of a count has not been spoken of, which will be now."""
        new = counts[name] - self._said.get(name, 0)
        self._said[name] = counts[name]
        return new


# ---- Heaps ----


_UDP_FORMS = Forms("add_udp_reader", Readers.add_udp_reader)
_TCP_FORMS = Forms("add_tcp_reader", Readers.add_tcp_reader)


class Heap(HeapBase):
    """A heap of which all has arrived.

    Streams make them. It is given to `spead_tutorial.ItemGroup.update`, or asked for its items.

    Attributes
    ----------
    cnt : int
        Its heap count.
    flavour : Flavour
        Its flavour; ``bug_compat`` is the stream's.
    """

    __slots__ = ()


class Stream(Iterated[HeapBase], Readers, HeapStream):
    """Receives heaps.

    Readers bring packets, which a thread of the pool puts into their places in heaps. Those that
    are finished wait in a ring until you get them: the stream is its own iterator, which ends when
    the stream has. At the end of a ``with`` block it is stopped. What becomes of every packet is
    in its `stats`.

    A stream without a pool has no thread: a call that asks for a heap reads the sockets, and has it
    while its data is in the cache of this core. What arrives meanwhile waits in the socket's
    buffer, and is lost where that is full.

    Parameters
    ----------
    thread_pool : ThreadPool or None
        Whose threads do it; kept alive. None: the threads that ask for heaps, in turn.
    config : StreamConfig
        How packets become heaps; copied. By default ``StreamConfig()``.
    ring_config : RingStreamConfig
        How heaps wait; copied. By default ``RingStreamConfig()``.

    Raises
    ------
    TypeError
        For arguments that are something else.
    """

    class Ringbuffer:
        """How full a stream's ring is.

        Parameters
        ----------
        stream : Stream
            Whose ring.
        """

        def __init__(self, stream: Stream) -> None:
            self._stream = stream

        def size(self) -> int:
            """Return how many heaps wait in it."""
            return self._stream._ready()

        def capacity(self) -> int:
            """Return how many may."""
            return self._stream._ring_config.heaps

    def __init__(
        self,
        thread_pool: ThreadPool | None,
        config: StreamConfig | None = None,
        ring_config: RingStreamConfig | None = None,
    ) -> None:
        self._configure(config)
        ring_config = RingStreamConfig() if ring_config is None else ring_config
        self._ring_config = _given("ring_config", ring_config, RingStreamConfig).copy()
        self._open(thread_pool, self._config, self._ring_config, Heap)

    @property
    def ring_config(self) -> RingStreamConfig:
        """How heaps wait: a copy."""
        return self._ring_config.copy()

    @property
    def ringbuffer(self) -> Ringbuffer:
        """The ring that they wait in."""
        return Stream.Ringbuffer(self)

    def get(self) -> HeapBase:
        """Wait for the next heap.

        Other Python threads run meanwhile, and it can be interrupted (Ctrl-C).

        Returns
        -------
        Heap or IncompleteHeap
            In the order in which they were finished.

        Raises
        ------
        Stopped
            Where there will be none any more.
        """
        return self._get()

    def _warn(self) -> None:
        """Say which heaps were dropped, if there are any that have not been spoken of."""
        counts = self._counts()
        if new := self._unsaid("incomplete_heaps_dropped", counts):
            _log.warning(
                "%d incomplete heap%s dropped; of the last one, heap %d, %d of %s bytes arrived",
                new, " was" if new == 1 else "s were",
                counts["incomplete_cnt"], counts["incomplete_received"],
                counts["incomplete_length"] or "an unknown number of",
            )  # fmt: skip


# ---- Chunks ----


class ChunkRingbuffer(Iterated[Chunk], ChunkRing):
    """A queue of chunks between a stream and a program.

    It is its own iterator, which ends once the ring has been stopped and is empty.

    Parameters
    ----------
    maxsize : int
        How many chunks it has room for, at least 1.

    Raises
    ------
    ValueError
        For a ring without room.
    """

    def __init__(self, maxsize: int) -> None:
        super().__init__(maxsize)
        # That put chunks in, and what they are in.
        self._streams: list[weakref.ref[_Filling | ChunkStreamRingGroup]] = []

    def get(self) -> Chunk:
        """Wait for the next chunk.

        Other Python threads run meanwhile, and it can be interrupted (Ctrl-C).

        Returns
        -------
        Chunk
            The one that has been in the ring for longest.

        Raises
        ------
        Stopped
            Where the ring has been stopped, and is empty.
        """
        return self._get()

    def put(self, chunk: Chunk) -> None:
        """Put a chunk in, and wait for room.

        Other Python threads run meanwhile, and it can be interrupted (Ctrl-C).

        Parameters
        ----------
        chunk : Chunk
            With data and present.

        Raises
        ------
        Stopped
            Where the ring has been stopped.
        ValueError
            For a chunk without data or present, or one that is in a ring.
        """
        self._put(chunk)

    def _ended(self) -> None:
        for stream in self._alive():
            stream._ended()

    def _waiting(self) -> None:
        for stream in self._alive():
            stream._waiting()

    def _alive(self) -> list[_Filling | ChunkStreamRingGroup]:
        found = [reference() for reference in tuple(self._streams)]  # others may add to it now
        return [stream for stream in found if stream is not None]


class ChunkRingPair:
    """The two rings of streams that fill chunks; it is not made itself."""

    _rings: tuple[ChunkRingbuffer, ChunkRingbuffer] | None = None  # for data, and free ones

    def _take_rings(self, data_ringbuffer: object, free_ringbuffer: object) -> None:
        data_ring = _given("data_ringbuffer", data_ringbuffer, ChunkRingbuffer)
        self._rings = data_ring, _given("free_ringbuffer", free_ringbuffer, ChunkRingbuffer)

    def _made_rings(self) -> tuple[ChunkRingbuffer, ChunkRingbuffer]:
        if self._rings is None:
            raise RuntimeError("the stream has not been made: call its __init__")
        return self._rings

    def add_free_chunk(self, chunk: Chunk) -> None:
        """Give a chunk to be filled. After a stop nothing happens.

        A ring keeps its chunks, also after a stop: one that refers to its stream keeps that, until
        it has been taken out.

        Parameters
        ----------
        chunk : Chunk
            Its ``present`` is set to zeros.

        Raises
        ------
        Full
            Where the ring of free chunks has no room.
        ValueError
            For a chunk without data or present, or one that is in a ring.
        """
        self.free_ringbuffer._put_free(chunk)

    @property
    def data_ringbuffer(self) -> ChunkRingbuffer:
        """The ring that filled chunks go to."""
        return self._made_rings()[0]

    @property
    def free_ringbuffer(self) -> ChunkRingbuffer:
        """The ring that free chunks come from."""
        return self._made_rings()[1]


class _Filling(Readers, ChunkStream):
    """What streams that fill chunks have in Python."""

    def _fill(
        self,
        thread_pool: ThreadPool | None,
        config: StreamConfig | None,
        chunk_config: ChunkStreamConfig,
        rings: ChunkRingPair,
        group: ChunkGroup | None = None,
    ) -> None:
        self._configure(config, *_OF_CHUNKS)
        if chunk_config.place is None:
            raise ValueError("place is not set: a stream of chunks has to know where heaps belong")
        self._chunk_config = chunk_config.copy()
        # The place function counts where spead2's do: behind the common ones and before ours.
        maximum = StreamStatConfig.Mode.MAXIMUM
        modes = [stat.mode is maximum for stat in (*self._config._stats, *_OF_CHUNKS[:2])]
        data, free = rings._made_rings()
        self._open(thread_pool, self._config, self._chunk_config, data, free, modes, group)
        data._streams.append(weakref.ref(self))
        _filling.add(self)

    @property
    def chunk_stream_config(self) -> ChunkStreamConfig:
        """How heaps are gathered: a copy."""
        return self._chunk_config.copy()

    def stop(self) -> None:
        """Receive no more, and stop both rings. May be repeated.

        Ports are free afterwards. What has been filled, or begun, can still be got. Of a group, all
        members stop.
        """
        super().stop()
        self._warn()

    def _warn(self) -> None:
        counts = self._counts()
        if new := self._unsaid("misplaced_heaps", counts):
            _log.warning(
                "%d heap%s dropped that the place function had a place for where there is none; the"
                " last one: %s",
                new, " was" if new == 1 else "s were", counts["misplaced"],
            )  # fmt: skip


_filling: weakref.WeakSet[_Filling] = weakref.WeakSet()


@atexit.register
def _stop_filling() -> None:
    """Stop them before the interpreter ends, which a place function of Python's would wait for."""
    for one in list(_filling):
        with contextlib.suppress(RuntimeError):  # a child of the process that made it
            one.stop()


class ChunkRingStream(_Filling, ChunkRingPair):
    """Receives heaps, and gathers them in chunks.

    A place function says for each heap which chunk it belongs to, and where in it; the payload is
    written there straight away. Chunks come from one ring and go, filled, to another, in the order
    of their ids; while there is none, or no room, the stream waits. At the end of a ``with`` block
    it is stopped.

    A stream without a pool has no thread: a call that asks the ring of filled chunks for one reads
    for all such streams that fill it. What arrives meanwhile waits in the socket's buffer, and is
    lost where that is full.

    Where the stream ends by itself, the ring of filled chunks stops, as soon as no other stream
    puts any in. `stop` stops both rings; chunks that were begun can still be got afterwards.

    Parameters
    ----------
    thread_pool : ThreadPool or None
        Whose threads do it; kept alive. None: the threads that ask for chunks, in turn.
    config : StreamConfig
        How packets become heaps; copied. Heaps have to say how long they are, and its allocator is
        not used. By default ``StreamConfig()``.
    chunk_stream_config : ChunkStreamConfig
        How heaps are gathered; copied.
    data_ringbuffer : ChunkRingbuffer
        Where filled chunks go.
    free_ringbuffer : ChunkRingbuffer
        Where free chunks come from; see `add_free_chunk`.

    Raises
    ------
    TypeError
        For arguments that are something else.
    ValueError
        Without a place function.

    Notes
    -----
    In its `stats` there are, behind the counts of all streams and your own: ``too_old_heaps``,
    whose chunk had left; ``rejected_heaps``, which the place function refused, or for which it
    named no place that there is: the latter are also ``misplaced_heaps``; ``chunks`` that were
    filled; ``chunk_waits`` for a free chunk and ``room_waits`` for room for a filled one, with
    ``longest_chunk_wait_ns`` and ``longest_room_wait_ns``. ``heaps`` includes all of these heaps.
    """

    def __init__(
        self,
        thread_pool: ThreadPool | None,
        config: StreamConfig | None = None,
        chunk_stream_config: ChunkStreamConfig | None = None,
        data_ringbuffer: ChunkRingbuffer | None = None,
        free_ringbuffer: ChunkRingbuffer | None = None,
    ) -> None:
        # Only the argument before these has a default.
        chunk_config = _given("chunk_stream_config", chunk_stream_config, ChunkStreamConfig)
        self._take_rings(data_ringbuffer, free_ringbuffer)
        self._fill(thread_pool, config, chunk_config, self)


# ---- Groups of streams that fill the same chunks ----


class ChunkStreamGroupMember(_Filling):
    """A stream of a group; `ChunkStreamRingGroup.emplace_back` makes it.

    Readers are added to it as to any stream. Its `stats` have what those of `ChunkRingStream` have:
    ``chunks`` are those that this member handed over. `stop` stops the whole group, which a member
    keeps. Where it ends by itself, the others go on.
    """

    __slots__ = ("_of",)
    _of: ChunkStreamRingGroup


@dataclass(frozen=True, slots=True)
class ChunkStreamGroupStats:
    """How the members of a group wait for each other.

    Attributes
    ----------
    member_waits : int
        Times that members waited for another one to leave the oldest chunk.
    longest_member_wait_ns : int
        How long the longest of these waits took, in ns.
    slow_member : int or None
        The place in the group of the member that the others wait for now, if they do;
    slow_chunk_id : int or None
        which chunk it holds,
    slow_ns : int
        and for how long it has been waited for, in ns; else 0.
    """

    member_waits: int
    longest_member_wait_ns: int
    slow_member: int | None
    slow_chunk_id: int | None
    slow_ns: int


class ChunkStreamRingGroup(ChunkRingPair, Sequence[ChunkStreamGroupMember]):
    """Streams that fill the same chunks, each of which receives a part of every one.

    It is a sequence of its members. All of them are added before the first reader. Chunks leave in
    the order of their ids, each once. Members never write the same bytes: their place functions see
    to that. At the end of a ``with`` block all are stopped.

    The group fills ``max_chunks`` chunks at a time, and each member its own ``max_chunks`` among
    them, up to the newest that it has seen. A newer chunk pushes out the oldest: with ``LOSSY``
    although members lag, whose heaps in it then end; with ``LOSSLESS`` once all members have left
    it. Which one the others wait for is in the `stats`, and after a second in the log.

    Parameters
    ----------
    config : ChunkStreamGroupConfig
        What members share; copied.
    data_ringbuffer : ChunkRingbuffer
        Where filled chunks go.
    free_ringbuffer : ChunkRingbuffer
        Where free chunks come from; see `add_free_chunk`.

    Raises
    ------
    TypeError
        For arguments that are something else.
    """

    def __init__(
        self,
        config: ChunkStreamGroupConfig,
        data_ringbuffer: ChunkRingbuffer,
        free_ringbuffer: ChunkRingbuffer,
    ) -> None:
        self._config = _given("config", config, ChunkStreamGroupConfig).copy()
        self._take_rings(data_ringbuffer, free_ringbuffer)
        lossless = self._config.eviction_mode is ChunkStreamGroupConfig.EvictionMode.LOSSLESS
        self._group = ChunkGroup(self._config.max_chunks, lossless, *self._made_rings())
        # Members keep their group. So it keeps its streams by other objects, or none would ever go.
        self._streams: list[ChunkStreamGroupMember] = []
        self._members: weakref.WeakValueDictionary[int, ChunkStreamGroupMember]
        self._members = weakref.WeakValueDictionary()
        self._said: tuple[int, int] | None = None  # of which member, and chunk
        self.data_ringbuffer._streams.append(weakref.ref(self))

    def emplace_back(
        self,
        thread_pool: ThreadPool | None,
        config: StreamConfig,
        chunk_stream_config: ChunkStreamConfig,
    ) -> ChunkStreamGroupMember:
        """Add a stream.

        Parameters
        ----------
        thread_pool : ThreadPool or None
            Whose threads receive, at least one for each member that has this pool; kept alive.
            None: the threads that ask for chunks, in turn.
        config : StreamConfig
            How packets become heaps; copied.
        chunk_stream_config : ChunkStreamConfig
            How heaps are gathered; copied. Its ``max_chunks`` is at most the group's.

        Returns
        -------
        ChunkStreamGroupMember
            The stream, to add readers to.

        Raises
        ------
        RuntimeError
            After a member has had a reader, or was stopped.
        ValueError
            Without a place function, for too many chunks, or too few threads.
        TypeError
            For arguments that are something else.
        """
        stream = ChunkStreamGroupMember.__new__(ChunkStreamGroupMember)
        chunk_config = _given("chunk_stream_config", chunk_stream_config, ChunkStreamConfig)
        stream._fill(thread_pool, config, chunk_config, self, self._group)
        self._streams.append(stream)
        return self[-1]

    def _member(self, place: int) -> ChunkStreamGroupMember:
        member = self._members.get(place)
        if member is None:
            member = ChunkStreamGroupMember.__new__(ChunkStreamGroupMember)
            member._share(self._streams[place])
            member.__dict__ = self._streams[place].__dict__
            member._of = self
            self._members[place] = member
        return member

    @overload
    def __getitem__(self, index: int) -> ChunkStreamGroupMember: ...
    @overload
    def __getitem__(self, index: slice) -> list[ChunkStreamGroupMember]: ...
    def __getitem__(
        self, index: int | slice
    ) -> ChunkStreamGroupMember | list[ChunkStreamGroupMember]:
        places = range(len(self))[index]
        return self._member(places) if isinstance(places, int) else [*map(self._member, places)]

    def __len__(self) -> int:
        return len(self._streams)

    @property
    def config(self) -> ChunkStreamGroupConfig:
        """What members share: a copy."""
        return self._config.copy()

    @property
    def stats(self) -> ChunkStreamGroupStats:
        """How members wait for each other, at one moment; the other counts are their own."""
        counts = self._group.counts()
        if not counts.pop("waits"):
            counts["slow_member"] = counts["slow_chunk_id"] = None
        return ChunkStreamGroupStats(**counts)

    def stop(self) -> None:
        """Stop all members, and both rings. May be repeated.

        What has been filled, or begun, can still be got.
        """
        self._group.stop()
        for stream in self._streams:
            stream.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def _ended(self) -> None:
        """Members have said what there is to be said."""

    def _waiting(self) -> None:
        now = self.stats
        about = (now.slow_member or 0, now.slow_chunk_id or 0)
        if now.slow_ns >= _SECOND_NS and self._said != about:
            self._said = about
            _log.warning(
                "member %d of the group has held chunk %d for %.1f s while others wait for it: it"
                " receives nothing for later chunks",
                *about, now.slow_ns / _SECOND_NS,
            )  # fmt: skip

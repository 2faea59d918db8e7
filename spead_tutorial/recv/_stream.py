# SPDX-License-Identifier: BSD-3-Clause
"""Streams that receive: what is left to say of them in Python."""

from __future__ import annotations

import logging
import os
import socket as sockets
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, ClassVar, Self, overload

from spead_tutorial._core import HeapBase, HeapStream, ReceiveStream, ThreadPool
from spead_tutorial._types import Stopped
from spead_tutorial.recv._config import RingStreamConfig, StreamConfig
from spead_tutorial.recv._heap import Heap
from spead_tutorial.recv._stats import (
    ACCOUNT,
    COMMON,
    StreamStatConfig,
    StreamStats,
    account_values,
    common_values,
)

__all__ = ["Readers", "Stream"]

_log = logging.getLogger(__name__)
_SECOND_NS = 1_000_000_000


class Readers(ReceiveStream):
    """What all streams that receive have in Python: it is not made itself."""

    #: Default of ``max_size`` of `add_udp_reader`, in bytes.
    DEFAULT_UDP_MAX_SIZE: ClassVar[int] = 9200
    #: Default of ``buffer_size`` of `add_udp_reader`, in bytes.
    DEFAULT_UDP_BUFFER_SIZE: ClassVar[int] = 8388608

    #: What streams of a kind count besides what all do.
    _OF_THIS_KIND: ClassVar[tuple[StreamStatConfig, ...]] = ()

    _config: StreamConfig
    _warned_of: int
    _warned_of_unsized: int
    _next_look_ns: int

    def _configure(self, config: StreamConfig | None) -> None:
        """Check and copy how packets become heaps."""
        config = StreamConfig() if config is None else config
        if not isinstance(config, StreamConfig):
            raise TypeError(f"config must be a StreamConfig, not {type(config).__name__}")
        self._config = config.copy()
        self._config._behind = (*self._OF_THIS_KIND, *ACCOUNT)
        self._warned_of = self._warned_of_unsized = 0
        self._next_look_ns = 0
        self._told_of_end = False

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
              this machine, at that address or name, or at any; 0 lets the system choose the port.
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

        Raises
        ------
        OSError
            Where the port is in use, or cannot be listened on (a RuntimeError, too).
        ValueError
            For a name that cannot be looked up, or a value out of its range.
        TypeError
            For a port that cannot be, a socket that is not one of UDP, and other arguments that
            are none of these forms.
        Stopped
            After the stream has ended.
        RuntimeError
            After `start`, of a stream that was to be started.
        """
        first = args[0] if args else None
        if isinstance(first, sockets.socket) or "socket" in kwargs:
            self._add_given(*args, **kwargs)
        elif isinstance(first, str) or "multicast_group" in kwargs:
            self._add_group(*args, **kwargs)
        else:
            self._add_port(*args, **kwargs)

    def _add_given(
        self, socket: sockets.socket, max_size: int = DEFAULT_UDP_MAX_SIZE, *, gro: bool = True
    ) -> None:
        if not isinstance(socket, sockets.socket):
            raise TypeError(f"socket must be a socket, not {type(socket).__name__}")
        if socket.type != sockets.SOCK_DGRAM:
            raise TypeError(f"socket must be a UDP socket, not of type {socket.type!r}")
        self._add_socket(socket.fileno(), max_size, gro)

    def _add_port(
        self,
        port: int,
        max_size: int = DEFAULT_UDP_MAX_SIZE,
        buffer_size: int = DEFAULT_UDP_BUFFER_SIZE,
        bind_hostname: str = "",
        *,
        gro: bool = True,
    ) -> None:
        self._listen(bind_hostname, port, max_size, buffer_size, "", 0, gro)

    def _add_group(
        self,
        multicast_group: str,
        port: int,
        max_size: int = DEFAULT_UDP_MAX_SIZE,
        buffer_size: int = DEFAULT_UDP_BUFFER_SIZE,
        interface_address: str | int = "0.0.0.0",
        *,
        interface_index: int = 0,
        gro: bool = True,
    ) -> None:
        if isinstance(interface_address, str):
            address, index = interface_address, interface_index
        else:  # the form for IPv6, whose fifth is the index
            address, index = "", interface_address
        self._listen(multicast_group, port, max_size, buffer_size, address, index, gro)

    def _listen(
        self,
        host: str,
        port: int,
        max_size: int,
        buffer_size: int,
        interface_address: str,
        interface_index: int,
        gro: bool,
    ) -> None:
        before = self._counts()["buffer_size"]
        self._add_udp(host, port, max_size, buffer_size, interface_address, interface_index, gro)
        granted = (self._counts()["buffer_size"] - before) // 2
        if 0 < granted < buffer_size:
            _log.warning(
                "the receive buffer of port %d has %d bytes, not %d: allow more with"
                " 'sysctl -w net.core.rmem_max=%d'",
                self._port(), granted, buffer_size, buffer_size,
            )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, *exc_info: type[BaseException] | BaseException | TracebackType | None
    ) -> None:
        self.stop()

    @property
    def stats(self) -> StreamStats:
        """Counts since the stream was made: those of what has been read so far, at one moment."""
        counts = self._counts()
        # Those of the user only chunks' place functions count.
        of_the_user = [0] * (len(self._config._stats) - len(COMMON))
        return StreamStats(
            self._config.stats, [*common_values(counts), *of_the_user, *account_values(counts)]
        )

    def _ended(self) -> None:
        self._warn_of_all()
        failed = self._counts()["sys_errno"]
        if failed and not self._told_of_end:
            self._told_of_end = True
            _log.error("a socket failed, which ended the stream: %s", os.strerror(failed))

    def _waiting(self) -> None:
        if time.monotonic_ns() >= self._next_look_ns:
            self._next_look_ns = time.monotonic_ns() + _SECOND_NS
            self._warn_of_all()

    def _warn_of_all(self) -> None:
        self._warn()
        new = self.stats.packets_unsized - self._warned_of_unsized
        if new > 0:
            self._warned_of_unsized += new
            _log.warning(
                "packets that do not say how long their heap is, and have to, were dropped: %d", new
            )

    def _warn(self) -> None:
        """Say what was dropped, if that has not been spoken of."""


class Stream(Readers, HeapStream):
    """Receives heaps.

    Readers bring packets, which a thread of the pool puts into their places in heaps. Those that
    are finished wait in a ring until you get them: the stream is its own iterator, which ends when
    the stream has. At the end of a ``with`` block it is stopped. What becomes of every packet is
    in its `stats`.

    Parameters
    ----------
    thread_pool : ThreadPool
        Whose threads do it; kept alive.
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
        thread_pool: ThreadPool,
        config: StreamConfig | None = None,
        ring_config: RingStreamConfig | None = None,
    ) -> None:
        self._configure(config)
        ring_config = RingStreamConfig() if ring_config is None else ring_config
        if not isinstance(ring_config, RingStreamConfig):
            kind = type(ring_config).__name__
            raise TypeError(f"ring_config must be a RingStreamConfig, not {kind}")
        self._ring_config = ring_config.copy()
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

    def __iter__(self) -> Iterator[HeapBase]:
        return self

    def __next__(self) -> HeapBase:
        try:
            return self._get()
        except Stopped:
            raise StopIteration from None

    def _warn(self) -> None:
        """Say which heaps were dropped, if there are any that have not been spoken of."""
        counts = self._counts()
        new = counts["incomplete_dropped"] - self._warned_of
        if new == 0:
            return
        self._warned_of += new
        _log.warning(
            "%d incomplete heap%s dropped; of the last one, heap %d, %d of %s bytes arrived",
            new, " was" if new == 1 else "s were", counts["incomplete_cnt"],
            counts["incomplete_received"], counts["incomplete_length"] or "an unknown number of",
        )  # fmt: skip

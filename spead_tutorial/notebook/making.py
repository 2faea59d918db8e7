# SPDX-License-Identifier: BSD-3-Clause
"""Heaps that cells send, and the streams that send them."""

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

from spead_tutorial import ThreadPool
from spead_tutorial.measure.place import Place
from spead_tutorial.measure.verify import make_group
from spead_tutorial.send import Heap, StreamConfig, UdpStream

__all__ = ["make_group", "make_heap", "open_stream"]


def make_heap(heap_size: int) -> Heap:
    """Make a heap as programs send them after their first: two values, and no descriptors.

    It has `heap_size` bytes of samples, which are zeros.
    """
    return make_group(heap_size).get_heap(descriptors="none", data="all")


@contextlib.contextmanager
def open_stream(
    place: Place,
    kind: Any = UdpStream,
    target: tuple[str, int] | None = None,
    *,
    thread: bool = True,
    cores: tuple[int, ...] = (),
    **config: Any,
) -> Iterator[Any]:
    """Open a stream that sends to the place, with the send buffer that programs ask for.

    The `target` is another address and port. Its kind is ``UdpStream`` of `spead_tutorial.send` or
    of `spead_tutorial.send.asyncio`. It may be without a thread of its own, or have one that is
    pinned to some cores; the rest is as for `spead_tutorial.send.StreamConfig`.
    """
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(ThreadPool(1, cores)) if thread else None
        sock = stack.enter_context(place.socket())
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, kind.DEFAULT_BUFFER_SIZE)
        targets = [target or (place.address, place.port)]
        yield stack.enter_context(kind(pool, sock, targets, StreamConfig(**config)))

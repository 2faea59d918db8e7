# SPDX-License-Identifier: BSD-3-Clause
"""The five ways to make a UDP stream."""

import operator
from collections.abc import Callable, Mapping, Sequence
from socket import AF_INET, AF_INET6, SOCK_DGRAM, SOCK_STREAM
from socket import socket as Socket  # noqa: N812 - a parameter has the name
from typing import Any, ClassVar, overload

from spead_tutorial._core import ThreadPool
from spead_tutorial._forms import Forms
from spead_tutorial._types import StreamConfig, whole

#: Host (name or address) and port of each substream.
Endpoints = Sequence[tuple[str, int]]


class UdpArguments:
    """UdpStream(thread_pool, endpoints, config=None, buffer_size=524288, interface_address="")
    UdpStream(thread_pool, endpoints, config, buffer_size, ttl, interface_address="")
    UdpStream(thread_pool, endpoints, config, buffer_size, ttl, interface_index)
    UdpStream(thread_pool, endpoints, config=None, buffer_size=524288, *, interface_index)
    UdpStream(thread_pool, socket, endpoints, config=None)

    A stream that sends over UDP.

    There are five ways to make it: to endpoints; to multicast endpoints with a time to live, from
    an interface that has an address for IPv4, and an index for IPv6; with that index by name; and
    with a socket of yours.

    Parameters
    ----------
    thread_pool : ThreadPool or None
        Whose threads send; kept alive. None: the thread that calls does it, which costs least
        where it also prepares the data. Heaps are gathered until they are 256 KiB, or a call
        waits, or the event loop turns.
    endpoints : sequence of (str, int)
        Host (name or address) and port of each substream; at least one, all of one address
        family.
    config : StreamConfig, optional
        How it sends; copied. By default ``StreamConfig()``.
    buffer_size : int
        Bytes asked for in the socket's send buffer; 0 leaves the system's.
    ttl : int, optional
        Multicast time to live or hop limit, 0 to 255; by default the system's. By name it also
        goes with an interface.
    interface_address : str
        The address of the interface to send from, IPv4; empty leaves it to the system.
    interface_index : int
        The interface to send multicast from, IPv6; 0 leaves it to the system.
    dont_fragment : bool
        Packets that are larger than the path takes fail with EMSGSIZE, and the error says what
        fits. By default they are fragmented, without an error. By name only, and not with a
        socket of yours.
    zero_copy : bool
        Have the kernel read the memory of heaps in place instead of copying it, where it can and
        that pays; a heap is done only once the kernel does not read it any more. It is for data
        that is in memory already, best in `spead_tutorial.HugePages`. By name only, and not with
        a socket of yours.
    socket : socket.socket
        A UDP socket to use. It is duplicated: it stays yours, and may be closed.

    Attributes
    ----------
    DEFAULT_BUFFER_SIZE : int
        Default of `buffer_size`, in bytes.

    Raises
    ------
    ValueError
        For endpoints that are empty, of mixed families, or cannot be looked up; for port 0; for a
        ttl or an interface that does not go with them.
    TypeError
        For arguments that are none of the five forms, and for other ports that there are not.
    IndexError
        For a ttl out of range.
    OSError
        Where the socket cannot be made, or the one that was given cannot be used.
    Stopped
        Where the thread pool has been stopped.
    """

    DEFAULT_BUFFER_SIZE: ClassVar[int] = 524288
    _open_udp_stream: Callable[..., None]  # of the stream that this is a base of

    @overload
    def __init__(
        self,
        thread_pool: ThreadPool | None,
        endpoints: Endpoints,
        config: StreamConfig | None = None,
        buffer_size: int = DEFAULT_BUFFER_SIZE,
        interface_address: str = "",
        *,
        ttl: int | None = None,
        dont_fragment: bool = False,
        zero_copy: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self,
        thread_pool: ThreadPool | None,
        endpoints: Endpoints,
        config: StreamConfig | None,
        buffer_size: int,
        ttl: int,
        interface_address: str = "",
        *,
        dont_fragment: bool = False,
        zero_copy: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self,
        thread_pool: ThreadPool | None,
        endpoints: Endpoints,
        config: StreamConfig | None,
        buffer_size: int,
        ttl: int,
        interface_index: int,
        *,
        dont_fragment: bool = False,
        zero_copy: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self,
        thread_pool: ThreadPool | None,
        endpoints: Endpoints,
        config: StreamConfig | None = None,
        buffer_size: int = DEFAULT_BUFFER_SIZE,
        *,
        interface_index: int,
        ttl: int | None = None,
        dont_fragment: bool = False,
        zero_copy: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self,
        thread_pool: ThreadPool | None,
        socket: Socket,
        endpoints: Endpoints,
        config: StreamConfig | None = None,
    ) -> None: ...

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        with _FORMS.told():
            given = _FORMS.bind(_form(args, kwargs), args, kwargs)
            pool, endpoints, config = (given.pop(name) for name in _OF_ALL)
            self._open_udp_stream(pool, check_endpoints(endpoints), config, **_checked(given))


_FORMS = Forms("UdpStream", UdpArguments.__init__)
_OF_ALL = "thread_pool", "endpoints", "config"


def _form(args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
    """Tell by the types of its arguments which form a call has."""
    second, fifth, sixth = (args[i] if len(args) > i else "" for i in (1, 4, 5))
    if "socket" in kwargs or hasattr(second, "fileno"):  # what is like a socket will do
        return 4
    if isinstance(fifth, str):
        return 3 if "interface_index" in kwargs else 0
    return 1 if isinstance(sixth, str) and "interface_index" not in kwargs else 2


def check_endpoints(endpoints: Endpoints) -> list[tuple[str, int]]:
    """Return endpoints, if that is what they are."""
    try:
        checked = [(host, operator.index(port)) for host, port in endpoints]
        if all(isinstance(host, str) for host, _ in checked):
            return checked
    except (TypeError, ValueError):
        pass
    raise TypeError(
        "endpoints are pairs of host and port, such as [('192.168.31.2', 8888)], and not"
        f" {endpoints!r}"
    )


def descriptor(socket: Socket, kind: int) -> int:
    """Return the descriptor of a socket, if it is one of that kind over IP."""
    of_kind = getattr(socket, "type", None) == kind
    if not of_kind or getattr(socket, "family", None) not in (AF_INET, AF_INET6):
        name = "TCP" if kind == SOCK_STREAM else "UDP"
        raise TypeError(f"a socket to send with is a {name} socket, and not {socket!r}")
    return operator.index(socket.fileno())


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    """Check what only some forms have, and put it as the core takes it."""
    if "socket" in given:
        return {"socket": descriptor(given["socket"], SOCK_DGRAM)}
    ttl = given["ttl"]
    if isinstance(ttl, int) and not 0 <= ttl <= 255:
        raise IndexError(f"ttl {ttl} is out of range: 0 to 255")
    given["ttl"] = -1 if ttl is None else whole("ttl", ttl)
    given["buffer_size"] = whole("buffer_size", given["buffer_size"])
    if "interface_index" in given:
        given["interface_index"] = whole("interface_index", given["interface_index"], bits=32)
    return given

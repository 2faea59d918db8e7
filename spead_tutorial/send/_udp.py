# SPDX-License-Identifier: BSD-3-Clause
"""The five ways to make a UDP stream."""

import operator
from collections.abc import Callable, Iterable, Sequence
from socket import SOCK_DGRAM
from socket import socket as Socket  # noqa: N812 - a parameter has the name
from typing import Any, ClassVar

from spead_tutorial._core import ThreadPool
from spead_tutorial._types import StreamConfig, whole

#: Host (name or address) and port of each substream.
Endpoints = Sequence[tuple[str, int]]


class UdpArguments:
    """UdpStream(thread_pool, endpoints, config=None, buffer_size=524288, interface_address="")
    UdpStream(thread_pool, endpoints, config, buffer_size, ttl)
    UdpStream(thread_pool, endpoints, config, buffer_size, ttl, interface_address)
    UdpStream(thread_pool, endpoints, config, buffer_size, ttl, interface_index)
    UdpStream(thread_pool, socket, endpoints, config=None)

    A stream that sends over UDP.

    There are five ways to make it: to endpoints; to multicast endpoints with a time to live; the
    same from one interface, which has an address for IPv4 and an index for IPv6; and with a socket
    of yours.

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
    ttl : int
        Multicast time to live or hop limit, 0 to 255.
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

    def __init__(self, thread_pool: ThreadPool | None, *args: Any, **kwargs: Any) -> None:
        with_socket = "socket" in kwargs or (args and hasattr(args[0], "fileno"))
        parse = _parse_socket if with_socket else _parse_endpoints
        endpoints, config, udp = parse(*args, **kwargs)
        self._open_udp_stream(thread_pool, endpoints, config, **udp)


def _check_endpoints(endpoints: Iterable[tuple[str, int]]) -> Endpoints:
    try:
        checked = [(host, operator.index(port)) for host, port in endpoints]
    except ValueError:
        raise TypeError("endpoints are pairs of host and port: [('192.168.31.2', 8888)]") from None
    if not checked:
        raise ValueError("a stream needs at least one endpoint, such as ('192.168.31.2', 8888)")
    return checked


def _parse_socket(
    socket: Socket, endpoints: Endpoints, config: StreamConfig | None = None
) -> tuple[Endpoints, StreamConfig, dict[str, Any]]:
    if getattr(socket, "type", None) != SOCK_DGRAM:  # what is like a socket will do
        raise TypeError(f"a socket to send with is a UDP socket, and not {socket!r}")
    fd = operator.index(socket.fileno())
    config = StreamConfig() if config is None else config
    return _check_endpoints(endpoints), config, {"socket": fd}


def _parse_endpoints(
    endpoints: Endpoints,
    config: StreamConfig | None = None,
    buffer_size: int = UdpArguments.DEFAULT_BUFFER_SIZE,
    *args: Any,
    dont_fragment: bool = False,
    zero_copy: bool = False,
    **kwargs: Any,
) -> tuple[Endpoints, StreamConfig, dict[str, Any]]:
    """The fifth argument is the interface's address, or the ttl before an address or an index."""
    checked = _check_endpoints(endpoints)
    buffer_size = whole("buffer_size", buffer_size)
    names = ["ttl", "interface"]
    if args and isinstance(args[0], str):
        names = ["interface"]
    if len(args) > len(names):
        raise TypeError("UdpStream: too many arguments; see its documentation for the five forms")
    given = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        known = name in ("ttl", "interface_address", "interface_index")
        name = "interface" if name.startswith("interface_") else name
        if not known or name in given:
            raise TypeError(f"UdpStream: argument {name!r} is unknown or given twice")
        given[name] = value
    ttl, interface = operator.index(given.get("ttl", -1)), given.get("interface", "")
    if "ttl" in given and not 0 <= ttl <= 255:
        raise IndexError(f"ttl {ttl} is out of range: 0 to 255")
    udp: dict[str, Any] = {"dont_fragment": bool(dont_fragment), "zero_copy": bool(zero_copy)}
    if isinstance(interface, str):
        udp["interface_address"] = interface
    else:
        udp["interface_index"] = whole("interface_index", interface, bits=32)
    config = StreamConfig() if config is None else config
    return checked, config, {"buffer_size": buffer_size, "ttl": ttl, **udp}

# SPDX-License-Identifier: BSD-3-Clause
"""The ways to make a stream that sends over TCP."""

from __future__ import annotations

from collections.abc import Callable
from socket import IPPROTO_TCP, SO_SNDBUF, SOCK_STREAM, SOL_SOCKET, TCP_NODELAY, gaierror
from socket import socket as Socket  # noqa: N812 - a parameter has the name
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

from spead_tutorial._core import ThreadPool, check_endpoint
from spead_tutorial._forms import Forms
from spead_tutorial._types import StreamConfig, whole
from spead_tutorial.send._udp import Endpoints, check_endpoints, descriptor

if TYPE_CHECKING:
    import asyncio

_DEFAULT_BUFFER_SIZE = 212992


def _only(endpoints: Endpoints) -> tuple[str, int]:
    """The one endpoint that there has to be."""
    checked = check_endpoints(endpoints)
    if len(checked) != 1:
        raise ValueError("a TCP stream has exactly one endpoint, such as [('192.168.31.2', 8888)]")
    check_endpoint(checked[0])
    return checked[0]


async def _connected(
    loop: asyncio.AbstractEventLoop, host: str, port: int, buffer_size: int, interface: str
) -> Socket:
    """Connect to the first address of a host that takes it."""
    error: OSError | None = None
    try:
        found = await loop.getaddrinfo(host, port, type=SOCK_STREAM)
    except gaierror as failed:
        raise ValueError(f"could not look up host {host!r}: {failed.strerror}") from None
    for family, kind, protocol, _, address in found:
        socket = Socket(family, kind, protocol)
        try:
            socket.setblocking(False)
            socket.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
            if buffer_size > 0:
                socket.setsockopt(SOL_SOCKET, SO_SNDBUF, min(buffer_size, (1 << 30) - 1))
            if interface:
                socket.bind((interface, 0))
            await loop.sock_connect(socket, address)
        except OSError as failed:
            socket.close()
            error = error or failed
        except BaseException:
            socket.close()
            raise
        else:
            return socket
    raise error or OSError(f"host {host!r} has no address")


class TcpSocket:
    """TcpStream(thread_pool, socket, config=None)

    A stream that sends over a TCP connection, which `connect` makes, or you.

    Parameters
    ----------
    thread_pool : ThreadPool or None
        Whose threads send; kept alive. None: the thread that calls does it.
    socket : socket.socket
        A TCP socket that is connected. It is duplicated: it stays yours, and may be closed.
    config : StreamConfig, optional
        How it sends; copied. By default ``StreamConfig()``.

    Attributes
    ----------
    DEFAULT_BUFFER_SIZE : int
        Default of ``buffer_size`` of `connect`, in bytes.

    Raises
    ------
    TypeError
        For what is not a TCP socket.
    OSError
        For one that is not connected.
    """

    DEFAULT_BUFFER_SIZE: ClassVar[int] = _DEFAULT_BUFFER_SIZE
    _open_tcp_socket: Callable[..., None]  # of the stream that this is a base of

    def __init__(
        self, thread_pool: ThreadPool | None, socket: Socket, config: StreamConfig | None = None
    ) -> None:
        try:
            fd = descriptor(socket, SOCK_STREAM)
        except TypeError as error:
            way = "to connect, await TcpStream.connect(thread_pool, endpoints)"
            raise TypeError(f"{error}; {way}") from None
        self._open_tcp_socket(thread_pool, fd, config)

    @classmethod
    async def connect(
        cls,
        thread_pool: ThreadPool | None,
        endpoints: Endpoints,
        config: StreamConfig | None = None,
        buffer_size: int = _DEFAULT_BUFFER_SIZE,
        interface_address: str = "",
    ) -> Self:
        """Connect to a receiver, without holding up the event loop.

        Parameters
        ----------
        thread_pool, endpoints, config, buffer_size, interface_address
            As in `spead_tutorial.send.TcpStream`.

        Returns
        -------
        TcpStream
            A stream with that connection.

        Raises
        ------
        ValueError
            For another number of endpoints.
        OSError
            Where the host cannot be found, or has no listener there.
        """
        import asyncio

        host, port = _only(endpoints)
        whole("buffer_size", buffer_size)
        with await _connected(
            asyncio.get_running_loop(), host, port, buffer_size, interface_address
        ) as socket:
            return cls(thread_pool, socket, config)


class TcpArguments:
    """TcpStream(thread_pool, endpoints, config=None, buffer_size=212992, interface_address="")
    TcpStream(thread_pool, socket, config=None)

    A stream that sends over a TCP connection.

    Nothing is lost on the way, and while the receiver does not keep up, the stream waits. Large
    packets cost least: ``StreamConfig(max_packet_size=65536)`` is what receivers take by default.
    Where the connection ends, that heap and all later ones fail.

    Parameters
    ----------
    thread_pool : ThreadPool or None
        Whose threads send; kept alive. None: the thread that calls does it.
    endpoints : sequence of (str, int)
        Host (name or address) and port of the receiver: exactly one. It is connected to, which is
        waited for.
    config : StreamConfig, optional
        How it sends; copied. By default ``StreamConfig()``.
    buffer_size : int
        Bytes asked for in the socket's send buffer; 0 leaves the system's.
    interface_address : str
        The address of the interface to send from; empty leaves it to the system.
    socket : socket.socket
        A TCP socket that is connected. It is duplicated: it stays yours, and may be closed.

    Attributes
    ----------
    DEFAULT_BUFFER_SIZE : int
        Default of `buffer_size`, in bytes.

    Raises
    ------
    ValueError
        For another number of endpoints, or a host that cannot be looked up.
    OSError
        Where there is no listener, or the socket that was given is not connected.
    TypeError
        For what is not a TCP socket, and arguments of another form.
    """

    DEFAULT_BUFFER_SIZE: ClassVar[int] = _DEFAULT_BUFFER_SIZE
    _open_tcp_socket: Callable[..., None]  # of the stream that this is a base of
    _connect_tcp: Callable[..., None]

    @overload
    def __init__(
        self,
        thread_pool: ThreadPool | None,
        endpoints: Endpoints,
        config: StreamConfig | None = None,
        buffer_size: int = _DEFAULT_BUFFER_SIZE,
        interface_address: str = "",
    ) -> None: ...
    @overload
    def __init__(
        self, thread_pool: ThreadPool | None, socket: Socket, config: StreamConfig | None = None
    ) -> None: ...

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        with_socket = "socket" in kwargs or (len(args) > 1 and hasattr(args[1], "fileno"))
        with _FORMS.told():
            given = _FORMS.bind(with_socket, args, kwargs)
            pool, to, config, *others = given.values()
            if with_socket:
                self._open_tcp_socket(pool, descriptor(to, SOCK_STREAM), config)
            else:
                self._connect_tcp(pool, _only(to), config, *others)


_FORMS = Forms("TcpStream", TcpArguments.__init__)

# SPDX-License-Identifier: BSD-3-Clause
"""Heaps through a TCP connection, and what else may come; see also `test_telescopes`."""

import contextlib
import logging
import socket

import pytest

import spead_tutorial as st
import spead_tutorial.recv.asyncio
import spead_tutorial.send.asyncio
from spead_tutorial import recv, send
from support.heaps import make_heap
from support.loops import in_loop

HOST = "127.0.0.1"
LARGE = 100_000


@pytest.fixture
def acceptor():
    """A socket that listens."""
    with socket.create_server((HOST, 0)) as made:
        yield made


def listening(pool):
    """A stream that receives from a port, and where that is."""
    stream = recv.Stream(pool)
    stream.add_tcp_reader(0, bind_hostname=HOST)
    return stream, (HOST, stream.port)


@in_loop
async def test_coroutines_connect_send_and_receive(own_threads):
    receiver = spead_tutorial.recv.asyncio.Stream(own_threads)
    receiver.add_tcp_reader(0, bind_hostname=HOST)
    sender = await spead_tutorial.send.asyncio.TcpStream.connect(
        own_threads, [("localhost", receiver.port)], send.StreamConfig(max_heaps=10), 100_000, HOST
    )
    futures = [sender.async_send_heap(make_heap(LARGE, i)) for i in range(5)]
    heaps = [await receiver.get() for _ in futures]
    assert [bytes(heap.get_items()[0]) for heap in heaps] == [bytes([i]) * LARGE for i in range(5)]
    assert [await future for future in futures] == [sender.stats.bytes // 5] * 5
    del sender  # which ends the connection, and that the stream
    with pytest.raises(st.Stopped):
        await receiver.get()


@in_loop
async def test_a_buffer_is_as_large_as_was_asked_for(own_threads, acceptor, monkeypatch):
    asked = []

    class Noting(socket.socket):
        def setsockopt(self, *option):
            asked.append(option)
            super().setsockopt(*option)

    monkeypatch.setattr("spead_tutorial.send._tcp.Socket", Noting)
    connect = spead_tutorial.send.asyncio.TcpStream.connect
    await connect(own_threads, [acceptor.getsockname()], buffer_size=54321)
    assert (socket.SOL_SOCKET, socket.SO_SNDBUF, 54321) in asked
    asked.clear()
    await connect(own_threads, [acceptor.getsockname()], buffer_size=0)  # the system's
    assert socket.SO_SNDBUF not in [option for _, option, _ in asked]


def test_a_socket_that_is_connected_is_duplicated(own_threads):
    stream, address = listening(own_threads)
    with socket.create_connection(address) as given:
        sender = send.TcpStream(own_threads, given)
    sender.send_heap(make_heap(10))
    sender.close()
    assert len(list(stream)) == 1


def test_what_cannot_be_found_behind_a_broken_packet_is_said(own_threads, caplog):
    stream, address = listening(own_threads)
    with socket.create_connection(address) as sender:
        sender.sendall(b"GET / HTTP/1.1\r\n\r\n")
        with caplog.at_level(logging.ERROR):
            assert list(stream) == []
    assert "a packet over TCP does not say how long it is" in caplog.text
    assert stream.stats.malformed_header == 1


def test_the_connection_ends_with_the_stream_whoever_ended_that(thread_pool):
    """A sender is not to wait for a stream that another reader has ended, or its pool."""
    stream, address = listening(thread_pool)
    with socket.create_connection(address, timeout=5) as sender:
        with contextlib.suppress(st.Empty):
            stream.get_nowait()  # without a thread, that takes the connection
        if thread_pool is None:
            stream.add_buffer_reader(b"")
            assert list(stream) == []
        else:
            thread_pool.stop()
        with pytest.raises(ConnectionError):
            sender.sendall(bytes(1 << 28))  # more than any buffer


def test_errors_say_what_is_wrong(own_threads, acceptor):
    address = acceptor.getsockname()
    for endpoints in ([], [address, address]):
        with pytest.raises(ValueError, match="exactly one endpoint"):
            send.TcpStream(own_threads, endpoints)
    with socket.socket() as sock:
        with pytest.raises(OSError, match="has to be connected"):
            send.TcpStream(own_threads, sock)
        sock.bind((HOST, 0))
        with pytest.raises(ConnectionRefusedError, match="is the receiver listening there"):
            send.TcpStream(own_threads, [sock.getsockname()])
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        for other in (sock, None):
            with pytest.raises(TypeError, match="TCP socket"):
                send.TcpStream(own_threads, socket=other)
        with pytest.raises(TypeError, match="TCP socket"):
            recv.Stream(own_threads).add_tcp_reader(sock)
    with pytest.raises(TypeError):
        recv.Stream(own_threads).add_tcp_reader(-1)


@in_loop
async def test_a_coroutine_is_told_where_nobody_listens(own_threads, acceptor):
    connect = spead_tutorial.send.asyncio.TcpStream.connect
    address = acceptor.getsockname()
    acceptor.close()
    with pytest.raises(ConnectionRefusedError):
        await connect(own_threads, [address])
    with pytest.raises(ValueError, match="exactly one endpoint"):
        await connect(own_threads, [])
    with pytest.raises(TypeError, match="out of range"):
        await connect(own_threads, [(HOST, address[1] + 65536)])
    with pytest.raises(ValueError, match="look up"):
        await connect(own_threads, [("no such host", address[1])])
    with pytest.raises(ValueError, match="NUL"):
        await connect(own_threads, [(f"{HOST}\0", address[1])])

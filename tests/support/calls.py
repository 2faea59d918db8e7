# SPDX-License-Identifier: BSD-3-Clause
"""Calls in all their forms, for mypy alone: those that have to be ignored are wrong."""

import asyncio
import socket

from spead_tutorial import InprocQueue, MemoryPool, ThreadPool, recv, send
from spead_tutorial.recv import asyncio as recv_asyncio
from spead_tutorial.send import asyncio as send_asyncio

pool, config, queue = ThreadPool(), send.StreamConfig(), InprocQueue()
there: list[tuple[str, int]] = [("239.1.2.3", 8888)]
host, port = there[0]
sock = socket.socket()


def sending_over_udp() -> None:
    for stream in send.UdpStream, send_asyncio.UdpStream:
        stream(pool, there)
        stream(None, [(host, port)], config, 0, "192.168.31.1", zero_copy=True)
        stream(pool, (("ff12::1", port),), config=None, dont_fragment=True)
        stream(thread_pool=pool, endpoints=there, buffer_size=0, interface_address="192.168.31.1")
        stream(pool, there, config, 0, 4)
        stream(pool, there, ttl=4)
        stream(pool, there, config, 0, 4, "192.168.31.1", zero_copy=True)
        stream(pool, there, config, ttl=4, interface_address="192.168.31.1")
        stream(pool, there, config, 0, 4, 2)
        stream(pool, there, config, 0, 4, interface_index=2)
        stream(pool, there, ttl=4, interface_index=2, dont_fragment=True)
        stream(pool, sock, there)
        stream(pool, socket=sock, endpoints=there, config=config)


def sending_over_udp_as_it_cannot_be() -> None:
    for stream in send.UdpStream, send_asyncio.UdpStream:
        stream()  # type: ignore[call-overload]
        stream(pool)  # type: ignore[call-overload]
        stream(there, config)  # type: ignore[call-overload]
        stream(pool, host, port)  # type: ignore[call-overload]
        stream(pool, (host, port))  # type: ignore[arg-type]
        stream(pool, [host])  # type: ignore[list-item]
        stream(pool, [(host, "8888")])  # type: ignore[list-item]
        stream(pool, there, 9000)  # type: ignore[call-overload]
        stream(pool, there, recv.StreamConfig())  # type: ignore[call-overload]
        stream(pool, there, config, "192.168.31.1")  # type: ignore[call-overload]
        stream(pool, there, config, 0, 4.5)  # type: ignore[call-overload]
        stream(pool, there, config, 0, 4, ttl=4)  # type: ignore[call-overload]
        stream(pool, there, config, 0, 4, "", 2)  # type: ignore[call-overload]
        stream(pool, there, tttl=4)  # type: ignore[call-overload]
        stream(pool, there, interface_index="eth1")  # type: ignore[call-overload]
        stream(pool, there, interface_address="", interface_index=2)  # type: ignore[call-overload]
        stream(pool, there, max_packet_size=9000)  # type: ignore[call-overload]
        stream(pool, sock)  # type: ignore[call-overload]
        stream(pool, sock, there, config, 0)  # type: ignore[call-overload]
        stream(pool, sock, there, zero_copy=True)  # type: ignore[call-overload]
        stream(pool, there, sock)  # type: ignore[call-overload]


async def sending_otherwise() -> None:
    send.TcpStream(pool, there)
    send.TcpStream(None, there, config, 0, "192.168.31.1")
    send.TcpStream(pool, there, buffer_size=0)
    send.TcpStream(pool, sock, config)
    send.TcpStream(pool, socket=sock)
    send_asyncio.TcpStream(pool, sock, config)
    connected = await send_asyncio.TcpStream.connect(pool, there, config, 0, "192.168.31.1")
    sent: asyncio.Future[int] = connected.async_send_heap(send.Heap())
    await sent
    send.InprocStream(pool, [queue])
    send_asyncio.InprocStream(None, (queue, queue), config=config)
    send.BytesStream(None, config)


async def sending_otherwise_as_it_cannot_be() -> None:
    send.TcpStream(pool)  # type: ignore[call-overload]
    send.TcpStream(pool, host, port)  # type: ignore[call-overload]
    send.TcpStream(pool, there, config, 0, "", 4)  # type: ignore[call-overload]
    send.TcpStream(pool, there, ttl=4)  # type: ignore[call-overload]
    send.TcpStream(pool, sock, config, 0)  # type: ignore[call-overload]
    send.TcpStream(pool, sock, there)  # type: ignore[call-overload]
    send_asyncio.TcpStream(pool, there)  # type: ignore[arg-type]
    send_asyncio.TcpStream(pool, sock, config, 0)  # type: ignore[call-arg]
    await send_asyncio.TcpStream.connect(pool, host, port)  # type: ignore[arg-type]
    send.InprocStream(pool, queue)  # type: ignore[arg-type]
    send.InprocStream(pool, [queue], 0)  # type: ignore[arg-type]
    send_asyncio.InprocStream(pool, queue=queue)  # type: ignore[call-arg]
    send.BytesStream(config)  # type: ignore[arg-type]


def receiving() -> None:
    for stream in recv.Stream(pool), recv_asyncio.Stream(None):
        stream.add_udp_reader(port)
        stream.add_udp_reader(port, 9200, 0, "192.168.31.1", gro=False, reuse_port=True)
        stream.add_udp_reader(port=port, bind_hostname="localhost")
        stream.add_udp_reader(sock)
        stream.add_udp_reader(socket=sock, max_size=9200, gro=False)
        stream.add_udp_reader(host, port, 9200, 0, "192.168.31.1")
        stream.add_udp_reader(multicast_group=host, port=port, interface_index=2)
        stream.add_udp_reader("ff12::1", port, 9200, 0, 2)
        stream.add_tcp_reader(port, 65536, 0, "localhost")
        stream.add_tcp_reader(acceptor=sock, max_size=65536)
    MemoryPool(1, 2, 3, 4)
    MemoryPool(pool, 1, 2, 3, 4, 5)


def receiving_as_it_cannot_be() -> None:
    for stream in recv.Stream(pool), recv_asyncio.Stream(None):
        stream.add_udp_reader()  # type: ignore[call-overload]
        stream.add_udp_reader(host)  # type: ignore[call-overload]
        stream.add_udp_reader((host, port))  # type: ignore[call-overload]
        stream.add_udp_reader(port, host)  # type: ignore[call-overload]
        stream.add_udp_reader(port, 9200, 0, "", True)  # type: ignore[call-overload]
        stream.add_udp_reader(port, interface_address=host)  # type: ignore[call-overload]
        stream.add_udp_reader(sock, 9200, 0)  # type: ignore[call-overload]
        stream.add_udp_reader(host, port, reuse_port=True)  # type: ignore[call-overload]
        stream.add_udp_reader(host, port, interface_index="eth1")  # type: ignore[call-overload]
        stream.add_tcp_reader(host, port)  # type: ignore[call-overload]
        stream.add_tcp_reader(port, gro=True)  # type: ignore[call-overload]
        stream.add_tcp_reader(sock, 65536, 0)  # type: ignore[call-overload]
    MemoryPool(1, 2, 3)  # type: ignore[call-overload]
    MemoryPool(pool, 1, 2, 3, 4)  # type: ignore[call-overload]

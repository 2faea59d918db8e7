# SPDX-License-Identifier: BSD-3-Clause
"""Programs written for spead2, and with one word changed: each receives what each sends."""

import asyncio
import contextlib
import itertools
import socket
from importlib import import_module

import numpy as np
import pytest

from support.heaps import same
from support.sockets import udp_socket
from support.telescopes import LIBRARIES, program

MIXES = list(itertools.product(LIBRARIES, repeat=2))
mixes = pytest.mark.parametrize(("sender", "receiver"), MIXES)


@pytest.fixture
def sockets():
    """Make sockets that listen on loopback."""
    with contextlib.ExitStack() as stack:
        yield lambda make=udp_socket: stack.enter_context(make())


def acceptor():
    return socket.create_server(("127.0.0.1", 0))


@pytest.mark.parametrize("flavour", [(4, 64, 48), (4, 64, 40, 7)], ids=["48", "PySPEAD"])
@mixes
def test_an_ingest_has_items_of_every_kind(sockets, sender, receiver, flavour):
    correlator, ingest = program("ingest", sender), program("ingest", receiver)
    sock = sockets()
    stream = ingest.listen(sock, *flavour[3:])
    received = RECEIVED | UNPACKED[receiver]
    sent = correlator.send(sock.getsockname(), flavour)
    got, known, counts = asyncio.run(ingest.receive(stream))
    assert known == sent
    assert counts == {
        "heaps": correlator.DUMPS + 1,
        "incomplete_heaps_evicted": 0,
        "incomplete_heaps_flushed": 0,
    }
    for n, (cnt, values) in enumerate(got[1:]):
        expected = correlator.make_dump(n)
        assert cnt == n + 10
        assert values.keys() == expected.keys()
        for name, value in expected.items():
            assert same(values[name], received.get(name, np.asarray)(value)), (n, name)


#: What becomes of values that are no array, or are received as another one than was sent.
RECEIVED = {
    "timestamp": int,
    "rate": np.float64,
    "target": str,
    "sensors": lambda value: value.astype(value.dtype.newbyteorder("=")),
    "pointing": lambda value: value.astype(np.float32),
    "observers": lambda value: np.array(value, "S1"),
}

#: Where NumPy has no type for a field, ours is the smallest one that holds it.
UNPACKED = {
    "spead2": {
        "delays": lambda value: np.array(value, [("f0", "O"), ("f1", ">f4")]),
        "mask": lambda value: value.astype(object),
    },
    "spead_tutorial": {"delays": lambda value: np.array(value, [("f0", "i2"), ("f1", "f4")])},
}


@mixes
def test_a_packet_longer_than_the_receiver_takes_costs_only_its_heap(sockets, sender, receiver):
    package, recv = import_module(sender), import_module(f"{receiver}.recv")
    send = import_module(f"{sender}.send")
    accepting = sockets(acceptor)
    stream = recv.Stream(import_module(receiver).ThreadPool())
    stream.add_tcp_reader(accepting, max_size=2000)
    config = send.StreamConfig(max_packet_size=65536)
    connection = send.TcpStream(package.ThreadPool(), [accepting.getsockname()], config)
    for size in (1000, 9000, 1000, 1000):
        heap = send.Heap()
        values = np.ones(size, np.int8)
        heap.add_item(package.Item(0x1600, "values", "", values.shape, values.dtype, value=values))
        assert connection.send_heap(heap) > size
    del connection
    assert [heap.cnt for heap in stream] == [1, 3, 4]
    if receiver == "spead_tutorial":
        assert (stream.stats.packets_received, stream.stats.malformed_surplus) == (4, 1)

# SPDX-License-Identifier: BSD-3-Clause
"""Classes derived from the library's, with arguments and attributes of their own."""

import importlib
import weakref
from typing import Any

import pytest

import spead_tutorial as st
from spead_tutorial import recv, send

#: How each is made, of a library.
MADE = {
    "ThreadPool": lambda module: (1,),
    "InprocQueue": lambda module: (),
    "send.Heap": lambda module: (module.Flavour(4, 64, 48),),
    "send.StreamConfig": lambda module: (),
    "send.BytesStream": lambda module: (module.ThreadPool(),),
    "send.ItemGroup": lambda module: (3,),
    "recv.Stream": lambda module: (module.ThreadPool(),),
    "recv.StreamConfig": lambda module: (),
    "recv.RingStreamConfig": lambda module: (),
    "recv.ChunkStreamConfig": lambda module: (),
    "recv.Chunk": lambda module: (),
    "recv.ChunkRingbuffer": lambda module: (2,),
    "recv.asyncio.ChunkRingbuffer": lambda module: (2,),
}


@pytest.mark.parametrize("package", ["spead2", "spead_tutorial"])
@pytest.mark.parametrize("name", MADE)
def test_a_derived_class_has_arguments_and_attributes_of_its_own(package, name):
    module = importlib.import_module(package)
    folder, _, kind = name.rpartition(".")
    base: Any = getattr(importlib.import_module(f"{package}.{folder}".rstrip(".")), kind)

    class Derived(base):
        def __init__(self, label, *, more):
            super().__init__(*MADE[name](module))
            self.label, self.more = label, more

    derived = Derived("x", more=7)
    assert (derived.label, derived.more) == ("x", 7)
    # Python has instances of derived classes referred to weakly, but not those of compiled ones.
    of_base = base(*MADE[name](module))
    assert weakref.ref(of_base)() is of_base


def test_what_was_not_made_says_so_and_nothing_is_made_twice():
    kinds = send.Heap, st.ThreadPool, recv.ChunkRingbuffer, recv.Stream, recv.ChunkRingStream
    heap, pool, ring, stream, chunks = (kind.__new__(kind) for kind in kinds)
    chunk = recv.Chunk(data=bytearray(8), present=bytearray(1))
    for use in (
        heap.add_start,
        lambda: heap.repeat_pointers,
        lambda: send.HeapReference(heap),
        lambda: send.PacketGenerator(heap, 1, 1472),
        lambda: send.BytesStream(st.ThreadPool()).send_heap(heap),
        pool.stop,
        lambda: send.BytesStream(pool),
        ring.get_nowait,
        lambda: ring.maxsize,
        stream.get,
        stream.get_nowait,
        stream.start,
        stream.stop,
        lambda: stream.fd,
        lambda: stream.add_buffer_reader(b""),
        lambda: chunks.add_free_chunk(chunk),
    ):
        with pytest.raises(RuntimeError, match=r"has not been made|__init__"):
            use()
    pool.__init__(1)
    ring.__init__(1)
    for one, arguments in ((send.Heap(), ()), (pool, (1,)), (ring, (1,))):
        with pytest.raises(RuntimeError, match="made already"):
            one.__init__(*arguments)

# SPDX-License-Identifier: BSD-3-Clause
"""Classes derived from the library's, with arguments and attributes of their own."""

import importlib
import weakref
from typing import Any

import pytest

import spead_tutorial
import spead_tutorial.recv
import spead_tutorial.send

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
    heap, pool, ring = (
        kind.__new__(kind)
        for kind in (
            spead_tutorial.send.Heap,
            spead_tutorial.ThreadPool,
            spead_tutorial.recv.ChunkRingbuffer,
        )
    )
    made = spead_tutorial.send.Heap()
    for use in (
        heap.add_start,
        lambda: heap.repeat_pointers,
        lambda: spead_tutorial.send.HeapReference(heap),
        lambda: spead_tutorial.send.PacketGenerator(heap, 1, 1472),
        pool.stop,
        lambda: spead_tutorial.send.BytesStream(pool),
        ring.get_nowait,
        lambda: ring.maxsize,
    ):
        with pytest.raises(RuntimeError, match="has not been made"):
            use()
    with pytest.raises(RuntimeError, match="has not been made"):
        spead_tutorial.send.BytesStream(spead_tutorial.ThreadPool()).send_heap(heap)
    pool.__init__(1)
    ring.__init__(1)
    for one in (made, pool, ring):
        with pytest.raises(RuntimeError, match="made already"):
            one.__init__(*(() if one is made else (1,)))

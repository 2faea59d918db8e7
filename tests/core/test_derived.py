# SPDX-License-Identifier: BSD-3-Clause
"""Classes derived from the library's, with arguments and attributes of their own."""

import contextlib
import copy
import gc
import importlib
import inspect
import pickle
import weakref
from typing import Any

import numpy as np
import pytest

import spead_tutorial as st
from spead_tutorial import recv, send
from spead_tutorial.recv import asyncio as recv_asyncio
from spead_tutorial.send import asyncio as send_asyncio

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
        lambda: send.HeapReferenceList([send.HeapReference.__new__(send.HeapReference)]),
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
    reference = send.HeapReference(send.Heap()), (send.Heap(),)
    for one, arguments in ((send.Heap(), ()), (pool, (1,)), (ring, (1,)), reference):
        with pytest.raises(RuntimeError, match="made already"):
            one.__init__(*arguments)


def test_counts_that_have_not_been_made_have_no_attributes_and_those_made_are_copied():
    unmade = recv.StreamStats.__new__(recv.StreamStats)
    for use in (
        lambda: unmade.heaps,
        lambda: unmade.config,
        lambda: unmade._places,
        lambda: unmade["heaps"],
        lambda: setattr(unmade, "heaps", 1),
        lambda: len(unmade),
        lambda: list(unmade),
        lambda: repr(unmade),
        lambda: copy.copy(unmade),
        lambda: copy.deepcopy(unmade),
        lambda: pickle.dumps(unmade),
    ):
        with pytest.raises(AttributeError, match="have not been made"):
            use()
    assert not hasattr(unmade, "heaps")
    made = recv.StreamStats(recv.StreamConfig().stats, range(100, 100 + 9))
    for one in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert (one, one.config, one.heaps) == (made, made.config, 100)
        one.heaps = 7
        assert made.heaps == 100
    with pytest.raises(AttributeError, match="there is no count 'nothing'"):
        made.nothing  # noqa: B018


@pytest.mark.parametrize("module", [st, send, recv, send_asyncio, recv_asyncio])
def test_no_object_looks_for_an_attribute_without_end_before_it_is_made(module):
    unmade = []
    for kind in filter(inspect.isclass, vars(module).values()):
        with contextlib.suppress(TypeError):  # those that are made all at once
            unmade.append(kind.__new__(kind))
    assert unmade
    assert not any(hasattr(one, "nothing_that_it_has") for one in unmade)


def test_what_the_garbage_collector_clears_lets_go():
    """Also where it is older than what refers to it in a circle."""

    class Box:
        pass

    heap, data = send.Heap(), bytearray(8)
    box, chunk = Box(), recv.Chunk(data=data, present=bytearray(1))
    box.parts = box, send.PacketGenerator(heap, 1, 1472), chunk
    del box, chunk
    gc.collect()
    heap.add_start()
    data.append(0)


def test_a_copy_of_a_group_makes_heaps_of_its_own_items():
    group, expected = send.ItemGroup(), send.ItemGroup()
    for one in (group, expected):
        one.add_item(0x1000, "x", "", (), np.int32, value=1)
    expected.add_item(0x1001, "y", "", (), np.int32, value=2)
    wanted = list(send.PacketGenerator(expected.get_heap("all", "all"), 1, 1472))
    copies = copy.deepcopy(group), pickle.loads(pickle.dumps(group)), copy.copy(group)
    del group
    for one in copies:
        one.add_item(0x1001, "y", "", (), np.int32, value=2)
        assert list(send.PacketGenerator(one.get_heap("all", "all"), 1, 1472)) == wanted

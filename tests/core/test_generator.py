# SPDX-License-Identifier: BSD-3-Clause
"""What the generator puts into heaps, against spead2's own."""

import gc
import random
import weakref

import numpy as np
import pytest
import spead2
import spead2.send

import spead_tutorial
from spead_tutorial import send

CHOICES = ("stale", "all", "none")
ACTIONS = ("assign", "again", "fill", "add", "same", "get_start", "get_end", "none", "none")


def packets(heap):
    """Return the packets, by the packetizer that the heap belongs to."""
    module = send if isinstance(heap, send.Heap) else spead2.send
    return list(module.PacketGenerator(heap, 1, 1472))


EMPTY = packets(send.Heap(spead_tutorial.Flavour()))


def add(group, id=0x2000, name="a", value=(1, 2, 3, 4, 5, 6, 7, 8)):
    value = None if value is None else np.array(value, "u1")
    return group.add_item(id, name, "", (8,), "u1", value=value)


def change(group, action, step, key, value):
    """Do something to a group, and return the packets of what it makes besides the next heap."""
    if action == "assign":
        group[key].value = np.full(group[key].shape, step, "u1")
    elif action == "again":
        group["a"].value = group["a"].value
    elif action == "add":
        add(group, 0x3000 + step, f"n{step}", value)
    elif action == "same":
        add(group, group["a"].id, "a", [step] * 8)
    elif action == "fill":  # in place, which nobody sees
        group["a"].value.fill(step)
    elif action != "none":
        return packets(getattr(group, action)())
    return None


@pytest.mark.parametrize("frequency", [None, 1, 2, 3])
def test_random_sequences_of_heaps_are_those_of_spead2(frequency):
    for seed in range(100):
        rng = random.Random(seed)
        groups = send.ItemGroup(frequency), spead2.send.ItemGroup(frequency)
        for group in groups:
            add(group, 0x2000, "a")
            add(group, 0x2001, "b", None)
        for step in range(15):
            action = rng.choice(ACTIONS)
            choices = rng.choice(CHOICES), rng.choice(CHOICES)
            how = action, step, rng.choice((0x2000, 0x2001)), rng.choice((None, [step] * 8))
            ours, theirs = (
                (change(group, *how), packets(group.get_heap(*choices))) for group in groups
            )
            assert ours == theirs, (seed, how)


def test_a_replaced_item_is_sent_as_a_new_one_as_spead2_does():
    for module in (send, spead2.send):
        group = module.ItemGroup()
        add(group)
        first = packets(group.get_heap())
        group.add_item(0x2000, "a", "", (1, 8), "u1", value=np.ones((1, 8), "u1"))
        assert packets(group.get_heap()) != first
        assert packets(group.get_heap()) == EMPTY


@pytest.mark.parametrize("bad", ["some", None, True])
@pytest.mark.parametrize("what", ["descriptors", "data"])
def test_another_choice_is_refused(what, bad):
    with pytest.raises(ValueError, match=f"{what} is {bad!r}"):
        send.ItemGroup().get_heap(**{what: bad})


def test_items_are_added_to_a_heap_that_has_some_already():
    group = send.ItemGroup()
    add(group)
    heap = send.Heap(spead_tutorial.Flavour())
    heap.add_start()
    assert group.add_to_heap(heap) is heap
    assert packets(heap) != packets(group.get_start())


def test_a_heap_that_could_not_be_filled_counts_as_nothing():
    group = send.ItemGroup()
    good, bad = add(group), add(group, 0x2001, "b")
    bad.value = [1]
    with pytest.raises(ValueError, match=r"'b'.*shape"):
        group.get_heap()
    bad.value = np.zeros(8, "u1")
    everything = send.Heap(spead_tutorial.Flavour())
    for item in (good, bad):
        everything.add_descriptor(item)
        everything.add_item(item)
    assert packets(group.get_heap()) == packets(everything)


def test_heaps_have_the_flavour_of_the_generator():
    flavour = spead_tutorial.Flavour(4, 64, 48)
    group = send.ItemGroup(flavour=flavour)
    for heap in (group.get_heap(), group.get_start(), group.get_end()):
        assert heap.flavour == flavour


def test_generators_of_one_group_know_only_what_they_sent_themselves():
    group = spead_tutorial.ItemGroup()
    add(group)
    first, second = send.HeapGenerator(group), send.HeapGenerator(group)
    assert packets(first.get_heap()) == packets(second.get_heap()) != EMPTY
    assert packets(first.get_heap()) == packets(second.get_heap()) == EMPTY


def test_a_replaced_item_is_let_go():
    group = send.ItemGroup()
    value = np.zeros(8, "u1")
    alive = weakref.ref(value)
    group.add_item(0x2000, "a", "", (8,), "u1", value=value)
    group.get_heap()
    del value
    add(group, 0x2001, "a")
    group.get_heap()
    assert alive() is None


def test_a_group_is_let_go_without_the_garbage_collector():
    group = send.ItemGroup()
    add(group)
    group.get_heap()
    alive = weakref.ref(group)
    gc.disable()
    try:
        del group
        assert alive() is None
    finally:
        gc.enable()

# SPDX-License-Identifier: BSD-3-Clause
"""Heaps made from a group of items: only what the receiver does not have yet goes into them."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable
from typing import Any, Protocol

from spead_tutorial import items
from spead_tutorial._core import Heap
from spead_tutorial.flavour import Flavour

_CHOICES = ("stale", "all", "none")
_NEVER = math.inf


class _Group(Protocol):
    """All that a generator needs of a group."""

    def values(self) -> Iterable[items.Item]: ...


class _Sent:
    """What the receiver has of one item."""

    __slots__ = ("descriptor_due", "item", "version")

    def __init__(self, item: items.Item) -> None:
        self.item = item
        # Version of the value; None if no value was sent.
        self.version: int | None = None
        # Number of the heap from which on the descriptor has to be sent again.
        self.descriptor_due = 0.0


class HeapGenerator:
    """Puts the descriptors and values that a receiver lacks into heaps.

    Parameters
    ----------
    item_group : ItemGroup
        What to send. It may be changed at any time: items added, replaced, and given values.
    descriptor_frequency : int, optional
        Descriptors are sent again after this number of heaps, for receivers that join late. By
        default they are sent once.
    flavour : Flavour
        Flavour of the heaps that are made here.

    Notes
    -----
    A descriptor is *stale* if it was never sent, or if it was sent `descriptor_frequency` or more
    heaps ago. A value is stale if it was never sent, or if another one was assigned to
    ``item.value`` since; changes inside an array do not make it stale. An item that is replaced in
    the group is a new one. An item without a value has only its descriptor sent.

    A heap counts as sent when it has been filled. If filling it fails, nothing counts as sent, and
    it has a part: take a new one.
    """

    def __init__(
        self,
        item_group: _Group,
        descriptor_frequency: int | None = None,
        flavour: Flavour = Flavour(),  # noqa: B008 (frozen)
    ) -> None:
        self._item_group = item_group
        self._frequency = _NEVER if descriptor_frequency is None else descriptor_frequency
        self._flavour = flavour
        self._n_heaps = 0
        self._sent: dict[int, _Sent] = {}

    def add_to_heap(self, heap: Heap, descriptors: str = "stale", data: str = "stale") -> Heap:
        """Add items to a heap, in the group's order, every descriptor just before its value.

        Parameters
        ----------
        heap : Heap
            What to add to; not in flight.
        descriptors, data : {"stale", "all", "none"}
            Which descriptors and which values.

        Returns
        -------
        Heap
            The same heap.

        Raises
        ------
        ValueError
            If a choice is not one of these, or a value does not fit its item.
        BufferError
            If the heap is being sent.
        """
        for name, choice in (("descriptors", descriptors), ("data", data)):
            if choice not in _CHOICES:
                raise ValueError(f"{name} is {choice!r}: it has to be one of {_CHOICES}")
        # Descriptors that are due by then are sent.
        by = {"stale": self._n_heaps, "all": _NEVER, "none": -_NEVER}[descriptors]
        sent_descriptors: list[_Sent] = []
        sent_values: list[_Sent] = []
        n_items = 0
        for item in self._item_group.values():
            n_items += 1
            sent = self._sent.get(item.id)
            if sent is None or sent.item is not item:
                sent = self._sent[item.id] = _Sent(item)
            if sent.descriptor_due <= by:
                heap.add_descriptor(item)
                sent_descriptors.append(sent)
            is_stale = sent.version != item.version
            if (data == "all" or (data == "stale" and is_stale)) and item.value is not None:
                heap.add_item(item)
                sent_values.append(sent)
        # Only now is it known that all of them are in the heap.
        for sent in sent_descriptors:
            sent.descriptor_due = self._n_heaps + self._frequency
        for sent in sent_values:
            sent.version = sent.item.version
        self._n_heaps += 1
        if len(self._sent) > n_items:
            self._forget_removed_items()
        return heap

    def _forget_removed_items(self) -> None:
        # Their values may be large.
        present = {item.id for item in self._item_group.values()}
        self._sent = {id: sent for id, sent in self._sent.items() if id in present}

    def get_heap(self, descriptors: str = "stale", data: str = "stale") -> Heap:
        """Return a new heap with items in it.

        Parameters
        ----------
        descriptors, data : {"stale", "all", "none"}
            As for `add_to_heap`, which also says what is raised.

        Returns
        -------
        Heap
            It references the items' values.
        """
        return self.add_to_heap(Heap(self._flavour), descriptors, data)

    def get_start(self) -> Heap:
        """Return a heap that tells the receiver that the stream starts, with nothing else in it."""
        heap = Heap(self._flavour)
        heap.add_start()
        return heap

    def get_end(self) -> Heap:
        """Return a heap that tells the receiver that the stream ends, with nothing else in it."""
        heap = Heap(self._flavour)
        heap.add_end()
        return heap


class ItemGroup(items.ItemGroup, HeapGenerator):
    """A group of items that makes heaps of itself.

    Parameters
    ----------
    descriptor_frequency, flavour
        As in `HeapGenerator`.
    max_elements, max_memory : int
        As in `spead_tutorial.ItemGroup`, for what it is updated with.

    Examples
    --------
    >>> group = ItemGroup()
    >>> item = group.add_item(0x1600, "timestamp", "", (), format=[("u", 40)])
    >>> item.value = 0
    >>> heap = group.get_heap()
    """

    def __init__(
        self,
        descriptor_frequency: int | None = None,
        flavour: Flavour = Flavour(),  # noqa: B008 (frozen)
        *,
        max_elements: int = items.MOST_ELEMENTS,
        max_memory: int = items.ItemGroup.DEFAULT_MAX_MEMORY,
    ) -> None:
        items.ItemGroup.__init__(self, max_elements=max_elements, max_memory=max_memory)
        # A plain reference would make a cycle, and leave the values to the garbage collector.
        HeapGenerator.__init__(self, weakref.proxy(self), descriptor_frequency, flavour)

    def __getstate__(self) -> dict[str, Any]:
        """For copies, which are generators of their own items."""
        return {name: value for name, value in vars(self).items() if name != "_item_group"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _item_group=weakref.proxy(self))

# SPDX-License-Identifier: BSD-3-Clause
"""What is known of a stream's items, and what each heap says of them."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from spead_tutorial import STREAM_CTRL_ID, Flavour, Item, ItemGroup, RawDescriptor
from spead_tutorial.receive import text
from spead_tutorial.recv import HeapBase, IncompleteHeap, RawItem

__all__ = ["Items"]

_MOST_ITEMS = 512  # that are known, whatever strangers describe; as in C
_MOST_VALUES = 1000  # of a heap that are shown


@dataclass(frozen=True, slots=True)
class _OneDescriptor:
    """Part of a heap, for a group to be updated with: one that is wrong spoils no other."""

    flavour: Flavour
    descriptor: RawDescriptor

    def get_descriptors(self) -> Sequence[RawDescriptor]:
        return [self.descriptor]

    def get_items(self) -> Sequence[RawItem]:
        return []


@dataclass(slots=True)
class Items:
    """The items of a stream, as its descriptors have them so far."""

    heaps_without_descriptors: int = 0  # heaps with a value that nothing has described
    _group: ItemGroup = field(default_factory=ItemGroup)
    _is_full: bool = False

    def take(self, heap: HeapBase) -> list[str]:
        """Take the descriptors of a heap, and return a line for each that is new."""
        if isinstance(heap, IncompleteHeap):
            return []
        lines = [line for raw in heap.get_descriptors() for line in self._describe(heap, raw)]
        if any(raw.id not in self._group for raw in _values(heap)):
            self.heaps_without_descriptors += 1
        return lines

    def _describe(self, heap: HeapBase, raw: RawDescriptor) -> Iterator[str]:
        has_id = raw.id in self._group
        before = self._group[raw.id] if has_id else None
        is_known = has_id or raw.name.decode("ascii", "replace") in self._group
        if not is_known and len(self._group) == _MOST_ITEMS:
            if not self._is_full:
                yield f"more items are described than {_MOST_ITEMS}: no more are taken in"
            self._is_full = True
            return
        try:
            self._group.update(_OneDescriptor(heap.flavour, raw))
        except ValueError as error:
            yield f"a descriptor that cannot be read, of {raw.id:#x}: {text.plain(str(error), 200)}"
        if raw.id in self._group and self._group[raw.id] is not before:
            what = "changed:" if is_known else "described:"
            yield text.described(what, self._group[raw.id])

    def lines(self, heap: HeapBase) -> list[str]:
        """Return what a heap brings, in lines; its descriptors have been taken."""
        if isinstance(heap, IncompleteHeap):
            return [text.incomplete_line(heap)]
        if heap.is_end_of_stream():
            return [f"heap {heap.cnt}: says that the stream ends"]
        values = _values(heap)
        if not values and heap.get_descriptors():
            return []
        lines = [f"    {self._value(raw)}" for raw in values[:_MOST_VALUES]]
        if len(values) > _MOST_VALUES:
            lines.append(f"    … and {len(values) - _MOST_VALUES} more")
        return [text.heap_line(heap.cnt, len(values)), *lines]

    def _value(self, raw: RawItem) -> str:
        if raw.id not in self._group:
            return f"{raw.id:#x}  {text.raw_value(raw)}"
        item = copy.copy(self._group[raw.id])  # with the value, the group would keep the heap
        try:
            item.set_from_raw(raw)
        except (ValueError, MemoryError) as error:
            return text.plain(str(error), 200)
        try:
            shown = text.value(item.value)
        except Exception as error:  # there are elements that NumPy itself cannot write
            shown = f"cannot be shown: {text.plain(str(error), 200)}"
        return f"{text.plain(item.name)}  {shown}"

    def as_rows(self) -> list[dict[str, Any]]:
        """Return what has been described, for JSON."""
        return [_row(item) for item in self._group.values()]


def _values(heap: HeapBase) -> list[RawItem]:
    return [raw for raw in heap.get_items() if raw.id > STREAM_CTRL_ID]


def _row(item: Item) -> dict[str, Any]:
    return {
        "id": item.id,
        "name": item.name,
        "description": item.description,
        "shape": list(item.shape),
        "dtype": None if item.dtype is None else str(item.dtype),
        "format": item.format,
    }

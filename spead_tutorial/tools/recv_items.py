# SPDX-License-Identifier: BSD-3-Clause
"""What is known of a stream's items, and what each heap says of them, in lines for a terminal.

Packets come from strangers: what is in them is never written as it is where it could be more than
letters to a terminal.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spead_tutorial import STREAM_CTRL_ID, Descriptor, Flavour, ItemGroup, RawDescriptor
from spead_tutorial._shown import shown
from spead_tutorial.recv import HeapBase, IncompleteHeap, RawItem

_MOST_LINES = 1000  # of what a heap describes, and of its values
_FIRST = 4  # elements of an array
_LONGEST = 60  # letters of a text, or of an element
_MOST_FIELD_BYTES = 1024  # of an element with fields, each of which takes time
_MOST_DECIMAL_BITS = 64
_KINDS_WITH_ORDER = "iufb"


@dataclass(frozen=True, slots=True)
class _Described:
    """A descriptor of a heap, for a group to be updated with."""

    flavour: Flavour
    descriptor: RawDescriptor

    def get_descriptors(self) -> Sequence[RawDescriptor]:
        return [self.descriptor]

    def get_items(self) -> Sequence[RawItem]:
        return []


@dataclass(slots=True)
class Items:
    """The items of a stream, as its descriptors have them so far."""

    _group: ItemGroup = field(default_factory=ItemGroup)
    heaps_without_descriptors: int = 0  # heaps with a value that nothing has described
    _left_out: int = 0  # of the last heap's descriptors, which has been said

    def read_descriptors(self, heap: HeapBase) -> list[str]:
        """Take the descriptors of a heap, and return a line for each that is new."""
        if isinstance(heap, IncompleteHeap):
            return []
        lines = self._describe(heap.flavour, heap.get_descriptors())
        if any(raw.id not in self._group for raw in _values(heap)):
            self.heaps_without_descriptors += 1
        return lines

    def _describe(self, flavour: Flavour, descriptors: Sequence[RawDescriptor]) -> list[str]:
        before = {item.id: item for item in self._group.values()} if descriptors else {}
        names = {item.name for item in before.values()}
        before_left_out = self._left_out
        lines = self._update(flavour, descriptors) if descriptors else []
        for raw in descriptors:
            if raw.id not in self._group or self._group[raw.id] is before.get(raw.id):
                continue
            item = self._group[raw.id]
            is_known = raw.id in before or item.name in names
            lines.append(described("changed:" if is_known else "described:", item))
            before[raw.id] = item  # said once
        more = len(lines) - _MOST_LINES
        lines[_MOST_LINES:] = [f"… and {more} more"] if more > 0 else []
        if self._left_out not in (0, before_left_out):
            lines.append(f"… and {self._left_out} more, left out: the warnings say why")
        return lines

    def _update(self, flavour: Flavour, descriptors: Sequence[RawDescriptor]) -> list[str]:
        """Take in each that can be read, and return lines for the others."""
        lines, self._left_out = [], 0
        for raw in descriptors:
            try:
                self._group.update(_Described(flavour, raw))
            except ValueError as error:
                why = plain(str(error), 200)
                lines.append(f"a descriptor that cannot be read, of {raw.id:#x}: {why}")
            else:
                self._left_out += self._group.left_out
        return lines

    def lines(self, heap: HeapBase) -> list[str]:
        """Return what a heap brings, in lines; its descriptors have been taken."""
        if isinstance(heap, IncompleteHeap):
            known = heap.heap_length >= 0
            length = f"{heap.heap_length} bytes" if known else "an unknown number of bytes"
            return [f"heap {heap.cnt}: incomplete, {heap.received_length} of {length} arrived"]
        if heap.is_end_of_stream():
            return [f"heap {heap.cnt}: says that the stream ends"]
        values = _values(heap)
        if not values and heap.get_descriptors():
            return []
        lines = [f"    {self._value(raw)}" for raw in values[:_MOST_LINES]]
        if len(values) > _MOST_LINES:
            lines.append(f"    … and {len(values) - _MOST_LINES} more")
        return [f"heap {heap.cnt}: {len(values)} item{'' if len(values) == 1 else 's'}", *lines]

    def _value(self, raw: RawItem) -> str:
        if raw.id not in self._group:
            what = raw.immediate_value if raw.is_immediate else f"{memoryview(raw).nbytes} bytes"
            return f"{raw.id:#x}  {what}, not described"
        item = copy.copy(self._group[raw.id])  # with the value, the group would keep the heap
        try:
            item.set_from_raw(raw)
        except (ValueError, MemoryError) as error:
            return plain(str(error), 200)
        try:
            shown = value(item.value)
        except Exception as error:  # there are elements that NumPy itself cannot write
            shown = f"cannot be shown: {plain(str(error), 200)}"
        return f"{plain(item.name)}  {shown}"

    def as_rows(self) -> list[dict[str, Any]]:
        """Return what has been described, for JSON."""
        return [
            {
                "id": item.id,
                "name": item.name,
                "description": item.description,
                "shape": list(item.shape),
                "dtype": None if item.dtype is None else str(item.dtype),
                "format": item.format,
            }
            for item in self._group.values()
        ]


def _values(heap: HeapBase) -> list[RawItem]:
    return [raw for raw in heap.get_items() if raw.id > STREAM_CTRL_ID]


# ---- In lines ----


def plain(text: str, longest: int = _LONGEST) -> str:
    return shown(text, longest)


def described(what: str, item: Descriptor) -> str:
    if item.format is not None:
        words = {"u": "uint", "i": "int", "f": "float"}  # as NumPy says it, in bits
        fields = ", ".join(f"{words.get(letter, letter)}{bits}" for letter, bits in item.format)
        kind = fields if len(item.format) == 1 else f"({fields})"
    else:
        kind = str(item.dtype)
    shape = "".join(f"[{'any' if n is None else n}]" for n in item.shape)
    about = f": {plain(item.description)}" if item.description else ""
    return f"{what} {item.id:#x} {plain(item.name)}, {plain(kind + shape)}{about}"


def value(of: Any) -> str:
    """Write the value of an item: a number, a text, or an array's first elements and its range."""
    if isinstance(of, str):
        return plain(repr(of[: _LONGEST + 1]))
    if not isinstance(of, np.ndarray):
        return _element(of)
    kind = f"{plain(str(of.dtype))}{''.join(f'[{n}]' for n in of.shape)}"
    more = " …" if of.size > _FIRST else ""
    shown = " ".join(_element(element) for element in of.flat[:_FIRST]) + more
    if of.size <= _FIRST or of.dtype.kind not in _KINDS_WITH_ORDER:
        return f"{kind} {shown}".rstrip()
    return f"{kind} {shown} from {of.min()} to {of.max()}"


def _element(of: Any) -> str:
    if isinstance(of, int) and of.bit_length() > _MOST_DECIMAL_BITS:
        return plain(hex(of))  # Python writes no more than 4300 decimal digits
    if isinstance(of, np.void) and of.dtype.names and of.nbytes > _MOST_FIELD_BYTES:
        return f"{of.nbytes} bytes"
    return plain(str(of))

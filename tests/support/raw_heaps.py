# SPDX-License-Identifier: BSD-3-Clause
"""Heaps as a receiver hands them to a group of items, with what a stranger may have sent."""

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np

import spead_tutorial
from spead_tutorial.items import RawDescriptor

DEFAULT = spead_tutorial.Flavour()


def value(data: bytes, id: int = 0x1000, *, immediate: bool = False) -> Any:
    """Return a received value; before Python 3.12, only some types have a buffer."""
    array = np.frombuffer(bytearray(data), np.uint8).view(_Value)
    array.id, array.is_immediate = id, immediate
    return array


class _Value(np.ndarray):
    id: int
    is_immediate: bool


def heap_of(descriptors: list[RawDescriptor], values: list[Any]) -> Any:
    return SimpleNamespace(
        flavour=DEFAULT, get_descriptors=lambda: descriptors, get_items=lambda: values
    )


def described(**changes: Any) -> RawDescriptor:
    plain = RawDescriptor(0x1000, b"x", b"", b"", [("u", 8)], [None])
    return dataclasses.replace(plain, **changes)


def update(
    descriptor: RawDescriptor,
    data: bytes,
    *,
    immediate: bool = False,
    library: Any = spead_tutorial,
    **options: Any,
) -> Any:
    """Return what a group of either library makes of a value."""
    group = library.ItemGroup()
    group.update(heap_of([descriptor], [value(data, immediate=immediate)]), **options)
    return group["x"].value

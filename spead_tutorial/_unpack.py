# SPDX-License-Identifier: BSD-3-Clause
"""What received bytes mean: values from their descriptors.

Bytes come from strangers: what does not fit is a ValueError.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spead_tutorial import _bits

__all__ = ["check_order", "read_value"]

#: Fields of an element: pairs of a letter and a width in bits.
Format = Sequence[tuple[str, int]]


def check_order(new_order: str) -> str:
    """Return a byte order as NumPy abbreviates it; ValueError where there is no such."""
    if new_order == "=":
        return new_order
    try:
        np.dtype(np.uint16).newbyteorder(new_order)  # type: ignore[arg-type]
    except (ValueError, TypeError):
        raise ValueError(
            f"new_order is {new_order!r}: it has to be one of '=' (this machine's), '<', '>', '|'"
            " (as it was sent)"
        ) from None
    return new_order


def read_value(
    buffer: NDArray[np.uint8],
    shape: Sequence[int | None],
    dtype: np.dtype[Any] | None,
    order: str,
    format: Format | None,
    *,
    is_immediate: bool,
    new_order: str,
) -> tuple[Any, int]:
    """Make a value of bytes."""
    bits = 8 * dtype.itemsize if dtype is not None else sum(n for _, n in format or ())
    sizes = _sizes(shape, bits, buffer.size)
    count = math.prod(sizes)
    needed = (count * bits + 7) // 8
    if needed > buffer.size:
        raise ValueError(f"shape {tuple(sizes)} takes {needed} bytes, and {buffer.size} arrived")
    used = buffer[buffer.size - needed :] if is_immediate else buffer[:needed]
    surplus = 0 if is_immediate or None in shape else buffer.size - needed
    if format is not None and list(format) == [("c", 8)] and len(sizes) == 1:
        return used.tobytes().decode("ascii"), surplus
    if dtype is not None:
        return _as_dtype(used, sizes, dtype, order, new_order), surplus
    assert format is not None
    return _as_objects(used, sizes, format, count), surplus


def _sizes(shape: Sequence[int | None], bits: int, n_bytes: int) -> list[int]:
    """Return the shape of a value of so many bytes: the dimension that varies takes what fits."""
    known = bits * math.prod(size for size in shape if size is not None)
    varying = 8 * n_bytes // known if known else 0
    return [varying if size is None else size for size in shape]


def _as_dtype(
    used: NDArray[np.uint8], sizes: list[int], dtype: np.dtype[Any], order: str, new_order: str
) -> Any:
    array: NDArray[Any]
    if order == "F":
        array = np.ndarray(tuple(reversed(sizes)), dtype, used).T
    else:
        array = np.ndarray(tuple(sizes), dtype, used)
    wanted = dtype.newbyteorder(new_order)  # type: ignore[arg-type]
    if wanted != dtype:
        array = array.astype(wanted)
    try:
        return array if sizes else array[()]
    except SystemError as error:  # a text of which a character is none
        raise ValueError(str(error)) from None


def _as_objects(used: NDArray[np.uint8], sizes: list[int], format: Format, count: int) -> Any:
    """Make an array of fields that are packed bit by bit: Python's numbers where NumPy has none."""
    widths = [bits for _, bits in format]
    columns = [
        _values(column, letter, bits)
        for column, (letter, bits) in zip(_bits.unpack(used, widths, count), format, strict=True)
    ]
    array: NDArray[Any]
    if len(columns) == 1:
        array = np.empty(count, object)
        array[:] = columns[0]
    else:
        types = [_bits.FIELD_DTYPES.get(field, np.dtype(object)) for field in format]
        array = np.empty(count, [(f"f{i}", dtype) for i, dtype in enumerate(types)])
        for i, column in enumerate(columns):
            array[f"f{i}"] = column
    array = array.reshape(sizes)
    return array if sizes else array[()]


def _values(column: NDArray[Any], letter: str, bits: int) -> NDArray[Any] | list[Any]:
    """Return the values of a field: of its numbers, or, where NumPy has none so wide, its bytes."""
    is_wide = column.ndim == 2
    if letter == "b":
        truths: NDArray[np.bool_] = np.any(column, axis=1) if is_wide else column != 0
        return truths
    if letter in "fc":
        return column.view("S1" if letter == "c" else f"f{bits // 8}")
    if is_wide:
        is_signed = letter == "i"
        whole = (int.from_bytes(bytes(x), "big") for x in column)
        return [n - (n >> (bits - 1) << bits) if is_signed else n for n in whole]
    if letter == "u":
        return column
    unused = 8 * column.itemsize - bits
    return (column << unused).view(f"i{column.itemsize}") >> unused

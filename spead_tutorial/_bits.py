# SPDX-License-Identifier: BSD-3-Clause
"""Bit packing: fields of any width, one after the other, most significant bit first."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FIELD_DTYPES", "pack", "unpack"]

#: The types of those fields that NumPy has one for.
FIELD_DTYPES = {
    **{
        (letter, bits): np.dtype(f">{letter}{bits // 8}")
        for letter in "ui"
        for bits in (8, 16, 32, 64)
    },
    ("f", 32): np.dtype(">f4"),
    ("f", 64): np.dtype(">f8"),
    ("b", 8): np.dtype("?"),
    ("c", 8): np.dtype("S1"),
}


def pack(columns: Sequence[NDArray[np.uint8]], widths: Sequence[int]) -> NDArray[np.uint8]:
    """Put records together bit by bit.

    Parameters
    ----------
    columns : sequence of array, each of shape (n_records, n_bytes), dtype uint8
        One for every field: the field's values in big-endian bytes, at least as many as its width
        needs. Only the low bits of a value are used.
    widths : sequence of int
        The width of every field, in bits.

    Returns
    -------
    array, 1-D, dtype uint8
        All fields of the first record, all fields of the second and so on, without gaps; zero bits
        at the end make up whole bytes.

    Examples
    --------
    >>> column = np.array([[1], [2], [3]], np.uint8)
    >>> pack([column], [4])
    array([18, 48], dtype=uint8)
    """
    if all(width % 8 == 0 for width in widths):
        # Eight times less memory than going through single bits.
        return np.hstack(
            [
                column[:, column.shape[1] - width // 8 :]
                for column, width in zip(columns, widths, strict=True)
            ]
        ).ravel()
    bits = [
        np.unpackbits(column, axis=1)[:, 8 * column.shape[1] - width :]
        for column, width in zip(columns, widths, strict=True)
    ]
    return np.packbits(np.hstack(bits))


def unpack(packed: NDArray[np.uint8], widths: Sequence[int], n_records: int) -> list[NDArray[Any]]:
    """Take records apart bit by bit.

    Parameters
    ----------
    packed : array, 1-D, dtype uint8
        As `pack` returns it; what follows the last record is not looked at.
    widths : sequence of int
        The width of every field, in bits.
    n_records : int
        How many records to take.

    Returns
    -------
    list of array, each of n_records
        One for every field. A field of up to 64 bits is an unsigned integer; of a wider one there
        are the bytes, shape (n_records, n_bytes), big-endian and as few as its width needs, with
        zeros above it.

    Examples
    --------
    >>> unpack(np.array([18, 48], np.uint8), [4], 3)
    [array([1, 2, 3], dtype=uint8)]
    """
    ends = list(itertools.accumulate(widths))
    n_bits = n_records * ends[-1]
    if all(width % 8 == 0 for width in widths):
        unit = 8
        digits = packed[: n_bits // 8]
    else:
        unit = 1
        digits = np.unpackbits(packed[: (n_bits + 7) // 8])[:n_bits]
    records = digits.reshape(n_records, ends[-1] // unit)
    return [
        _joined(records[:, (end - width) // unit : end // unit], unit)
        for end, width in zip(ends, widths, strict=True)
    ]


def _joined(digits: NDArray[np.uint8], unit: int) -> NDArray[Any]:
    """Put the digits of each number together, each of which has so many bits."""
    n_records, n_digits = digits.shape
    width = n_digits * unit
    if width <= 64:
        numbers = np.zeros(n_records, np.min_scalar_type((1 << width) - 1))
        for digit in digits.T:
            numbers = numbers << unit | digit
        return numbers
    if unit == 8:
        return digits
    padding = np.zeros((n_records, -width % 8), np.uint8)
    return np.packbits(np.hstack([padding, digits]), axis=1)

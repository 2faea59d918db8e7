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
    """Put records together bit by bit."""
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
    """Take records apart bit by bit."""
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

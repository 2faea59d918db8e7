# SPDX-License-Identifier: BSD-3-Clause
"""Bit packing: fields of any width, one after the other, most significant bit first."""

from __future__ import annotations

from collections.abc import Sequence

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


def unpack(
    packed: NDArray[np.uint8], widths: Sequence[int], n_records: int
) -> list[NDArray[np.uint8]]:
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
    list of array, each of shape (n_records, n_bytes), dtype uint8
        One for every field: the field's values in big-endian bytes, as few as its width needs;
        bits above it are zero.

    Examples
    --------
    >>> unpack(np.array([18, 48], np.uint8), [4], 3)
    [array([[1],
           [2],
           [3]], dtype=uint8)]
    """
    ends = np.cumsum(widths)
    places = list(zip(ends - widths, ends, strict=True))
    n_bits = sum(widths)
    if all(width % 8 == 0 for width in widths):
        records = packed[: n_records * n_bits // 8].reshape(n_records, n_bits // 8)
        return [records[:, begin // 8 : end // 8] for begin, end in places]
    bits = np.unpackbits(packed[: (n_records * n_bits + 7) // 8])[: n_records * n_bits]
    records = bits.reshape(n_records, n_bits)
    columns = []
    for begin, end in places:
        padding = np.zeros((n_records, (begin - end) % 8), np.uint8)
        columns.append(np.packbits(np.hstack([padding, records[:, begin:end]]), axis=1))
    return columns

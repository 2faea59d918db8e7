# SPDX-License-Identifier: BSD-3-Clause
"""Bit packing: fields of any width, one after the other, most significant bit first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["pack"]


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

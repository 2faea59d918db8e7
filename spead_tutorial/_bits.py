# SPDX-License-Identifier: BSD-3-Clause
"""Elements of fields that are packed bit by bit, most significant bit first.

Descriptors and bytes come from strangers, and a field may be a single bit. So NumPy takes many
fields apart at once, and a block at a time: there are no Python objects but for fields of more than
64 bits, and no memory but for the array that is returned and that of a block.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Fields of an element: pairs of a letter and a width in bits.
Format = Sequence[tuple[str, int]]

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

_WIDEST = 64  # bits of a number that NumPy has
_BLOCKS_READ = 256  # that bytes are taken in, but for those that would be smaller than
_BLOCKS_WRITTEN = 32
_LEAST_BLOCK = 1 << 12
_MOST_BITS = 1 << 13  # of an element that are taken at once


def _size(bits: int) -> int:
    """Return the bytes of the smallest number of NumPy's that has these bits."""
    return 1 << max(0, (bits - 1).bit_length() - 3)


def _packed_dtype(letter: str, bits: int) -> np.dtype[Any]:
    """Return the type whose last bits a narrow field is."""
    kind = "u" if letter == "b" else letter
    return FIELD_DTYPES[kind, 8 * _size(bits)]


def _unpacked_dtype(letter: str, bits: int) -> np.dtype[Any]:
    """Return the smallest type that holds a field."""
    if letter == "b":
        return np.dtype(np.bool_)
    return np.dtype(object) if bits > _WIDEST else _packed_dtype(letter, bits)


@dataclass(frozen=True, slots=True)
class _Alike:
    """Fields that have the same letter, and are as wide."""

    letter: str
    bits: int
    #: The first bit of each, in an element.
    starts: NDArray[np.intp]
    #: The first byte of each, in a record of an array.
    offsets: NDArray[np.intp]


class Layout:
    """How the fields of an element lie in bytes, and in arrays.

    Fields of up to 64 bits are *narrow*, the others are Python's integers.
    """

    def __init__(self, format: Format) -> None:
        self.format = tuple(format)
        self._dtypes: dict[str, np.dtype[Any]] = {}
        ends = list(itertools.accumulate(bits for _, bits in self.format))
        self.bits = ends[-1]
        self._starts = [0, *ends[:-1]]
        # Digits are bytes where they can be, and bits otherwise.
        self._unit = 8 if all(bits % 8 == 0 for _, bits in self.format) else 1
        self._wide = [i for i, (_, bits) in enumerate(self.format) if bits > _WIDEST]
        # All fields of all elements follow each other, and are as wide.
        self._is_even = len(set(self.format)) == 1 and not self._wide
        self._alike = list(self._alikes())

    def _alikes(self) -> Iterator[_Alike]:
        offset = 0
        of: dict[tuple[str, int], list[tuple[int, int]]] = {}
        for field, start in zip(self.format, self._starts, strict=True):
            if field[1] <= _WIDEST:
                of.setdefault(field, []).append((start, offset))
            offset += _unpacked_dtype(*field).itemsize
        for field, alike in of.items():
            most = len(alike) if self._is_even else _MOST_BITS // field[1]
            for first in range(0, len(alike), most):
                starts, offsets = np.array(alike[first : first + most], np.intp).T
                yield _Alike(*field, starts, offsets)

    def _dtype(self, new_order: str) -> np.dtype[Any]:
        """Return the type of arrays, which is one for all of them: it may be larger than they."""
        if new_order not in self._dtypes:
            dtypes = [_unpacked_dtype(*field) for field in self.format]
            several = [(f"f{i}", dtype) for i, dtype in enumerate(dtypes)]
            dtype = np.dtype(several) if len(several) > 1 else dtypes[0]
            self._dtypes[new_order] = dtype.newbyteorder(new_order)  # type: ignore[arg-type]
        return self._dtypes[new_order]

    def _step(self, count: int, n_blocks: int, multiple: int = 1) -> int:
        """Return how many elements are a block."""
        n_bits = max(8 * _LEAST_BLOCK, count * self.bits // n_blocks)
        return max(1, n_bits // (self.bits * multiple)) * multiple

    # ---- Values of bytes ----

    def unpack(self, packed: NDArray[np.uint8], count: int, new_order: str) -> NDArray[Any]:
        """Make an array of elements that lie in bytes."""
        if len(self._wide) == len(self.format) == 1:
            return self._wide_numbers(packed, count, 0)
        out: NDArray[Any] = np.empty(count, self._dtype(new_order))
        for i in self._wide:
            out[f"f{i}"] = self._wide_numbers(packed, count, i)
        # Its bytes: assigning to thousands of fields would take long.
        raw: NDArray[np.uint8] = np.ndarray((count, out.itemsize), np.uint8, out)
        step = self._step(count, _BLOCKS_READ)
        for first in range(0, count, step):
            n = min(step, count - first)
            for alike in self._alike:
                numbers = _joined(self._digits(packed, first, n, alike), alike, self._unit)
                dtype = numbers.dtype.newbyteorder(new_order)  # type: ignore[arg-type]
                ordered = numbers.astype(dtype, "C", copy=False).view(np.uint8).reshape(n, -1)
                if self._is_even:
                    raw[first : first + n] = ordered
                else:
                    raw[first : first + n, _runs(alike.offsets, dtype.itemsize)] = ordered
        return out

    def _digits(
        self, packed: NDArray[np.uint8], first: int, n: int, alike: _Alike
    ) -> NDArray[np.uint8]:
        """Return the digits of some fields of a block: by elements, fields, and digits."""
        shape = n, alike.starts.size, alike.bits // self._unit
        if self._is_even:
            begin, end = first * self.bits, (first + n) * self.bits
            digits: NDArray[np.uint8] = packed[begin // 8 : (end + 7) // 8]
            if self._unit == 1:
                digits = np.unpackbits(digits)[begin % 8 :][: end - begin]
            return digits.reshape(shape)
        elements = np.arange(first, first + n)[:, np.newaxis]
        at = elements * (self.bits // self._unit) + _runs(alike.starts // self._unit, shape[2])
        if self._unit == 8:
            digits = packed[at]
        else:
            digits = packed[at >> 3]
            digits >>= (~at & 7).astype(np.uint8)
            digits &= 1
        return digits.reshape(shape)

    def _wide_numbers(self, packed: NDArray[np.uint8], count: int, i: int) -> NDArray[Any]:
        """Return one of the fields that NumPy has no number for, of all elements."""
        letter, bits = self.format[i]
        view, mask, sign = packed.data, (1 << bits) - 1, 1 << (bits - 1)

        def numbers() -> Iterator[int]:
            for element in range(count):
                begin = element * self.bits + self._starts[i]
                end = begin + bits
                with_others = int.from_bytes(view[begin >> 3 : (end + 7) >> 3], "big")
                number = with_others >> (-end & 7) & mask
                yield number - (mask + 1) if letter == "i" and number & sign else number

        return np.fromiter(numbers(), _unpacked_dtype(letter, bits), count)

    # ---- Bytes of values ----

    def pack(self, columns: Sequence[NDArray[Any]]) -> NDArray[np.uint8]:
        """Put elements together, of each field of which there is a column: numbers that fit."""
        if self._wide:
            return np.frombuffer(self._pack_wide(columns), np.uint8)
        count = columns[0].size
        out = np.empty((count * self.bits + 7) // 8, np.uint8)
        step = self._step(count, _BLOCKS_WRITTEN, 8)  # blocks end with a byte
        for first in range(0, count, step):
            n = min(step, count - first)
            digits = np.empty((n, self.bits // self._unit), np.uint8)
            for column, field, start in zip(columns, self.format, self._starts, strict=True):
                own = column[first : first + n].astype(_packed_dtype(*field)).view(np.uint8)
                own = (np.unpackbits(own) if self._unit == 1 else own).reshape(n, -1)
                n_digits = field[1] // self._unit
                begin = start // self._unit
                digits[:, begin : begin + n_digits] = own[:, own.shape[1] - n_digits :]
            done = digits.ravel() if self._unit == 8 else np.packbits(digits)
            out[first * self.bits // 8 :][: done.size] = done
        return out

    def _pack_wide(self, columns: Sequence[NDArray[Any]]) -> bytearray:
        """Put elements together as one number, and as many of them as end with a byte."""
        masks = [(1 << bits) - 1 for _, bits in self.format]
        together = 8 // math.gcd(self.bits, 8)
        count = columns[0].size
        out = bytearray((count * self.bits + 7) // 8)
        step = self._step(count, _BLOCKS_WRITTEN, together)
        for begin in range(0, count, step):
            block = (column[begin : begin + step] for column in columns)
            rows = zip(*map(_ints, block, self.format), strict=True)
            for first in range(begin, min(begin + step, count), together):
                n_bits = joined = 0
                for row in itertools.islice(rows, together):
                    for number, mask, (_, bits) in zip(row, masks, self.format, strict=True):
                        joined = joined << bits | number & mask
                    n_bits += self.bits
                padding = -n_bits % 8
                at, length = first * self.bits // 8, (n_bits + padding) // 8
                out[at : at + length] = (joined << padding).to_bytes(length, "big")
        return out


def _runs(starts: NDArray[np.intp], length: int) -> NDArray[np.intp]:
    """Return the places of what is so long, and begins at each of these."""
    return (starts[:, np.newaxis] + np.arange(length)).ravel()


def _joined(digits: NDArray[np.uint8], alike: _Alike, unit: int) -> NDArray[Any]:
    """Put the digits of each number together, each of which has `unit` bits."""
    *n, n_digits = digits.shape
    packed = _packed_dtype(alike.letter, alike.bits)
    first = digits[..., 0]
    numbers: NDArray[Any]
    if n_digits * unit < 8:
        numbers = -first if alike.letter == "i" else first  # all bits as the sign
        for i in range(1, n_digits):
            numbers = numbers << 1 | digits[..., i]
        numbers = numbers.view(packed)
    else:
        padding = 8 * packed.itemsize // unit - n_digits
        if padding:
            wider = np.zeros((*n, padding + n_digits), np.uint8)
            wider[..., padding:] = digits
            if alike.letter == "i":
                signs = first >> (unit - 1)
                wider[..., :padding] = (signs * ((1 << unit) - 1))[..., np.newaxis]
            digits = wider
        raw = digits.reshape(-1) if unit == 8 else np.packbits(digits.reshape(-1))
        numbers = raw.view(packed).reshape(n)
    return numbers != 0 if alike.letter == "b" else numbers


def _ints(column: NDArray[Any], field: tuple[str, int]) -> list[int]:
    """Return what Python can shift for each number of a column: its bits."""
    letter, bits = field
    if bits <= _WIDEST:
        column = column.astype(_packed_dtype(letter, bits))
        column = column.view(f">u{column.itemsize}")
    return list(map(int, column.tolist()))

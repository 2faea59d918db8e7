# SPDX-License-Identifier: BSD-3-Clause
"""How values become bytes, and bytes values again.

NumPy's own casts wrap integers, drop fractions, cut strings and take anything to be true without a
word. On the wire the receiver could not tell, so here all of these are errors. That is the slow
path: values that already have the right type never come here. Bytes come from strangers: what does
not fit is a ValueError.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spead_tutorial._bits import FIELD_DTYPES, Layout

_EXACT = 1 << 53  # up to here, NumPy makes floats of whole numbers without loss
_TIMES = {"M": "date", "m": "duration"}


# ---------------------------------------------------------------------------------------
# Values that are converted


def integer_range(letter: str, bits: int) -> tuple[int, int]:
    """Smallest and largest value of an unsigned (``"u"``) or signed (``"i"``) integer."""
    if letter == "u":
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def as_dtype(value: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Convert to an array of exactly one dtype, which is `value` itself if it has it already."""
    if isinstance(value, np.ndarray) and value.dtype == dtype:
        return np.asarray(value)
    if dtype.names is not None:
        return _as_structure(value, dtype, dtype.names)
    raw = _elements(value)
    if raw.size == 0:
        return np.empty(raw.shape, dtype)
    if dtype.kind in "ui":
        return _checked_integers(raw, dtype.kind, 8 * dtype.itemsize).astype(dtype)
    return _CONVERSIONS[dtype.kind](raw, dtype)


def _elements(value: Any) -> NDArray[Any]:
    """Return the elements of a value, each of which is what it was."""
    raw: NDArray[Any] = np.asarray(value)
    if not isinstance(value, (np.ndarray, np.generic)):
        # NumPy makes one type of a list: next to each other, whole numbers may become floats that
        # are not exact, and numbers texts.
        with np.errstate(all="ignore"):
            is_same = raw.dtype.kind in "biuMm" or (
                raw.dtype.kind in "fc" and not (np.abs(raw) >= _EXACT).any()
            )
        if not is_same:
            raw = np.array(value, dtype=object)
    return raw if raw.dtype.kind in "biufcSUMmVO" else raw.astype(object)


def _shown(element: Any) -> str:
    return repr(element.item() if isinstance(element, (np.number, np.bool_)) else element)


def _numbers(raw: NDArray[Any], what: str) -> NDArray[Any]:
    """Return elements all of which are numbers, or may be texts of numbers."""
    if raw.dtype.kind in "biufc":
        return raw
    if raw.dtype.kind in "MmV":
        raise ValueError(f"{raw.flat[0]} is not {what}")
    raw = raw.astype(object, copy=False)
    for element in raw.flat:
        is_number = hasattr(element, "__float__") or hasattr(element, "__complex__")
        if not isinstance(element, (str, bytes)) and (
            not is_number or isinstance(element, (np.datetime64, np.timedelta64, np.void))
        ):
            raise ValueError(f"{element!r} is not {what}")
    return raw


def _real(element: Any) -> Any:
    """Return a number without the imaginary part that it does not have."""
    is_complex = isinstance(element, (complex, np.complexfloating))
    return element.real if is_complex and element.imag == 0 else element


def _each(function: Callable[[Any], Any], raw: NDArray[Any]) -> NDArray[Any]:
    return np.fromiter(map(function, raw.flat), object, raw.size).reshape(raw.shape)


def _checked_integers(raw: NDArray[Any], letter: str, bits: int) -> NDArray[Any]:
    """Return numbers that are whole and in range, in the type that they have, or as objects."""
    raw = _numbers(raw, "a whole number")
    if raw.dtype.kind == "c":
        complex_ones = raw[raw.imag != 0]
        if complex_ones.size:
            raise ValueError(f"{_shown(complex_ones[0])} is not a whole number")
        raw = raw.real
    if raw.dtype.kind == "O":
        raw = _each(_whole, raw)
    elif raw.dtype.kind == "f":
        fractions = raw[~(np.isfinite(raw) & (raw == np.floor(raw)))]
        if fractions.size:
            raise ValueError(f"{_shown(fractions[0])} is not a whole number")
    if raw.size:
        low, high = integer_range(letter, bits)
        for extreme in (int(raw.min()), int(raw.max())):
            if not low <= extreme <= high:
                raise ValueError(f"{extreme} is out of range for {letter}{bits}: {low} to {high}")
    return raw


def _whole(element: Any) -> int:
    """Return one number of any type as a Python integer; ValueError if it is not whole."""
    element = _real(element)
    try:
        return operator.index(element)
    except TypeError:
        pass
    try:
        number = int(element)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{element!r} is not a whole number") from None
    if not isinstance(element, (str, bytes)) and number != element:
        raise ValueError(f"{element!r} is not a whole number")
    return number


def _as_truths(raw: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    raw = _numbers(raw, "True or False, 1 or 0")
    if raw.dtype.kind == "O":
        # Texts of numbers are none here: "0" would be true.
        wrong = [e for e in raw.flat if isinstance(e, (str, bytes)) or not (e == 0 or e == 1)]
    else:
        wrong = raw[(raw != 0) & (raw != 1)]
    if len(wrong):
        raise ValueError(f"{_shown(wrong[0])} is not True or False, 1 or 0")
    return raw.astype(dtype)


def _as_inexact(raw: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Round to the nearest float; but whole numbers stay what they are, or are refused."""
    raw = _numbers(raw, "a number")
    if dtype.kind == "f" and raw.dtype.kind == "c":
        if raw.imag.any():
            raise ValueError(f"a complex number does not fit {dtype}")
        raw = raw.real
    elif dtype.kind == "f" and raw.dtype.kind == "O":
        raw = _each(_real, raw)
    with np.errstate(all="ignore"):
        out = raw.astype(dtype)
        if raw.dtype.kind == "O":
            overflown, inexact = _lost(raw, out)
        else:
            overflown, inexact = list(raw[np.isfinite(raw) & ~np.isfinite(out)][:1]), []
            if raw.dtype.kind in "iu":
                inexact = _inexact_integer(raw.reshape(-1), np.finfo(dtype).nmant + 1)
    if overflown:
        raise ValueError(f"{_shown(overflown[0])} is out of range for {dtype}")
    if inexact:
        raise ValueError(f"{_shown(inexact[0])} is not exact as {dtype}")
    return out


def _lost(raw: NDArray[Any], out: NDArray[Any]) -> tuple[list[Any], list[Any]]:
    """Return of Python's numbers and texts those too large, and whole ones that are not exact."""
    pairs = list(zip(raw.flat, out.flat, strict=True))
    # Of those that are not finite, only "inf" and "nan" are written with this letter.
    overflown = [e for e, x in pairs if not np.isfinite(x) and "n" not in str(e).lower()]
    if overflown:
        return overflown, []
    return [], [e for e, x in pairs if isinstance(e, numbers.Integral) and int(x.real) != e]


def _inexact_integer(raw: NDArray[Any], precision: int) -> list[Any]:
    """Return one that has more bits from its first one to its last than there are, if any has."""
    size = raw.astype(np.uint64) if raw.dtype.kind == "u" else np.abs(raw.astype(np.int64))
    size = size.astype(np.uint64)
    if int(size.max()) >> precision == 0:
        return []
    lowest = np.maximum(size & (~size + np.uint64(1)), 1)
    return list(raw[size // lowest >= np.uint64(1 << precision)][:1])


def _as_text(raw: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if raw.dtype.kind not in "SU":
        if raw.dtype.kind == "V":
            raise ValueError(f"{raw.flat[0]} is not a text")
        for element in raw.astype(object).flat:
            if not isinstance(element, (str, bytes)):
                raise ValueError(f"{element!r} is not a text")
        raw = np.asarray(raw.tolist())
    width = dtype.itemsize // (4 if dtype.kind == "U" else 1)
    long = raw[np.strings.str_len(raw) > width]
    if long.size:
        plural = "" if width == 1 else "s"
        raise ValueError(f"{long[0].item()!r} is longer than {width} character{plural}")
    return raw.astype(dtype)


def _as_times(raw: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Convert dates or durations: to other units where that is exact, or from texts."""
    if dtype.kind == "m" and raw.dtype.kind in "iu":  # as NumPy counts them
        out = _checked_integers(raw, "i", 64).astype(np.int64).astype(dtype)
        if np.isnat(out).any():
            raise ValueError(f"{-1 << 63} stands for no {_TIMES[dtype.kind]}")
        return out
    if raw.dtype.kind != dtype.kind:
        for element in raw.astype(object).flat:
            if (
                raw.dtype.kind == "V"
                or element is None
                or isinstance(element, (numbers.Number, np.bool_))
            ):
                raise ValueError(f"{element!r} is not a {_TIMES[dtype.kind]}")
        raw = np.array(raw.tolist(), dtype=f"{dtype.kind}8")  # in the unit that they are given in
    out = raw.astype(dtype)
    other = raw[~((out.astype(raw.dtype) == raw) | np.isnat(raw))]
    if other.size:
        raise ValueError(f"{other[0]} is not exact as {dtype}")
    return out


def _as_bytes(raw: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if raw.dtype.kind == "O":
        for element in raw.flat:
            if not isinstance(element, (bytes, np.void)):
                raise ValueError(f"{element!r} is not bytes")
        raw = np.asarray(raw.tolist())
    if raw.dtype.kind not in "SV" or raw.dtype.names is not None:
        raise ValueError(f"{raw.flat[0]} is not bytes")
    if raw.dtype.itemsize > dtype.itemsize:
        raise ValueError(f"{raw.dtype.itemsize} bytes do not fit the {dtype.itemsize} of {dtype}")
    return raw.astype(dtype)


_CONVERSIONS: dict[str, Callable[[NDArray[Any], np.dtype[Any]], NDArray[Any]]] = {
    "b": _as_truths,
    **dict.fromkeys("fc", _as_inexact),
    **dict.fromkeys("SU", _as_text),
    **dict.fromkeys("Mm", _as_times),
    "V": _as_bytes,
}


# ---------------------------------------------------------------------------------------
# Elements that have fields


def _columns(value: Any, n_fields: int) -> tuple[list[Any], tuple[int, ...]]:
    """Take records apart: a column of each field, none of it converted, and their shape."""
    if isinstance(value, (np.ndarray, np.void)) and value.dtype.names is not None:
        if len(value.dtype.names) != n_fields:
            raise ValueError(f"each element has {len(value.dtype.names)} fields, not {n_fields}")
        return [np.asarray(value[name]) for name in value.dtype.names], value.shape
    if not _is_records(value):
        # NumPy would repeat a plain number in all fields.
        raise ValueError(f"each element has to be a tuple of {n_fields} fields")
    records = np.array(value, dtype=[(f"f{i}", object) for i in range(n_fields)])
    # Nested lists again, with the objects as leaves.
    return [records[f"f{i}"].tolist() for i in range(n_fields)], records.shape


def _is_records(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_records(element) for element in value)
    if isinstance(value, (np.ndarray, np.void)):
        return value.dtype.names is not None or (
            value.dtype == object and _is_records(value.tolist())
        )
    return isinstance(value, tuple)


def _as_structure(value: Any, dtype: np.dtype[Any], names: tuple[str, ...]) -> NDArray[Any]:
    columns, shape = _columns(value, len(names))
    out = np.zeros(shape, dtype)
    for name, column in zip(names, columns, strict=True):
        field = dtype[name]
        expected = shape + field.shape
        converted = as_dtype(column, field.base) if out.size else np.zeros(expected, field.base)
        if converted.shape != expected:
            raise ValueError(f"field {name!r} has shape {converted.shape}, expected {expected}")
        out[name] = converted
    return out


def pack_fields(
    value: Any, layout: Layout, check_shape: Callable[[tuple[int, ...]], None]
) -> NDArray[np.uint8]:
    """Pack fields that NumPy has no type for, bit by bit."""
    columns, shape = [value], None
    if len(layout.format) > 1:
        columns, shape = _columns(value, len(layout.format))
        check_shape(shape)
    packed = []
    for i, (column, (letter, bits)) in enumerate(zip(columns, layout.format, strict=True)):
        if letter in "ui":
            array = _checked_integers(_elements(column), letter, bits)
        else:
            array = as_dtype(column, FIELD_DTYPES[letter, 8 if letter == "b" else bits])
        if shape is None:
            check_shape(array.shape)
        elif array.shape != shape:
            raise ValueError(f"field {i} has shape {array.shape}, expected {shape}")
        packed.append(array.reshape(-1))
    return layout.pack(packed)


# ---------------------------------------------------------------------------------------
# Values that have arrived


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
    of: np.dtype[Any] | Layout,
    order: str,
    *,
    is_text: bool,
    is_immediate: bool,
    new_order: str,
    max_elements: int,
) -> tuple[Any, int]:
    """Make a value of bytes, and say how many of them are more than it takes."""
    bits = of.bits if isinstance(of, Layout) else 8 * of.itemsize
    sizes = sized(shape, 8 * buffer.size // bits)
    needed = (math.prod(sizes) * bits + 7) // 8
    if needed > buffer.size:
        raise ValueError(f"shape {tuple(sizes)} takes {needed} bytes, and {buffer.size} arrived")
    used = buffer[buffer.size - needed :] if is_immediate else buffer[:needed]
    surplus = 0 if is_immediate or None in shape else buffer.size - needed
    if is_text:
        return used.tobytes().decode("ascii").rstrip("\0"), surplus
    if isinstance(of, Layout):
        return _unpacked(used, sizes, of, new_order, max_elements), surplus
    return _as_array(used, sizes, of, order, new_order), surplus


def sized(shape: Sequence[int | None], most: int) -> list[int]:
    """Return a shape in which the dimension that varies takes what `most` elements leave it."""
    known = math.prod(size for size in shape if size is not None)
    varying = most // known if known else 0
    return [varying if size is None else size for size in shape]


def _as_array(
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


def _unpacked(
    used: NDArray[np.uint8], sizes: list[int], layout: Layout, new_order: str, most: int
) -> Any:
    count = math.prod(sizes)
    n_fields = len(layout.format)
    if count * n_fields > most:
        raise ValueError(
            f"{count * n_fields} fields would be taken apart, and {most} are the most: set"
            " max_elements of the group to allow more"
        )
    array = layout.unpack(used, count, new_order).reshape(sizes)
    if sizes:
        return array
    return array[()] if n_fields > 1 else array.item()

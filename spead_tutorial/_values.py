# SPDX-License-Identifier: BSD-3-Clause
"""How values become bytes, and bytes values again.

NumPy's own casts wrap integers, drop fractions and cut strings without a word. On the wire the
receiver could not tell, so here all of these are errors. That is the slow path: values that already
have the right type never come here. Bytes come from strangers: what does not fit is a ValueError.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spead_tutorial._bits import FIELD_DTYPES, Layout

# ---------------------------------------------------------------------------------------
# Values that are converted


def integer_range(letter: str, bits: int) -> tuple[int, int]:
    """Smallest and largest value of an unsigned (``"u"``) or signed (``"i"``) integer."""
    if letter == "u":
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def _checked_integers(value: Any, letter: str, bits: int) -> NDArray[Any]:
    """Return numbers that are whole and in range, in the type that they have, or as objects."""
    raw = np.asarray(value)
    if raw.dtype.kind not in "iufb" or (
        raw.dtype.kind == "f" and not isinstance(value, np.ndarray)
    ):
        # A list of large and small Python integers becomes floats, which are not exact: start
        # again from the elements themselves.
        raw = np.array(value, dtype=object)
    if raw.dtype.kind == "O":
        whole = np.empty(raw.shape, dtype=object)
        whole.ravel()[:] = [_whole(element) for element in raw.ravel()]
        raw = whole
    elif raw.dtype.kind == "f":
        fractions = raw[~(np.isfinite(raw) & (raw == np.floor(raw)))]
        if fractions.size:
            raise ValueError(f"{fractions[0]} is not a whole number")
    elif raw.dtype.kind == "b":
        raw = raw.astype(np.uint8)
    if raw.size:
        low, high = integer_range(letter, bits)
        for extreme in (int(raw.min()), int(raw.max())):
            if not low <= extreme <= high:
                raise ValueError(f"{extreme} is out of range for {letter}{bits}: {low} to {high}")
    return raw


def _whole(element: Any) -> int:
    """Return one number of any type as a Python integer; ValueError if it is not whole."""
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


def as_dtype(value: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Convert to an array of exactly one dtype, which is `value` itself if it has it already."""
    if isinstance(value, np.ndarray) and value.dtype == dtype:
        return np.asarray(value)
    if dtype.names is not None:
        return _as_structure(value, dtype, dtype.names)
    if isinstance(value, np.ndarray) and np.can_cast(value.dtype, dtype, "safe"):
        return np.asarray(value).astype(dtype)  # nothing to check: byte order or a wider type
    if dtype.kind in "ui":
        return _checked_integers(value, dtype.kind, 8 * dtype.itemsize).astype(dtype)
    if dtype.kind == "b" and not isinstance(value, np.ndarray):
        # Next to a string, zero would become one, which is not false.
        return np.array(value, dtype=object).astype(dtype)
    raw = np.asarray(value)
    if dtype.kind in "fc":
        return _as_inexact(raw, dtype)
    if dtype.kind in "SU":
        return _as_text(raw, dtype)
    if dtype.kind == "V" and raw.dtype.itemsize > dtype.itemsize:
        raise ValueError(f"{raw.dtype.itemsize} bytes do not fit the {dtype.itemsize} of {dtype}")
    return raw.astype(dtype)


def _as_inexact(raw: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind == "f" and raw.dtype.kind == "c":
        if raw.imag.any():
            raise ValueError(f"a complex number does not fit {dtype}")
        raw = raw.real
    with np.errstate(all="ignore"):
        out = raw.astype(dtype)
        if not np.isfinite(out).all():
            wide = raw.astype(np.complex128)
            overflown = wide[np.isfinite(wide) & ~np.isfinite(out)]
            if overflown.size:
                raise ValueError(f"{overflown[0].real:g} is out of range for {dtype}")
    return out


def _as_text(raw: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    text = raw if raw.dtype.kind in "SU" else raw.astype(dtype.kind)
    width = dtype.itemsize // (4 if dtype.kind == "U" else 1)
    long = text[np.strings.str_len(text) > width]
    if long.size:
        plural = "" if width == 1 else "s"
        raise ValueError(f"{long[0].item()!r} is longer than {width} character{plural}")
    return text.astype(dtype)


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
            array = _checked_integers(column, letter, bits)
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

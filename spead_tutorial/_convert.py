# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of a value to an array of an item's type, in which nothing is cut silently.

NumPy's own casts wrap integers, drop fractions and cut strings without a word. On the wire the
receiver could not tell, so here all of these are errors. It is the slow path: values that already
have the right type never come here.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["as_dtype", "as_integers", "as_records", "integer_range"]


def integer_range(letter: str, bits: int) -> tuple[int, int]:
    """Smallest and largest value of an unsigned (``"u"``) or signed (``"i"``) integer."""
    if letter == "u":
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def as_integers(value: Any, letter: str, bits: int) -> NDArray[Any]:
    """Convert to integers of a given width."""
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
    if bits > 64:
        return raw.astype(object)
    return raw.astype(np.uint64 if letter == "u" else np.int64)


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


def as_records(value: Any, names: tuple[str, ...]) -> NDArray[np.void]:
    """Arrange records as a structured array of Python objects, none of them converted."""
    if not _is_records(value):
        # NumPy would repeat a plain number in all fields.
        raise ValueError(f"each element has to be a tuple of {len(names)} fields")
    return np.array(value, dtype=[(name, object) for name in names])


def _is_records(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_records(element) for element in value)
    if isinstance(value, np.ndarray):
        return value.dtype.names is not None or (
            value.dtype == object and _is_records(value.tolist())
        )
    return isinstance(value, (tuple, np.void))


def as_dtype(value: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Convert to an array of exactly one dtype, which is `value` itself if it has it already."""
    if isinstance(value, np.ndarray) and value.dtype == dtype:
        return np.asarray(value)
    if dtype.names is not None:
        return _as_structure(value, dtype, dtype.names)
    if isinstance(value, np.ndarray) and np.can_cast(value.dtype, dtype, "safe"):
        return np.asarray(value).astype(dtype)  # nothing to check: byte order or a wider type
    if dtype.kind in "ui":
        return as_integers(value, dtype.kind, 8 * dtype.itemsize).astype(dtype)
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


def _as_structure(value: Any, dtype: np.dtype[Any], names: tuple[str, ...]) -> NDArray[Any]:
    records = as_records(value, names)
    out = np.zeros(records.shape, dtype=dtype)
    for name in names:
        field = dtype[name]
        column = records[name].tolist()  # nested lists again, with the objects as leaves
        base, shape = field.base, out.shape + field.shape
        converted = as_dtype(column, base) if out.size else np.zeros(shape, base)
        if converted.shape != shape:
            raise ValueError(f"field {name!r} has shape {converted.shape}, expected {shape}")
        out[name] = converted
    return out


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

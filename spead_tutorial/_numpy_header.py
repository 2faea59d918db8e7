# SPDX-License-Identifier: BSD-3-Clause
"""Headers of NumPy arrays, read by an allow-list.

Headers come from strangers. Some types make NumPy divide by zero, and some texts make Python's own
parser run out of stack. So Python is asked only what words and brackets such as NumPy writes come
to, and NumPy only what types that it writes are. The limits keep it short, and all products within
NumPy's integers.
"""

from __future__ import annotations

import ast
import math
import re
from typing import Any

import numpy as np

#: Bytes of a text, as in C.
MOST_TEXT = 65536
#: Fields of an element, with those inside of fields.
MOST_FIELDS = 4096
#: Of an array, and of a field.
MOST_DIMENSIONS = 32
#: Bytes of an element.
MOST_BYTES = 1 << 30
_DEEPEST = 8  # fields inside of fields
_MOST_OPEN = 3 * _DEEPEST + 4  # brackets in one another: each of these, and a shape or a title

_KEYS = ("descr", "fortran_order", "shape")

_ESCAPE = r"""\\(?:[\\'"nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U00(?:10|0[0-9a-f])[0-9a-f]{4})"""
_TOKEN = re.compile(
    rf"""[ \n]*(?:
        (?P<opens> [({{\[] )
      | (?P<closes> [])}}] )
      | [,:]
      | (?:0|[1-9][0-9]{{0,17}})(?![0-9])
      | True|False
      | (?P<text> '(?:[ -&(-[\]-~]|{_ESCAPE})*' | "(?:[ !#-[\]-~]|{_ESCAPE})*" )
    )""",
    re.VERBOSE,
)

#: Byte order, kind and size; or a date, the steps of which are a number of a unit.
_PLAIN_TYPE = re.compile(
    r"[<>|=]?(?:([biufcSUV])(0|[1-9][0-9]{0,9})"
    r"|[mM]8(?:\[(?:[1-9][0-9]{0,5})?(?:[YMWDhms]|[munpfa]s)\])?)"
)
_SIZES = {"b": (1,), "i": (1, 2, 4, 8), "f": (2, 4, 8, 12, 16), "c": (8, 16, 24, 32)}
_SIZES["u"] = _SIZES["i"]
_DATE_SIZE, _CHARACTER_SIZE = 8, 4


class BeyondLimitError(ValueError):
    """What is described is more than is taken in."""


def read_numpy_header(header: bytes, swap: bool) -> tuple[np.dtype[Any], str, tuple[int, ...]]:
    """Read the header that describes a NumPy array."""
    try:
        found = _evaluated(header)
        if not isinstance(found, dict) or found.keys() != {*_KEYS}:
            raise ValueError(f"it has to be a dictionary of {', '.join(_KEYS)}")
        descr, fortran_order, shape = (found[key] for key in _KEYS)
        if _check_type(descr, [], 0) == 0:
            raise ValueError("an element has no bytes")
        _check_shape(shape)
        if not isinstance(fortran_order, bool):
            raise ValueError(f"fortran_order is {fortran_order!r}: it has to be True or False")
        # Fields without a name are padding, of which np.dtype itself makes fields.
        dtype = np.lib.format.descr_to_dtype(descr)
    # TypeError: a type that this machine has not
    except (ValueError, TypeError, SyntaxError) as error:
        kind = BeyondLimitError if isinstance(error, BeyondLimitError) else ValueError
        raise kind(f"NumPy header {header[:80]!r} cannot be read: {error}") from None
    if swap:
        dtype = dtype.newbyteorder("S")
    return dtype, "F" if fortran_order else "C", shape


def _evaluated(header: bytes) -> Any:
    """Return what the text stands for, if it is made of what NumPy's are."""
    if len(header) > MOST_TEXT:
        raise BeyondLimitError(f"it has {len(header)} bytes, and {MOST_TEXT} are the most")
    text = header.decode("ascii").strip(" \n")
    end = n_open = 0
    while end < len(text):
        token = _TOKEN.match(text, end)
        follows = end > 0 and text[end - 1] not in "[({,:"
        # What follows something would be a call or an index, or make a text end elsewhere.
        if token is None or (follows and (token["opens"] or token["text"])):
            raise ValueError(f"NumPy writes no such thing as at byte {end}")
        end = token.end()
        n_open += bool(token["opens"]) - bool(token["closes"])
        if n_open > _MOST_OPEN:
            raise ValueError(f"{n_open} brackets are in one another at byte {end}")
    return ast.literal_eval(text)


def _check_type(of: object, fields: list[object], depth: int) -> int:
    """Return the bytes of a type, if NumPy has it; its fields are added to those before."""
    if isinstance(of, str):
        return _checked_bytes(_plain_size(of))
    if not isinstance(of, list):
        raise ValueError(f"{of!r:.40} is no type")
    if depth == _DEEPEST:
        raise BeyondLimitError(f"fields are more than {_DEEPEST} deep")
    fields += of
    if len(fields) > MOST_FIELDS:
        raise BeyondLimitError(f"it has more than {MOST_FIELDS} fields")
    return _checked_bytes(sum(_check_field(field, fields, depth) for field in of))


def _plain_size(text: str) -> int:
    found = _PLAIN_TYPE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is no plain type")
    kind, size = found[1], int(found[2] or _DATE_SIZE)
    if kind in _SIZES and size not in _SIZES[kind]:
        raise ValueError(f"there is no type {text!r}")
    return size * (_CHARACTER_SIZE if kind == "U" else 1)


def _check_field(field: object, fields: list[object], depth: int) -> int:
    """Return the bytes of a field: its name, or title and name, its type, and perhaps its shape."""
    if not isinstance(field, tuple) or len(field) not in (2, 3):
        raise ValueError(f"{field!r:.40} is no field")
    names = field[0] if isinstance(field[0], tuple) else field[:1]
    if len(names) > 2 or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{names!r:.40} is no name of a field")
    "".join(names).encode()  # which half a character has not
    size = _check_type(field[1], fields, depth + 1)
    if len(field) == 2:
        return size
    shape = _check_shape(field[2])
    count = math.prod(shape)
    # Without bytes, there could be any number of something in a small heap.
    most = 1 if size == 0 else MOST_FIELDS if count == 0 else MOST_BYTES
    if math.prod(n for n in shape if n) > most:
        raise ValueError(f"a field has the shape {shape!r:.40}, which is too large")
    return _checked_bytes(count * size)


def _check_shape(shape: object) -> tuple[int, ...]:
    if not isinstance(shape, tuple) or not all(type(size) is int for size in shape):
        raise ValueError(f"{shape!r:.40} is no shape")
    if len(shape) > MOST_DIMENSIONS:
        raise BeyondLimitError(f"a shape has {len(shape)} dimensions, more than {MOST_DIMENSIONS}")
    return shape


def _checked_bytes(n_bytes: int) -> int:
    """Return the size of a type that can be."""
    if n_bytes > MOST_BYTES:
        raise BeyondLimitError(f"an element or a field has more than {MOST_BYTES} bytes")
    return n_bytes

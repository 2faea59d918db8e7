# SPDX-License-Identifier: BSD-3-Clause
"""Headers of NumPy arrays, read by an allow-list.

Headers come from strangers. Some types make NumPy divide by zero, and some texts make Python's own
parser run out of stack. So only what NumPy writes is understood here, and NumPy is asked after
that. The limits keep it short, and all products within NumPy's integers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

__all__ = ["MOST_BYTES", "MOST_DIMENSIONS", "MOST_FIELDS", "MOST_TEXT", "read_numpy_header"]

#: Bytes of a text, as in C.
MOST_TEXT = 65536
#: Fields of an element, with those inside of fields.
MOST_FIELDS = 4096
#: Of an array, and of a field.
MOST_DIMENSIONS = 32
#: Bytes of an element.
MOST_BYTES = 1 << 30
_DEEPEST = 8  # fields inside of fields

_KEYS = ("descr", "fortran_order", "shape")

_ESCAPE = r"""\\(?:[\\'"nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U00(?:10|0[0-9a-f])[0-9a-f]{4})"""
_TOKEN = re.compile(
    rf"""[ \n]*(?:
        (?P<mark> [][(){{}},:] | \Z )
      | (?P<number> (?:0|[1-9][0-9]{{0,17}})(?![0-9]) )
      | (?P<bool> True|False )
      | (?P<text> '(?:[ -&(-[\]-~]|{_ESCAPE})*' | "(?:[ !#-[\]-~]|{_ESCAPE})*" )
    )""",
    re.VERBOSE,
)
_ESCAPED = re.compile(r"\\(?:[xuU]([0-9a-f]+)|(.))")
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}

#: Byte order, kind and size; or a date, the steps of which are a number of a unit.
_PLAIN_TYPE = re.compile(
    r"[<>|=]?(?:([biufcSUV])([1-9][0-9]{0,9})"
    r"|[mM]8(?:\[(?:[1-9][0-9]{0,5})?(?:[YMWDhms]|[munpfa]s)\])?)"
)
_SIZES = {"b": (1,), "i": (1, 2, 4, 8), "f": (2, 4, 8, 12, 16), "c": (8, 16, 24, 32)}
_SIZES["u"] = _SIZES["i"]
_DATE_SIZE, _CHARACTER_SIZE = 8, 4


def read_numpy_header(header: bytes, swap: bool) -> tuple[np.dtype[Any], str, tuple[int, ...]]:
    """Read the header that describes a NumPy array."""
    try:
        found = _Reader(header).header()
        dtype = np.dtype(found["descr"])
    except (ValueError, TypeError) as error:  # TypeError: a type that this machine has not
        raise ValueError(f"NumPy header {header[:80]!r} cannot be read: {error}") from None
    if swap:
        dtype = dtype.newbyteorder("S")
    return dtype, "F" if found["fortran_order"] else "C", found["shape"]


class _Reader:
    """Takes a header apart from its beginning to its end."""

    def __init__(self, header: bytes) -> None:
        if len(header) > MOST_TEXT:
            raise ValueError(f"it has {len(header)} bytes, and {MOST_TEXT} are the most")
        self._header = header.decode("ascii")
        self._end = 0
        self._n_fields = 0
        self._next()

    def header(self) -> dict[str, Any]:
        """Return what is in the dictionary; ``descr`` is as `numpy.dtype` takes it."""
        found: dict[str, Any] = {}
        self._mark("{")
        for _ in self._each("}"):
            key = self._text()
            self._mark(":")
            if key in found:
                raise ValueError(f"it has {key!r} twice")
            if key == "descr":
                found[key], _ = self._type(0)
            elif key == "fortran_order":
                found[key] = self._take("bool") == "True"
            elif key == "shape":
                found[key] = self._shape()
            else:
                raise ValueError(f"it has {key[:40]!r}, which is none of {', '.join(_KEYS)}")
        self._mark("")
        if len(found) < len(_KEYS):
            raise ValueError(f"it has to have all of {', '.join(_KEYS)}")
        return found

    # ---- Types ----

    def _type(self, depth: int) -> tuple[str | list[Any], int]:
        """Return a type, and how many bytes it has."""
        if not self._skip("["):
            return self._plain_type()
        if depth == _DEEPEST:
            raise ValueError(f"fields are more than {_DEEPEST} deep")
        fields, n_bytes = [], 0
        for _ in self._each("]"):
            field, field_bytes = self._field(depth)
            fields.append(field)
            n_bytes += field_bytes
        return fields, _checked_bytes(n_bytes)

    def _plain_type(self) -> tuple[str, int]:
        text = self._text()
        found = _PLAIN_TYPE.fullmatch(text)
        if found is None:
            raise ValueError(f"{text[:40]!r} is no plain type")
        kind, size = found[1], int(found[2] or _DATE_SIZE)
        if kind in _SIZES and size not in _SIZES[kind]:
            raise ValueError(f"there is no type {text!r}")
        return text, _checked_bytes(size * (_CHARACTER_SIZE if kind == "U" else 1))

    def _field(self, depth: int) -> tuple[tuple[Any, ...], int]:
        self._n_fields += 1
        if self._n_fields > MOST_FIELDS:
            raise ValueError(f"it has more than {MOST_FIELDS} fields")
        self._mark("(")
        name = self._name()
        self._mark(",")
        of, n_bytes = self._type(depth + 1)
        if not self._skip(","):
            self._mark(")")
            return (name, of), n_bytes
        shape = self._shape()
        self._mark(")")
        return (name, of, shape), _checked_bytes(n_bytes * math.prod(shape))

    def _name(self) -> str | tuple[str, str]:
        if not self._skip("("):
            return self._text()
        title = self._text()
        self._mark(",")
        name = self._text()
        self._mark(")")
        return title, name

    def _shape(self) -> tuple[int, ...]:
        self._mark("(")
        sizes = [int(self._take("number")) for _ in self._each(")")]
        if len(sizes) > MOST_DIMENSIONS:
            raise ValueError(f"a shape has {len(sizes)} dimensions, more than {MOST_DIMENSIONS}")
        return tuple(sizes)

    # ---- Tokens ----

    def _next(self) -> None:
        found = _TOKEN.match(self._header, self._end)
        if found is None:
            raise ValueError(f"NumPy writes no such thing as at byte {self._end}")
        self._begin, self._end = found.start(), found.end()
        self._kind, self._token = str(found.lastgroup), found[str(found.lastgroup)]

    def _take(self, kind: str) -> str:
        if self._kind != kind:
            raise ValueError(f"a {kind} is missing at byte {self._begin}")
        token = self._token
        self._next()
        return token

    def _skip(self, mark: str) -> bool:
        """Whether this mark is next: it is taken then."""
        is_next = self._kind == "mark" and self._token == mark
        if is_next:
            self._next()
        return is_next

    def _mark(self, mark: str) -> None:
        if not self._skip(mark):
            raise ValueError(f"{mark or 'the end'!r} is missing at byte {self._begin}")

    def _each(self, end: str) -> Iterator[None]:
        """Come back before each of the things between commas, and take the bracket at the end."""
        needs_comma = end == ")"  # a tuple, which a single number in brackets is not
        while not self._skip(end):
            yield
            if not self._skip(","):
                self._mark("," if needs_comma else end)
                return
            needs_comma = False

    def _text(self) -> str:
        text = _ESCAPED.sub(_unescaped, self._take("text")[1:-1])
        text.encode()  # which half a character has not
        return text


def _unescaped(found: re.Match[str]) -> str:
    if found[1]:
        return chr(int(found[1], 16))
    return _CONTROLS.get(found[2], found[2])


def _checked_bytes(n_bytes: int) -> int:
    """Return the size of a type that can be."""
    if not 0 < n_bytes <= MOST_BYTES:
        raise ValueError(f"an element or a field has {n_bytes} bytes, not 1 to {MOST_BYTES}")
    return n_bytes

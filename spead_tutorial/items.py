# SPDX-License-Identifier: BSD-3-Clause
"""Items: what a heap carries, how it is described to a receiver, and its bytes.

An item's value is kept as it was given. Its bytes are asked for when it is added to a heap, by
`Item.to_buffer`. This is where a value of another shape is refused, and one that has to be copied
and does not fit. The values of an array that is sent in place are not looked at.
"""

from __future__ import annotations

import itertools
import logging
import math
import operator
from collections.abc import Callable, ItemsView, Iterable, KeysView, Sequence, ValuesView
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from spead_tutorial._bits import FIELD_DTYPES, Layout
from spead_tutorial._numpy_header import (
    MOST_BYTES,
    MOST_DIMENSIONS,
    MOST_FIELDS,
    MOST_TEXT,
    BeyondLimitError,
    read_numpy_header,
)
from spead_tutorial._shown import shown
from spead_tutorial._types import whole
from spead_tutorial._values import (
    as_dtype,
    check_order,
    integer_range,
    pack_fields,
    read_value,
    sized,
)
from spead_tutorial.flavour import BUG_COMPAT_SWAP_ENDIAN, STREAM_CTRL_ID

__all__ = ["Descriptor", "Item", "ItemGroup", "RawDescriptor"]

#: Elements of an item that are unpacked: as many as 64 MiB have bits.
MOST_ELEMENTS = 1 << 29
# Smallest id that a group gives to an item that has none.
_FIRST_FREE_ID = 0x1000
_MOST_NAMED, _LONGEST_NAME = 10, 60  # of the items of a group in a message
_MOST_WARNINGS = 10  # of a group before it only says how many there were
# What an item takes in memory at most, and besides that each byte of a NumPy header, which becomes
# a type, each field and each dimension.
_ITEM_BYTES, _HEADER_BYTES, _FIELD_BYTES, _DIMENSION_BYTES = 1024, 20, 256, 64
_SHOWN_IDS = 3

_T = TypeVar("_T")
_R = TypeVar("_R")
_BYTE = np.dtype(np.uint8)
_NO_BYTES = np.empty(0, _BYTE)
_log = logging.getLogger(__name__)
# All that a descriptor says, but for the id; in the order of its parameters.
_description = operator.attrgetter("name", "description", "shape", "dtype", "order", "format")
_CHARACTER = np.dtype("S1")
_UINT64 = np.dtype(">u8")


class _HasBugCompat(Protocol):
    """All that a descriptor needs of a flavour."""

    @property
    def bug_compat(self) -> int: ...


@dataclass(frozen=True, slots=True)
class RawDescriptor:
    """The fields of a descriptor as they go into a packet.

    Parameters
    ----------
    id : int
        Id of the item that is described.
    name, description : bytes
        ASCII.
    numpy_header : bytes
        ASCII; empty for an item that has a `format`.
    format : list of (str, int)
        Letter and width in bits of every field; empty for an item that has a dtype.
    shape : list of (int or None)
        None is the dimension that varies.
    """

    id: int
    name: bytes
    description: bytes
    numpy_header: bytes
    format: list[tuple[str, int]]
    shape: list[int | None]


class _AnyRawDescriptor(Protocol):
    """A `RawDescriptor`, or what another package has for one."""

    @property
    def id(self) -> int: ...
    @property
    def name(self) -> bytes: ...
    @property
    def description(self) -> bytes: ...
    @property
    def numpy_header(self) -> bytes: ...
    @property
    def format(self) -> Sequence[tuple[str, int]]: ...
    @property
    def shape(self) -> Sequence[int | None]: ...


class _RawItem(Protocol):
    """The value of a received item, as bytes."""

    def __buffer__(self, flags: int, /) -> memoryview: ...
    @property
    def id(self) -> int: ...
    @property
    def is_immediate(self) -> bool: ...


class _ReceivedHeap(Protocol):
    """All that a group needs of a heap."""

    @property
    def flavour(self) -> _HasBugCompat: ...
    def get_descriptors(self) -> Sequence[_AnyRawDescriptor]: ...
    def get_items(self) -> Sequence[_RawItem]: ...


class _NotAsciiError(UnicodeEncodeError):
    """Says what is wrong in the words that it was given."""

    def __str__(self) -> str:
        return self.reason


class Descriptor:
    """What a receiver has to know to interpret an item.

    Parameters
    ----------
    id : int
        At least 7: those below are the protocol's own. By convention 0x1000 or more. How large it
        may be depends on the flavour of the heap it is added to.
    name, description : str
        ASCII.
    shape : sequence of (int or None)
        One dimension of an item with a `format` may be None: its size then follows from the value.
    dtype : dtype_like, optional
        Type of the elements, sent in its own byte order. Either this or `format` is needed.
    order : {"C", "F"}
        Order of the elements on the wire. Items with a `format` have only ``"C"``.
    format : sequence of (str, int), optional
        Fields of an element as pairs of letter and width in bits, sent big-endian and without
        gaps: ``u`` unsigned and ``i`` signed integer, ``b`` boolean (any width), ``f`` floating
        point (32 or 64), ``c`` character (8). Elements of several fields are tuples.

    Raises
    ------
    ValueError, TypeError
        If these do not describe an item.

    Notes
    -----
    All of these are attributes, which can be assigned to, one after the other. What does not go
    together is refused when the item is used. A descriptor that has been sent is not sent again
    for that, unless a heap is asked for with ``descriptors="all"``.

    Examples
    --------
    >>> Descriptor(0x1000, "adc", "ADC samples", (8,), np.int8)
    Descriptor(0x1000, 'adc', shape=(8,), dtype=int8)
    >>> Descriptor(0x1600, "timestamp", "in ticks", (), format=[("u", 40)])
    Descriptor(0x1600, 'timestamp', shape=(), format=[('u', 40)])
    """

    def __init__(
        self,
        id: int,
        name: str,
        description: str,
        shape: Sequence[int | None],
        dtype: DTypeLike | None = None,
        order: str = "C",
        format: Iterable[tuple[str, int]] | None = None,
    ) -> None:
        try:
            self.id = operator.index(id)
        except TypeError:
            raise ValueError(f"item {name!r}: id {id!r} is not an integer") from None
        self.name = name
        self.description = description
        try:
            self._shape = _checked_shape(shape)
            if (dtype is None) == (format is None):
                raise ValueError("one of dtype and format is needed, and not both")
            self._dtype = _checked_dtype(dtype)
            self._format = _checked_format(format)
            if self.id < 0:
                raise ValueError("an id is not negative")
            if self.id <= STREAM_CTRL_ID:
                raise ValueError(
                    "ids 0x0 to 0x6 are reserved: they are the protocol's own, and receivers take"
                    " them for that; choose 0x7 or more, by convention 0x1000"
                )
            self._order = _checked_order(order)
        except ValueError as error:
            raise self._error(error) from None
        self._prepare()
        self._check_together()

    def _prepare(self) -> None:
        """Work out what follows from shape, dtype, order and format."""
        # Type of the elements in memory, None where they are packed bit by bit.
        self._wire_dtype = self._dtype
        if self._format is not None:
            self._wire_dtype = _format_dtype(self._format)
        # Why they do not go together, as may be while one after the other is assigned.
        self._clash = ""
        if self._dtype is None and self._format is None:
            self._clash = "it has neither a dtype nor a format"
        elif self._format is not None and self._order != "C":
            self._clash = "an item with a format has order 'C'"
        elif self._format is None and None in self._shape:
            self._clash = "only an item with a format can have a dimension that varies"

    def _check_together(self) -> None:
        if self._clash:
            raise self._error(self._clash)

    @classmethod
    def from_raw(cls, raw_descriptor: _AnyRawDescriptor, flavour: _HasBugCompat) -> Self:
        """Make a descriptor of the fields of a packet.

        Parameters
        ----------
        raw_descriptor : RawDescriptor
            What was received, or anything with its attributes.
        flavour : Flavour
            Of the heap; only its ``bug_compat`` is looked at.

        Returns
        -------
        Descriptor
            Or, of a class that is derived from it, one of that.

        Raises
        ------
        ValueError
            If the fields do not describe an item, are beyond a limit, or a text is not ASCII
            (UnicodeDecodeError).

        Notes
        -----
        A NumPy header is understood if it is as NumPy writes it; no other types are. It and other
        texts have up to 64 KiB, an element up to 4096 fields and 1 GiB, an array 32 dimensions.
        """
        raw = raw_descriptor
        name, description = (_received_text(text) for text in (raw.name, raw.description))
        if raw.numpy_header:
            swap = bool(flavour.bug_compat & BUG_COMPAT_SWAP_ENDIAN)
            dtype, order, shape = read_numpy_header(bytes(raw.numpy_header), swap)
            made = cls(raw.id, name, description, shape, dtype, order)
        else:
            if len(raw.format) > MOST_FIELDS:
                raise BeyondLimitError(
                    f"item {raw.id:#x}: its format has more than {MOST_FIELDS} fields"
                )
            fields = [(str(letter), int(bits)) for letter, bits in raw.format]
            made = cls(raw.id, name, description, list(raw.shape), format=fields)
        made._check_limits()
        return made

    def _check_limits(self) -> None:
        """Refuse what NumPy cannot count."""
        if self.itemsize_bits > 8 * MOST_BYTES:
            raise self._beyond(f"an element has more than {MOST_BYTES} bytes")
        if len(self._shape) > MOST_DIMENSIONS:
            raise self._beyond(f"it has more than {MOST_DIMENSIONS} dimensions")
        if self.itemsize_bits * math.prod(size for size in self._shape if size) >= 1 << 63:
            raise self._beyond(f"shape {self._shape} is too large for any array")

    def _beyond(self, reason: str) -> BeyondLimitError:
        return BeyondLimitError(str(self._error(reason)))

    def _error(self, reason: object) -> ValueError:
        item = f"item {self.name!r} ({self.id:#x})"
        if isinstance(reason, UnicodeEncodeError):
            where = (reason.encoding, reason.object, reason.start, reason.end)
            return _NotAsciiError(*where, f"{item}: {str(reason.object)!r} is not ASCII")
        return ValueError(f"{item}: {reason}")

    def __repr__(self) -> str:
        of = f"dtype={self._dtype}" if self._format is None else f"format={self.format}"
        order = "" if self._order == "C" else ", order='F'"
        return (
            f"{type(self).__name__}({self.id:#x}, {self.name!r}, shape={self.shape}, {of}{order})"
        )

    @property
    def shape(self) -> tuple[int | None, ...]:
        """Size of every dimension, None for the one that varies."""
        return self._shape

    @shape.setter
    def shape(self, shape: Sequence[int | None]) -> None:
        self._shape = self._checked(_checked_shape, shape)
        self._prepare()

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """Type of the elements; None for an item with a `format`, which assigning it replaces."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: DTypeLike | None) -> None:
        self._dtype = self._checked(_checked_dtype, dtype)
        self._format = self._format if dtype is None else None
        self._prepare()

    @property
    def order(self) -> str:
        """``"C"`` or ``"F"``."""
        return self._order

    @order.setter
    def order(self, order: str) -> None:
        self._order = self._checked(_checked_order, order)
        self._prepare()

    @property
    def format(self) -> list[tuple[str, int]] | None:
        """Letter and width in bits of every field; None for an item with a dtype.

        Assigning it replaces the dtype.
        """
        return None if self._format is None else list(self._format)

    @format.setter
    def format(self, format: Iterable[tuple[str, int]] | None) -> None:
        self._format = self._checked(_checked_format, format)
        self._dtype = self._dtype if format is None else None
        self._prepare()

    def _checked(self, check: Callable[[_T], _R], value: _T) -> _R:
        try:
            return check(value)
        except ValueError as error:
            raise self._error(error) from None

    @property
    def itemsize_bits(self) -> int:
        """Bits of one element on the wire."""
        if self._format is not None:
            return sum(bits for _, bits in self._format)
        if self._dtype is None:
            raise self._error(self._clash)
        return 8 * self._dtype.itemsize

    def is_variable_size(self) -> bool:
        """Whether one dimension varies."""
        return None in self._shape

    def allow_immediate(self) -> bool:
        """Whether a receiver could size the value without its address, so that it can be inline."""
        return not self.is_variable_size() and self.itemsize_bits % 8 == 0

    def dynamic_shape(self, max_elements: int) -> Sequence[int]:
        """Shape of the largest value with a limit of elements (fixed shapes as they are).

        Parameters
        ----------
        max_elements : int
            How many there may be.

        Returns
        -------
        sequence of int
            The size of every dimension.
        """
        sizes = sized(self._shape, max_elements)
        return sizes if self.is_variable_size() else tuple(sizes)

    def compatible_shape(self, shape: Sequence[int | None]) -> bool:
        """Whether a value may have this shape.

        Parameters
        ----------
        shape : sequence of int
            The shape of a value.

        Returns
        -------
        bool
            Whether it has the right number of dimensions, and each that is fixed the right size.
        """
        return len(shape) == len(self._shape) and all(
            expected is None or size == expected
            for size, expected in zip(shape, self._shape, strict=True)
        )

    def to_raw(self, flavour: _HasBugCompat) -> RawDescriptor:
        """Return the fields as they go into a packet.

        Parameters
        ----------
        flavour : Flavour
            Of the heap; only its ``bug_compat`` is looked at.

        Returns
        -------
        RawDescriptor
            What a heap encodes.

        Raises
        ------
        ValueError
            If the dtype has no description, or one that `from_raw` would not understand, or a
            text is not ASCII (UnicodeEncodeError).
        """
        self._check_together()
        header = ""
        if self._dtype is not None:
            header = self._numpy_header(bool(flavour.bug_compat & BUG_COMPAT_SWAP_ENDIAN))
        return RawDescriptor(
            id=self.id,
            name=self._ascii(self.name),
            description=self._ascii(self.description),
            numpy_header=self._ascii(header),
            format=list(self._format or ()),
            shape=list(self._shape),
        )

    def _numpy_header(self, swap: bool) -> str:
        assert self._dtype is not None
        dtype = self._dtype.newbyteorder("S") if swap else self._dtype
        is_structure = dtype.names is not None
        try:
            descr = np.lib.format.drop_metadata(dtype).descr if is_structure else dtype.str
        except ValueError:
            raise self._error(
                f"the fields of {dtype!s:.80} overlap, or are not in the order of their names: this"
                " cannot be described; numpy.lib.recfunctions.repack_fields copies them in order"
            ) from None
        # The order of these keys is part of the wire format.
        header = {"descr": descr, "fortran_order": self._order == "F", "shape": self._shape}
        text = ascii(header)
        if is_structure:
            self._check_described(text, swap)
        return text

    def _check_described(self, header: str, swap: bool) -> None:
        """Refuse a type that a receiver would take for another, or not understand."""
        try:
            found, _, _ = read_numpy_header(header.encode("ascii"), swap)
        except ValueError as error:
            raise self._error(f"no receiver would understand its dtype: {error}") from None
        if found != self._dtype:
            raise self._error(f"a receiver would take {self._dtype!s:.80} for {found!s:.80}")

    def _ascii(self, text: str) -> bytes:
        try:
            return text.encode("ascii")
        except UnicodeEncodeError as error:
            raise self._error(error) from None


def _received_text(text: bytes) -> str:
    if len(text) > MOST_TEXT:
        raise BeyondLimitError(
            f"a text of a descriptor has {len(text)} bytes, more than {MOST_TEXT}"
        )
    return bytes(text).decode("ascii")


def _checked_shape(shape: Sequence[int | None]) -> tuple[int | None, ...]:
    checked = tuple(None if size is None else operator.index(size) for size in shape)
    if checked.count(None) > 1:
        raise ValueError(f"shape is {checked}: only one dimension can vary")
    if any(size is not None and size < 0 for size in checked):
        raise ValueError(f"shape is {checked}: a dimension is not negative")
    return checked


def _checked_order(order: str) -> Literal["C", "F"]:
    if order not in ("C", "F"):
        raise ValueError(f"order is {order!r}: it has to be 'C' or 'F'")
    return "C" if order == "C" else "F"


def _checked_dtype(dtype: DTypeLike | None) -> np.dtype[Any] | None:
    if dtype is None:
        return None
    checked = np.dtype(dtype)
    if checked.hasobject:
        raise ValueError(f"dtype {checked} has Python objects in it, which have no bytes")
    if checked.subdtype is not None:
        raise ValueError(f"dtype {checked} has a shape: it belongs into the item's shape")
    if checked.itemsize == 0:
        raise ValueError(f"dtype {checked} has no bytes")
    return checked


def _checked_format(format: Iterable[tuple[str, int]] | None) -> tuple[tuple[str, int], ...] | None:
    if format is None:
        return None
    fields = tuple((letter, operator.index(bits)) for letter, bits in format)
    if not fields:
        raise ValueError("the format has no fields")
    for letter, bits in fields:
        if bits <= 0:
            raise ValueError(f"field ({letter!r}, {bits}): a field has at least one bit")
        if letter == "f" and bits not in (32, 64):
            raise ValueError(f"field ('f', {bits}): floating point has 32 or 64 bits")
        if letter == "c" and bits != 8:
            raise ValueError(f"field ('c', {bits}): a character has 8 bits")
        if letter not in ("u", "i", "f", "b", "c"):
            raise ValueError(f"field ({letter!r}, {bits}): the letter is one of u i f b c")
    return fields


def _format_dtype(format: Sequence[tuple[str, int]]) -> np.dtype[Any] | None:
    """Return the dtype with the same bytes as `format`, None if there is none."""
    dtypes = [FIELD_DTYPES.get(field) for field in format]
    if None in dtypes:
        return None
    if len(dtypes) == 1:
        return dtypes[0]
    return np.dtype([(f"f{i}", dtype) for i, dtype in enumerate(dtypes)])


class Item(Descriptor):
    """A descriptor with a value.

    Parameters
    ----------
    id, name, description, shape, dtype, order, format
        As in `Descriptor`.
    value : array_like, optional
        An array of the item's shape (or what NumPy makes one of), of its dtype or one whose
        values fit; for an item with a `format`, numbers in range, and tuples where it has several
        fields. It is kept as it is, not copied, and looked at when it is added to a heap. None is
        an item whose value is not known yet.

    Attributes
    ----------
    version : int
        Counts assignments to `value`, from which a `HeapGenerator` knows that it has to be sent
        again. Changes inside an array do not count.
    """

    def __init__(
        self,
        id: int,
        name: str,
        description: str,
        shape: Sequence[int | None],
        dtype: DTypeLike | None = None,
        order: str = "C",
        format: Iterable[tuple[str, int]] | None = None,
        value: Any = None,
    ) -> None:
        super().__init__(id, name, description, shape, dtype, order, format)
        self._value = value
        self.version = 1

    def _prepare(self) -> None:
        """Work out beforehand what `to_buffer` would otherwise find out for every heap."""
        super()._prepare()
        self._exports = _exports(self._wire_dtype)
        # How bits become values, and values bits: worked out when that is first asked for.
        self._made_layout: Layout | None = None
        self._is_text = len(self._shape) == 1 and self._format == (("c", 8),)
        # Arrays of this shape, in C order, are sent as they are.
        fixed = not self.is_variable_size() and self._order == "C" and not self._clash
        self._as_is_shape = self._shape if fixed and self._exports else None
        # The shape and bytes of a received array that is such memory as it is; -1 for others.
        self._sizes = self._native_sizes()
        self._as_is_bytes = -1
        if self._sizes and self._wire_dtype is not None:
            self._as_is_bytes = math.prod(self._sizes) * self._wire_dtype.itemsize
        # Of a single integer its bytes (0 if this is not one), their order, whether it has a sign,
        # and whether they are the low bytes of an 8-byte integer.
        self._int_length, self._int_order, self._int_signed, self._is_short_integer = (
            self._integer_form()
        )

    def _native_sizes(self) -> tuple[int, ...]:
        """Return the shape of arrays that can be received as they are; () where none can."""
        if not self._as_is_shape or self._wire_dtype is None or self._is_text:
            return ()
        sizes = tuple(size for size in self._as_is_shape if size is not None)
        # NumPy says of every type with an array in it that it is native.
        native = self._wire_dtype.newbyteorder("=") == self._wire_dtype
        return sizes if native and math.prod(sizes) > 0 else ()

    def _integer_form(self) -> tuple[int, Literal["little", "big"], bool, bool]:
        dtype = self._wire_dtype
        if self._shape == () and not self._clash:
            if dtype is not None and dtype.kind in "ui":
                is_little = dtype.newbyteorder("<") == dtype
                return dtype.itemsize, "little" if is_little else "big", dtype.kind == "i", False
            if dtype is None and self._format is not None and len(self._format) == 1:
                letter, bits = self._format[0]
                if letter in "ui" and bits % 8 == 0:
                    return bits // 8, "big", letter == "i", bits < 64
        return 0, "big", False, False

    @property
    def _layout(self) -> Layout:
        if self._made_layout is None:
            assert self._format is not None
            self._made_layout = Layout(self._format)
        return self._made_layout

    @property
    def value(self) -> Any:
        """The value as it was given; None if there is none yet.

        Assigning counts up ``version``, with every value. None cannot be assigned: that is a
        ValueError. Deleting leaves None, so that memory that was received can take another heap.
        """
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        if value is None:
            raise self._error("its value cannot become None")
        self._value = value
        self.version += 1

    @value.deleter
    def value(self) -> None:
        self._value = None

    def set_from_raw(
        self, raw_item: _RawItem, new_order: str = "=", *, max_elements: int = MOST_ELEMENTS
    ) -> None:
        """Set the value to what was received.

        Parameters
        ----------
        raw_item : object
            The item's bytes by the buffer protocol, and whether they were sent as an immediate
            (``is_immediate``).
        new_order : str
            Byte order of the value, as for ``numpy.dtype.newbyteorder``; ``"|"`` leaves it.
        max_elements : int
            As for `ItemGroup`.

        Raises
        ------
        ValueError
            If the bytes are too few, or too many elements would be unpacked; UnicodeDecodeError
            for text that is not ASCII. The item has not changed then.

        Notes
        -----
        An array is the memory of the heap itself, and keeps all of it, unless its byte order has
        to be changed. Text of one dimension is a ``str``. A dimension that varies takes as many
        elements as have arrived; of other items, bytes that are too many are left out, with a
        warning.

        Where NumPy has no type for a field, the elements are *unpacked* to new memory, into the
        smallest type that holds them: ``bool`` for ``b`` of any width, ``uint8`` for ``("u", 1)``,
        ``int16`` for ``("i", 12)``, ``uint64`` for ``("u", 48)``, and Python's integers for more
        than 64 bits. That takes at most ten times the memory of the bytes, and up to 3 MiB. A
        single number, of shape ``()``, is an ``int`` or a ``bool`` of Python's. Elements of several
        fields are structures, the fields of which are called ``f0``, ``f1`` and so on.
        """
        self.value = self._read(raw_item, check_order(new_order), max_elements, _log.warning)

    def _read(
        self, raw_item: _RawItem, new_order: str, max_elements: int, warn: Callable[..., None]
    ) -> Any:
        view = memoryview(raw_item)
        # What most items are is read without more ado.
        if view.nbytes == self._as_is_bytes and new_order == "=":
            return np.ndarray(self._sizes, self._wire_dtype, view)
        length = self._int_length
        if self._is_short_integer and (
            view.nbytes == length or (raw_item.is_immediate and view.nbytes > length)
        ):
            return int.from_bytes(view[-length:], "big", signed=self._int_signed)
        self._check_together()
        buffer = np.frombuffer(view, _BYTE) if view.nbytes else _NO_BYTES
        try:
            value, surplus = read_value(
                buffer,
                self._shape,
                self._layout if self._wire_dtype is None else self._wire_dtype,
                self._order,
                is_text=self._is_text,
                is_immediate=raw_item.is_immediate,
                new_order=new_order,
                max_elements=max_elements,
            )
        except UnicodeDecodeError:
            raise
        except ValueError as error:
            raise self._error(error) from None
        if surplus:
            warn(
                "item %r (%#x): %d bytes are more than its shape takes, and are left out",
                self.name, self.id, surplus,
            )  # fmt: skip
        return value

    def to_buffer(self) -> NDArray[Any] | bytes:
        """Return the value's bytes.

        Returns
        -------
        ndarray or bytes, C-contiguous
            The *memory of the value itself* where it has the item's type and order: changing it
            in place then changes what is sent. That holds for the low bytes of a zero-dimensional
            array of dtype ``>u8``, also if the item is a single integer of 24, 40, 48 or 56 bits:
            the others of its bits are not sent. Otherwise a copy, every element of which has been
            checked, as below.

        Raises
        ------
        ValueError
            If there is no value, its shape is not the item's, elements are masked, or one that is
            copied would arrive as something else; UnicodeEncodeError for text that is not ASCII.

        Notes
        -----
        This is what elements that are copied may be. Everything else is refused.

        ====================  ==================================================================
        for                   any of these
        ====================  ==================================================================
        integers              whole numbers in range, of any type, and texts of them
        booleans              True, False, and numbers that are equal to 1 or 0
        floating point        whole numbers that it holds exactly; other numbers, and texts of
                              them, which are rounded, and are not too large
        text                  text that is not too long
        dates and durations   others, and texts of them, that are exact in their unit; durations
                              also from integers
        raw bytes             bytes, and those that are too few get zeros behind them
        structures            tuples, and structures with as many fields, each as above
        ====================  ==================================================================

        Complex numbers stand for others where their imaginary part is zero.
        """
        value = self._value
        if type(value) is np.ndarray:
            if (
                value.shape == self._as_is_shape
                and value.dtype == self._wire_dtype
                and value.flags.c_contiguous
            ):
                return value
        elif type(value) is int and self._int_length:
            try:
                return value.to_bytes(self._int_length, self._int_order, signed=self._int_signed)
            except OverflowError:
                raise self._error(self._range_error(value)) from None
        self._check_together()
        try:
            return self._convert(value)
        except (ValueError, TypeError, OverflowError) as error:
            raise self._error(error) from None

    def _range_error(self, value: int) -> str:
        letter, bits = "i" if self._int_signed else "u", 8 * self._int_length
        low, high = integer_range(letter, bits)
        return f"{value} is out of range for {letter}{bits}: {low} to {high}"

    def _convert(self, value: Any) -> NDArray[Any]:
        if value is None:
            raise ValueError("it has no value to send")
        if np.ma.is_masked(value):
            raise ValueError("elements are masked, and have no value to send: fill them")
        if (
            self._is_short_integer
            and isinstance(value, np.ndarray)
            and value.dtype == _UINT64
            and value.shape == ()
        ):
            return self._low_bytes(value)
        if self._wire_dtype is None:
            return pack_fields(value, self._layout, self._check_shape)
        if len(self._shape) == 1 and self._wire_dtype == _CHARACTER:
            value = _split_text(value)
        elif len(self._shape) == 1 and self._wire_dtype.str[1:] == "U1" and isinstance(value, str):
            value = list(value)
        array = as_dtype(value, self._wire_dtype)
        self._check_shape(array.shape)
        array = np.asarray(array, order=self._order)
        if self._order == "F":
            array = array.T
        # NumPy does not hand out dates by the buffer protocol, but their bytes.
        return array if self._exports else array.reshape(-1).view(_BYTE)

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        if not self.compatible_shape(shape):
            raise ValueError(f"value has shape {shape}, expected {self._shape}")

    def _low_bytes(self, value: NDArray[Any]) -> NDArray[np.uint8]:
        """Return the low bytes of a zero-dimensional ``>u8`` array: memory that is filled later."""
        length = self._int_length
        return np.ndarray((length,), _BYTE, value, _UINT64.itemsize - length)


def _exports(dtype: np.dtype[Any] | None) -> bool:
    """Whether arrays of this dtype can be handed out by the buffer protocol."""
    if dtype is None:
        return False
    probe: Any = np.empty(0, dtype)
    try:
        memoryview(probe)
    except (ValueError, NotImplementedError):
        return False
    return True


def _split_text(value: Any) -> Any:
    """Make a string or bytes an array of single characters, everything else stays."""
    if isinstance(value, str):
        value = value.encode("ascii")
    if isinstance(value, (bytes, bytearray)) or (
        isinstance(value, memoryview) and value.format in "Bbc" and value.c_contiguous
    ):
        return np.ndarray((len(value),), _CHARACTER, value)
    return value


def _memory_of(raw: _AnyRawDescriptor) -> int:
    """Bytes that the item takes at most."""
    texts = len(raw.name) + len(raw.description) + _HEADER_BYTES * len(raw.numpy_header)
    parts = _FIELD_BYTES * len(raw.format) + _DIMENSION_BYTES * len(raw.shape)
    return _ITEM_BYTES + texts + parts


def _some_ids(ids: Sequence[int]) -> str:
    shown = ", ".join(f"{id:#x}" for id in ids[:_SHOWN_IDS])
    more = len(ids) - _SHOWN_IDS
    return f"{shown} and {more} more" if more > 0 else shown


class ItemGroup:
    """Items that belong together, found by name or by id.

    ``group["name"]`` and ``group[id]`` are the same `Item`, or a KeyError; ``in`` also takes both;
    ``len(group)`` counts the items. `spead_tutorial.send.ItemGroup` can also be sent.

    Parameters
    ----------
    max_elements : int
        How many elements of an item `update` unpacks at most, each field of an element counted by
        itself: a value of more is refused. By default they are as many as 64 MiB have bits. Only
        fields that NumPy has no type for are unpacked, see `Item.set_from_raw`; other arrays
        are the memory of their heap, however many elements they have.
    max_memory : int
        Bytes of memory that items may take that heaps describe, as descriptors come from strangers.
        An item counts as 1024 bytes, those of its name and description, 256 for each field of its
        format, 64 for each dimension, and 20 times the length of its NumPy header, which is more
        than it really takes. The default of 64 MiB is enough for tens of thousands of items.
        Values are not counted: they lie in their heap.

    Attributes
    ----------
    max_elements, max_memory : int
        As above. They can be assigned to; items that the group has already stay.
    left_out : int
        How many descriptors of the heap that it was last updated with are left out: those that
        there is no room for, or that are beyond a limit of `Descriptor.from_raw`, or without a
        name, or of an id that is the protocol's. What the heap itself leaves out is not among them.
    """

    #: 64 MiB.
    DEFAULT_MAX_MEMORY = 1 << 26

    def __init__(
        self, *, max_elements: int = MOST_ELEMENTS, max_memory: int = DEFAULT_MAX_MEMORY
    ) -> None:
        self.max_elements = whole("max_elements", max_elements)
        self._by_id: dict[int, Item] = {}
        self._by_name: dict[str, Item] = {}
        self._n_warnings = self._next_warning = 0
        self.max_memory = operator.index(max_memory)
        self.left_out = 0
        self._memory = 0
        self._described: dict[int, int] = {}  # bytes that they take, by their id

    def add_item(
        self,
        id: int | None,
        name: str,
        description: str,
        shape: Sequence[int | None],
        dtype: DTypeLike | None = None,
        order: str = "C",
        format: Iterable[tuple[str, int]] | None = None,
        value: Any = None,
    ) -> Item:
        """Make an item and add it to the group.

        Items that have the same id or the same name are replaced. If one has the same descriptor
        in all, it stays and only gets the value, so that its descriptor need not be sent again.

        Parameters
        ----------
        id : int or None
            None is the first one from 0x1000 that no item of the group has.
        name, description, shape, dtype, order, format, value
            As in `Item`.

        Returns
        -------
        Item
            The one that the group now has.

        Raises
        ------
        ValueError
            If these do not describe an item. The group has not changed then.
        """
        if id is None:
            id = next(i for i in itertools.count(_FIRST_FREE_ID) if i not in self._by_id)
        item = Item(id, name, description, shape, dtype, order, format, value)
        old = self._by_id.get(item.id)
        if old is not None and _description(old) == _description(item):
            if value is not None:
                old.value = value
            return old
        for clashing in (old, self._by_name.get(name)):
            if clashing is not None:
                # A value that replaces another one is a later version.
                item.version = max(item.version, clashing.version + 1)
                self._remove(clashing)
        self._by_id[item.id] = item
        self._by_name[name] = item
        return item

    def update(self, heap: _ReceivedHeap, new_order: str = "=") -> dict[str, Item]:
        """Take in what a received heap says: descriptors first, then values.

        An item that is described as before stays, and gets the value. One that is described
        differently, or another with its id or name, is replaced. Where a descriptor cannot be
        read, none is taken in; and where a value contradicts its descriptor, no value, but later
        heaps are understood.

        Parameters
        ----------
        heap : spead_tutorial.recv.Heap
            What was received. It, or what its values lie in, is kept for as long as there are
            arrays of it.
        new_order : str
            As for `Item.set_from_raw`.

        Returns
        -------
        dict of str to Item
            Those that got a value, by name, in the order in which they lie in the heap.

        Raises
        ------
        ValueError
            Where a descriptor cannot be read, and nothing is taken in; or a value, or more than
            ``max_elements`` of it would have to be unpacked.

        Notes
        -----
        Values that nothing describes are left out, with a warning. So are descriptors that
        ``left_out`` counts, and all others are taken in. After ten warnings a group only says from
        time to time how many there were.
        """
        check_order(new_order)
        self._describe(heap)
        values, undescribed = [], []
        for raw in heap.get_items():
            item = self._by_id.get(raw.id)
            if item is not None:
                value = item._read(raw, new_order, self.max_elements, self._warn)
                values.append((item, value))
            elif raw.id > STREAM_CTRL_ID:
                undescribed.append(raw.id)
        if undescribed:
            self._warn(
                "item %s has not been described: its value is left out"
                if len(undescribed) == 1
                else "items %s have not been described: their values are left out",
                _some_ids(undescribed),
            )
        for item, value in values:
            item.value = value
        return {item.name: item for item, _ in values}

    def _describe(self, heap: _ReceivedHeap) -> None:
        """Have, besides those that there are, the items that a heap describes, or none of them."""
        descriptors = heap.get_descriptors()
        self.left_out = 0
        if not descriptors:
            return
        left_out: dict[str, tuple[str, list[int]]] = {}  # why, and ids, by the kind of reason
        # What is read is taken in at once. Of a single one, nothing is before that.
        before = None if len(descriptors) == 1 else self._state()
        try:
            for raw in descriptors:
                why = self._add_described(raw, heap.flavour)
                if why:
                    left_out.setdefault(why.partition(":")[0], (why, []))[1].append(raw.id)
        except BaseException:
            if before is not None:
                self._by_id, self._by_name, self._described, self._memory = before
            raise
        for why, ids in left_out.values():
            self.left_out += len(ids)
            self._warn(
                "%d descriptor%s left out, of %s: %s",
                len(ids), " is" if len(ids) == 1 else "s are", _some_ids(ids), why,
            )  # fmt: skip

    def _state(self) -> tuple[dict[int, Item], dict[str, Item], dict[int, int], int]:
        return dict(self._by_id), dict(self._by_name), dict(self._described), self._memory

    def _add_described(self, raw: _AnyRawDescriptor, flavour: _HasBugCompat) -> str:
        """Have the item that is described; return why not, where it is left out."""
        if raw.id <= STREAM_CTRL_ID or not raw.name:
            return "no name, or an id that is the protocol's"
        try:
            new = Descriptor.from_raw(raw, flavour)
        except BeyondLimitError as error:
            return f"beyond a limit: {error!s:.200}"
        old = self._by_id.get(new.id)
        if old is not None and _description(old) == _description(new):
            return ""
        replaced = [item for item in {old, self._by_name.get(new.name)} if item is not None]
        freed = sum(self._described.get(item.id, 0) for item in replaced)
        n_bytes = _memory_of(raw)
        if self._memory - freed + n_bytes > self.max_memory:
            # What they were is no longer true.
            for item in replaced:
                self._remove(item)
            return f"no room in max_memory={self.max_memory} bytes of the group: raise it"
        ItemGroup.add_item(self, new.id, *_description(new))  # whatever a derived class has
        self._described[new.id] = n_bytes
        self._memory += n_bytes
        return ""

    def _remove(self, item: Item) -> None:
        self._by_id.pop(item.id, None)
        self._by_name.pop(item.name, None)
        self._memory -= self._described.pop(item.id, 0)

    def _warn(self, text: str, *about: object) -> None:
        """Log what a sender can have logged without end: ten times, then as often as it doubles."""
        self._n_warnings += 1
        if self._n_warnings > _MOST_WARNINGS:
            if self._n_warnings < self._next_warning:
                return
            self._next_warning = 2 * self._n_warnings
            text += "; so far this group has warned %d times"
            about = *about, self._n_warnings
        _log.warning(text, *about)

    def __getitem__(self, key: int | str) -> Item:
        try:
            return self._by_name[key] if isinstance(key, str) else self._by_id[key]
        except KeyError:
            raise KeyError(self._no_item(key)) from None

    def _no_item(self, key: int | str) -> str:
        """Say that there is no such item, and which there are: their names are a sender's."""
        which = hex(key) if isinstance(key, int) else repr(key)
        first = itertools.islice(self._by_id.values(), _MOST_NAMED)
        there = [f"{shown(item.name, _LONGEST_NAME)} ({item.id:#x})" for item in first]
        if (more := len(self) - len(there)) > 0:
            there.append(f"{more} more")
        return f"there is no item {which}: there are {', '.join(there) or 'none'}"

    def __contains__(self, key: object) -> bool:
        return key in self._by_name or key in self._by_id

    def __len__(self) -> int:
        return len(self._by_id)

    def keys(self) -> KeysView[str]:
        """Return the names, in the order in which the items were added."""
        return self._by_name.keys()

    def ids(self) -> KeysView[int]:
        """Return the ids, in the order in which the items were added."""
        return self._by_id.keys()

    def items(self) -> ItemsView[str, Item]:
        """Return pairs of name and item, in the order in which they were added."""
        return self._by_name.items()

    def values(self) -> ValuesView[Item]:
        """Return the items, in the order in which they were added."""
        return self._by_id.values()

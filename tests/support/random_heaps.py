# SPDX-License-Identifier: BSD-3-Clause
"""Random heaps, described so that every encoder can be given the same one.

A `HeapSpec` can be built for spead2 (the oracle), for spead_tutorial (which is under test) and for
`ref_encode`. The expected bytes of every value are worked out here, bit by bit or by NumPy's
``tobytes``, without any of the three.
"""

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from support import ref_encode

FLAVOURS = (8, 16, 24, 32, 40, 48, 56)
PACKET_SIZES = (56, 57, 64, 72, 80, 104, 128, 200, 576, 1472, 9000)

DTYPES = ("i1", "u1", "<u2", ">u2", "<i4", ">i4", "<u8", ">u8", "<f4", ">f8", "<c8", "?", "S3")

# Fields that a receiver has to take apart bit by bit, and some that it does not.
FORMATS: tuple[tuple[tuple[str, int], ...], ...] = (
    *((("u", bits),) for bits in (1, 3, 7, 8, 12, 16, 24, 32, 40, 48, 56, 64, 72, 100)),
    *((("i", bits),) for bits in (2, 5, 8, 12, 16, 24, 32, 40, 48, 56, 64, 72, 100)),
    (("b", 1),),
    (("b", 8),),
    (("b", 13),),
    (("f", 32),),
    (("f", 64),),
    (("c", 8),),
    (("u", 8), ("i", 16)),
    (("u", 4), ("i", 12)),
    (("u", 3), ("f", 32), ("b", 1), ("c", 8), ("i", 20)),
)


@dataclass(frozen=True, slots=True)
class ItemSpec:
    """An item with a value, and what the value's bytes have to be."""

    id: int
    name: str
    description: str
    shape: tuple[int | None, ...]
    dtype: str | None
    order: str
    format: tuple[tuple[str, int], ...] | None
    value: Any
    data: bytes

    def arguments(self) -> dict[str, Any]:
        """Arguments of the constructor of an Item, in either package."""
        names = ("id", "name", "description", "shape", "dtype", "order", "value")
        format = None if self.format is None else list(self.format)
        return {name: getattr(self, name) for name in names} | {"format": format}

    @property
    def allow_immediate(self) -> bool:
        if None in self.shape:
            return False
        return self.format is None or sum(bits for _, bits in self.format) % 8 == 0

    def raw_descriptor(self, bug_compat: int) -> ref_encode.Descriptor:
        header = b""
        if self.dtype is not None:
            descr = np.dtype(self.dtype).str
            if bug_compat & 4:
                descr = descr.translate(str.maketrans("<>", "><"))
            header = (
                f"{{'descr': {descr!r}, 'fortran_order': {self.order == 'F'}, "
                f"'shape': {self.shape!r}}}"
            ).encode("ascii")
        return ref_encode.Descriptor(
            id=self.id,
            name=self.name.encode("ascii"),
            description=self.description.encode("ascii"),
            numpy_header=header,
            format=self.format or (),
            shape=self.shape,
        )


@dataclass(frozen=True, slots=True)
class Part:
    """One call of the heap's: ``add_item``, ``add_descriptor``, ``add_start`` or ``add_end``."""

    kind: str
    item: ItemSpec | None = None


@dataclass(frozen=True, slots=True)
class HeapSpec:
    """A heap, as neutral as can be."""

    heap_address_bits: int
    bug_compat: int
    repeat_pointers: bool
    parts: tuple[Part, ...]

    def build_spead2(self) -> Any:
        """Build it of spead2's classes, as `spead2.send.Heap`."""
        import spead2
        import spead2.send

        flavour = spead2.Flavour(4, 64, self.heap_address_bits, self.bug_compat)
        return self._build(spead2.send.Heap(flavour), spead2.Item)

    def build_ours(self) -> Any:
        """Build it of our classes, as `spead_tutorial.send.Heap`."""
        import spead_tutorial
        import spead_tutorial.send

        flavour = spead_tutorial.Flavour(4, 64, self.heap_address_bits, self.bug_compat)
        return self._build(spead_tutorial.send.Heap(flavour), spead_tutorial.Item)

    def _build(self, heap: Any, item_class: Any) -> Any:
        heap.repeat_pointers = self.repeat_pointers
        for part in self.parts:
            if part.item is None:
                getattr(heap, part.kind)()
            else:
                getattr(heap, part.kind)(item_class(**part.item.arguments()))
        return heap

    def reference_items(self) -> list[ref_encode.Part]:
        """Return it as `ref_encode` takes it."""
        items: list[ref_encode.Part] = []
        for part in self.parts:
            if part.item is None:
                items.append(ref_encode.Inline(6, {"add_start": 0, "add_end": 2}[part.kind]))
            elif part.kind == "add_descriptor":
                items.append(part.item.raw_descriptor(self.bug_compat))
            else:
                item = part.item
                items.append(ref_encode.Value(item.id, item.data, item.allow_immediate))
        return items

    def encode(self, cnt: int, max_packet_size: int) -> list[bytes]:
        """Encode it by `ref_encode`."""
        return ref_encode.encode_heap(
            self.reference_items(),
            cnt,
            max_packet_size,
            address_bits=self.heap_address_bits,
            bug_compat=self.bug_compat,
            repeat_pointers=self.repeat_pointers,
        )

    def _lengths(self, max_packet_size: int) -> tuple[int, int, int]:
        """Return how many pointers there are, and the payload's length before and after padding."""
        pointers, payload = ref_encode.lay_out(
            self.reference_items(), self.heap_address_bits, self.bug_compat
        )
        n, length = len(pointers), len(payload)
        return n, length, ref_encode.padded_length(n, length, max_packet_size, self.repeat_pointers)

    def fits(self, max_packet_size: int) -> bool:
        """Whether lengths and offsets fit into the flavour's bits at this packet size."""
        return self._lengths(max_packet_size)[2] < 1 << self.heap_address_bits

    def spead2_refuses_pointers_that_fit(self, max_packet_size: int) -> bool:
        """Whether spead2 4.5.1 needlessly keeps room for one more pointer in every packet."""
        n_pointers = self._lengths(max_packet_size)[0]
        return self.repeat_pointers and n_pointers == (max_packet_size - 48) // 8

    def spead2_misplaces_padding(self, max_packet_size: int) -> bool:
        """Whether spead2 4.5.1 puts padding before the last real bytes of this heap."""
        _, length, padded = self._lengths(max_packet_size)
        return padded > length and padded > 8 and length % 8 != 0


def random_heap(rng: random.Random) -> HeapSpec:
    """Make a heap that fits its flavour at each of `PACKET_SIZES`: the same seed, the same heap."""
    address_bits = rng.choice((40, 40, 48, *FLAVOURS))
    bug_compat = rng.choice((0, 0, 0, 1, 2, 3, 4, 7))
    repeat_pointers = rng.random() < 0.25
    n_parts = rng.choice((0, 1, 2, 3, 5, 10, 20, 60))
    if address_bits == 8:
        n_parts = min(n_parts, 8)  # Offsets have only one byte.
    # An id has to fit an item pointer, and an immediate in the descriptor.
    ids = rng.sample(range(0x20, 1 << min(address_bits, 63 - address_bits, 14)), n_parts)
    parts: list[Part] = []
    for id in ids:
        kind = rng.choice(("add_item",) * 6 + ("add_descriptor", "add_start", "add_end"))
        if kind in ("add_start", "add_end"):
            part = Part(kind)
        else:
            part = Part(kind, random_item(rng, id, address_bits, bug_compat))
        spec = HeapSpec(address_bits, bug_compat, repeat_pointers, (*parts, part))
        # Only the smallest flavours can run out of bits here, and looking is slow.
        if address_bits > 16 or all(spec.fits(size) for size in PACKET_SIZES):
            parts.append(part)
    return HeapSpec(address_bits, bug_compat, repeat_pointers, tuple(parts))


def random_item(
    rng: random.Random, id: int, address_bits: int = 40, bug_compat: int = 0
) -> ItemSpec:
    """Make an item with a value, whose descriptor fits the flavour."""
    name = "".join(rng.choices("abcxyz_", k=rng.randrange(8)))
    description = "".join(rng.choices("some words. ", k=rng.randrange(12)))
    if rng.random() < 0.5:
        shape = tuple(rng.choice((0, 1, 2, 3, 4, 8, 30)) for _ in range(rng.choice((0, 1, 1, 2))))
        dtype = rng.choice(DTYPES)
        order = rng.choice("CF")
        array = _random_array(rng, np.dtype(dtype), shape)
        # tobytes gives the elements in either order whatever the array's own is.
        data = array.tobytes(order="F" if order == "F" else "C")
        value: Any = array
        if array.dtype.kind in "uif" and array.size and rng.random() < 0.3:
            value = array.tolist()
        return ItemSpec(id, name, description, shape, dtype, order, None, value, data)

    most_bits = 255 if address_bits == 56 and not bug_compat & 1 else 1 << 20
    format = rng.choice([f for f in FORMATS if all(bits <= most_bits for _, bits in f)])
    sizes: list[int | None] = [rng.choice((0, 1, 2, 3, 5)) for _ in range(rng.choice((0, 0, 1, 2)))]
    actual = [size or 0 for size in sizes]
    if sizes and 0 not in sizes and rng.random() < 0.5:
        varying = rng.randrange(len(sizes))
        sizes[varying] = None
        # Lists cannot say how many columns an array without rows has.
        smallest = 0 if len(sizes) == 1 else 1
        actual[varying] = rng.randrange(smallest, 20)
    elif 0 in actual:
        sizes, actual = [0], [0]
    bits = ""
    elements = []
    for _ in range(int(np.prod(actual))):
        element = []
        for letter, width in format:
            field, encoded = _random_field(rng, letter, width)
            element.append(field)
            bits += encoded
        elements.append(element[0] if len(format) == 1 else tuple(element))
    bits += "0" * (-len(bits) % 8)
    data = int(bits, 2).to_bytes(len(bits) // 8, "big") if bits else b""
    value = _nest(elements, actual)
    if not sizes and format[0][0] == "i" and len(format) == 1 and format[0][1] < 64:
        # Only a NumPy scalar can be negative in spead2 4.5.1 for some of these widths.
        value = np.int64(value)
    return ItemSpec(id, name, description, tuple(sizes), None, "C", format, value, data)


def _random_array(rng: random.Random, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    n_elements = int(np.prod(shape))
    if dtype.kind in "fc":
        numbers = [rng.uniform(-1e6, 1e6) for _ in range(n_elements)]
        return np.array(numbers).astype(dtype).reshape(shape)
    raw = bytearray(rng.randbytes(n_elements * dtype.itemsize))
    if dtype.kind == "b":
        raw = bytearray(byte & 1 for byte in raw)
    return np.frombuffer(raw, dtype).reshape(shape)


def _random_field(rng: random.Random, letter: str, width: int) -> tuple[Any, str]:
    """Return a value and its bits."""
    pattern = rng.choice((0, 1, (1 << width) - 1, 1 << (width - 1), rng.getrandbits(width)))
    if letter == "i":
        bits = f"{pattern:0{width}b}"
        return pattern - (int(bits[0]) << width), bits
    if letter == "u":
        return pattern, f"{pattern:0{width}b}"
    if letter == "b":
        truth = rng.random() < 0.5
        return truth, f"{int(truth):0{width}b}"
    if letter == "f":
        number = rng.uniform(-1e6, 1e6)
        raw = np.array(number, f">f{width // 8}").tobytes()
        return number, f"{int.from_bytes(raw, 'big'):0{width}b}"
    character = rng.choice("abcXYZ09 ")
    return character, f"{ord(character):08b}"


def _nest(elements: list[Any], shape: list[int]) -> Any:
    """Nest a flat list as an array of this shape would be."""
    if not shape:
        return elements[0]
    if len(shape) == 1:
        return elements
    step = len(elements) // shape[0]
    return [_nest(elements[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]

# SPDX-License-Identifier: BSD-3-Clause
"""Fuzz what descriptors make of values: ``fuzz_descriptors.py -max_total_time=30``.

Whatever a descriptor says, there is soon a value, or a ValueError, or it is left out, and the
receiver's lines are of characters that can be seen. A NumPy header that is understood says what
Python and NumPy read in it.

An input is a byte of choices, a NumPy header, or a format, 254 and a shape; 255; and the value.
"""

import ast
import logging
import sys
from types import SimpleNamespace

import atheris
import numpy as np

MODULES = ("_bits", "_numpy_header", "_values", "items", "tools.recv_items")
with atheris.instrument_imports(include=[f"spead_tutorial.{name}" for name in MODULES]):
    import spead_tutorial
    from spead_tutorial.tools.recv_items import Items

LONGEST_S = 10  # for an input
REPEAT = 4096  # of a value that is to be long

logging.disable(logging.WARNING)


class _Value(np.ndarray):
    """A received value; before Python 3.12, only some types have a buffer."""

    id = 0x1000
    is_immediate = False
    immediate_value = 0


def _format(fields: bytes) -> list[tuple[str, int]]:
    return [
        (chr(fields[i]), int.from_bytes(fields[i + 1 : i + 3], "big"))
        for i in range(0, len(fields), 3)
    ]


def _shape(sizes: bytes) -> list[int | None]:
    """Sizes of a byte each: that varies, small ones, and powers of two."""
    return [None if n == 128 else n if n < 128 else 1 << (n - 128) for n in sizes]


def _heap(data: bytes) -> SimpleNamespace:
    choices, (about, _, value) = data[0], data[1:].partition(b"\xff")
    has_header, swap, is_immediate, is_long = (choices >> i & 1 for i in range(4))
    fields, _, sizes = (b"", b"", b"") if has_header else about.partition(b"\xfe")
    descriptor = spead_tutorial.RawDescriptor(
        id=_Value.id,
        name=b"x",
        description=b"",
        numpy_header=about if has_header else b"",
        format=_format(fields),
        shape=_shape(sizes),
    )
    received = np.frombuffer(bytearray(value * (REPEAT if is_long else 1)), np.uint8).view(_Value)
    received.is_immediate = bool(is_immediate)
    return SimpleNamespace(
        cnt=1,
        flavour=spead_tutorial.Flavour(bug_compat=4 * swap),
        get_descriptors=lambda: [descriptor],
        get_items=lambda: [received],
        is_end_of_stream=lambda: False,
    )


def one_input(data: bytes) -> None:
    if not data:
        return
    heap = _heap(data)
    lines = Items()
    shown = [*lines.read_descriptors(heap), *lines.lines(heap)]
    assert all(line.isprintable() for line in shown), shown
    group = spead_tutorial.ItemGroup()
    try:
        group.update(heap)
    except ValueError:
        pass
    else:
        assert group.left_out or group["x"].value is not None
    (raw,) = heap.get_descriptors()
    if raw.numpy_header and "x" in group and not heap.flavour.bug_compat:
        header = ast.literal_eval(raw.numpy_header.decode())
        assert group["x"].dtype == np.lib.format.descr_to_dtype(header["descr"])
        assert group["x"].shape == header["shape"]


atheris.Setup([*sys.argv, f"-timeout={LONGEST_S}"], one_input)
atheris.Fuzz()

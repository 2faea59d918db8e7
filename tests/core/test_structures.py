# SPDX-License-Identifier: BSD-3-Clause
"""Structures with padding arrive as NumPy's own files have them."""

import io

import numpy as np
import pytest

import spead_tutorial
import spead_tutorial.send
from spead_tutorial import recv
from support.raw_heaps import described, update


def laid_out(names, formats, offsets, itemsize, titles=None):
    layout = {"names": names, "formats": formats, "offsets": offsets, "itemsize": itemsize}
    return np.dtype(layout if titles is None else {**layout, "titles": titles})


INNER = np.dtype([("p", "i1"), ("q", ">f8")], align=True)
STRUCTURES = {
    "holes between": np.dtype([("a", "i1"), ("b", "<f8"), ("c", "i1"), ("d", "<u4")], align=True),
    "a hole before": laid_out(["a"], ["<u2"], [6], 8),
    "a hole behind": np.dtype([("a", "<f8"), ("b", "i1")], align=True),
    "holes of any size": laid_out(["a", "b"], ["<u2", ">u4"], [2, 9], 1000),
    "nested": np.dtype([("x", "i1"), ("y", INNER), ("z", "i1")], align=True),
    "nested, several": np.dtype([("x", "i1"), ("y", INNER, (3, 2)), ("z", "i1")], align=True),
    "deep": np.dtype([("a", [("b", [("c", INNER), ("d", "i1")])]), ("e", "<f8")], align=True),
    "arrays": np.dtype([("x", "i1"), ("y", "<f8", (2, 3)), ("z", "S3", (1,))], align=True),
    "titles": laid_out(["a", "b"], ["i1", "<f8"], [0, 8], 24, ["first", None]),
    "dates": np.dtype([("a", "i1"), ("b", "M8[ns]"), ("c", "?")], align=True),
    "raw bytes": np.dtype([("a", "i1"), ("b", "V3"), ("c", "<i4")], align=True),
    "names as of padding": np.dtype([("f1", "i1"), ("f0", "<f8"), ("f2", "i1")], align=True),
    "unicode": np.dtype([("é", "i1"), ("日本", "<f8"), ("\n'\"", "i1")], align=True),
    "unicode titles": laid_out(["a", "b"], ["i1", "<f8"], [0, 8], 16, ["ü", "\U0001f52d"]),
    "no bytes": np.dtype([("a", "S0"), ("b", "<i4"), ("c", "<f8", (0,)), ("d", [])]),
    "no fields": laid_out([], [], [], 4),
    "metadata": np.dtype([("a", np.dtype("i4", metadata={"k": 1})), ("b", "i1")], align=True),
    "no holes": np.dtype([("a", "<u2"), ("b", ">f4", (2,))]),
}


def in_a_file(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=(3, 0))
    file.seek(0)
    return np.lib.format.read_array(file)


def sent(item, flavour):
    """What is received, in the order in which it was sent."""
    heap = spead_tutorial.send.Heap(flavour)
    heap.add_descriptor(item)
    heap.add_item(item)
    packets = spead_tutorial.send.PacketGenerator(heap, 1, 1472)
    config = recv.StreamConfig(bug_compat=flavour.bug_compat)
    group = spead_tutorial.ItemGroup()
    with recv.Stream(None, config) as stream:
        stream.add_buffer_reader(b"".join(packets))
        group.update(stream.get(), new_order="|")
    return group[item.id]


@pytest.mark.filterwarnings("ignore:metadata on a dtype")
@pytest.mark.parametrize("bug_compat", [0, 4], ids=["", "swapped"])
@pytest.mark.parametrize("kind", STRUCTURES)
def test_a_structure_has_the_type_that_it_has_in_a_file_of_numpys(kind, bug_compat):
    dtype = STRUCTURES[kind]
    raw = bytes(65 + i % 50 for i in range(3 * dtype.itemsize))
    array = np.frombuffer(raw, np.uint8).copy().view(dtype).reshape(3)
    flavour = spead_tutorial.Flavour(bug_compat=bug_compat)
    item = spead_tutorial.Item(0x1000, "x", "", (3,), dtype, value=array)
    received = sent(item, flavour)
    assert received.dtype == received.value.dtype == in_a_file(array).dtype == dtype
    assert received.value.tobytes() == raw  # with what is in the holes
    # A value of it is of that type, too, so that it is sent on in place.
    assert np.shares_memory(received.to_buffer(), received.value)
    again = sent(received, flavour)
    assert (again.dtype, again.value.tobytes()) == (dtype, raw)


def test_holes_of_a_structure_that_is_converted_are_zeros():
    dtype = STRUCTURES["holes between"]
    item = spead_tutorial.Item(0x1000, "x", "", (1,), dtype, value=[(-1, -1.0, -1, 2**32 - 1)])
    starts = {dtype.fields[name][1]: dtype[name].itemsize for name in dtype.names}
    used = {start + i for start, size in starts.items() for i in range(size)}
    data = memoryview(item.to_buffer()).tobytes()
    assert {i for i, byte in enumerate(data) if byte} <= used
    assert len(used) < len(data)


@pytest.mark.parametrize(
    ("dtype", "words"),
    [
        (laid_out(["a", "b"], ["<u4", "<u2"], [0, 2], 4), "overlap"),
        (laid_out(["a", "b"], ["<u4", "<u2"], [0, 0], 4), "overlap"),
        (laid_out(["a", "b"], ["<u4", "<u2"], [4, 0], 8), "not in the order"),
        (np.dtype([("n", laid_out(["a", "b"], ["<u4", "<u2"], [0, 2], 4), (2,))]), "overlap"),
        (laid_out(["", "b"], ["V3", "i1"], [0, 3], 4), "would take"),
        (laid_out(["a"], ["i1"], [0], 1, [5]), "no receiver would understand"),
        (np.dtype([("\ud800", "i1")]), "no receiver would understand"),
        (np.dtype([(f"n{i}", "i1") for i in range(4097)]), "65536 are the most"),
    ],
)
def test_a_structure_that_would_not_arrive_as_it_is_cannot_be_described(dtype, words):
    descriptor = spead_tutorial.Descriptor(0x1000, "x", "", (), dtype)
    with pytest.raises(ValueError, match=words) as error:
        descriptor.to_raw(spead_tutorial.Flavour())
    assert str(error.value).startswith("item 'x' (0x1000): ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "descr",
    [
        b"[('', 'V4'), ('', 'V4')]",
        b"[('a', 'S0', (2,)), ('b', 'i1')]",
        b"[('a', 'i1', (4097, 0)), ('b', 'i1')]",
        b"[('a', [('b', 'i1', (0,))], (2,)), ('c', 'i1')]",
        b"[('a', 'i1', (%b 0)), ('b', 'i1')]" % (b"999999999999999999, " * 31),
        b"[('', 'i1'), ('', 'i1')]",
    ],
)
def test_padding_and_fields_without_bytes_are_bounded(descr):
    header = b"{'descr': %b, 'fortran_order': False, 'shape': ()}" % descr
    if descr.startswith(b"[('', 'V4')"):
        assert update(described(numpy_header=header, format=[]), b"abcdefgh").dtype.names == ()
        return
    with pytest.raises(ValueError, match="cannot be read"):
        update(described(numpy_header=header, format=[]), b"abcd")

# SPDX-License-Identifier: BSD-3-Clause
"""Elements of packed fields: what they are, and how much memory they take."""

import random
import tracemalloc

import hypothesis.strategies as st
import numpy as np
import pytest
import spead2
from hypothesis import HealthCheck, assume, given, settings

import spead_tutorial
import spead_tutorial.send
from support.random_heaps import random_item
from support.raw_heaps import described, heap_of, update, value
from support.ref_decode import decode_elements

UNTIMED = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
HEAP = 1 << 21  # bytes of a value
MOST = 10 * HEAP  # bytes of memory for it

WIDTHS = st.integers(1, 64)
FIELDS = st.one_of(
    st.tuples(st.sampled_from("uib"), WIDTHS),
    st.tuples(st.sampled_from("uib"), st.integers(65, 130)),
    st.tuples(st.sampled_from("ui"), WIDTHS.map(lambda n: (n + 7) // 8 * 8)),
    st.sampled_from([("f", 32), ("f", 64), ("c", 8)]),
)
FORMATS = st.one_of(
    st.lists(FIELDS, min_size=1, max_size=6),
    st.builds(lambda field, n: [field] * n, FIELDS, st.integers(2, 20)),
)


def random_bytes(n_bytes):
    return random.Random(n_bytes).randbytes(n_bytes)


def kind_of(letter, bits):
    """The smallest type that holds a field."""
    if letter in "fc":
        return np.dtype("S1" if letter == "c" else f"f{bits // 8}")
    if letter == "b":
        return np.dtype(bool)
    fitting = (size for size in (1, 2, 4, 8) if bits <= 8 * size)
    return np.dtype(next((f"{letter}{size}" for size in fitting), object))


def kinds_of(format):
    kinds = [kind_of(*field) for field in format]
    if len(format) == 1:
        return kinds[0]
    return np.dtype([(f"f{i}", kind) for i, kind in enumerate(kinds)])


@st.composite
def packed(draw):
    """A format, how many elements there are in bytes that it did not make, and those."""
    format = draw(FORMATS)
    count = draw(st.integers(0, 40))
    n_bytes = (count * bits_of(format) + 7) // 8
    return format, count, draw(st.binary(min_size=n_bytes, max_size=n_bytes))


def bits_of(format):
    return sum(bits for _, bits in format)


def listed(array):
    """Elements as text, as NaN is not itself."""
    return repr(array.tolist())


def expected_list(data, format, count):
    elements = decode_elements(data, format, count)
    # NumPy takes a NUL at the end of a text for none.
    return repr(elements).replace(r"b'\x00'", "b''")


@UNTIMED
@given(packed(), st.integers(1, 3), st.sampled_from("=<>|"))
def test_fields_of_any_width_have_the_values_of_a_slow_decoder(of, columns, order):
    format, count, data = of
    # What is left behind the last whole element is none of it.
    rows = 8 * len(data) // (columns * bits_of(format))
    descriptor = described(format=format, shape=[None, columns])
    array = update(descriptor, data, new_order=order)
    assert array.shape == (rows, columns)
    assert listed(array.ravel()) == expected_list(data, format, rows * columns)
    assert array.dtype == kinds_of(format).newbyteorder(">" if order == "|" else order)
    assert array.flags.writeable
    # Where the shape is fixed, it says how many there are; an immediate has bytes before them.
    fixed = described(format=format, shape=[count])
    if format != [("c", 8)]:
        expected = expected_list(data, format, count)
        assert listed(update(fixed, data)) == expected
        assert listed(update(fixed, b"\xff" + data, immediate=True)) == expected


@UNTIMED
@given(st.data(), st.sampled_from("uib"), st.integers(1, 130))
def test_a_single_number_is_one_of_pythons_where_numpy_has_none_of_its_width(data, letter, bits):
    assume(bits not in ((8,) if letter == "b" else (8, 16, 32, 64)))
    n_bytes = (bits + 7) // 8
    raw = data.draw(st.binary(min_size=n_bytes, max_size=n_bytes))
    number = update(described(format=[(letter, bits)], shape=[]), raw)
    assert [number] == decode_elements(raw, [(letter, bits)], 1)
    assert type(number) is (bool if letter == "b" else int)


@UNTIMED
@given(packed())
def test_what_was_unpacked_is_packed_into_the_same_bytes(of):
    format, count, data = of
    # Not all bytes are those of a boolean, and some that are no number become others.
    format = [("u" if letter in "bf" else letter, bits) for letter, bits in format]
    if format == [("c", 8)]:
        return
    array = update(described(format=format, shape=[count]), data)
    n_bits = count * bits_of(format)
    padding = -n_bits % 8
    expected = (int.from_bytes(data, "big") >> padding << padding).to_bytes(len(data), "big")
    for given_as in (array, array.tolist()):
        item = spead_tutorial.Item(0x1000, "x", "", (count,), format=format, value=given_as)
        assert bytes(item.to_buffer()) == expected


def test_random_values_compare_equal_with_those_that_spead2_finds():
    compared = 0
    for seed in range(400):
        item = random_item(random.Random(seed), 0x1000)
        if item.format is None:
            continue
        descriptor = described(format=list(item.format), shape=list(item.shape))
        ours, theirs = (
            update(descriptor, item.data, library=library) for library in (spead_tutorial, spead2)
        )
        assert np.array_equal(ours, theirs), seed
        assert np.asarray(ours).tolist() == np.asarray(theirs).tolist(), seed
        compared += np.asarray(theirs).dtype.hasobject
    assert compared > 50


# ---- Memory ----

FEW_FIELDS = [
    *([(letter, bits)] for letter, bits in (("u", 1), ("i", 1), ("b", 1), ("u", 2), ("i", 3))),
    *([(letter, bits)] for letter, bits in (("u", 9), ("i", 12), ("u", 24), ("u", 33), ("u", 48))),
    *([(letter, bits)] for letter, bits in (("u", 65), ("i", 72), ("b", 100), ("u", 4 * HEAP + 3))),
    [("f", 32), ("u", 4)],
    [("u", 24), ("c", 8)],
    [("u", 1), ("u", 65)],
]
MANY_FIELDS = [
    [("u", 1)] * 4096,
    [("u", 1), ("b", 1)] * 2048,
    [("ui"[i // 64 % 2], 1 + i % 64) for i in range(4096)],
    [*[("u", 1)] * 4095, ("u", 65)],
    [("u", 65)] * 4096,
]


def named(format):
    return f"{''.join(map(str, format[-1]))}x{len(format)}"


def peak_of(call):
    """Most bytes of memory that are in use during a call, which are not when it begins."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        result = call()
        return tracemalloc.get_traced_memory()[1] - before, result
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("format", [*FEW_FIELDS, *MANY_FIELDS], ids=named)
def test_what_is_unpacked_takes_no_more_than_ten_times_its_bytes(format):
    descriptor = described(format=format)
    values = [value(random_bytes(HEAP))]
    peak, _ = peak_of(lambda: spead_tutorial.ItemGroup().update(heap_of([descriptor], values)))
    assert peak < MOST


@pytest.mark.parametrize("format", FEW_FIELDS, ids=named)
def test_an_array_is_packed_in_no_more_than_ten_times_the_memory_of_its_bytes(format):
    array = update(described(format=format), random_bytes(HEAP))
    item = spead_tutorial.Item(0x1000, "x", "", (None,), format=format, value=array)
    peak, buffer = peak_of(item.to_buffer)
    assert memoryview(buffer).nbytes == (array.size * bits_of(format) + 7) // 8
    assert peak < MOST


def test_structures_of_another_byte_order_are_converted_without_an_object_for_each_number():
    value = np.zeros(HEAP // 8, [("a", "<u2"), ("b", "<i2"), ("c", "<f4")])
    dtype = [("a", ">u2"), ("b", ">i2"), ("c", ">f4")]
    peak, _ = peak_of(
        spead_tutorial.Item(0x1000, "x", "", value.shape, dtype, value=value).to_buffer
    )
    assert peak < MOST


def test_more_elements_than_a_group_allows_are_refused_and_those_that_are_memory_are_not():
    group = spead_tutorial.ItemGroup(max_elements=16)
    pairs = described(format=[("u", 1), ("u", 3)])
    group.update(heap_of([pairs], [value(b"abcd")]))
    assert group["x"].value.shape == (8,)
    with pytest.raises(ValueError, match=r"'x' \(0x1000\): 20 fields .* 16 are the most.*max_elem"):
        group.update(heap_of([], [value(b"abcde")]))
    assert group["x"].value.shape == (8,)
    group.max_elements = 20
    group.update(heap_of([], [value(b"abcde")]))
    assert group["x"].value.shape == (10,)
    group.update(heap_of([described()], [value(b"a" * 100)]))
    assert group["x"].value.shape == (100,)
    raw = value(b"ab")
    item = spead_tutorial.Item(0x1000, "x", "", (None,), format=[("u", 1)])
    with pytest.raises(ValueError, match=r"16 fields .* 15 are the most"):
        item.set_from_raw(raw, max_elements=15)
    item.set_from_raw(raw)
    assert item.value.shape == (16,)


def test_a_group_that_sends_has_the_same_limit_and_a_strange_one_is_refused():
    assert spead_tutorial.send.ItemGroup(max_elements=5).max_elements == 5
    assert spead_tutorial.send.ItemGroup(max_memory=5).max_memory == 5
    assert spead_tutorial.send.ItemGroup().max_elements == spead_tutorial.ItemGroup().max_elements
    for strange in (-1, 1.5, "1"):
        with pytest.raises(TypeError, match="max_elements"):
            spead_tutorial.ItemGroup(max_elements=strange)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": [("u", 1)], "shape": [-1]}, "not negative"),
        ({"format": [("u", 1)], "shape": [-1, None]}, "not negative"),
        ({"format": [("u", 1)], "shape": [None, None]}, "only one dimension can vary"),
        ({"format": [("u", 1)], "shape": [1 << 62]}, "takes .* and 3 arrived"),
        ({"format": [("u", 1)], "shape": [25]}, "takes 4 bytes, and 3 arrived"),
        ({"format": [("b", 2**33)], "shape": []}, "takes 1073741824 bytes, and 3 arrived"),
    ],
)
def test_what_cannot_be_unpacked_is_refused_and_takes_no_memory(changes, words):
    def refused():
        with pytest.raises(ValueError, match=words):
            update(described(**changes), b"abc")

    peak, _ = peak_of(refused)
    assert peak < HEAP


@pytest.mark.parametrize("shape", [[0], [0, 5], [None, 0], [0, None], [0, 0, 1 << 20]])
def test_a_shape_with_a_zero_has_no_elements(shape):
    array = update(described(format=[("u", 1)], shape=shape), b"abc")
    assert array.shape == tuple(size or 0 for size in shape)
    assert array.dtype == np.uint8

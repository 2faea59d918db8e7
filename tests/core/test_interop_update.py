# SPDX-License-Identifier: BSD-3-Clause
"""Heaps that spead2 has received, taken in by our item groups, beside what spead2's say."""

import logging
import random
from typing import Any

import numpy as np
import pytest
import spead2.recv

import spead_tutorial
from spead_tutorial import RawDescriptor
from support.heaps import same
from support.random_heaps import random_heap
from support.raw_heaps import DEFAULT, described, heap_of, update, value


def received(packets: list[bytes], bug_compat: int = 0) -> Any:
    """Return the one heap that these packets are, as spead2 receives it."""
    config = spead2.recv.StreamConfig(bug_compat=bug_compat, stop_on_stop_item=False)
    stream = spead2.recv.Stream(spead2.ThreadPool(), config)
    stream.add_buffer_reader(b"".join(packets))
    (heap,) = stream
    return heap


@pytest.mark.parametrize(
    "block", [0, *(pytest.param(n, marks=pytest.mark.thorough) for n in range(1, 6))]
)
def test_values_and_descriptors_of_random_heaps_are_those_that_spead2_finds(block):
    compared = 0
    for seed in range(100 * block, 100 * block + 100):
        spec = random_heap(random.Random(seed))
        heap = received(spec.encode(1, 9000), spec.bug_compat)
        theirs, ours = spead2.ItemGroup(), spead_tutorial.ItemGroup()
        try:
            expected = theirs.update(heap)
        except Exception:  # bits that it cannot take apart
            continue
        # Items without a name are none to us, and cannot be told from each other by spead2.
        assert list(ours.update(heap)) == [name for name in expected if name], seed
        for name, item in theirs.items():
            if not name:
                continue
            mine = ours[name]
            for field in ("id", "description", "dtype", "format"):
                assert getattr(mine, field) == getattr(item, field), (seed, name)
            assert mine.shape == tuple(item.shape), (seed, name)
            assert same(mine.value, item.value), (seed, name, mine.value, item.value)
            compared += 1
    assert compared > 20


NUMPY = b"{'descr': '>i2', 'fortran_order': False, 'shape': (2,)}"


def test_a_value_is_the_memory_it_was_received_in_unless_its_order_changes():
    raw = value(b"\x00\x01\x00\x02")
    group = spead_tutorial.ItemGroup()
    group.update(heap_of([described(numpy_header=NUMPY)], [raw]), new_order="|")
    kept = group["x"].value
    assert kept.dtype == ">i2"
    assert np.shares_memory(kept, raw)
    kept[0] = 7
    assert raw[1] == 7
    group.update(heap_of([], [raw]))
    assert group["x"].value.dtype == "=i2"
    assert group["x"].value.tolist() == [7, 2]
    assert not np.shares_memory(group["x"].value, raw)


def test_an_order_that_there_is_not_is_refused_before_anything_is_taken_in():
    group = spead_tutorial.ItemGroup()
    with pytest.raises(ValueError, match="new_order is 'x'"):
        group.update(heap_of([described()], []), new_order="x")
    assert len(group) == 0


def test_bytes_that_are_too_few_are_refused_and_no_value_changes_but_items_are_described():
    group = spead_tutorial.ItemGroup()
    group.update(heap_of([described()], [value(b"abc")]))
    before, version = group["x"].value, group["x"].version
    strange = described(id=0x1001, name=b"y", numpy_header=NUMPY)
    with pytest.raises(ValueError, match=r"'y' \(0x1001\).*takes 4 bytes, and 3 arrived"):
        group.update(heap_of([strange], [value(b"new"), value(b"abc", 0x1001)]))
    assert group["x"].value is before
    assert group["x"].version == version
    assert group["y"].value is None
    group.update(heap_of([], [value(b"abcd", 0x1001)]))
    assert group["y"].value.tolist() == [0x6162, 0x6364]


def test_where_a_descriptor_cannot_be_read_the_group_stays_as_it_was():
    group = spead_tutorial.ItemGroup()
    group.update(heap_of([described()], [value(b"abc")]))
    before = group["x"].value
    good, bad = described(id=0x1001, name=b"y"), described(id=0x1002, name=b"z", format=[("q", 8)])
    with pytest.raises(ValueError, match="'z'"):
        group.update(heap_of([good, bad], [value(b"new")]))
    assert list(group.keys()) == ["x"]
    assert group["x"].value is before


def test_bytes_that_are_too_many_are_left_out_and_said(caplog):
    with caplog.at_level(logging.WARNING):
        array = update(described(numpy_header=NUMPY), b"\0\1\0\2\0\3")
    assert array.tolist() == [1, 2]
    assert "2 bytes are more than its shape takes" in caplog.text


@pytest.mark.parametrize(
    ("described_as", "data", "dtype", "expected"),
    [
        # What has arrived of a dimension that varies, but for a rest.
        (
            {"format": [("u", 16)], "shape": [None, 2]},
            bytes(range(10)),
            "u2",
            [[1, 515], [1029, 1543]],
        ),
        # Fields that NumPy has a type for, beside those that it has none for.
        (
            {"format": [("u", 4), ("i", 16), ("c", 8), ("u", 4)]},
            b"\x1f\xff\xe4\x12",
            [("f0", "u1"), ("f1", "i2"), ("f2", "S1"), ("f3", "u1")],
            [(1, -2, b"A", 2)],
        ),
        ({}, b"", "u1", []),
    ],
)
def test_bytes_are_taken_apart_as_they_are_described(described_as, data, dtype, expected):
    array = update(described(**described_as), data)
    assert (array.dtype, array.tolist()) == (dtype, expected)


def test_of_an_immediate_the_last_bytes_count():
    data = b"\xff\xff\xff\x01\x02"
    assert update(described(format=[("u", 16)], shape=[]), data, immediate=True) == 0x102
    assert update(described(format=[("u", 24)], shape=[]), data, immediate=True) == 0xFF0102


def test_one_dimension_of_characters_is_text_and_has_to_be_ascii():
    text = described(format=[("c", 8)])
    assert update(text, b"telescope") == update(text, b"telescope\0\0") == "telescope"
    assert update(text, b"") == ""
    with pytest.raises(UnicodeDecodeError):
        update(text, b"\xff")
    header = b"{'descr': '<U1', 'fortran_order': False, 'shape': ()}"
    with pytest.raises(ValueError, match="'x'"):
        update(described(numpy_header=header), b"\xff" * 4)


@pytest.mark.parametrize(
    ("descriptor", "words"),
    [
        ([], "0x1000 has not been described"),
        ([described(name=b"")], "is left out"),
        ([described(id=6)], "is left out"),
    ],
)
def test_values_and_descriptors_of_nothing_are_left_out_and_said(descriptor, words, caplog):
    group = spead_tutorial.ItemGroup()
    with caplog.at_level(logging.WARNING):
        assert group.update(heap_of(descriptor, [] if descriptor else [value(b"abc")])) == {}
    assert len(group) == 0
    assert words in caplog.text
    group.update(heap_of([described(id=7)], []))
    assert 7 in group


@pytest.mark.parametrize("what", ["values", "descriptors", "surplus"])
def test_what_strangers_have_logged_is_ten_warnings_and_then_how_many_there_were(what, caplog):
    heaps = {
        "values": lambda n: heap_of([], [value(b"a", 0x1000 + n)]),
        "descriptors": lambda n: heap_of([described(name=b"")], []),
        "surplus": lambda n: heap_of([described(name=b"%d" % n, shape=[])], [value(b"ab")]),
    }
    group = spead_tutorial.ItemGroup()
    with caplog.at_level(logging.WARNING):
        for n in range(5000):
            group.update(heaps[what](n))
    *first, last = caplog.messages
    assert len(first) < 20
    assert last.endswith("; so far this group has warned 2816 times")
    other = spead_tutorial.ItemGroup()
    other.update(heaps[what](0))
    assert caplog.messages[-1] == first[0]


def test_an_item_that_is_described_as_before_stays_and_another_replaces_it():
    group = spead_tutorial.ItemGroup()
    group.update(heap_of([described()], [value(b"a")]))
    first, version = group["x"], group["x"].version
    assert group.update(heap_of([described()], [value(b"b")])) == {"x": first}
    assert group["x"] is first
    assert first.version > version
    group.update(heap_of([described(id=0x1001)], [value(b"c", 0x1001)]))
    assert 0x1000 not in group
    assert group["x"] is group[0x1001]
    assert group["x"].version > first.version


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"\xff",
        b"__import__('os').system('false')",
        b"{'descr': '>i2', 'fortran_order': False}",
        b"{'descr': '>i2', 'fortran_order': 0, 'shape': ()}",
        b"{'descr': '>i2', 'fortran_order': False, 'shape': (-1,)}",
        b"{'descr': '>i2', 'fortran_order': False, 'shape': [1]}",
        b"{'descr': 'O', 'fortran_order': False, 'shape': ()}",
        b"{'descr': ['x', 1], 'fortran_order': False, 'shape': ()}",
        b"{'descr': '>i2', 'fortran_order': False, 'shape': ()} 0",
        b"{'descr': '>i2', 'descr': '>i2', 'shape': ()}",
        b"{'descr': '\\d', 'fortran_order': False, 'shape': ()}",
        b"(" * 500,
        b"""{"descr": '''a',1''', "shape": %b1}#'""" % (b"-" * 20000),  # code behind a text
        *(
            b"{'descr': %b, 'fortran_order': False, 'shape': ()}" % descr
            for descr in (
                *rb"None 'M8[D/0]' 'm8[0s]' 'M8[9999999999s]' 'i4,i4' '2i4' 'float64' 'i3'".split(),
                *rb"'S0' 'U536870912' [] [('\ud800','i1')] [('a','i1',1)]".split(),
                *rb"[('a','i1'),('a','i1')] [('a','i1',(0,))] [('a','i1',1,2)]".split(),
                *rb"{'names':['a'],'formats':['i1']} [('a','V1024',(1024,1025))]".split(),
                b"[('a', 'i1', (%b))]" % (b"1, " * 33),
            )
        ),
        *(
            b"{'descr': '>i2', 'fortran_order': False, 'shape': (%b)}" % shape
            for shape in (b"True,", b"1", b"9" * 400 + b",", b"9" * 18 + b",")
        ),
    ],
    ids=lambda header: repr(header[:40]),
)
def test_a_numpy_header_that_is_none_is_refused(header):
    words = "cannot be read|too large" if header else "the format has no fields"
    with pytest.raises(ValueError, match=words):
        spead_tutorial.Descriptor.from_raw(described(numpy_header=header, format=[]), DEFAULT)


@pytest.mark.parametrize(
    "dtype",
    [
        *("?", "i1", "<u2", ">i4", "<f2", ">f8", "longdouble", "<c8", "clongdouble"),
        *("S3", ">U2", "V5", "M8", "<M8[ns]", ">m8[25s]"),
        [("a", ">i4"), ("b", "<f8", (2, 3))],
        [("a", ">i4", (2, 3)), ("b", [("c", ">f2", (2,))])],
        [("a", [("b", "u1"), ("c", "S4", (2,))], (3,)), ("d", "<M8[us]")],
        [(("title", "name"), "<i4")],
        [("'\"\\\n\x1b\u200b\U000e0001", "i1")],
    ],
    ids=str,
)
def test_a_header_of_every_type_that_numpy_writes_is_read_as_spead2_reads_it(dtype):
    data = bytes(range(48, 112))[: np.dtype(dtype).itemsize]
    raw = spead_tutorial.Descriptor(0x1000, "x", "", (1,), dtype).to_raw(DEFAULT)
    theirs = spead2.ItemGroup()
    theirs.update(heap_of([raw], [value(data)]))
    ours = update(raw, data)
    assert ours.dtype.descr == theirs["x"].value.dtype.descr
    assert ours.tobytes() == theirs["x"].value.tobytes()


BEYOND = [
    {"format": [("u", 8)] * 4097},
    {"format": [("u", 2**32)] * 4},
    {"shape": [1] * 33},
    {"shape": [0, 2**40, 2**40]},
    {"name": b"x" * 65537},
    {"description": b"x" * 65537},
    {"numpy_header": b" " * 65536 + NUMPY},
    {"numpy_header": NUMPY.replace(b"2,", b"1, " * 33)},
    {"numpy_header": NUMPY.replace(b">i2", b"V2147483648")},
    {"numpy_header": NUMPY.replace(b"'>i2'", b"[%b]" % b", ".join([b"('', 'b1')"] * 4097))},
    {"numpy_header": NUMPY.replace(b"'>i2'", b"[('a', " * 9 + b"'i1'" + b")]" * 9)},
]


@pytest.mark.parametrize("wrong", BEYOND, ids=list)
def test_what_is_beyond_a_limit_is_left_out_and_said_and_the_rest_is_taken_in(wrong, caplog):
    bad, good = described(**wrong), described(id=0x1001, name=b"y")
    with pytest.raises(ValueError, match=r"more than|too large|are the most|deep"):
        spead_tutorial.Descriptor.from_raw(bad, DEFAULT)
    group = spead_tutorial.ItemGroup()
    with caplog.at_level(logging.WARNING):
        group.update(heap_of([bad, good, bad], [value(b"abc", 0x1001)]))
    assert (list(group.keys()), group.left_out) == (["y"], 2)
    assert group["y"].value.tolist() == [*b"abc"]
    assert "2 descriptors are left out, of 0x1000, 0x1000: beyond a limit: " in caplog.text
    group.update(heap_of([good], []))
    assert group.left_out == 0


# ---- Many items ----


def many(n: int, first: int = 0x1000) -> list[RawDescriptor]:
    return [described(id=first + i, name=b"item %d" % (first + i)) for i in range(n)]


def test_tens_of_thousands_of_items_are_taken_in():
    group, n = spead_tutorial.ItemGroup(), 20000
    values = [value(b"abc", 0x1000 + i) for i in range(n)]
    for _ in range(2):
        assert len(group.update(heap_of(many(n), values))) == n
        assert (len(group), group.left_out) == (n, 0)
    assert group["item 5096"] is group[0x1000 + 1000]


def test_of_more_items_than_there_is_memory_for_those_that_fit_are_taken_in(caplog):
    group = spead_tutorial.ItemGroup(max_memory=1 << 16)
    values = [value(b"abc", 0x1000 + i) for i in range(100)]
    with caplog.at_level(logging.WARNING):
        updated = group.update(heap_of(many(100), values))
    assert len(updated) == len(group) == 100 - group.left_out
    assert 20 < len(group) < 64
    assert f"{group.left_out} descriptors are left out, of " in caplog.text
    assert "no room in max_memory=65536 bytes of the group" in caplog.text
    assert "more have not been described: their values are left out" in caplog.text
    assert len(caplog.records) == 2
    kept = list(group.values())
    group.update(heap_of(many(100), []))
    assert list(group.values()) == kept  # those that there are, are the same
    group.max_memory = group.DEFAULT_MAX_MEMORY
    group.update(heap_of(many(100), []))
    assert (len(group), group.left_out) == (100, 0)


def test_what_is_described_again_takes_the_room_of_what_was_described_before():
    group = spead_tutorial.ItemGroup(max_memory=2048)
    group.add_item(0x9000, "of one's own", "", (1000,), np.int8)  # which is not counted
    for i in range(100):
        group.update(heap_of([described(id=0x1000 + i % 2, shape=[i])], []))
        assert (group["x"].shape, group.left_out, len(group)) == ((i,), 0, 2)
    group.update(heap_of([described(description=b"long" * 1000)], []))
    assert group.left_out == 1
    assert "x" not in group  # what it was is no longer true
    group.update(heap_of([described()], []))
    assert "x" in group


def test_where_one_of_many_cannot_be_read_the_group_counts_as_before():
    group = spead_tutorial.ItemGroup(max_memory=1 << 16)
    bad = described(id=0x2000, name=b"z", format=[("q", 8)])
    for _ in range(10):
        with pytest.raises(ValueError, match="'z'"):
            group.update(heap_of([*many(20), bad], []))
    assert len(group) == 0
    group.update(heap_of(many(20), []))
    assert (len(group), group.left_out) == (20, 0)


def test_texts_of_a_descriptor_may_be_as_long_as_the_limit():
    assert update(described(description=b"x" * 65536), b"abc").tolist() == [*b"abc"]

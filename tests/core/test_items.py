# SPDX-License-Identifier: BSD-3-Clause
"""Items, their descriptors, and groups of them."""

import fractions
import random
import sys

import numpy as np
import pytest
import spead2

from spead_tutorial.flavour import Flavour
from spead_tutorial.items import Descriptor, Item, ItemGroup
from spead_tutorial.send import Heap, PacketGenerator
from support.random_heaps import DTYPES, FORMATS, random_item


def raw(item):
    return memoryview(item.to_buffer()).tobytes()


def kind_of(kind):
    """How an item is made of a format (a tuple), of a dtype, or of both arguments."""
    if isinstance(kind, dict):
        return kind
    return {"format": list(kind)} if isinstance(kind, tuple) else {"dtype": kind}


def make(shape=(), *, dtype=None, format=None, order="C", value=None, cls=Item):
    return cls(0x1234, "thing", "of some kind", shape, dtype, order, format, value=value)


def packets_of(item, flavour):
    heap = Heap(flavour)
    heap.add_descriptor(item)
    heap.add_item(item)
    return list(PacketGenerator(heap, 5, 200))


def raw_fields(descriptor):
    names = ("id", "name", "description", "numpy_header", "format", "shape")
    return [getattr(descriptor, name) for name in names]


@pytest.mark.parametrize(
    "block", [0, *(pytest.param(n, marks=pytest.mark.thorough) for n in (1, 2, 3))]
)
def test_random_items_have_the_bytes_that_they_should_have_and_are_as_in_spead2(block):
    dtypes, formats = set(), set()
    for seed in range(500 * block, 500 * block + 500):
        item = random_item(random.Random(seed), 0x1000)
        ours, theirs = (cls(**item.arguments()) for cls in (Item, spead2.Item))
        assert raw(ours) == raw(theirs) == item.data, seed
        dtypes.add(item.dtype)
        formats.add(item.format)
        described = ours.to_raw(Flavour(4, 64, 48, seed % 8))
        assert raw_fields(described) == raw_fields(
            theirs.to_raw(spead2.Flavour(4, 64, 48, seed % 8))
        )
        for name in ("itemsize_bits", "is_variable_size", "allow_immediate"):
            one, other = (getattr(item, name) for item in (ours, theirs))
            assert one == other if name == "itemsize_bits" else one() == other()
        # A heap takes an item of spead2's, and a flavour, as our own.
        assert packets_of(theirs, spead2.Flavour(4, 64, 48)) == packets_of(ours, Flavour(4, 64, 48))
        for n in (0, 1, 7, 100):
            assert ours.dynamic_shape(n) == theirs.dynamic_shape(n)
        for shape in ((), (2,), (3,), (0, 2), (2, 3), [2, 3]):
            assert ours.compatible_shape(shape) == theirs.compatible_shape(shape)
    assert (dtypes, formats) == ({*DTYPES, None}, {*FORMATS, None})


# Bytes of values


STRUCTURE = np.dtype([("a", "<u2"), ("b", ">f4"), ("c", "i1", (2,)), ("d", [("e", "S2")])])

SAME_AS_SPEAD2 = [
    ((), "u1", np.uint8(5), np.array(5), True, "12"),
    ((), "f4", 5, float("inf"), float("nan")),
    ((), "f8", "2.5"),
    ((), "?", True, 1, 0.0, np.bool_(1)),
    ((), "c8", 1 + 2j),
    ((), "S5", "hey"),
    ((), "U3", "abc"),
    ((3,), "S1", "abc"),
    ((3,), "U1", "abc", list("abc")),
    ((2,), "u1", (1, 2), [1.0, 2]),
    ((2,), "<u8", [2**64 - 1, 1]),
    ((2,), ">u8", [fractions.Fraction(6, 2), np.int8(1)]),
    ((3,), "u1", bytearray(b"abc"), np.arange(6, dtype="u1")[::2]),
    ((2, 3), ">u4", np.asfortranarray(np.arange(6, dtype="<u4").reshape(2, 3))),
    ((2, 3, 4), {"dtype": "u1", "order": "F"}, np.arange(24, dtype="u1").reshape(2, 3, 4)),
    ((0,), "u1", []),
    ((2,), [("a", "<u2"), ("b", ">f4")], [(1, 2), (3, 4)]),
    ((), STRUCTURE, (1, 2.5, [3, 4], ("xy",))),
    ((2,), STRUCTURE, np.zeros(2, STRUCTURE)),
    ((), (("u", 40),), 2**40 - 1, 5.0, "5", np.uint64(5)),
    ((), (("u", 24),), np.array(5)),
    ((), (("i", 40),), np.int64(-5), np.array(-5, ">i8"), np.array(-5).astype(">u8")),
    ((3,), (("b", 1),), [1, 0, True]),
    ((2, 2), (("u", 24),), np.asfortranarray([[1, 2], [3, 4]])),
    ((2,), (("f", 32), ("u", 4)), np.array([(1, 2), (3, 4)], "f4,u1")),
    ((), (("f", 32), ("u", 4)), np.array((1, 2), "f8,i8")[()]),
    ((), (("u", 4), ("c", 8)), (1, b"a")),
    ((), (("c", 8),), "a"),
    ((None,), (("c", 8),), "", "hello", b"hello\0", np.str_("hello"), np.array([b"a", b"b"])),
    ((5,), (("c", 8),), list("hello")),
    ((2, 3), (("c", 8),), [list("abc"), list("def")]),
    ((None,), (("u", 8),), memoryview(b"abc")),
]


@pytest.mark.parametrize("row", SAME_AS_SPEAD2)
def test_a_value_has_the_bytes_that_spead2_gives_it(row):
    shape, kind, *values = row
    made = {**kind_of(kind), "shape": shape}
    for value in values:
        ours, theirs = (make(**made, value=value, cls=cls) for cls in (Item, spead2.Item))
        assert raw(ours) == raw(theirs), value


DATES = np.array(["2024-01-01", "2024-01-02"], "M8[s]")


@pytest.mark.parametrize(
    ("shape", "kind", "value", "expected"),
    [
        ((2,), {"dtype": "M8[s]"}, DATES, DATES.tobytes()),
        *(
            ((None,), {"format": [("c", 8)]}, view(b"abc"), b"abc")
            for view in (bytes, bytearray, memoryview)
        ),
        *(  # negative integers of unusual widths
            ((), {"format": [("i", bits)]}, n, n.to_bytes(bits // 8, "big", signed=True))
            for bits in (24, 40, 48, 56)
            for n in (-1, -5, 0, 5)
        ),
    ],
)
def test_a_value_that_spead2_does_not_take_has_these_bytes(shape, kind, value, expected):
    assert raw(make(shape, **kind, value=value)) == expected


# Whose memory


@pytest.mark.parametrize("dtype", ["u1", ">u4", "<f8", "S3", STRUCTURE])
@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0,)])
def test_a_matching_array_is_not_copied(dtype, shape):
    value = np.zeros(shape, dtype)
    assert make(shape, dtype=dtype, value=value).to_buffer() is value


@pytest.mark.parametrize(
    ("shape", "kind", "value"),
    [
        ((None,), {"format": [("u", 8)]}, np.zeros(5, "u1")),
        ((2, 3), {"dtype": "u1", "order": "F"}, np.zeros((2, 3), "u1", order="F")),
        ((2,), {"dtype": "M8[s]"}, np.zeros(2, "M8[s]")),
        ((3,), {"format": [("c", 8)]}, bytearray(b"abc")),
    ],
)
def test_memory_that_matches_in_another_way_is_not_copied(shape, kind, value):
    buffer = make(shape, **kind, value=value).to_buffer()
    memory = np.frombuffer(value, "u1") if isinstance(value, bytearray) else value
    assert np.shares_memory(buffer, memory)
    assert buffer.flags.c_contiguous
    assert buffer.nbytes == memory.nbytes


@pytest.mark.parametrize("letter", ["u", "i"])
@pytest.mark.parametrize("bits", [24, 40, 48, 56, 64])
def test_the_low_bytes_of_an_8_byte_integer_are_not_copied(letter, bits):
    value = np.frombuffer(b"\xa5" * 8, f">{letter if bits == 64 else 'u'}8").reshape(()).copy()
    buffer = make(format=[(letter, bits)], value=value).to_buffer()
    assert memoryview(buffer).tobytes() == b"\xa5" * (bits // 8)  # it may be anything until then
    value[()] = 0x12345
    assert memoryview(buffer).tobytes() == (0x12345).to_bytes(bits // 8, "big")


def test_what_does_not_match_is_converted_to_memory_of_its_own():
    for dtype in ("<u8", ">i8", "<u4"):
        value = np.array(5, dtype)
        buffer = make(format=[("u", 40)], value=value).to_buffer()
        value[()] = 6
        assert bytes(buffer) == bytes([0, 0, 0, 0, 5])
    for value in (np.arange(6, dtype="u1")[::2], np.arange(3), [0, 1, 2]):
        buffer = make((3,), dtype="u1", value=value).to_buffer()
        assert buffer.flags.c_contiguous
        assert buffer.dtype == np.uint8


# Values that do not fit

REFUSED = [
    ((), "u1", (300, "300 is out of range for u8: 0 to 255")),
    ((), "u1", (-1, "-1 is out of range for u8: 0 to 255"), (1.5, "1.5 is not a whole number")),
    ((), "u1", (float("nan"), "nan is not a whole number"), (1j, "1j is not a whole number")),
    ((), "u1", ("x", "'x' is not a whole number"), (object(), "is not a whole number")),
    ((), "u1", ([1], "value has shape (1,), expected ()"), (None, "it has no value to send")),
    ((), "i1", (np.int64(128), "128 is out of range for i8: -128 to 127")),
    ((2,), "u1", ([1, 300], "300 is out of range for u8: 0 to 255")),
    ((2,), "u1", (np.array([1, 300]), "300 is out of range for u8: 0 to 255")),
    ((2,), "u1", ([1.5, 2], "1.5 is not a whole number")),
    ((2,), "u1", (np.array([2, 1.5]), "1.5 is not a whole number")),
    ((2,), "u1", (1, "value has shape (), expected (2,)")),
    ((2,), "i8", ([0, 2**63], "9223372036854775808 is out of range for i64")),
    ((2,), "u8", ([2**70, 0.5], "0.5 is not a whole number")),
    ((2,), "u8", (np.array([0, 2.0**64]), "18446744073709551616 is out of range")),
    ((1,), "u1", (np.array([np.inf]), "inf is not a whole number")),
    ((3,), "u1", (b"abc", "b'abc' is not a whole number")),
    ((), "f4", (1e300, "1e+300 is out of range for float32")),
    ((), "f4", (1 + 2j, "a complex number does not fit float32")),
    ((), "f4", ("x", "could not convert string to float")),
    ((2,), "f2", ([1, 70000], "70000 is out of range for float16")),
    ((), "f8", (10**400, "int too large to convert to float")),
    ((), "S3", ("four", "'four' is longer than 3 characters"), ("é", "'é' is not ASCII")),
    ((), "U3", ("four", "'four' is longer than 3 characters")),
    ((), "V3", (b"four", "4 bytes do not fit the 3")),
    ((), "u1,i2", ((1, 2**15), "32768 is out of range for i16"), ((1, 2, 3), "3")),
    ((2,), "u1,i2", ([1, 2], "each element has to be a tuple of 2 fields")),
    ((2,), "u1,i2", (np.array([1, 2]), "each element has to be a tuple of 2 fields")),
    ((), STRUCTURE, ((1, 2.5, [3], ("xy",)), "field 'c' has shape (1,), expected (2,)")),
    ((), (("u", 40),), (2**40, "1099511627776 is out of range for u40: 0 to 10995")),
    ((), (("u", 40),), (-1, "-1 is out of range for u40"), (1.5, "1.5 is not a whole number")),
    ((), (("u", 40),), (np.array(2**40, "<u8"), "1099511627776 is out of range for u40")),
    ((), (("i", 40),), (2**39, "549755813888 is out of range for i40: -549755813888 to")),
    ((), (("i", 40),), (np.array(2**39, "<u8"), "549755813888 is out of range for i40")),
    ((), (("u", 12),), (4096, "4096 is out of range for u12: 0 to 4095")),
    ((2,), (("u", 12),), (np.array([1, 5000]), "5000 is out of range for u12")),
    ((), (("u", 4), ("u", 4)), ((1, 16), "16 is out of range for u4: 0 to 15")),
    ((), (("f", 32), ("u", 4)), ((1e300, 1), "1e+300 is out of range for >f4")),
    ((), (("f", 32), ("u", 4)), ([1, 2], "each element has to be a tuple of 2 fields")),
    ((), (("f", 32), ("u", 4)), ((1,), "1")),
    ((), (("u", 4), ("c", 8)), ((1, "ab"), "'ab' is longer than 1 character")),
    ((), (("c", 8),), ("ab", "'ab' is longer than 1 character")),
    ((None,), (("c", 8),), ("é", "'é' is not ASCII")),
    ((3,), (("c", 8),), (np.array([97, 98, 99], "u1"), "97 is not a text")),
    ((3,), (("c", 8),), ("ab", "value has shape (2,), expected (3,)")),
    ((2, 2), "u1", (np.zeros((2, 3), "u1"), "value has shape (2, 3), expected (2, 2)")),
    ((2, 2), (("u", 12),), ([[1, 2], [3]], "inhomogeneous")),
    ((None, 2), (("u", 12),), ([1, 2], "value has shape (2,), expected (None, 2)")),
    ((None, 2), (("u", 8),), ([[1, 2, 3]], "value has shape (1, 3), expected (None, 2)")),
    ((2,), (("u", 4), ("u", 4)), ([(1, 2)], "value has shape (1,), expected (2,)")),
]


@pytest.mark.parametrize("row", REFUSED)
def test_a_value_that_does_not_fit_is_refused_in_one_line_with_the_items_name(row):
    shape, kind, *values = row
    for value, message in values:
        item = make(shape, **kind_of(kind), value=value)
        with pytest.raises(ValueError) as error:  # noqa: PT011
            item.to_buffer()
        assert str(error.value).startswith("item 'thing' (0x1234): ")
        assert message in str(error.value)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("cls", [Item, spead2.Item])
def test_a_value_is_looked_at_when_it_is_sent_and_counted_when_it_is_assigned(cls):
    item = make((2,), dtype="u1", value=np.zeros(2, "u1"), cls=cls)
    assert item.version == 1
    item.value = values = [1]
    assert item.value is values
    with pytest.raises(ValueError, match="shape"):
        item.to_buffer()
    values.append(2)
    assert raw(item) == b"\1\2"
    with pytest.raises(ValueError, match="None"):
        item.value = None
    assert item.version == 2
    item.value = values
    assert item.version == 3


# Descriptors


@pytest.mark.parametrize(
    "dtype",
    [
        *DTYPES,
        *(STRUCTURE, "U3", "M8[s]", "V7", "f2"),
        np.dtype(
            {"names": ["a", "b"], "formats": ["<u2", "<u4"], "offsets": [2, 8], "itemsize": 16}
        ),
    ],
)
@pytest.mark.parametrize("bug_compat", [0, 4])
def test_the_description_of_a_dtype_is_that_of_spead2(dtype, bug_compat):
    flavour = spead2.Flavour(4, 64, 40, bug_compat)  # one of ours need only look like it
    ours = make((np.int64(2), 3), dtype=dtype, order="F").to_raw(flavour)
    theirs = make((2, 3), dtype=dtype, order="F", cls=spead2.Item).to_raw(flavour)
    assert raw_fields(ours) == raw_fields(theirs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtype": "u1", "format": [("u", 8)]}, "one of dtype and format"),
        ({}, "one of dtype and format"),
        ({"format": []}, "no fields"),
        ({"format": [("z", 8)]}, "('z', 8): the letter"),
        ({"format": [("u", 0)]}, "('u', 0)"),
        ({"format": [("u", -8)]}, "('u', -8)"),
        ({"format": [("f", 16)]}, "('f', 16)"),
        ({"format": [("c", 7)]}, "('c', 7)"),
        ({"format": [("u", 8)], "order": "F"}, "order 'C'"),
        ({"dtype": "u1", "order": "X"}, "order is 'X'"),
        ({"dtype": object}, "Python objects"),
        ({"dtype": np.dtype(("u1", (2,)))}, "has a shape"),
        ({"dtype": "u1", "shape": (-1,)}, "not negative"),
        ({"dtype": "u1", "shape": (None,)}, "only an item with a format"),
        ({"format": [("u", 8)], "shape": (None, None)}, "only one dimension"),
        ({"dtype": "u1", "id": -1}, "not negative"),
        ({"dtype": "u1", "id": None}, "id None is not an integer"),
    ],
)
def test_a_bad_descriptor_is_refused_in_one_line_with_its_name(arguments, message):
    arguments = {"id": 0x1001, "name": "thing", "description": "", "shape": (), **arguments}
    with pytest.raises(ValueError) as error:  # noqa: PT011
        Descriptor(**arguments)
    assert str(error.value).startswith("item 'thing'")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_texts_that_are_not_ascii_and_fields_that_overlap_cannot_be_described():
    for texts in (("é", ""), ("", "°C")):
        with pytest.raises(UnicodeEncodeError, match=r"^item '.*' \(0x1001\): .* is not ASCII"):
            Descriptor(0x1001, *texts, (), "u1").to_raw(Flavour())
    dtype = np.dtype({"names": ["a", "b"], "formats": ["<u4", "<u2"], "offsets": [0, 2]})
    with pytest.raises(
        ValueError, match=r"'thing'.*overlap, or are not in the order.*repack_fields"
    ):
        make(dtype=dtype).to_raw(Flavour())


def test_an_item_is_what_was_assigned_to_it_in_whatever_order():
    for seed in range(100):
        specs = [random_item(random.Random(seed + place), 0x1000) for place in (0, 1000)]
        item, expected = (Item(**spec.arguments()) for spec in specs)
        names = ["shape", "dtype", "order", "format", "name", "description"]
        random.Random(seed).shuffle(names)
        for name in names:
            setattr(item, name, getattr(expected, name))
        item.value = expected.value
        assert raw(item) == specs[1].data
        described = expected.to_raw(Flavour())
        assert item.to_raw(Flavour()) == described
        again = Descriptor.from_raw(raw_descriptor=described, flavour=Flavour())
        assert again.to_raw(Flavour()) == described


@pytest.mark.parametrize(
    ("name", "value"),
    [("shape", (-1,)), ("dtype", object), ("dtype", "S0"), ("order", "K"), ("format", [])],
)
def test_what_cannot_be_is_refused_when_it_is_assigned(name, value):
    item = make((2,), dtype="u1", value=[1, 2])
    with pytest.raises(ValueError, match=r"^item 'thing' \(0x1234\): "):
        setattr(item, name, value)
    assert raw(item) == b"\x01\x02"


@pytest.mark.parametrize(
    ("kind", "name", "value", "message"),
    [
        ({"dtype": "u1"}, "shape", (None,), "only an item with a format can have a dimension that"),
        ({"dtype": "u1"}, "dtype", None, "it has neither a dtype nor a format"),
        ({"format": [("u", 8)]}, "order", "F", "an item with a format has order 'C'"),
    ],
)
def test_what_does_not_go_together_is_refused_when_it_is_used(kind, name, value, message):
    item = make((2,), **kind, value=np.array([1, 2], "u1"))
    setattr(item, name, value)
    for use in (item.to_buffer, lambda: item.to_raw(Flavour())):
        with pytest.raises(ValueError, match=message):
            use()


# Groups


def add(group, id, name, description="", value=None):
    return group.add_item(id, name, description, (), "u1", value=value)


def test_items_of_a_group_are_found_by_id_and_by_name():
    group = ItemGroup()
    item = add(group, 0x2000, "a")
    assert group["a"] is group[0x2000] is group[np.int64(0x2000)] is item
    assert [key in group for key in ("a", 0x2000, "b", 0x2001)] == [True, True, False, False]
    assert (len(group), list(group.keys()), list(group.ids())) == (1, ["a"], [0x2000])
    assert (list(group.values()), list(group.items())) == ([item], [("a", item)])


def said_of(group: ItemGroup, key: object) -> str:
    """What is said where a group has no such item."""
    with pytest.raises(KeyError) as caught:
        group[key]
    return str(caught.value.args[0])


def test_for_an_item_that_is_not_there_those_are_named_that_are():
    group = ItemGroup()
    assert said_of(group, "b") == "there is no item 'b': there are none"
    add(group, 0x2000, "a")
    add(group, 0x2001, "x\x1b\u202e" + 1000 * "x")
    named = f"there are a (0x2000), x\\x1b\\u202e{'x' * 48}… (0x2001)"
    assert said_of(group, "b") == f"there is no item 'b': {named}"
    assert said_of(group, 0x2002) == f"there is no item 0x2002: {named}"
    for n in range(500):
        add(group, 0x3000 + n, f"n{n}")
    assert said_of(group, None).endswith("n7 (0x3007), 492 more")
    assert said_of(group, None).count("(0x") == 10


def test_random_groups_are_those_of_spead2():
    for seed in range(200):
        rng = random.Random(seed)
        ours, theirs = ItemGroup(), spead2.ItemGroup()
        for _ in range(20):
            id = rng.choice((None, None, *range(0x1000, 0x1008)))
            name = rng.choice("abcdef")
            description = rng.choice("xy")
            for group in (ours, theirs):
                add(group, id, name, description, value=1)
        assert list(ours.ids()) == list(theirs.ids()), seed
        assert list(ours.keys()) == list(theirs.keys()), seed
        for item in theirs.values():
            assert ours[item.id].name == item.name
            assert ours[item.id].description == item.description


def test_adding_the_same_item_again_gives_its_value_to_the_one_that_is_there():
    group = ItemGroup()
    item = add(group, 0x1001, "a", value=1)
    assert add(group, 0x1001, "a", value=2) is item
    assert item.value == 2
    assert add(group, 0x1001, "a") is item
    assert (item.value, item.version) == (2, 2)
    # Nor does the group change when an item is refused.
    with pytest.raises(ValueError, match="has to be 'C' or 'F'"):
        group.add_item(0x1001, "a", "", (), "u1", order="X")
    assert list(group.values()) == [item]


def test_a_value_that_is_deleted_lets_go_of_its_memory_and_the_item_can_get_another():
    item, array = make((5,), dtype="u1"), np.zeros(5, "u1")
    item.value = array
    before, version = sys.getrefcount(array), item.version
    del item.value
    assert (item.value, item.version) == (None, version)
    assert sys.getrefcount(array) == before - 1
    item.value = array
    assert item.value is array

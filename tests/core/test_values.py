# SPDX-License-Identifier: BSD-3-Clause
"""Values of every kind for items of every kind: what arrives is equal to them, or none is sent."""

import cmath
import datetime
import decimal
import fractions
import math

import numpy as np
import pytest

from spead_tutorial.items import Item

NUMBERS = [
    *(False, True, 0, 1, 2, 7, -1, 255, 256, 65504, 65505, 10**5, 2**24, 2**24 + 1, -(2**24) - 1),
    *(2**53 - 1, 2**53 + 1, 2**62 + 1, 2**63 - 1, 2**63, -(2**63), 2**64 - 1, 2**64, 2**70, 2**200),
    *(0.0, -0.0, 1.0, 0.5, -0.5, 3.0, 0.1, 1e-300, 2.0**63, 2.0**64, 1e39, -1e300),
    *(float("nan"), float("inf"), float("-inf"), 1 + 0j, 0j, 2j, 0.5 + 0j, complex("nan"), 1e300j),
    *(fractions.Fraction(6, 2), fractions.Fraction(1, 3), decimal.Decimal("1.0")),
    *(decimal.Decimal("0.1"), decimal.Decimal("1e400"), decimal.Decimal("NaN")),
]
TYPES = ["?", "u1", "i1", "<u2", ">i4", "u8", "i8", "f2", "<f4", ">f8", "c8", "c16"]
FIELDS = [
    ("u", 1),
    ("u", 65),
    ("i", 100),
    ("i", 2),
    ("b", 1),
    ("b", 9),
    ("u", 12),
    ("i", 53),
    ("u", 63),
    ("u", 64),
]


def arrived(value, *, dtype=None, format=None, shape=()):
    """What is made of the bytes of a value, or None if it is refused: in one line, by a name."""
    item = Item(0x1234, "thing", "", shape, dtype, format=format, value=value)
    try:
        buffer = item.to_buffer()
    except ValueError as error:
        message = str(error)
    else:
        raw = np.frombuffer(bytearray(memoryview(buffer).tobytes()), np.uint8).view(_Raw)
        item.set_from_raw(raw, new_order="|")
        return item.value
    assert message.startswith("item 'thing' (0x1234): "), repr(value)
    assert "\n" not in message
    return None


class _Raw(np.ndarray):
    id = 0x1234
    is_immediate = False


def is_finite(number):
    is_decimal = isinstance(number, decimal.Decimal)
    return number.is_finite() if is_decimal else cmath.isfinite(number)


def kept(number, letter, bits):
    """What has to arrive of a number, or None if there is nothing that it could be."""
    if isinstance(number, complex) and letter != "c":
        if number.imag:  # also if that is not a number
            return None
        number = number.real
    if letter in "fc":
        with np.errstate(over="ignore"):
            try:
                nearest = np.dtype(f"{letter}{bits // 8}").type(number)
            except OverflowError:
                return None
        if is_finite(number) and not np.isfinite(nearest):
            return None
        # Only whole numbers are told to be exact.
        return nearest if not isinstance(number, int) or int(nearest.real) == number else None
    least = -(2 ** (bits - 1)) if letter == "i" else 0
    most = {"b": 1, "u": 2**bits - 1, "i": 2 ** (bits - 1) - 1}[letter]
    is_whole = is_finite(number) and number == int(number)
    return int(number) if is_whole and least <= number <= most else None


def forms(number):
    """The same number, as it may be given; and the shape."""
    yield number, ()
    yield [number], (1,)
    yield (number,), (1,)
    yield np.array([number], object), (1,)
    if isinstance(number, (int, float, complex)):
        own = np.array(number)
        if own.dtype != object:
            yield own, ()
            yield own[()], ()
            yield np.array([number]), (1,)


@pytest.mark.parametrize("kind", [*TYPES, *FIELDS], ids=str)
@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_a_number_arrives_as_it_is_or_rounded_as_a_float_or_is_refused(number, kind):
    if isinstance(kind, str):
        made, dtype = {"dtype": kind}, np.dtype(kind)
        expected = kept(number, dtype.kind, 8 * dtype.itemsize)
    else:
        made, expected = {"format": [kind]}, kept(number, *kind)
    for value, shape in forms(number):
        got = arrived(value, **made, shape=shape)
        assert (got is None) == (expected is None), (value, got, expected)
        if expected is not None:
            rounded = np.asarray(got).dtype.kind in "fc"
            assert np.array_equal(got, np.reshape(expected, shape), equal_nan=rounded), (value, got)


@pytest.mark.parametrize("number", [2**53 + 1, -(2**62) - 1, 2**64 - 1])
@pytest.mark.parametrize("other", [0.5, "0.5", fractions.Fraction(1, 2), np.float32(2)])
def test_a_whole_number_is_exact_or_refused_next_to_others_in_a_list(number, other):
    assert arrived([number, other], dtype="f8", shape=(2,)) is None
    assert arrived([[other], [number]], dtype="c16", shape=(2, 1)) is None
    assert arrived([2**53, other], dtype="f8", shape=(2,)).tolist()[0] == 2**53


KINDS = {
    "truth": (True, np.array(True)),
    "number": (1, np.array(1, "i2")),
    "float": (1.0, np.array(1, "f4")),
    "complex": (1 + 0j, np.array(1, "c8")),
    "text": ("1", np.array("1"), np.array("1", object), np.array("1", np.dtypes.StringDType())),
    "bytes": (b"1", np.array(b"1")),
    "date": (np.datetime64("2001-01-01"), datetime.date(2001, 1, 1), np.array(0, "M8[ns]")),
    "duration": (np.timedelta64(1, "s"), datetime.timedelta(1), np.array(10**9, "m8[ns]")),
    "void": (np.void(b"1"), np.array(b"1", "V1")),
    "structure": (np.zeros((), "u1,u1"), np.zeros((), "u1,u1")[()], (0, 0)),
    "others": (object(), [None, [1]], np.zeros((), "u1,u1,u1"), {"a": 1}, [[1], [2, 3]]),
}
_NUMBERS = "truth number float complex"
TAKEN = {
    "?": _NUMBERS,
    **dict.fromkeys(["u1", ">i4", "f4", ">f8", "c8"], f"{_NUMBERS} text bytes"),
    **dict.fromkeys(["S3", "U3"], "text bytes"),
    "V3": "bytes void",
    "M8[D]": "date text bytes",
    "m8[us]": "number duration text bytes",
    "u1,u1": "structure",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", TAKEN)
def test_no_kind_of_value_becomes_another_but_for_numbers_and_texts_of_them(kind, dtype):
    expected = kind in TAKEN[dtype].split()
    for value in KINDS[kind]:
        got = arrived(value, dtype=dtype)
        assert (got is not None) == expected, (value, got)
        listed = [[value[()] if isinstance(value, np.ndarray) else value]]
        if kind != "others":
            got = arrived(listed, dtype=dtype, shape=(1, 1))
            assert (got is not None) == expected, (listed, got)


CHANGED = {
    "?": ([0, 2, 3], [0.5], np.array([7], ">u2"), ["0"], [np.nan], [None]),
    "f8": ([None, 1.0], ["1e400"], np.array([2**53 + 1]), np.array([np.longdouble("1e400")])),
    "f4": (np.array([1, 2**24 + 1], "u4"),),
    "c8": (np.array([2**24 + 1]),),
    "S1": ([5], ["a", 5]),
    "S3": (np.array(["ab", "\xe9"]),),
    "U3": (np.array([b"ab", b"\xe9"]),),
    "S20": (np.array([True]),),
    "M8[D]": (["2024-01-01T12"], [datetime.datetime(2024, 1, 1, 12)], np.array([1], "M8[ns]")),
    "M8[ns]": (np.array(["3000"], "M8[D]"),),
    "M8[s]": ([1], [None, "2024"]),
    "m8[D]": (np.array([1], "m8[Y]"),),
    "m8[s]": (np.array([1500], "m8[ms]"), [1.5], np.array([-(2**63)]), np.array([2**63], "u8")),
    "V2": ([b"a", b"bcd"], np.array([5], "i2")),
}


@pytest.mark.parametrize("dtype", CHANGED)
def test_a_value_that_numpy_would_change_is_refused(dtype):
    for value in CHANGED[dtype]:
        assert arrived(value, dtype=dtype, shape=(len(value),)) is None, value


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("?", np.array([0, -0.0, 1]), [False, False, True]),
        ("f8", ["inf", "-Infinity", "1e300"], [math.inf, -math.inf, 1e300]),
        ("f4", np.array([-(2**31), 2**24 + 2], "i4"), [-(2**31), 2**24 + 2]),
        ("f4", np.array([0.1]), [np.float32(0.1)]),
        ("f2", np.array([1e-30]), [0.0]),
        ("S3", ["a", b"bc"], [b"a", b"bc"]),
        ("M8[s]", ["2024-01-01T00:00:01"], [np.datetime64("2024-01-01T00:00:01")]),
        ("M8[D]", [datetime.datetime(2024, 1, 1)], [np.datetime64("2024-01-01")]),
        ("M8[ns]", np.array(["NaT", "2000"], "M8[Y]"), [np.datetime64("NaT"), "2000"]),
    ],
)
def test_a_value_that_means_the_same_to_numpy_is_taken(dtype, value, expected):
    got = arrived(value, dtype=dtype, shape=(len(value),))
    assert np.array_equal(got, np.array(expected, dtype), equal_nan=got.dtype.kind not in "SU")


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ([("a", "?"), ("b", "u1")], np.array([(2, 1)], "u1,u1")),
        ([("a", "?"), ("b", "u1")], np.array([(1, 300)], "u1,i2")),
        ([("a", "u1", (2,))], np.array([(1,)], [("a", "i4")])),
        ([("a", "u1", (2,))], np.array([([1, 2, 3],)], [("a", "i4", (3,))])),
        ([("a", [("b", "f4")])], np.array([((2**24 + 1,),)], [("a", [("b", "i4")])])),
        ([("a", "u1"), ("b", "u1")], np.array([(1,)], [("a", "u1")])),
        ([("a", "u1")], np.array([([1],)], [("a", object)])),
    ],
)
def test_fields_of_structures_are_looked_at_like_values(dtype, value):
    assert arrived(value, dtype=dtype, shape=(1,)) is None
    assert arrived(value.tolist(), dtype=dtype, shape=(1,)) is None


def test_structures_are_converted_field_by_field():
    value = np.array(
        [(1, [2, 3], (4,)), (0, [6, 7], (8,))],
        [("x", "i8"), ("y", "f4", (2,)), ("z", [("w", "O")])],
    )
    dtype = np.dtype([("a", "?"), ("b", ">u2", (2,)), ("c", [("d", "f4")])])
    got = arrived(value, dtype=dtype, shape=(2,))
    assert got.dtype == dtype
    assert [got[name].tolist() for name in "abc"] == [
        [True, False],
        [[2, 3], [6, 7]],
        [(4.0,), (8.0,)],
    ]


def test_an_array_with_masked_elements_is_refused():
    mask = [False, True]
    for dtype in ("u1", "f8"):
        value = np.ma.array([1, 2], dtype, mask=mask)
        assert arrived(value, dtype=dtype, shape=(2,)) is None
        assert arrived(np.ma.array([1, 2], dtype), dtype=dtype, shape=(2,)).tolist() == [1, 2]
    assert arrived(np.ma.array([1, 0], mask=mask), format=[("u", 1)], shape=(2,)) is None

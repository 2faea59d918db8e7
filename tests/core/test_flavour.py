# SPDX-License-Identifier: BSD-3-Clause
"""Flavours and lists of ranges: what of their numbers is possible."""

import dataclasses

import numpy as np
import pytest
import spead2

import spead_tutorial
from spead_tutorial.flavour import Flavour


def test_flavours_with_the_same_numbers_are_equal_and_hash_alike_and_cannot_be_changed():
    assert Flavour() == Flavour(4, 64, 40, 0)
    assert Flavour(4, 64, 48) == Flavour(heap_address_bits=48)
    assert Flavour(4, 64, 48) != Flavour(4, 64, 40)
    assert Flavour() != 40
    assert len({Flavour(4, 64, 48), Flavour(4, 64, 48), Flavour()}) == 2
    assert type(Flavour(heap_address_bits=np.int64(48)).heap_address_bits) is int
    with pytest.raises(dataclasses.FrozenInstanceError):
        Flavour().heap_address_bits = 48


BAD = [(3,), (4, 32), *((4, 64, n) for n in (0, 64, 44, -8)), (4, 64, 40, 8), (4, 64, 40, -1)]


@pytest.mark.parametrize("arguments", BAD)
def test_a_bad_flavour_is_refused_in_one_line_with_the_value(arguments):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        Flavour(*arguments)
    assert str(arguments[-1]) in str(error.value)
    assert "\n" not in str(error.value)
    for bad in ("40", 40.0, None):
        with pytest.raises(TypeError):
            Flavour(4, 64, bad)


@pytest.mark.parametrize("text", ["", "1", "1-3", "2,3-5,8,9-11", "3-1", " 1 , 2 - 4", "1,1"])
def test_a_list_of_ranges_is_read_as_spead2_reads_it(text):
    assert spead_tutorial.parse_range_list(text) == spead2.parse_range_list(text)


@pytest.mark.parametrize("text", ["a", "1-", "-1", "1,,2", "0x10", "1-2-3", ","])
def test_what_is_no_list_of_ranges_is_refused(text):
    for module in (spead2, spead_tutorial):
        with pytest.raises(ValueError, match="invalid literal"):
            module.parse_range_list(text)

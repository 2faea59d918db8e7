# SPDX-License-Identifier: BSD-3-Clause
"""Small things that programs written for spead2 use."""

import weakref

import pytest
import spead2

import spead_tutorial
import spead_tutorial.send


@pytest.mark.parametrize("text", ["", "1", "1-3", "2,3-5,8,9-11", "3-1", " 1 , 2 - 4", "1,1"])
def test_a_list_of_ranges_is_read_as_spead2_reads_it(text):
    assert spead_tutorial.parse_range_list(text) == spead2.parse_range_list(text)


@pytest.mark.parametrize("text", ["a", "1-", "-1", "1,,2", "0x10", "1-2-3", ","])
def test_what_is_no_list_of_ranges_is_refused(text):
    for module in (spead2, spead_tutorial):
        with pytest.raises(ValueError, match="invalid literal"):
            module.parse_range_list(text)


def test_a_heap_can_be_referred_to_weakly():
    heap = spead_tutorial.send.Heap()
    reference = weakref.ref(heap)
    assert reference() is heap
    del heap
    assert reference() is None

# SPDX-License-Identifier: BSD-3-Clause
"""How numbers are written."""

import pytest

from spead_tutorial.results import units


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1 KiB"),
        (8192, "8 KiB"),
        (100003, "97.66 KiB"),
        (1 << 20, "1 MiB"),
        (3 << 19, "1.5 MiB"),
        (float(64 << 20), "64 MiB"),
        (260 << 20, "260 MiB"),
        (1 << 30, "1 GiB"),
        (67420807168, "62.79 GiB"),
    ],
)
def test_a_size_is_in_the_largest_unit_that_there_is_one_of(n, text):
    assert units.size(n) == text

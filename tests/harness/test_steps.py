# SPDX-License-Identifier: BSD-3-Clause
"""Levels of a series of rates: where one begins, and what is none."""

import random
import sys

import pytest

from bench import steps
from spead_tutorial.records import RecordError


def test_noise_is_that_between_neighbours_and_no_step_is_in_it():
    source = random.Random(1)
    rates = [1e9 * (1 + source.gauss(0, 0.03)) * (1 if n < 200 else 0.5) for n in range(400)]
    assert steps.noise(rates) == pytest.approx(0.03, rel=0.1)
    assert steps.noise([1e9]) == 0.0


def test_of_few_rates_each_place_is_asked_about():
    assert steps.steps([1.0, 1.0, 1.0], 0.0) == [1, 2]
    assert steps.steps([1.0], 0.0) == []


def test_a_level_of_one_rate_is_an_accident_unless_it_is_the_last():
    assert steps.steps([1.0, 1.0, 1.0, 0.5, 1.0, 1.0, 1.0], 0.01) == []
    assert steps.steps([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5], 0.01) == [6]


def test_without_ruptures_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ruptures", None)
    with pytest.raises(RecordError, match=r"needs ruptures: pip install 'spead-tutorial\[bench\]'"):
        steps.steps([1.0] * 10, 0.01)

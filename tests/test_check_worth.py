# SPDX-License-Identifier: BSD-3-Clause
"""What a reader's sender is worth, in a sentence."""

import dataclasses
from collections.abc import Sequence

import pytest
from test_records import SAMPLE

from spead_tutorial.check.worth import SKELETON, YOURS, Worth, verdict
from spead_tutorial.measure.summary import Row
from spead_tutorial.stats import median


def row(implementation: str, rates: Sequence[float], failure: str | None = None) -> Row:
    samples = tuple(
        dataclasses.replace(
            SAMPLE,
            implementation=implementation,
            round=number,
            payload_bytes=10**9,
            elapsed_ns=round(1e18 / rate),
            failure=failure,
        )
        for number, rate in enumerate(rates)
    )
    return Row(samples, samples[-1], None if failure else median(list(rates)), failure)


def worth_of(yours: float, before: float = 1e9, chapter: float = 3e9, last: float = 1.0) -> Worth:
    """Rates in three rounds, each of which is twice as fast as the last for all.

    In the last round yours is so many times as fast besides.
    """
    rates = {SKELETON: before, YOURS: yours, "ours": chapter, "ceiling": 4e9}
    rounds = {who: [rate * 2**number for number in range(3)] for who, rate in rates.items()}
    rounds[YOURS][-1] *= last
    return Worth({who: row(who, its) for who, its in rounds.items()}, None)


@pytest.mark.parametrize(
    ("worth_it", "words"),
    [
        (worth_of(1e9), "x.py gains nothing of the step: it is as fast as the skeleton"),
        (worth_of(2e9), "x.py gains 50 % of the step"),
        (worth_of(2.9e9), "x.py is as fast as the chapter's own program"),
        (worth_of(4e9), "x.py is faster than the chapter's own program"),
        (worth_of(4e9, last=0.7), "x.py cannot be told from the chapter's own program"),
        (worth_of(2e9, last=1.6), "x.py cannot be told from the chapter's own program"),
        (
            worth_of(1.5e9, last=0.6),
            "x.py gains nothing of the step: it cannot be told from the skeleton",
        ),
        (worth_of(0.5e9), "x.py gains nothing of the step: it is slower than the skeleton"),
        (
            worth_of(1e9, chapter=1e9),
            "x.py is as fast as the chapter's own program, which gains nothing here itself",
        ),
    ],
)
def test_a_sentence_says_what_it_is_worth(worth_it, words):
    assert verdict(worth_it, "x.py") == words

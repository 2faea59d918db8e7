# SPDX-License-Identifier: BSD-3-Clause
"""What a reader's sender is worth, in a sentence."""

import pytest

from spead_tutorial.check.worth import verdict
from support.records import worth_of


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

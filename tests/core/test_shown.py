# SPDX-License-Identifier: BSD-3-Clause
"""How text of strangers is shown: as what can be seen, in one line."""

import re
import unicodedata

import pytest

from spead_tutorial._shown import shown, shown_lines
from support.strangers import CONTROLS, DIRECTIONS, ENDS, HALVES, TAGS, WIDTHLESS


@pytest.mark.parametrize("kind", [CONTROLS, DIRECTIONS, WIDTHLESS, ENDS, TAGS, HALVES], ids=ascii)
def test_what_a_terminal_would_obey_or_nobody_would_see_is_an_escape(kind):
    for stranger in kind:
        written = shown(f"a{stranger}b")
        assert written == f"a{ascii(stranger)[1:-1]}b"
        assert written.isascii()


def test_no_character_of_unicode_is_written_that_is_a_control_a_format_or_half_of_one():
    every = "".join(map(chr, range(0x110000)))
    left = set(shown(every))
    assert {unicodedata.category(c) for c in left}.isdisjoint({"Cc", "Cf", "Cs", "Zl", "Zp"})


@pytest.mark.parametrize("text", ["", "a b", "Ä₂ Ω — 電波 🔭", "e\u0301", "1\u2009000\xa0µs"])
def test_letters_of_any_script_their_accents_and_wide_spaces_stay(text):
    assert shown(text) == text


def test_it_is_one_line_or_as_many_as_the_text_has():
    assert shown("a\nb\n") == "a b "
    assert shown_lines("a\x1b\nb\u2028") == "a\\x1b\nb\\u2028"


def test_what_is_long_is_cut_before_it_is_looked_at():
    assert shown("x" * 10, 10) == "x" * 10
    assert shown("x" * 11, 10) == "x" * 9 + "…"
    assert re.fullmatch(r"(\\x00)*.{,3}…", shown("\0" * 10**7, 10))

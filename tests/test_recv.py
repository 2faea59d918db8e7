# SPDX-License-Identifier: BSD-3-Clause
"""There is no receiver yet, and asking for one says what there is instead."""

import pytest


@pytest.mark.parametrize(
    "statement",
    [
        "import spead_tutorial.recv",
        "import spead_tutorial.recv.asyncio",
        "from spead_tutorial import recv",
        "from spead_tutorial.recv import Stream",
    ],
)
def test_importing_a_receiver_says_what_there_is_instead(statement):
    with pytest.raises(ImportError) as raised:
        exec(statement)
    words = str(raised.value)
    assert "spead2.recv" in words
    assert "spead_tutorial.wire" in words
    assert "\n" not in words

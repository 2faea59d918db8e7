# SPDX-License-Identifier: BSD-3-Clause
"""What has arrived in lines for a terminal, without sockets."""

import numpy as np
import pytest

import spead_tutorial as st
from spead_tutorial import recv
from spead_tutorial.receive import text

# ---- Lines ----


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (7, "7"),
        (np.float32(1.5), "1.5"),
        ("two\nlines", r"'two\nlines'"),
        ("\x1b[31mred", r"'\x1b[31mred'"),
        ("x" * 100, "'" + "x" * 58 + "…"),
        (np.array([3, 1, 2], np.int8), "int8[3] 3 1 2"),
        (np.arange(5, dtype=np.int16), "int16[5] 0 1 2 3 … from 0 to 4"),
        (np.arange(6.0).reshape(2, 3), "float64[2][3] 0.0 1.0 2.0 3.0 … from 0.0 to 5.0"),
        (np.asfortranarray(np.arange(6).reshape(2, 3)), "int64[2][3] 0 1 2 3 … from 0 to 5"),
        (np.array([], np.uint8), "uint8[0]"),
        (np.array([True] * 5), "bool[5] True True True True … from False to True"),
        (np.array([(1, 2.0)] * 5, "i1,f8"), None),
        (np.array([1 << 70] * 5, object), None),
        (np.array(["2026-01-01"] * 5, "M8[D]"), None),
    ],
)
def test_a_value_is_written_in_a_line(value, line):
    if isinstance(value, np.ndarray) and value.dtype == bool:
        value[4] = False
    written = text.value(value)
    assert written.isprintable()
    if line is not None:
        assert written == line


def test_what_a_stranger_sends_cannot_command_a_terminal():
    item = st.Descriptor(0x1000, "\x1b]0;x\x07", "two\r\nlines", (), np.dtype(("V", 3)))
    assert text.described("described:", item).isprintable()
    assert text.plain("\x9b2J\u202e") == r"\x9b2J\u202e"


@pytest.mark.parametrize(
    ("item", "line"),
    [
        (st.Descriptor(0x1600, "t", "in ticks", (), format=[("u", 40)]), "0x1600 t, u40: in ticks"),
        (st.Descriptor(0x3300, "adc", "", (2, 3), np.int8), "0x3300 adc, int8[2][3]"),
        (st.Descriptor(0x3301, "z", "", (None,), format=[("u", 8), ("f", 32)]),
         "0x3301 z, (u8, f32)[any]"),
    ],
)  # fmt: skip
def test_a_descriptor_is_written_in_a_line(item, line):
    assert text.described("new", item) == f"new {line}"


def test_the_pace_is_written_with_what_is_missing():
    with st.ThreadPool() as pool, recv.Stream(pool) as stream:
        before = stream.stats
    now = dict(before) | {"payload_bytes": 5_000_000, "heaps": 40}
    assert (
        text.pace_line(before, now, 2.0) == "2.5 MB/s, 20 heaps/s, 40 heaps in all; nothing missing"
    )
    lossy = now | {"incomplete_heaps_evicted": 2, "incomplete_heaps_flushed": 1}
    lossy |= {"heaps_never_begun": 4, "socket_dropped": 5}
    assert text.pace_line(before, lossy, 2.0).endswith(
        "; 3 heaps incomplete, 4 never begun, 5 dropped by the socket"
    )

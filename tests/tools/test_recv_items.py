# SPDX-License-Identifier: BSD-3-Clause
"""What has arrived in lines for a terminal, without sockets."""

import io

import numpy as np
import pytest

import spead_tutorial as st
from spead_tutorial import recv, send
from spead_tutorial.tools import recv_items as text
from spead_tutorial.tools.recv import Pace, Screen, pace_line
from spead_tutorial.tools.recv_items import Items
from support import ref_encode
from support.receivers import flat, packets_of

# ---- Lines ----


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (7, "7"),
        pytest.param(-(1 << 16000), "-0x1" + "0" * 55 + "…", id="wide"),
        (np.array([1 << 64], object), "object[1] 0x10000000000000000"),
        (np.zeros(1, [(f"x{i}", "u1") for i in range(2000)]), None),
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
    assert len(written) < 400
    if line is not None:
        assert written == line


def test_what_a_stranger_sends_cannot_command_a_terminal():
    item = st.Descriptor(0x1000, "\x1b]0;x\x07", "two\r\nlines", (), np.dtype(("V", 3)))
    assert text.described("described:", item).isprintable()
    assert text.plain("\x9b2J\u202e") == r"\x9b2J\u202e"


@pytest.mark.parametrize(
    ("item", "line"),
    [
        (st.Descriptor(0x1600, "t", "in ticks", (), format=[("u", 40)]),
         "0x1600 t, uint40: in ticks"),
        (st.Descriptor(0x3300, "adc", "", (2, 3), np.int8), "0x3300 adc, int8[2][3]"),
        (st.Descriptor(0x3301, "z", "", (None,), format=[("u", 8), ("f", 32)]),
         "0x3301 z, (uint8, float32)[any]"),
    ],
)  # fmt: skip
def test_a_descriptor_is_written_in_a_line(item, line):
    assert text.described("new", item) == f"new {line}"


def test_the_pace_is_written_with_what_is_missing():
    with st.ThreadPool() as pool, recv.Stream(pool) as stream:
        before = stream.stats
    now = dict(before) | {"payload_bytes": 5_000_000, "heaps": 40}
    assert pace_line(before, now, 2.0) == "2.5 MB/s, 20 heaps/s, 40 heaps in all; nothing missing"
    lossy = now | {"incomplete_heaps_evicted": 2, "incomplete_heaps_flushed": 1}
    lossy |= {"heaps_never_begun": 4, "socket_dropped": 5}
    assert pace_line(before, lossy, 2.0).endswith(
        "; 3 heaps incomplete, 4 never begun, 5 dropped by the socket"
    )


# ---- Which heaps are shown ----


def test_heaps_are_all_shown_but_when_they_come_fast_none_until_a_window_has_few():
    pace = Pace()
    for _ in range(3):
        assert all(pace.shows() for _ in range(Pace.FEW))
        assert not pace.end_window()
    shown = [pace.shows() for _ in range(Pace.FEW + 5)]
    assert shown == [True] * Pace.FEW + [False] * 5
    assert pace.end_window()
    assert not pace.shows()  # of the window after a fast one
    assert pace.end_window()
    assert pace.shows()
    assert not pace.end_window()


def test_a_terminal_has_one_line_that_is_renewed(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", "20")
    screen = Screen(is_quiet=False)
    screen.last("1 MB/s")
    screen.last("2 MB/s, and more than a line has room for")
    screen.line("heap 1")
    assert terminal.getvalue() == ("\r1 MB/s\x1b[K\r2 MB/s, and more th\x1b[K\r\x1b[Kheap 1\n")


def test_elsewhere_each_is_a_line_and_where_nothing_is_wanted_none(capsys):
    for is_quiet in (False, True):
        screen = Screen(is_quiet=is_quiet)
        screen.last("1 MB/s")
        screen.line("heap 1")
    assert capsys.readouterr().out == "1 MB/s\nheap 1\n"


# ---- Items ----


def arrived(*heaps: send.Heap) -> list[recv.HeapBase]:
    """What becomes of heaps that are sent."""
    with st.ThreadPool() as pool, recv.Stream(pool) as stream:
        packets = flat([packets_of(heap, cnt) for cnt, heap in enumerate(heaps, 1)])
        stream.add_buffer_reader(b"".join(packets))
        return list(stream)


def group(dtype: type = np.int8) -> send.ItemGroup:
    made = send.ItemGroup()
    made.add_item(0x3300, "samples", "", (6,), dtype, value=np.arange(6, dtype=dtype))
    made.add_item(0x1600, "timestamp", "", (), format=[("u", 40)], value=9)
    return made


def test_of_what_strangers_describe_and_send_only_so_much_is_shown_and_it_says_of_how_much(
    monkeypatch,
):
    monkeypatch.setattr(text, "_MOST_LINES", 1)
    taken = Items()
    alone, heap = arrived(group().get_heap("all", "none"), group().get_heap("all", "all"))
    assert taken.lines(alone) == []  # a heap of descriptors is no more than these
    assert taken.read_descriptors(heap) == ["described: 0x3300 samples, int8[6]", "… and 1 more"]
    assert taken.lines(heap)[-1] == "    … and 1 more"
    assert taken.read_descriptors(heap) == []
    assert [row["name"] for row in taken.as_rows()] == ["samples", "timestamp"]


def test_what_there_is_no_room_for_is_said_once():
    taken = Items(st.ItemGroup(max_memory=3000))
    (heap,) = arrived(group().get_heap("all", "all"))
    assert taken.read_descriptors(heap) == [
        "described: 0x3300 samples, int8[6]",
        "… and 1 more, left out: the warnings say why",
    ]
    assert taken.read_descriptors(heap) == []
    (changed,) = arrived(group(np.int16).get_heap("all", "all"))
    assert taken.read_descriptors(changed) == ["changed: 0x3300 samples, int16[6]"]


def test_a_descriptor_that_is_wrong_spoils_no_other():
    wrong = ref_encode.Descriptor(0x1000, b"wrong", b"", b"", (("q", 8),), ())
    right = ref_encode.Descriptor(0x1001, b"right", b"", b"", (("u", 8),), ())
    long = ref_encode.Descriptor(0x1002, b"long", b"", b"", (("u", 8),), (1,) * 33)
    taken = Items()
    with st.ThreadPool() as pool, recv.Stream(pool) as stream:
        stream.add_buffer_reader(b"".join(ref_encode.encode_heap([wrong, right, long], 1, 1472)))
        found = taken.read_descriptors(stream.get())
    assert found[0].startswith("a descriptor that cannot be read, of 0x1000: ")
    assert found[1:] == [
        "described: 0x1001 right, uint8",
        "… and 1 more, left out: the warnings say why",
    ]

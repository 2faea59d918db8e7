# SPDX-License-Identifier: BSD-3-Clause
"""Where things are drawn, in pictures of which there is one each; their words: test_words.py."""

from typing import Any

import pytest
from msgspec.structs import replace

from spead_tutorial import plots
from support.pictures import draw, drawing, typed
from support.recordings import make_ceiling, make_lossless, make_packets

# ---- The size of packets ----


def marks(axis: Any) -> list[float]:
    """Where the sizes of a panel are along x."""
    ticks = (*axis.xaxis.get_major_ticks(), *axis.xaxis.get_minor_ticks())
    return sorted(float(tick.get_loc()) for tick in ticks)


def test_sizes_are_logarithmic_but_never_too_close_to_be_told_apart():
    small, default, large, largest = marks(drawing("packets").figure.axes[0])
    assert default - small == pytest.approx(1524, abs=1)  # thousandths of an octave
    assert large - default == pytest.approx(2612, abs=1)
    assert largest - large > 10 * 29


@pytest.mark.parametrize("mtu", [65536, None])
def test_without_fragments_or_without_a_known_mtu_there_is_one_panel(mtu):
    drawn = draw(plots.packet_sizes, make_packets(mtu))
    assert len(drawn.figure.axes) == 1
    assert "fragments" not in drawn.title
    assert len(marks(drawn.figure.axes[0])) == 5


# ---- Where the time goes ----


def test_a_bar_has_the_parts_of_a_thread_and_ends_when_the_next_heap_begins():
    for axis, ns in zip(drawing("where").figure.axes, (1000, 50_000), strict=True):
        rows: dict[float, list[tuple[float, float]]] = {}
        for bar in axis.patches:
            rows.setdefault(round(bar.get_y(), 3), []).append((bar.get_x(), bar.get_width()))
        assert len(rows) == 6  # chapter 10 has two threads, chapter 13 one, in two languages
        for row in rows.values():
            ends = [left + width for left, width in row]
            assert ends[-1] == pytest.approx(2 * ns)
            assert [left for left, _ in row] == pytest.approx([0, *ends[:-1]])
        program, stream = ([width for _, width in rows[y]] for y in sorted(rows)[:2])
        assert program == pytest.approx([ns * x for x in (0.5, 0.1, 0.15, 0.25, 1.0)])
        assert stream == pytest.approx([ns * 1.5 * x for x in (0.04, 0.4, 0.5, 0.06)] + [ns * 0.5])


# ---- All bare loops ----


def test_loops_of_one_rate_are_not_told_apart():
    recording = make_ceiling()
    two = {
        (one.heap_size, one.round): one.elapsed_ns
        for one in recording.samples
        if one.variant == "two threads"
    }
    same = tuple(
        replace(one, elapsed_ns=two[one.heap_size, one.round]) for one in recording.samples
    )
    title = draw(plots.ceiling, recording, samples=same).title
    assert title.startswith("Bare calls: no difference found. ")


def test_each_column_has_a_line_where_two_threads_end():
    for axis in drawing("ceiling").figure.axes:
        upright = [line for line in axis.lines if list(line.get_ydata()) == [0, 1]]
        assert [line.get_xdata()[0] for line in upright] == [pytest.approx(8000, rel=1e-3)]


# ---- Receivers ----


def test_a_rate_above_which_the_sender_could_not_go_is_called_a_lower_bound():
    recording = make_lossless()
    seven = "tut_7_recv_power"  # loses nothing at rates that its sender cannot keep
    samples = tuple(
        one
        if one.program != seven
        else replace(one, asked_bytes_per_s=2 * (one.asked_bytes_per_s or 0))
        for one in recording.samples
        if one.program != seven or not one.received_dropped
    )
    ladder = draw(plots.receivers_ladder, recording, samples=samples)
    assert typed(ladder.title).startswith("1 MiB heaps, from chapter 3 to 7: at least x3.00 (Pyth")
    assert "7 Power that keeps up, Python: 1 MiB 1500, 1 MiB is a lower bound," in ladder.words
    assert any(one.endswith(", at least") for one in ladder.seen)
    loss = draw(plots.loss, recording, samples=samples)
    assert typed(loss.title).startswith(
        "Chapter 7 loses nothing up to at least 1 500 MB/s (Python), at least 3 000 MB/s (C). "
    )

# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of chapter 5: who works when, shares of the time, and what was gained."""

from msgspec.structs import fields, replace

from spead_tutorial.measure.records import Recording, Timeline
from spead_tutorial.results import plots
from spead_tutorial.results.units import times
from support.pictures import bars_of, draw, drawing
from support.recordings import MIB, make_pipeline
from support.records import HEADER

MS = 1_000_000
#: Two heaps, one after the other: 6 ms to prepare, 2 ms to send, 1 ms until the program goes on.
ALTERNATING = Timeline(
    "some", "tut_4_send_perf", "python", True, MIB, 1472,
    prepare_ns=(0, 10 * MS),
    queued_ns=(6 * MS, 16 * MS),
    first_packet_ns=(6 * MS, 16 * MS),
    last_packet_ns=(8 * MS, 18 * MS),
    completed_ns=(8 * MS, 18 * MS),
    resumed_ns=(9 * MS, 20 * MS),
)  # fmt: skip


def test_bars_are_at_the_times_that_were_recorded():
    drawn = draw(plots.timeline, Recording(HEADER, (), (ALTERNATING,)))
    assert drawn.title.startswith("In turns, the network thread works 20 %.")
    found = bars_of(drawn.figure.axes[0])
    rows = sorted({y for *_, y in found})
    program = [(left, right) for left, right, y in found if y == rows[0]]
    network = [(left, right) for left, right, y in found if y == rows[1]]
    assert program == [(0, 6), (6, 9), (10, 16), (16, 20)]  # preparing, waiting
    assert network == [(6, 8), (16, 18)]


def test_a_run_of_one_heap_is_drawn():
    names = [field.name for field in fields(Timeline) if field.name.endswith("_ns")]
    short = replace(ALTERNATING, **{name: getattr(ALTERNATING, name)[:1] for name in names})
    assert "heaps 0 to 0 of 1" in draw(plots.timeline, Recording(HEADER, (), (short,))).words


def test_runs_are_shown_of_the_samples_where_overlapping_changes_most():
    title = drawing("timeline").title
    assert title.startswith("Overlapped, the network thread works 100 %, not 57 %. Constant sam")


def test_what_overlapping_gains_is_told_where_both_were_measured():
    recording = make_pipeline()
    samples = tuple(one for one in recording.samples if not one.random)
    drawn = draw(plots.pipeline, recording, samples=samples)
    assert f"Constant samples, a core each, C, gain: 1 MiB {times(1.5)} (" in drawn.words
    assert "Random" not in drawn.words

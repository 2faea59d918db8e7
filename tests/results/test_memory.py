# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of chapter 8: rates, page faults, caches, and the causes one at a time."""

import dataclasses

from msgspec.structs import replace

from spead_tutorial import plots
from spead_tutorial.records import Recording
from support.pictures import draw, drawing
from support.recordings import EIGHT, MIB, NEW_MEMORY, make_memory, make_rounds
from support.records import HEADER

TIMES = "\N{MULTIPLICATION SIGN}"


def with_caches(recording: Recording, **caches: int) -> Recording:
    machine = recording.header.machine | {"caches_bytes": caches}
    return dataclasses.replace(recording, header=replace(recording.header, machine=machine))


def test_no_faults_at_all_are_at_the_bottom_of_a_logarithmic_scale():
    figure = drawing("memory").figure
    panel = next(axis for axis in figure.axes if axis.get_yscale() == "log")
    lowest = min(min(line.get_ydata()) for line in panel.lines if len(line.get_xdata()) == 3)
    assert panel.get_ylim()[0] < lowest == 0.01
    assert panel.get_ylim()[1] > 64 * MIB / 4096


def test_caches_are_drawn_where_heaps_are_as_large_and_all_machines_have_them():
    recording = make_memory()
    smaller = with_caches(recording, L2=MIB, L3=32 * MIB)
    for made, caches in (
        (recording, ["L2 2 MiB"]),
        (smaller, ["L2 1 MiB", "L3 32 MiB"]),
        (dataclasses.replace(recording, others=(smaller.header,)), []),
        (dataclasses.replace(recording, header=HEADER), []),
    ):
        seen = draw(plots.memory, made).seen
        assert [words for words in seen if words.startswith(("L2", "L3"))] == caches


def test_samples_without_counts_have_a_rate_all_the_same():
    samples = make_rounds(EIGHT, "c", [100.0] * 3)
    words = draw(plots.memory, Recording(HEADER, tuple(samples))).words
    assert "C, used again: 1 MiB 100." in words
    assert "page faults a heap:" not in words


def as_new_memory(recording: Recording, heap_size: int) -> Recording:
    """The same recording, where at a size of heaps every way is as fast as new memory."""
    of_new = {
        (one.language, one.round): one.elapsed_ns
        for one in recording.samples
        if (one.program, one.variant, one.heap_size) == (NEW_MEMORY, "", heap_size)
    }
    samples = tuple(
        replace(one, elapsed_ns=of_new[one.language, one.round])
        if one.heap_size == heap_size
        else one
        for one in recording.samples
    )
    return dataclasses.replace(recording, samples=samples)


def test_memory_says_in_its_title_where_most_was_gained():
    recording = as_new_memory(make_memory(), 64 * MIB)
    title = draw(plots.memory, recording).title
    gains = f"{TIMES}2.00 (Python), {TIMES}1.97 (C)"
    assert title.startswith(f"Memory used again: {gains} at 16 MiB. New memory")


def test_causes_show_the_size_at_which_a_difference_is_told():
    recording = as_new_memory(as_new_memory(make_memory(), 64 * MIB), MIB)
    drawn = draw(plots.causes, recording)
    assert "payload sent in MB/s" in drawn.seen
    assert {"Heaps of 16 MiB", "Heaps of 1 MiB", "no difference found"} <= set(drawn.seen)
    assert "4\N{THIN SPACE}096" in drawn.seen
    assert "6 of 6 differences told" not in drawn.seen


def test_causes_put_into_brackets_what_is_not_told():
    recording = make_memory()
    for n in (MIB, 16 * MIB, 64 * MIB):
        recording = as_new_memory(recording, n)
    drawn = draw(plots.causes, recording)
    assert drawn.seen.count(f"({TIMES}1.00)") == 6
    assert "64 MiB heaps: memory kept no difference found; used again no" in drawn.svg.decode()
    assert "in brackets:" not in drawing("causes").svg.decode()


def test_causes_of_many_sizes_have_two_small_panels_in_a_line():
    recording = make_memory()
    more = [
        replace(one, heap_size=32 * MIB, case=f"{one.case}/more")
        for one in recording.samples
        if one.heap_size == 16 * MIB
    ]
    samples = (*recording.samples, *more)
    figure = draw(plots.causes, recording, samples=samples).figure
    small = [axis.get_position() for axis in figure.axes[2:]]
    assert [round(place.x0, 2) for place in small] == [0.19, 0.6, 0.19]
    assert small[0].y0 == small[1].y0 > small[2].y1

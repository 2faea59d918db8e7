# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of chapter 8: rates, page faults, caches, and the causes one at a time."""

import dataclasses
import statistics

from spead_tutorial import plots
from spead_tutorial.records import Recording
from support.pictures import draw, drawing
from support.recordings import EIGHT, MIB, NEW_MEMORY, make_memory, make_rounds
from support.records import HEADER

TIMES = "\N{MULTIPLICATION SIGN}"


def median_rate(recording: Recording, program: str, language: str, variant: str, n: int) -> float:
    return statistics.median(
        one.payload_bytes / one.elapsed_ns * 1e3
        for one in recording.samples
        if (one.program, one.language, one.variant, one.heap_size)
        == (program, language, variant, n)
    )


def with_caches(recording: Recording, **caches: int) -> Recording:
    machine = recording.header.machine | {"caches_bytes": caches}
    return dataclasses.replace(
        recording, header=dataclasses.replace(recording.header, machine=machine)
    )


def test_memory_says_rates_faults_and_gains():
    recording = make_memory()
    words = drawing("memory").words
    before, after = (
        median_rate(recording, program, "c", "", 64 * MIB) for program in (NEW_MEMORY, EIGHT)
    )
    assert f"64 MiB {before:.0f}. Page faults of C, new memory: 1 MiB 256" in words
    assert f"64 MiB {after:.0f}. Page faults of C, used again: 1 MiB 0" in words
    assert f"64 MiB {TIMES}{after / before:.2f}" in words.split("Gain of C:")[1]


def test_no_faults_at_all_are_at_the_bottom_of_a_logarithmic_scale():
    figure = drawing("memory").figure
    panel = next(axis for axis in figure.axes if axis.get_yscale() == "log")
    lowest = min(min(line.get_ydata()) for line in panel.lines if len(line.get_xdata()) == 3)
    assert panel.get_ylim()[0] < lowest == 0.01
    assert panel.get_ylim()[1] > 64 * MIB / 4096


def test_caches_are_drawn_where_heaps_are_as_large():
    recording = make_memory()
    drawn = drawing("memory")
    assert "L2 2 MiB" in drawn.seen
    assert not any("L3" in words for words in drawn.seen)
    assert "L2 is 2 MiB" in drawn.words
    smaller = with_caches(recording, L2=MIB, L3=32 * MIB)
    assert {"L2 1 MiB", "L3 32 MiB"} <= set(draw(plots.memory, smaller).seen)


def test_caches_of_different_machines_are_not_drawn():
    recording = make_memory()
    other = with_caches(recording, L2=MIB).header
    merged = dataclasses.replace(recording, others=(other,))
    assert not any("L2" in words for words in draw(plots.memory, merged).seen)


def test_a_machine_whose_caches_are_not_known_has_none():
    recording = dataclasses.replace(make_memory(), header=HEADER)
    assert not any("L2" in words for words in draw(plots.memory, recording).seen)


def test_memory_without_what_came_after_has_no_panel_of_gains():
    recording = make_memory()
    before = tuple(one for one in recording.samples if one.program == NEW_MEMORY)
    drawn = draw(plots.memory, recording, samples=before)
    assert not any("gain:" in words for words in drawn.seen)
    assert "C, used again" not in drawn.seen


def test_samples_without_counts_have_a_rate_all_the_same():
    samples = make_rounds(EIGHT, "c", [100.0] * 3)
    words = draw(plots.memory, Recording(HEADER, tuple(samples))).words
    assert "C, used again: 1 MiB 100." in words
    assert "Page faults" not in words


def as_new_memory(recording: Recording, heap_size: int) -> Recording:
    """The same recording, where at a size of heaps every way is as fast as new memory."""
    of_new = {
        (one.language, one.round): one.elapsed_ns
        for one in recording.samples
        if (one.program, one.variant, one.heap_size) == (NEW_MEMORY, "", heap_size)
    }
    samples = tuple(
        dataclasses.replace(one, elapsed_ns=of_new[one.language, one.round])
        if one.heap_size == heap_size
        else one
        for one in recording.samples
    )
    return dataclasses.replace(recording, samples=samples)


def test_memory_says_in_its_title_where_most_was_gained():
    recording = as_new_memory(make_memory(), 64 * MIB)
    title = draw(plots.memory, recording).title
    gains = f"{TIMES}2.00 (Python), {TIMES}1.97 (C)"
    assert title.startswith(f"Memory used again, heaps of 16 MiB: {gains}. New memory")


def test_causes_show_the_median_of_every_way_where_most_was_gained():
    recording = make_memory()
    drawn = drawing("causes")
    numbers = [words.replace("\N{THIN SPACE}", "") for words in drawn.seen]
    for language in ("python", "c"):
        for program, variant in (
            (NEW_MEMORY, ""),
            (NEW_MEMORY, "huge pages"),
            (NEW_MEMORY, "memory kept"),
            (EIGHT, ""),
        ):
            middle = median_rate(recording, program, language, variant, 64 * MIB)
            assert f"{middle:.0f}" in numbers
    assert {"new memory", "huge pages", "memory kept", "used again"} <= set(numbers)
    assert {"16384", f"{TIMES}2.00", f"{TIMES}1.97"} <= set(numbers)
    assert "4096" not in numbers  # the page faults of smaller heaps


def test_causes_say_in_their_title_what_keeping_memory_gains_and_using_it_again():
    title = drawing("causes").title
    kept, again = (
        f"{TIMES}{x:.2f} (Python), {TIMES}{y:.2f} (C)" for x, y in ((1.83, 1.81), (2, 1.97))
    )
    assert title.startswith(f"64 MiB heaps: memory kept {kept}; used again {again}. Why")


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


def test_causes_say_rates_faults_and_gains_in_words():
    words = drawing("causes").words
    said = f"Python 4500 with 8 faults, gain {TIMES}1.50 (1.50 to 1.50), C 4600 with 8 faults, gain"
    assert f"huge pages: {said}" in words.split("Heaps of 16 MiB:")[1]
    assert "Heaps of 1 MiB: new memory: Python 3000 with 256 faults, C 3100" in words


def test_causes_are_shown_at_the_sizes_that_have_variants():
    recording = make_memory()
    more = make_rounds(NEW_MEMORY, "c", [100.0] * 3, heap_size=8192, page_faults=0)
    samples = (*recording.samples, *more)
    words = draw(plots.causes, recording, samples=samples).words
    assert "Heaps of 8 KiB" not in words
    assert words.count("Heaps of") == 3


def test_causes_of_one_size_have_no_panels_of_others():
    recording = make_memory()
    large = tuple(one for one in recording.samples if one.heap_size == 64 * MIB)
    drawn = draw(plots.causes, recording, samples=large)
    assert len(drawn.figure.axes) == 2
    assert drawn.words.count("Heaps of") == 1


def test_causes_of_many_sizes_have_two_small_panels_in_a_line():
    recording = make_memory()
    more = [
        dataclasses.replace(one, heap_size=32 * MIB, case=f"{one.case}/more")
        for one in recording.samples
        if one.heap_size == 16 * MIB
    ]
    samples = (*recording.samples, *more)
    figure = draw(plots.causes, recording, samples=samples).figure
    small = [axis.get_position() for axis in figure.axes[2:]]
    assert [round(place.x0, 2) for place in small] == [0.19, 0.6, 0.19]
    assert small[0].y0 == small[1].y0 > small[2].y1

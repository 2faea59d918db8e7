# SPDX-License-Identifier: BSD-3-Clause
"""What is drawn, in pictures of which there is one each; their words: test_words.py."""

import dataclasses

import pytest
from msgspec.structs import fields, replace

from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.measure.records import Recording, Timeline
from spead_tutorial.results import plots
from spead_tutorial.results.units import times
from support.pictures import bars_of, draw, drawing, fail, typed
from support.recordings import (
    EIGHT,
    MIB,
    NEW_MEMORY,
    around,
    example,
    make_bounds,
    make_ladder,
    make_memory,
    make_packets,
    make_pipeline,
    make_rounds,
    make_sample,
)
from support.records import HEADER, make_spacing

# ---- The size of packets ----


@pytest.mark.parametrize(("mtu", "drawn"), [(9216, True), (65536, False), (None, False)])
def test_a_line_parts_packets_at_an_mtu_that_is_known_and_smaller_than_some(mtu, drawn):
    packets = draw(plots.packet_sizes, make_packets(mtu))
    assert (f"MTU {mtu}" in packets.seen) is drawn
    assert ("fragments" in packets.title) is drawn


# ---- Where the time goes ----


def test_a_bar_has_the_work_of_a_thread_and_ends_when_the_next_heap_begins():
    for axis in drawing("where").figure.axes:
        rows: dict[float, list[tuple[float, float]]] = {}
        for bar in axis.patches:
            rows.setdefault(round(bar.get_y(), 3), []).append((bar.get_x(), bar.get_width()))
        assert len(rows) == 6  # chapter 10 has two threads, chapter 13 one, in two languages
        for row in rows.values():
            ends = [left + width for left, width in row]
            assert ends[-1] == pytest.approx(1)
            assert [left for left, _ in row] == pytest.approx([0, *ends[:-1]])
        program, stream = ([width for _, width in rows[y]] for y in sorted(rows)[:2])
        assert program == pytest.approx([0.25, 0.125, 0, 0.125, 0.5])
        assert stream == pytest.approx([0, 0.03, 0.675, 0.045, 0.25])


# ---- All bare loops ----


def test_loops_of_one_rate_are_not_told_apart():
    recording = example("ceiling")
    two = {
        (one.heap_size, one.round): one.elapsed_ns
        for one in recording.samples
        if one.variant == "two threads"
    }
    same = tuple(
        replace(one, elapsed_ns=two[one.heap_size, one.round]) for one in recording.samples
    )
    title = draw(plots.ceiling, recording, samples=same).title
    assert title.startswith("The best bare loop, not two threads: no difference found. ")


def test_loops_are_sorted_at_the_heaps_where_they_differ_most():
    drawn = drawing("ceiling")
    names = [one.get_text() for one in drawn.figure.axes[0].get_yticklabels()]
    assert names[:2] == ["one thread, read in place, huge pages", "2 streams, fill and copy"]
    assert "one thread, read in place, huge pages: 1 MiB 20000." in drawn.words


# ---- Receivers ----


def test_a_rate_above_which_the_sender_could_not_go_is_called_a_lower_bound():
    ladder = draw(plots.receivers_ladder, make_bounds())
    least = "\N{GREATER-THAN OR EQUAL TO}"
    assert typed(ladder.title).startswith(f"Lossless, chapter 3 to 7: {least} x3.00 (Python), x2")
    assert "7 Power that keeps up, Python: 1 MiB 1500, 1 MiB is a lower bound," in ladder.words
    assert any(one.endswith(f", {least}") for one in ladder.seen)
    loss = draw(plots.loss, make_bounds())
    assert typed(loss.title).startswith(
        "Chapter 7 loses nothing up to ≥ 1 500 MB/s (Python), ≥ 3 000 MB/s (C). "
    )


# ---- Ladders ----


def test_the_title_of_the_ladder_is_what_its_chapters_gained_that_send_to_the_same_place():
    recording = make_ladder()
    elsewhere = make_rounds("tut_2_send", "c", [50.0] * 3, kind="loopback")
    noisy = make_rounds("tut_4_send_perf", "c", [50.0] * 3)
    later = make_rounds("tut_4_send_constant", "c", [2000.0] * 3, chapter=4)
    aside = make_rounds("tut_16_send_equal_packets", "c", [9000.0] * 3)
    measured = "chapter 5 to 10: x2.00 (Python, C)"
    for more, words in (
        ([], measured),
        (elsewhere, measured),
        (aside, measured),
        (noisy, measured),  # of random samples, where there are others
        (later, "chapter 4 to 10: x5.01 (C)"),
    ):
        drawn = draw(plots.ladder, recording, samples=(*recording.samples, *more))
        assert typed(drawn.title).startswith(f"1 MiB heaps, {words}.")
    alone = draw(plots.ladder, recording, samples=tuple(elsewhere))
    assert alone.title.startswith("The chapters' rates.")


def test_the_ladder_names_the_steps_that_gain_nothing():
    rates = {5: 1000.0, 6: 2000.0, 8: 2000.0, 10: 2000.0, 11: 3000.0}
    samples = [
        one
        for chapter, rate in rates.items()
        for language in ("python", "c")
        for one in make_rounds(find_chapter(str(chapter)).name, language, around(rate))
    ]
    drawn = draw(plots.ladder, Recording(HEADER, tuple(samples)))
    assert drawn.seen.count("difference") == drawn.seen.count("no") == 2  # for both languages
    assert drawn.seen.count(times(1.5)) == 2


def test_what_is_said_of_both_languages_lies_over_the_interval_of_neither():
    rates = {"python": [8000.0, 8100.0, 8200.0], "c": [5000.0, 8100.0, 9000.0]}
    samples = [
        one
        for chapter in ("5", "6")
        for language, some in rates.items()
        for one in make_rounds(find_chapter(chapter).name, language, some)
    ]
    (axis,) = (figure := draw(plots.ladder, Recording(HEADER, tuple(samples))).figure).axes
    figure.canvas.draw()
    (words,) = (one for one in axis.texts if one.get_text().endswith("difference"))
    intervals = [one.get_window_extent() for one in axis.lines if len(one.get_xdata()) == 2]
    assert len(intervals) == 4
    assert words.get_window_extent().count_overlaps(intervals) == 0


def test_a_picture_says_which_chapter_did_not_send_to_the_labs_device():
    other = make_sample("tut_2_send", "c", 50.0, device="lo", kind="loopback")
    drawn = draw(plots.ladder, Recording(HEADER, (other, *make_ladder().samples)))
    assert "dummy, MTU 9216 (chapter 2: loopback)" in drawn.words


def test_a_program_that_failed_even_to_warm_up_has_no_bar_but_a_word():
    recording = make_ladder()
    drawn = draw(plots.ladder, recording, samples=fail(recording, lambda one: one.chapter == 6))
    assert drawn.seen.count("failed: no rate") == 2
    for language in ("Python", "C"):
        assert f"6 Bigger packets, {language}: 1 MiB failed." in drawn.words
    assert "6010" not in drawn.svg.decode()
    warm_up = make_sample("tut_6_send_pktsize", "c", 1.0, warm_up=True, failure="it failed")
    drawn = draw(plots.ladder, recording, samples=(warm_up, *recording.samples))
    assert "Python: 1 MiB 6010. 6 Bigger packets, C: 1 MiB failed." in drawn.words


def test_below_the_chapters_are_the_peers_best_and_the_best_bare_loop_of_each_size():
    compared = [
        replace(one, implementation="spead2-source", elapsed_ns=one.elapsed_ns * 2)
        for one in make_ladder().samples
        if one.language == "python" and one.chapter in (6, 10)
    ]
    for variant, rate in (("one thread", 12000), ("one thread, 2 streams", 23000)):
        compared += make_rounds(
            "ceiling", "c", around(rate), implementation="ceiling", variant=variant
        )
    drawn = draw(plots.ladder, Recording(HEADER, (*compared, *make_ladder().samples)))
    for words in (
        "spead2 in Python its best chapter: 1 MiB 5005, 8 KiB 5005.",  # chapter 10's
        "bare system calls one thread, 2 streams: 1 MiB 23000.",
    ):
        assert words in drawn.words


# ---- Memory ----


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


def test_causes_show_the_size_at_which_a_difference_is_told():
    recording = as_new_memory(as_new_memory(make_memory(), 64 * MIB), MIB)
    drawn = draw(plots.causes, recording)
    assert "payload sent in MB/s" in drawn.seen
    assert "Heaps of 16 MiB" in drawn.seen
    assert "4\N{THIN SPACE}096" in drawn.seen


def test_causes_put_into_brackets_what_is_not_told():
    recording = make_memory()
    for n in (MIB, 16 * MIB, 64 * MIB):
        recording = as_new_memory(recording, n)
    drawn = draw(plots.causes, recording)
    assert drawn.seen.count(f"({TIMES}1.00)") == 6
    assert "64 MiB heaps: memory kept no difference found; used again no" in drawn.svg.decode()
    assert "in brackets:" not in drawing("causes").svg.decode()


# ---- Who works when ----

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


# ---- When messages leave ----


def lines_of(axis):
    """When each line of a panel is, in ms, sorted."""
    segments = [one for lines in axis.collections for one in lines.get_segments()]
    return sorted(round(float(points[0][0]), 6) for points in segments)


def test_there_is_a_line_at_the_time_of_each_message_of_three_heaps_and_the_next():
    one = make_spacing("tut_4_send_perf", True, 6000)
    figure = draw(plots.spacing, Recording(HEADER, (), spacings=(one,))).figure
    begins = [6.03 * heap for heap in range(4)]
    expected = [begin + 0.01 * message for begin in begins for message in range(4)]
    assert lines_of(figure.axes[0]) == pytest.approx(expected)
    of_one, of_next = figure.axes[0].collections[:2]
    assert of_one.get_color()[0].tolist() != of_next.get_color()[0].tolist()


def test_a_heap_that_was_held_up_is_not_shown():
    even = make_spacing("tut_4_send_perf", True, 100)
    late = [time + 10**8 * (heap > 14) for heap, time in zip(even.heaps, even.time_ns, strict=True)]
    one = replace(even, time_ns=tuple(late))
    figure = draw(plots.spacing, Recording(HEADER, (), spacings=(one,))).figure
    assert figure.axes[0].get_xlim()[1] < 1


def test_where_as_much_leaves_at_once_or_there_is_one_program_nothing_is_compared():
    runs = tuple(
        make_spacing(program, False, 100, 10, number)
        for program in ("tut_4_send_perf", "tut_5_send_pipeline")
        for number in range(7)
    )
    one = (make_spacing("tut_4_send_perf", True, 6000),)
    for spacings, words in (
        (runs, "What leaves at once: no difference found."),
        (one, "255 KiB leave at once in turns."),
    ):
        title = draw(plots.spacing, Recording(HEADER, (), spacings=spacings)).title
        assert title.startswith(words)

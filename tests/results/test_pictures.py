# SPDX-License-Identifier: BSD-3-Clause
"""What pictures say of recordings, a table; and where their bars, lines and points are."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import fields, replace

from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.measure.records import Recording, Sample, Timeline
from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results import plots
from spead_tutorial.results.plots.picture import TIMES, Line, Mark, as_sentences
from support.pictures import Drawing, bars_of, draw, drawing, fail, typed
from support.recordings import (
    EIGHT,
    KIB,
    MIB,
    NEW_MEMORY,
    PICTURES,
    TEN,
    around,
    make_bounds,
    make_rounds,
    make_sample,
)
from support.records import HEADER

MS = 1_000_000
Change = Callable[[Recording], Recording]

# ---- Changes to a recording ----


def of(*samples: Sample) -> Change:
    """Have these samples alone."""
    return lambda recording: Recording(HEADER, samples)


def only(measured: Callable[[Sample], object]) -> Change:
    return lambda one: dataclasses.replace(one, samples=tuple(filter(measured, one.samples)))


def failing(which: Callable[[Sample], bool]) -> Change:
    return lambda one: dataclasses.replace(one, samples=fail(one, which))


def more(*samples: Sample) -> Change:
    return lambda one: dataclasses.replace(one, samples=(*one.samples, *samples))


def again(**changes: Any) -> Change:
    """Have the same samples once more, a little different."""
    return lambda one: more(*(replace(sample, **changes) for sample in one.samples))(one)


def as_fast_as(of_whom: Callable[[Sample], bool], *sizes: int) -> Change:
    """Have all samples of a language, size and round as fast as one, at some sizes or at all."""

    def change(recording: Recording) -> Recording:
        ns = {
            (one.language, one.heap_size, one.round): one.elapsed_ns
            for one in recording.samples
            if of_whom(one)
        }
        samples = tuple(
            replace(one, elapsed_ns=ns[one.language, one.heap_size, one.round])
            if not sizes or one.heap_size in sizes
            else one
            for one in recording.samples
        )
        return dataclasses.replace(recording, samples=samples)

    return change


def with_header(**changes: Any) -> Change:
    return lambda one: dataclasses.replace(one, header=replace(one.header, **changes))


def with_mtu(mtu: int | None) -> Change:
    return with_header(lab={"kind": "dummy", "mtu": mtu})


def chapters(rates: dict[int, float]) -> tuple[Sample, ...]:
    """Rounds of chapters at these rates, in both languages."""
    return tuple(
        one
        for chapter, rate in rates.items()
        for language in ("python", "c")
        for one in make_rounds(find_chapter(str(chapter)).name, language, around(rate))
    )


def bounds(_: Recording) -> Recording:
    return make_bounds()


def with_all_received(recording: Recording) -> Recording:
    got = (replace(one, incomplete_packets=0, received_dropped=0) for one in recording.samples)
    return dataclasses.replace(recording, samples=tuple(got))


def in_turns_8(one: Sample) -> bool:
    return (one.language, one.program, one.implementation) == ("python", EIGHT, "ours")


def is_new_memory(one: Sample) -> bool:
    return one.program == NEW_MEMORY and not one.variant


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
FIRST_HEAP = {
    field.name: getattr(ALTERNATING, field.name)[:1]
    for field in fields(Timeline)
    if field.name.endswith("_ns")
}


def timed(run: Timeline) -> Change:
    return lambda recording: Recording(HEADER, (), (run,))


def same(recording: Recording) -> Recording:
    return recording


WARM_UP_FAILED = make_sample("tut_6_send_pktsize", "c", 1.0, warm_up=True, failure="it failed")
FAILED_6 = "6 Bigger packets, C: 1 MiB failed."
STEPS_5_TO_10 = "Chapters 5 to 10 make 1 MiB heaps twice as fast in Python and C"
LOOPBACK_2 = make_rounds("tut_2_send", "c", [50.0] * 3, kind="loopback", device="lo")
PEERS = [
    replace(one, implementation="spead2-source", elapsed_ns=one.elapsed_ns * 2)
    for one in PICTURES["ladder"][1].samples
    if one.language == "python" and one.chapter in (6, 10)
]
LOOPS = [
    one
    for variant, rate in (("one thread", 12000), ("one thread, 2 streams", 23000))
    for one in make_rounds("ceiling", "c", around(rate), implementation="ceiling", variant=variant)
]

#: A picture, what is changed of its recording, what it says then, and what it says no more.
SAYS = [
    # What was not measured is not spoken of.
    ("sweep", only(lambda one: one.implementation == "ours"), ["C, chapter 10"], ["bare calls"]),
    ("sweep", only(lambda one: one.program != EIGHT),
     ["make rates that nothing is compared with"], ["chapter 8"]),
    ("sweep", only(lambda one: not in_turns_8(one)), ["Python, chapter 10: 8 KiB 2000"],
     ["Python, chapter 8"]),
    ("packets", only(lambda one: one.packet_size == 9000), ["no difference that can be told"],
     ["fragment"]),
    ("loopback", only(lambda one: one.variant == "listener"), ["as fast as it can"],
     ["nobody listens"]),
    ("loopback", only(lambda one: one.variant), ["Loopback is compared with the lab."],
     ["the lab's device"]),
    # An MTU parts packets where it is known and smaller than some.
    ("packets", with_mtu(9216),
     ["; compared with 9000, fragments are 75 % slower", "\n9216: fragments\n"], []),
    ("packets", with_mtu(65536), [], ["fragments"]),
    ("packets", with_mtu(None), [], ["fragments"]),
    # Above such a rate the sender could not go.
    ("receivers", bounds, ["Chapters 3 to 7 make receiving without loss at least 3 times as fast",
     "\n\u2265 3.0\n",
     "7 Power that keeps up, Python: 1 MiB 1500, 1 MiB is a lower bound,"], []),
    ("lost", failing(lambda one: one.variant.endswith("1 % lost") and one.round == 0),
     ["1 % lost: failed: not all is accounted for.", "nothing in the way: 100 %"], []),
    ("hot", same, ["Without a thread, packets are lost from 40 ms of work a heap on",
                   "a thread, % of packets lost, or of heaps not whole: 20 ms a heap 0, 40"], []),
    ("hot", with_all_received, ["no packets are lost"], []),
    ("one slow", same, ["a slow sender costs 20 % in lossless groups, 0 % in lossy groups.",
                        "lossless groups", "lost 20 %", "1000 heaps of fast senders",
                        "The slow one, C, lossy, % of heaps received: 64 KiB 25."], []),
    ("one slow", failing(lambda one: not one.variant),
     ["costs 0 % in lossy groups.", "Fast senders, C: failed."], ["20 %"]),
    ("one slow", only(lambda one: one.variant), ["costs 0 % in lossy groups."], ["lossless"]),
    # The ladder's title is of chapters that send to the same place.
    ("ladder", same, [STEPS_5_TO_10], []),
    ("ladder", more(*LOOPBACK_2), [STEPS_5_TO_10, "dummy, MTU 9216 (loopback in chapter 2)"], []),
    ("ladder", more(*make_rounds("tut_16_send_equal_packets", "c", [9000.0] * 3)),
     [STEPS_5_TO_10], []),
    ("ladder", more(*make_rounds("tut_4_send_perf", "c", [50.0] * 3)), [STEPS_5_TO_10], []),
    ("ladder", more(*make_rounds("tut_4_send_constant", "c", [2000.0] * 3, chapter=4)),
     ["Chapters 4 to 10 make 1 MiB heaps 5 times as fast in C"], []),
    ("ladder", of(*LOOPBACK_2), ["The chapters send at these rates "], []),
    ("ladder", failing(lambda one: one.chapter == 6),
     [FAILED_6, FAILED_6.replace("C:", "Python:"), "failed: no rate\nfailed: no rate\n"], ["6010"]),
    ("ladder", more(WARM_UP_FAILED), ["Python: 1 MiB 6010. " + FAILED_6], []),
    ("ladder", more(*PEERS, *LOOPS),
     ["spead2 in Python, its best chapter: 1 MiB 5005, 8 KiB 5005.",  # chapter 10's
      "bare system calls, one thread, 2 streams: 1 MiB 23000."], []),
    # Of the largest heaps.
    ("causes", same,
     ["payload sent in MB/s\n", "64 MiB heaps twice as fast", "16 384\n"], []),
    ("causes", as_fast_as(is_new_memory), ["64 MiB heaps not measurably faster"], []),
    ("timeline", timed(ALTERNATING), ["The network thread sends 20 % of the time in turns."], []),
    ("timeline", timed(replace(ALTERNATING, **FIRST_HEAP)), ["heaps 0 to 0 of 1"], []),
    # Of constant samples without a limit.
    ("timeline", same,
     ["Overlapping keeps the network thread sending 100 % of the time, not 57 %.",
      "constant sam"], []),
    ("pipeline", only(lambda one: not one.random),
     ["Constant samples, a core each, C, gain: 1 MiB x1.50 ("], ["Random"]),
]  # fmt: skip


def all_said(drawn: Drawing) -> str:
    """Title and words, and what is drawn, each in a line."""
    return typed("\n".join([f"{drawn.title} ", drawn.words, *drawn.seen, ""]))


@pytest.mark.parametrize(("name", "change", "there", "gone"), SAYS)
def test_a_picture_says_what_its_recording_has_and_nothing_else(name, change, there, gone):
    picture, recording = PICTURES[name]
    said = all_said(draw(picture, change(recording)))
    assert [words for words in there if words not in said] == []
    assert [words for words in gone if words in said] == []


def with_failed_splits(recording: Recording) -> Recording:
    failed = (replace(one, failure="no", own={}) for one in recording.splits)
    return dataclasses.replace(recording, splits=(*failed, *recording.splits))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("sweep", more(*make_rounds(TEN, "c", [50.0] * 7, heap_size=8 * KIB, packet_size=8240,
                                    variant="equal"))),
        ("causes", more(*make_rounds(NEW_MEMORY, "c", [100.0] * 7, heap_size=8 * KIB,
                                     page_faults=0))),
        ("receiving", again(variant="")),
        ("ladder", again(implementation="spead2", elapsed_ns=1)),
        ("where", again(warm_up=True, elapsed_ns=10)),
        ("where", with_failed_splits),
    ],
)  # fmt: skip
def test_what_is_no_part_of_a_picture_does_not_change_it(name, change):
    def without_caption(drawn: Drawing) -> list[str]:
        return [drawn.title, drawn.words.split(" a processor")[0], *drawn.seen]

    picture, recording = PICTURES[name]
    drawn = draw(picture, change(recording))
    assert without_caption(drawn) == without_caption(drawing(name))


# ---- Where bars and lines are ----


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


def test_a_larger_rate_is_farther_to_the_right_in_a_ladder():
    found = drawing("ladder").points
    by_rate = sorted((values for _, values in found if values[0] == MIB), key=lambda one: one[1])
    from_left = [values[5] for values in by_rate]
    assert from_left == sorted(from_left)
    rows = {line.name.rpartition(", ")[0] for line, _ in found}
    assert rows == {"5 Send while preparing", "6 Bigger packets", "10 Reuse heaps"}


def test_bars_are_at_the_times_that_were_recorded():
    figure = draw(PICTURES["timeline"][0], Recording(HEADER, (), (ALTERNATING,))).figure
    found = bars_of(figure.axes[0])
    program, network = (
        [(left, right) for left, right, y in found if y == row]
        for row in sorted({y for *_, y in found})
    )
    assert program == [(0, 6), (10, 16)]  # between them it waits
    assert network == [(6, 8), (16, 18)]


# ---- Points, as data ----


def test_a_picture_for_the_site_has_its_points_in_a_file_where_there_are_some(tmp_path):
    for name in ("sweep", "lost"):
        plots.save_for_site(tmp_path / f"{name}.svg", drawing(name).picture)
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"sweep.svg", "sweep-dark.svg", "sweep.json", "lost.svg", "lost-dark.svg"}
    found = json.loads((tmp_path / "sweep.json").read_text())
    assert {len(values) for values in found["points"]} == {8}
    (line,) = (n for n, one in enumerate(found["lines"]) if one["name"] == "C, chapter 10")
    (small,) = (values for n, *values in found["points"] if (n, values[0]) == (line, 8 * KIB))
    assert small[1] == pytest.approx(2600, rel=0.05)


def test_what_a_search_has_found_is_another_point_than_a_run():
    searched, ran = (
        {line.key for line, _ in drawing(name).points if line.key}
        for name in ("receivers", "receiving")
    )
    assert {key[-1] for key in searched} == {"searched"}
    assert "searched" not in {word for key in ran for word in key}
    assert len({key[4] for key in ran}) == 2  # sizes of packets


def test_a_gain_is_rounded_once_where_it_is_said_in_words():
    one = Mark(Line("gain", "", unit=TIMES), KIB, Estimate(0.9953, 0.98, 1, 9), 0, 0)
    assert typed(as_sentences([one])) == "gain: 1 KiB x1.00 (0.98 to 1.00)."

# SPDX-License-Identifier: BSD-3-Clause
"""What pictures say, drawn and in words; and that they say nothing that is not in their record."""

import dataclasses
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from spead_tutorial.measure.records import Recording, Sample
from spead_tutorial.results import plots
from support.pictures import draw, drawing, fail, typed
from support.recordings import (
    EIGHT,
    IN_CPP,
    KIB,
    MIB,
    NEW_MEMORY,
    PICTURES,
    TEN,
    make_lost,
    make_rounds,
)
from support.records import make_spacing

DASH = "\N{EN DASH}"
SITUATIONS = ["without a limit", "without a limit, pinned", "behind a link of 10 Gb/s"]
SIZES = ["8 KiB", "64 KiB", "512 KiB", "4 MiB", "size of a heap"]

#: How the title of a picture begins, sentences of its words, and some that are drawn, in order.
SAID: dict[str, tuple[str, list[str], list[str]]] = {
    "sweep": (
        "Heaps used again: x4.00 (Python), x2.89 (C) at 8 KiB, x1.27 (Python), x1.28 (C) at 4 MiB",
        [
            # What is on top comes first, and the gains come last.
            "chapter 10, C: 8 KiB 2600, 64 KiB 4300, 512 KiB 6000, 4 MiB 7700. C: chapter 8: 8",
            "spead2, Python: 8 KiB 1100, 64 KiB 2800, 512 KiB 4500, 4 MiB 6200. Python: chapter 8:",
            "bare calls: two threads, fill and copy: 8 KiB 8000, 64 KiB 8100, 512 KiB 8200,"
            " 4 MiB 8300. chapter 10, C, gain over C: chapter 8: 8 KiB x2.89 (2.89 to 2.89), 64",
        ],
        ["Python: payload sent, MB/s", *SIZES, "Gb/s", "C", *SIZES],
    ),
    "ladder": (
        "1 MiB heaps, from the end of chapter 4 to 10: x2.50 (Python, C). ",
        [
            "6 Bigger packets, Python: 1 MiB 6010. 6 Bigger packets, C: 1 MiB 6010.",
            "10 Reuse heaps, C, gain over the step before: 1 MiB x1.67.",
        ],
        ["4 Measure it", "x1.50", "x1.50", "x1.67", "x1.67", "Python", "C"],
    ),
    IN_CPP: (
        "1 MiB heaps, from the end of chapter 4 to 10: x2.50 (Python, C, C++). ",
        ["6 Bigger packets, C++: 1 MiB 6010.", "10 Reuse heaps, C++: 1 MiB 10010, 8 KiB 10010."],
        ["x1.50", "x1.50", "x1.50", "Python", "C", "C++"],
    ),
    "ways": (
        "A recording: x1.50 (Python, C) at 1 MiB. Chapter 15",
        ["copied, by the kernel, C: 64 KiB 2000, 1 MiB 2000. read in place, Python: 64 KiB 3000,"],
        ["copied, by the kernel", "read in place", "bare system calls, copied"],
    ),
    "memory": (
        "Memory used again: x2.00 (Python), x1.97 (C) at 64 MiB. New memory",
        [
            "Caches of the machine: L2 2 MiB.",
            "C, new memory: 1 MiB 3100, 16 MiB 3100, 64 MiB 3100."
            " C, new memory, page faults a heap: 1 MiB 256, 16 MiB 4096, 64 MiB 16384.",
            "C, used again, page faults a heap: 1 MiB 0, 16 MiB 0",
            "C, used again, gain: 1 MiB x1.97 (1.97 to 1.97)",
        ],
        ["L2 2 MiB"],
    ),
    "causes": (
        "64 MiB heaps: memory kept x1.83 (Python), x1.81 (C); used again x2.00 (Python), x1.97 (C)."
        " Why",
        [
            "new memory, C: 64 MiB 3100. new memory, C, page faults a heap: 64 MiB 16384. huge",
            "huge pages, Python, gain: 64 MiB x1.50.",
            "huge pages, Python, gain: 1 MiB x1.50 (1.50 to 1.50), 16 MiB x1.50 (1.50 to 1.50).",
        ],
        [
            *("Heaps of 64 MiB", "3 000", "3 100", "huge pages", "4 500", "4 600", "memory kept"),
            *("5 500", "5 600", "used again", "6 100", "x2.00", "x1.97", "16 384", "16 384"),
            *("huge pages", "memory kept", "used again"),
            *("Heaps of 1 MiB", "6 of 6 differences told"),
            *("Heaps of 16 MiB", "6 of 6 differences told"),
        ],
    ),
    "packets": (
        "Packets of 9000, not 1472 bytes: x1.50 (Python, C); in fragments x0.25 (Python, C).",
        ["C: 512 bytes 4000, 1472 bytes 8000, 9000 bytes 12000, 9184 bytes 12100, 16384 bytes 300"],
        [
            *("512", "9000", "1472", "9184", "(logarithmic; 9000 to 9184 drawn apart)"),
            *("Sent whole (MTU 9216)", "16384", "In fragments"),
        ],
    ),
    "loopback": (
        "Loopback, a fast listener, beside the lab: x0.37 (Python, C).",
        [
            "a slow listener, C: 1 MiB 700, sent 118, got 60, dropped 58.",
            "nobody listens, Python: 1 MiB 900, sent 118, ICMP errors 118.",
            "the lab's device, C: 1 MiB 4000, sent 118.",
        ],
        [
            # What was not counted is a dash.
            *"- - 118 - - 118 60 58 - 60 58 - 118 - 118 - - - - - - -".replace("-", DASH).split(),
            *("of 118 packets a heap", "got", "dropped", "ICMP errors"),
        ],
    ),
    "pipeline": (
        "Constant samples, without a limit, pinned: overlapped x1.50 (Python, C).",
        [
            "Random samples, without a limit, in turns, C: 1 MiB 100. Random samples, without a"
            " limit, overlapped, C: 1 MiB 150.",
            "Constant samples, behind a link of 10 Gb/s, C, gain: 1 MiB x1.50 (1.50 to 1.50).",
            "Time of heaps 4 to 11, Random samples, in turns, in Python:"
            " preparing 80 %, waiting 20 %.",
        ],
        ["Random samples", *SITUATIONS, "Constant samples", *SITUATIONS, "preparing", "waiting"],
    ),
    "timeline": (
        "Constant samples: network thread busy 57 % in turns, 100 % overlapped.",
        [
            "Random samples, in turns: heaps 2 to 8 of 12, 70 ms; network thread busy 20 % of the"
            " time, program preparing 80 %, waiting 20 %; median of a heap: 8 ms to prepare, 2 ms",
        ],
        [
            *("Random samples", "70 ms from left to right", "asleep", "In turns"),
            "network thread busy 20 % of the time, program preparing 80 %",
            *("1 ms", "Overlapped", "1 ms", "Constant samples"),
            "4.4 ms from left to right, magnified x16",
            *("In turns", "1 ms", "Overlapped", "1 ms"),
            *("Constant samples, link of 10 Gb/s", "Overlapped", "1 ms"),
            "Who works when: program and network thread (Python, heaps of 1 MiB)",
            "times of one run each, bars: heaps from its middle, shares: heaps 4 to 11",
        ],
    ),
    "where": (
        # Chapter 13: 45 of 70 looks, of half the time; chapter 10's stream: 45 of 50, of 3/4.
        "The kernel's work: 32 % to 68 % of a heap's time. Where",
        [
            "Chapter 10, Python, program: fill, ns: 8 KiB 500, 1 MiB 25000.",
            "Chapter 10, Python, stream: not running: 8 KiB 25 %, 1 MiB 25 %.",
            "Chapter 13, C, program: fill, ns: 8 KiB 143,",
        ],
        # Parts that have room are named in the bar, and all in the legend.
        [*["wake-up", "copy"] * 2, *["copy"] * 2, *["wake-up", "copy"] * 2, *["copy"] * 2,
         "packetizing", "wake-up", "copy", "looking", "queue", "not running"],
    ),
    "spacing": (
        "Random samples, no limit: 255 KiB leave at once in turns, 252 KiB overlapped.",
        # Gaps are 7 us longer from round to round: the fourth of seven has the median.
        ["Random samples, no limit, in turns: silent for 6.02 ms, 255 KiB at once."],
        [
            # Three heaps of four messages, 10 us apart, and a gap of 6021 us, or of 41 us.
            *("Random samples, no limit", "18.2 ms from left to right", "in turns", "overlapped"),
            *("0.05 ms", "Constant samples, no limit"),
            *("0.21 ms from left to right, magnified x85", "overlapped"),
            *("silent for 41 µs, 148 KiB at once", "0.05 ms"),
            "When packets leave: in turns and overlapped (Python)",
        ],
    ),
    "ceiling": (
        "Bare calls, up to x2.50: one thread, read in place, huge pages, at 1 MiB.",
        [
            "fill and copy, 2 streams: 8 KiB 12000, 1 MiB 12000. read in place, huge pages,"
            " one thread: 8 KiB 10000, 1 MiB 20000.",
        ],
        [
            *("Heaps of 1 MiB", "one thread", "two threads", "2 streams", "one thread"),
            "Heaps of 8 KiB",
        ],
    ),
    "receiving": (
        "C beside spead2's C++: x1.50 (packets of 1472 bytes, packets of 9000 bytes) at 16 MiB.",
        [
            "C, packets of 1472 bytes: 64 KiB 4500, 1 MiB 4500, 16 MiB 4500.",
            "C++, packets of 9000 bytes, CPU seconds per GB: 64 KiB 0.2, 1 MiB 0.2, 16 MiB 0.2.",
        ],
        [],
    ),
    "receivers": (
        "1 MiB heaps, from chapter 3 to 7: x3.00 (Python), x2.00 (C).",
        [
            "7 Power that keeps up, C: 1 MiB 3000, 64 KiB 3000.",
            "7 Power that keeps up, C, gain over the step before: 1 MiB x2.00, 64 KiB x2.00.",
            "spead2 from source the same in C++: 1 MiB 2000, 64 KiB 2000.",
        ],
        ["3 A first receiver", "7 Power that keeps up", "bare system calls", "bare system calls"],
    ),
    "loss": (
        "Chapter 7 loses nothing up to 1 500 MB/s (Python), 3 000 MB/s (C). Heaps of 1 MiB,",
        [
            "chapter 7, C, without loss: 1 MiB 3000. chapter 7, C, % of packets lost:"
            " at 3030 MB/s 0, at 3213 MB/s 2, at 6000 MB/s 50.",
        ],
        [],
    ),
    "lost": (
        "1 % of the packets lost: 20 % of the heaps.",
        [
            "nothing in the way: 100 % in heaps that the program got. 1 % lost: 80 % in heaps that"
            " the program got, 19 % received, of heaps not whole, 1 % lost on the way. buffer",
            "ring of 1: 75 % in heaps that the program got, 15 % received, of heaps not whole,"
            " 10 % dropped by the socket, ring full 40 times, up to 5 ms. "
            "ring of 1, full ring drops: 60 % in heaps that the program got,"
            " 40 % in heaps that the full ring dropped. ",
        ],
        [
            *("nothing in the way", "1 % lost", "buffer of 8 KiB", "ring of 1"),
            "ring of 1, full ring drops",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PICTURES)
def test_title_and_words_of_a_picture_and_what_is_drawn_are_those_of_its_record(name):
    drawn, (title, sentences, shown) = drawing(name), SAID[name]
    assert typed(drawn.title).startswith(title)
    assert [one for one in sentences if one not in typed(drawn.words)] == []
    assert [words for words in map(typed, drawn.seen) if words in shown] == shown


def said(picture: plots.Draw, recording: Recording) -> str:
    """All but the caption."""
    drawn = draw(picture, recording)
    return typed(" ".join([drawn.title, drawn.words.split(" a processor")[0], *drawn.seen]))


def not_before(one: Sample) -> bool:
    return (one.language, one.program, one.implementation) != ("python", EIGHT, "ours")


@pytest.mark.parametrize(
    ("name", "measured", "there", "gone"),
    [
        ("sweep", lambda one: one.implementation == "ours", "chapter 10, C", "spead2|bare calls"),
        ("sweep", lambda one: one.program != EIGHT, "chapter 10, C", ", gain|gain:"),
        ("sweep", not_before, "Python: 8 KiB 2000", "chapter 10, Python, gain"),
        ("memory", lambda one: one.program == NEW_MEMORY, "C, new memory", "gain:|used again: 1"),
        ("causes", lambda one: one.heap_size == 64 * MIB, "Heaps of 64 MiB", "Heaps of 1"),
        ("packets", lambda one: one.packet_size == 9000, "several sizes.", "1472|fragment"),
        ("loopback", lambda one: one.variant == "listener", "as fast as it can", "nobody listens"),
        ("loopback", lambda one: one.variant, "Loopback, beside the lab.", "lab's device"),
        (
            "ceiling",
            lambda one: "2 streams" not in one.variant or one.heap_size == MIB,
            "fill and copy, 2 streams: 1 MiB 12000.",
            "huge pages, one thread: 8 KiB 10000, 1 MiB 20000, ",
        ),
    ],
)  # fmt: skip
def test_nothing_is_said_of_what_was_not_measured(name, measured, there, gone):
    picture, recording = PICTURES[name]
    samples = tuple(filter(measured, recording.samples))
    words = said(picture, dataclasses.replace(recording, samples=samples))
    assert there in words
    assert [one for one in gone.split("|") if one in words] == []


def runs(*args: object, **more: object) -> Callable[[Recording], dict[str, object]]:
    """Further samples."""
    return lambda one: {"samples": (*one.samples, *make_rounds(*args, **more))}  # type: ignore[arg-type]


def all_again(**changes: object) -> Callable[[Recording], dict[str, object]]:
    """The same samples once more, a little different."""
    return lambda one: {"samples": (*(replace(s, **changes) for s in one.samples), *one.samples)}


def failed_splits(recording: Recording) -> dict[str, object]:
    failed = (replace(one, failure="no", own={}) for one in recording.splits)
    return {"splits": (*failed, *recording.splits)}


def failed_spacing(recording: Recording) -> dict[str, object]:
    run = make_spacing("tut_4_send_perf", False, 10)
    run = replace(run, heaps=(), time_ns=(), message_bytes=(), failure="no")
    return {"spacings": (run, *recording.spacings)}


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("sweep", runs(TEN, "c", [50.0] * 7, heap_size=8 * KIB, packet_size=8240, variant="equal")),
        ("causes", runs(NEW_MEMORY, "c", [100.0] * 7, heap_size=8 * KIB, page_faults=0)),
        ("loopback", runs("tut_6_send_pktsize", "c", [9.0] * 7, packet_size=65504)),
        ("receiving", all_again(variant="")),
        ("ladder", all_again(implementation="spead2", elapsed_ns=1)),
        ("where", all_again(warm_up=True, elapsed_ns=10)),
        ("where", failed_splits),
        ("spacing", failed_spacing),
    ],
)
def test_what_is_no_part_of_a_picture_does_not_change_it(name, more):
    picture, recording = PICTURES[name]
    assert said(picture, dataclasses.replace(recording, **more(recording))) == said(*PICTURES[name])


def test_a_bottleneck_of_which_a_sample_failed_has_no_bar():
    recording = make_lost()
    failed = fail(recording, lambda one: one is recording.samples[0])
    words = draw(plots.lost, recording, samples=failed).words
    assert "1 % lost: failed: not all is accounted for." in words
    assert "nothing in the way: 100 %" in words

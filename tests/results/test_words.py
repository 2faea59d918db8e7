# SPDX-License-Identifier: BSD-3-Clause
"""Pictures say nothing that is not in their record; all that they say of one: test_figures.py."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from spead_tutorial.measure.records import Recording, Sample
from spead_tutorial.results import plots
from support.pictures import Drawing, draw, drawing, fail, typed
from support.recordings import EIGHT, KIB, NEW_MEMORY, PICTURES, TEN, example, make_rounds
from support.records import make_spacing


def said(drawn: Drawing) -> str:
    """All but the caption."""
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
        ("packets", lambda one: one.packet_size == 9000, "several sizes.", "1472|fragment"),
        ("loopback", lambda one: one.variant == "listener", "as fast as it can", "nobody listens"),
        ("loopback", lambda one: one.variant, "Loopback, not the lab.", "lab's device"),
        ("ceiling", lambda one: "huge" not in one.variant, "2 streams, fill and copy: 1", "huge"),
    ],
)  # fmt: skip
def test_nothing_is_said_of_what_was_not_measured(name, measured, there, gone):
    picture, recording = PICTURES[name]
    samples = tuple(filter(measured, recording.samples))
    words = said(draw(picture, recording, samples=samples))
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
    assert said(draw(picture, recording, **more(recording))) == said(drawing(name))


def test_a_bottleneck_of_which_a_sample_failed_has_no_bar():
    recording = example("lost")
    failed = fail(recording, lambda one: one is recording.samples[0])
    words = draw(plots.lost, recording, samples=failed).words
    assert "1 % lost: failed: not all is accounted for." in words
    assert "nothing in the way: 100 %" in words

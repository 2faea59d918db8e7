# SPDX-License-Identifier: BSD-3-Clause
"""The ladder of chapters, and the ways beside each other of a chapter."""

from msgspec.structs import replace

from spead_tutorial import plots
from spead_tutorial.catalogue import find_chapter
from spead_tutorial.records import Recording
from spead_tutorial.units import times
from support.pictures import draw, fail, typed
from support.recordings import around, make_ladder, make_rounds, make_sample
from support.records import HEADER


def test_the_title_of_the_ladder_is_what_its_chapters_gained_that_send_to_the_same_place():
    recording = make_ladder()
    elsewhere = make_rounds("tut_2_send", "c", [50.0] * 3, kind="loopback")
    later = make_rounds("tut_4_send_constant", "c", [2000.0] * 3, chapter=4)
    aside = make_rounds("tut_16_send_equal_packets", "c", [9000.0] * 3)
    measured = "from the end of chapter 4 to 10: x2.50 (Python, C)"
    for more, words in (
        ([], measured),
        (elsewhere, measured),
        (aside, measured),
        # It is the last program of chapter 4 that is gone on from.
        (later, "from the end of chapter 4 to 10: x5.01 (C)"),
    ):
        drawn = draw(plots.ladder, recording, samples=(*recording.samples, *more))
        assert typed(drawn.title).startswith(f"1 MiB heaps, {words}.")
    alone = draw(plots.ladder, recording, samples=tuple(elsewhere))
    assert alone.title.startswith("The chapters' rates.")


def test_the_ladder_names_the_steps_that_gain_nothing():
    rates = {4: 1000.0, 6: 2000.0, 8: 2000.0, 10: 2000.0, 11: 3000.0}
    samples = [
        one
        for chapter, rate in rates.items()
        for language in ("python", "c")
        for one in make_rounds(find_chapter(str(chapter)).name, language, around(rate))
    ]
    drawn = draw(plots.ladder, Recording(HEADER, tuple(samples)))
    assert "No difference found in steps 8 to 10 at" in drawn.title
    assert sum(one.startswith("no difference found") for one in drawn.seen) == 4
    # With one panel there is room for the rates, too.
    assert f"{times(1.5)}, 3 GB/s" in drawn.seen


def test_a_picture_says_which_chapter_did_not_send_to_the_labs_device():
    other = make_sample("tut_2_send", "c", 50.0, device="lo", kind="loopback")
    drawn = draw(plots.ladder, Recording(HEADER, (other, *make_ladder().samples)))
    assert "dummy, MTU 9216 (chapter 2: loopback)" in drawn.words


def test_a_program_that_failed_has_no_bar_but_a_word():
    recording = make_ladder()
    drawn = draw(plots.ladder, recording, samples=fail(recording, lambda one: one.chapter == 6))
    assert drawn.seen.count("failed: no rate") == 2
    for language in ("Python", "C"):
        assert f"6 Bigger packets, {language}: 1 MiB failed." in drawn.words
    assert "6010" not in drawn.svg.decode()


def test_a_program_of_which_the_warm_up_failed_has_failed_in_the_ladder():
    warm = make_sample("tut_6_send_pktsize", "c", 1.0, warm_up=True, failure="it failed")
    drawn = draw(plots.ladder, Recording(HEADER, (warm, *make_ladder().samples)))
    assert "Python: 1 MiB 6010. 6 Bigger packets, C: 1 MiB failed." in drawn.words


def test_below_the_chapters_are_the_peers_best_and_the_bare_loops_of_each_size():
    beside = [
        replace(one, implementation="spead2-source", elapsed_ns=one.elapsed_ns * 2)
        for one in make_ladder().samples
        if one.language == "python" and one.chapter in (6, 10)
    ]
    for variant, rate in (("one thread", 12000), ("one thread, 2 streams", 23000)):
        beside += make_rounds(
            "ceiling", "c", around(rate), implementation="ceiling", variant=variant
        )
    drawn = draw(plots.ladder, Recording(HEADER, (*beside, *make_ladder().samples)))
    for words in (
        "spead2 from source its best chapter: 1 MiB 5005, 8 KiB 5005.",  # chapter 10's
        "bare system calls one thread: 1 MiB 12000.",
        "bare system calls one thread, 2 streams: 1 MiB 23000.",
    ):
        assert words in drawn.words

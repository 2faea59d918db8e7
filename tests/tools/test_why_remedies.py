# SPDX-License-Identifier: BSD-3-Clause
"""What remedies gain: which are tried for which sender, and that the bare loop does them.

Nothing is timed: rates are made by hand, and of loops that run packets and calls are counted.
"""

import mmap
from typing import Any

import pytest

from spead_tutorial.tools.why import trying
from spead_tutorial.tools.why.facts import GB, Calls, Packets, Run
from spead_tutorial.tools.why.places import InLab
from spead_tutorial.tools.why.remedies import (
    FITTING,
    LARGER,
    MENDS,
    OFFLOAD,
    REUSED,
    SENDMMSG,
    Gain,
    Tried,
    gain,
    gains_of,
)
from spead_tutorial.tools.why.report import CHAPTERS
from spead_tutorial.tools.why.trying import Way, lacking, new_share, sets_of, tried, way_of
from support.labs import needs_lab, open_lab

LARGEST = 9188
SLOW = (100.0, 50.0, 200.0)
TRIED = (
    Tried((), SLOW),
    Tried((LARGER,), (600.0, 250.0, 1400.0)),
    Tried((SENDMMSG,), (110.0, 60.0, 240.0)),
    Tried((OFFLOAD,), (1000.0, 500.0, 2000.0)),
    Tried((LARGER, OFFLOAD), (2000.0, 1000.0, 4000.0)),
    Tried((LARGER, SENDMMSG, OFFLOAD), (2500.0, 1250.0, 5000.0)),
)


def packets(size: int = 9000, per_message: int = 1, pieces: int = 1, **facts: Any) -> Packets:
    """A gigabyte in packets of one size, in messages that the kernel may cut into pieces."""
    n = GB // size
    counts = {"messages": n // per_message * pieces, "packets": n, "payload_bytes": GB}
    counts |= {"fragments": n * (pieces - 1), "packet_bytes": size, "heap_bytes": 1 << 20}
    return Packets(**counts | facts)


def calls(per_call: int = 1, **facts: Any) -> Calls:
    counts = {"send_calls": 1000, "messages": 1000 * per_call, "names": ("sendto",)}
    return Calls(**{**counts, "seconds": 1.0, "mapped_bytes": 0} | facts)


def lacks(seen: Packets, called: Calls | None, new: float = 0.0) -> tuple[str, ...]:
    return lacking(way_of(seen, called, new), seen, LARGEST)


# ---- What they gain ----


def test_a_gain_is_that_within_rounds_with_the_range_of_these():
    assert gain(TRIED, (LARGER,)) == Gain(6.0, 5.0, 7.0, (LARGER,), measured=True)
    assert gain(TRIED, (OFFLOAD,)) == Gain(10.0, 10.0, 10.0, (OFFLOAD,), measured=True)
    with pytest.raises(ValueError, match="reused memory was not tried"):
        gain(TRIED, (REUSED,))


def test_a_finding_has_what_its_own_remedy_gains_and_what_others_do_with_it_and_alone():
    own, others = gains_of("small-packets", TRIED)
    assert own == gain(TRIED, (LARGER,))
    assert [one.remedies for one in others] == [
        (SENDMMSG,),
        (OFFLOAD,),
        (LARGER, OFFLOAD),
        (LARGER, SENDMMSG, OFFLOAD),
    ]
    assert gains_of("fresh-memory", TRIED) == (None, ())
    assert gains_of("sleeps", TRIED) == (None, ())
    assert MENDS.keys() < CHAPTERS.keys()


def test_packets_are_cut_for_the_offload_and_never_said_to_gain_without_it():
    cut = Tried((FITTING,), (70.0, 35.0, 140.0))
    both = Tried((FITTING, OFFLOAD), (300.0, 150.0, 600.0))
    own, others = gains_of("fragments", (Tried((), SLOW), cut, both))
    assert own == gain((Tried((), SLOW), both), (FITTING, OFFLOAD))
    assert others == ()


# ---- Which are tried ----


@pytest.mark.parametrize(
    ("seen", "called", "new", "remedies"),
    [
        (packets(), calls(), 0.0, (SENDMMSG, OFFLOAD)),
        (packets(), calls(64), 0.0, (OFFLOAD,)),
        (packets(), None, 0.0, (OFFLOAD,)),  # its calls may be for many
        (packets(per_message=7), calls(), 0.0, ()),
        (packets(per_message=7), calls(), 0.2, (REUSED,)),
        (packets(1024), calls(), 0.0, (LARGER, SENDMMSG, OFFLOAD)),
        (packets(1472, per_message=44), calls(), 0.0, (LARGER,)),
        (packets(8248, heap_bytes=8192), calls(), 0.0, (SENDMMSG, OFFLOAD)),
        (packets(1080, heap_bytes=1024), calls(), 0.0, (SENDMMSG, OFFLOAD)),  # a heap in each
        (packets(16384, pieces=2), calls(), 0.0, (FITTING, SENDMMSG, OFFLOAD)),
        (packets(packets=15), calls(), 1.0, ()),  # too few to say anything of
    ],
)
def test_a_sender_lacks_what_it_does_not_do(seen, called, new, remedies):
    assert lacks(seen, called, new) == remedies


def test_each_remedy_is_tried_alone_and_together_unless_the_kernel_cannot():
    assert sets_of(()) == ((),)
    assert sets_of((OFFLOAD,)) == ((), (OFFLOAD,))
    assert sets_of((LARGER, SENDMMSG, OFFLOAD)) == tuple(one.remedies for one in TRIED)
    with_cuts = ((), (FITTING,), (SENDMMSG,), (FITTING, OFFLOAD), (FITTING, SENDMMSG, OFFLOAD))
    assert sets_of((FITTING, SENDMMSG, OFFLOAD)) == with_cuts


def test_memory_counts_as_new_whether_it_is_touched_or_asked_for_in_huge_pages():
    run = Run(1.0, 1, GB, ())
    assert new_share(packets(), None, run) == 0.0
    sent = 1000 * 9000
    assert new_share(packets(), calls(mapped_bytes=sent // 2), run) == pytest.approx(0.5, 0.01)


def test_what_a_sender_says_of_its_heaps_makes_no_loop_too_large():
    way = way_of(packets(100, heap_bytes=1 << 40), calls(1 << 20), 0.0)
    assert way.heap_bytes <= 1 << 24
    assert way.heap_bytes // way.packet_bytes <= 1 << 14
    assert way.messages == 64
    assert way_of(packets(100, packet_bytes=1, heap_bytes=1), calls(), 0.0).packet_bytes == 64


# ---- That they are done ----


@needs_lab
def test_bare_loops_send_as_the_sender_does_and_with_what_it_lacks(monkeypatch):
    """A heap of 256 KiB fills 17 datagrams of 16 KiB, and all but the last are cut in two."""
    done, loop = {}, trying.ran

    def counting(spot: InLab, way: Way, heaps: int) -> Any:
        before = spot.counters()
        report = loop(spot, way, heaps)
        counted = (spot.counters() - before).packets / heaps
        is_new = report.page_faults >= heaps * way.heap_bytes / mmap.PAGESIZE
        calls_each = report.send_calls == report.messages
        done[way] = report.packets / heaps, report.messages / heaps, counted, calls_each, is_new
        return report

    monkeypatch.setattr(trying, "ran", counting)
    monkeypatch.setattr(trying, "ROUNDS", 2)
    monkeypatch.setattr(trying, "_EACH_S", 1e-3)
    seen, said = packets(16384, pieces=2, heap_bytes=1 << 18), []
    run = Run(1.0, 1, GB, ())
    with open_lab() as lab:
        found = tried(InLab(lab), seen, calls(mapped_bytes=1000 * 16384), run, said.append)
    assert isinstance(found, tuple)
    assert dict(zip([one.remedies for one in found], done.values(), strict=True)) == {
        (): (17, 17, 33, True, True),
        (FITTING,): (29, 29, 29, True, True),
        (SENDMMSG,): (17, 17, 33, False, True),
        (REUSED,): (17, 17, 33, True, False),
        (FITTING, OFFLOAD): (29, 5, 5, True, True),
        (FITTING, SENDMMSG, OFFLOAD, REUSED): (29, 5, 5, False, False),
    }
    assert [len(one.rates) for one in found] == [2] * len(done)
    assert len(said) == 2


@needs_lab
def test_where_there_is_no_bare_loop_that_is_said(monkeypatch):
    monkeypatch.setattr(trying, "CEILING", "nosuch")
    with open_lab() as lab:
        said = tried(InLab(lab), packets(), None, Run(1.0, 1, GB, ()), print)
    assert isinstance(said, str)
    assert said.startswith("What remedies gain was not measured: the package has no program nosuch")

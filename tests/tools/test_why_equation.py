# SPDX-License-Identifier: BSD-3-Clause
"""The equation, on observations made by hand: its parts sum, and what mending one gains."""

import json
import re
from typing import Any

import pytest
from msgspec.structs import replace

from spead_tutorial.results import tables
from spead_tutorial.tools.why import findings, loops
from spead_tutorial.tools.why.equation import account
from spead_tutorial.tools.why.facts import (
    Call,
    Calls,
    Loop,
    Packets,
    Run,
    Seen,
    Thread,
    Waited,
    Watched,
    Way,
)
from spead_tutorial.tools.why.findings import diagnose
from spead_tutorial.tools.why.loops import (
    BATCHES,
    BEST,
    BOTH,
    LARGER,
    OFFLOAD,
    otherwise,
    way_of,
)
from spead_tutorial.tools.why.report import as_object, seen_of, text
from spead_tutorial.tools.why.stacks import KINDS, Sampled, Told
from support import ROOT

#: A run of a second, in which 100 000 packets were sent: one takes 10 µs.
SENT, EACH_S = 100_000, 1e-5
PACKETS = Packets(1000, 1000, 1_400_000, 0, 1400)
SEND = Told("sends", "sendto", "sendto")


def thread(tid: int = 1, cpu_s: float = 1.0, **more: Any) -> Thread:
    usual: dict[str, Any] = {
        "pid": 1, "name": f"t{tid}", "user_s": cpu_s / 2, "system_s": cpu_s / 2, "runnable_s": 0.0,
        "voluntary": 1000, "faults": 0,
    }  # fmt: skip
    return Thread(tid, **usual | more)


def watched(its: Thread, *waits: Waited, looks: int = 200) -> Watched:
    return Watched(its, looks, waits)


def sampled(*told: tuple[str, int], tid: int = 1, sees: str = "all") -> Sampled:
    """The samples of a thread, by kind; a call is of the kind of the call."""
    made = {"sends": SEND, "looks-up": Told("looks-up", "poll", "poll"),
            "polls": Told("other-calls", "poll", "poll"),
            "reads a file": Told("logs", "read", "read")}  # fmt: skip
    its = tuple((made.get(kind, Told(kind, f"f{i}")), n) for i, (kind, n) in enumerate(told))
    return Sampled(f"t{tid}", 1, its, sees)


def loop(changed: str, packet_us: float, packet_bytes: int = 1400, **way: Any) -> Loop:
    return Loop(changed, Way(packet_bytes, **way), (packet_us * 1e-6,) * 3)


def sends(tid: int, name: str = "", **more: Any) -> Call:
    return Call(
        tid, name or f"t{tid}", "sendto", 100, messages=1000, sends=True, **{"seconds": 0.0} | more
    )


AS_IS = loop("", 2.0)
MENDED = [kind for kind in KINDS if kind not in ("no-core", "waits-for-packets", "traced")]
SINGLE = Calls(1000, 1000, ("sendto",), 1, False, (sends(1),))


def seen(*threads: Watched, **more: Any) -> Seen:
    run: dict[str, Any] = {"looks": 200, "crowded": 0.0}
    run |= {name: more.pop(name) for name in ("crowded", "whole") if name in more}
    usual: dict[str, Any] = {
        "program": "my_sender", "language": "", "place": "a lab", "mtu": 9216,
        "packets": PACKETS, "calls": SINGLE, "loops": (AS_IS,),
        "run": Run(1.0, SENT, 1400 * SENT, threads=threads, **run),
    }  # fmt: skip
    return Seen(**usual | more)


def parts(watched: Seen) -> dict[str, float]:
    """Return microseconds of a packet by kind, with what the loop needs."""
    its = account(watched)
    found = {kind: took * 1e6 for kind, took in its.kinds.items()}
    assert sum(found.values()) + its.loop_s * 1e6 == pytest.approx(its.packet_s * 1e6)
    return found | {"loop": its.loop_s * 1e6}


def kinds(watched: Seen) -> list[str]:
    return [one.kind for one in diagnose(watched)]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rates of two runs be the same."""
    monkeypatch.setattr(findings, "_NOISE", 0.0)


# ---- Where the time of a packet goes ----


def test_time_with_a_core_is_divided_as_samples_are_and_the_loop_takes_of_sending():
    its = seen(
        watched(thread()), sampled={1: sampled(("sends", 50), ("formats", 40), ("logs", 10))}
    )
    assert parts(its) == pytest.approx({"loop": 2, "sends": 3, "formats": 4, "logs": 1})


def test_without_samples_the_kernels_time_is_divided_by_calls_and_page_faults():
    calls = sends(1, seconds=3e-3), Call(1, "t1", "write", 100, 1e-3)
    its = seen(
        watched(thread(faults=1000)),
        calls=replace(SINGLE, all=calls),
        fault_s=1e-4,
    )
    assert parts(its) == pytest.approx(
        {"loop": 2, "sends": 1, "logs": 1, "fresh-memory": 1, "computes": 5}
    )


def test_calls_of_who_is_stopped_to_be_looked_at_have_no_more_than_the_kernel_counts():
    told = {1: sampled(("sends", 60), ("computes", 40), sees="calls")}
    few = parts(seen(watched(thread(user_s=0.7, system_s=0.3)), sampled=told))
    assert few["loop"] + few["sends"] == pytest.approx(3 + 0.92, abs=0.01)  # which counts in ticks
    assert parts(seen(watched(thread()), sampled=told))["computes"] == pytest.approx(4)
    clock = {1: Sampled("t1", 1, ((Told("spins", "time", "clock_gettime"), 9),), "calls")}
    spun = parts(seen(watched(thread(user_s=1.0, system_s=0.0)), sampled=clock))
    assert spun["spins"] + spun["loop"] == pytest.approx(10)  # without the kernel


def test_page_faults_are_taken_from_code_whose_stacks_do_not_show_the_kernel():
    its = seen(
        watched(thread(faults=1000)),
        sampled={1: sampled(("sends", 50), ("computes", 50), sees="calls")},
        fault_s=2e-4,
    )
    assert parts(its) == pytest.approx({"loop": 2, "sends": 3, "computes": 3, "fresh-memory": 2})


def test_page_faults_of_a_copy_are_of_the_copy():
    """Bytes that grow are copied to new memory each time."""
    its = seen(
        watched(thread(faults=1000)),
        sampled={1: sampled(("sends", 50), ("copies", 50), sees="calls")},
        fault_s=2e-4,
    )
    assert parts(its) == pytest.approx({"loop": 2, "sends": 3, "copies": 5})


FUTEX = Waited("futex", False, 160, {2: 160})
SLEEPER = watched(thread(2, 0.01), Waited("clock_nanosleep", True, 198))


@pytest.mark.parametrize(
    ("waits", "others", "sampled_as", "kind"),
    [
        # A wait is for what its call is for, and for a time where that has ended it.
        (Waited("clock_nanosleep", True, 160), (), (), "sleeps"),
        (Waited("write", False, 160), (), (), "logs"),
        (Waited("sendto", False, 160), (), (), "waits-for-room"),
        (Waited("read", False, 160), (), (), "waits-for-input"),
        (Waited("epoll_wait", False, 160), (), (), "event-loop"),
        (Waited("wait4", False, 160), (), (), "starts"),
        (Waited("read", False, 160), (), (("reads a file", 1),), "waits-for-input"),
        # Stacks in the same call say more, if they say something.
        (Waited("poll", False, 160), (), (("polls", 1),), "event-loop"),
        (Waited("poll", False, 160), (), (("looks-up", 1),), "looks-up"),
        # Where another thread computes meanwhile, that is what is slow.
        (FUTEX, (watched(thread(2)),), (), "computes"),
        # Where nobody runs, it is the hand-over; where the other one sleeps, that.
        (replace(FUTEX, running={}), (watched(thread(2, 0)),), (), "waits-for-thread"),
        (replace(FUTEX, running={}, asleep={2: 160}), (SLEEPER,), (), "sleeps"),
    ],
)  # fmt: skip
def test_a_wait_is_for_what_ends_it(
    waits: Waited, others: tuple[Watched, ...], sampled_as: Any, kind: str
):
    samples = {1: sampled(("sends", 9), *sampled_as), 2: sampled(("computes", 9), tid=2)}
    its = seen(watched(thread(cpu_s=0.2), waits), *others, sampled=samples)
    found = parts(its)
    assert found.pop("loop") + found.pop("sends", 0.0) >= 1.8
    assert found[kind] == pytest.approx(8, rel=0.05)


def test_a_thread_that_never_wakes_the_one_that_waits_is_not_what_it_waits_for():
    """A virtual machine's collector and compiler sleep, or run, beside a sender."""
    idle = watched(thread(2, 0.01), Waited("futex", True, 198))
    busy, third = watched(thread(2)), watched(thread(3, 0.01))
    for wait, other, kind in (
        (replace(FUTEX, running={}, asleep={2: 160}), idle, "sleeps"),
        (FUTEX, busy, "computes"),
    ):
        lines = watched(thread(cpu_s=0.2), wait), other, third
        samples = {1: sampled(("sends", 9)), 2: sampled(("computes", 9), tid=2)}
        for wakes, its in (({2: (1,)}, kind), ({3: (1,)}, "waits-for-thread"), ({}, kind)):
            found = seen(*lines, sampled=samples, calls=replace(SINGLE, wakes=wakes))
            assert parts(found)[its] == pytest.approx(8, rel=0.05)


def test_a_wait_that_a_time_has_ended_is_a_sleep_unless_it_is_for_a_lock():
    waits = Waited("futex", True, 100)
    held = replace(waits, running={2: 100})
    slept = replace(SINGLE, all=(sends(1), Call(1, "t1", "futex", 9, 0.0, 1.0)))
    for wait, kind in ((waits, "sleeps"), (held, "waits-for-thread")):
        lines = watched(thread(cpu_s=0.5), wait), watched(thread(2))
        its = seen(*lines, sampled={1: sampled(("sends", 9))}, calls=slept)
        assert max(parts(its).items(), key=lambda item: item[0] != "loop" and item[1])[0] == kind


def test_a_thread_that_could_run_had_no_core_only_where_all_were_taken():
    waits = Waited("futex", False, 50)
    late = thread(cpu_s=0.5, runnable_s=0.3)
    assert parts(seen(watched(late, waits), crowded=1.0))["no-core"] == pytest.approx(3)
    assert "no-core" not in parts(seen(watched(late, waits)))  # it was woken up slowly


def test_of_several_threads_that_send_all_time_counts():
    lines = [watched(thread(tid)) for tid in (1, 2)]
    found = parts(seen(*lines, calls=replace(SINGLE, all=(sends(1), sends(2)))))
    assert sum(found.values()) == pytest.approx(20)


def test_threads_that_come_and_go_are_one_and_programs_that_do_are_being_started():
    brief = [watched(thread(tid, 0.01), looks=1) for tid in range(2, 50)]
    whole = watched(thread(), Waited("futex", False, 40))
    samples = {
        1: sampled(("sends", 10)),
        9: Sampled("nc", 99, ((Told("computes", "x"), 30), (SEND, 40)), "all"),
    }
    its = seen(
        watched(thread(1, 0.0), Waited("wait4", False, 200)), *brief,
        whole=whole, sampled=samples,
        calls=replace(SINGLE, all=(sends(9, "nc"),)),
    )  # fmt: skip
    assert parts(its) == pytest.approx({"loop": 2, "sends": 3, "starts": 3, "waits-for-thread": 2})


def test_code_around_a_clock_is_a_wait_and_one_look_at_it_for_a_packet_is_none():
    spins = seen(
        watched(thread()), sampled={1: sampled(("sends", 5), ("spins", 20), ("computes", 75))}
    )
    looks = seen(
        watched(thread()), sampled={1: sampled(("sends", 50), ("spins", 5), ("computes", 45))}
    )
    assert "computes" not in parts(spins)
    assert parts(looks)["computes"] == pytest.approx(4.5)


# ---- What mending gains ----


def test_what_takes_most_gains_most_and_its_range_has_what_it_leaves():
    its = seen(
        watched(thread()),
        sampled={1: sampled(("sends", 2000), ("formats", 6000), ("logs", 2000))},
    )
    first, second, *_ = diagnose(its)
    assert (first.kind, second.kind) == ("formats", "logs")
    assert first.gain.low < 10 / 4 < first.gain.high <= 10 / 2
    few = seen(watched(thread()), sampled={1: sampled(("sends", 4), ("formats", 12), ("logs", 4))})
    assert diagnose(few)[0].gain.low < first.gain.low  # as few looks say less


def test_a_gain_is_no_larger_than_what_the_loop_leaves():
    its = seen(watched(thread()), sampled={1: sampled(("sends", 10), ("formats", 9990))})
    (first, *_) = diagnose(its)
    assert first.gain.high <= 10 / 2 * 1.001


OTHERWISE = (
    loop(BATCHES, 1.8, messages=64), loop(OFFLOAD, 0.2, packets=64),
    loop(BOTH, 0.2, packets=64, messages=64), loop(LARGER, 2.2, 9188),
    loop(BEST, 0.6, 9188, packets=64, messages=64),
)  # fmt: skip


def test_another_way_to_send_gains_what_the_loop_measured_with_the_rest_as_it_is():
    its = seen(
        watched(thread()),
        sampled={1: sampled(("sends", 20), ("computes", 80))},
        loops=(AS_IS, *OTHERWISE),
    )
    found = {one.kind: one.gain for one in diagnose(its)}
    assert found["call-per-packet"].low == pytest.approx(10 / (10 - 1.8))
    assert found["small-packets"].low == pytest.approx(10 / (8 + 2.2 * 1400 / 9188))
    assert found["small-packets"].high == pytest.approx(10 / ((8 + 2.2) * 1400 / 9188), rel=0.01)
    assert kinds(its)[0] == "computes"


def test_what_calls_take_beside_the_loop_is_gained_by_fewer_calls():
    its = seen(
        watched(thread()),
        sampled={1: sampled(("sends", 35), ("computes", 25), ("formats", 20), ("logs", 20))},
        loops=(AS_IS, *OTHERWISE[:3]),
    )
    first, second, *_ = diagnose(its)
    assert (first.kind, second.kind) == ("call-per-packet", "computes")
    assert first.gain.median == pytest.approx(10 / (10 - 1.8 - 1.5), rel=0.01)
    assert first.gain.low < second.gain.median < first.gain.median <= first.gain.high


def test_what_a_language_cannot_do_is_not_advised():
    for language, is_advised in (("", True), ("Python", True), ("shell", False), ("Java", False)):
        its = seen(watched(thread()), language=language, loops=(AS_IS, *OTHERWISE))
        assert ("call-per-packet" in kinds(its)) is is_advised


def test_only_a_compiled_language_is_told_to_compile():
    for language in ("", "Python", "Perl", "Tcl", "Java"):
        (first, *_) = diagnose(seen(watched(thread()), language=language))
        assert (first.kind, "optimisation" in first.check) == ("computes", language == "")


def test_a_sender_near_the_best_loop_is_told_that_nothing_was_found():
    samples = {1: sampled(("sends", 60), ("computes", 40))}
    fast = Packets(1000, 7000, 9000 * 7000, 0, 9000)
    its = seen(
        watched(thread(cpu_s=0.7)), sampled=samples, packets=fast,
        loops=(loop("", 0.5, 9000, packets=7), loop(BEST, 0.6, 9188, packets=64)),
    )  # fmt: skip
    assert text(its, diagnose(its)).startswith("Nothing found.")


def test_who_traces_a_program_comes_first_and_has_stopped_it_where_it_seems_to_wait_for_room():
    room = Waited("sendto", timed=False, seen=150)
    its = seen(watched(thread(cpu_s=0.2), room), watched(thread(2)))
    assert "waits-for-room" in kinds(its)
    traced = seen(watched(thread(cpu_s=0.2, tracer="strace"), room), watched(thread(2)))
    first, *others = diagnose(traced)
    assert (first.kind, first.where, first.gain) == ("traced", ("strace",), None)
    assert "waits-for-room" not in [one.kind for one in others]
    assert parts(traced)["traced"] == pytest.approx(8)
    profiled = Sampled("t1", 1, ((Told("traced", "profiler_callback"), 2), (SEND, 98)), "all")
    assert diagnose(seen(watched(thread()), sampled={1: profiled}))[0].where == (
        "profiler_callback",
    )


# ---- Ways to send ----


@pytest.mark.parametrize(
    ("packets", "calls", "lacks"),
    [
        (PACKETS, SINGLE, {LARGER, BATCHES, OFFLOAD, BOTH}),
        (replace(PACKETS, packet_bytes=9000, payload_bytes=9_000_000), SINGLE,
         {BATCHES, OFFLOAD, BOTH}),
        (replace(PACKETS, packets=7000, payload_bytes=63_000_000), SINGLE, set()),
        (PACKETS, replace(SINGLE, send_calls=20), {LARGER, OFFLOAD}),
        (replace(PACKETS, packets=250, fragments=750, packet_bytes=32_000), SINGLE,
         {loops.FITTING}),
        (PACKETS, replace(SINGLE, pieces=1000), {LARGER, BATCHES, loops.GATHERED}),
        (PACKETS, replace(SINGLE, unconnected=True),
         {LARGER, BATCHES, OFFLOAD, BOTH, loops.CONNECTED}),
        (replace(PACKETS, packets=3), SINGLE, set()),
    ],
)  # fmt: skip
def test_what_a_sender_does_not_do_yet_is_tried(packets: Packets, calls: Calls, lacks: set[str]):
    assert set(otherwise(way_of(packets, calls), packets, 9188)) - {BEST} == lacks


# ---- The report ----

SLOW = seen(
    watched(thread(cpu_s=0.8, runnable_s=0.1), Waited("clock_nanosleep", True, 20)),
    sampled={1: sampled(("sends", 200), ("formats", 500), ("logs", 90), ("copies", 10))},
    loops=(AS_IS, *OTHERWISE),
    crowded=1.0,
)


def whole(words: str) -> str:
    """Text without its breaks of lines."""
    return " ".join(words.split())


def test_the_report_says_what_to_mend_then_the_equation_and_fits_80_columns():
    words = text(SLOW, diagnose(SLOW))
    assert max(map(len, words.splitlines())) <= 80
    assert "\x1b" not in words
    said = whole(words)
    assert re.match(
        r"Mend first: formatting and encoding \(f1\); without that, [\d.]+ to [\d.]+ times as"
        r" fast\. my_sender sends 140 MB/s to a lab\. A packet of 1400 bytes takes 10 µs here; a"
        r" bare loop that does the same needs 2 µs, in batches 1.8 µs, with offload 0.2 µs, .* Of"
        r" the other 8 µs, 5 µs are formatting and encoding,",
        said,
    )
    assert re.search(r"\n█{10} +50 % +5 µs +formatting and encoding: f1", words)
    assert "1. Formatting and encoding (f1): 5 µs of a packet. Check: Write binary numbers" in said
    assert "Chapter 4, Measure it. Mended, " in said
    assert "What gains less: copying (" in said


@pytest.mark.parametrize(
    ("its", "words"),
    [
        (replace(SLOW, unseen=("It was dark.",)), "It was dark. Mend first:"),
        (seen(watched(thread(cpu_s=0.4, runnable_s=0.6)), crowded=1.0), "measure again"),
        (seen(watched(thread(cpu_s=0.2))), "Nothing found."),
    ],
)
def test_the_report_says_what_it_could_not_see(its: Seen, words: str):
    assert words in whole(text(its, diagnose(its)))


def test_names_of_strangers_do_no_harm():
    bad = Sampled("bad\x1b[2J\nname", 1, ((Told("formats", "evil\x1b[2J\n"), 9), (SEND, 1)))
    its = seen(watched(thread()), sampled={1: bad})
    assert "\x1b" not in text(its, diagnose(its))


def test_a_terminal_that_is_narrow_gets_narrow_text(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tables, "_terminal", lambda: 50)
    words = re.sub(r"\x1b\[[\d;]*m", "", text(SLOW, diagnose(SLOW)))
    assert max(map(len, words.splitlines())) <= 50


@pytest.mark.parametrize("its", [SLOW, seen(watched(thread()))])
def test_json_has_all_and_can_be_read_back(its: Seen):
    made = json.loads(json.dumps(as_object(its, diagnose(its))))
    assert seen_of(made) == its
    if made["account"]:
        assert made["findings"][0]["gain"]["low"] <= made["findings"][0]["gain"]["high"]


@pytest.mark.parametrize("kind", MENDED)
def test_every_finding_says_what_to_check_and_is_in_the_page_so(kind: str):
    assert KINDS[kind].check
    assert "{made-table} findings" in (ROOT / "docs" / "how-to" / "why.md").read_text()

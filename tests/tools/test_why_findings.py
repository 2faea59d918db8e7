# SPDX-License-Identifier: BSD-3-Clause
"""What facts of a sender mean: on both sides of each threshold, with facts made by hand."""

import dataclasses
from typing import Any

import pytest

from spead_tutorial.tools.why import finding, findings, samples
from spead_tutorial.tools.why.accounting import Prices, account
from spead_tutorial.tools.why.facts import (
    GB,
    Bare,
    Beside,
    Call,
    Caller,
    Calls,
    Packets,
    Run,
    Sampled,
    Seen,
    Thread,
    Wait,
)
from spead_tutorial.tools.why.finding import MATTERS
from spead_tutorial.tools.why.findings import diagnose
from spead_tutorial.tools.why.instruments import parse_traffic
from spead_tutorial.tools.why.report import CHAPTERS, RECEIVER_CHAPTERS, text

BARE = Bare(rate=10e9, packet_s=2e-8)
MESSAGES = 15_900  # of seven packets of 9000 bytes each, for a gigabyte
SENDS = Call("sendmmsg", 1000, 1e-6, sends=True)


def thread(name: str = "main", **facts: Any) -> Thread:
    """A thread that worked in the kernel all the time, on any of two cores."""
    usual = {"user_s": 0.1, "system_s": 0.9, "runnable_s": 0.0, "voluntary": 0}
    return Thread(**{"tid": 1, "name": name, **usual, "faults": 0, "cpus": (0, 1)} | facts)


def called(*calls: Call, name: str = "main", messages: int = MESSAGES) -> Caller:
    """What a thread called, that sends."""
    return Caller(name, 0, messages, (SENDS, *calls))


def seen(**facts: Any) -> Seen:
    """What is seen of a faultless sender of heaps of 1 MiB, in a second; or something of it else.

    Words with two underscores in them change a part: ``packets__fragments=5``.
    """
    parts: dict[str, Any] = {
        "run": Run(1.0, MESSAGES, GB, (thread(),), 100),
        "packets": Packets(MESSAGES, 111_300, GB, 0, 9000, 1 << 20),
        "calls": Calls(1000, MESSAGES, ("sendmmsg",), 1.0, 0, (called(),)),
        "sampled": (Sampled("main", 0, 100, 0, (("main", "sender", 100),)),),
    }
    for name, value in facts.items():
        part, _, field = name.partition("__")
        if field and facts.get(part, "") is not None:
            parts[part] = dataclasses.replace(parts[part], **{field: value})
    whole = {name: value for name, value in facts.items() if "__" not in name}
    made = Seen("sender", "a lab", 9216, **{"cores": 2, "bare": BARE} | parts | whole)
    told = account(made.run, made.calls, made.sampled, Prices(2e-7, 1e-6))
    return dataclasses.replace(made, account=told)


def kinds(**facts: Any) -> list[str]:
    """The kinds of what is found of such a sender."""
    return [finding.kind for finding in diagnose(seen(**facts))]


def one_per_message(n: int = 111_111) -> dict[str, Any]:
    return {"packets__messages": n, "packets__packets": n, "calls__messages": n}


def fragmented(size: int) -> dict[str, Any]:
    """Packets that the kernel cuts, and a call for each."""
    n, pieces = GB // size, -(-size // 9192)
    facts = {"messages": n * pieces, "packets": n, "fragments": n * (pieces - 1)}
    facts |= {"packet_bytes": size}
    calls = {"calls__messages": n, "calls__send_calls": n}
    return {f"packets__{name}": value for name, value in facts.items()} | calls


def ran(**facts: Any) -> dict[str, Any]:
    return {"run__threads": (thread(**facts),)}


def waiting(
    part: float,
    call: str,
    *calls: Call,
    timed: bool = False,
    busy: float = 0.0,
    beside: tuple[Beside, ...] = (),
    others: tuple[Thread, ...] = (),
) -> dict[str, Any]:
    """A sender that waits for a part of the time, in a call, and makes some calls besides."""
    waits = (Wait(call, timed, 50, beside),)
    spent = {"user_s": 0.0, "system_s": 1 - part - busy, "runnable_s": busy}
    one = thread(**spent, looks=100, voluntary=100, waits=waits)
    return {"run__threads": (one, *others), "calls__callers": (called(*calls),)}


def calling(part: float, *names: str) -> dict[str, Any]:
    """A sender whose time goes to other calls, for a part: it is in the kernel for nine tenths."""
    part /= 0.9
    each = part / (1 - part) / len(names) * 1e-6
    calls = [Call(name, 1000, each) for name in names]
    return {"calls__callers": (called(*calls),)}


def spinning(part: float) -> dict[str, Any]:
    run = ran(user_s=2.0, system_s=0.0) | {"run__seconds": 2.0}
    return run | {"sampled": (Sampled("main", 0, 1000, round(1000 * part), ()),)}


def in_turns(part: float, calls: int = MESSAGES) -> dict[str, Any]:
    """Two threads that send, each of which waits for the other for a part of the time."""
    lock = Call("futex", calls, 1e-11, timed_out=0.0)
    two = [
        thread(f"t{tid}", tid=tid, user_s=0.0, system_s=1 - part, looks=100, voluntary=5000,
               waits=(Wait("futex", False, 50, (Beside(3 - tid, "running", 50),)),))
        for tid in (1, 2)
    ]  # fmt: skip
    callers = tuple(called(lock, name=one.name, messages=MESSAGES // 2) for one in two)
    return {"run__threads": tuple(two), "calls__callers": callers}


def behind(part: float, name: str, tid: int) -> dict[str, Any]:
    """A thread that sends, and waits for another one that makes its data, for a part."""
    maker = thread(name, tid=tid, user_s=1.0, system_s=0.0)
    return waiting(part, "futex", beside=(Beside(tid, "running", 50),), others=(maker,))


def mapping(n_bytes: int) -> dict[str, Any]:
    caller = dataclasses.replace(called(), mapped_bytes=n_bytes)
    return {"calls__mapped_bytes": n_bytes, "calls__callers": (caller,)}


def kept(core: int, tid: int, cpu_s: float = 0.5) -> Thread:
    return thread(f"t{tid}", tid=tid, user_s=0.0, system_s=cpu_s, cpus=(core,))


def small(size: int, calls: int, user_s: float = 0.1) -> dict[str, Any]:
    return {"packets__heap_bytes": size, "calls__send_calls": calls} | ran(user_s=user_s)


OFFLOAD, CALLS, FRESH = "no-segmentation-offload", "call-per-packet", "fresh-memory"
ALMOST = int(111_111 / finding.ONE)  # calls, of as many packets as there are messages
NEW = GB * finding.FRESH  # bytes of memory
FIFTH = round(GB // 16384 * 0.2)  # calls, of heaps of 16 KiB
EACH_CALLED = one_per_message() | {"calls__send_calls": 111_111}
LITTLE = {"run__payload_bytes": GB // 100, "run__seconds": 0.05}
WHOLE = one_per_message(1_000_000) | {"calls__send_calls": 1_000_000}
CUT = {"packets__messages": 10_000, "packets__packets": 9_900, "packets__packet_bytes": 9500}
SHARED = {"run__threads": (kept(0, 1), kept(0, 2))}
MUCH = finding.ENOUGH_PACKETS
FUTEX = Call("futex", 100, 1e-7, timed=True, timed_out=1.0)
MORE, LESS = MATTERS + 0.01, MATTERS - 0.01


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({}, []),
        (one_per_message(), [OFFLOAD]),
        (one_per_message() | {"calls": None}, [OFFLOAD]),
        ({"packets__packets": int(MESSAGES * finding.ONE) + 1}, []),
        ({"packets__packets": int(MESSAGES * finding.ONE)}, [OFFLOAD]),
        # Of a few packets nothing is said.
        (one_per_message(MUCH - 1) | {"calls": None}, []),
        (one_per_message(MUCH) | {"calls": None}, [OFFLOAD]),
        # A call for each packet comes first; one for each message of several packets is no fault.
        (EACH_CALLED, [CALLS, OFFLOAD]),
        (one_per_message() | {"calls__send_calls": ALMOST + 1}, [CALLS, OFFLOAD]),
        (one_per_message() | {"calls__send_calls": ALMOST - 1}, [OFFLOAD]),
        ({"calls__send_calls": MESSAGES}, []),
        # Packets as large as messages get may have a call each.
        (fragmented(60_000), ["fragments"]),
        (fragmented(20_000), ["fragments", CALLS]),
        # A hundredth of fragments hides that nothing is merged.
        (CUT | {"packets__fragments": 100}, ["fragments"]),
        (CUT | {"packets__fragments": 99}, [OFFLOAD]),
        (ran(faults=round(NEW / 4096) + 1), [FRESH]),
        (ran(faults=round(NEW / 4096) - 1), []),
        # New memory in huge pages has few faults.
        (mapping(round(NEW) + 1), [FRESH]),
        (mapping(round(NEW) - 1), []),
        # A wait for a time, whatever the call.
        (waiting(MORE, "clock_nanosleep", timed=True), ["sleeps"]),
        (waiting(LESS, "clock_nanosleep", timed=True), []),
        (waiting(0.9, "futex", FUTEX, timed=True), ["sleeps"]),
        # Of what is left by a busy neighbour it is as much.
        (waiting(0.09, "clock_nanosleep", timed=True, busy=0.8), ["sleeps"]),
        (waiting(0.9, "sendto"), ["waits-for-room"]),
        (waiting(LESS, "sendto"), []),
        (waiting(0.9, "read"), ["waits-for-input"]),
        (waiting(0.9, "wait4"), ["waits-for-input"]),
        (waiting(0.9, ""), []),  # nobody knows what for
        (in_turns(0.5), ["waits-for-lock"]),
        (in_turns(LESS), []),
        # A lock that is taken once for each of a few heaps is no matter, but if nearly all wait.
        (in_turns(0.4, MESSAGES // 250), []),
        (in_turns(0.6, MESSAGES // 250), ["waits-for-lock"]),
        # A library's thread sends what the program's first one makes, but others wait for a third.
        (behind(0.9, "first", 0), ["slow-data"]),
        (behind(0.9, "maker", 2), ["waits-for-thread"]),
        (calling(MORE, "write", "getrandom"), ["other-calls"]),
        (calling(LESS, "write", "getrandom"), []),
        (calling(0.5, "mmap", "munmap"), []),  # of memory: counts if memory is fresh
        (spinning(0.9), ["spins"]),
        (spinning(0.5), ["spins", "slow-data"]),
        (spinning(1.0), ["spins"]),
        (spinning(LESS), ["slow-data"]),
        (spinning(1.0) | {"sampled": None}, ["slow-data"]),
        ({"run__threads": (thread(system_s=0.1),), "calls": None}, []),
        # Slow data takes most of the CPU time, and longer than memory does.
        (ran(user_s=1.7, system_s=0.3) | {"run__seconds": 2.0}, ["slow-data"]),
        (ran(user_s=0.4, system_s=0.1) | {"run__seconds": 0.5}, []),
        (ran(user_s=0.6, system_s=0.1) | {"run__seconds": 0.7}, ["slow-data"]),
        # Of too little CPU time nobody knows whose it was.
        (ran(user_s=0.05, system_s=0.0) | LITTLE, ["slow-data"]),
        (ran(user_s=0.04, system_s=0.0) | LITTLE, []),
        # What Python takes for each call is no slow data.
        (EACH_CALLED | ran(user_s=0.6, system_s=0.4), [CALLS, OFFLOAD]),
        (SHARED, ["shared-core"]),
        (SHARED | {"cores": 1}, []),
        ({"run__threads": (kept(0, 1), kept(1, 2))}, []),
        ({"run__threads": (kept(0, 1), kept(0, 2, 0.009))}, []),  # it does next to nothing
        ({"run__threads": (kept(0, 1), kept(0, 2, 0.011))}, ["shared-core"]),
        ({"run__threads": (kept(0, 1), thread("free", tid=2))}, []),
        ({"run__threads": (kept(0, 1),)}, []),
        # Packets of less than half of what fits are small, and if they are whole heaps, these are.
        ({"packets__packet_bytes": 4593, "packets__packets": 217_700}, ["small-packets"]),
        ({"packets__packet_bytes": 4594, "packets__packets": 217_700}, []),
        (WHOLE | {"packets__packet_bytes": 1000, "packets__heap_bytes": 960}, ["small-heaps"]),
        # Small heaps: fewer than five share a call, or each takes the program some microseconds.
        (small(16384, FIFTH + 1), ["small-heaps"]),
        (small(16384, FIFTH - 1), []),
        (small(finding.SMALL_HEAP, FIFTH + 1), []),
        (small(16384, 1000, GB / 16384 * 3.1e-6), ["small-heaps"]),
        (small(16384, 1000, GB / 16384 * 2.9e-6), []),
    ],
)  # fmt: skip
def test_what_is_found_follows_from_the_facts_on_both_sides_of_each_threshold(facts, found):
    assert kinds(**facts) == found


def test_what_costs_most_comes_first_and_shares_are_of_the_distance():
    facts = one_per_message() | {"calls__send_calls": 1000}
    few, many = thread(faults=60_000), thread(faults=2_400_000)
    assert kinds(**facts, run__threads=(few,)) == [OFFLOAD, FRESH]
    found = diagnose(seen(**facts, run__threads=(many,)))
    assert [one.kind for one in found] == [FRESH, OFFLOAD]
    # 2.4 million faults of 0.2 µs, where the sender takes 1 s and the bare loop 0.1 s.
    assert found[0].cost_s == pytest.approx(0.48)
    assert found[0].explains == pytest.approx(0.48 / 0.9, rel=1e-3)
    # The rest of what sending takes, less the bare loop's, and what handling calls takes at most.
    assert found[1].explains == pytest.approx((0.9 - 0.48 - 0.1 + 0.0527) / 0.9, rel=1e-3)


@pytest.mark.parametrize(
    "facts",
    [
        waiting(0.5, "clock_nanosleep", timed=True) | one_per_message(),
        WHOLE | {"packets__packet_bytes": 1000},
        fragmented(20_000),
        in_turns(0.5) | {"packets__packet_bytes": 500},
        calling(0.4, "write") | one_per_message(),
        SHARED | EACH_CALLED,
        small(8192, 10**6),
    ],
)
def test_shares_never_sum_to_more_than_the_distance(facts):
    slow = {"bare": dataclasses.replace(BARE, rate=2e9)}
    for change in ({}, {"run__seconds": 0.3}, {"run__seconds": 3.0}, slow):
        found = diagnose(seen(**facts | change))
        assert found or change is slow
        assert sum(one.explains or 0.0 for one in found) <= 1.0 + 1e-9


def test_small_packets_come_before_calls_and_messages_as_larger_ones_need_fewer():
    found = diagnose(seen(**WHOLE, packets__packet_bytes=1000))
    assert [one.kind for one in found] == ["small-packets", CALLS, OFFLOAD]
    assert found[0].explains == pytest.approx(1 - 1000 / 9188, abs=0.02)
    assert found[2].explains is None  # the others have taken it all


def test_time_that_others_had_the_cores_is_no_part_of_the_distance():
    quiet = diagnose(seen(**waiting(0.9, "clock_nanosleep", timed=True)))
    beside = waiting(0.45, "clock_nanosleep", timed=True, busy=0.5)
    busy = diagnose(seen(**beside, run__seconds=1.0))
    assert quiet[0].explains == pytest.approx(1.0, rel=1e-3)
    assert busy[0].explains == pytest.approx(1.0, rel=1e-3)


def test_other_calls_are_said_by_name_with_how_often_and_what_for():
    looks = Call("openat", 15_900 * 2, 1e-7, on="/etc/hosts")
    (found,) = diagnose(seen(calls__callers=(called(looks),)))
    assert "openat (2 for each packet) on /etc/hosts" in found.symptom
    assert "getaddrinfo" in found.symptom


def test_what_a_gain_is_follows_from_the_account_with_how_often_it_was_looked():
    (found,) = diagnose(seen(**waiting(0.8, "clock_nanosleep", timed=True)))
    assert not found.gain.measured
    assert found.gain.median == pytest.approx(5.0)
    assert 3 < found.gain.low < 5 < found.gain.high < 9


@pytest.mark.parametrize(
    ("facts", "unknown"),
    [
        ({"calls": None, "run__seconds": 4.0}, ("cost_s", "explains")),
        ({"run__threads": ()}, ("cost_s", "explains")),
        ({"bare": None}, ("explains", "gain")),
    ],
)
def test_what_was_not_seen_is_not_weighed(facts, unknown):
    (found,) = diagnose(seen(**one_per_message(), **facts))
    assert found.kind == OFFLOAD
    assert [getattr(found, name) for name in unknown] == [None, None]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("", "before perf had looked"),
        ("Error:\nThe syscall returned with 3 (No such process).", "before perf had looked"),
        ("Error:\nAccess is limited.\nperf_event_paranoid is 3", "event_paranoid is"),
        ("Error:\nCannot load it.", "may not look: Cannot load it."),
    ],
)
def test_why_own_code_was_not_seen_is_what_perf_said(said, words):
    assert words in samples._reason(said)


@pytest.mark.parametrize(
    ("checks", "chapters"),
    [(findings.CHECKS, CHAPTERS), (findings.RECEIVER_CHECKS, RECEIVER_CHAPTERS)],
)
def test_every_kind_has_a_check_and_a_chapter(checks, chapters):
    assert checks.keys() == chapters.keys()


@pytest.mark.parametrize(
    ("line", "n_bytes", "words"),
    [
        ("1000,,cache-misses,5,100.00,,", 64_000, "6.4e-05 bytes for each sent"),
        ("1000,,cache-misses:u,5,100.00,,", 64_000, "sent, the kernel's not counted"),
        ("<not supported>,,cache-misses,0,100.00,,", None, "shows no hardware counters"),
        ("<not counted>,,cache-misses,0,100.00,,", None, "shows no hardware counters"),
        ("", None, "for want of time or of permission (kernel.perf_event_paranoid)"),
    ],
)
def test_what_perf_writes_is_memory_traffic_or_a_reason(line, n_bytes, words):
    found = parse_traffic(f"# started\n\n{line}\n")
    assert found.n_bytes == n_bytes
    made = seen(traffic=found)
    assert words in (found.why or text(made, ()))

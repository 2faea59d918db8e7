# SPDX-License-Identifier: BSD-3-Clause
"""What facts of a sender mean: on both sides of each threshold, with facts made by hand."""

import dataclasses
import json
from typing import Any

import pytest

from spead_tutorial.tools.why import findings
from spead_tutorial.tools.why.facts import GB, Bare, Calls, Packets, Run, Seen, Thread
from spead_tutorial.tools.why.findings import diagnose
from spead_tutorial.tools.why.instruments import parse_traffic
from spead_tutorial.tools.why.report import CHAPTERS, as_object, seen_of, text

BARE = Bare(rate=10e9, unmerged_rate=4e9, message_s=1e-6, fault_s=2e-7, packet_s=2e-8)
MESSAGES = 15_900  # of seven packets of 9000 bytes each, for a gigabyte


def thread(name: str = "main", **facts: Any) -> Thread:
    """A thread that worked in the kernel all the time, on any of two cores."""
    usual = {"user_s": 0.1, "system_s": 0.9, "runnable_s": 0.0, "voluntary": 0, "involuntary": 0}
    return Thread(**{"tid": 1, "name": name, **usual, "faults": 0, "cpus": (0, 1)} | facts)


def seen(**facts: Any) -> Seen:
    """What is seen of a faultless sender of heaps of 1 MiB, in a second; or something of it else.

    Words with two underscores in them change a part: ``packets__fragments=5``.
    """
    parts: dict[str, Any] = {
        "run": Run(1.0, MESSAGES, GB, (thread(),), False),
        "packets": Packets(MESSAGES, 111_300, GB, 0, 9000, 1 << 20, 1, 0),
        "calls": Calls(1000, MESSAGES, ("sendmmsg",), 0, 0.0, 1.0, 0),
    }
    for name, value in facts.items():
        part, _, field = name.partition("__")
        if field and facts.get(part, "") is not None:
            parts[part] = dataclasses.replace(parts[part], **{field: value})
    whole = {name: value for name, value in facts.items() if "__" not in name}
    return Seen("sender", "a lab", 9216, **{"cores": 2, "bare": BARE} | parts | whole)


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


def working(user_s: float, system_s: float, runnable_s: float = 0.0) -> dict[str, Any]:
    return {"run__threads": (thread(user_s=user_s, system_s=system_s, runnable_s=runnable_s),)}


def sleeping(asked_s: float, idle: float, runnable_s: float = 0.0) -> dict[str, Any]:
    """A sender that asks to sleep for so long, and is idle for so long."""
    busy = working(0.0, 1.0 - idle - runnable_s, runnable_s)
    return busy | {"calls__sleeps": 100, "calls__asked_s": asked_s}


def faulting(pages: int) -> dict[str, Any]:
    return {"run__threads": (thread(faults=pages),)}


def kept(core: int, tid: int, cpu_s: float = 0.5) -> Thread:
    return thread(f"t{tid}", tid=tid, user_s=0.0, system_s=cpu_s, cpus=(core,))


def small(size: int, calls: int, user_s: float = 0.1) -> dict[str, Any]:
    return {
        "packets__heap_bytes": size,
        "calls__send_calls": calls,
        "run__threads": (thread(user_s=user_s),),
    }


OFFLOAD, CALLS, FRESH = "no-segmentation-offload", "call-per-packet", "fresh-memory"
ALMOST = int(111_111 / findings.ONE)  # calls, of as many packets as there are messages
NEW = GB * findings.FRESH  # bytes of memory
FIFTH = round(GB // 16384 * 0.2)  # calls, of heaps of 16 KiB
WHOLE = one_per_message(1_000_000) | {"calls__send_calls": 1_000_000}
CUT = {"packets__messages": 10_000, "packets__packets": 9_900, "packets__packet_bytes": 9500}
SHARED = {"run__threads": (kept(0, 1), kept(0, 2))}
MUCH = findings.ENOUGH_PACKETS


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({}, []),
        (one_per_message(), [OFFLOAD]),
        (one_per_message() | {"calls": None}, [OFFLOAD]),
        ({"packets__packets": int(MESSAGES * findings.ONE) + 1}, []),
        ({"packets__packets": int(MESSAGES * findings.ONE)}, [OFFLOAD]),
        # Of a few packets nothing is said.
        (one_per_message(MUCH - 1) | {"calls": None}, []),
        (one_per_message(MUCH) | {"calls": None}, [OFFLOAD]),
        # A call for each packet comes first; one for each message of several packets is no fault.
        (one_per_message() | {"calls__send_calls": 111_111}, [CALLS, OFFLOAD]),
        (one_per_message() | {"calls__send_calls": ALMOST + 1}, [CALLS, OFFLOAD]),
        (one_per_message() | {"calls__send_calls": ALMOST - 1}, [OFFLOAD]),
        ({"calls__send_calls": MESSAGES}, []),
        # Packets as large as messages get may have a call each.
        (fragmented(60_000), ["fragments"]),
        (fragmented(20_000), ["fragments", CALLS]),
        # A hundredth of fragments hides that nothing is merged.
        (CUT | {"packets__fragments": 100}, ["fragments"]),
        (CUT | {"packets__fragments": 99}, [OFFLOAD]),
        (faulting(round(NEW / 4096) + 1), [FRESH]),
        (faulting(round(NEW / 4096) - 1), []),
        # New memory in huge pages has few faults.
        ({"calls__mapped_bytes": round(NEW) + 1}, [FRESH]),
        ({"calls__mapped_bytes": round(NEW) - 1}, []),
        (sleeping(0.5, 0.5), ["sleeps"]),
        (sleeping(0.26, 0.21), ["sleeps"]),
        (sleeping(0.15, 0.21), []),  # it rests for another reason
        (sleeping(0.5, 0.19), []),  # another thread works meanwhile
        (sleeping(0.0, 0.5), []),
        (sleeping(0.5, 0.101, 0.699), ["sleeps"]),  # on a busy machine a moment may be chance
        (sleeping(0.5, 0.099, 0.701), []),
        (sleeping(0.5, 0.03, 0.96), ["sleeps"]),  # it is most of its own time
        (sleeping(0.3, 0.11, 0.84), ["sleeps"]),
        ({"run__threads": (thread(system_s=0.1),), "calls": None}, []),
        # Slow data takes most of the CPU time, and longer than memory does.
        (working(1.7, 0.3) | {"run__seconds": 0.5}, ["slow-data"]),
        (working(1.7, 1.8) | {"run__seconds": 0.5}, []),
        (working(0.4, 0.1) | {"run__seconds": 0.5}, []),
        (working(0.6, 0.1) | {"run__seconds": 0.5}, ["slow-data"]),
        # Of too little CPU time nobody knows whose it was.
        (working(0.05, 0.0) | {"run__payload_bytes": GB // 100, "run__seconds": 0.05},
         ["slow-data"]),
        (working(0.04, 0.0) | {"run__payload_bytes": GB // 100, "run__seconds": 0.05}, []),
        # What Python takes for each call is no slow data.
        (one_per_message() | {"calls__send_calls": 111_111} | working(0.6, 0.4), [CALLS, OFFLOAD]),
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
        (small(findings.SMALL_HEAP, FIFTH + 1), []),
        (small(16384, 1000, GB / 16384 * 3.1e-6), ["small-heaps"]),
        (small(16384, 1000, GB / 16384 * 2.9e-6), []),
    ],
)  # fmt: skip
def test_what_is_found_follows_from_the_facts_on_both_sides_of_each_threshold(facts, found):
    assert kinds(**facts) == found


def test_without_calls_nothing_is_weighed_and_the_report_says_so_first():
    facts = one_per_message() | {"run__seconds": 4.0, "unseen": ("It was dark.", "And cold.")}
    found = diagnose(seen(**facts, calls=None))
    assert [(one.cost_s, one.explains) for one in found] == [(None, None)]
    lines = text(seen(**facts, calls=None), found).splitlines()
    assert lines[0].startswith("It was dark. So it is not known whether it sleeps, though it was")
    assert lines[-1] == "And cold."


def test_of_a_packet_in_fragments_a_call_costs_no_more_than_of_a_whole_one():
    def cost(facts: dict[str, Any]) -> float:
        found = {finding.kind: finding.cost_s for finding in diagnose(seen(**facts))}
        return found["call-per-packet"]

    whole = one_per_message(GB // 20_000) | {"calls__send_calls": GB // 20_000}
    whole["packets__packet_bytes"] = 20_000
    assert cost(fragmented(20_000)) == cost(whole)


def test_what_costs_most_comes_first_and_says_which_part_of_the_distance_it_explains():
    facts = one_per_message() | {"calls__send_calls": 1000}
    few, many = thread(faults=60_000), thread(faults=2_400_000)
    assert kinds(**facts, run__threads=(few,)) == [OFFLOAD, FRESH]
    found = diagnose(seen(**facts, run__threads=(many,)))
    assert [one.kind for one in found] == [FRESH, OFFLOAD]
    # 2.4 million faults of 0.2 µs, where the sender takes 1 s and the bare loop 0.1 s.
    assert found[0].cost_s == pytest.approx(0.48)
    assert found[0].explains == pytest.approx(0.48 / 0.9)


def test_without_a_bare_loop_findings_are_the_same_but_weigh_nothing():
    found = diagnose(seen(**one_per_message(), bare=None))
    assert [(one.kind, one.cost_s, one.explains) for one in found] == [(OFFLOAD, None, None)]


def test_every_kind_has_a_chapter_a_check_and_words_for_its_gain():
    faults = {
        "no-segmentation-offload": one_per_message(),
        "call-per-packet": one_per_message() | {"calls__send_calls": 111_111},
        "fresh-memory": faulting(10**6),
        "sleeps": sleeping(0.5, 0.5),
        "slow-data": working(5.0, 0.9),
        "shared-core": SHARED,
        "small-packets": {"packets__packet_bytes": 500},
        "fragments": {"packets__fragments": 10_000},
        "small-heaps": small(8192, 10**6),
    }
    assert set(faults) == set(CHAPTERS)
    assert len(findings.CHECKS) == len(CHAPTERS)
    for kind, facts in faults.items():
        sender = seen(**facts)
        found = diagnose(sender)
        (one,) = (finding for finding in found if finding.kind == kind)
        words = text(sender, found)
        assert f"Chapter {CHAPTERS[kind]}, " in words
        assert " ".join(one.symptom.split()) in " ".join(words.split())
        assert as_object(sender, found)["findings"][0]["chapter"] in CHAPTERS.values()
        assert max(map(len, words.splitlines())) <= 100


def test_where_nothing_is_found_or_seen_the_report_says_so():
    assert "Nothing found." in text(seen(run__seconds=0.11), ())
    sender = seen(packets=None, calls=None, bare=None, unseen=("It was dark.",))
    words = text(sender, diagnose(sender))
    assert "packets in a message   unknown" in words
    assert "messages in a call     unknown" in words
    assert words.startswith("It was dark. ")
    made = as_object(sender, ())
    assert made["packets_per_message"] is made["share_of_bare_loop"] is None


@pytest.mark.parametrize("facts", [{}, {"packets": None, "calls": None, "bare": None}])
def test_json_can_be_read_back(facts):
    sender = seen(**facts)
    made = json.loads(json.dumps(as_object(sender, diagnose(sender))))
    assert seen_of(made) == sender


@pytest.mark.parametrize(("runnable_s", "is_said"), [(0.1, False), (0.4, True)])
def test_a_thread_that_waits_for_a_core_makes_the_rate_doubtful(runnable_s, is_said):
    waiting = seen(run__threads=(thread(user_s=0.1, system_s=0.5, runnable_s=runnable_s),))
    assert ("measure again on a quiet machine" in text(waiting, ())) is is_said
    shared = findings.Finding("shared-core", "Two threads share a core.", "Give them two.")
    assert "quiet machine" not in text(waiting, (shared,))


def test_what_explains_next_to_nothing_does_so_in_plain_words():
    little = findings.Finding("small-packets", "Packets are small.", "Take larger.", 1e-4, 0.001)
    assert "(explains < 1 % of the distance)" in " ".join(text(seen(), (little,)).split())


@pytest.mark.parametrize(
    ("line", "n_bytes", "words"),
    [
        ("1000,,cache-misses,5,100.00,,", 64_000, "6.4e-05 bytes for each that it sends"),
        ("1000,,cache-misses:u,5,100.00,,", 64_000, "sends, the kernel's not counted"),
        ("<not supported>,,cache-misses,0,100.00,,", None, "shows no hardware counters"),
        ("<not counted>,,cache-misses,0,100.00,,", None, "shows no hardware counters"),
        ("", None, "for want of time or of permission (kernel.perf_event_paranoid)"),
    ],
)
def test_what_perf_writes_is_memory_traffic_or_a_reason(line, n_bytes, words):
    found = parse_traffic(f"# started\n\n{line}\n")
    assert found.n_bytes == n_bytes
    made = seen(traffic=found)
    assert words in text(made, ())
    assert seen_of(json.loads(json.dumps(as_object(made, ())))) == made

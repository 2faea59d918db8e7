# SPDX-License-Identifier: BSD-3-Clause
"""What facts of a sender mean: on both sides of each threshold, with facts made by hand."""

import dataclasses
import json
from typing import Any

import pytest

from spead_tutorial.why import findings, traffic
from spead_tutorial.why.facts import GB, Bare, Calls, Packets, Run, Seen, Thread
from spead_tutorial.why.findings import diagnose
from spead_tutorial.why.report import CHAPTERS, as_object, seen_of, text

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


def test_of_a_faultless_sender_nothing_is_found():
    assert kinds() == []
    assert "Nothing found." in text(seen(run__seconds=0.11), ())


def test_a_message_for_each_packet_is_no_segmentation_offload():
    assert kinds(**one_per_message()) == ["no-segmentation-offload"]
    assert kinds(**one_per_message(), packets__fragments=0, calls=None) == [
        "no-segmentation-offload"
    ]
    assert kinds(packets__packets=int(MESSAGES * findings.ONE) + 1) == []
    assert kinds(packets__packets=int(MESSAGES * findings.ONE)) == ["no-segmentation-offload"]


def test_without_calls_nothing_is_weighed_and_the_report_says_so_first():
    facts = one_per_message() | {"run__seconds": 4.0, "unseen": ("It was dark.", "And cold.")}
    found = diagnose(seen(**facts, calls=None))
    assert [(one.cost_s, one.explains) for one in found] == [(None, None)]
    lines = text(seen(**facts, calls=None), found).splitlines()
    assert lines[0].startswith("It was dark. So it is not known whether it sleeps, though it was")
    assert lines[-1] == "And cold."


def test_of_a_few_packets_nothing_is_said():
    n = findings.ENOUGH_PACKETS
    assert kinds(**one_per_message(n - 1), calls=None) == []
    assert kinds(**one_per_message(n), calls=None) == ["no-segmentation-offload"]


def test_a_call_for_each_packet_is_found_before_what_it_has_in_common_with_others():
    facts = one_per_message()
    both = ["call-per-packet", "no-segmentation-offload"]
    assert kinds(**facts, calls__send_calls=111_111) == both
    assert kinds(**facts, calls__send_calls=int(111_111 / findings.ONE) + 1) == both
    assert kinds(**facts, calls__send_calls=int(111_111 / findings.ONE) - 1) == both[1:]
    # A call for each message is no fault if the message holds several packets.
    assert kinds(calls__send_calls=MESSAGES) == []


def fragmented(size: int) -> dict[str, Any]:
    """Packets that the kernel cuts, and a call for each."""
    n, pieces = GB // size, -(-size // 9192)
    facts = {"messages": n * pieces, "packets": n, "fragments": n * (pieces - 1)}
    facts |= {"packet_bytes": size}
    calls = {"calls__messages": n, "calls__send_calls": n}
    return {f"packets__{name}": value for name, value in facts.items()} | calls


def test_packets_as_large_as_messages_get_may_have_a_call_each():
    assert kinds(**fragmented(60_000)) == ["fragments"]
    assert set(kinds(**fragmented(20_000))) == {"fragments", "call-per-packet"}


def test_of_a_packet_in_fragments_a_call_costs_no_more_than_of_a_whole_one():
    def cost(facts: dict[str, Any]) -> float:
        found = {finding.kind: finding.cost_s for finding in diagnose(seen(**facts))}
        return found["call-per-packet"]

    whole = one_per_message(GB // 20_000) | {"calls__send_calls": GB // 20_000}
    whole["packets__packet_bytes"] = 20_000
    assert cost(fragmented(20_000)) == cost(whole)
    assert kinds(**fragmented(20_000))[0] == "fragments"


def test_new_pages_for_a_fifth_of_the_payload_are_fresh_memory():
    pages = GB / 4096 * findings.FRESH
    assert kinds(run__threads=(thread(faults=round(pages) + 1),)) == ["fresh-memory"]
    assert kinds(run__threads=(thread(faults=round(pages) - 1),)) == []


def test_new_memory_in_huge_pages_is_fresh_though_there_are_few_faults():
    assert kinds(calls__mapped_bytes=round(GB * findings.FRESH) + 1) == ["fresh-memory"]
    assert kinds(calls__mapped_bytes=round(GB * findings.FRESH) - 1) == []


def sleeping(asked_s: float, idle: float) -> dict[str, Any]:
    busy = thread(user_s=0.0, system_s=1.0 - idle)
    return {"run__threads": (busy,), "calls__sleeps": 100, "calls__asked_s": asked_s}


def test_a_sender_that_sleeps_for_a_fifth_of_its_time_and_rests_meanwhile_sleeps():
    assert kinds(**sleeping(0.5, 0.5)) == ["sleeps"]
    assert kinds(**sleeping(0.26, 0.21)) == ["sleeps"]
    assert kinds(**sleeping(0.15, 0.21)) == []  # it rests for another reason
    assert kinds(**sleeping(0.5, 0.19)) == []  # another thread works meanwhile
    assert kinds(**sleeping(0.0, 0.5)) == []


@pytest.mark.parametrize(("idle", "found"), [(0.101, ["sleeps"]), (0.099, [])])
def test_an_idle_moment_on_a_busy_machine_may_be_chance(idle, found):
    busy = thread(user_s=0.0, system_s=0.2, runnable_s=0.8 - idle)
    assert kinds(run__threads=(busy,), calls__sleeps=100, calls__asked_s=0.5) == found


def test_a_sender_that_gets_a_core_only_now_and_then_sleeps_if_most_of_its_own_time_is_idle():
    facts = {"calls__sleeps": 100, "calls__asked_s": 0.5}
    rarely = thread(user_s=0.0, system_s=0.01, runnable_s=0.96)
    assert kinds(run__threads=(rarely,), **facts) == ["sleeps"]


def test_of_too_little_cpu_time_nobody_knows_whose_it_was():
    facts = {"run__payload_bytes": GB // 100, "run__seconds": 0.05}
    assert kinds(run__threads=(thread(user_s=0.05, system_s=0.0),), **facts) == ["slow-data"]
    assert kinds(run__threads=(thread(user_s=0.04, system_s=0.0),), **facts) == []


def test_sleeping_is_found_where_others_have_the_cores_for_most_of_the_time():
    waits = thread(user_s=0.0, system_s=0.05, runnable_s=0.84)
    facts = {"calls__sleeps": 100, "calls__asked_s": 0.3}
    assert kinds(run__threads=(waits,), **facts) == ["sleeps"]


def test_where_no_calls_are_seen_resting_alone_is_no_finding():
    assert kinds(run__threads=(thread(system_s=0.1),), calls=None) == []


@pytest.mark.parametrize(
    ("user_s", "system_s", "found"),
    [(1.7, 0.3, ["slow-data"]), (1.7, 1.8, []), (0.4, 0.1, []), (0.6, 0.1, ["slow-data"])],
)
def test_slow_data_takes_most_of_the_cpu_time_and_longer_than_memory_does(user_s, system_s, found):
    busy = thread(user_s=user_s, system_s=system_s)
    assert kinds(run__threads=(busy,), run__seconds=0.5) == found


def test_what_python_takes_for_each_call_is_no_slow_data():
    facts = one_per_message() | {"calls__send_calls": 111_111}
    busy = thread(user_s=0.6, system_s=0.4)
    assert "slow-data" not in kinds(run__threads=(busy,), **facts)


def kept(core: int, tid: int, cpu_s: float = 0.5) -> Thread:
    return thread(f"t{tid}", tid=tid, user_s=0.0, system_s=cpu_s, cpus=(core,))


@pytest.mark.parametrize(
    ("threads", "found"),
    [
        ((kept(0, 1), kept(0, 2)), ["shared-core"]),
        ((kept(0, 1), kept(1, 2)), []),
        ((kept(0, 1), kept(0, 2, 0.009)), []),  # it does next to nothing
        ((kept(0, 1), kept(0, 2, 0.011)), ["shared-core"]),
        ((kept(0, 1), thread("free", tid=2)), []),
        ((kept(0, 1),), []),
    ],
)
def test_two_busy_threads_that_may_use_one_core_share_it(threads, found):
    assert kinds(run__threads=threads) == found


def test_a_machine_with_one_core_has_none_to_share():
    assert kinds(run__threads=(kept(0, 1), kept(0, 2)), cores=1) == []


def test_packets_of_less_than_half_of_what_fits_are_small():
    assert kinds(packets__packet_bytes=4593, packets__packets=217_700) == ["small-packets"]
    assert kinds(packets__packet_bytes=4594, packets__packets=217_700) == []


def test_small_packets_that_are_whole_heaps_are_small_heaps():
    facts = one_per_message(1_000_000) | {"calls__send_calls": 1_000_000}
    assert kinds(**facts, packets__packet_bytes=1000, packets__heap_bytes=960) == ["small-heaps"]


def test_a_hundredth_of_fragments_is_found_and_hides_that_nothing_is_merged():
    facts = {"packets__messages": 10_000, "packets__packets": 9_900, "packets__packet_bytes": 9500}
    assert kinds(**facts, packets__fragments=100) == ["fragments"]
    assert kinds(**facts, packets__fragments=99) == ["no-segmentation-offload"]


def small(size: int, calls: int, user_s: float = 0.1) -> dict[str, Any]:
    return {
        "packets__heap_bytes": size,
        "calls__send_calls": calls,
        "run__threads": (thread(user_s=user_s),),
    }


def test_small_heaps_of_which_fewer_than_five_share_a_call_are_found():
    heaps = GB // 16384
    assert kinds(**small(16384, round(heaps * 0.2) + 1)) == ["small-heaps"]
    assert kinds(**small(16384, round(heaps * 0.2) - 1)) == []
    assert kinds(**small(findings.SMALL_HEAP, round(heaps * 0.2) + 1)) == []


def test_small_heaps_that_take_the_program_some_microseconds_each_are_found():
    heaps = GB / 16384
    assert kinds(**small(16384, 1000, heaps * 3.1e-6)) == ["small-heaps"]
    assert kinds(**small(16384, 1000, heaps * 2.9e-6)) == []


def test_what_costs_most_comes_first_and_says_which_part_of_the_distance_it_explains():
    facts = one_per_message() | {"calls__send_calls": 1000}
    few, many = thread(faults=60_000), thread(faults=2_400_000)
    assert kinds(**facts, run__threads=(few,)) == ["no-segmentation-offload", "fresh-memory"]
    found = diagnose(seen(**facts, run__threads=(many,)))
    assert [one.kind for one in found] == ["fresh-memory", "no-segmentation-offload"]
    # 2.4 million faults of 0.2 µs, where the sender takes 1 s and the bare loop 0.1 s.
    assert found[0].cost_s == pytest.approx(0.48)
    assert found[0].explains == pytest.approx(0.48 / 0.9)


def test_without_a_bare_loop_findings_are_the_same_but_weigh_nothing():
    found = diagnose(seen(**one_per_message(), bare=None))
    assert [(one.kind, one.cost_s, one.explains) for one in found] == [
        ("no-segmentation-offload", None, None)
    ]


def test_every_kind_has_a_chapter_a_check_and_words_for_its_gain():
    faults = {
        "no-segmentation-offload": one_per_message(),
        "call-per-packet": one_per_message() | {"calls__send_calls": 111_111},
        "fresh-memory": {"run__threads": (thread(faults=10**6),)},
        "sleeps": sleeping(0.5, 0.5),
        "slow-data": {"run__threads": (thread(user_s=5.0),)},
        "shared-core": {"run__threads": (kept(0, 1), kept(0, 2))},
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


def test_what_was_not_seen_is_unknown_and_said():
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
    found = traffic.parse(f"# started\n\n{line}\n")
    assert found.n_bytes == n_bytes
    made = seen(traffic=found)
    assert words in text(made, ())
    assert seen_of(json.loads(json.dumps(as_object(made, ())))) == made

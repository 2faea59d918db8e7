# SPDX-License-Identifier: BSD-3-Clause
"""Why receivers lose packets: what facts mean, and what is said of receivers with known faults."""

import dataclasses
from collections import Counter

import pytest

from spead_tutorial.tools.why import receiver_times as times
from spead_tutorial.tools.why.facts import Thread
from spead_tutorial.tools.why.receiver_facts import Call, Reads

READS = Reads(
    calls=100, messages=800, names=("recvmmsg",), seconds=0.1, others=(), pauses=0, paused_s=0.0,
    longest_s=0.0, paused_own_s=0.0,
)  # fmt: skip
LOGS = dataclasses.replace(READS, others=(Call("write", 1.0, 0.3, waits=False),))
# ---- What threads do ----

FUTEX = "futex"


@pytest.mark.parametrize(
    ("blocked", "queued", "others", "kind"),
    [
        (("nanosleep", ()), 1, (), "sleep"),
        (("nanosleep", ()), 0, (), "input"),
        (("recvfrom", ()), 1, (), "input"),
        (("epoll_wait", (3, 0, 8, 20, 0, 0)), 1, (), "sleep"),
        (("epoll_wait", (3, 0, 8, 0xFFFFFFFF, 0, 0)), 1, (), "input"),
        (("poll", (0, 1, 1000, 0, 0, 0)), 1, (), "sleep"),
        ((FUTEX, (9, 128, 2, 0, 0, 0)), 1, (None,), "lock"),
        ((FUTEX, (9, 393, 0, 5, 0, 0)), 1, (None,), "lock"),
        ((FUTEX, (9, 393, 0, 5, 0, 0)), 1, (), "sleep"),
        ((FUTEX, (9, 393, 0, 0, 0, 0)), 1, (None,), "thread"),
        (("fsync", (3,)), 1, (), "calls"),
        (("", ()), 1, (), "unexplained"),
    ],
)
def test_a_wait_is_told_by_its_call_what_is_in_the_socket_and_who_runs(
    blocked: tuple[str, tuple[int, ...]], queued: int, others: tuple[None, ...], kind: str
):
    look: times.Look = {1: blocked, **dict(enumerate(others, 2))}
    assert times.wait_of(1, look, queued, {1: "reader", 2: "worker"})[0] == kind


def test_a_spare_thread_of_a_pool_waits_for_packets():
    parked = (FUTEX, (9, 128, 0, 0, 0, 0))
    assert times.wait_of(1, {1: parked, 2: None}, 1, {}, pool={1, 2})[0] == "input"


LINES = """\
10 5.000000 recvfrom(3<UDP:[77]>, ""..., 65536, 0, NULL, NULL) = 9000 <0.000030>
10 5.000100 write(1</tmp/log>, ""..., 9) = 9 <0.000050>
11 5.000120 futex(0x1, FUTEX_WAIT, 0, NULL <unfinished ...>
10 5.000200 recvfrom(3<UDP:[77]>, ""..., 65536, 0, NULL, NULL) = 9000 <0.000030>
11 5.000300 <... futex resumed>) = 0 <0.000180>
10 5.000300 recvfrom(3<UDP:[77]>, 0x5, 65536, 0, NULL, NULL) = -1 EAGAIN (Resource) <0.000010>
10 5.000400 recvfrom(3<UDP:[77]>,  <unfinished ...>
10 5.000450 <... recvfrom resumed>""..., 65536, 0, NULL, NULL) = 9000 <0.000050>
10 5.050450 recvfrom(3<UDP:[77]>, ""..., 65536, 0, NULL, NULL) = 9000 <0.000030>
10 5.050500 read(4</tmp/other>, ""..., 9) = 9 <0.000010>
10 5.050550 recvmmsg(3<UDP:[77]>, 0x7, 8, MSG_WAITFORONE, NULL) = 8 <0.000040>
"""


def test_of_straces_lines_reads_other_calls_and_pauses_are_counted():
    reads, readers = times.parse_reads(LINES.splitlines(), [77]) or pytest.fail("nothing read")
    assert (reads.calls, reads.messages, readers) == (5, 12, {10})
    assert reads.names == ("recvfrom", "recvmmsg")
    assert {call.name: call.per_packet for call in reads.others} == {
        "write": 1 / 12,
        "read": 1 / 12,
    }
    assert reads.pauses == 1
    assert reads.paused_own_s == pytest.approx(0.05)
    assert times.parse_reads(LINES.splitlines(), [78]) is None


def test_threads_are_found_again_by_name_and_place_and_pools_as_a_whole():
    names = {5: "main", 6: "main", 7: "go", 8: "go", 9: "go"}
    where = times.places(names, {6, 7, 9})
    assert times.threads_at({n + 90: name for n, name in names.items()}, where) == {96, 97, 98, 99}


def test_the_parts_of_a_threads_time_sum_to_it():
    thread = Thread(1, "reader", 0.2, 0.3, 0.1, 0, 0, 1000, (0,))
    waits = {1: Counter({("sleep", "nanosleep"): 3, ("input", ""): 1})}
    (made_,) = times.account(1.0, [thread], waits, {1}, LOGS, 100.0, 1e-4).threads
    assert sum(part.seconds for part in made_.parts) == pytest.approx(1.0)
    assert made_.of("sleep") == pytest.approx(0.3)
    assert made_.of("faults") == pytest.approx(0.1)
    assert made_.of("calls") == pytest.approx(0.15)  # as strace divides it: 0.3 s to 0.1

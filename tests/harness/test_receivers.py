# SPDX-License-Identifier: BSD-3-Clause
"""Receivers that are measured: what they receive, and whether it adds up."""

import dataclasses
import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import peers, receivers, sweeps
from bench.receivers import DELIVERING, RECEIVING, SEARCHING, Receiving
from spead_tutorial.chapters.catalogue import MEASURED, RECEIVERS
from spead_tutorial.lab import Lab
from spead_tutorial.measure import search
from spead_tutorial.measure.case import Case, Step
from spead_tutorial.measure.delivery import receiving_lab
from spead_tutorial.measure.records import Sample
from support import ref_decode
from support.labs import needs_lab
from support.sockets import messages

pytestmark = needs_lab
#: A program in C is measured in `make test`, and its twin in the thorough run.
each_language = pytest.mark.parametrize(
    "language", ["c", pytest.param("python", marks=pytest.mark.thorough)]
)
BIN = receivers._BIN
KIB, MIB = 1 << 10, 1 << 20
#: Bytes that a sender with a rate may be ahead of it: what it sends at once, two messages at most.
AT_ONCE = 2 * 65507
OURS = ("ours", "c", "receive")
#: Who receives, and where, or in turns with its sender.
WAYS = [
    (OURS, ""),
    (OURS, "veth"),
    (OURS, "in turns"),
    (("ours", "python", "receive_chunks"), ""),
    (("ceiling", "c", "receive"), ""),
    (("spead2", "python", "receive"), ""),
    *(
        pytest.param(one, "", marks=pytest.mark.thorough)
        for one in (
            ("ours", "python", "receive"),
            ("ours", "c", "receive_chunks"),
            ("spead2", "python", "receive_chunks"),
            ("spead2-source", "c", "receive"),
            ("spead2-source", "c", "receive_chunks"),
            ("spead2-source", "python", "receive_chunks"),
        )
    ),
]


@pytest.fixture(autouse=True)
def built_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have what `make peer` has built here tried, too."""
    monkeypatch.setattr(peers, "_FROM_SOURCE", peers._MADE)
    monkeypatch.setattr(receivers, "PEER_PROGRAMS", peers._MADE / "programs")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A lab that has a second machine, where there can be one."""
    with receiving_lab() as lab:
        yield lab


def case_of(who: tuple[str, str, str], heap_size: int, packet_size: int, *more: str) -> Case:
    return Case(*who, heap_size, packet_size, variant=", ".join(filter(None, more)))


def taken(lab: Lab, case: Case, heaps: int, observer: Receiving = RECEIVING) -> Sample:
    """A sample that has not failed."""
    reason = observer.missing(case)
    if reason is not None:
        pytest.skip(reason)
    sample = observer.take(lab, Step(0, False, case), heaps)
    assert sample.failure is None
    return sample


@pytest.mark.parametrize(("who", "way"), WAYS, ids=str)
def test_every_receiver_gets_all_samples_as_they_were_sent(lab, who, way):
    for heap_size, packet_size in ((64 * KIB, 9000), (100_000, 1472)):
        sample = taken(lab, case_of(who, heap_size, packet_size, way, "checked"), 20)
        assert sample.received_heaps == 20
        assert sample.payload_bytes == 20 * heap_size
        assert sample.received_dropped == 0
        assert sample.received_packets == sample.packets
        assert sample.peak_memory_bytes > heap_size
        assert sample.rate > 0
        assert sample.kind == ("veth" if way == "veth" else "loopback")


@each_language
def test_heaps_of_which_packets_were_lost_are_not_counted_and_others_come_whole(lab, language):
    case = Case("ours", language, "receive", 20_000, 1472, variant="spoilt, checked")
    sample = taken(lab, case, 2000)  # of 15 packets, of which every 1009th is lost
    assert sample.received_dropped == 0
    assert 1800 < sample.received_heaps < 2000


def test_what_a_socket_has_no_room_for_is_in_the_account(lab, monkeypatch):
    monkeypatch.setattr(receivers, "_BUFFER", 1)  # the kernel gives a little more
    sample = taken(lab, case_of(OURS, 64 * KIB, 9000, "1000 GB/s"), 2000)
    assert sample.packets == sample.received_packets + sample.received_dropped
    assert sample.received_heaps <= 2000


def test_samples_that_were_not_those_that_were_sent_are_a_failure(lab, monkeypatch):
    unchecked = receivers._sender
    monkeypatch.setattr(
        receivers, "_sender", lambda *said: [w for w in unchecked(*said) if w != "--fill"]
    )
    case = case_of(OURS, 64 * KIB, 9000, "checked")
    sample = RECEIVING.take(lab, Step(0, False, case), 5)
    assert sample.rate is None
    assert "have other samples than were sent" in sample.failure


def test_what_a_receiver_says_before_it_ends_is_the_failure(lab, monkeypatch):
    monkeypatch.setattr(receivers, "_program", lambda case: Path("/bin/false"))
    sample = RECEIVING.take(lab, Step(0, False, case_of(OURS, KIB, 9000)), 5)
    assert sample.failure == "receive: it ended with status 1 and said nothing"


# ---- The highest rate without loss ----


@pytest.mark.parametrize(
    ("receiver", "language"),
    [
        # Of each program in one language, and of all in all.
        pytest.param(one, language, marks=[pytest.mark.thorough] * (at % len(MEASURED) != n))
        for at, one in enumerate(RECEIVERS)
        for n, language in enumerate(MEASURED)
    ],
    ids=lambda one: getattr(one, "name", one),
)
def test_a_chapters_program_receives_what_is_sent_at_a_rate_and_understands_it(
    lab, receiver, language
):
    case = Case("ours", language, receiver.name, 64 * KIB, 9000, observer=SEARCHING)
    sample = RECEIVING.take(lab, Step(0, False, case), 30, 1e8)
    assert sample.failure is None
    assert sample.chapter == receiver.number
    assert (sample.received_heaps, sample.received_dropped) == (30, 0)
    assert sample.received_packets == sample.packets == 30 * 8 + 1  # and the end
    assert sample.payload_bytes == 30 * 64 * KIB
    assert sample.asked_bytes_per_s == 1e8
    assert search.offered(sample) * (1 - AT_ONCE / sample.spead_bytes) <= 1e8


@each_language
def test_several_sockets_on_a_port_are_filled_in_turn_while_they_are_not_read(lab, language):
    case = Case("ours", language, "tut_18_recv_many_sockets", 64 * KIB, 9000, variant="in turns")
    for n in (1, 3):
        sample = taken(lab, dataclasses.replace(case, streams=n), 300)
        assert (sample.received_heaps, sample.received_dropped) == (300, 0)


def test_a_search_takes_runs_until_it_has_found_something(lab):
    case = Case(*OURS, 64 * KIB, observer=SEARCHING)
    runs = list(SEARCHING.observe(lab, sweeps.SIZES["tiny"], Step(0, True, case), None))
    assert [one.failure for one in runs] == [None] * len(runs)
    assert [one.run for one in runs] == list(range(len(runs)))
    asked = [search.next_rate(runs[:n], search.START, search.ROUGH) for n in range(len(runs) + 1)]
    assert asked == [*(one.asked_bytes_per_s for one in runs), None]
    assert search.found(runs) is not None


# ---- Chapter 9's, as one runs it ----


@each_language
def test_a_sample_says_what_arrived_and_how_often_the_pool_was_empty(lab, language):
    who = ("ours", language, sweeps.POOL)
    case = Case(*who, MIB, variant="pool of 0", heaps=5, link=400_000_000)
    sample = taken(lab, case, 5, DELIVERING)
    assert (sample.heaps, sample.received_heaps, sample.pool_empty) == (5, 5, 6)  # and the stop
    assert (sample.chapter, sample.variant) == (9, "pool of 0, link of 0.4 Gb/s")
    assert sample.packets == sample.received_packets
    assert sample.payload_bytes == 5 * MIB
    assert sample.page_faults > 0


# ---- The sender ----


@pytest.fixture
def ends(lab) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A socket to send through, and one that gets it."""
    with receivers.connected(lab, 1 << 20) as made:
        yield made.sender, made.receiver


def blast(ends: tuple[socket.socket, socket.socket], *words: object) -> dict[str, Any]:
    sender, receiver = ends
    argv = [BIN / "blast", "--json", "--socket", sender.fileno(), *words]
    fds = [sender.fileno(), receiver.fileno()]
    done = subprocess.run(map(str, argv), pass_fds=fds, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def packets_of(receiver: socket.socket) -> list[tuple[int, int]]:
    """The heap and the payload offset of each packet that came."""
    return [(one.cnt, one.offset) for one in map(ref_decode.parse, messages(receiver))]


def test_a_sender_loses_every_nth_packet_and_swaps_others(ends):
    first = [0, 944, 1904, 2864]  # packets of 1000 bytes, with headers of 56 and 40
    whole = [(cnt, offset) for cnt in range(2) for offset in first]
    options = ("-n", 2, "-H", 3500, "-p", 1000)
    assert blast(ends, *options)["packets"] == 9
    assert packets_of(ends[1])[:-1] == whole
    blast(ends, *options, "--lose", 3)
    assert packets_of(ends[1])[:-1] == [p for i, p in enumerate(whole, 1) if i % 3]
    blast(ends, *options, "--swap", 2)
    assert packets_of(ends[1])[:-1] == [whole[i] for i in (0, 2, 1, 4, 3, 6, 5, 7)]


def test_a_sender_is_never_ahead_of_the_rate_that_it_was_asked_for(ends):
    done = blast(ends, "-n", 100, "-H", 100_000, "-r", 1e8, "-w", 1)
    late_ns = (
        done["sending_ns"] - (done["spead_bytes"] - done["warm_up_bytes"] - AT_ONCE) / 1e8 * 1e9
    )
    assert late_ns >= 0


def test_heaps_of_substreams_take_turns(ends):
    blast(ends, "-n", 3, "-H", 1500, "-p", 1000, "-s", 2)
    order = [cnt for cnt, _ in packets_of(ends[1])]
    assert order == [0, 1, 0, 1, 2, 2, 3]  # the last one ends the stream


def test_a_sender_that_is_told_to_describes_its_items_and_counts_samples(ends):
    done = blast(ends, "-n", 3, "-w", 1, "-H", 1500, "-p", 1000, "--describe")
    assert done["sending_ns"] <= done["elapsed_ns"]
    assert (done["packets"], done["warm_up_packets"]) == (10, 3)  # descriptors, heaps, the end
    packets = [ref_decode.parse(ends[1].recv(65536)) for _ in range(1 + 4 * 2)]
    described = ref_decode.Heap(0, packets[0].address_bits, packets=packets[:1])
    assert {(one.id, one.name) for one in described.descriptors()} == {
        (0x1600, b"timestamp"),
        (0x3300, b"adc_samples"),
    }
    stamps = [(one.cnt, i.value) for one in packets[1:] for i in one.items if i.id == 0x1600]
    assert stamps == [(1, 0), (2, 1500), (3, 3000), (4, 4500)]

# SPDX-License-Identifier: BSD-3-Clause
"""The account of a stream: every packet in a row, and for what is missing a way out."""

import random
import re

import pytest

import spead_tutorial as st
from spead_tutorial import recv
from spead_tutorial.recv import Account, StreamStats
from spead_tutorial.recv._config import ACCOUNT

#: Counts of packets, each of which became one of these.
FATES = [name for name in (stat.name for stat in ACCOUNT) if name.startswith("packets_")][1:]


@pytest.fixture
def names():
    with st.ThreadPool() as pool, recv.Stream(pool) as stream:
        yield stream.stats.config


def counts(names, **given: int) -> StreamStats:
    """Counts of which these are not 0, and that add up unless they are told not to."""
    given.setdefault("heaps_complete", 1)
    given.setdefault("packets_placed", 10)
    given.setdefault("packets_received", sum(given.get(name, 0) for name in FATES))
    ended = ("heaps_complete", "incomplete_heaps_evicted", "incomplete_heaps_flushed")
    given.setdefault("heaps_begun", sum(given.get(name, 0) for name in (*ended, "heaps_live")))
    return StreamStats(names, [given.get(stat.name, 0) for stat in names])


def test_for_a_count_that_is_not_there_it_is_said_where_all_are(names):
    with pytest.raises(KeyError, match="there is no count 'nothing': list"):
        counts(names)["nothing"]


def test_counts_that_are_not_0_are_shown(names):
    given = dict.fromkeys((stat.name for stat in names), 0)
    assert repr(StreamStats(names, list(given.values()))) == "<StreamStats nothing yet>"
    some = given | {"heaps": 3, "packets_placed": 5}
    assert (
        repr(StreamStats(names, list(some.values()))) == "<StreamStats heaps=3, packets_placed=5>"
    )


ROOM = {"socket_buffer": 2000}


@pytest.mark.parametrize(
    ("given", "row"),
    [
        ({}, " 1  complete"),
        ({"heaps_live": 2}, " 2  still arriving"),
        (
            ROOM | {"longest_unread_ns": 4_000_000},
            "0  dropped for want of room in a buffer of 1000 bytes, not read for up to 4 ms",
        ),
    ],
)
def test_where_nothing_is_missing_it_says_so(names, given, row):
    account = Account(counts(names, **given))
    assert account.is_whole
    assert account.troubles == []
    arrived = account.stats["packets_received"]
    said = f"all {arrived} packets are accounted for, none is missing"
    assert (account.conclusion, account.lines[-1]) == (said, said)
    assert str(account).splitlines() == account.lines
    assert row in str(account)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"incomplete_heaps_flushed": 1}, "1 heap lacks packets that never reached this socket"),
        ({"heaps_never_begun": 1}, "1 heap lacks packets that never reached this socket"),
        (
            {"heaps_never_begun": 1, "capture_frames": 12},
            "1 heap lacks packets that are not in the capture",
        ),
        ({"capture_frames": 1, "capture_cut": 1}, "the capture cut 1 frame: have all of them"),
        ({"capture_frames": 3, "capture_fragments": 2}, "2 fragments of datagrams, which are not"),
        (
            {"capture_frames": 1, "packets_received": 0, "packets_placed": 0},
            "of 1 frame in the capture none is UDP that the filter takes",
        ),
        ({"packets_late": 1, "incomplete_heaps_evicted": 1}, "raise max_heaps"),
        ({"packets_duplicate": 1}, "1 packet duplicate (what it brings had arrived before): the"),
        ({"packets_late": 3}, "or a sender its heap counts, which allow_out_of_order=False takes"),
        ({"sender_mismatches": 2}, "by_sender=False takes heaps of which several senders"),
        ({"packets_after_loss": 2}, "2 packets after loss (packets are taken in order"),
        ({"packets_received": 0, "packets_placed": 0}, "nothing has arrived"),
        ({"socket_dropped": 7}, "the socket had no room for 7 packets: send more slowly"),
        ({"socket_dropped": 7}, "'sysctl -w net.core.rmem_max=67108864'"),
        ({"socket_dropped": 7, "socket_buffer": 1 << 28}, "rmem_max=536870912"),
        ({"socket_dropped": 7, "worker_blocked": 1}, "the program took heaps too slowly"),
        (
            {"socket_dropped": 7, "worker_blocked": 1, "longest_unread_ns": 12_345_678},
            "no heap for up to 12.3 ms, and the socket had no room for 7 packets: send more slowly"
            " or have a thread pool receive",
        ),
        ({"socket_dropped": 7, "incomplete_heaps_evicted": 3}, "the socket had no room"),
        ({"ring_dropped": 2}, "the full ring dropped 2 heaps: take them faster"),
        ({"packets_malformed": 3, "malformed_header": 3}, "3 packets malformed (3: it does"),
        ({"packets_inconsistent": 1}, "1 packet inconsistent (it contradicts other packets"),
        ({"packets_too_large": 1}, "raise max_heap_size"),
        ({"packets_unsized": 1}, "allow_unsized_heaps takes them"),
        ({"packets_no_memory": 1}, "lower max_heaps"),
        ({"packets_no_place": 1}, "see what the place function says"),
        ({"packets_after_end": 1}, "1 packet after end (it came after the end of the stream)"),
        ({"packets_received": 11}, "does not add up: of 11 packets 1 is missing in this stream"),
        ({"heaps_begun": 5}, "does not add up: of 5 heaps 4 are missing in this stream"),
        ({"socket_datagrams": 12}, "does not add up: of 12 datagrams 2 are missing in this"),
    ],
)
def test_each_way_to_lose_packets_has_a_way_out(names, given, words):
    account = Account(counts(names, **given))
    assert not account.is_whole
    assert words in account.conclusion
    assert account.lines[-1] == account.conclusion


def test_what_may_be_missing_is_a_note_and_no_trouble(names):
    account = Account(counts(names, counts_skipped=2))
    assert account.is_whole
    assert account.lines[-1] == account.conclusion
    assert account.conclusion.startswith("all 10 packets are accounted for; heap counts have gaps")
    assert Account(counts(names, counts_skipped=2, packets_late=1)).lines[-1] in account.notes


def test_all_troubles_are_told_and_losses_on_the_way_are_not_guessed(names):
    given = {"socket_dropped": 1, "packets_malformed": 2, "incomplete_heaps_flushed": 1}
    first, second = Account(counts(names, **given)).troubles
    assert "the socket had no room" in first
    assert "2 packets malformed" in second


def test_the_row_of_malformed_packets_says_what_is_wrong_with_them(names):
    account = Account(counts(names, packets_malformed=3, malformed_header=3))
    assert " 3  malformed: 3: it does not begin as packets" in str(account)


def test_with_receive_offload_it_says_how_large_what_was_dropped_is(names):
    given = {"socket_dropped": 3, "socket_datagrams": 10, "socket_messages": 4}
    account = Account(counts(names, **ROOM, **given))
    assert "no room for 3 runs of 2.5 packets on average" in account.conclusion
    assert "3  dropped for want of room in a buffer of 1000 bytes, in runs of 2.5" in str(account)


@pytest.mark.parametrize("seed", range(5))
def test_whatever_becomes_of_packets_the_rows_add_up(names, seed):
    source = random.Random(seed)
    given = {name: source.choice([0, 0, 1, 1000]) for name in FATES}
    account = Account(counts(names, **given))
    assert not any("does not add up" in trouble for trouble in account.troubles)
    group = "\n".join(account.lines).partition("\nheaps")[0].splitlines()
    total, *rows = [int(re.search(r"\d+", line)[0]) for line in group]
    assert sum(rows) == total == account.stats["packets_received"]

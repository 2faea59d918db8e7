# SPDX-License-Identifier: BSD-3-Clause
"""Whether every packet is accounted for, from what devices, machines and sockets counted."""

import pytest

from spead_tutorial.lab import Arrivals, Counters, Journey, accounted
from spead_tutorial.lab.disturbance import Disturbed

# ---- A device ----


@pytest.mark.parametrize(
    ("sent", "counted", "ok"),
    [
        # Packets, their bytes, and messages; then packets and bytes on the device.
        ((10, 14720, 10), (10, 15140), True),
        ((10, 14720, 10), (10, 15141), False),
        ((10, 14720, 10), (9, 13626), False),
        ((10, 14720, 10), (0, 0), False),
        # Messages of several packets whole, or as packets, but not between.
        *(((12, 12000, 2), (n, 12000 + n * 42), n in (2, 12)) for n in (2, 7, 12, 13)),
        # Three datagrams of three fragments; then one of them was lost.
        ((3, 60000, 3), (9, 60000 + 3 * 8 + 9 * 34), True),
        ((3, 60000, 3), (6, 40000 + 2 * 8 + 6 * 34), False),
    ],
)
def test_accounting_accepts_counters_that_are_exact_and_no_others(sent, counted, ok):
    packets, spead_bytes, messages = sent
    claim = {"packets": packets, "spead_bytes": spead_bytes, "messages": messages}
    assert accounted(*counted, **claim).ok is ok


def test_accounting_of_messages_that_came_back_takes_all_of_them_or_none():
    claim = {"packets": 12, "messages": 3, "spead_bytes": 12000, "link_header": 0}
    sent = 12000 + 3 * 28
    assert accounted(6, sent + 3 * 576, **claim, icmp_errors=3, icmp_bytes=3 * 576).ok
    assert accounted(3, sent, **claim).ok
    # A device that takes no GSO message whole has packets that come back one by one.
    cut = 12000 + 12 * 28
    assert accounted(24, cut + 12 * 576, **claim, icmp_errors=12, icmp_bytes=12 * 576).ok
    assert not accounted(6, sent + 3 * 576, **claim).ok
    assert not accounted(6, sent + 3 * 576 + 1, **claim, icmp_errors=3, icmp_bytes=3 * 576).ok
    two = accounted(5, sent + 2 * 576, **claim, icmp_errors=2, icmp_bytes=2 * 576)
    assert not two.ok
    assert two.text.endswith(
        "of 3 messages 1 is missing among those that ICMP returned, all or none"
    )


def test_accounting_says_what_was_expected_and_what_was_seen():
    text = accounted(9, 13626, packets=10, messages=10, spead_bytes=14720).text
    assert text == (
        "the device counted 9 packets and 13626 bytes of 10 SPEAD packets of 14720 bytes in 10"
        " messages; the account does not add up: of 10 packets 1 is missing in the device"
    )


# ---- The way to a receiver ----

#: What a machine counted of 5 packets in 2 messages, a datagram in 3 fragments, a torn one of
#: which one fragment came, and an ICMP error.
COUNTED = {
    "Ip": {"ReasmReqds": 4, "ReasmOKs": 1, "ReasmFails": 1},
    "IpExt": {"InNoECTPkts": 8, "InECT1Pkts": 0, "InECT0Pkts": 2, "InCEPkts": 0},
    "Icmp": {"InMsgs": 1},
    "Udp": {"NoPorts": 7, "RcvbufErrors": 2},
}


def journey(sent: int, arrived: int | None, received: int, **more: int | bool) -> Journey:
    arrivals = None if arrived is None else Arrivals(arrived)
    return Journey(sent=sent, received=received, arrivals=arrivals, **more)


def test_of_merged_messages_each_packet_arrives_and_of_fragments_what_they_make():
    assert Arrivals.of(COUNTED) == Arrivals(packets=6, unclaimed=7, torn=1, no_room=2)
    assert Arrivals.of(COUNTED) - Arrivals(2, 3, 1, 2) == Arrivals(4, 4, 0, 0)


@pytest.mark.parametrize(
    ("it", "losses"),
    [
        (journey(100, 100, 100), "100 received, 0 lost on the way, 0 without room"),
        (journey(100, None, 100), "100 received, 0 lost on the way, 0 without room"),
        (journey(100, 90, 90, lost=10), "90 received, 10 lost on the way, 0 without room"),
        (
            journey(100, 103, 103, duplicated=3),
            "100 packets sent, 3 doubled on the way: 103 received, 0 lost",
        ),
        (journey(100, 60, 60, lost_messages=2), "60 received, 40 lost on the way"),
        (
            journey(100, 100, 40, dropped=3),
            "40 received, 0 lost on the way, 60 without room in the socket (in 3 messages)",
        ),
        (journey(100, None, 40, dropped=60), "0 lost on the way, 60 without room in the socket"),
        (journey(100, 100, 97, dropped=3, merging=False), "3 without room in the socket"),
        (journey(9, 9, 9, sent_bytes=1000, received_bytes=1000), "9 received"),
    ],
)
def test_what_adds_up_is_said_with_what_was_lost_and_where(it, losses):
    accounting = it.check()
    assert accounting.ok
    assert losses in accounting.text
    assert "\n" not in accounting.text
    assert accounting.counted_packets == accounting.expected_packets


@pytest.mark.parametrize(
    ("it", "where"),
    [
        (journey(100, 99, 99), "1 is missing between the sender and the receiver's machine"),
        (journey(100, 100, 99), "1 is missing in the receiver's machine, perhaps in the socket"),
        (journey(100, None, 99), "1 is missing between the sender and the receiver's socket"),
        (
            journey(100, 101, 101),
            "1 is too many between the sender and the receiver's machine: something",
        ),
        (
            journey(100, 99, 99, lost=2),
            "1 is too many between the sender and the receiver's machine: something",
        ),
        # Three messages are three packets at least, and at most what three can hold.
        (journey(100, 100, 98, dropped=3), "2 are missing"),
        (journey(1000, 1000, 1000 - 3 * 128 - 1, dropped=3), "385 are missing"),
        (journey(100, 100, 96, dropped=3, merging=False), "4 are missing"),
        (journey(100, 98, 98, lost_messages=3), "2 are missing"),
        (Journey(100, 60, arrivals=Arrivals(100, unclaimed=2)), "2 messages came: start the"),
        (Journey(100, 99, arrivals=Arrivals(99, torn=1)), "1 torn into fragments"),
        (
            journey(9, 9, 9, sent_bytes=1000, received_bytes=999),
            "of 1000 bytes 1 is missing though no packet is",
        ),
    ],
)
def test_what_does_not_add_up_is_said_with_where_it_could_be(it, where):
    accounting = it.check()
    assert not accounting.ok
    assert where in accounting.text
    assert "\n" not in accounting.text


def test_what_does_not_add_up_is_counted_as_far_as_it_is_known():
    it = journey(100, 95, 90, lost=3, dropped=1, merging=False, sent_bytes=1000, received_bytes=900)
    accounting = it.check()
    assert (accounting.expected_packets, accounting.counted_packets) == (100, 94)
    assert (accounting.expected_bytes, accounting.counted_bytes) == (1000, 900)


def test_of_a_stream_a_way_and_a_device_a_journey_has_what_each_has_counted():
    stats = {"socket_datagrams": 95, "socket_bytes": 950, "socket_dropped": 1, "packets": 7}
    way, device = Disturbed(99, 3, 2, 1, 1), Counters("veth", 9, 9, 9, 9, 9, 5)
    assert Journey.of(100, stats, way=way, device=device, sent_bytes=1000) == Journey(
        *(100, 95, 1, 4, 2, 5), merging=True, sent_bytes=1000, received_bytes=950
    )

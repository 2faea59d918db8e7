# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 3's programs: they receive whatever sends, and all say the same of it."""

import re
import signal
import socket

import numpy as np
import pytest

from spead_tutorial import Item
from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.measure.programs import ProgramOptions, built, command
from spead_tutorial.send import Heap, ItemGroup
from support.programs import cases, each_language
from support.receivers import (
    PORT,
    Receiver,
    end,
    flat,
    group_of,
    lines,
    of_packets,
    packets_of,
    stream,
    whole,
)


def powers(output: str) -> list[tuple[str, str]]:
    """Timestamps, and the powers beside them."""
    return re.findall(r"^Timestamp: (\d+) +Power: (\S+)$", output, re.M)


# ---- What is printed of values ----


def test_values_of_every_type_of_whole_numbers_are_what_numpy_says(lab):
    group = ItemGroup()
    group.add_item(0x1600, "timestamp", "", (), dtype="<i8")
    packets = []
    samples = [np.arange(-20, 300, 7).astype(t) for t in (">i2", "<u2", "<i4", ">u8", "u1", "i1")]
    samples += [np.full((2, 3), -5, ">i8"), np.array([-3, 4, 7], np.int8)]  # an immediate at last
    expected = []
    for cnt, one in enumerate(samples, 1):
        group.add_item(0x3300, "adc_samples", "", one.shape, dtype=one.dtype)
        group["timestamp"].value, group["adc_samples"].value = cnt, one
        packets += whole(group, cnt)
        expected.append((str(cnt), f"{np.mean(np.square(one.astype(np.int64))):.2f}"))
    done = of_packets(lab, [*packets, *end(99)], "-t", "1")
    assert powers(done.output) == expected
    assert f"\nTimestamp: {1:<10} Power: " in done.output
    assert "0x3300 adc_samples, int64[2][3]: \n" in done.output


def test_texts_and_timestamps_of_any_flavour_are_printed_and_strangers_words_as_letters(lab):
    packets = []
    for cnt, bits in enumerate((32, 40, 48), 1):
        packets += whole(group_of(2**bits - 1, np.full(16, 2, np.int8), bits), cnt)
    group = ItemGroup()
    strange = "ti\x1b[2Jme", "a\nb\x07\t\r\x7f"
    group.add_item(0x1700, *strange, (None,), format=[("u", 8), ("f", 32)], value=[(1, 2)])
    done = of_packets(lab, [*packets, *packets_of(group.get_heap(), 4), *end(5)])
    assert powers(done.output) == [(str(2**bits - 1), "4.00") for bits in (32, 40, 48)]
    assert "\n0x1700 ti\\x1b[2Jme, ?[any]: a b\\x07\\t\\r\\x7f\n" in done.output


# ---- What may happen on the way ----


def test_a_heap_that_contradicts_its_descriptors_is_not_understood_and_the_next_one_is(lab):
    packets = []
    for cnt, size in enumerate((8, 6, 8, 12, 8), 1):  # what is beyond the shape is not looked at
        group = group_of(cnt, np.full(size, cnt, np.int8))
        packets += whole(group, cnt, "all" if cnt == 1 else "none")
    done = of_packets(lab, [*packets, *end(6)])
    assert done.status == 0
    assert powers(done.output) == [("1", "1.00"), ("3", "9.00"), ("4", "16.00"), ("5", "25.00")]
    assert "heaps not understood: 1 " in done.output


def test_a_heap_that_contradicts_the_descriptors_it_brings_costs_its_values_alone(lab):
    packets = []
    for cnt, size in enumerate((6, 8), 1):
        group = group_of(cnt, np.zeros(8, np.int8))
        heap = Heap()
        for item in (group["timestamp"], group["adc_samples"]) if cnt == 1 else ():
            heap.add_descriptor(item)
        heap.add_item(group["timestamp"])
        samples = np.full(size, 3, np.int8)
        heap.add_item(Item(0x3300, "adc_samples", "", (size,), np.int8, value=samples))
        packets += packets_of(heap, cnt)
    done = of_packets(lab, [*packets, *end(3)])
    assert "0x3300 adc_samples, int8[8]: \n" in done.output
    assert powers(done.output) == [("2", "9.00")]
    assert "heaps not understood: 1 " in done.output


def test_descriptors_that_come_later_are_understood_from_then_on(lab):
    heaps = stream()
    late = whole(group_of(77, np.ones(2, np.int8)), 10)
    done = of_packets(lab, flat([*heaps[5:9], late, heaps[-1]]))
    assert done.status == 0
    assert powers(done.output) == [("77", "1.00")]
    words = "(their descriptors did not arrive, or say something else)"
    assert f"heaps not understood: 4 {words}\n" in done.output


def test_where_the_very_first_packet_is_lost_nothing_is_understood_and_it_is_no_success(lab):
    done = of_packets(lab, flat(stream())[1:])
    assert done.status == 1
    assert "heaps not understood: 9 " in done.output


def test_what_comes_twice_is_told_and_does_no_harm(lab):
    twice = [packet for packet in flat(stream()[:-1]) for _ in range(2)]
    done = of_packets(lab, twice, "-t", "0.25")
    assert done.status == 1
    assert "packets came twice, or late: let each sender count heaps on" in done.errors
    assert lines(10) in done.output
    (total, *parts) = map(int, re.findall(r"\d+", re.findall("^packets: .*", done.output, re.M)[0]))
    assert total == sum(parts) == 120


def test_a_packet_that_is_none_is_a_trouble_that_is_named(lab):
    done = of_packets(lab, [b"GET / HTTP/1.1", *flat(stream())])
    assert done.status == 1
    assert done.errors == (
        "tut_3_recv: packets are malformed: they are longer than 9200 bytes, or something else"
        " sends to this port\n"
    )


@each_language
def test_what_the_socket_has_no_room_for_is_told_from_what_is_lost_on_the_way(lab, language):
    receiver = Receiver(lab, language)
    receiver.process.send_signal(signal.SIGSTOP)
    argv = command(find_chapter("10"), "c", ProgramOptions(heaps=100), ("127.0.0.1", PORT))
    assert lab.run(argv, capture_output=True).returncode == 0
    with lab.socket() as sock:  # the stop heap had no room either
        receiver.process.send_signal(signal.SIGCONT)
        (stop,), done = stream()[-1], None
        while done is None:
            sock.sendto(stop, ("127.0.0.1", PORT))
            done = receiver.process.poll()
    ended = receiver.end()
    assert ended.status == 1
    assert "the socket had no room for all packets: send more slowly" in ended.errors
    assert re.search(r"^socket: [1-9]\d* dropped$", ended.output, re.M)


@pytest.mark.parametrize(
    ("place", "host", "language"),
    cases(
        [
            (place, host, language)
            for place, host in (
                ("127.0.0.1:8888", "127.0.0.1"),
                ("localhost:8888", "127.0.0.1"),
                ("[::1]:8888", "::1"),
                (":8888", "127.0.0.1"),
                ("8888", "::1"),
            )
            for language in built()
        ],
        lambda place, host, language: language == "c" or place in ("[::1]:8888", "8888"),
    ),
)
def test_it_listens_where_it_is_told_to(lab, language, place, host):
    receiver = Receiver(lab, language, place)
    assert "listening on port 8888" in receiver.said
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with lab.socket(family) as sock:
        for packet in flat(stream()):
            sock.sendto(packet, (host, PORT))
    assert receiver.end().status == 0

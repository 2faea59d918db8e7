# SPDX-License-Identifier: BSD-3-Clause
"""What is wrong first with packets that a reader's sender has made."""

import dataclasses

import pytest

from spead_tutorial.check.packets import Arrived, Wanted, array_fault, first_fault
from support.ref_encode import Descriptor, Inline, Value, encode_heap, packet

WANTED = Wanted(heaps=2, heap_size=200, packet_size=152, random=False)
HEADER = b"{'shape': (200,), 'fortran_order': False, 'descr': '|i1'}"
DESCRIPTORS = [
    Descriptor(0x1600, b"timestamp", b"", b"", (("u", 40),), ()),
    Descriptor(0x3300, b"adc_samples", b"", HEADER, (), (200,)),
]


def heap(i: int, *, ticks: int = 200, shape: int = 200, header: bytes = HEADER) -> list[bytes]:
    samples = dataclasses.replace(DESCRIPTORS[1], shape=(shape,), numpy_header=header)
    items = [DESCRIPTORS[0], samples] if i == 0 else []
    values = [Inline(0x1600, ticks * i), Value(0x3300, bytes([i] * 200), False)]
    return encode_heap([*items, *values], i + 1, 152)


def changed(packets: list[bytes]) -> list[bytes]:
    """Change the last sample."""
    return [*packets[:-1], packets[-1][:-1] + b"\7"]


def end(cnt: int) -> list[bytes]:
    return encode_heap([Inline(6, 2)], cnt, 152)


HEAPS, END = [*heap(0), *heap(1)], end(3)


def test_heaps_and_packets_may_come_in_any_order():
    assert first_fault([*END, *heap(1)[::-1], *heap(0)], WANTED) is None


@pytest.mark.parametrize(
    ("datagrams", "words"),
    [
        ([*heap(0), *heap(1)[1:], *END], "heap 2, packet 1: expected byte 0 of its payload"),
        ([*heap(0), *heap(1)[:-1], *END], "heap 2: expected 200 bytes of payload, found"),
        ([*HEAPS, heap(1)[0], *END], "heap 2, packet 2: expected byte"),
        ([*heap(0), *END], "heap 2 is missing: expected 2 heaps, found 1"),
        ([*heap(0), *end(2)], "heap 2 ends the stream: expected 2 heaps before it, found 1"),
        (HEAPS, "expected one heap that ends the stream (get_end), found none"),
        ([*HEAPS, *END, *end(4)], "expected one heap that ends the stream (get_end), found 2"),
        ([*HEAPS, *END, *heap(3)], "heap 4: expected the end of the stream, found one"),
        ([*heap(0), *heap(1, ticks=1)], "heap 2, packet 1, timestamp: expected 200, found 1"),
        ([*heap(0), *changed(heap(1))], "heap 2, packet 2, sample 199: expected 1, found 7"),
        ([*HEAPS, b"SPEAD?"], f"packet {len(HEAPS) + 1} of all is no SPEAD packet: "),
        (
            [*HEAPS, END[0][:-1]],
            f"packet {len(HEAPS) + 1} of all is malformed: byte 32: the packet",
        ),
        ([packet(1, None, 0, b"")], "heap 1, packet 1: expected a heap length, found none"),
        ([*heap(0, shape=100)], "heap 1, adc_samples: expected the shape (200,), found (100,)"),
        (
            [*heap(0, header=HEADER.replace(b"i1", b"u1"))],
            "heap 1, adc_samples: expected the type int8, found {",
        ),
        ([*encode_heap([Inline(0x1600, 0)], 1, 400)], "heap 1: expected a descriptor"),
    ],
)
def test_a_fault_of_packets_is_named_with_its_place(datagrams, words):
    assert (first_fault(datagrams, WANTED) or "").startswith(words)


def test_packets_that_are_too_large_are_a_fault():
    assert first_fault(heap(0), dataclasses.replace(WANTED, packet_size=120)) == (
        "heap 1, byte 0 of its payload: expected packets of 120 bytes at most, found one of 152"
    )


def test_random_samples_have_to_be_in_their_range_and_not_all_the_same():
    random = dataclasses.replace(WANTED, random=True)
    words = "expected a random number from -100 to 99, and not always the same, found 0"
    assert (first_fault(heap(0), random) or "").endswith(words)


# ---- To several receivers ----


def to_all(*, first: int = 2, both: int | None = None, ns: int = 1 << 20) -> list[Arrived]:
    """What the second of four senders sends to three receivers, a packet to each in turn."""
    found = []
    for j in range(3):
        values = [Inline(0x1600, 0), Value(0x3300, bytes([1 + j] * 200), False)]
        heaps = [DESCRIPTORS, values, [Inline(6, 2)]]
        if both is not None:
            heaps[both] = [*DESCRIPTORS, *values]
        packets = [
            one for i, items in enumerate(heaps) for one in encode_heap(items, first + 4 * i, 152)
        ]
        found.append([(one, f"127.0.0.{2 + j}") for one in packets])
    every = [one for some in zip(*found, strict=True) for one in some]
    return [Arrived(one, to, i * ns) for i, (one, to) in enumerate(every)]


ONE_HEAP = dataclasses.replace(WANTED, heaps=1)


@pytest.mark.parametrize(
    ("arrived", "words"),
    [
        (to_all(), None),
        (to_all(first=3), "receiver 0: heap 3: expected a count such as 2 or 6, found one of"),
        (to_all(both=0), "receiver 0: heap 2: expected descriptors and nothing else, found a "),
        (to_all(both=1), "receiver 0: heap 6: expected the samples and nothing else, found"),
        (to_all(ns=1000), "the rate of all packets together: expected 10 MB/s, found 1"),
        (to_all()[1:], "receiver 0: heap 2, packet 1: expected byte 0 of its payload, found"),
        ([], "receiver 0: heap 2 is missing: expected 2 heaps, found 0"),
        (
            sorted(to_all(), key=lambda one: one.to),
            "packets 1 to 3 of all: expected one to each receiver, found 127.0.0.2, 127.0.0.2",
        ),
    ],
)
def test_a_fault_of_what_came_to_several_receivers_is_named(arrived, words):
    found = array_fault(arrived, ONE_HEAP)
    assert found == words or (found or "").startswith(words)

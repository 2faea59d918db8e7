# SPDX-License-Identifier: BSD-3-Clause
"""The reference decoder, spead2 and our receiver, over thousands of seeded troubles."""

import random
from collections.abc import Iterable

import pytest
import spead2.recv

import spead_tutorial
from spead_tutorial import recv
from support.ref_decode import FATES, FAULTS, MALFORMED, PLACED, Heap, Receiver, parse
from support.sockets import udp_socket
from support.trouble import Trouble, make_trouble, stop_packet

N_SEEDS = 2400
N_BLOCKS = 20
END = stop_packet((1 << 40) - 7)
BLOCKS = pytest.mark.parametrize(
    "block",
    [0, *(pytest.param(n, marks=pytest.mark.thorough) for n in range(1, N_BLOCKS))],
)


def settings(trouble: Trouble) -> dict[str, int | bool]:
    """What the decoder, spead2 and we call by the same names."""
    names = "max_heaps substreams allow_out_of_order allow_unsized_heaps stop_on_stop_item"
    return {name: getattr(trouble, name) for name in names.split()}


def new_stream(library, trouble: Trouble, pool: object, **more: int):
    """A stream of either library, which gives incomplete heaps, too."""
    config = library.recv.StreamConfig(bug_compat=trouble.bug_compat, **settings(trouble), **more)
    ring = library.recv.RingStreamConfig(
        heaps=1000, contiguous_only=False, incomplete_keep_payload_ranges=True
    )
    return library.recv.Stream(pool, config, ring)


def decoder(trouble: Trouble) -> Receiver:
    return Receiver(max_heap_size=trouble.max_heap_size, **settings(trouble))


def whole(told: Iterable[tuple]) -> list[str]:
    """Heaps in no order, with items in no order."""
    return sorted(repr((cnt, sorted(items, key=repr))) for cnt, _, items, *_ in told)


@BLOCKS
def test_spead2_finds_the_same_in_heaps_that_arrive_whole(block):
    """Of others it says other things; and what is empty is lost to it, or found elsewhere."""
    compared = 0
    for seed in range(block, N_SEEDS, N_BLOCKS):
        trouble = make_trouble(random.Random(seed))
        expected = decoder(trouble)
        expected.take_buffer(b"".join(trouble.datagrams))
        is_bare = not all(parse(packet).payload for packet in trouble.datagrams)
        is_bare |= any(item.value == b"" for heap in expected.heaps for item in heap.items())
        is_placed = sum(expected.fates.values()) == expected.fates[PLACED]
        if is_bare or not is_placed or any(heap.state != "complete" for heap in expected.heaps):
            continue
        stream = new_stream(spead2, trouble, spead2.ThreadPool())
        stream.add_buffer_reader(b"".join(trouble.datagrams))
        heaps = list(stream)
        if any(isinstance(heap, spead2.recv.IncompleteHeap) for heap in heaps):
            continue  # it has pushed out heaps for which there was room
        told = (expected_of_us(heap, trouble.bug_compat) for heap in expected.heaps)
        assert whole(map(told_by_us, heaps)) == whole(told), seed
        compared += 1
    assert compared > 5


# ---- Ours ---------------------------------------------------------------------------------------


def our_stream(trouble: Trouble, seed: int) -> recv.Stream:
    """Every second one is read by a thread, the others without."""
    pool = spead_tutorial.ThreadPool() if seed // N_BLOCKS % 2 else None
    return new_stream(spead_tutorial, trouble, pool, max_heap_size=trouble.max_heap_size)


def told_by_us(heap: recv.Heap | recv.IncompleteHeap) -> tuple[object, ...]:
    items = [
        (item.id, item.immediate_value if item.is_immediate else bytes(item))
        for item in heap.get_items()
    ]
    bits = heap.flavour.heap_address_bits
    if isinstance(heap, recv.IncompleteHeap):
        lengths = heap.heap_length, heap.received_length, heap.payload_ranges
        return heap.cnt, bits, items, *lengths
    return heap.cnt, bits, items, [described(d) for d in heap.get_descriptors()]


def described(d) -> tuple[object, ...]:
    return d.id, d.name, d.description, d.numpy_header, tuple(d.format), tuple(d.shape)


def expected_of_us(heap: Heap, bug_compat: int) -> tuple[object, ...]:
    incomplete = heap.state == "incomplete"
    items = [
        (item.id, item.value)
        for item in (heap.immediates() if incomplete else heap.items())
        if item.id != 5 or isinstance(item.value, int)
    ]
    if incomplete:
        length = -1 if heap.length is None else heap.length
        lengths = length, heap.received_length, heap.arrived
        return heap.cnt, heap.address_bits, items, *lengths
    found = [described(d) for d in heap.descriptors(bug_compat)]
    return heap.cnt, heap.address_bits, items, found


def expected_counts(expected: Receiver) -> dict[str, int]:
    """What the decoder's counts are called in ours."""
    counts = {f"packets_{fate}": n for fate, n in expected.fates.items()}
    counts |= {f"malformed_{fault}": expected.faults.get(fault, 0) for fault in FAULTS}
    counts["packets"] = sum(expected.fates.values()) - expected.fates[MALFORMED]
    counts["payload_bytes"] = sum(heap.received_length for heap in expected.begun)
    return counts | expected.account()


def check(trouble: Trouble, stream: recv.Stream, expected: Receiver, seed: int) -> None:
    told = [expected_of_us(heap, trouble.bug_compat) for heap in expected.heaps]
    assert list(map(told_by_us, stream)) == told, seed
    stream.stop()
    stats = stream.stats
    counts = expected_counts(expected)
    assert {name: stats[name] for name in counts} == counts, seed
    add_up(stats)


def add_up(stats: recv.StreamStats) -> None:
    """Everything that came went somewhere."""
    fates = [stats[f"packets_{fate}"] for fate in (*FATES, "no_memory", "after_end")]
    assert stats.packets_received == sum(fates)
    assert stats.packets_malformed == sum(stats[f"malformed_{fault}"] for fault in FAULTS)
    ends = stats.heaps_complete, stats.incomplete_heaps_evicted, stats.incomplete_heaps_flushed
    assert stats.heaps == sum(ends)
    assert stats.heaps_begun == stats.heaps + stats.heaps_dropped + stats.heaps_live


@BLOCKS
@pytest.mark.parametrize("lies", [False, True], ids=["true", "lies"])
def test_our_receiver_finds_what_the_decoder_finds(block, lies):
    for seed in range(block, N_SEEDS, N_BLOCKS):
        trouble = make_trouble(random.Random(seed), lies=lies)
        expected = decoder(trouble)
        expected.take_buffer(b"".join(trouble.datagrams))
        stream = our_stream(trouble, seed)
        stream.add_buffer_reader(b"".join(trouble.datagrams))
        check(trouble, stream, expected, seed)


@BLOCKS
def test_our_receiver_finds_what_the_decoder_finds_in_datagrams(block):
    for seed in range(block, N_SEEDS // 2, N_BLOCKS):
        trouble = make_trouble(random.Random(seed), lies=True)
        # However it is configured, it ends with the last datagram: a reader of nothing ends it.
        sent = (*trouble.datagrams, END)
        expected = decoder(trouble)
        for data in sent:
            if not expected.stopped:
                expected.take(data)
        if not expected.stopped:
            continue  # the stop is not to end it, or has no place
        stream = our_stream(trouble, seed)
        with udp_socket() as sock:
            for data in sent:
                sock.sendto(data, sock.getsockname())
            stream.add_udp_reader(sock)
            check(trouble, stream, expected, seed)
        assert stream.stats.packets_received <= len(sent), seed

# SPDX-License-Identifier: BSD-3-Clause
"""What accounts say of heap counts as real instruments have them: thousands of random streams.

Each is a capture, so that senders have addresses. What was lost is known from how it was made.
"""

import itertools
import random
import re
from collections.abc import Callable, Iterable

import pytest

from spead_tutorial import recv
from support import captures, ref_encode
from support.trouble import shuffled, stop_packet

N_STREAMS = 300

#: Heap counts, in the order in which they were sent, and the port of who sent each.
Stream = list[tuple[int, int]]


def received(path, frames: Iterable[bytes], **config) -> tuple[list[recv.Heap], recv.Account]:
    """What a stream without a thread makes of a capture."""
    ring = recv.RingStreamConfig(contiguous_only=False)
    config = {"allow_out_of_order": True, "max_heaps": 16} | config
    with recv.Stream(None, recv.StreamConfig(**config), ring) as stream:
        stream.add_udp_pcap_file_reader(captures.write(path, frames))
        heaps = list(stream)
        return heaps, recv.Account(stream.stats)


def one_packet_each(sent: Stream) -> list[bytes]:
    """A packet for each heap, and an end whose count has all bits set."""
    frames = [captures.frame(ref_encode.packet(cnt, 3, 0, b"abc"), source=by) for cnt, by in sent]
    end = (1 << 40) - 1
    if end not in {cnt for cnt, _ in sent}:
        frames.append(captures.frame(stop_packet(end), source=sent[-1][1]))
    return frames


def progression(rng: random.Random, n: int = 0, by: int = 1000) -> Stream:
    """Counts by some step, from somewhere on, beyond the end of all counts if that is near."""
    step = rng.choice([1, 1, 2, 3, 64, 4096, rng.randrange(1, 1 << 30)])
    first = rng.choice([0, 1, rng.randrange(1 << 40), (1 << 40) - 20 * step])
    n = n or rng.randrange(64, 200)
    return [((first + step * i) % (1 << 40), by) for i in range(n)]


def merged(rng: random.Random, *streams: Stream) -> Stream:
    """Streams at the same time, each in its order."""
    left = [list(stream) for stream in streams]
    turns = [i for i, stream in enumerate(left) for _ in stream]
    rng.shuffle(turns)
    return [left[i].pop(0) for i in turns]


# ---- Streams of which nothing is missing ----


def all_of_it(rng: random.Random) -> Stream:
    return progression(rng, rng.randrange(1, 200))


def one_of_many_evenly(rng: random.Random) -> Stream:
    """A sequence that is shared out in turns, of several heaps each."""
    each, of = rng.randrange(1, 80), rng.randrange(2, 9)
    return [one for i, one in enumerate(progression(rng, 400)) if i // each % of == 0]


def one_of_many_by_chance(rng: random.Random) -> Stream:
    share = rng.uniform(0.02, 0.75)
    return [one for one in progression(rng, rng.randrange(64, 600)) if rng.random() < share]


def all_but_each_so_many(rng: random.Random) -> Stream:
    """Every so many heaps, one goes elsewhere: it has metadata."""
    each, n = rng.randrange(4, 60), 600
    return [one for i, one in enumerate(progression(rng, n)) if i % each]


def with_metadata(rng: random.Random) -> Stream:
    """Descriptors that are counted 1, 2, 3 beside data that a clock counts."""
    clock, step = rng.randrange(1 << 30, 1 << 39), rng.choice([1, 512, 1 << 21])
    each = rng.randrange(1, 40)
    sent = []
    for i in range(200):
        if i % each == 0:
            sent.append((1 + i // each, 1000))
        sent.append((clock + i * step, 1000))
    return sent


def two_interfaces(rng: random.Random) -> Stream:
    """Two cards of a sender, with the same port, whose counts begin far apart."""
    apart = 1 << rng.randrange(20, 39)
    return merged(rng, *([(first + i, 1000) for i in range(100)] for first in (1, apart)))


def several_senders(rng: random.Random) -> Stream:
    """Several senders, which all count from 1, or as they like."""
    ports = range(1000, 1000 + rng.randrange(2, 40))
    if rng.random() < 0.5:
        return merged(rng, *([(1 + i, by) for i in range(40)] for by in ports))
    return merged(rng, *(progression(rng, 40, by) for by in ports))


def started_again(rng: random.Random) -> Stream:
    """A sender that is started again has another port, or the same, after a while."""
    first, n = progression(rng, rng.randrange(20, 100)), rng.randrange(2, 5)
    ports = [1000] * n if len(first) > 33 else range(1000, 1000 + n)
    return [(cnt, by) for by in ports for cnt, _ in first]


def with_pauses(rng: random.Random) -> Stream:
    """A clock counts, and the sender pauses."""
    at, sent = rng.randrange(1 << 30), []
    for _ in range(rng.randrange(2, 6)):
        sent += [(at + i, 1000) for i in range(40)]
        at += 40 + rng.randrange(20, 1 << 20)
    return sent


def channels(rng: random.Random) -> Stream:
    """The upper bits of a count say which channel it is of."""
    return merged(
        rng, *([(i << 32 | j, 1000) for j in range(60)] for i in range(rng.randrange(2, 8)))
    )


def times_of_events(rng: random.Random) -> Stream:
    """Counts are times that are not at equal distances."""
    times = itertools.accumulate(rng.randrange(900, 1100) for _ in range(200))
    return [(at, 1000) for at in times]


def downwards(rng: random.Random) -> Stream:
    return progression(rng)[::-1]


WHOLE = [
    all_of_it,
    one_of_many_evenly,
    one_of_many_by_chance,
    all_but_each_so_many,
    with_metadata,
    two_interfaces,
    several_senders,
    started_again,
    with_pauses,
    channels,
    times_of_events,
    downwards,
]


def with_outliers(rng: random.Random, sent: Stream) -> Stream:
    """Perhaps with a stray datagram."""
    sent = list(sent)
    if rng.random() < 0.5:
        stray = rng.randrange(1 << 40)  # which is next to none of the others but by a rare chance
        sent.insert(rng.randrange(len(sent) + 1), (stray, rng.choice([1000, 53])))
    return sent


@pytest.mark.parametrize("kind", WHOLE, ids=lambda kind: kind.__name__)
def test_where_nothing_was_lost_there_is_no_trouble(tmp_path, kind: Callable):
    for seed in range(N_STREAMS):
        rng = random.Random(seed)
        sent = with_outliers(rng, kind(rng))
        heaps, account = received(tmp_path / "made.pcap", one_packet_each(sent))
        assert account.troubles == [], seed
        assert sorted(heap.cnt for heap in heaps) == sorted(cnt for cnt, _ in sent)


# ---- Losses ----


def alone(_: random.Random) -> Stream:
    """Nothing else."""
    return []


def lost_of(rng: random.Random, sent: Stream) -> tuple[Stream, int]:
    """A sequence of which less than one heap in twenty is lost, but not the ends."""
    n = rng.randrange(1, max(2, len(sent) // 20))
    lost = set(rng.sample(range(1, len(sent) - 1), n))
    return [one for i, one in enumerate(sent) if i not in lost], n


def are_even(sent: Stream, n_lost: int, whole: Stream) -> bool:
    """Whether what is lost lies at equal distances, as if it went elsewhere."""
    kept = set(sent)
    places = [i for i, one in enumerate(whole) if one not in kept]
    return n_lost > 3 and len({b - a for a, b in itertools.pairwise(places)}) == 1


@pytest.mark.parametrize(
    "kind", [alone, with_metadata, two_interfaces, several_senders], ids=lambda kind: kind.__name__
)
def test_what_is_lost_of_a_regular_sequence_is_told_exactly(tmp_path, kind: Callable):
    """Whatever else comes to the same port, and though packets overtake each other."""
    for seed in range(N_STREAMS):
        rng = random.Random(seed)
        whole = progression(rng, rng.randrange(60, 300), by=999)
        sent, n_lost = lost_of(rng, whole)
        if are_even(sent, n_lost, whole):
            continue
        if rng.random() < 0.5:
            sent = shuffled(rng, sent, 5)
        frames = one_packet_each(with_outliers(rng, merged(rng, sent, kind(rng))))
        _, account = received(tmp_path / "made.pcap", frames)
        (told,) = account.troubles
        assert re.match(rf"{n_lost} heaps? lacks? packets that are not in the capture", told), seed


def test_what_may_be_lost_of_any_other_sequence_is_noted(tmp_path):
    for seed in range(N_STREAMS):
        rng = random.Random(seed)
        sent = one_of_many_by_chance(rng)
        _, account = received(tmp_path / "made.pcap", one_packet_each(sent))
        if len(sent) < 16:
            continue
        (note,) = account.notes
        assert note.startswith("heap counts have gaps: if the sender counts every heap")
        assert note in account.conclusion
        assert "none is missing" not in str(account)


# ---- Counts that come again ----


def heap_of(cnt: int, by: int, n_packets: int) -> list[bytes]:
    return [
        captures.frame(
            ref_encode.packet(
                cnt, 3 * n_packets, 3 * i, bytes([by % 256]) * 3, [(False, 0x1000, 0)]
            ),
            source=by,
        )
        for i in range(n_packets)
    ]


def test_senders_with_equal_counts_are_kept_apart_packet_by_packet(tmp_path):
    for seed in range(N_STREAMS):
        rng = random.Random(seed)
        ports, n = range(1000, 1000 + rng.randrange(2, 9)), rng.randrange(1, 20)
        streams = [[f for i in range(n) for f in heap_of(i, by, 4)] for by in ports]
        in_order = seed % 2 == 0
        heaps, account = received(
            tmp_path / "made.pcap", merged(rng, *streams), allow_out_of_order=not in_order
        )
        assert account.is_whole, seed
        assert len(heaps) == n * len(ports)
        for heap in heaps:
            (item,) = heap.get_items()
            assert len(set(bytes(item))) == 1  # of one sender


@pytest.mark.parametrize("n_packets", [1, 3])
def test_what_is_taken_for_late_is_told_with_a_way_out(tmp_path, n_packets):
    """A sender whose count is stuck: in any order its heaps are late, in order they are new."""
    frames = [frame for _ in range(40) for frame in heap_of(7, 1000, n_packets)]
    heaps, account = received(tmp_path / "made.pcap", frames)
    assert len(heaps) == 1
    (told,) = account.troubles
    assert told.startswith(f"{39 * n_packets} packets late")
    assert "allow_out_of_order=False takes" in told
    heaps, account = received(tmp_path / "made.pcap", frames, allow_out_of_order=False)
    assert len(heaps) == 40
    assert account.is_whole


def test_two_streams_of_a_sender_to_two_ports_are_two_in_a_capture(tmp_path):
    frames = [
        captures.frame(ref_encode.packet(cnt, 3, 0, b"abc"), port=port)
        for cnt in range(20)
        for port in (8888, 8889)
    ]
    heaps, account = received(tmp_path / "made.pcap", frames)
    assert len(heaps) == 40
    assert account.is_whole


def test_a_heap_that_several_senders_send_is_told_and_can_be_taken(tmp_path):
    frames = [heap_of(cnt, 1000 + i, 4)[i] for cnt in range(20) for i in range(4)]
    _, account = received(tmp_path / "made.pcap", frames)
    assert any("by_sender=False takes" in trouble for trouble in account.troubles)
    heaps, account = received(tmp_path / "made.pcap", frames, by_sender=False)
    assert account.is_whole
    assert len(heaps) == 20

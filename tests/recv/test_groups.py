# SPDX-License-Identifier: BSD-3-Clause
"""Groups of streams that fill the same chunks: as spead2's, and what ours does besides."""

import gc
import logging
import time
import weakref

import numpy as np
import pytest
import spead2.recv

import spead_tutorial as st
import spead_tutorial.recv as recv
from support.chunks import HEAP, HEAPS, TIMESTAMP, Place, by_timestamp, heap

LOSSY, LOSSLESS = recv.ChunkStreamGroupConfig.EvictionMode
MEMBERS = 2
PLACES = recv.ChunkStreamConfig(items=[TIMESTAMP], place=Place.of(by_timestamp))


def new_group(module=st, mode="LOSSLESS", max_chunks=4, threads=True):
    """A group with two members, and chunks to be filled."""
    api = recv if module is st else spead2.recv
    data, free = api.ChunkRingbuffer(20), api.ChunkRingbuffer(20)
    modes = api.ChunkStreamGroupConfig.EvictionMode
    config = api.ChunkStreamGroupConfig(max_chunks=max_chunks, eviction_mode=getattr(modes, mode))
    group = api.ChunkStreamRingGroup(config, data, free)
    places = api.ChunkStreamConfig(items=[TIMESTAMP], place=Place.of(by_timestamp))
    for _ in range(MEMBERS):
        pool = module.ThreadPool() if threads else None
        group.emplace_back(pool, api.StreamConfig(), places)
    for _ in range(12):
        present = np.zeros(HEAPS, np.uint8)
        group.add_free_chunk(api.Chunk(data=np.zeros(HEAP * HEAPS, np.uint8), present=present))
    return group


def got(group):
    """All chunks that come: id, what is present, and data."""
    found = []
    for chunk in group.data_ringbuffer:
        found.append((chunk.chunk_id, list(map(int, chunk.present)), bytes(chunk.data)))
        group.add_free_chunk(chunk)
    return found


def parts(n):
    """The heaps that each member receives."""
    return [[heap(i) for i in range(m, n, MEMBERS)] for m in range(MEMBERS)]


def feed(group, packets):
    for member, of_member in zip(group, packets, strict=True):
        member.add_buffer_reader(b"".join(of_member))


@pytest.mark.parametrize("threads", [True, False], ids=["pools", "no thread"])
def test_members_fill_the_chunks_that_those_of_spead2_do(threads):
    ours, theirs = new_group(threads=threads), new_group(spead2)
    for group in (ours, theirs):
        feed(group, parts(80))
    chunks = got(ours)
    assert chunks == got(theirs)
    assert [(id, present) for id, present, _ in chunks] == [(n, [1] * HEAPS) for n in range(20)]
    theirs.stop()  # its counts lag behind
    for name in ("heaps", "packets", "too_old_heaps", "rejected_heaps"):
        assert [m.stats[name] for m in ours] == [m.stats[name] for m in theirs], name
    assert sum(m.stats.chunks for m in ours) == 20


def test_a_member_that_all_wait_for_is_named(caplog):
    group = new_group(max_chunks=2)
    group[1].add_buffer_reader(b"".join(parts(40)[1]))
    assert group.config.eviction_mode is LOSSLESS
    while group.stats.slow_member is None:
        time.sleep(0)
    assert (group.stats.slow_member, group.stats.slow_chunk_id) == (0, 0)
    while group.stats.slow_ns < 1e9:
        time.sleep(0.1)
    with caplog.at_level(logging.WARNING):
        group._waiting()  # as whoever waits for a chunk does
        group._waiting()
    (said,) = caplog.messages
    assert said.startswith("member 0 of the group has held chunk 0 for 1.")
    group[0].add_buffer_reader(b"".join(parts(40)[0]))
    assert [present for _, present, _ in got(group)] == [[1] * HEAPS] * 10
    stats = group.stats
    assert (stats.slow_member, stats.slow_chunk_id, stats.slow_ns) == (None, None, 0)
    assert stats.member_waits > 0
    assert stats.longest_member_wait_ns > 1e9


def test_a_group_is_a_sequence_of_members_and_a_pair_of_rings():
    group = new_group()
    assert len(group) == MEMBERS
    assert list(group) == group[:] == [group[0], group[-1]]
    assert isinstance(group, recv.ChunkRingPair)
    assert issubclass(recv.ChunkRingStream, recv.ChunkRingPair)
    assert isinstance(group[0], recv.ChunkStreamGroupMember)
    with pytest.raises(IndexError):
        group[MEMBERS]


def test_a_group_that_cannot_be_is_refused():
    assert recv.ChunkStreamGroupConfig().eviction_mode is LOSSY
    group, pool = new_group(), st.ThreadPool(1)
    places = recv.ChunkStreamConfig(place=Place.of(by_timestamp))
    group.emplace_back(pool, recv.StreamConfig(), places)
    with pytest.raises(ValueError, match="a thread for each"):
        group.emplace_back(pool, recv.StreamConfig(), places)
    group[0].stop()  # and with it all
    with pytest.raises(RuntimeError, match="before the first reader"):
        group.emplace_back(None, recv.StreamConfig(), places)


@pytest.mark.parametrize(
    "take",
    [
        lambda group: group[0],
        lambda group: group[:1],
        lambda group: next(iter(group)),
        lambda group: list(reversed(group)),
        lambda group: group.emplace_back(st.ThreadPool(), recv.StreamConfig(), PLACES),
    ],
    ids=["index", "slice", "iterator", "list", "new"],
)
def test_a_group_is_there_for_as_long_as_a_member_however_that_was_got(take):
    group = new_group()
    taken, of_group = take(group), weakref.ref(group)
    pool = weakref.ref(group[0]._config)
    gc.disable()  # what has gone goes at once
    try:
        del group
        assert of_group() is not None
        member = taken[0] if isinstance(taken, list) else taken
        del taken
        member.add_buffer_reader(heap(0))
        while member.stats.packets < 1:
            time.sleep(0)
        del member
        assert of_group() is None
        assert pool() is None
    finally:
        gc.enable()


def test_a_member_is_the_same_with_what_was_set_of_it_for_as_long_as_its_group():
    group = new_group()
    group[0].name = "of the first polarisation"
    member = group[0]
    member.add_buffer_reader(heap(0))
    assert member is group[0] is group[-MEMBERS] is next(iter(group))
    assert [one.name for one in group[:1]] == ["of the first polarisation"]
    member.stop()  # and with it all
    del member
    with pytest.raises(st.Stopped):
        group[1].add_buffer_reader(heap(0))

# SPDX-License-Identifier: BSD-3-Clause
"""What was captured is received as if it came now, and what cannot be read is said."""

import asyncio
import logging

import numpy as np
import pytest

import spead_tutorial as st
import spead_tutorial.recv.asyncio as recv_asyncio
from spead_tutorial import recv, send
from support import captures

HEAPS = 5


def frames() -> list[bytes]:
    """Heaps as they are sent, and a datagram to another port; each in a frame."""
    items = send.ItemGroup()
    items.add_item(0x3300, "samples", "", (4000,), np.uint16)
    made = [captures.frame(b"else", port=53)]
    for i in range(HEAPS):
        items["samples"].value = np.arange(i, i + 4000, dtype=np.uint16)
        made += [
            captures.frame(bytes(p)) for p in send.PacketGenerator(items.get_heap(), i + 1, 1472)
        ]
    return made


@pytest.fixture(params=[recv.Stream, recv_asyncio.Stream])
def stream(request):
    with st.ThreadPool() as pool, request.param(pool) as made:
        yield made


def test_heaps_in_a_capture_are_received_and_frames_are_counted(stream, tmp_path):
    path = tmp_path / "night.pcap"
    captures.write(path, [*(made := frames()), bytes(60)])
    stream.add_udp_pcap_file_reader(path, filter="udp dst port 8888")

    async def take() -> list[recv.Heap]:
        return [heap async for heap in stream]

    items = st.ItemGroup()
    found = asyncio.run(take()) if isinstance(stream, recv_asyncio.Stream) else list(stream)
    for i, heap in enumerate(found):
        items.update(heap)
        assert items["samples"].value.tolist() == list(range(i, i + 4000))
    stats = stream.stats
    assert (len(found), stats.heaps) == (HEAPS, HEAPS)
    assert (stats.capture_frames, stats.capture_others) == (len(made) + 1, 2)
    assert recv.Account(stats).is_whole
    assert f"frames   {len(made) + 1}  captured\n" in str(recv.Account(stats))


def test_a_capture_that_ends_early_gives_what_was_before_and_the_byte_is_logged(
    stream, tmp_path, caplog
):
    path = tmp_path / "night.pcap"
    captures.write(path, (made := frames()))
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    stream.add_udp_pcap_file_reader(str(path), "port 8888")
    with caplog.at_level(logging.ERROR):
        assert [heap.cnt for heap in recv.Stream.__iter__(stream)] == [1, 2, 3, 4]
    at = len(whole) - len(made[-1]) - 16
    (said,) = caplog.messages
    assert said.endswith(f"night.pcap is damaged at byte {at}: the file ends in the midst of this")


@pytest.mark.parametrize(
    ("name", "filter", "error", "words"),
    [
        ("none.pcap", "", OSError, "No such file"),
        ("a.pcap", "tcp", ValueError, "tcpdump -r FILE"),
        ("a.pcap", b"", TypeError, "filter"),
        (3, "", TypeError, "PathLike"),
        ("a\0b", "", ValueError, "NUL"),
    ],
)
def test_what_cannot_be_read_is_refused(stream, tmp_path, monkeypatch, name, filter, error, words):
    monkeypatch.chdir(tmp_path)
    captures.write(tmp_path / "a.pcap", [])
    with pytest.raises(error, match=words):
        stream.add_udp_pcap_file_reader(name, filter)

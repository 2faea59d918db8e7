# SPDX-License-Identifier: BSD-3-Clause
"""Captures of other programs, read as libpcap reads them; byte by byte, in `test_capture.c`."""

import random
import subprocess

import pytest

from spead_tutorial import recv
from support import captures, ref_encode
from support.needs import needs

#: Blocks without a frame: names, statistics, the journal, secrets, custom ones, and unknown ones.
OTHERS = (4, 5, 9, 10, 0xBAD, 0x40000BAD, 0x0A0D0A00, 0x7FFFFFFF)


def read(path, filter=""):
    """Return the counts of the heaps in a capture, and what was counted."""
    with recv.Stream(None, ring_config=recv.RingStreamConfig(heaps=100)) as stream:
        stream.add_udp_pcap_file_reader(path, filter)
        return [heap.cnt for heap in stream], stream.stats


def some_capture(rng):
    """Return the bytes of a capture with all kinds of blocks, and how many frames are in it."""
    order, n_frames, made = rng.choice("<>"), 0, b""
    for _ in range(rng.randint(1, 3)):
        n_interfaces = rng.choice([1, 2, 256, 257, 3000])
        made += captures.section(n_interfaces, order)
        for _ in range(rng.randint(0, 8)):
            if rng.random() < 0.4:
                size = rng.choice([0, 1, 1000, 1 << 20, rng.randint(1 << 20, 3 << 20)])
                made += captures.block(rng.choice(OTHERS), rng.randbytes(size), order)
            else:
                n_frames += 1
                frame = captures.frame(ref_encode.one_packet(n_frames))
                kind, interface = rng.choice([2, 3, 6]), rng.randrange(n_interfaces)
                made += captures.frame_block(frame, kind, interface, order)
    return made, n_frames


@needs("tcpdump")
@pytest.mark.parametrize("seed", range(6))
def test_a_capture_of_all_kinds_of_blocks_holds_what_tcpdump_finds_in_it(tmp_path, seed):
    made, n_frames = some_capture(random.Random(seed))
    path, copied = tmp_path / "night.pcapng", tmp_path / "copied.pcap"
    path.write_bytes(made)
    copy = ["tcpdump", "-r", "-", "-w", "-"]
    copied.write_bytes(subprocess.run(copy, input=made, check=True, capture_output=True).stdout)
    found, stats = read(path)
    assert found == read(copied)[0] == list(range(1, n_frames + 1))
    assert stats.capture_frames == n_frames

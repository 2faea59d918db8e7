# SPDX-License-Identifier: BSD-3-Clause
"""Captures of other programs, read as libpcap reads them; byte by byte, in `test_capture.c`."""

import ctypes
import ctypes.util
import itertools
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


# ---- Filters ----

ADDRESSES = ["10.0.0.1", "10.0.0.2", "10.1.0.2", "239.1.2.3", "0.0.0.0", "fd00::1", "fd00::2"]
NETS = ["10", "10.1", "10.0.0.0/8", "10.1.0.0/16", "224.0.0.0/4", "0.0.0.0/0", "10.0.0.2/31"]
NETS += ["10.0.0.2", "10.0.0.0 mask 255.0.255.0", "fd00::/16", "fd00::2/127", "fd00::1", "::/0"]
PORTS = ["0", "1234", "8888", "65535", "7"]
RANGES = ["0-65535", "8888", "1000-2000", "2000-1000", "8888-8889", "0-0"]
WAYS = ["", "src ", "dst ", "src or dst ", "dst or src ", "src and dst ", "dst and src "]


def some_condition(rng):
    """Return what a condition has before its values, and those that it may have."""
    which = rng.choice(["host", "net", "port", "portrange"])
    values = {"host": ADDRESSES, "net": NETS, "port": PORTS, "portrange": RANGES}[which]
    way = rng.choice(WAYS)
    if "port" in which:
        return rng.choice(["", "udp "]) + way + which, values
    family = rng.choice(["", "ip ", "ip6 "])
    kept = [value for value in values if not family or (":" in value) == (family == "ip6 ")]
    return family + way + ("" if way and which == "host" and rng.random() < 0.5 else which), kept


def some_values(rng, values, depth):
    """Return values, joined."""
    made = rng.choice(["", "", "not "]) + rng.choice(values)
    while rng.random() < 0.3:
        more = some_values(rng, values, depth + 1) if depth < 2 else rng.choice(values)
        made += rng.choice([" or ", " and ", "||"]) + rng.choice(["{}", "({})"]).format(more)
    return made


def some_filter(rng, depth=0):
    """Return a filter of conditions, joined."""
    if depth < 4 and rng.random() < 0.6:
        one, other = some_filter(rng, depth + 1), some_filter(rng, depth + 1)
        whole = one + rng.choice([" and ", " or ", "&&", " || "]) + other
        return rng.choice(["{}", "({})", "not ({})", "!({})", "not {}"]).format(whole)
    if rng.random() < 0.2:
        return rng.choice(["udp", "ip", "ip6", "not udp", "! ip6"])
    before, values = some_condition(rng)
    if rng.random() < 0.7:
        return f"{before} {rng.choice(values)}"
    if rng.random() < 0.5:
        return f"{before} ({some_values(rng, values, 0)})"
    return f"{before} {rng.choice(values)} or {some_values(rng, values, 0)}"


@pytest.fixture(scope="module")
def libpcap():
    name = ctypes.util.find_library("pcap")
    if name is None:
        pytest.skip("there is no libpcap: apt install libpcap0.8")
    library = ctypes.CDLL(name)
    library.pcap_open_dead.restype = ctypes.c_void_p
    made = ctypes.c_void_p(library.pcap_open_dead(1, 65535))  # of Ethernet
    yield library, made
    library.pcap_close(made)


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint), ("instructions", ctypes.c_void_p))


class Header(ctypes.Structure):
    _fields_ = (("time", ctypes.c_long * 2), ("captured", ctypes.c_uint), ("length", ctypes.c_uint))


def taken(libpcap, filter, frames):
    """Return which frames libpcap takes, by their place; None where it refuses the filter."""
    library, made = libpcap
    program = Program()
    if library.pcap_compile(made, ctypes.byref(program), filter.encode(), 0, 0) != 0:
        return None
    headers = [Header((0, 0), len(frame), len(frame)) for frame in frames]
    found = [
        i
        for i, (header, frame) in enumerate(zip(headers, frames, strict=True))
        if library.pcap_offline_filter(ctypes.byref(program), ctypes.byref(header), frame)
    ]
    library.pcap_freecode(ctypes.byref(program))
    return found


def some_frames():
    """Frames between all addresses of a kind, and between ports."""
    pairs = [(a, b) for a in ADDRESSES for b in ADDRESSES if (":" in a) == (":" in b)]
    ports = itertools.cycle(itertools.product([0, 1234, 8888, 8889, 65535], repeat=2))
    return [
        captures.frame(ref_encode.one_packet(cnt), port, source, pair)
        for cnt, (pair, (port, source)) in enumerate(zip(pairs * 3, ports, strict=False))
    ]


@pytest.mark.parametrize("seed", range(10))
def test_a_filter_takes_what_libpcap_takes(libpcap, tmp_path, seed):
    rng, frames = random.Random(seed), some_frames()
    path = captures.write(tmp_path / "night.pcap", frames)
    for filter in (some_filter(rng) for _ in range(30)):
        assert (found := taken(libpcap, filter, frames)) is not None, filter
        assert read(path, filter)[0] == found, filter


WORDS = ["udp", "ip", "ip6", "src", "dst", "host", "net", "port", "portrange", "and", "or", "not"]
WORDS += [
    "(",
    ")",
    "!",
    "||",
    "&&",
    "1",
    "8888",
    "1-5",
    "10.0.0.1",
    "10.0.0.0/8",
    "fd00::1",
    "mask",
]


def test_what_libpcap_refuses_is_refused_in_one_line(libpcap, tmp_path):
    rng, path, n_refused = random.Random(1), captures.write(tmp_path / "night.pcap", []), 0
    for _ in range(3000):
        filter = " ".join(rng.choices(WORDS, k=rng.randint(1, 7)))
        if taken(libpcap, filter, []) is None:
            n_refused += 1
            with pytest.raises(ValueError, match=r"^cannot filter by '.*' knows more$"):
                recv.Stream(None).add_udp_pcap_file_reader(path, filter)
    assert n_refused > 1000

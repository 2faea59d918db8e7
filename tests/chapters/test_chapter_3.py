# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 3's programs: both receive whatever sends, and say the same of it."""

import json
import re
import signal
import socket
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from spead_tutorial import Flavour, Item
from spead_tutorial.catalogue import CHAPTERS, RECEIVERS, Chapter, find_chapter
from spead_tutorial.chapters import receiving
from spead_tutorial.measure.programs import ProgramOptions, built, command, program
from spead_tutorial.recv import StreamStats
from spead_tutorial.recv._stats import ACCOUNT, COMMON
from spead_tutorial.send import Heap, ItemGroup
from support import ROOT
from support.receivers import (
    ENDED,
    PATIENCE_S,
    PEERS,
    PORT,
    SMALL,
    Receiver,
    account,
    flat,
    lines,
    of_all,
    of_packets,
    options_of,
    packets_of,
    stream,
    timeless,
)

RANDOM = (2, 4)  # chapters that have no other samples

FIELDS = [("u", 8), ("f", 32)]

each_language = pytest.mark.parametrize("language", built())


def options_for(chapter: Chapter) -> ProgramOptions:
    if "H" in chapter.accepted:
        return SMALL
    return ProgramOptions(heaps=2) if "n" in chapter.accepted else ProgramOptions()


# ---- Whatever sends ----


@each_language
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_all_receivers_receive_whole_what_a_chapter_sends(lab, chapter, language):
    options = options_for(chapter)
    destination = ("127.0.0.1", PORT) if chapter.takes_destination else None
    argv = command(chapter, language, options, destination)
    python, *others = (of_all(lab, one, argv) for one in built())
    assert (python.status, python.errors) == (0, "")
    overtake = "s" in chapter.accepted  # as streams of one sequence do; nothing else does
    order = sorted if overtake else list
    for one in others:
        assert (one.status, one.errors) == (0, "")
        assert order(timeless(python).splitlines()) == order(timeless(one).splitlines())
    n_heaps = options.heaps or chapter.heaps
    heap_size = options.heap_size or chapter.heap_size
    values, _, rest = timeless(python).partition(ENDED)
    if chapter.number in RANDOM:
        powers = re.findall(r"^Timestamp: (\d+) +Power: (\d+\.\d\d)$", values, re.M)
        assert [int(at) for at, _ in powers] == [i * heap_size for i in range(n_heaps)]
        assert all(3000 < float(power) < 3700 for _, power in powers)  # of numbers in -100 ... 99
    else:
        assert order(values.splitlines()) == order(lines(n_heaps, heap_size).splitlines())
    (received,) = re.findall(r"^packets: (\d+) received", rest, re.M)
    assert rest == account(n_heaps, f"{received} received = {received} placed")


@each_language
@pytest.mark.parametrize("peer", PEERS, ids=lambda path: path.stem)
def test_what_a_program_with_spead2_sends_is_received_whole(lab, peer, language):
    argv = [sys.executable, str(peer), "-n", "100", "-H", "8192", "127.0.0.1", str(PORT)]
    done = of_all(lab, language, argv)
    assert (done.status, done.errors) == (0, "")
    values, _, rest = timeless(done).partition(ENDED)
    assert values == lines(100, 8192)
    assert rest == account(100, "101 received = 101 placed")


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
        packets += packets_of(group.get_heap(descriptors="all", data="all"), cnt)
        power = np.mean(np.square(one.astype(np.int64)))
        expected.append(f"Timestamp: {cnt:<10} Power: {power:.2f}")
    done = of_packets(lab, [*packets, *packets_of(group.get_end(), 99)], "-t", "1")
    assert re.findall("^Timestamp.*$", done.output, re.M) == expected
    assert "0x3300 adc_samples, i64[2][3]: \n" in done.output


@pytest.mark.parametrize("bits", [32, 40, 48])
def test_a_timestamp_has_as_many_bits_as_an_address_of_any_flavour(lab, bits):
    group = ItemGroup(flavour=Flavour(4, 64, bits))
    group.add_item(0x1600, "timestamp", "", (), format=[("u", bits)], value=2**bits - 1)
    group.add_item(0x3300, "adc_samples", "", (16,), np.int8, value=np.full(16, 2, np.int8))
    done = of_packets(lab, [*packets_of(group.get_heap(), 1), *packets_of(group.get_end(), 2)])
    assert f"Timestamp: {2**bits - 1:<10} Power: 4.00\n" in done.output


def test_a_strangers_text_is_no_more_than_letters_to_a_terminal(lab):
    group = ItemGroup()
    group.add_item(0x1600, "ti\x1b[2Jme", "a\nb\x07", (None,), format=FIELDS, value=[(1, 2)])
    done = of_packets(lab, [*packets_of(group.get_heap(), 1), *packets_of(group.get_end(), 2)])
    assert done.output.startswith("0x1600 ti?[2Jme, ?[any]: a?b?\n")


# ---- What may happen on the way ----


def test_a_receiver_that_starts_late_counts_heaps_that_nothing_describes_and_goes_on(lab):
    done = of_packets(lab, flat(stream()[3:]))
    assert (done.status, done.errors) == (0, "")
    assert done.output.startswith(ENDED)
    assert (
        "heaps not understood: 7 (their descriptors did not arrive, or say something else)\n"
        in done.output
    )


def test_a_heap_that_contradicts_its_descriptors_is_not_understood_and_the_next_one_is(lab):
    packets = []
    for cnt, size in enumerate((8, 6, 8, 12, 8), 1):  # what is beyond the shape is not looked at
        group = ItemGroup()
        group.add_item(0x1600, "timestamp", "", (), format=[("u", 40)], value=cnt)
        samples = np.full(size, cnt, np.int8)
        group.add_item(0x3300, "adc_samples", "", (size,), np.int8, value=samples)
        heap = group.get_heap(descriptors="all" if cnt == 1 else "none", data="all")
        packets += packets_of(heap, cnt)
    done = of_packets(lab, [*packets, *packets_of(group.get_end(), 6)])
    assert done.status == 0
    powers = re.findall(r"^Timestamp: (\d) +Power: (\S+)$", done.output, re.M)
    assert powers == [("1", "1.00"), ("3", "9.00"), ("4", "16.00"), ("5", "25.00")]
    assert "heaps not understood: 1 " in done.output


def test_a_heap_that_contradicts_the_descriptors_it_brings_costs_its_values_alone(lab):
    packets = []
    for cnt, size in enumerate((6, 8), 1):
        group = ItemGroup()
        group.add_item(0x1600, "timestamp", "", (), format=[("u", 40)], value=cnt)
        described = group.add_item(0x3300, "adc_samples", "", (8,), np.int8)
        samples = Item(0x3300, "adc_samples", "", (size,), np.int8, value=np.full(size, 3, np.int8))
        heap = Heap()
        for item in (group["timestamp"], described):
            if cnt == 1:
                heap.add_descriptor(item)
        heap.add_item(group["timestamp"])
        heap.add_item(samples)
        packets += packets_of(heap, cnt)
    done = of_packets(lab, [*packets, *packets_of(group.get_end(), 3)])
    assert "0x3300 adc_samples, i8[8]: \n" in done.output
    assert re.findall(r"^Timestamp: .*$", done.output, re.M) == [
        "Timestamp: 2          Power: 9.00"
    ]
    assert "heaps not understood: 1 " in done.output


def test_descriptors_that_come_later_are_understood_from_then_on(lab):
    heaps = stream()
    group = ItemGroup()
    group.add_item(0x3300, "adc_samples", "now", (2,), np.int8, value=np.ones(2, np.int8))
    group.add_item(0x1600, "timestamp", "now", (), format=[("u", 40)], value=77)
    late = packets_of(group.get_heap(), 10)
    done = of_packets(lab, flat([*heaps[5:9], late, heaps[-1]]))
    assert "Timestamp: 77         Power: 1.00\n" in done.output
    assert "heaps not understood: 4 " in done.output


def test_a_sender_that_stops_without_a_stop_heap_is_silent_and_the_program_says_so(lab):
    heaps = stream()
    done = of_packets(lab, flat(heaps[:-1]), "-t", "0.25")
    assert (done.status, done.errors) == (0, "")
    silence = "Nothing has come for 0.25 s: the stop heap may be lost.\n"
    values, _, rest = timeless(done).partition(silence)
    assert values == lines(10, 8192)
    assert rest == account(10, "60 received = 60 placed")


def test_a_heap_of_which_a_packet_is_lost_on_the_way_is_accounted_for(lab):
    heaps = stream()
    del heaps[4][2]
    done = of_packets(lab, flat(heaps))
    assert (done.status, done.errors[:33]) == (1, "tut_3_recv: packets are missing: ")
    fates = "60 received = 57 placed + 3 after a loss"
    assert account(9, fates, incomplete=1) in done.output


def test_a_heap_whose_first_packet_is_lost_has_never_begun(lab):
    heaps = stream()
    del heaps[4][0]
    done = of_packets(lab, flat(heaps))
    assert done.status == 1
    fates = "60 received = 55 placed + 5 after a loss"
    assert account(9, fates, never=1) in done.output


def test_where_the_very_first_packet_is_lost_nothing_is_understood_and_it_is_no_success(lab):
    done = of_packets(lab, flat(stream())[1:])
    assert done.status == 1
    assert "heaps not understood: 9 " in done.output


def test_what_comes_twice_is_counted_and_does_no_harm(lab):
    done = of_packets(
        lab, [packet for packet in flat(stream()[:-1]) for _ in range(2)], "-t", "0.25"
    )
    assert done.status == 0
    assert lines(10, 8192) in done.output
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
        end, done = flat(stream()[-1:]), None
        while done is None:
            sock.sendto(end[0], ("127.0.0.1", PORT))
            done = receiver.process.poll()
    ended = receiver.end()
    assert ended.status == 1
    assert "the socket had no room for all packets: send more slowly" in ended.errors
    assert re.search(r"^socket: [1-9]\d* dropped$", ended.output, re.M)


# ---- The program ----


def test_json_is_one_object_with_the_same_names_in_every_language(lab):
    found: list[dict[str, Any]] = []
    for language in built():
        receiver = Receiver(lab, language, "--json")
        with lab.socket() as sock:
            for packet in flat(stream()):
                sock.sendto(packet, ("127.0.0.1", PORT))
        found.append(json.loads(receiver.end().output))
    assert tuple(one["language"] for one in found) == built()
    for one in found:
        assert list(one) == list(found[0])
        assert (one["chapter"], one["program"], one["ended"]) == (3, "tut_3_recv", "stop")
        assert one["heaps"] == one["heaps_complete"] == 10
        assert one["packets_placed"] == one["socket_datagrams"] == 61
        assert one["heaps_not_understood"] == 0
        assert one["elapsed_ns"] > 0


@each_language
def test_a_port_in_use_is_one_line_and_status_1(lab, language):
    with lab.socket() as sock:
        sock.bind(("127.0.0.1", PORT))
        argv = [*program("tut_3_recv", language), f"127.0.0.1:{PORT}"]
        done = lab.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"tut_3_recv: [^\n]*in use[^\n]*\n", done.stderr)


@each_language
def test_started_twice_the_second_one_ends_and_the_first_one_receives(lab, language):
    first = Receiver(lab, language)
    second = Receiver(lab, language).end()
    assert second.status == 1
    with lab.socket() as sock:
        for packet in flat(stream()):
            sock.sendto(packet, ("127.0.0.1", PORT))
    assert first.end().status == 0


@each_language
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["0"], "must be a number from 1 to 65535, not '0'"),
        (["65536"], "must be a number from 1 to 65535, not '65536'"),
        (["127.0.0.1:"], "must be a number from 1 to 65535, not ''"),
        (["localhost"], "must be a number from 1 to 65535, not 'localhost'"),
        (["-t", "0"], "must be a number of seconds up to 1e6, not '0'"),
        (["-t", "nan"], "must be a number of seconds up to 1e6, not 'nan'"),
        (["-t", "soon"], "must be a number of seconds up to 1e6, not 'soon'"),
    ],
)
def test_what_is_asked_for_wrongly_is_refused(language, arguments, words):
    argv = [*program("tut_3_recv", language), *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].endswith(words)


@each_language
@pytest.mark.parametrize("place", ["127.0.0.1:8888", "localhost:8888", "[::1]:8888", ":8888"])
def test_it_listens_where_it_is_told_to(lab, language, place):
    receiver = Receiver(lab, language, place)
    assert "listening on port 8888" in receiver.said
    family = socket.AF_INET6 if "::" in place else socket.AF_INET
    with lab.socket(family) as sock:
        for packet in flat(stream()):
            sock.sendto(packet, ("::1" if "::" in place else "127.0.0.1", PORT))
    assert receiver.end().status == 0


def test_both_twins_have_the_same_options_with_the_same_defaults():
    found = []
    for language in built():
        argv = [*program("tut_3_recv", language), "--help"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
        assert (done.returncode, done.stderr) == (0, "")
        assert "example: tut_3_recv" in done.stdout
        found.append({name: words for name, words in options_of(done.stdout) if name != "-h,"})
    assert found == [found[0]] * len(found)
    assert {"-t", "--json", "[HOST:]PORT"} <= found[0].keys()


@each_language
def test_the_help_names_the_usual_settings_whatever_was_said_before_it(language):
    helps = []
    for before in ([], ["-t", "60"]):
        argv = [*program("tut_3_recv", language), *before, "--help"]
        helps.append(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    assert helps[0] == helps[1]


@pytest.mark.parametrize("receiver", RECEIVERS, ids=lambda receiver: receiver.name)
def test_a_receiver_in_c_or_cpp_is_not_much_longer_than_its_twin(receiver):
    python = (ROOT / "spead_tutorial/chapters" / f"{receiver.name}.py").read_text().count("\n")
    c = (ROOT / "csrc/chapters" / f"{receiver.name}.c").read_text().count("\n")
    cpp = (ROOT / "csrc/chapters/cpp" / f"{receiver.name}.cpp").read_text().count("\n")
    assert c <= 1.4 * python
    assert cpp <= 1.3 * python


def test_an_account_that_does_not_add_up_is_a_trouble():
    names = [*COMMON, *ACCOUNT]
    places = {stat.name: i for i, stat in enumerate(names)}
    values = [0] * len(names)
    values[places["socket_datagrams"]] = values[places["packets_placed"]] = 5
    assert receiving._trouble(StreamStats(names, values)) is None
    values[places["packets_placed"]] = 4
    assert "does not add up" in str(receiving._trouble(StreamStats(names, values)))

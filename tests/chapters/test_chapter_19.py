# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 19's programs: every sender sends to every receiver, and each pair has its account."""

import contextlib
import json
import random
import re
import signal
import socket
import time
from typing import Any

import numpy as np
import pytest
import spead2
import spead2.recv

from spead_tutorial.chapters.catalogue import ARRAY
from spead_tutorial.lab import Lab
from spead_tutorial.measure.programs import built, program
from spead_tutorial.send import ItemGroup
from support.programs import PATIENCE_S, cases, each_language, ended, in_c
from support.receivers import (
    CHAPTER_19,
    COMPILED,
    ENDED,
    PORT,
    SIZE,
    Receiver,
    end,
    flat,
    group_of,
    packets_of,
    said,
    send,
    stream,
    timeless,
    whole,
)
from support.sockets import messages

SENDER = ARRAY[0].name
IN_CHUNK = (1 << 20) // SIZE
WINDOW = 8  # chunks that a receiver fills at a time
LOOPBACK = ["--interface", "127.0.0.1"]
GROUPS = ("239.1.0.0", "239.1.0.1")
#: Each start of the receiver in Python compiles with Numba, for seconds.
receiver_language = pytest.mark.parametrize(
    "language", cases(((one,) for one in built()), lambda one: one in COMPILED)
)


def sent(lab: Lab, language: str, *arguments: str) -> dict[str, Any]:
    """Run a sender to its end; return what it reports."""
    argv = [*program(SENDER, language), *arguments, "--json"]
    done = lab.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@contextlib.contextmanager
def listening(lab: Lab, *ports: int):
    """Lend sockets in a lab that have room for all that a test sends."""
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(lab.socket()) for _ in ports]
        for port, sock in zip(ports, socks, strict=True):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            sock.bind(("127.0.0.1", port))
        yield socks


def to_all(n: int, *more: str) -> list[str]:
    """The arguments of a sender to two receivers, on ports of theirs."""
    to = [f"127.0.0.1:{PORT}", f"127.0.0.1:{PORT + 100}"]
    return ["-n", str(n), "-H", str(SIZE), *more, *to]


# ---- What is sent ----


@each_language
def test_spead2_receives_at_each_destination_what_a_sender_has_for_it(lab, language):
    with listening(lab, PORT + 1, PORT + 101) as socks:
        told = sent(lab, language, *to_all(20, "--sender", "1", "--senders", "3"))
        came = [messages(sock) for sock in socks]
    assert (told["heaps"], told["payload_bytes"]) == (40, 40 * SIZE)
    assert told["destinations"] == [
        {"to": f"127.0.0.1:{port}", "heaps": 20, "packets": len(packets), "bytes": n_bytes}
        for port, packets in zip((PORT, PORT + 100), came, strict=True)
        for n_bytes in [sum(map(len, packets))]
    ]
    for receiver, packets in enumerate(came):
        ring = spead2.recv.RingStreamConfig(heaps=30)
        stream = spead2.recv.Stream(spead2.ThreadPool(), ring_config=ring)
        stream.add_buffer_reader(b"".join(packets))
        first, *heaps = stream
        items = spead2.ItemGroup()
        assert items.update(first) == {}  # it has descriptors, and nothing else
        assert {item.id: (item.name, item.description) for item in items.values()} == {
            0x1600: ("timestamp", "Index of the first sample"),
            0x3300: ("adc_samples", "Samples of the converter"),
            0x4101: ("antenna", "Index of the sender"),
        }
        assert [heap.cnt for heap in (first, *heaps)] == [3 * k + 2 for k in range(21)]
        for i, heap in enumerate(heaps):
            values = {name: item.value for name, item in items.update(heap).items()}
            assert (values["timestamp"], values["antenna"]) == (i * SIZE, 1)
            assert values["adc_samples"].dtype == np.int8
            assert np.array_equal(values["adc_samples"], np.full(SIZE, i + 1 + receiver))


@each_language
def test_a_destination_is_told_as_it_was_typed(lab, language):
    typed = [f"[::1]:{PORT}", f"127.0.0.1:{PORT}"]
    with lab.socket(socket.AF_INET6) as sock, listening(lab, PORT):
        sock.bind(("::1", PORT))
        for to in typed:  # a stream is of one family
            assert sent(lab, language, "-n", "1", "-H", "9", to)["destinations"][0]["to"] == to


@pytest.mark.parametrize("language", COMPILED)
def test_samples_that_memory_can_never_hold_are_one_line(language):
    done = ended([*program(SENDER, language), "-H", str(2**63 - 1), *[f"127.0.0.1:{PORT}"] * 2])
    assert done.returncode == 1
    assert re.fullmatch(rf"{SENDER}: no memory for [^\n]*: lower -H\n", done.stderr)


def test_packets_go_to_each_receiver_in_turn_and_are_the_same_in_every_language(lab):
    twice = f"127.0.0.1:{PORT}"  # both receivers are the same socket, which keeps the order
    came = []
    for language in built():
        with listening(lab, PORT) as (sock,):
            sent(lab, language, "-n", "3", "-H", "30000", "-p", "1472", twice, twice)
            came.append(messages(sock))
    assert all(packets == came[0] for packets in came)
    counts = [int.from_bytes(packet[11:16], "big") for packet in came[0]]
    assert all(first == second for first, second in zip(counts[::2], counts[1::2], strict=True))
    samples = [packet[-1] for packet in came[0] if len(packet) > 1000]
    assert samples[:6] == [0, 1, 0, 1, 0, 1]


@in_c
def test_one_rate_is_that_of_all_packets_together(lab, language):
    with listening(lab, PORT, PORT + 100):
        told = sent(lab, language, *to_all(50, "--rate", "5"))
    burst, ratio = 65536, 1.05  # a stream sends so much at once, and catches up so fast
    assert told["elapsed_ns"] / 1e9 >= (told["spead_bytes"] - 2 * burst) / 5e6 / ratio


def test_heap_counts_are_those_of_one_sender_only(lab):
    counts: list[int] = []
    for sender in range(3):
        with listening(lab, PORT + sender) as (sock,):
            numbers = ["--sender", str(sender), "--senders", "3"]
            sent(lab, "c", "-n", "5", "-H", "100", *numbers, f"127.0.0.1:{PORT}")
            counts += [int.from_bytes(packet[11:16], "big") for packet in messages(sock)]
    assert sorted(counts) == list(range(1, 22))  # descriptors, heaps and the end


# ---- Every sender to every receiver ----


def multicast(lab: Lab, language: str, n: int = 30) -> tuple[list[Any], list[Any]]:
    """What two senders and two receivers say, which meet in two groups."""
    hosts = [f"{group}:{PORT + 10 * j}" for j, group in enumerate(GROUPS)]
    arguments = ["--senders", "2", *LOOPBACK, "--json"]
    receivers = [Receiver(lab, language, *arguments, to, name=CHAPTER_19) for to in hosts]
    size = ["-n", str(n), "-H", str(SIZE), *LOOPBACK, "--ttl", "0", "--senders", "2"]
    told = [sent(lab, "c", *size, "--sender", str(i), *hosts) for i in range(2)]
    done = [receiver.end() for receiver in receivers]
    assert [(one.status, one.errors) for one in done] == [(0, "")] * 2
    return told, [json.loads(one.output) for one in done]


@receiver_language
def test_each_pair_agrees_on_what_was_sent_by_multicast(lab, language):
    told, came = multicast(lab, language)
    for j, receiver in enumerate(came):
        assert (receiver["ended"], receiver["heaps"], receiver["too_old_heaps"]) == ("stop", 60, 0)
        for i, pair in enumerate(receiver["senders"]):
            to = told[i]["destinations"][j]
            assert (pair["heaps"], pair["packets"]) == (to["heaps"], to["packets"])
            assert pair["port"] == PORT + 10 * j + i
            assert [pair[name] for name in ("incomplete", "missing", "too_old", "dropped")] == [
                0
            ] * 4


def test_all_twins_say_the_same_of_what_two_senders_send(lab):
    outputs = []
    for language in built():
        receiver = Receiver(lab, language, "--senders", "2", name=CHAPTER_19)
        for i in range(2):
            n = ["-n", str(IN_CHUNK + 2), "-H", str(SIZE), "--sender", str(i), "--senders", "2"]
            sent(lab, "c", *n, f"127.0.0.1:{PORT}")
        done = receiver.end()
        assert (done.status, done.errors) == (0, "")
        outputs.append(timeless(done))
    assert outputs == outputs[:1] * len(outputs)
    first, second, *_ = outputs[0].splitlines()
    squares = [((value + 128) % 256 - 128) ** 2 for i in (0, 1) for value in range(i, i + IN_CHUNK)]
    assert first == f"Timestamp: 0          Power: {np.mean(squares):.2f} Senders: 2 of 2"
    assert second.startswith(f"Timestamp: {IN_CHUNK * SIZE} ")
    assert (
        f"sender 1: {IN_CHUNK + 2} heaps, 0 incomplete, 0 missing, 0 too old; 0 dropped\n"
        in (outputs[0])
    )
    assert outputs[0].endswith(f"\nReceived {2 * IN_CHUNK + 4} heaps\n")


# ---- A sender that stops ----


def chunks_of(n: int) -> list[list[bytes]]:
    """The packets of heaps that begin so many chunks, and no end."""
    return [
        whole(group_of(i * IN_CHUNK * SIZE, np.ones(SIZE, np.int8)), i + 1, "none")
        for i in range(n)
    ]


def printed(receiver: Receiver, n: int) -> list[str]:
    """The first lines that a receiver prints, once they are there."""
    until = time.monotonic() + PATIENCE_S
    while len(receiver._lines[0]) < n:
        assert time.monotonic() < until
        time.sleep(0.01)
    return receiver._lines[0][:n]


@receiver_language
def test_with_lossy_the_others_go_on_where_a_sender_sends_nothing(lab, language):
    receiver = Receiver(lab, language, "--senders", "2", "--lossy", name=CHAPTER_19)
    send(lab, flat(chunks_of(WINDOW + 3)))
    lines = printed(receiver, 3)  # the third, with the first packet of the last heap
    assert lines[0] == "Timestamp: 0          Power: 1.00 Senders: 1 of 2\n"
    assert lines[1].startswith(f"Timestamp: {IN_CHUNK * SIZE} ")
    receiver.process.send_signal(signal.SIGINT)
    done = receiver.end()
    assert done.status == 130
    (heaps,) = re.findall(r"\nsender 0: (\d+) heaps, ", done.output)
    assert int(heaps) in (WINDOW + 2, WINDOW + 3)  # of the last one, the rest may not have come
    assert "\nwaits for a sender: 0\n" in done.output


@receiver_language
def test_without_it_all_wait_for_a_sender_that_sends_nothing_until_it_ends(lab, language):
    argv, start_ns = ["--senders", "2", "-t", "0.5", "--json", "--text"], time.monotonic_ns()
    receiver = Receiver(lab, language, *argv, name=CHAPTER_19)
    send(lab, flat(chunks_of(WINDOW + 2)))
    done = receiver.end()
    assert done.status == 1
    assert done.errors == (
        f"{CHAPTER_19}: all waited for sender 1, of which nothing comes: have it send, or go on"
        " without it with --lossy\n"
    )
    found = json.loads(done.output.splitlines()[-1])
    assert found["ended"] == "silence"
    assert found["member_waits"] == 1
    assert found["longest_pause_ns"] >= 0.5e9
    assert start_ns < found["first_packets_ns"] < time.monotonic_ns() - found["longest_pause_ns"]


@in_c
def test_a_sender_that_ends_is_not_waited_for(lab, language):
    receiver = Receiver(lab, language, "--senders", "2", name=CHAPTER_19)
    with lab.socket() as sock:
        for packet in end(1):
            sock.sendto(packet, ("127.0.0.1", PORT + 1))
    send(lab, flat([*chunks_of(WINDOW + 2), end(WINDOW + 3)]))
    done = receiver.end()
    assert (done.status, done.errors) == (0, "")
    assert ENDED in done.output
    assert done.output.count("Senders: 1 of 2\n") == WINDOW + 2


@in_c
def test_a_sender_that_is_too_far_behind_for_lossy_loses_heaps_that_are_counted(lab, language):
    receiver = Receiver(lab, language, "--senders", "2", "--lossy", name=CHAPTER_19)
    send(lab, flat(chunks_of(WINDOW + 2)))
    assert printed(receiver, 1)[0].startswith("Timestamp: 0 ")
    with lab.socket() as sock:
        for packet in flat([chunks_of(1)[0], end(2)]):
            sock.sendto(packet, ("127.0.0.1", PORT + 1))
    send(lab, end(WINDOW + 3))
    done = receiver.end()
    assert done.status == 1
    assert "heaps came too late: their senders are too far behind the others" in done.errors
    assert "\nsender 1: 0 heaps, 0 incomplete, 0 missing, 1 too old; 0 dropped\n" in done.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@receiver_language
def test_where_nobody_sends_a_signal_ends_it_with_its_account(lab, language, number):
    receiver = Receiver(lab, language, "--senders", "3", name=CHAPTER_19)
    receiver.process.send_signal(number)
    done = receiver.end()
    assert (done.status, done.errors) == (128 + number, "")
    assert "packets: 0 received = none\n" in done.output
    assert done.output.endswith("\nReceived 0 heaps\n")


# ---- What it was not made for ----


def strange(seed: int) -> list[bytes]:
    """Packets of which some are cut, others have bytes changed, and all come in no order."""
    source = random.Random(seed)
    far = [whole(group_of(int(at), np.ones(SIZE, np.int8)), 500 + i, "none")
           for i, at in enumerate((2**39, SIZE + 1, 2**40 - SIZE))]  # fmt: skip
    other = packets_of(ItemGroup().get_heap(), 600)
    packets = flat([*stream()[:-1], *stream(size=4096)[:-1], *far, other])
    for i in source.sample(range(len(packets)), 40):
        changed = bytearray(packets[i][: source.randrange(1, len(packets[i]))])
        changed[source.randrange(len(changed))] = source.randrange(256)
        packets[i] = bytes(changed)
    source.shuffle(packets)
    return packets


@pytest.mark.parametrize("seed", range(3))
def test_every_packet_of_strangers_is_in_the_account_once(lab, seed):
    packets = strange(seed)
    for language in COMPILED:
        done = said(lab, packets, "-t", "0.5", "--json", language=language, name=CHAPTER_19)
        found = json.loads(done.output)
        assert found["socket_datagrams"] == len(packets)
        assert "does not add up" not in done.errors
        assert done.status == 1


@each_language
def test_an_interface_that_there_is_not_is_one_line(language):
    argv = [*program(SENDER, language), "--interface", "203.0.113.9", "239.1.0.0:8888"]
    done = ended(argv)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(rf"{SENDER}: [^\n]*interface[^\n]*\n", done.stderr)

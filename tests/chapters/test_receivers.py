# SPDX-License-Identifier: BSD-3-Clause
"""All programs that receive: what they share, and what arrives that they were not made for.

What they share is asked of chapter 3's in every language, and of all in C; the thorough run asks
the others.
"""

import dataclasses
import json
import re
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import pytest

from spead_tutorial.chapters import receiving
from spead_tutorial.chapters.catalogue import (
    RECEIVERS,
    Chapter,
    find_chapter,
    find_sender,
)
from spead_tutorial.lab import Lab
from spead_tutorial.measure.delivery import deliver
from spead_tutorial.measure.programs import Done, ProgramOptions, built, command
from spead_tutorial.recv import Stream, StreamStats
from spead_tutorial.recv._config import ACCOUNT, COMMON
from support.processes import sleeps
from support.programs import PATIENCE_S, PEERS, cases, each_language, name_of
from support.receivers import (
    CHAPTER_3,
    CHAPTER_9,
    CHAPTER_12,
    CHAPTER_18,
    COMPILED,
    ENDED,
    PORT,
    SIZE,
    SMALL,
    Receiver,
    account,
    chunk_lines,
    flat,
    lines,
    of_all,
    pool,
    receiver_argv,
    said,
    send,
    stream,
    timeless,
)

INTERRUPTED = "It was interrupted before the stream had ended.\n"
SILENT = "Nothing has come for 0.25 s: the stop heap may be lost.\n"
each_program = pytest.mark.parametrize(
    ("name", "language"),
    cases(
        product((receiver.name for receiver in RECEIVERS), built()),
        lambda name, language: language == "c" or name == CHAPTER_3,
    ),
)


def stream_for(name: str) -> list[list[bytes]]:
    """The packets of ten heaps, and of the end, as a receiver takes them."""
    return stream(described=name != CHAPTER_12)


# ---- What they say ----


def check_account(done: Done, packets: int, complete: int) -> None:
    """Every packet is in the account once, and so is every heap that is whole."""
    (row,) = re.findall(r"^packets: (.*)$", done.output, re.M)
    received, *fates = map(int, re.findall(r"\d+", row))
    assert received == sum(fates) == packets
    assert f"\nheaps: {complete} complete, " in done.output
    assert "\nsocket: 0 dropped\n" in done.output


@each_program
def test_started_twice_the_second_one_says_in_one_line_that_the_port_is_in_use(lab, name, language):
    wanted = Stream.DEFAULT_UDP_BUFFER_SIZE
    allowed = int(Path("/proc/sys/net/core/rmem_max").read_text())
    words = (
        f"{name}: the receive buffer has {allowed} bytes, not {wanted}: allow more with"
        f" 'sysctl -w net.core.rmem_max={wanted}'\n"
    )
    first = Receiver(lab, language, name=name)
    listens = f"{name}: listening on port {PORT}\n"
    assert first.said == (words if allowed < wanted else "") + listens
    other = CHAPTER_3 if name == CHAPTER_18 else name  # which would share the port with itself
    argv = receiver_argv(other, language)
    second = lab.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (second.returncode, second.stdout) == (1, "")
    assert re.fullmatch(rf"{other}: port {PORT} is in use: [^\n]+\n", second.stderr)
    send(lab, flat(stream_for(name)))
    done = first.end()
    assert done.status == 0
    check_account(done, packets=61, complete=10)


def test_json_is_one_object_with_the_same_names_in_every_language(lab):
    found = [
        json.loads(said(lab, flat(stream()), "--json", language=language).output)
        for language in built()
    ]
    assert tuple(one["language"] for one in found) == built()
    for one in found:
        assert list(one) == list(found[0])
        assert (one["chapter"], one["program"], one["ended"]) == (3, CHAPTER_3, "stop")
        assert one["heaps"] == one["heaps_complete"] == 10
        assert one["packets_placed"] == one["socket_datagrams"] == 61
        assert one["heaps_not_understood"] == 0
        assert one["elapsed_ns"] > 0


@pytest.mark.parametrize(
    ("missing", "words", "expected"),
    [
        (range(18), ENDED, account(7, "43 received = 43 placed")),
        ([60], SILENT, account(10, "60 received = 60 placed")),
        ([59, 60], SILENT, account(9, "59 received = 59 placed", incomplete=1)),
        ([26], ENDED, account(9, "60 received = 57 placed + 3 after loss", incomplete=1)),
        (
            [24],
            ENDED,
            account(9, "60 received = 55 placed + 5 after loss", never=1),
        ),
    ],
    ids=["started late", "no stop heap", "no end of a heap", "a packet lost", "a first one lost"],
)
@each_program
def test_it_accounts_for_what_came_of_a_stream_that_is_not_whole(
    lab, name, language, missing, words, expected
):
    packets = [one for i, one in enumerate(flat(stream_for(name))) if i not in missing]
    done = said(lab, packets, "-t", "0.25", language=language, name=name)
    assert words in done.output
    assert expected in done.output
    is_whole = "complete, 0 incomplete, 0 never" in expected
    assert done.status == (0 if is_whole else 1)
    complaint = "" if is_whole else rf"{name}: packets are missing, or not in order: [^\n]+\n"
    assert re.fullmatch(complaint, done.errors)


def test_an_account_that_does_not_add_up_is_a_trouble():
    names = [*COMMON, *ACCOUNT]
    places = {stat.name: i for i, stat in enumerate(names)}
    values = [0] * len(names)
    values[places["socket_datagrams"]] = values[places["packets_placed"]] = 5
    assert receiving._trouble(StreamStats(names, values)) is None
    values[places["packets_placed"]] = 4
    assert "does not add up" in str(receiving._trouble(StreamStats(names, values)))


def test_what_is_wrong_is_said_in_the_words_of_the_twin_in_c():
    source = Path(__file__).parents[2] / "csrc" / "chapters" / "receiving.c"
    said_in_c = "".join(re.findall(r'"([^"\\\n]*)', source.read_text()))
    of_nothing = dict.fromkeys((stat.name for stat in (*COMMON, *ACCOUNT)), 0)
    received = {"socket_datagrams": 1}
    for counts in (
        received,
        {"socket_dropped": 1},
        received | {"packets_malformed": 1},
        {"heaps_never_begun": 1},
    ):
        assert str(receiving._trouble(of_nothing | counts)) in said_in_c


# ---- Whatever sends ----


#: Who receives, who sends, in C or with spead2, and what: that all programs send the same in all
#: languages is in test_interop.py.
SENT = [
    (CHAPTER_3, find_chapter("2"), ProgramOptions()),
    (CHAPTER_3, find_chapter("10"), SMALL),
    (CHAPTER_3, find_chapter("14"), dataclasses.replace(SMALL, streams=3)),  # no even division
    (CHAPTER_9, find_chapter("11"), SMALL),
    *(
        (CHAPTER_12, find_sender("19"), options)
        for options in (SMALL, ProgramOptions(1100, 1000), ProgramOptions(3, 1 << 20))
    ),
    *((name, one, SMALL) for name in (CHAPTER_3, CHAPTER_9) for one in PEERS),
]
#: What is told besides the account.
MORE = {
    CHAPTER_3: lambda n: "",
    CHAPTER_9: lambda n: f"{pool(n + 1)}Received {n} heaps\n",  # with the stop heap
    CHAPTER_12: lambda n: rf"chunks: .*\nheaps .*: 1 without a timestamp\nReceived {n} heaps\n",
}


def is_plain(name: str, sender: Chapter | Path, options: ProgramOptions) -> bool:
    if isinstance(sender, Path):
        return (name, sender) == (CHAPTER_3, PEERS[0])
    return options.heaps != 1100  # of which the program in Python, too, gathers chunks


@pytest.mark.parametrize(("name", "sender", "options"), cases(SENT, is_plain), ids=name_of)
def test_what_a_program_sends_is_received_whole_and_all_languages_say_the_same(
    lab, name, sender, options
):
    if isinstance(sender, Path):
        sizes = ["-n", str(options.heaps), "-H", str(options.heap_size)]
        argv = [sys.executable, str(sender), *sizes, "127.0.0.1", str(PORT)]
    else:
        destination = ("127.0.0.1", PORT) if sender.takes_destination else None
        argv = command(sender, "c", options, destination)
    n, size = options.heaps or sender.heaps, options.heap_size or sender.heap_size
    told = ["-H", str(size)] if name != CHAPTER_3 else []
    receivers = COMPILED if name == CHAPTER_12 and options.heaps != 1100 else built()
    done = [of_all(lab, one, argv, *told, name=name) for one in receivers]
    # Streams of one sequence overtake each other; nothing else does.
    order = sorted if sender.name.startswith("tut_14") else list
    for one in done:
        assert (one.status, one.errors) == (0, "")
        assert order(timeless(one).splitlines()) == order(timeless(done[0]).splitlines())
    values, _, rest = timeless(done[0]).partition(ENDED)
    if sender.name == "tut_2_send":  # whose samples are random
        assert re.findall(r"^Timestamp: (\d+)", values, re.M) == [str(i * size) for i in range(n)]
    else:
        expected = chunk_lines(range(n), size) if name == CHAPTER_12 else lines(n, size)
        assert order(values.splitlines()) == order(expected.splitlines())
    (received,) = re.findall(r"^packets: (\d+) received", rest, re.M)
    placed = f"{received} placed"
    if name == CHAPTER_12:
        placed = f"{int(received) - 1} placed + 1 no place"  # the descriptors
    every = account(n, f"{received} received = {placed}")
    assert rest.startswith(every)
    assert re.fullmatch(MORE[name](n), rest.removeprefix(every))


# ---- Interrupted ----


def wait_until_read(lab: Lab, receiver: Receiver, datagrams: int) -> None:
    """Wait until the machine's receivers have read so many, and this one has dealt with them."""
    until = time.monotonic() + PATIENCE_S
    has_read = False
    while not (has_read and sleeps(receiver.process.pid)):
        assert time.monotonic() < until
        has_read = lab.snmp()["Udp"]["InDatagrams"] >= datagrams


@each_program
def test_where_nobody_sends_it_waits_until_it_is_interrupted(lab, name, language):
    receiver = Receiver(lab, language, "-t", "0.1", name=name)
    with pytest.raises(subprocess.TimeoutExpired):
        receiver.process.wait(0.5)
    receiver.process.send_signal(signal.SIGINT)
    done = receiver.end()
    assert (done.status, done.errors) == (130, "")
    assert done.output.startswith(INTERRUPTED + "packets: 0 received = none\nheaps: 0 complete, ")


@each_program
def test_interrupted_it_accounts_for_what_has_come_and_misses_nothing(lab, name, language):
    """It has seven heaps then, and a packet of one more; after the text it says so as JSON, too."""
    receiver = Receiver(lab, language, "--json", "--text", name=name)
    before = lab.snmp()["Udp"]["InDatagrams"]
    packets = flat(stream_for(name))[:43]
    send(lab, packets)
    wait_until_read(lab, receiver, before + len(packets))
    receiver.process.send_signal(signal.SIGINT)
    done = receiver.end()
    assert (done.status, done.errors) == (130, "")
    assert INTERRUPTED in done.output
    check_account(done, packets=len(packets), complete=7)
    assert "\nheaps: 7 complete, 0 incomplete, 0 never begun, 1 still arriving\n" in done.output
    *_, last, found = done.output.splitlines()
    assert name == CHAPTER_3 or last == "Received 7 heaps"
    told = json.loads(found)
    assert (told["ended"], told["heaps"], told["incomplete_heaps_flushed"]) == ("interrupt", 7, 1)


@each_program
def test_where_interrupts_are_ignored_as_under_nohup_it_goes_on(lab, name, language):
    ignoring = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
    receiver = Receiver(lab, language, name=name, under=ignoring)
    receiver.process.send_signal(signal.SIGINT)
    send(lab, flat(stream_for(name)))
    done = receiver.end()
    assert done.status == 0
    check_account(done, packets=61, complete=10)


@each_language
def test_what_came_before_the_first_heap_was_taken_makes_no_rate(lab, language):
    receiver = Receiver(lab, language)
    receiver.process.send_signal(signal.SIGSTOP)
    before = lab.snmp()["Udp"]["InDatagrams"]
    *heaps, end = stream(3, 512)  # a packet each, which it then reads at once
    send(lab, flat(heaps))
    receiver.process.send_signal(signal.SIGCONT)
    wait_until_read(lab, receiver, before + 3)
    send(lab, end)
    assert "0.00 MB/s" not in receiver.end().output


# ---- With a sender, as `run` does it ----


def test_a_receiver_whose_sender_fails_on_the_way_accounts_for_what_came():
    endless = ProgramOptions(heaps=1 << 40, heap_size=SIZE)
    with Lab(receiver=True) as lab:

        def pull(name: str, line: str, is_trouble: bool) -> None:
            if line.startswith("Timestamp: 8192 "):
                lab.set_link(False)

        done = deliver(
            lab, RECEIVERS[0], find_chapter("10"), ("c", "c"), endless, show=pull, bits_per_s=10**8
        )
    assert (done.failure, done.journey) == (
        "tut_10_send_reuse_heaps has failed, with status 1",
        None,
    )
    assert (
        "\nNothing has come for 5 s: the stop heap may be lost.\npackets: " in done.received.output
    )

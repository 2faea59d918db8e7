# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 18's programs: several sockets on one port, whose heaps have one account."""

import contextlib
import json
import re
from typing import Any

from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.measure.programs import Done, ProgramOptions, built, command
from support.programs import each_language
from support.receivers import (
    CHAPTER_18,
    ENDED,
    PORT,
    SIZE,
    Receiver,
    account,
    flat,
    lines,
    of_all,
    said,
    stream,
    timeless,
)

FLOWS = 32  # of so many, one at least goes to each of two sockets


def told(done: Done) -> dict[str, Any]:
    """The JSON object, which comes after the text."""
    found: dict[str, Any] = json.loads(done.output.splitlines()[-1])
    assert found["chapter"] == 18
    assert found["heaps"] == sum(one["heaps"] for one in found["sockets"])
    assert found["socket_datagrams"] == sum(one["datagrams"] for one in found["sockets"])
    return found


def send_by_turns(lab, heaps):
    """Send each heap through the next of some sockets."""
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(lab.socket()) for _ in range(FLOWS)]
        for i, heap in enumerate(heaps):
            for packet in heap:
                socks[i % FLOWS].sendto(packet, ("127.0.0.1", PORT))


@each_language
def test_all_sockets_together_receive_what_chapter_14_sends(lab, language):
    sent = ProgramOptions(100, SIZE, streams=FLOWS)
    argv = command(find_chapter("14"), "c", sent, ("127.0.0.1", PORT))
    done = of_all(lab, language, argv, "-s", "2", name=CHAPTER_18)
    assert (done.status, done.errors) == (0, "")
    values, _, rest = timeless(done).partition(ENDED)
    assert sorted(values.splitlines()) == sorted(lines(100).splitlines())
    (received,) = re.findall(r"^packets: (\d+) received", rest, re.M)
    assert rest == account(100, f"{received} received = {received} placed") + "Received 100 heaps\n"
    of_each = [
        int(n) for n in re.findall(r"^socket \d: (\d+) heaps, 0 dropped$", done.output, re.M)
    ]
    assert sum(of_each) == 100
    assert 0 not in of_each


def test_the_heaps_of_one_sender_go_to_one_socket_and_all_others_stay_empty(lab):
    for language in built():
        done = said(lab, flat(stream()), "-s", "3", name=CHAPTER_18, language=language)
        assert done.output.startswith(lines(10) + ENDED)  # in order, too
        assert sorted(re.findall(r"^socket \d: (\d+) heaps", done.output, re.M)) == ["0", "0", "10"]


@each_language
def test_a_heap_that_no_socket_has_seen_is_missing_once(lab, language):
    heaps = stream(4 * FLOWS)  # four of each flow
    heaps[FLOWS + 1] = []
    receiver = Receiver(lab, language, "-s", "2", "--json", name=CHAPTER_18)
    send_by_turns(lab, heaps)
    done = receiver.end()
    found = told(done)
    assert (found["heaps"], found["heaps_never_begun"], found["ended"]) == (
        4 * FLOWS - 1,
        1,
        "stop",
    )
    assert done.status == 1
    assert "packets are missing" in done.errors


@each_language
def test_after_an_early_end_the_other_sockets_are_read_until_nothing_comes(lab, language):
    first, *heaps, end = stream(FLOWS)
    receiver = Receiver(lab, language, "-s", "2", "--json", "-t", "60", name=CHAPTER_18)
    send_by_turns(lab, [first, end, *heaps])
    found = told(receiver.end())
    assert found["ended"] == "stop"
    other = [one["heaps"] for one in found["sockets"] if one["heaps"] > 1]
    assert other  # whose flows the end was not one of
    assert found["heaps"] < FLOWS or len(other) == 2


@each_language
def test_several_senders_without_an_end_are_followed_by_silence(lab, language):
    receiver = Receiver(lab, language, "-s", "2", "--json", "-t", "0.25", name=CHAPTER_18)
    send_by_turns(lab, stream(FLOWS)[:-1])
    found = told(receiver.end())
    assert (found["ended"], found["heaps"]) == ("silence", FLOWS)

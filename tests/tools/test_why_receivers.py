# SPDX-License-Identifier: BSD-3-Clause
"""Why receivers lose packets: what facts mean, and what is said of receivers with known faults."""

import dataclasses
import json
import os
import socket
import sys
import time
from typing import Any

import pytest

from spead_tutorial.tools.why import calls, receiver_program
from spead_tutorial.tools.why import receiver as watching
from spead_tutorial.tools.why.account import Account, Part, ThreadTime
from spead_tutorial.tools.why.facts import Calls, Fates, Pauses, Receiving, Run, Seen, Socket
from spead_tutorial.tools.why.findings import diagnose
from spead_tutorial.tools.why.pauses import pauses
from spead_tutorial.tools.why.report import RECEIVER_CHAPTERS as CHAPTERS
from spead_tutorial.tools.why.report import as_object, seen_of, text
from spead_tutorial.tools.why.waits import Blocked, Look, doing, of_receiver
from support.labs import needs_lab
from support.needs import needs
from support.once import MadeOnce
from support.planted_receivers import RECEIVERS, PlantedReceiver
from support.programs import alone_but
from support.senders import made
from support.typed import Run as Command
from support.typed import check_refused

ATTEMPTS = 3
#: Whose finding `make test` looks for.
REPRESENTATIVE = "c sleeps"
FATES = Fates(rate=1e9, packets=1000, device=0, arrived=1000, unclaimed=0, no_room=200)
READS = Calls(100, 800, ("recvmmsg",), 1.0, 0)
HOLDER = ThreadTime(2, "worker", False, 1.0, (Part("own", "", 0.9), Part("sleep", "", 0.1)))


def seen(*parts: tuple[Any, ...], **more: Any) -> Seen:
    """Facts of a receiver of one thread, the rest of whose time goes into reads."""
    spent = [Part(*part) for part in parts]
    rest = Part("sends", "recvmmsg", 1.0 - sum(part.seconds for part in spent))
    reader = ThreadTime(1, "reader", True, 1.0, (*spent, rest))
    its: dict[str, Any] = {
        "fates": FATES, "packet_bytes": 9000, "burst": 7, "held": 5e8,
        "sockets": (Socket(1, 8888, 1 << 20, merges=False),),
    }  # fmt: skip
    its |= {name: more.pop(name) for name in ("fates", "sockets", "pauses", "told") if name in more}
    run = Run(1.0, 10_000, 90_000_000, ())
    facts: dict[str, Any] = {
        "program": "my_receiver", "place": "a lab", "mtu": 9216, "cores": 2, "run": run,
        "packets": None, "calls": READS, "bare": None, "receiving": Receiving(**its),
        "account": Account(1.0, (reader, HOLDER), receives=True),
    }  # fmt: skip
    return Seen(**facts | more)


# ---- What facts mean ----


PAUSES = Pauses(5, longest_s=0.01, own_s=0.04)
SINGLE = dataclasses.replace(READS, send_calls=800)
IDLE = seen(("input", "", 0.8), ("core", "", 0.18), ("sleep", "", 0.005))


@pytest.mark.parametrize(
    ("watched", "kind"),
    [
        (seen(("sleep", "nanosleep", 0.8)), "sleeps"),
        (seen(("own", "", 0.8), pauses=PAUSES), "pauses"),
        (seen(("own", "", 0.8)), "computes"),
        (seen(("lock", "worker", 0.8)), "waits-for-lock"),
        (seen(("thread", "worker", 0.8)), "waits-for-thread"),
        (seen(("lock", "", 0.8), told={"worker_blocked": 9}), "waits-for-thread"),
        (seen(("faults", "", 0.5), ("calls", "munmap", 0.2)), "fresh-memory"),
        (seen(("calls", "write", 0.8, 1.0)), "other-calls"),
        (seen(("input", "", 0.8)), "small-buffer"),
        (seen(sockets=(Socket(1, 8888, 9000, merges=True),)), "small-buffer"),
        (seen(calls=SINGLE), "call-per-packet"),
        (seen(told={"ring_dropped": 3}), "ring-full"),
        (seen(fates=dataclasses.replace(FATES, no_room=0, unclaimed=10)), "no-socket"),
        (seen(fates=dataclasses.replace(FATES, no_room=0, device=10)), "device"),
        # It only reads, or loses nothing; or waited for a core, or has hardly anything to do.
        (seen(), None),
        (seen(("sleep", "", 0.9), fates=dataclasses.replace(FATES, no_room=0)), None),
        (seen(("input", "", 0.5), ("core", "", 0.4)), None),
        (IDLE, None),
    ],
)
def test_what_takes_most_of_the_time_is_found_first_and_has_a_chapter(
    watched: Seen, kind: str | None
):
    found, said = [one.kind for one in diagnose(watched)], text(watched, diagnose(watched))
    assert found[:1] == ([kind] if kind else [])
    assert CHAPTERS.keys() >= {*found}
    assert all(len(line) <= 80 for line in said.splitlines())
    assert ("next to nothing to do" in said) is (watched is IDLE)


def test_shares_are_of_the_time_it_was_busy_and_make_no_more_than_all_of_it():
    watched = seen(
        ("input", "", 0.2), ("core", "", 0.4), ("sleep", "", 0.2), ("own", "", 0.1), calls=SINGLE
    )
    shares = {one.kind: one.explains or 0.0 for one in diagnose(watched)}
    assert shares["sleeps"] == pytest.approx(0.5)
    assert sum(shares.values()) <= 1.0 + 1e-9
    paused = diagnose(seen(("own", "", 0.8), calls=SINGLE, pauses=PAUSES))
    assert sum(one.explains or 0.0 for one in paused) <= 1.0 + 1e-9


def test_of_a_thread_that_is_waited_for_it_is_said_what_it_does():
    (found,) = diagnose(seen(("lock", "worker", 0.9)))
    assert "worker, which is in its own code for 90 % of the time" in found.symptom


def test_the_report_says_what_mending_is_worth_what_was_lost_and_where():
    watched = seen(("sleep", "nanosleep", 0.75))
    words = " ".join(text(watched, diagnose(watched)).split())
    assert words.startswith(
        "Mend first: it sleeps in nanosleep, 75 % of its busy time; without that it is about 4.0"
        " times as fast. my_receiver lost 20 % of the packets at 1000 MB/s in packets of 9000"
        " bytes, none at 500 MB/s. Where the time of its thread that reads goes, in 1 s:"
    )
    assert "25 % in calls that read the socket: recvmmsg" in words
    assert "1. 75 % of its busy time: The time of what reads goes by in waits" in words
    assert "packets sent 1000" in words
    assert "messages without room in the socket 200 (port 8888, of 1048576 bytes)" in words


def test_what_is_said_of_a_receiver_can_be_read_back():
    watched = seen(("sleep", "nanosleep", 0.75), pauses=PAUSES)
    made = json.loads(json.dumps(as_object(watched, diagnose(watched))))
    assert seen_of(made) == watched
    assert made["receiving"]["fates"]["share"] == 0.2
    assert [(one["kind"], one["chapter"]) for one in made["findings"]] == [("sleeps", 7)]


# ---- What threads do ----

FUTEX = "futex"


@pytest.mark.parametrize(
    ("blocked", "queued", "others", "kind"),
    [
        (Blocked("nanosleep", timed=True), True, (), "sleep"),
        (Blocked("nanosleep", timed=True), False, (), "input"),
        (Blocked("recvfrom", timed=False), True, (), "input"),
        (Blocked("epoll_wait", timed=True), True, (), "sleep"),
        (Blocked("epoll_wait", timed=False), True, (), "input"),
        (Blocked(FUTEX, timed=False, is_lock=True), True, (), "lock"),
        (Blocked(FUTEX, timed=True), True, (None,), "lock"),
        (Blocked(FUTEX, timed=True), True, (), "sleep"),
        (Blocked(FUTEX, timed=False), True, (None,), "thread"),
        (Blocked("fsync", timed=False), True, (), "calls"),
        (Blocked("", timed=False), True, (), "unexplained"),
    ],
)
def test_a_wait_is_told_by_its_call_what_is_in_the_socket_and_who_runs(
    blocked: Blocked, queued: bool, others: tuple[None, ...], kind: str
):
    look: Look = {1: blocked, **dict(enumerate(others, 2))}
    told = of_receiver(look, queued, {1: ("reader", 0), 2: ("worker", 0)})[1]
    assert (told.call, told.kind) == (blocked.call, kind)
    assert told.on == ("worker" if kind in ("lock", "thread") and others else told.on)


def test_a_lock_of_the_c_library_waits_for_a_word_to_be_no_longer_two():
    number = next(n for n in range(512) if doing(f"{n} 0x0") == Blocked(FUTEX, timed=False))
    for value, is_lock in (("0x2", True), ("0x0", False)):
        text = f"{number} 0x7f00 0x80 {value} 0x0 0x0 0x0 0x7ffc 0x7f01"
        assert doing(text) == Blocked(FUTEX, timed=False, is_lock=is_lock)


LINES = """\
10 5.000000 recvfrom(3<UDP:[77]>, ""..., 65536, 0, NULL, NULL) = 9000 <0.000030>
10 5.000100 write(1</tmp/log>, ""..., 9) = 9 <0.000050>
11 5.000120 futex(0x1, FUTEX_WAIT, 0, NULL <unfinished ...>
10 5.000200 recvfrom(3<UDP:[77]>, ""..., 65536, 0, NULL, NULL) = 9000 <0.000030>
11 5.000300 <... futex resumed>) = 0 <0.000180>
10 5.000300 recvfrom(3<UDP:[77]>, 0x5, 65536, 0, NULL, NULL) = -1 EAGAIN (Resource) <0.000010>
10 5.000400 recvfrom(3<UDP:[77]>,  <unfinished ...>
10 5.000450 <... recvfrom resumed>""..., 65536, 0, NULL, NULL) = 9000 <0.000050>
10 5.050450 recvfrom(3<UDP:[77]>, ""..., 65536, 0, NULL, NULL) = 9000 <0.000030>
10 5.050500 read(4</tmp/other>, ""..., 9) = 9 <0.000010>
10 5.050550 recvmmsg(3<UDP:[77]>, 0x7, 8, MSG_WAITFORONE, NULL) = 8 <0.000040>
"""


def test_of_straces_lines_reads_other_calls_and_pauses_are_counted():
    ended = calls.read(LINES.splitlines())
    reads = calls.reads(ended, [77])
    found = calls.counted(ended, reads) or pytest.fail("nothing read")
    assert (found.send_calls, found.messages) == (5, 12)
    assert found.names == ("recvfrom", "recvmmsg")
    assert [one.messages for one in found.callers] == [12, 0]
    # One of the reads finds nothing.
    assert {one.name: (one.count, one.sends) for one in found.callers[0].calls} == {
        "recvfrom": (5, True), "recvmmsg": (1, True), "write": (1, False), "read": (1, False),
    }  # fmt: skip
    assert pauses(ended, reads, 0.0, 0.0) == Pauses(1, pytest.approx(0.05), pytest.approx(0.05))
    assert calls.counted(ended, calls.reads(ended, [78])) is None


@pytest.mark.parametrize(
    ("starved", "own", "left"), [(0.0, 0.0, 0.05), (0.5, 0.0, 0.0), (0.5, 0.03, 0.03)]
)
def test_time_without_a_core_is_no_pause(starved: float, own: float, left: float):
    ended = calls.read(LINES.splitlines())
    found = pauses(ended, calls.reads(ended, [77]), starved, own)
    assert found.own_s == pytest.approx(left, abs=5e-4)


def test_a_socket_is_asked_for_its_buffer_and_its_merging():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        room = sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        (found,) = receiver_program.sockets([os.getpid()], sock.getsockname()[1])
        assert (found.inode, found.buffer) == (os.fstat(sock.fileno()).st_ino, room)
        assert found.merges is False


# ---- Receivers that are watched ----


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the runs be short."""
    for name, value in (("_RUN_S", 0.2), ("_SEARCH_S", 1.0), ("_TRACED_S", 0.5)):
        monkeypatch.setattr(watching, name, value)


@needs_lab
@needs("strace")
@pytest.mark.parametrize("receiver", alone_but(REPRESENTATIVE, RECEIVERS))
def test_of_a_planted_receiver_its_fault_is_found_first_and_not_when_mended(
    receiver: PlantedReceiver, made_once: MadeOnce, here: Command, quick: None
):
    if receiver.lacking is not None:
        pytest.skip(receiver.lacking)
    folder = made(receiver, made_once)

    def found(mended: bool, seconds: float) -> dict[str, float]:
        """Return what a packet costs by each kind, the first one first."""
        words = receiver.command(folder, mended=mended)
        words = ["--json", "--seconds", str(seconds), *receiver.options, "--", *words]
        said = json.loads(here("why", "--receiver", *words).stdout)
        return {one["kind"]: one["cost_s"] or 1.0 for one in said["findings"]}

    kind = receiver.kind
    for attempt in range(ATTEMPTS):  # a machine can be so busy that others lose the packets
        seconds = 0.5 * (1 << attempt)
        faulty = found(False, seconds)
        if next(iter(faulty), None) != kind:
            continue
        if kind is None or found(True, seconds).get(kind, 0.0) <= faulty[kind] / 2:
            return
    pytest.fail(f"found: {faulty}, or more than half of it when mended")


@needs_lab
@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("raise SystemExit('no such thing')", "ended with status 1 before it listened: no such"),
        ("import time; time.sleep(60)", "did not listen at UDP port 8888 within 1 s"),
        (
            "import socket, time; s = socket.socket(2, 2); s.bind(('', 9999)); time.sleep(60)",
            "within 1 s, but at 9999",
        ),
    ],
)
def test_what_ends_or_never_listens_is_said_in_a_line(
    here: Command, monkeypatch: pytest.MonkeyPatch, program: str, words: str
):
    monkeypatch.setattr(receiver_program, "_START_S", 1.0)
    started = time.monotonic()
    done = here("why", "--receiver", "--json", "--", sys.executable, "-c", program, "{port}")
    check_refused(done, 1, words)
    assert time.monotonic() < started + 60  # it hangs for nobody


@needs_lab
def test_where_there_is_no_strace_the_rest_is_looked_at(
    here: Command, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(watching, "_search", lambda program: watching._Found(0, FATES, 1e9))
    monkeypatch.setattr(watching.instruments, "strace", lambda *words: None)
    monkeypatch.setattr(watching, "_watched", lambda *found: f"traced: {found[-1]}")
    done = here("why", "--receiver", "--", "sleep", "{port}")
    assert (done.returncode, done.stdout) == (0, "traced: None\n")


@needs_lab
def test_what_loses_nothing_is_said_in_a_line(here: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watching, "_search", lambda program: watching._Found(1e9, None, 1e9))
    done = here("why", "--receiver", "--", "sleep", "{port}")
    assert done.returncode == 0
    assert done.stdout == (
        "sleep lost nothing of 1e+03 MB/s in packets of 9000 bytes, the most that was sent to it\n"
    )

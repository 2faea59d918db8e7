# SPDX-License-Identifier: BSD-3-Clause
"""Why receivers lose packets: what facts mean, and what is said of receivers with known faults."""

import itertools
import json
import os
import socket
import sys
import time
from typing import Any

import pytest
from msgspec.structs import replace

from spead_tutorial.lab import Counters
from spead_tutorial.tools.why import instruments, looks
from spead_tutorial.tools.why import receiver as watching
from spead_tutorial.tools.why.facts import (
    Call,
    Calls,
    Fates,
    Loop,
    Receiving,
    Run,
    Seen,
    Socket,
    Thread,
    Waited,
    Watched,
    Way,
)
from spead_tutorial.tools.why.findings import diagnose
from spead_tutorial.tools.why.looks import Blocked
from spead_tutorial.tools.why.loops import MERGED
from spead_tutorial.tools.why.report import as_object, seen_of, text
from spead_tutorial.tools.why.stacks import Sampled, Told
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
OFTEN = replace(FATES, rate=2e9, no_room=600)  # it has time for 45 % of them
READ_BY = Call(1, "reader", "recvfrom", 1000, 0.0, messages=1000, sends=True)
READS = Calls(1000, 1000, ("recvfrom",), 1, False, (READ_BY,))
READ = Told("reads", "recvfrom", "recvfrom")
PACKETS = Waited("packets", False, 100)
ROOM = Socket(1, 8888, 1 << 20, merges=False)


def seen(own: str = "", n: int = 0, *waits: Waited, cpu_s: float = 1.0, **more: Any) -> Seen:
    """Facts of a receiver of one thread, which got 100 000 packets in a second."""
    thread = Thread(1, 1, "reader", cpu_s, 0.0, more.pop("late", 0.0), 9, 0)
    told = ((READ, 100 - n), *(((Told(own, "f"), n),) if n else ()))
    its: dict[str, Any] = {
        "fates": FATES, "packet_bytes": 9000, "bare_lost": 0.0, "held": 5e8, "sockets": (ROOM,),
    }  # fmt: skip
    its |= {
        name: more.pop(name) for name in ("fates", "sockets", "bare_lost", "held") if name in more
    }
    run = Run(1.0, 100_000, 900_000_000, 200, 1.0, (Watched(thread, 200, waits),))
    facts: dict[str, Any] = {
        "program": "my_receiver", "language": "", "place": "a lab", "mtu": 9216,
        "run": run, "calls": READS, "receiving": Receiving(**its),
        "sampled": {1: Sampled("reader", 1, told)},
        "loops": (Loop("", Way(9000), (2e-6,)), Loop(MERGED, Way(9000), (1e-6,))),
    }  # fmt: skip
    return Seen(**facts | more)


# ---- What facts mean ----


@pytest.mark.parametrize(
    ("watched", "kind"),
    [
        (seen("computes", 75), "computes"),
        (seen("logs", 75), "logs"),
        (seen("garbage", 75), "garbage"),
        (seen("", 0, Waited("clock_nanosleep", True, 150), cpu_s=0.25), "sleeps"),
        (seen("", 0, Waited("futex", False, 150), cpu_s=0.25), "waits-for-thread"),
        # To read as a bare reader does is no fault, but to do so for each packet is.
        (seen(cpu_s=0.2), "call-per-packet"),
        (seen(cpu_s=0.2, loops=(Loop("", Way(9000), (2e-6,)),)), None),
        (seen(cpu_s=0.2, language="Java"), None),  # whose library can do nothing else
        # A bare reader with as much room loses as much, and it has the time for all packets.
        (seen("computes", 75, PACKETS, cpu_s=0.5, bare_lost=0.3), "small-buffer"),
        (seen("computes", 75, cpu_s=1.0, bare_lost=0.3, fates=OFTEN), "computes"),
        # Of what is far slower than a bare reader the buffer is not the first matter.
        (
            seen(
                "",
                0,
                Waited("clock_nanosleep", True, 180),
                cpu_s=0.1,
                bare_lost=0.3,
                fates=replace(FATES, rate=1e8),
            ),
            "sleeps",
        ),
        (seen("computes", 75, PACKETS, cpu_s=0.5), "computes"),
        (seen("computes", 75, PACKETS, cpu_s=0.6, late=0.2), "computes"),
        (seen(fates=replace(FATES, no_room=0, unclaimed=10)), "no-socket"),
        (seen(fates=replace(FATES, no_room=0, device=10)), "device"),
    ],
)
def test_where_packets_are_lost_is_said_first_and_then_what_takes_most(
    watched: Seen, kind: str | None
):
    found = diagnose(watched)
    said = text(watched, found)
    assert next((one.kind for one in found if not one.gain or one.gain.median > 1.1), None) == kind
    assert all(len(line) <= 80 for line in said.splitlines())


def test_who_has_the_one_lock_of_a_language_is_who_runs_while_a_reader_waits():
    for language, call, kind in (
        ("", "futex", "computes"),
        ("Python", "futex", "waits-for-thread"),
        ("", "mutex", "waits-for-thread"),
    ):
        its = seen(cpu_s=0.25, language=language)
        reader, other = (replace(its.run.threads[0].thread, tid=tid) for tid in (1, 2))
        waits = Waited(call, False, 150, running={2: 150})
        threads = Watched(reader, 200, (waits,)), Watched(replace(other, user_s=1.0))
        told = its.sampled | {2: Sampled("worker", 1, ((Told("computes", "f"), 9),))}
        run = replace(its.run, threads=threads)
        assert diagnose(replace(its, run=run, sampled=told))[0].kind == kind


def test_of_looks_it_is_counted_who_runs_or_sleeps_meanwhile_and_what_all_wait_in(monkeypatch):
    waits, sleeps = Blocked("futex", False), Blocked("clock_nanosleep", True)
    each = [{1: waits, 2: None}, {1: waits, 2: sleeps}, {1: None, 2: sleeps}]
    sent, its = itertools.count(), {tid: Thread(tid, 1, "t", 0.5, 0.0, 0.0, 9, 0) for tid in (1, 2)}
    monkeypatch.setattr(looks, "threads", lambda pids: its)
    monkeypatch.setattr(looks, "now", lambda tids: each.pop(0))
    counters = lambda: Counters("dummy", *[next(sent)] * 6)  # noqa: E731
    run = looks.followed(os.getpid(), counters, 60, lambda: not each)
    first, second = run.threads
    assert first.waits == (Waited("futex", False, 2, {2: 1}, {2: 1}),)
    assert second.waits == (Waited("clock_nanosleep", True, 2, {1: 1}),)
    assert run.whole.waits == (Waited("clock_nanosleep", True, 1, {}, {2: 1}),)


def test_what_is_waited_in_is_for_packets_only_where_they_are_read_and_none_is_there(monkeypatch):
    """Who waits for a lock may hold a packet."""
    sent, its = itertools.count(), {tid: Thread(tid, 1, "t", 0.5, 0.0, 0.0, 9, 0) for tid in (1, 2)}
    blocked = {1: Blocked("recvfrom", False), 2: Blocked("futex", False)}
    monkeypatch.setattr(looks, "threads", lambda pids: its)
    monkeypatch.setattr(looks, "now", lambda tids: dict(blocked))
    counters = lambda: Counters("dummy", *[next(sent)] * 6)  # noqa: E731
    for queued, call in ((True, "recvfrom"), (False, "packets")):
        over = iter([False, True])
        run = looks.followed(1, counters, 60, lambda over=over: next(over), lambda q=queued: q)
        assert [one.waits[0].call for one in run.threads] == [call, "futex"]


def test_waits_for_packets_are_no_part_of_what_could_gain():
    busy, idle = seen("computes", 50, cpu_s=0.5), seen("computes", 50, PACKETS, cpu_s=0.5)
    for watched in (busy, idle):
        gain = {one.kind: one.gain for one in diagnose(watched)}["computes"]
        assert gain is not None
        assert 1.4 < gain.low < 2.5


def test_of_a_receiver_near_the_best_bare_reader_nothing_is_found_but_a_small_buffer():
    for lost, held, begins in (
        (0.0, 5e8, "Nothing found."),
        (0.3, 5e8, "Mend first: too little room"),
        (0.3, 1e9, "Nothing found."),  # above that the usual buffer is short for all
    ):
        fast = seen(cpu_s=0.2, bare_lost=lost, held=held)
        assert text(fast, diagnose(fast)).startswith(begins)


def test_the_report_says_what_mending_is_worth_what_was_lost_and_where():
    words = " ".join(text(watched := seen("computes", 75), diagnose(watched)).split())
    assert words.startswith("Mend first: computing in its own code (f); without that, ")
    assert (
        "my_receiver lost 20 % of the packets at 1000 MB/s in packets of 9000 bytes, none at 500"
        " MB/s. A packet takes 10 µs here; a bare loop that does the same needs 2 µs." in words
    )
    assert "Check: Read and drop the packets for once" in words
    assert "packets sent 1000" in words
    assert "messages without room in the socket 200 (port 8888, of 1048576 bytes)" in words


def test_what_is_said_of_a_receiver_can_be_read_back():
    watched = seen("computes", 75)
    made = json.loads(json.dumps(as_object(watched, diagnose(watched))))
    assert seen_of(made) == watched
    assert made["findings"][0]["chapter"] == 7


def test_what_a_bare_reader_loses_but_now_and_then_is_not_of_its_buffer(monkeypatch):
    for shares, lost in (
        ([0.3, 0.0, 0.3, 0.1, 0.4, 0.0], 0.2),  # with such a buffer, and then with its own
        ([0.02, 0.0, 0.0, 0.0], 0.0),
        ([0.02, 0.05], 0.0),
    ):
        runs = iter(shares)

        def read(*_: object, runs=runs) -> tuple[Fates, float]:
            fates = replace(FATES, no_room=round(1000 * next(runs)))
            return fates, 0.1

        monkeypatch.setattr(watching, "_read", read)
        assert watching._lost_by_bare(None, 1e9, [], 4096) == pytest.approx(lost)
        assert next(runs, None) is None


LINES = """\
10 5.000000 recvfrom(3<UDP:[77]>, ""..., 65536, 0, NULL, NULL) = 9000 <0.000030>
10 5.000100 write(1</tmp/log>, ""..., 9) = 9 <0.000050>
10 5.000300 recvfrom(3<UDP:[77]>, 0x5, 65536, 0, NULL, NULL) = -1 EAGAIN (Resource) <0.000010>
10 5.000400 recvfrom(3<UDP:[77]>, ""..., 65536, 0, NULL, NULL) = 9000 <0.000050>
10 5.050500 read(4</tmp/other>, ""..., 9) = 9 <0.000010>
10 5.050550 recvmmsg(3<UDP:[77]>, 0x7, 8, MSG_WAITFORONE, NULL) = 8 <0.000040>
"""


def test_of_straces_lines_reads_and_other_calls_are_counted():
    ended = instruments.read(LINES.splitlines())
    found = instruments.counted(ended, instruments.reads(ended, [77])) or pytest.fail(
        "nothing read"
    )
    assert (found.send_calls, found.messages) == (3, 10)
    assert found.names == ("recvfrom", "recvmmsg")
    # One of the reads finds nothing.
    counts = {one.name: (one.count, one.sends) for one in found.all}
    assert counts == {
        "recvfrom": (3, True), "recvmmsg": (1, True), "write": (1, False), "read": (1, False),
    }  # fmt: skip
    assert instruments.counted(ended, instruments.reads(ended, [78])) is None


def test_a_socket_is_asked_for_its_buffer_and_its_merging():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        room = sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        (found,) = looks.sockets([os.getpid()], sock.getsockname()[1])
        assert (found.inode, found.buffer) == (os.fstat(sock.fileno()).st_ino, room)
        assert found.merges is False


# ---- Receivers that are watched ----


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the runs be short."""
    for name, value in (("_RUN_S", 0.2), ("_TRACED_S", 0.5)):
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

    def found(mended: bool, seconds: float) -> list[str]:
        words = receiver.command(folder, mended=mended)
        words = ["--json", "--seconds", str(seconds), *receiver.options, "--", *words]
        said = json.loads(here("why", "--receiver", *words).stdout)
        return [one["kind"] for one in said["findings"]]

    kind = receiver.kind
    for attempt in range(ATTEMPTS):  # a machine can be so busy that others lose the packets
        seconds = 0.5 * (1 << attempt)
        faulty = found(False, seconds)
        if next(iter(faulty), None) == kind and (
            kind is None or kind not in found(True, seconds)[:1]
        ):
            return
    pytest.fail(f"found: {faulty}, or the same when mended")


@needs_lab
@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("raise SystemExit('no such thing')", "failed with status 1 before it listened: no such"),
        ("import time; time.sleep(60)", "did not listen at UDP port 8888 within 3 s"),
        (
            "import socket, time; s = socket.socket(2, 2); s.bind(('', 9999)); time.sleep(60)",
            "within 3 s, but at 9999",
        ),
    ],
)
def test_what_ends_or_never_listens_is_said_in_a_line(
    here: Command, monkeypatch: pytest.MonkeyPatch, program: str, words: str
):
    monkeypatch.setattr(watching, "_START_S", 3.0)
    started = time.monotonic()
    done = here("why", "--receiver", "--json", "--", sys.executable, "-c", program, "{port}")
    check_refused(done, 1, words)
    assert time.monotonic() < started + 60  # it hangs for nobody


@needs_lab
def test_what_loses_nothing_is_said_in_a_line(here: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watching, "_search", lambda *program: watching._Found(1e9, None, 1e9))
    done = here("why", "--receiver", "--", "sleep", "{port}")
    assert done.returncode == 0
    assert done.stdout == (
        "sleep lost nothing of 1e+03 MB/s in packets of 9000 bytes, the most that was sent to it\n"
    )

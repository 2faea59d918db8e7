# SPDX-License-Identifier: BSD-3-Clause
"""Timelines: that they show what the loops of chapters 4 and 5 really do, in their order."""

import asyncio
import contextlib
import dataclasses
import gc
import json
import os
import re
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from spead_tutorial import chapters, cli
from spead_tutorial.analysis import timeline as timeline_module
from spead_tutorial.analysis.timeline import record, shares, waiting
from spead_tutorial.lab import LabError
from spead_tutorial.records import Timeline
from support.processes import run_script

STEPS = [field.name for field in dataclasses.fields(Timeline) if field.name.endswith("_ns")]
SMALL = {"heaps": 5, "heap_size": 10000}
#: So slow that a heap is on its way for half a second, once the first burst is gone.
SLOW = {"heaps": 3, "heap_size": 150000, "rate": 250000.0}

both_loops = pytest.mark.parametrize("pipelined", [False, True], ids=["chapter 4", "chapter 5"])
anywhere = pytest.mark.parametrize("inside", [False, True], ids=["alone", "in a loop"])

#: Runs a program as it is, but for an option that it has not: heaps that a receiver has room for.
WITH_A_SIZE = """
import runpy, sys
from spead_tutorial.chapters import report
parse = report.parse_options
report.parse_options = lambda doc, accepted, defaults: parse(doc, accepted + "H", defaults)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""

#: Two heaps, one prepared while the other is sent.
MADE = Timeline(
    case="",
    program="tut_5_send_pipeline",
    language="python",
    random=False,
    heap_size=1,
    packet_size=1472,
    prepare_ns=(0, 40),
    queued_ns=(30, 60),
    first_packet_ns=(35, 75),
    last_packet_ns=(70, 95),
    completed_ns=(72, 96),
    resumed_ns=(80, 100),
)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder, where the source does not hide the installed package."""
    monkeypatch.chdir(tmp_path)


def recorded(to: socket.socket, **more) -> Timeline:
    """Record a timeline over loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        return record(sock, to.getsockname(), **more)


def called(send: Callable[[], Timeline], inside: bool) -> Timeline:
    """Call it, inside a running event loop, as in a notebook's cell, or outside."""

    async def cell() -> Timeline:
        return send()

    return asyncio.run(cell()) if inside else send()


def check_order(timeline: Timeline, heaps: int) -> None:
    times = [getattr(timeline, step) for step in STEPS]
    assert [len(one) for one in times] == [heaps] * len(STEPS)
    for heap in zip(*times, strict=True):
        assert list(heap) == sorted(heap)
    assert timeline.prepare_ns[0] == 0
    for one in times:
        assert list(one) == sorted(one)


# ---- Recording ----


def received(sock: socket.socket) -> list[bytes]:
    """Return what a receiver has by now: on loopback, all that was sent to it."""
    packets = []
    sock.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            packets.append(sock.recv(65536))
    return packets


@pytest.mark.parametrize(
    ("program", "random"),
    [
        ("tut_4_send_perf", True),
        ("tut_5_send_pipeline", True),
        pytest.param("tut_4_send_constant", False, marks=pytest.mark.thorough),
        pytest.param("tut_5_send_pipeline", False, marks=pytest.mark.thorough),
    ],
)
def test_it_sends_what_the_programs_send(receiver, tmp_path, program, random):
    host, port = receiver.getsockname()
    flags = ["-r"] if random and program == "tut_5_send_pipeline" else []
    path = Path(chapters.__file__).with_name(f"{program}.py")
    argv = [str(path), "-n", "5", "-H", "10000", *flags, host, str(port)]
    done = run_script(WITH_A_SIZE, tmp_path, *argv)
    assert (done.returncode, done.stderr) == (0, "")
    expected = received(receiver)
    recorded(receiver, pipelined="pipeline" in program, random=random, **SMALL)
    assert received(receiver) == expected
    assert len(expected) > 5 * 6


@both_loops
def test_chapter_5_begins_a_heap_before_the_last_one_is_completed_and_chapter_4_after(
    receiver, pipelined
):
    timeline = recorded(receiver, pipelined=pipelined, random=False, **SLOW)
    check_order(timeline, 3)
    ended = timeline.completed_ns if pipelined else timeline.resumed_ns
    for begun, end in zip(timeline.prepare_ns[1:], ended, strict=False):
        assert begun < end if pipelined else begun >= end


@both_loops
def test_it_records_through_a_socket_of_a_lab(make_lab, pipelined):
    with make_lab() as lab, lab.socket() as sock:
        to = (lab.address, lab.port)
        timeline = record(sock, to, pipelined=pipelined, random=False, **SMALL)
        assert lab.counters().packets > 0
        check_order(timeline, 5)
        with pytest.raises(OSError, match="unreachable"):
            record(sock, ("198.51.100.1", 9), pipelined=pipelined, random=False, **SMALL)


@both_loops
@anywhere
def test_a_send_that_fails_is_raised_and_nothing_is_logged(receiver, caplog, pipelined, inside):
    def send() -> Timeline:
        return recorded(receiver, pipelined=pipelined, random=False, packet_size=70000)

    with pytest.raises(OSError, match="70000"):
        called(send, inside)
    assert caplog.text == ""


@both_loops
@anywhere
def test_the_thread_that_was_pinned_for_it_may_go_anywhere_again(receiver, pipelined, inside):
    usable = sorted(os.sched_getaffinity(0))

    def send() -> Timeline:
        cores = (usable[-1], usable[0])
        return recorded(receiver, pipelined=pipelined, random=False, cores=cores, **SMALL)

    check_order(called(send, inside), 5)
    assert sorted(os.sched_getaffinity(0)) == usable


@both_loops
def test_a_core_that_is_not_there_is_an_error(receiver, pipelined):
    for cores in ((0, 1023), (1023, 0)):
        with pytest.raises(OSError, match="on core 1023"):
            recorded(receiver, pipelined=pipelined, random=False, cores=cores, **SMALL)


@both_loops
@anywhere
def test_ctrl_c_ends_it(receiver, pipelined, inside):
    def interrupt() -> None:
        receiver.recv(65536)  # a heap is on its way, and stays there for hours
        os.kill(os.getpid(), signal.SIGINT)

    def send() -> None:
        recorded(receiver, pipelined=pipelined, random=False, rate=0.1)

    async def cell() -> None:
        send()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt), contextlib.closing(asyncio.new_event_loop()) as loop:
        loop.run_until_complete(cell()) if inside else send()  # as a notebook's kernel does
    thread.join()


@pytest.mark.parametrize("begun", [False, True])
def test_ctrl_c_while_the_thread_of_a_running_loop_is_started_ends_it(
    receiver, monkeypatch, caplog, begun
):
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        monkeypatch.setattr(threading.Thread, "start", start)
        if begun:
            start(thread)
            receiver.recv(65536)  # a heap is on its way, and stays there for hours
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        called(lambda: recorded(receiver, pipelined=True, random=False, rate=0.1), inside=True)
    gc.collect()
    assert caplog.text == ""


def test_times_that_cannot_be_are_refused():
    timeline_module._check(MADE)
    wrong = dataclasses.replace(MADE, completed_ns=(72, 94))
    with pytest.raises(RuntimeError, match=r"heap 1 contradict.*last_packet_ns is 95"):
        timeline_module._check(wrong)


# ---- Shares ----


def test_shares_are_the_time_that_intervals_cover():
    found = shares(MADE)
    assert found.preparing == pytest.approx(0.5)  # 0 to 30, and 40 to 60
    assert found.waiting == pytest.approx(0.4)  # 60 to 80, and 80 to 100
    assert found.rest == pytest.approx(0.1)
    assert found.sending == pytest.approx(0.55)  # 35 to 70, and 75 to 95
    assert waiting(MADE) == [(60, 80), (80, 100)]


def test_of_two_heaps_in_one_call_the_second_is_sent_after_the_first():
    shared = dataclasses.replace(MADE, first_packet_ns=(35, 60), completed_ns=(96, 96))
    assert timeline_module.sending(shared) == [(35, 70), (70, 95)]
    assert shares(shared).sending == pytest.approx(0.6)


# ---- As a command ----


def run(*arguments: object) -> int:
    return cli.finish(cli.cli, "spead-tutorial", ["timeline", *map(str, arguments)])


@pytest.mark.parametrize(
    ("flags", "program"),
    [
        ((), "tut_4_send_constant"),
        (("--pipelined",), "tut_5_send_pipeline"),
        (("--random",), "tut_4_send_perf"),
        (("--pipelined", "--random", "-c", "0,0"), "tut_5_send_pipeline"),
    ],
)
def test_it_says_what_the_time_was_used_for_or_prints_one_json_object(
    receiver, capfd, flags, program
):
    options = (*flags, "-n", "3", "-H", "8192", "-p", "9000", *receiver.getsockname())
    assert (run(*options), run("--json", *options)) == (0, 0)
    said, errors = capfd.readouterr()
    words, found = said.splitlines()
    assert errors == ""
    assert re.match(r"3 heaps in [\d.]+ ms; from heap 1 on, counted from 0, the", words)
    assert words.count("%") == 4
    timeline = Timeline(**{k: tuple(v) if k in STEPS else v for k, v in json.loads(found).items()})
    check_order(timeline, 3)
    assert (timeline.program, timeline.random) == (program, "--random" in flags)
    assert (timeline.language, timeline.heap_size, timeline.packet_size) == ("python", 8192, 9000)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["-p", "70000", "127.0.0.1", "8888"], 1, "70000 bytes"),
        (["--pipelined", "-p", "70000", "127.0.0.1", "8888"], 1, "70000 bytes"),
        (["-p", "20", "127.0.0.1", "8888"], 1, "too small"),
        (["not a host", "8888"], 1, "no address is known"),
        (["-c", "0", "127.0.0.1", "8888"], 2, "must be two cores, such as 0,1, not '0'"),
        (["-n", "0", "127.0.0.1", "8888"], 2, "0 is not in the range"),
        (["127.0.0.1"], 2, "Missing argument 'PORT'"),
    ],
)
def test_an_error_is_one_line(capfd, arguments, status, words):
    assert run(*arguments) == status
    said = capfd.readouterr()
    assert said.out == ""
    assert re.fullmatch(r"spead-tutorial: [^\n]+\n", said.err)
    assert words in said.err


def test_a_real_interface_is_refused(monkeypatch, capsys):
    def refuse(host: str, *, allow_real_network: bool) -> None:
        raise LabError(f"{host} {allow_real_network}")

    monkeypatch.setattr(timeline_module, "check_destination", refuse)
    assert run("192.0.2.1", "9") == 1
    assert capsys.readouterr().err == "spead-tutorial: 192.0.2.1 False\n"

# SPDX-License-Identifier: BSD-3-Clause
"""The command that says why a sender is slow, of odd ones; of known faults: `test_why_senders`.

What is checked counts and does not time: packets in a message, calls, faults, sleeps, cores.
"""

import contextlib
import json
import os
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spead_tutorial.tools.why import instruments, loops, watching
from spead_tutorial.tools.why.places import Capture
from spead_tutorial.tools.why.watching import Output
from support.labs import needs_lab, open_lab
from support.typed import Run, check_refused, processes

SENDS = "while True: sock.sendto(data, to)"
SLEEPS = "while True: sock.sendto(data, to); time.sleep(0.001)"


@pytest.fixture
def why(here: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command in this process, with a bare loop that is over at once."""
    monkeypatch.setattr(watching, "_TOUCHED", 1 << 20)
    monkeypatch.setattr(loops, "ROUNDS", 1)
    monkeypatch.setattr(loops, "EACH_S", 1e-3)
    monkeypatch.setattr(instruments, "strace", lambda *words: None)
    return lambda *words: here("why", "--seconds", "0.5", *words)


@pytest.fixture
def diagnosis(why: Run) -> Callable[..., dict[str, Any]]:
    """Return what the command says of a sender, as an object."""

    def ask(*words: str | Path) -> dict[str, Any]:
        done = why("--json", *words)
        assert (done.returncode, done.stderr) == (0, "")
        made: dict[str, Any] = json.loads(done.stdout)
        return made

    return ask


def kinds(made: dict[str, Any]) -> list[str]:
    return [finding["kind"] for finding in made["findings"]]


def script(folder: Path, text: str) -> list[str]:
    """A sender in Python, which is told where to send to."""
    path = folder / "sender.py"
    lines = ["import mmap, os, signal, socket, sys, time", "to = sys.argv[1], int(sys.argv[2])"]
    lines += ["sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)", "data = bytes(9000)"]
    path.write_text("\n".join([*lines, text, ""]))
    return ["--", sys.executable, str(path), "{host}", "{port}"]


@contextlib.contextmanager
def running(process: "subprocess.Popen[Any]") -> Iterator["subprocess.Popen[Any]"]:
    """Kill a process after the block."""
    with process:
        try:
            yield process
        finally:
            process.kill()


# ---- What there is to see ----


@needs_lab
def test_a_packet_socket_sees_messages_packets_and_fragments():
    found = []
    with open_lab() as lab, lab.socket() as sender:
        for segment, datagrams in (
            (1000, [bytes(500), bytes(9500)]),
            (0, [bytes(20_000)]),
        ):
            raw = lab.socket(socket.AF_PACKET, socket.SOCK_RAW)
            with Capture(raw, lab.device) as capture:
                assert capture.packets() is None
                sender.setsockopt(socket.SOL_UDP, 103, segment)  # UDP_SEGMENT
                for datagram in datagrams:
                    sender.sendto(datagram, (lab.address, lab.port))
                seen = capture.packets()
            found.append((seen.messages, seen.packets, seen.fragments))
            found.append((seen.packet_bytes, seen.payload_bytes))
    assert found == [(2, 11, 0), (1000, 10_000), (3, 1, 2), (20_000, 20_000)]


@needs_lab
def test_without_strace_and_perf_what_was_not_seen_is_said_and_how_to_get_it(
    tmp_path, why, monkeypatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(instruments, "py_spy", lambda: None)
    done = why(*script(tmp_path, SLEEPS))
    assert done.returncode == 0
    said = " ".join(done.stdout.split())
    assert "Its calls were not seen, as there is no strace: apt install strace." in said
    assert (
        "What its own code does was not seen, as there is no perf: apt install linux-perf." in said
    )
    assert "Watching sender.py: its packets" in done.stderr
    assert "Mend first: sleeping (clock_nanosleep)" in said


@needs_lab
def test_a_sender_below_a_shell_is_told_by_its_environment_seen_and_ended_whatever_it_ignores(
    tmp_path, diagnosis
):
    text = "to = os.environ['SPEAD_TUTORIAL_HOST'], int(os.environ['SPEAD_TUTORIAL_PORT'])\n"
    text += "for one in (2, 15): signal.signal(one, signal.SIG_IGN)\n"
    words = " ".join([*script(tmp_path, text + SENDS)[1:-2], "9", "9"])
    made = diagnosis("--", "sh", "-c", f"{words}; exit 0")
    assert "no-segmentation-offload" in kinds(made)
    assert made["run"]["threads"]
    assert made["run"]["messages"] > 16
    assert list(processes(str(tmp_path / "sender.py"))) == []


def test_of_what_a_program_prints_the_last_part_is_kept_and_nothing_on_disk():
    program = "echo first; yes | head -c 5000000; echo last"
    with Output() as output:
        assert stat.S_ISFIFO(os.fstat(output.to).st_mode)
        subprocess.run(["sh", "-c", program], stdout=output.to, stderr=output.to, check=True)
        said = output.lines()
    assert ("first" in said, said[-1]) == (False, "last")
    assert 1000 < len(said) < 100_000


@needs_lab
@pytest.mark.thorough
def test_an_mtu_of_a_real_network_makes_its_packets_large_enough(tmp_path, diagnosis):
    words = script(tmp_path, "while True: sock.sendto(data[:1472], to)")
    assert "small-packets" in kinds(diagnosis(*words))
    assert "small-packets" not in kinds(diagnosis("--mtu", "1500", *words))


def test_a_process_that_runs_already_is_looked_at_and_goes_on(tmp_path, diagnosis):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there:
        there.bind(("127.0.0.1", 0))
        host, port = there.getsockname()
        words = script(tmp_path, SLEEPS)[1:3]
        with running(subprocess.Popen([*words, host, str(port)])) as process:
            assert there.recv(10_000)
            made = diagnosis("--pid", str(process.pid))
            assert process.poll() is None
    assert made["program"] == f"process {process.pid}"
    assert made["run"]["messages"] > 0
    whys = "no bare loop", "packets were not seen"  # which takes root where it is no lab
    assert made["loops"] or any(why in one for one in made["unseen"] for why in whys)


@needs_lab
def test_a_process_that_sends_nothing_is_watched_no_longer_than_asked(tmp_path, why):
    words = script(tmp_path, "print(flush=True); time.sleep(1000)")[1:3]
    with open_lab() as lab:
        idle = lab.popen([*words, lab.address, "9"], stdout=subprocess.PIPE)
        with running(idle) as process:
            process.stdout.readline()
            done = why("--pid", process.pid)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.search(r"ran for 0\.\d+ s, and nothing was sent", done.stderr)


# ---- What goes wrong ----


@needs_lab
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sys.exit(3)", "sender.py failed with status 3"),
        ("raise OSError('no luck')", "sender.py failed with status 1: OSError: no luck"),
        ("os.kill(os.getpid(), 9)", "sender.py was ended by signal 9"),
        ("pass", "sender.py ended, and sent nothing to 192.168.31.2, port 8888: say where"),
        ("sock.sendto(data, to)", "it was over too soon to be looked at"),
    ],
)
def test_a_sender_that_fails_or_sends_nothing_there_is_one_line(tmp_path, why, text, words):
    check_refused(why("--json", *script(tmp_path, text)), 1, words)


@needs_lab
def test_an_interrupt_ends_the_sender_too(tmp_path, why, monkeypatch):
    def wait(program, *until):
        begun.append(program._process.poll())
        raise KeyboardInterrupt

    begun = []
    monkeypatch.setattr(watching.Sender, "_wait", wait)
    done = why(*script(tmp_path, SENDS))
    assert (done.returncode, begun) == (130, [None])
    assert done.stderr.splitlines()[-1] == "spead-tutorial: interrupted"
    assert list(processes(str(tmp_path / "sender.py"))) == []

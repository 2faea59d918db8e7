# SPDX-License-Identifier: BSD-3-Clause
"""The command that says why a sender is slow, of odd ones; of known faults: `test_why_senders`.

What is checked counts and does not time: packets in a message, calls, faults, sleeps, cores.
"""

import contextlib
import dataclasses
import functools
import json
import os
import re
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spead_tutorial.lab import Lab, LabError
from spead_tutorial.measure.machine import header
from spead_tutorial.measure.records import Recording
from spead_tutorial.results import tables
from spead_tutorial.results.plots.render import render
from spead_tutorial.results.plots.theme import DARK, LIGHT
from spead_tutorial.tools.why import bars, facts, trying, watching
from spead_tutorial.tools.why.account import Account, Part, ThreadTime
from spead_tutorial.tools.why.findings import Finding
from spead_tutorial.tools.why.places import Capture
from spead_tutorial.tools.why.process import Output, end
from spead_tutorial.tools.why.remedies import Gain, Tried
from spead_tutorial.tools.why.report import CHAPTERS, as_object, seen_of, text
from support import ROOT
from support.labs import needs_lab, open_lab
from support.typed import Run, below, check_refused, processes

SENDS = "while True: sock.sendto(data, to)"
SLEEPS = "while True: sock.sendto(data, to); time.sleep(0.001)"


@pytest.fixture
def why(here: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command in this process, with a bare loop that is over at once."""
    monkeypatch.setattr(trying, "_BARE_BYTES", 1 << 22)
    monkeypatch.setattr(watching, "_TOUCHED", 1 << 20)
    monkeypatch.setattr(trying, "ROUNDS", 1)
    monkeypatch.setattr(trying, "_EACH_S", 1e-3)
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
def test_a_packet_socket_sees_messages_packets_fragments_and_heaps():
    header = bytes.fromhex("5304030500000002")
    items = (1 << 63 | 2 << 40 | 123456).to_bytes(8, "big") + (0x3300 << 40).to_bytes(8, "big")
    found = []
    with open_lab() as lab, lab.socket() as sender:
        for segment, datagrams in (
            (1000, [bytes(500), bytes(9500)]),
            (0, [header + items + bytes(20_000 - 24)]),
        ):
            raw = lab.socket(socket.AF_PACKET, socket.SOCK_RAW)
            with Capture(raw, lab.device) as capture:
                assert capture.packets() is None
                sender.setsockopt(socket.SOL_UDP, 103, segment)  # UDP_SEGMENT
                for datagram in datagrams:
                    sender.sendto(datagram, (lab.address, lab.port))
                seen = capture.packets()
            found.append((seen.messages, seen.packets, seen.fragments))
            found.append((seen.packet_bytes, seen.payload_bytes, seen.heap_bytes))
    assert found == [(2, 11, 0), (1000, 10_000, None), (3, 1, 2), (20_000, 20_000, 123456)]


@needs_lab
def test_without_strace_and_perf_what_was_not_seen_is_said_and_how_to_get_it(
    tmp_path, why, monkeypatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = why(*script(tmp_path, SLEEPS))
    assert done.returncode == 0
    first = "Its calls were not seen, as there is no strace: apt install strace."
    assert done.stdout.startswith(first)
    assert "Watching sender.py: its packets" in done.stderr
    assert "1.0 packets in a message: no segmentation offload" in " ".join(done.stdout.split())


@needs_lab
def test_a_sender_below_a_shell_is_told_by_its_environment_seen_and_ended_whatever_it_ignores(
    tmp_path, diagnosis
):
    text = "to = os.environ['SPEAD_TUTORIAL_HOST'], int(os.environ['SPEAD_TUTORIAL_PORT'])\n"
    text += "for one in (2, 15): signal.signal(one, signal.SIG_IGN)\n"
    words = " ".join([*script(tmp_path, text + SENDS)[1:-2], "9", "9"])
    made = diagnosis("--no-strace", "--", "sh", "-c", f"{words}; exit 0")
    assert "no-segmentation-offload" in kinds(made)
    assert made["run"]["threads"]
    assert made["run"]["messages"] > 16
    assert list(processes(str(tmp_path / "sender.py"))) == []


def test_what_a_program_started_is_ended_though_it_ends_first_itself():
    # Its children do not care for Ctrl-C, as of all that a script starts in the background.
    with subprocess.Popen(["sh", "-c", "sleep 1000 & sleep 1000 & wait"]) as process:
        while len(found := below(process.pid)) < 2:
            time.sleep(0.01)
        end(process, 0.05)
    while any(Path(f"/proc/{pid}").exists() for pid in found):  # until the first process asks
        time.sleep(0.01)


def test_of_what_a_program_prints_the_first_and_the_last_part_are_kept_and_nothing_on_disk():
    program = "echo first; yes | head -c 5000000; echo last"
    with Output() as output:
        assert stat.S_ISFIFO(os.fstat(output.to).st_mode)
        subprocess.run(["sh", "-c", program], stdout=output.to, stderr=output.to, check=True)
        said = output.lines()
    assert (said[0], said[-1]) == ("first", "last")
    assert 1000 < len(said) < 100_000


@needs_lab
@pytest.mark.thorough
def test_an_mtu_of_a_real_network_makes_its_packets_large_enough(tmp_path, diagnosis):
    words = script(tmp_path, "while True: sock.sendto(data[:1472], to)")
    assert "small-packets" in kinds(diagnosis("--no-strace", *words))
    assert "small-packets" not in kinds(diagnosis("--no-strace", "--mtu", "1500", *words))


@needs_lab
@pytest.mark.parametrize("late", [False, True])
def test_a_sender_that_is_over_at_once_has_no_times(tmp_path, diagnosis, monkeypatch, late):
    """It has sent, even if all was sent before its first packet was looked for."""
    followed = watching._followed

    def follow(sender, spot, process, *until):
        if late:
            process.wait()
        return followed(sender, spot, process, *until)

    monkeypatch.setattr(watching, "_followed", follow)
    made = diagnosis("--no-strace", *script(tmp_path, "sock.sendto(data, to)"))
    assert made["findings"] == []
    assert any("over too soon" in sentence for sentence in made["unseen"])


def test_a_process_that_runs_already_is_looked_at_and_goes_on(tmp_path, diagnosis):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there:
        there.bind(("127.0.0.1", 0))
        host, port = there.getsockname()
        words = script(tmp_path, SLEEPS)[1:3]
        with running(subprocess.Popen([*words, host, str(port)])) as process:
            assert there.recv(10_000)
            made = diagnosis("--no-strace", "--pid", str(process.pid))
            assert process.poll() is None
    assert made["program"] == f"process {process.pid}"
    assert made["run"]["messages"] > 0
    assert made["bare"] is None


def test_a_process_without_a_socket_sends_nothing(why):
    with running(subprocess.Popen(["sleep", "1000"])) as process:
        done = why("--pid", process.pid)
    check_refused(done, 1, f"process {process.pid} sends nothing: it has no socket")


@needs_lab
def test_a_process_that_sends_nothing_is_watched_no_longer_than_asked(tmp_path, why):
    words = script(tmp_path, "print(flush=True); time.sleep(1000)")[1:3]
    with open_lab() as lab:
        idle = lab.popen([*words, lab.address, "9"], stdout=subprocess.PIPE)
        with running(idle) as process:
            process.stdout.readline()
            done = why("--pid", process.pid)
    assert (done.returncode, done.stdout) == (1, "")
    assert "ran for 0.5 s, and nothing was sent" in done.stderr


@needs_lab
@pytest.mark.parametrize("kind", ["ifb", "veth"])
def test_a_process_in_a_lab_is_seen_whatever_counts_its_packets(tmp_path, diagnosis, kind):
    try:
        private = Lab(kind)
    except LabError as error:
        pytest.skip(str(error))
    with private:
        words = script(tmp_path, f"sock.sendto(data, to); print(flush=True)\n{SLEEPS}")[1:3]
        argv = [*words, private.address, str(private.port)]
        with running(private.popen(argv, stdout=subprocess.PIPE)) as process:
            process.stdout.readline()
            made = diagnosis("--no-strace", "--pid", str(process.pid))
    assert made["run"]["messages"] > 0


PERF = """#!{python}
import signal, sys
if "stat" not in sys.argv:
    sys.exit(1)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
signal.sigwait([signal.SIGINT])
open(sys.argv[sys.argv.index("-o") + 1], "w").write("{count},,cache-misses:u,123,100.00,,\\n")
"""


@needs_lab
def test_what_perf_counts_is_said_as_bytes_from_memory_for_each_that_is_sent(
    tmp_path, why, monkeypatch
):
    perf = tmp_path / "perf"
    perf.write_text(PERF.format(python=sys.executable, count=10**9))
    perf.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    done = why("--no-strace", *script(tmp_path, SENDS))
    (line,) = (one for one in done.stdout.splitlines() if "memory traffic" in one)
    assert re.search(
        r"memory traffic +[\d.e+]+ bytes for each sent, the kernel's not counted$", line
    )


@needs_lab
def test_the_picture_is_light_and_dark_and_says_the_same_in_words(tmp_path, diagnosis):
    path = tmp_path / "time.svg"
    assert kinds(diagnosis("--no-strace", "--picture", path, *script(tmp_path, SENDS)))
    for name in ("time.svg", "time-dark.svg"):
        assert "Bars: what the time of each thread went to" in (tmp_path / name).read_text()


# ---- What goes wrong ----


@needs_lab
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sys.exit(3)", "sender.py failed with status 3"),
        ("raise OSError('no luck')", "sender.py failed with status 1: OSError: no luck"),
        ("os.kill(os.getpid(), 9)", "sender.py was ended by signal 9"),
        ("pass", "sender.py ended, and sent nothing to 192.168.31.2, port 8888: say where"),
        ("sock.sendto(data, ('127.0.0.1', 9))", "packets went to its own loopback"),
        (
            "stream = socket.socket()\nstream.settimeout(3)\n"
            "try: stream.connect(to)\nexcept TimeoutError: pass",
            "sent something, but no UDP",
        ),
        ("while True: sock.sendto(b'', to)", "sends empty datagrams, which carry no data"),
    ],
)
def test_a_sender_that_fails_or_sends_nothing_there_is_one_line(tmp_path, why, text, words):
    check_refused(why("--json", "--no-strace", *script(tmp_path, text)), 1, words)


@needs_lab
def test_a_sender_that_goes_on_in_the_background_is_refused_and_ended(tmp_path, why):
    text = f"if os.fork(): time.sleep(0.5); os._exit(0)\nos.setsid()\n{SENDS}"
    done = why("--seconds", "30", "--json", *script(tmp_path, text))  # it ends before that
    check_refused(done, 1, "sender.py ended, but left something behind that still sends")
    assert list(processes(str(tmp_path / "sender.py"))) == []


@needs_lab
def test_an_interrupt_ends_the_sender_too(tmp_path, why, monkeypatch):
    def follow(sender, spot, process, *until):
        begun.append(process.poll())
        raise KeyboardInterrupt

    begun = []
    monkeypatch.setattr(watching, "_followed", follow)
    done = why(*script(tmp_path, SENDS))
    assert (done.returncode, begun) == (130, [None])
    assert done.stderr.splitlines()[-1] == "spead-tutorial: interrupted"
    assert list(processes(str(tmp_path / "sender.py"))) == []


# ---- The report, of facts made by hand ----

RUN = facts.Run(3.0, 8000, 72_000_000, ())
BARE = facts.Bare(1.2e9, 2e-8)
SEND = Part("sends", "sendto", 0.06, 1.0)
SLEEP = Part("sleep", "clock_nanosleep", 2.85, 1.0)
UNKNOWN = Part("unexplained", "", 0.09)
SLEEPER = ThreadTime(7, "main", True, 3.0, (SEND, SLEEP, UNKNOWN))
HELPER = ThreadTime(8, "bad\x1b[2J\nname", False, 3.0, (Part("own", "libm.so", 2.0),))
IDLER = ThreadTime(9, "gc", False, 3.0, (Part("lock", "futex", 3.0),))
SLEPT = Finding(
    "sleeps", "It slept 8000 times.", "Look for sleeps.", 40.0, 0.98, Gain(41.2, 38, 44, (), False)
)
CALLED = Finding(
    "call-per-packet", "sendto is called for every packet.", "Give many.", 0.4, 0.004,
    Gain(1.13, 1.08, 1.2, ("sendmmsg",), True),
    (Gain(4.5, 4.1, 4.9, ("sendmmsg", "larger packets"), True),
     Gain(4, 3.5, 4.6, ("larger packets",), True)),
)  # fmt: skip


def looked_at(*threads: ThreadTime, **more: Any) -> facts.Seen:
    """What was seen of threads; or something of it else."""
    account = Account(3.0, threads, 12.3) if threads else None
    usual = {"packets": None, "calls": None, "bare": BARE, "account": account}
    return facts.Seen("sender", "a lab", 9216, 2, **{"run": RUN} | usual | more)


def whole(words: str) -> str:
    """Text without its breaks of lines."""
    return " ".join(words.split())


def test_the_report_begins_with_what_to_mend_and_fits_80_columns():
    words = text(looked_at(SLEEPER), (SLEPT, CALLED))
    assert max(map(len, words.splitlines())) <= 80
    assert "\x1b" not in words
    parts = [whole(part) for part in words.split("\n\n")]
    assert parts[0] == (
        "Mend first: it sleeps in clock_nanosleep, 98 % of the distance to the bare loop; without"
        " that it is about 41 times as fast. sender sends 24 MB/s to a lab: 2 % of the 1200 MB/s of"
        " the bare loop with heaps and packets of these sizes."
    )
    assert parts[1].startswith("Where the time of its thread that sends goes, in 3 s:")
    assert parts[2] == (
        "1. 98 % of the distance: It slept 8000 times. Check: Look for sleeps. Chapter 4, Measure"
        " it. Without it, 41 times as fast (38 to 44), if all of its time goes."
    )
    assert parts[3].endswith(
        "With sendmmsg, 1.1 times as fast (1.1 to 1.2), as the bare loop is here; with sendmmsg and"
        " larger packets, 4.5 (4.1 to 4.9); with larger packets alone, 4.0 (3.5 to 4.6)."
    )
    assert parts[4].startswith("While its calls were looked at, it took 12 times as long.")


def gaining(median: float, low: float, high: float, *remedies: str) -> Finding:
    gain = Gain(median, low, high, remedies, bool(remedies))
    return dataclasses.replace(SLEPT, gain=gain)


def sending(rate: float) -> facts.Run:
    return dataclasses.replace(RUN, payload_bytes=round(rate * RUN.seconds))


def slowed_by(slowed: float | None) -> facts.Seen:
    return looked_at(account=Account(3.0, (SLEEPER,), slowed))


WAITING = ThreadTime(7, "main", True, 3.0, (SEND, Part("core", "", 2.94)))
SMALL = Finding("small-packets", "Small.", "Larger.", 1, 0.1, CALLED.with_others[1])
SHARED = Finding("shared-core", "Two threads share a core.", "Give them two.")
UNRANKED = dataclasses.replace(CALLED, explains=None, cost_s=None, gain=None, with_others=())
UNSEEN = ("It was dark.",)


@pytest.mark.parametrize(
    ("seen", "found", "words", "not_said"),
    [
        # A gain is said no better than it is known.
        (looked_at(SLEEPER), (gaining(1.02, 1, 1.1),),
         ["to the bare loop. sender", "By itself it gains next to nothing."], ["; without"]),
        (looked_at(SLEEPER), (gaining(50, 21, 1000),),
         ["it is at least 21 times", "50 times as fast (at least 21)"], ["1000"]),
        (looked_at(SLEEPER), (gaining(123.4, 99, 201, "x", "y"),),
         ["; with x and y it is", "120 times as fast (99 to"], []),
        # What another finding gains alone is said there only.
        (looked_at(SLEEPER), (CALLED, SMALL),
         ["with sendmmsg and larger packets, 4.5", "With larger packets, 4.0 times as fast"],
         ["with larger packets alone"]),
        # Threads are shown where more than one matters, and their names do no harm.
        (looked_at(SLEEPER, HELPER, IDLER), (),
         ["main (7) sends", r"bad\x1b[2J name (8) ", "in its own code ▒"], ["\x1b", "gc"]),
        (looked_at(SLEEPER, IDLER), (), [], ["main", "gc"]),
        # What could not be seen comes first, and what depends on it has no rank.
        (looked_at(SLEEPER, unseen=UNSEEN), (SLEPT, UNRANKED),
         ["It was dark. What has no number below could not be weighed", "1. 98 % of the distance",
          "- sendto is called for every packet.", "What it gains is not known."], []),
        (looked_at(unseen=UNSEEN), (UNRANKED,), ["What to mend first is not known."], ["Mend f"]),
        # Of a fast sender nothing is found, but its time is said.
        (looked_at(SLEEPER, run=sending(1e9)), (), ["Nothing found.", "unexplained"], []),
        (looked_at(SLEEPER, run=sending(1e9), unseen=UNSEEN), (),
         ["Nothing found in what was seen."], []),
        (looked_at(SLEEPER, run=sending(1e8)), (),
         ["Most of its time is waiting for a time (clock_nanosleep). A profile says more"], []),
        # What looking cost is said where it is known.
        (slowed_by(None), (), [], ["looked at", "slow"]),
        (slowed_by(1.01), (), ["did not slow it"], ["looked at,"]),
        (slowed_by(2.5), (), ["While its calls were looked at, it took 2.5 times as long"], []),
        # Threads that wait for cores make the rate doubtful.
        (looked_at(WAITING), (), ["quiet machine"], []),
        (looked_at(WAITING), (SHARED,), [], ["quiet machine"]),
    ],
)  # fmt: skip
def test_the_report_says_what_it_knows_and_no_more(seen, found, words, not_said):
    said = whole(text(seen, found))
    assert [one for one in words if one not in said] == []
    assert [one for one in not_said if one in said] == []


@pytest.mark.parametrize("kind", CHAPTERS)
def test_every_finding_is_in_the_page_with_its_chapter(kind):
    page = (ROOT / "docs" / "tutorial" / "my-sender-is-slow.md").read_text()
    (row,) = (line for line in page.splitlines() if f"`{kind}`" in line)
    assert f"({CHAPTERS[kind]}-" in row


def test_a_terminal_that_is_narrow_and_has_colours_gets_both(monkeypatch):
    monkeypatch.setattr(tables, "_terminal", lambda: 50)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    words = text(looked_at(SLEEPER, HELPER), (SLEPT, CALLED))
    assert "\x1b[31m▓" in words
    assert max(map(len, re.sub(r"\x1b\[[\d;]*m", "", words).splitlines())) <= 50


def test_the_bar_shows_each_second_and_ends_with_what_is_unexplained():
    bar, *legend = text(looked_at(SLEEPER), ()).split("\n\n")[1].splitlines()[1:]
    assert bar == "█" * 2 + "▒" * 76 + "·" * 2
    assert legend == [
        "█  2 % in calls that send: sendto (1 for a packet)",
        "▒ 95 % waiting for a time: clock_nanosleep (1 for a packet)",
        "·  3 % unexplained",
    ]


@pytest.mark.parametrize("threads", [(), (SLEEPER, HELPER)])
def test_json_has_all_and_can_be_read_back(threads):
    seen = looked_at(*threads, tried=(Tried((), (1e9, 2e9)),))
    made = json.loads(json.dumps(as_object(seen, (SLEPT, CALLED))))
    assert seen_of(made) == seen
    assert [one["gain"]["median"] for one in made["findings"]] == [41.2, 1.13]
    assert made["share_of_bare_loop"] == pytest.approx(0.02)
    assert threads == () or sum(made["shares"].values()) == pytest.approx(1)


@pytest.mark.parametrize("theme", [LIGHT, DARK.narrow()])
def test_the_picture_has_a_bar_for_each_thread_that_matters(theme):
    recording = Recording(header("why", {}, {}), ())
    draw = functools.partial(bars.picture, seen=looked_at(SLEEPER, HELPER, IDLER))
    drawn = render(draw, recording, theme).decode()
    assert "sender: 95 % waiting for a time" in drawn
    assert "main (7): in calls that send 2 %, waiting for a time 95 %, unexplained 3 %" in drawn
    assert "name (8): in its own code" in drawn
    assert "gc (9)" not in drawn

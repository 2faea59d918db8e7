# SPDX-License-Identifier: BSD-3-Clause
"""The command that says why a sender is slow: of senders with one fault each, and of odd ones.

What is checked counts and does not time: packets in a message, calls, faults, sleeps, cores.
"""

import contextlib
import importlib.util
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spead_tutorial.lab import Lab, LabError
from spead_tutorial.measure.programs import program_path
from spead_tutorial.why.capture import Capture
from spead_tutorial.why.command import why as why_command
from spead_tutorial.why.report import CHAPTERS
from support import ROOT
from support.labs import needs_lab, open_lab
from support.needs import needs
from support.senders import SENDERS, Planted

COMMAND = [str(Path(sys.executable).with_name("spead-tutorial")), "why"]
PATIENCE_S = 300
ATTEMPTS = 3
needs_strace = needs("strace")


def why(*arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "--seconds", "0.5", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        **how,
    )


def diagnosis(*arguments: str) -> dict[str, Any]:
    """What it says of a sender, as an object."""
    done = why("--json", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def kinds(*arguments: str) -> list[str]:
    return [finding["kind"] for finding in diagnosis(*arguments)["findings"]]


def command_lines() -> list[bytes]:
    """Those of all processes there are."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has just ended
            found.append(path.read_bytes())
    return found


def script(folder: Path, text: str) -> list[str]:
    """A sender in Python, which is told where to send to."""
    path = folder / "sender.py"
    lines = ["import socket, sys, time, os", "to = sys.argv[1], int(sys.argv[2])"]
    lines += ["sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)", "data = bytes(9000)"]
    path.write_text("\n".join([*lines, text, ""]))
    return ["--", sys.executable, str(path), "{host}", "{port}"]


SENDS = "while True: sock.sendto(data, to)"


def below(pid: int) -> set[int]:
    """All processes below a process."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    found = {int(child) for child in text.split()}
    return found | {other for child in found for other in below(child)}


# ---- Senders with known faults ----


@needs_lab
@needs_strace
@pytest.mark.parametrize("sender", SENDERS, ids=lambda sender: sender.name)
def test_of_a_planted_sender_its_faults_are_found_and_no_others(sender: Planted, planted: Path):
    if sender.needs_two_cores and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("the machine has no other core")
    wanted = sender.findings if sender.in_order else tuple(sorted(sender.findings))
    for attempt in range(ATTEMPTS):  # a machine can be so busy that nothing sleeps, or all does
        words = ["--", *sender.argv(planted, "{host}", "{port}", 10**6)]
        found = kinds("--seconds", str(0.5 * (1 << attempt)), *words)
        if tuple(found if sender.in_order else sorted(found)) == wanted:
            return
    assert tuple(found) == wanted


# ---- What there is to see ----


@needs_lab
def test_a_packet_socket_sees_how_many_packets_a_message_is_and_where_it_goes():
    with open_lab() as lab:
        raw = lab.socket(socket.AF_PACKET, socket.SOCK_RAW)
        with Capture(raw, lab.device) as capture, lab.socket() as sender:
            assert capture.packets() is None
            sender.sendto(bytes(500), (lab.address, lab.port))
            sender.setsockopt(socket.SOL_UDP, 103, 1000)  # UDP_SEGMENT
            sender.sendto(bytes(9500), (lab.address, lab.port))
            seen = capture.packets()
    assert seen is not None
    assert (seen.messages, seen.packets, seen.payload_bytes) == (2, 11, 10_000)
    assert (seen.packet_bytes, seen.heap_bytes, seen.fragments) == (1000, None, 0)


@needs_lab
def test_a_packet_socket_sees_fragments_and_how_long_heaps_are():
    header = bytes.fromhex("53040305 0000 0002".replace(" ", ""))
    items = (1 << 63 | 2 << 40 | 123456).to_bytes(8, "big") + (0x3300 << 40).to_bytes(8, "big")
    with open_lab() as lab:
        raw = lab.socket(socket.AF_PACKET, socket.SOCK_RAW)
        with Capture(raw, lab.device) as capture, lab.socket() as sender:
            sender.sendto(header + items + bytes(20_000 - 24), (lab.address, lab.port))
            seen = capture.packets()
    assert seen is not None
    assert (seen.messages, seen.packets, seen.fragments) == (3, 1, 2)
    assert (seen.packet_bytes, seen.payload_bytes) == (20_000, 20_000)
    assert seen.heap_bytes == 123456


@needs_lab
@needs_strace
def test_a_call_for_each_packet_is_said_with_its_chapter_and_what_it_gains(tmp_path):
    done = why(*script(tmp_path, SENDS))
    assert done.returncode == 0
    assert " 1.  sendto is called for every packet" in done.stdout
    assert f"Chapter {CHAPTERS['call-per-packet']}, Batches of heaps." in done.stdout
    assert "of the bare loop's" in done.stdout
    assert "Watching sender.py: its calls" in done.stderr


@needs_lab
def test_without_strace_what_was_not_seen_is_said_and_how_to_get_it(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    sleeps = "while True: sock.sendto(data, to); time.sleep(0.001)"
    done = why(*script(tmp_path, sleeps), env=os.environ | {"PATH": str(folder)})
    assert done.returncode == 0
    first = "Its calls were not seen, as there is no strace: apt install strace."
    assert done.stdout.startswith(first)
    assert "it is not known whether it sleeps" in " ".join(done.stdout.split())
    assert "  -  1.0 packets in a message: no segmentation offload" in done.stdout
    assert " 1.  " not in done.stdout
    assert "of the distance" not in done.stdout


@needs_lab
def test_a_sender_can_be_told_by_its_environment(tmp_path):
    path = tmp_path / "sender.py"
    path.write_text(
        "import os, socket\n"
        "to = os.environ['SPEAD_TUTORIAL_HOST'], int(os.environ['SPEAD_TUTORIAL_PORT'])\n"
        "sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "while True: sock.sendto(bytes(9000), to)\n"
    )
    assert "no-segmentation-offload" in kinds("--no-strace", "--", sys.executable, str(path))


@needs_lab
def test_a_sender_below_a_shell_is_seen_with_its_threads_and_ended(tmp_path):
    words = " ".join(script(tmp_path, SENDS)[1:])
    made = diagnosis("--no-strace", "--", "sh", "-c", f"{words}; exit 0")
    assert made["run"]["threads"]
    assert made["run"]["messages"] > 16


@needs_lab
def test_a_sender_that_does_not_care_for_ctrl_c_is_ended_all_the_same(tmp_path):
    ignores = "import signal\nfor one in (2, 15): signal.signal(one, signal.SIG_IGN)\n"
    assert kinds("--no-strace", *script(tmp_path, ignores + SENDS)) == ["no-segmentation-offload"]


@needs_lab
def test_an_mtu_of_a_real_network_makes_its_packets_large_enough(tmp_path):
    text = "while True: sock.sendto(data[:1472], to)"
    large = "small-packets"
    assert large in kinds("--no-strace", *script(tmp_path, text))
    assert large not in kinds("--no-strace", "--mtu", "1500", *script(tmp_path, text))


@needs_lab
def test_a_sender_that_is_over_at_once_has_no_times(tmp_path):
    made = diagnosis("--no-strace", *script(tmp_path, "sock.sendto(data, to)"))
    assert made["findings"] == []
    assert any("over too soon" in sentence for sentence in made["unseen"])


def test_a_process_that_runs_already_is_looked_at_and_goes_on(tmp_path):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there:
        there.bind(("127.0.0.1", 0))
        host, port = there.getsockname()
        words = script(tmp_path, "while True: sock.sendto(data, to); time.sleep(0.001)")[1:3]
        with subprocess.Popen([*words, host, str(port)]) as process:
            try:
                while not there.recv(10_000):
                    pass
                made = diagnosis("--no-strace", "--pid", str(process.pid))
                assert process.poll() is None
            finally:
                process.kill()
    assert made["program"] == f"process {process.pid}"
    assert made["run"]["messages"] > 0
    assert made["bare"] is None


def test_a_process_without_a_socket_sends_nothing():
    with subprocess.Popen(["sleep", "1000"]) as process:
        try:
            done = why("--pid", str(process.pid))
        finally:
            process.kill()
    assert (done.returncode, done.stdout) == (1, "")
    assert f"process {process.pid} sends nothing: it has no socket" in done.stderr


@needs_lab
def test_a_process_that_sends_nothing_is_watched_no_longer_than_asked(tmp_path):
    with open_lab() as lab:
        words = script(tmp_path, "print(flush=True); time.sleep(1000)")[1:3]
        process = lab.popen([*words, lab.address, "9"], stdout=subprocess.PIPE, text=True)
        try:
            process.stdout.readline()
            done = why("--pid", str(process.pid))
        finally:
            process.kill()
            process.wait()
    assert (done.returncode, done.stdout) == (1, "")
    assert "ran for 0.5 s, and nothing was sent" in done.stderr


@needs_lab
@pytest.mark.parametrize("kind", ["ifb", "veth"])
def test_a_process_in_a_lab_is_seen_whatever_counts_its_packets(tmp_path, kind):
    try:
        private = Lab(kind)
    except LabError as error:
        pytest.skip(str(error))
    with private:
        words = script(tmp_path, "while True: sock.sendto(data, to); time.sleep(0.001)")[1:3]
        process = private.popen([*words, private.address, str(private.port)])
        try:
            made = diagnosis("--no-strace", "--pid", str(process.pid))
        finally:
            process.kill()
            process.wait()
    assert made["run"]["messages"] > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--interface", "nosuch0"], "there is no interface 'nosuch0' here: there are "),
        (["--picture", "nosuch/time.svg"], "there is no folder nosuch for the picture"),
        (["--picture", "time.png"], "--picture draws an SVG"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(tmp_path, arguments, words):
    ran = tmp_path / "ran"
    done = why(*arguments, "--", "touch", str(ran))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert words in done.stderr
    assert not ran.exists()


def test_an_interface_that_may_lead_out_of_the_machine_is_refused(monkeypatch):
    monkeypatch.setattr(socket, "if_nameindex", lambda: [(1, "lo"), (2, "eth9")])
    done = CliRunner().invoke(why_command, ["--interface", "eth9", "--", "true"])
    assert done.exit_code == 2
    assert "eth9 may lead out of this machine: say --allow-real-network" in done.output


def test_what_stands_for_a_labs_address_is_refused_where_there_is_no_lab():
    done = why("--interface", "lo", "--", "true", "{host}", "{port}")
    assert done.returncode == 2
    assert "with --interface, say where the sender sends to" in done.stderr


PERF = """#!{python}
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
signal.sigwait([signal.SIGINT])
open(sys.argv[sys.argv.index("-o") + 1], "w").write("{count},,cache-misses:u,123,100.00,,\\n")
"""


@needs_lab
def test_what_perf_counts_is_said_as_bytes_from_memory_for_each_that_is_sent(tmp_path):
    perf = tmp_path / "perf"
    perf.write_text(PERF.format(python=sys.executable, count=10**9))
    perf.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = why("--no-strace", *script(tmp_path, SENDS), env=os.environ | {"PATH": path})
    (line,) = (one for one in done.stdout.splitlines() if "memory traffic" in one)
    assert re.search(r"memory traffic +[\d.e+]+ bytes for each .*, the kernel's not counted$", line)


@needs_lab
def test_without_perf_the_memory_traffic_is_unknown_and_why_is_said(tmp_path):
    here = os.environ | {"PATH": str(tmp_path)}
    done = why("--no-strace", *script(tmp_path, SENDS), env=here)
    assert "memory traffic         unknown: there is no perf: apt install linux-perf" in done.stdout


# ---- Pictures ----


@needs_lab
def test_the_picture_is_light_and_dark_and_says_the_same_in_words(tmp_path):
    path = tmp_path / "time.svg"
    assert kinds("--no-strace", "--picture", str(path), *script(tmp_path, SENDS))
    for name in ("time.svg", "time-dark.svg"):
        drawn = (tmp_path / name).read_text()
        assert "waiting for a core" in drawn
        assert "Bars: what each thread did" in drawn


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
    ],
)
def test_a_sender_that_fails_or_sends_nothing_there_is_one_line(tmp_path, text, words):
    done = why("--json", *script(tmp_path, text))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("spead-tutorial: ")
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


@needs_lab
def test_a_sender_that_does_not_send_udp_is_told_so(tmp_path):
    text = "stream = socket.socket()\nstream.settimeout(3)\n"
    text += "try: stream.connect(to)\nexcept TimeoutError: pass"
    done = why("--json", *script(tmp_path, text))
    assert (done.returncode, done.stdout) == (1, "")
    assert "sent something, but no UDP" in done.stderr


@needs_lab
def test_a_sender_that_goes_on_in_the_background_is_refused_and_ended(tmp_path):
    text = f"if os.fork(): time.sleep(0.5); os._exit(0)\nos.setsid()\n{SENDS}"
    done = why("--seconds", "30", "--json", *script(tmp_path, text))  # it ends before that
    assert (done.returncode, done.stdout) == (1, "")
    assert "sender.py ended, but left something behind that still sends" in done.stderr
    path = str(tmp_path / "sender.py").encode()
    assert not any(path in line for line in command_lines())


@needs_lab
def test_a_program_that_is_not_there_is_one_line():
    done = why("--json", "--", "./no-such-sender")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "spead-tutorial: it cannot be started: ./no-such-sender: No such file or directory\n"
    )


@needs_lab
def test_an_interrupt_ends_the_sender_too(tmp_path):
    words = script(tmp_path, f"print('ready', flush=True)\n{SENDS}")
    with subprocess.Popen(
        [*COMMAND, "--seconds", "600", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert "how fast it is" in process.stderr.readline()
        while not any("sender.py" in command(pid) for pid in below(process.pid)):
            time.sleep(0.01)
        fds = [os.pidfd_open(pid) for pid in below(process.pid)]
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 130
        assert errors.strip() == "spead-tutorial: interrupted"
        for fd in fds:
            assert select.select([fd], [], [], PATIENCE_S)[0], "a process still runs"
            os.close(fd)


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


# ---- What pages and the package say ----


def test_the_gains_that_the_package_says_are_those_of_the_records():
    spec = importlib.util.spec_from_file_location("gains", ROOT / ".ci" / "gains.py")
    assert spec is not None
    assert spec.loader is not None
    gains = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gains)
    assert json.loads(gains.FILE.read_text()) == gains.collected()
    assert set(gains.STEPS) < set(CHAPTERS)


@needs_lab
def test_the_bare_loop_itself_has_no_fault():
    bare = str(program_path("ceiling", "c"))
    made = diagnosis("--", bare, "-n", "1000000", "{host}", "{port}")
    assert made["findings"] == []
    assert made["packets_per_message"] > 5

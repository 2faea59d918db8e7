# SPDX-License-Identifier: BSD-3-Clause
"""Labs that stay: who keeps them, who gets in, and that nothing is left when they end."""

import contextlib
import ctypes
import json
import os
import platform
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spead_tutorial.lab import WAYS, Lab, LabError, door
from support.labs import needs_lab, probe
from support.processes import wait_until_it_takes_signals

COMMAND = str(Path(sys.executable).parent / "spead-tutorial")
PATIENCE_S = 60
#: Numbers of system calls: unshare, setns.
CALLS = {"x86_64": (272, 308), "aarch64": (97, 268)}

pytestmark = needs_lab


def spt(*arguments: str, **how: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *arguments],
        **{"stdin": subprocess.DEVNULL, "capture_output": True, "text": True} | how,
        timeout=PATIENCE_S,
    )


def fails(words: str, *arguments: str, status: int = 1, **how: object) -> None:
    """Check that a command fails with one line that has these words."""
    done = spt(*arguments, **how)
    assert (done.returncode, done.stdout) == (status, "")
    assert re.fullmatch(r"spead-tutorial: [^\n]+\n", done.stderr)
    assert words in done.stderr


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of labs of a test, and the end of all of them."""
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.delenv("SPEAD_TUTORIAL_LAB", raising=False)
    yield runtime / "spead-tutorial"
    if (runtime / "spead-tutorial").is_dir() and os.listdir(runtime / "spead-tutorial"):
        spt("lab", "down", "--all")


def up(*arguments: str) -> None:
    done = spt("lab", "up", *arguments)
    assert (done.returncode, done.stderr) == (0, "")


def states() -> dict[str, dict[str, object]]:
    return {one["name"]: one for one in json.loads(spt("lab", "status", "--json").stdout)}


def keeper(name: str = "main") -> int:
    return states()[name]["facts"]["keeper"]


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def ended(pid: int, act: Callable[[], object]) -> None:
    """Do something, and wait for the end of a process."""
    process = os.pidfd_open(pid)
    try:
        act()
        assert select.select([process], [], [], PATIENCE_S)[0], f"process {pid} still runs"
    finally:
        os.close(process)


# ---- From up to down ----


@pytest.mark.parametrize("name", ["up", "down", "status"])
def test_every_command_about_labs_has_help_with_an_example(name):
    done = spt("lab", name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Example: spead-tutorial lab {name}" in done.stdout


def test_a_lab_stays_from_up_until_down(place):
    assert (spt("lab", "status").returncode, states()) == (1, {})
    done = spt("lab", "up")
    assert done.returncode == 0
    assert "spead-tutorial lab --in main -- COMMAND" in done.stdout
    for _ in range(2):
        inside = spt("lab", "--in", "main", "--", "cat", "/proc/net/dev")
        assert (inside.returncode, inside.stderr) == (0, "")
        assert "dummy1:" in inside.stdout
    assert spt("lab", "status").returncode == 0
    pid = keeper()
    ended(pid, lambda: spt("lab", "down"))
    assert os.listdir(place) == []
    fails("there is no lab 'main': spead-tutorial lab up main", "lab", "down")
    fails("there is no lab 'main'", "lab", "--in", "main", "--", "true")
    assert spt("lab", "status", "main").returncode == 1


def test_labs_that_stay_count_apart_and_say_so():
    up("one")
    up("two", "--mtu", "1500", "--kind", probe().kinds[-1])
    send = "import socket; socket.socket(type=2).sendto(bytes(1000), ('192.168.31.2', 8888))"
    assert spt("lab", "--in", "two", "--", sys.executable, "-c", send).returncode == 0
    one, two = (states()[name]["facts"] for name in ("one", "two"))
    assert (one["packets"], two["packets"], two["bytes"]) == (0, 1, 1042)
    assert (one["mtu"], two["mtu"], two["kind"]) == (9216, 1500, probe().kinds[-1])
    said = spt("lab", "status").stdout
    for words in ("MTU 1500", "1 packets, 1042 bytes", "192.168.31.2", "lab down two"):
        assert words in said
    assert spt("lab", "down", "--all").stdout.splitlines() == [
        "The lab one has ended.",
        "The lab two has ended.",
    ]
    assert states() == {}


def test_a_second_lab_of_the_name_is_refused_and_the_first_one_stays():
    up()
    pid = keeper()
    fails("there is a lab 'main' already: spead-tutorial lab down main ends it", "lab", "up")
    assert keeper() == pid


def test_of_labs_made_at_once_under_one_name_there_is_one():
    argv = [COMMAND, "lab", "up", "same"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    both = [subprocess.Popen(argv, **quiet) for _ in range(2)]
    assert sorted(one.wait(PATIENCE_S) for one in both) == [0, 1]
    assert list(states()) == ["same"]


def test_what_runs_in_a_lab_ends_with_it_even_if_it_does_not_want_to():
    up()
    argv = ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1000; done"]
    with subprocess.Popen(
        [COMMAND, "lab", "--in", "main", "--", *argv], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        running = [one["name"] for one in states()["main"]["programs"]]
        assert sorted(running) == ["sh", "sleep"]
        done = spt("lab", "down")
        assert process.wait(PATIENCE_S) == -signal.SIGKILL
    assert f"sh ({process.pid})" in done.stdout
    assert done.returncode == 0


def test_a_lab_does_not_end_itself():
    up()
    fails("this is the lab 'main' itself", "lab", "--in", "main", "--", COMMAND, "lab", "down")
    assert spt("lab", "status").returncode == 0


# ---- Its keeper ----


def test_the_keeper_has_no_right_no_terminal_and_no_folder():
    up()
    pid = keeper()
    said = status_of(pid)
    for name in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
        assert int(said[name], 16) == 0
    assert said["NoNewPrivs"] == "1"
    assert os.getsid(pid) == pid
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in range(3)} == {"/dev/null"}


def test_a_lab_outlives_the_session_that_made_it():
    with subprocess.Popen(
        ["sh", "-c", f"{COMMAND} lab up; echo made; read line"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as shell:
        while shell.stdout.readline() != "made\n":
            pass
        os.killpg(shell.pid, signal.SIGHUP)
        os.killpg(shell.pid, signal.SIGKILL)
    assert spt("lab", "--in", "main", "--", "true").returncode == 0


def test_of_a_lab_whose_keeper_was_killed_it_is_said_how_to_tidy_up(place):
    up()
    pid = keeper()
    ended(pid, lambda: os.kill(pid, signal.SIGKILL))
    done = spt("lab", "status")
    assert done.returncode == 1
    assert "'main' is gone, for its process was killed: spead-tutorial lab down main" in done.stdout
    fails("is gone", "lab", "--in", "main", "--", "true")
    fails("is gone", "run", "6", "--in", "main")
    done = spt("lab", "down")
    assert (done.returncode, done.stdout) == (0, "The lab main was gone already.\n")
    assert os.listdir(place) == []


@contextlib.contextmanager
def asleep(*lab: str) -> Iterator[subprocess.Popen[str]]:
    """A program that does not end by itself, in a lab or here."""
    command = ["sh", "-c", "echo; exec sleep 1000"]
    argv = [COMMAND, "lab", *lab, "--", *command] if lab else command
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def kill_keeper() -> None:
    pid = keeper()
    ended(pid, lambda: os.kill(pid, signal.SIGKILL))


@pytest.mark.parametrize("side", [(), ("--receiver",)], ids=["sender", "receiver"])
def test_what_runs_in_a_lab_whose_keeper_was_killed_is_ended_and_nothing_else(place, side):
    up(*side)
    with asleep("--in", "main", *side) as left, asleep() as outside:
        kill_keeper()
        fails(f"sleep ({left.pid}): spead-tutorial lab down main ends it", "lab", "up")
        assert left.poll() is None
        done = spt("lab", "down")
        assert left.wait(PATIENCE_S) == -signal.SIGTERM
        assert outside.poll() is None
    said = f"The lab main was gone already; what was left in it has ended: sleep ({left.pid}).\n"
    assert (done.returncode, done.stdout) == (0, said)
    assert os.listdir(place) == []


@pytest.mark.parametrize("known", [True, False], ids=["another", "not known"])
def test_a_network_that_only_has_the_number_of_a_labs_is_left_alone(place, known):
    up()
    with asleep("--in", "main") as other:
        kill_keeper()
        note = place / ".main"
        (network,) = json.loads(note.read_text())
        note.write_text(json.dumps([network | {"cookie": 1 if known else None}]))
        if known:
            assert spt("lab", "down").stdout == "The lab main was gone already.\n"
        else:
            fails(f"if so, kill {other.pid}, then say it again", "lab", "down")
        assert other.poll() is None


@pytest.mark.parametrize("left", ["a socket", "a file"])
def test_what_is_left_of_a_lab_gives_way_to_a_new_one(place, left, monkeypatch):
    place.mkdir(mode=0o700)
    monkeypatch.chdir(place)  # the path may be longer than a socket's
    if left == "a file":
        Path("main").touch()
    else:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as dead:
            dead.bind("main")
    up()
    assert spt("lab", "--in", "main", "--", "true").returncode == 0


def test_what_is_no_labs_in_the_folder_is_left_alone(place):
    up()
    (place / ".other").touch()
    assert list(states()) == ["main"]
    assert spt("lab", "down", "--all").returncode == 0
    assert os.listdir(place) == [".other"]


def test_when_ending_a_lab_is_interrupted_what_runs_in_it_has_ended(place):
    up()
    argv = ["sh", "-c", "trap 'echo told' TERM; echo ready; while :; do sleep 0.1; done"]
    with subprocess.Popen(
        [COMMAND, "lab", "--in", "main", "--", *argv], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        with subprocess.Popen([COMMAND, "lab", "down"], stderr=subprocess.PIPE, text=True) as down:
            assert process.stdout.readline() == "told\n"
            down.send_signal(signal.SIGINT)
            assert down.communicate(timeout=PATIENCE_S)[1].strip() == "spead-tutorial: interrupted"
        assert down.returncode == 130
        assert process.wait(PATIENCE_S) == -signal.SIGKILL
    assert os.listdir(place) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_keeper_that_is_told_to_end_takes_its_socket_away(place, number):
    up()
    pid = keeper()
    ended(pid, lambda: os.kill(pid, number))
    assert os.listdir(place) == []


@pytest.mark.parametrize("whole", [True, False], ids=["its folder", "its socket"])
def test_a_lab_ends_with_what_leads_to_it_as_when_its_user_leaves(place, whole):
    up()
    ended(keeper(), lambda: shutil.rmtree(place) if whole else (place / "main").unlink())


def test_of_a_keeper_that_gives_no_answer_it_is_said_which_process_that_is(monkeypatch):
    up()
    pid = keeper()
    os.kill(pid, signal.SIGSTOP)
    try:
        monkeypatch.setattr(door, "_ANSWER_S", 0.1)
        with pytest.raises(LabError, match=rf"no answer: .*\(kill -CONT, or kill -KILL, {pid}\)"):
            Lab.join("main")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert spt("lab", "--in", "main", "--", "true").returncode == 0


@pytest.mark.parametrize("seed", range(3))
def test_whenever_up_is_ended_there_is_a_whole_lab_or_none(place, seed):
    source = random.Random(seed)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
        name = f"{number.name}-{seed}"
        with subprocess.Popen(
            [COMMAND, "lab", "up", name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            wait_until_it_takes_signals(process)
            time.sleep(source.uniform(0, 0.7))
            os.killpg(process.pid, number)
            _, errors = process.communicate(timeout=PATIENCE_S)
        assert "Traceback" not in errors
        state = states().get(name)
        if process.returncode == 0:
            assert state["problem"] is None
        elif number != signal.SIGKILL:
            assert state is None
        if state is not None:
            assert spt("lab", "down", name).returncode == 0
        assert not any(name in text for text in keepers())


def keepers() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_text()
        except OSError:
            continue
        if "keeper.py" in text:
            found.append(text)
    return found


# ---- Who gets in, and how ----


def test_a_command_takes_the_place_of_the_one_that_entered():
    up()
    with subprocess.Popen(
        [COMMAND, "lab", "--in", "main", "--", "sh", "-c", "echo $$; kill -TERM $$"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == f"{process.pid}\n"
        assert process.wait(PATIENCE_S) == -signal.SIGTERM
    argv = ["lab", "--in", "main", "--"]
    assert spt(*argv, "sh", "-c", "exit 3").returncode == 3
    fails("no-such-program: No such file or directory", *argv, "no-such-program", status=127)
    fails("/: Permission denied", *argv, "/", status=126)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whenever_entering_is_interrupted_nobody_is_inside_and_nothing_says_more(number):
    up()
    source = random.Random(number)
    for _ in range(8):
        with subprocess.Popen(
            [COMMAND, "lab", "--in", "main", "--", "sleep", "1000"],
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            wait_until_it_takes_signals(process)
            time.sleep(source.uniform(0, 0.7))
            process.send_signal(number)
            _, errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode in (128 + number, -number)
        said = "" if process.returncode < 0 else r"spead-tutorial: (interrupted|ended by \w+)"
        assert re.fullmatch(said, errors.strip())
    assert states()["main"]["programs"] == []


def test_a_command_has_the_signals_streams_and_words_that_it_would_have_outside():
    up()
    script = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; ls /proc/self/fd; echo $@; umask; cat"
    argv = ["sh", "-c", script, "sh", "--in", "x", "--", "-h"]
    how = {"input": "in", "capture_output": True, "text": True, "umask": 0o027}
    outside = subprocess.run(argv, **how)
    inside = subprocess.run([COMMAND, "lab", "--in", "main", "--", *argv], **how)
    assert (inside.stdout, inside.stderr) == (outside.stdout, outside.stderr)


def test_in_a_lab_one_is_the_user_that_one_was():
    up()
    show = ["sh", "-c", "id; grep CapEff /proc/self/status"]
    with Lab() as fresh:
        expected = fresh.run(show, capture_output=True, text=True).stdout
    assert spt("lab", "--in", "main", "--", *show).stdout == expected


def test_the_lab_that_one_is_in_can_be_entered_again():
    up()
    again = ["lab", "--in", "main", "--"]
    assert spt(*again, COMMAND, *again, "echo", "inside").stdout == "inside\n"


def test_programs_of_chapters_run_in_a_lab_that_stays(monkeypatch):
    up()
    run = ["run", "6", "--lang", "c", "-n", "5", "--json"]
    done = json.loads(spt(*run, "--in", "main").stdout)
    assert states()["main"]["facts"]["packets"] == done["counted_packets"] > 0
    monkeypatch.setenv("SPEAD_TUTORIAL_LAB", "main")
    assert spt(*run).returncode == 0
    assert states()["main"]["facts"]["packets"] == 2 * done["counted_packets"]
    assert "dummy1" in spt("lab", "--", "cat", "/proc/net/dev").stdout
    fails("--kind is a fresh lab's: 'main' is there", *run, "--kind", "ifb", status=2)
    fails("--host is outside of the lab", *run, "--host", "127.0.0.1", "--port", "9", status=2)


def test_a_lab_that_was_joined_is_used_as_any_and_stays_when_it_is_closed():
    up("mine", "--mtu", "1500")
    with Lab.join("mine") as lab, lab.socket() as sock:
        assert (lab.mtu, lab.kind, lab.address6) == (1500, probe().kinds[0], lab.address6)
        sock.sendto(bytes(100), (lab.address, lab.port))
        assert lab.counters().packets == 1
        assert lab.run(["cat", "/proc/net/dev"], capture_output=True).stdout.count(b"dummy1") == 1
        sleeper = lab.popen(["sleep", "1000"])
    assert sleeper.wait(PATIENCE_S) == -signal.SIGKILL
    assert states()["mine"]["facts"]["packets"] == 1
    with Lab.join("mine") as lab:
        assert spt("lab", "down", "mine").returncode == 0
        with pytest.raises(LabError, match="the lab's helper has ended"):
            lab.counters()
    with pytest.raises(LabError, match="there is no lab 'mine'"):
        Lab.join("mine")
    with pytest.raises(ValueError, match="no name for a lab"):
        Lab.join("../mine")


def test_a_subcommands_name_after_two_dashes_is_a_commands():
    fails("up: No such file", "lab", "--", "up", status=127)
    fails("--kind, --in and --receiver go with a command", "lab", "--kind", "ifb", "up", status=2)
    fails("'../x' is no name for a lab", "lab", "up", "../x", status=2)
    fails("'.x' is no name for a lab", "lab", "--in", ".x", "true", status=2)
    fails("Missing command", "lab", status=2)


# ---- Where it may not be ----


@pytest.mark.parametrize("what", ["open to others", "a link", "a file"])
def test_a_folder_that_others_may_have_made_is_refused(place, tmp_path, what):
    if what == "open to others":
        place.mkdir()
        place.chmod(0o777)
        words = "is not yours alone (it is user"
    elif what == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        place.symlink_to(tmp_path / "elsewhere")
        words = "the folder of labs"
    else:
        place.touch()
        words = "the folder of labs"
    for arguments in (["up"], ["down"], ["down", "--all"], ["--in", "main", "--", "true"]):
        fails(words, "lab", *arguments)


@pytest.mark.skipif(os.getuid() != 0, reason="takes root to be two users")
def test_the_folder_of_another_user_is_refused_and_so_is_another_user(place):
    up()
    for path in (place.parent, place):
        path.chmod(0o711)
    (place / "main").chmod(0o777)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        text = (
            "import socket, sys; s = socket.socket(fileno=0); s.connect('main'); print(s.recv(9))"
        )
        done = subprocess.run(
            [shutil.which("python3", path="/usr/bin") or sys.executable, "-c", text],
            stdin=sock.fileno(),
            cwd=place,
            capture_output=True,
            text=True,
            user=65534,
            group=65534,
            extra_groups=[],
        )
    if "Permission denied" in done.stderr:
        pytest.skip("another user cannot come as far as here")
    assert (done.stdout, done.stderr) == ("b''\n", "")
    place.parent.chmod(0o700)
    place.chmod(0o700)
    assert spt("lab", "down").returncode == 0
    os.chown(place, 65534, 65534)
    fails("it is user 65534's, mode 0700", "lab", "up")


def test_a_runtime_folder_that_is_not_the_users_own_is_passed_over(place, monkeypatch):
    assert door._place() == place
    place.parent.chmod(0o755)
    assert door._place() != place
    for value in ("", "relative", str(place / "missing")):
        monkeypatch.setenv("XDG_RUNTIME_DIR", value)
        assert door._place().is_absolute()


def forbid(call: int) -> Callable[[], None]:
    """Have the kernel refuse a system call, as containers do."""
    filters = [(0x20, 0, 0, 0), (0x15, 0, 1, call), (6, 0, 0, 0x00050001), (6, 0, 0, 0x7FFF0000)]

    class Filter(ctypes.Structure):
        _fields_ = [("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8),
                    ("k", ctypes.c_uint32)]  # fmt: skip

    class Program(ctypes.Structure):
        _fields_ = [("n", ctypes.c_uint16), ("filters", ctypes.POINTER(Filter))]

    listed = (Filter * len(filters))(*filters)
    program = Program(len(filters), listed)
    libc = ctypes.CDLL(None)

    def act() -> None:
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(program)):
            os._exit(77)

    return act


@pytest.mark.skipif(
    platform.machine() not in CALLS, reason="which calls these are on this processor?"
)
def test_where_the_system_forbids_to_enter_or_to_make_one_the_line_says_so(place):
    unshare, setns = CALLS[platform.machine()]
    fails("forbids this user a network namespace", "lab", "up", preexec_fn=forbid(unshare))
    fails("takes no root: --host 127.0.0.1 --port 8888", "run", "10", preexec_fn=forbid(unshare))
    assert os.listdir(place) == []
    up()
    words = "the lab cannot be entered from here (Operation not permitted)"
    for arguments in (["lab", "--in", "main", "--", "true"], ["run", "6", "--in", "main"]):
        fails(words, *arguments, preexec_fn=forbid(setns))
    assert spt("lab", "status", preexec_fn=forbid(setns)).returncode == 0


def test_a_long_path_to_the_folder_is_no_obstacle(tmp_path, monkeypatch):
    long = tmp_path / ("x" * 100) / ("y" * 100)
    long.mkdir(parents=True)
    long.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    up()
    try:
        assert spt("lab", "--in", "main", "--", "true").returncode == 0
    finally:
        assert spt("lab", "down").returncode == 0


def test_a_command_in_a_lab_has_the_terminal_and_its_ctrl_c_to_itself():
    up()
    text = f"""
        import os, pty, sys
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv({COMMAND!r}, [{COMMAND!r}, "lab", "--in", "main", "--", "sh", "-c",
                "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.1; done"])
        seen = b""
        while b"ready" not in seen:
            seen += os.read(terminal, 100)
        os.write(terminal, b"\\x03")
        while b"caught" not in seen:
            seen += os.read(terminal, 100)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (done.stdout, done.stderr) == ("5\n", "")


# ---- With a receiver ----


@pytest.mark.parametrize("kind", WAYS)
def test_a_lab_that_stays_lets_commands_receive_what_others_send(kind):
    up("--receiver", "--kind", kind)
    begin = "import socket; s = socket.socket(type=2); to = ('192.168.31.2', 8888)\n"
    receive = f"{begin}s.bind(to); print('bound', flush=True); print(s.recv(100).decode())"
    argv = [COMMAND, "lab", "--in", "main", "--receiver", "--", sys.executable, "-c", receive]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == "bound\n"
        inside = states()["main"]["programs"]
        send = f"{begin}s.sendto(b'arrived', to)"
        assert spt("lab", "--in", "main", "--", sys.executable, "-c", send).returncode == 0
        assert receiver.stdout.read() == "arrived\n"
    assert len(inside) == 1
    assert "spead-tutorial lab --in main --receiver -- COMMAND" in spt("lab", "status").stdout


def test_a_lab_with_a_receiver_can_be_joined_and_ends_on_both_machines():
    up("--receiver")
    with Lab.join("main") as lab, lab.receiver.socket() as receiver, lab.socket() as sender:
        sender.sendto(b"arrived", (lab.address, lab.port))
        assert receiver.recv(100) == b"arrived"
        with lab.disturbed(loss=1.0):
            sender.sendto(b"lost", (lab.address, lab.port))
    argv = [COMMAND, "lab", "--in", "main", "--receiver", "--", "sh", "-c", "echo; exec sleep 1000"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as sleeper:
        assert sleeper.stdout is not None
        sleeper.stdout.readline()
        assert f"sleep ({sleeper.pid})" in spt("lab", "down").stdout
        assert sleeper.wait(PATIENCE_S) == -signal.SIGTERM


def test_to_receive_takes_a_lab_in_which_somebody_does():
    fails("--receiver goes with --in", "lab", "--receiver", "--", "true", status=2)
    fails("one of veth, loopback", "lab", "up", "--receiver", "--kind", "ifb", status=2)
    fails("one of dummy, ifb, veth", "lab", "up", "--kind", "loopback", status=2)
    up()
    fails("in the lab 'main' nobody receives", "lab", "--in", "main", "--receiver", "--", "true")


@pytest.mark.parametrize("kind", WAYS)
def test_what_a_chapter_sends_to_a_receiver_is_proved_whether_somebody_listens_or_not(kind):
    up("--receiver", "--kind", kind)
    nobody = spt("run", "--in", "main", "10", "-n", "3", "--lang", "c")
    assert (nobody.returncode, "exactly what" in nobody.stdout) == (0, True), nobody.stderr
    with Lab.join("main") as lab, lab.receiver.socket():
        somebody = spt("run", "--in", "main", "10", "-n", "3", "--lang", "c")
        assert (somebody.returncode, "exactly what" in somebody.stdout) == (0, True)

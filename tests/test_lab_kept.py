# SPDX-License-Identifier: BSD-3-Clause
"""Labs that stay: who keeps them, who gets in, and that nothing is left when they end."""

import json
import os
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from labs import probe

from spead_tutorial.lab import Lab, LabError, door

COMMAND = str(Path(sys.executable).parent / "spead-tutorial")
PATIENCE_S = 60

pytestmark = pytest.mark.skipif(probe().reason is not None, reason="no lab here")


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


def test_what_is_no_lab_s_in_the_folder_is_left_alone(place):
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
            time.sleep(source.uniform(0.1, 0.8))
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

# SPDX-License-Identifier: BSD-3-Clause
"""Labs that stay: what holds them, who gets in, and that nothing is left when they end."""

import contextlib
import functools
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from spead_tutorial.lab import WAYS, Counters, Lab, LabError, namespaces, staying
from spead_tutorial.lab.helper import script
from spead_tutorial.tools.cli import cli
from spead_tutorial.tools.command_line import finish
from spead_tutorial.tools.lab import look
from support.lab_scripts import begun, wait_for_the_end_of
from support.labs import needs_lab, probe
from support.needs import need
from support.processes import wait_until_it_takes_signals
from support.typed import COMMAND, PIPES, Typed, check_refused, run

IN_MAIN = (COMMAND, "lab", "--in", "main", "--")
PATIENCE_S = 60
#: What begins a command that the system lets neither make a network nor enter one.
CONFINED = ("unshare", "--user", "--map-root-user", "sh", "-c")
CONFINED += ('echo 0 > /proc/sys/user/max_net_namespaces && exec "$@"', "sh")
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SLEEP = ("tail", "--lines=1", "--follow", __file__)  # prints, and waits, as one program
STUBBORN = ("sh", "-c", "trap '' TERM; echo; while :; do sleep 1000; done")

pytestmark = needs_lab


def here(*arguments: str) -> Typed:
    """Run a command in this process, which then takes signals as it did before."""
    out, errors = io.StringIO(), io.StringIO()
    before = {number: signal.getsignal(number) for number in INTERRUPTS}
    no_exec = mock.patch("os.execv", side_effect=AssertionError("it became another program"))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors), no_exec:
            status = finish(cli, "spead-tutorial", arguments)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), errors.getvalue())


def fails(words: str, *arguments: str, status: int = 1) -> None:
    """Check that a command fails with one line that has these words."""
    check_refused(here(*arguments), status, words)


def up(*arguments: str) -> None:
    done = here("lab", "up", *arguments)
    assert (done.returncode, done.stderr) == (0, "")


def states() -> dict[str, dict[str, object]]:
    return {one["name"]: one for one in json.loads(here("lab", "status", "--json").stdout)}


def holder() -> int:
    return look("main")["facts"]["holder"]


@contextlib.contextmanager
def folder_of_labs(runtime: Path) -> Iterator[Path]:
    """Have labs in a folder, and at last none."""
    runtime.mkdir(mode=0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        patch.delenv("SPEAD_TUTORIAL_LAB", raising=False)
        yield runtime / "spead-tutorial"
        assert staying._path().parent == runtime  # in no other are labs to be ended
        here("lab", "down", "--all")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """The folder of labs of a test."""
    with folder_of_labs(tmp_path / "runtime") as folder:
        yield folder


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A lab `main` for tests that leave it as it was."""
    with folder_of_labs(tmp_path_factory.mktemp("shared") / "runtime"):
        up()
        yield


@contextlib.contextmanager
def inside(argv: Sequence[str] = SLEEP, receiver: bool = False) -> Iterator[subprocess.Popen[str]]:
    """A program that has begun in the lab `main`, entered without the command."""
    with staying.opened("main") as lab:
        fds = lab.way_in(receiver=receiver)
        enter = script("namespaces", ",".join(map(str, fds)), *argv)
        with outside(enter, pass_fds=fds) as process:
            yield process


@contextlib.contextmanager
def outside(argv: Sequence[str] = SLEEP, **how: object) -> Iterator[subprocess.Popen[str]]:
    """A program that has begun, and said so; it is killed at last."""
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, **how) as process:
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def kill_holder() -> None:
    pid = holder()
    wait_for_the_end_of([pid], lambda: os.kill(pid, signal.SIGKILL))


# ---- From up to down ----


def test_a_lab_stays_from_up_until_down(place):
    done = here("lab", "status")
    assert (done.returncode, "that stays: spead-tutorial lab up" in done.stdout) == (1, True)
    assert here("lab", "down", "--all").stdout == "There is no lab that stays.\n"
    done = here("lab", "up")
    assert done.returncode == 0
    assert "spead-tutorial lab --in main -- COMMAND" in done.stdout
    entered = run(*IN_MAIN, "cat", "/proc/net/dev")
    assert (entered.returncode, entered.stderr) == (0, "")
    assert "dummy1:" in entered.stdout
    (place / ".other").touch()  # is no lab's
    assert here("lab", "status").returncode == 0
    assert list(states()) == ["main"]
    wait_for_the_end_of([holder()], lambda: here("lab", "down"))
    assert os.listdir(place) == [".other"]
    fails("there is no lab 'main': spead-tutorial lab up main", "lab", "down")
    fails("there is no lab 'main'", "lab", "--in", "main", "--", "true")
    assert here("lab", "status", "main").returncode == 1


def test_labs_that_stay_count_apart_and_say_so(place):
    kind = probe().kinds[-1]
    up("one")
    up("two", "--mtu", "1500", "--kind", kind)
    with Lab.join("two") as lab, lab.socket() as sock:
        assert (lab.mtu, lab.kind) == (1500, kind)
        sock.sendto(bytes(1000), (lab.address, lab.port))
        assert lab.counters().packets == 1
        assert lab.run(["cat", "/proc/net/dev"], capture_output=True).stdout.count(b"dummy1") == 1
        sleeper = lab.popen(["sleep", "1000"])
    assert sleeper.wait(PATIENCE_S) == -signal.SIGKILL  # closing the lab ends this, not the lab
    one, two = (states()[name]["facts"] for name in ("one", "two"))
    assert (one["packets"], two["packets"], two["bytes"]) == (0, 1, 1042)
    assert (one["mtu"], two["mtu"], two["kind"]) == (9216, 1500, kind)
    said = here("lab", "status").stdout
    for words in ("MTU 1500", "1 packets, 1042 bytes", "192.168.31.2", "lab down two"):
        assert words in said
    with Lab.join("two") as lab:
        said = here("lab", "down", "--all").stdout
        assert said.startswith("The lab one has ended.\nThe lab two has ended, and with it py")
        with pytest.raises(LabError, match="the lab's helper has ended"):
            lab.counters()
    assert states() == {}
    with pytest.raises(LabError, match="there is no lab 'two'"):
        Lab.join("two")
    with pytest.raises(ValueError, match="no name for a lab"):
        Lab.join("../mine")


@pytest.mark.thorough
def test_of_labs_made_at_once_under_one_name_there_is_one(place):
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    both = [subprocess.Popen([COMMAND, "lab", "up", "same"], **quiet) for _ in range(2)]
    assert sorted(one.wait(PATIENCE_S) for one in both) == [0, 1]
    assert list(states()) == ["same"]


@pytest.mark.parametrize("receiver", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_what_runs_in_a_lab_ends_with_it_willing_or_not(place, tmp_path, monkeypatch, receiver):
    monkeypatch.setattr(namespaces, "_PATIENCE_S", 0.1)
    # A name that is cut within a letter.
    named = tmp_path / "abcdefghijklmn\N{LATIN SMALL LETTER A WITH DIAERESIS}"
    shutil.copy(shutil.which("tail"), named)
    up(*["--receiver"] * receiver)
    with inside(STUBBORN, receiver) as stubborn, inside([named, *SLEEP[1:]], receiver) as willing:
        seen = look("main")
        assert seen["problem"] is None
        assert {stubborn.pid, willing.pid} <= {one.pid for one in seen["programs"]}
        done = here("lab", "down")
        assert stubborn.wait(PATIENCE_S) == -signal.SIGKILL
        assert willing.wait(PATIENCE_S) == -signal.SIGTERM
    assert f"sh ({stubborn.pid})" in done.stdout
    assert done.returncode == 0


def test_a_lab_that_has_lost_its_device_says_so(shared, monkeypatch):
    monkeypatch.setattr(Counters, "parse", lambda *_: None)
    assert look("main")["problem"].endswith("lab down main ends it")


def test_what_a_preloaded_library_says_is_not_what_the_holder_says(place, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "/nothing.so")
    assert here("lab", "up").returncode == 0
    assert os.listdir(place) == ["main"]


def test_when_ending_a_lab_is_interrupted_what_runs_in_it_has_ended(place, monkeypatch):
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    up()
    with inside(STUBBORN) as process:
        clock = SimpleNamespace(monotonic=time.monotonic, sleep=interrupt)
        monkeypatch.setattr(namespaces, "time", clock)
        done = here("lab", "down")
        assert (done.returncode, done.stderr) == (130, "\nspead-tutorial: interrupted\n")
        assert process.wait(PATIENCE_S) == -signal.SIGKILL
    assert os.listdir(place) == []


# ---- The process that holds it ----


def test_what_holds_a_lab_has_no_right_no_terminal_and_no_folder_and_is_there_once(shared):
    pid = holder()
    said = Path(f"/proc/{pid}/status").read_text()
    for name in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
        assert re.search(rf"^{name}:\s+0+$", said, re.M)
    assert re.search(r"^NoNewPrivs:\s+1$", said, re.M)
    assert os.getsid(pid) == pid
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in range(3)} == {"/dev/null"}
    fails("there is a lab 'main' already: spead-tutorial lab down main ends it", "lab", "up")
    assert holder() == pid


@pytest.mark.parametrize("receiver", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_of_a_lab_whose_process_was_killed_it_is_said_what_may_be_left(place, receiver):
    up(*["--receiver"] * receiver)
    with inside(receiver=receiver) as left, outside():
        kill_holder()
        gone = f"gone, for its process was killed, and may have left tail ({left.pid}): spead-"
        done = here("lab", "status")
        assert (done.returncode, gone in done.stdout) == (1, True)
        for arguments in (["lab", "--in", "main", "true"], ["run", "6", "--in", "main"]):
            fails(gone, *arguments)
        fails(gone, "lab", "up")
        done = here("lab", "down")
        assert left.poll() is None
    words = f"; if it has left tail ({left.pid}), end that: kill {left.pid}"
    assert (done.returncode, done.stdout) == (0, f"The lab main was gone already{words}.\n")
    assert os.listdir(place) == []


def test_what_is_no_lab_gives_way_to_one(place):
    place.mkdir(mode=0o700)
    (place / "other").symlink_to("main")
    for text in (
        "",
        "{}",
        "[]",
        '{"holder": 1, "networks": [{}]}',
        '{"holder": "1", "networks": []}',
    ):
        (place / "main").write_text(text)
        assert here("lab", "down").stdout == "The lab main was gone already.\n"
    up("other")
    assert look("other")["problem"] is None


ENDS = {
    "SIGTERM": lambda place: os.kill(holder(), signal.SIGTERM),
    "its note goes": lambda place: (place / "main").unlink(),
    "SIGINT": lambda place: os.kill(holder(), signal.SIGINT),
    "SIGHUP": lambda place: os.kill(holder(), signal.SIGHUP),
    "its folder goes": shutil.rmtree,
}


@pytest.mark.parametrize(
    "how", [pytest.param(one, marks=[pytest.mark.thorough] * (i > 1)) for i, one in enumerate(ENDS)]
)
def test_a_lab_ends_when_it_is_told_to_or_with_what_leads_to_it(place, how):
    up()
    wait_for_the_end_of([holder()], lambda: ENDS[how](place))
    if how.startswith("SIG"):
        assert os.listdir(place) == []
    assert staying.names() == []


def test_a_lab_is_entered_and_ended_while_its_process_is_stopped(place):
    up()
    pid = holder()
    os.kill(pid, signal.SIGSTOP)
    with Lab.join("main") as lab:
        assert lab.counters().packets == 0
    wait_for_the_end_of([pid], lambda: here("lab", "down"))
    assert os.listdir(place) == []


def test_whoever_gets_in_while_a_lab_ends_is_turned_away(place, capfd):
    up()
    with staying.opened("main") as lab:
        fds = lab.way_in()
        kill_holder()
        argv = script("namespaces", ",".join(map(str, fds)), "true")
        assert subprocess.run(argv, pass_fds=fds).returncode == 1
    assert capfd.readouterr().err == "spead-tutorial: the lab has been ended meanwhile\n"


def signalled(number: int, source: random.Random, *argv: str) -> tuple[subprocess.Popen, str]:
    """Send a signal to the group of a command, at any time; return what became of it."""
    with subprocess.Popen(argv, **PIPES, start_new_session=True) as process:
        wait_until_it_takes_signals(process)
        time.sleep(source.uniform(0, 0.7))
        os.killpg(process.pid, number)
        _, errors = process.communicate(timeout=PATIENCE_S)
    return process, errors


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
def test_whenever_up_is_ended_there_is_a_whole_lab_or_none(place, seed):
    source = random.Random(seed)
    for number in (*INTERRUPTS, signal.SIGKILL):
        name = f"{number.name}-{seed}"
        process, errors = signalled(number, source, COMMAND, "lab", "up", name)
        assert "Traceback" not in errors
        while (state := states().get(name)) is None and is_about_to_be(name):
            time.sleep(0.01)
        if process.returncode == 0:
            assert state["problem"] is None
        elif number != signal.SIGKILL:
            assert state is None
        if state is not None:
            assert here("lab", "down", name).returncode == 0
        assert not is_about_to_be(name)


def is_about_to_be(name: str) -> bool:
    """Whether a process holds a lab of a name, or is going to."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_text().split("\0"))
    return any("staying" in words and name in words for words in found)


# ---- Who gets in, and how ----


def test_a_command_takes_the_place_of_the_one_that_entered(shared):
    with subprocess.Popen(
        [*IN_MAIN, "sh", "-c", "echo $$; kill -TERM $$"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == f"{process.pid}\n"
        assert process.wait(PATIENCE_S) == -signal.SIGTERM


@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [
        (["sh", "-c", "exit 3"], 3, ""),
        (["no-such-program"], 127, "no-such-program: No such file or directory"),
        (["/"], 126, "/: Permission denied"),
        ([COMMAND, "lab", "down"], 1, "this is the lab 'main' itself: end it from outside"),
    ],
)
def test_the_status_is_the_commands_or_says_why_there_was_none(shared, capfd, argv, status, words):
    with inside(argv) as process:
        assert process.wait(PATIENCE_S) == status
    assert capfd.readouterr().err.removeprefix("spead-tutorial: ").removesuffix("\n") == words
    assert look("main")["problem"] is None


@pytest.mark.thorough
@pytest.mark.parametrize("number", INTERRUPTS)
def test_whenever_entering_is_interrupted_nobody_is_inside_and_nothing_says_more(place, number):
    up()
    source = random.Random(number)
    for _ in range(8):
        process, errors = signalled(number, source, *IN_MAIN, "sleep", "1000")
        assert process.returncode in (128 + number, -number)
        said = "" if process.returncode < 0 else r"spead-tutorial: (interrupted|ended by \w+)"
        assert re.fullmatch(said, errors.strip())
    assert states()["main"]["programs"] == []


def test_a_command_has_signals_streams_terminal_words_and_user_as_it_would_have_outside(shared):
    script = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; ls /proc/self/fd; echo $@; umask; cat"
    script += "; cut -d' ' -f5-8 /proc/$$/stat"  # its process group, session and terminal
    argv = ["sh", "-c", f"{script}; id", "sh", "--in", "x", "--", "-h"]
    how = {"input": "in", "capture_output": True, "text": True, "umask": 0o027}
    expected = subprocess.run(argv, **how)
    found = subprocess.run([*IN_MAIN, *argv], **how)
    assert (found.stdout, found.stderr) == (expected.stdout, expected.stderr)


@pytest.mark.thorough
def test_in_a_lab_one_has_the_rights_of_a_fresh_one_and_may_enter_it_again(shared):
    show = ["sh", "-c", "id; grep CapEff /proc/self/status"]
    with Lab() as fresh:
        expected = fresh.run(show, capture_output=True, text=True).stdout
    assert run(*IN_MAIN, *show).stdout == expected
    assert run(*IN_MAIN, *IN_MAIN, "echo", "inside").stdout == "inside\n"


def test_programs_of_chapters_run_in_a_lab_that_stays(place, monkeypatch):
    up()
    words = ["run", "6", "--lang", "c", "-n", "5", "--json"]
    done = json.loads(here(*words, "--in", "main").stdout)
    assert states()["main"]["facts"]["packets"] == done["counted_packets"] > 0
    monkeypatch.setenv("SPEAD_TUTORIAL_LAB", "main")
    assert here(*words).returncode == 0
    assert states()["main"]["facts"]["packets"] == 2 * done["counted_packets"]
    fails("--kind is a fresh lab's: 'main' is there", *words, "--kind", "ifb", status=2)
    fails("sending to --host, without --in", *words, "--host", "127.0.0.1", "--port", "9", status=2)


USAGE = {
    "--kind, --in and --receiver go with a command": "--kind ifb up",
    "'../x' is no name for a lab": "up ../x",
    "'.x' is no name for a lab": "--in .x true",
    "Missing command": "",
    "--receiver goes with --in": "--receiver -- true",
    "one of veth, loopback": "up --receiver --kind ifb",
    "one of dummy, ifb, veth": "up --kind loopback",
    "--kind is a fresh lab's: 'main' is there": "--in main --kind ifb true",
}


def test_what_goes_with_no_lab_or_not_together_is_a_line(shared):
    for words, arguments in USAGE.items():
        fails(words, "lab", *arguments.split(), status=2)
    fails("up: No such file", "lab", "--", "up", status=127)  # is no subcommand there
    fails("/: Permission denied", "lab", "--kind", probe().kinds[0], "--", "/", status=126)
    fails("in the lab 'main' no machine", "lab", "--in", "main", "--receiver", "--", "true")


# ---- Where it may not be ----


@pytest.mark.parametrize("what", ["open to others", "a link", "a file"])
def test_a_folder_that_others_may_have_made_is_refused(place, tmp_path, what):
    words = "the folder of labs"
    if what == "open to others":
        place.mkdir()
        place.chmod(0o777)
        words = "is not yours alone (it is user"
    elif what == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        place.symlink_to(tmp_path / "elsewhere")
    else:
        place.touch()
    for arguments in (["up"], ["down"], ["down", "--all"], ["--in", "main", "--", "true"]):
        fails(words, "lab", *arguments)


@pytest.mark.skipif(os.getuid() != 0, reason="takes root to be two users")
def test_the_folder_of_another_user_is_refused_and_so_is_another_user(place):
    up()
    for users in ({}, {"user": 65534, "group": 65534, "extra_groups": []}):
        argv = ["stat", "--dereference", f"/proc/{holder()}/ns/net"]
        how = {"env": os.environ | {"LC_ALL": "C"}, "cwd": "/", "capture_output": True}
        done = subprocess.run(argv, **how, **users, text=True)
        assert ("Permission denied" in done.stderr) is bool(users)
    assert here("lab", "down").returncode == 0
    os.chown(place, 65534, 65534)
    fails("it is user 65534's, mode 0700", "lab", "up")


def test_a_runtime_folder_that_is_not_the_users_own_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    assert staying._path().parent == tmp_path
    tmp_path.chmod(0o755)
    assert staying._path().parent != tmp_path
    for value in ("", "relative", str(tmp_path / "missing")):
        monkeypatch.setenv("XDG_RUNTIME_DIR", value)
        assert staying._path().is_absolute()


@pytest.mark.thorough
def test_where_the_system_forbids_to_enter_or_to_make_one_the_line_says_so(place):
    need("unshare")
    confined = functools.partial(run, *CONFINED, COMMAND)
    check_refused(confined("lab", "up"), 1, "forbids this user a network namespace")
    check_refused(confined("run", "10"), 1, "takes no root: --host 127.0.0.1 --port 8888")
    assert os.listdir(place) == []
    up()
    for arguments in (["lab", "--in", "main", "--", "true"], ["run", "6", "--in", "main"]):
        check_refused(confined(*arguments), 1, "the lab cannot be entered from here (")


# ---- With a receiver ----

ways = pytest.mark.parametrize(
    "kind", [pytest.param(one, marks=[pytest.mark.thorough] * (one != "veth")) for one in WAYS]
)


@ways
def test_a_lab_that_stays_lets_commands_receive_what_others_send(place, kind):
    up("--receiver", "--kind", kind)
    begin = "import socket; s = socket.socket(type=2); to = ('192.168.31.2', 8888)\n"
    receive = f"{begin}s.bind(to); print('bound', flush=True); print(s.recv(100).decode())"
    argv = [*IN_MAIN[:-1], "--receiver", "--", sys.executable, "-S", "-c", receive]
    with outside(argv) as receiver:
        programs = look("main")["programs"]
        with inside([sys.executable, "-S", "-c", f"{begin}s.sendto(b'arrived', to)"]) as sender:
            assert sender.wait(PATIENCE_S) == 0
        assert receiver.stdout.read() == "arrived\n"
    assert [one.pid for one in programs] == [receiver.pid]
    assert "spead-tutorial lab --in main --receiver -- COMMAND" in here("lab", "status").stdout


@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["alone", "with its process group"])
def test_kill_9_of_who_joined_a_lab_leaves_its_way_as_it_was(place, send):
    def way(lab: Lab) -> tuple[object, bytes]:
        with lab.receiver.socket() as receiver, lab.socket() as sender:
            receiver.settimeout(PATIENCE_S)
            sender.sendto(b"arrived", (lab.address, lab.port))
            assert receiver.recv(100) == b"arrived"
        devices = lab.receiver.run(["cut", "-d:", "-f1", "/proc/net/dev"], capture_output=True)
        return lab.facts(), devices.stdout

    up("--receiver")
    text = """
        lab = Lab.join("main")
        with lab.limited(10**6), lab.disturbed(loss=1.0):
            print(*(helper.pid for helper in lab._helpers), flush=True)
            signal.pause()
    """
    with Lab.join("main") as lab:
        before = way(lab)
        with begun(text) as (client, helpers):
            kill = functools.partial(send, client.pid, signal.SIGKILL)
            wait_for_the_end_of([int(pid) for pid in helpers], kill)
        assert way(lab) == before


@pytest.mark.thorough
@pytest.mark.parametrize("kind", WAYS)
def test_what_a_chapter_sends_to_a_receiver_is_proved_whether_somebody_listens_or_not(place, kind):
    up("--receiver", "--kind", kind)
    words = ("run", "--in", "main", "10", "-n", "3", "--lang", "c")
    nobody = here(*words)
    assert (nobody.returncode, "exactly what" in nobody.stdout) == (0, True), nobody.stderr
    with Lab.join("main") as lab, lab.receiver.socket():
        somebody = here(*words)
        assert (somebody.returncode, "exactly what" in somebody.stdout) == (0, True)

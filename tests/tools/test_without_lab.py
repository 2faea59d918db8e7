# SPDX-License-Identifier: BSD-3-Clause
"""Where the kernel gives no namespaces: what is said, and what works all the same."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from spead_tutorial.measure import programs
from support.labs import CONFINED, WITHOUT_NAMESPACES, needs_lab
from support.needs import need
from support.typed import COMMAND, PIPES, Typed, run

BIN = f"{Path(COMMAND).parent}/"
SENDER = str(programs.program_path("tut_6_send_pktsize", "c"))
#: The commands that want a lab, and what each says first that takes no root.
WANT = {
    "run 10 --lang C -n 9 -H 8KiB": "run 10 --lang c -n 9 -H 8192 --host 127.0.0.1 --port 8888",
    "run tut_4_send_constant -n 9": "run tut_4_send_constant -n 9 --host 127.0.0.1 --port 8888",
    "run 2 --lang c": "$({command} path 2 --lang c)",
    f"lab -- {SENDER} -n 3 192.168.31.2 8888": f"loopback: {SENDER} -n 3 127.0.0.1 8888",
    f"why --seconds 0.1 -- {SENDER} -n 9000000 {{host}} {{port}}":
        f"{SENDER} -n 9000000 127.0.0.1 8888 & {{command}} why --pid $!; kill $!",
}  # fmt: skip
#: Those that have nothing to do in one terminal: of some, all that is said is for root.
OTHERS = ["run 7", "run 3 --lang cpp --from 6", "lab --receiver -- true", "check 8 {program}",
          "check 3 {program}", "why --receiver -- true"]  # fmt: skip

pytestmark = [needs_lab, pytest.mark.usefixtures("elsewhere")]


def without_namespaces(*words: str, limit: str = "user") -> Typed:
    """Run a command where a limit of the user's is 0."""
    need("unshare", "setpriv", "ip")
    return run(*{"user": WITHOUT_NAMESPACES, "net": CONFINED}[limit], *words, timeout=100)


def check_said(done: Typed) -> list[str]:
    """Check that a command says what cannot be, and short ways out; return those."""
    assert (done.returncode, done.stdout) == (1, "")
    what, *ways = done.stderr.splitlines()
    assert re.fullmatch(
        r"spead-tutorial: the system forbids this user a network namespace"
        r" \(user\.max_\w+_namespaces is 0\):",
        what,
    )
    assert "No space left" not in done.stderr
    assert len(ways) >= 2
    assert all(re.match(r"    (without root|and then|as root)\b.*: ", way) for way in ways)
    assert all(len(way.replace(BIN, "").replace(SENDER, "")) <= 110 for way in ways)
    return [way.strip() for way in ways]


def typed_of(way: str) -> str:
    """What of a way out is to be typed."""
    return way.partition(": ")[2]


@pytest.mark.parametrize("limit", ["user", "net"])
@pytest.mark.parametrize(("words", "first"), WANT.items(), ids=str)
def test_a_command_says_first_what_takes_no_root_and_that_works_as_it_is_typed(words, first, limit):
    ways = check_said(without_namespaces(COMMAND, *shlex.split(words), limit=limit))
    assert ways[0].startswith("without root, ")
    assert ways[0].endswith(first.format(command=COMMAND))
    assert all("as root" in way for way in ways[1:])
    if limit == "user":
        done = without_namespaces("sh", "-c", typed_of(ways[0]))
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", OTHERS)
def test_a_command_for_which_one_terminal_is_not_enough_says_so(elsewhere, words):
    Path("program.py").write_text("")
    done = without_namespaces(COMMAND, *words.format(program="program.py").split())
    ways = check_said(done)
    is_for_root = words.startswith("why --receiver")
    assert ways[0].startswith("as root, " if is_for_root else "without root, ")


@pytest.mark.parametrize("words", ["7 --from 6", "12"])
def test_a_receiver_and_its_sender_work_in_two_terminals_as_they_are_typed(words):
    ways = check_said(without_namespaces(COMMAND, "run", *words.split(), "--lang", "c", "-n", "3"))
    first, second, *_ = map(typed_of, ways)
    with subprocess.Popen([*CONFINED, "sh", "-c", first], **PIPES) as receiver:
        assert "listening" in receiver.stderr.readline() + receiver.stderr.readline()
        beside = [
            "nsenter",
            f"--target={receiver.pid}",
            "--user",
            "--net",
            "--preserve-credentials",
        ]
        assert run(*beside, "sh", "-c", second).returncode == 0
        said = receiver.stdout.read()
    assert said.count("Timestamp: ") == 3


def test_doctor_ends_with_a_verdict_and_its_first_way_out_works():
    done = without_namespaces(COMMAND, "doctor")
    assert done.returncode == 1
    lab, way, *_ = done.stdout.splitlines()
    assert lab.endswith("a network namespace (user.max_user_namespaces is 0)")
    assert "→ without root, over loopback: " in way
    assert "No space left" not in done.stdout
    assert re.search(r"\n\nThere can be no lab here; [^\n.]+\.\n\Z", done.stdout)
    assert without_namespaces("sh", "-c", f"{typed_of(way)} -n 9").returncode == 0

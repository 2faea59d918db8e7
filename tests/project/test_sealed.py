# SPDX-License-Identifier: BSD-3-Clause
"""The seal around the tests: it counts what would leave the machine, and says where it went."""

import os
import re
import sys
from pathlib import Path

import pytest

from spead_tutorial import lab
from support import ROOT
from support.processes import python_for_anyone
from support.typed import run

SEALED = str(ROOT / ".ci" / "sealed.py")
SILENT = "sealed: no packet would have left the machine\n"
CAUGHT = r"sealed: (\d) packets? would have left the machine: sealed\.py strace [^\n]+\n"
LOOK_UP = """
import socket
try:
    socket.getaddrinfo("nowhere.invalid", 9)
except OSError:
    pass
"""
LAB = f"""
import sys, types
package = sys.modules["spead_tutorial"] = types.ModuleType("spead_tutorial")
package.__path__ = [{str(Path(lab.__file__).parent.parent)!r}]
from spead_tutorial.lab import Lab
with Lab() as lab, lab.socket() as sock:
    sock.sendto(b"x", (lab.address, lab.port))
    print(lab.counters().packets)
"""


def sealed(*command: str, python: str = sys.executable, **how: object) -> tuple[int, str, str]:
    """Run a command sealed; return its status and what was written."""
    done = run(python, SEALED, *command, **how)
    if "not sealed" in done.stderr:
        pytest.skip(f"{done.stderr.strip()} (its kernel, or this user)")
    return done.returncode, done.stdout, done.stderr


def send(host: str) -> list[str]:
    family = "AF_INET6" if ":" in host else "AF_INET"
    text = f"import socket; sock = socket.socket(socket.{family}, socket.SOCK_DGRAM)"
    return [sys.executable, "-c", f"{text}; sock.sendto(b'x', ({host!r}, 9))"]


@pytest.mark.parametrize(
    "host",
    [
        "198.51.100.1",
        "ff15::1",
        *(pytest.param(one, marks=pytest.mark.thorough) for one in ("239.1.2.3", "2001:db8:1::1")),
    ],
)
def test_a_packet_to_another_machine_fails_it(host):
    if ":" in host and not Path("/proc/sys/net/ipv6").exists():
        pytest.skip("the kernel has no IPv6")
    status, _, err = sealed(*send(host))
    found = re.fullmatch(CAUGHT, err)
    assert found
    assert (found[1], status) == ("1", 1)


def test_a_question_to_a_name_server_fails_it():
    status, _, err = sealed(sys.executable, "-c", LOOK_UP)
    if "not be counted" in err or "not counted" in err:
        pytest.skip(f"{err.splitlines()[0]} (the kernel, or this user)")
    assert re.fullmatch(CAUGHT, err)
    assert status == 1


@pytest.mark.parametrize(
    ("command", "status", "out", "err"),
    [
        (send("127.0.0.1"), 0, "", SILENT),
        (["sh", "-c", "echo out; exit 7"], 7, "out\n", SILENT),
        (["sh", "-c", "kill -9 $$"], 128 + 9, "", f"sealed: sh was ended by signal 9\n{SILENT}"),
        (["sh", "-c", 'echo err >&2; "$@"; exit 7', "sh", *send("198.51.100.1")], 7, "",
         f"err\n{CAUGHT}"),
        (["no-such-command"], 127, "", f"sealed: no-such-command: No such file[^\n]*\n{SILENT}"),
        ([], 2, "", r"sealed: say what to run: sealed\.py COMMAND \[ARG \.\.\.\]\n"),
    ],
    ids=["loopback", "a status", "a signal", "a status and a packet", "no program", "nothing"],
)  # fmt: skip
def test_the_status_of_the_command_is_kept(command, status, out, err):
    its_status, its_out, its_err = sealed(*command)
    assert (its_status, its_out) == (status, out)
    assert re.fullmatch(err, its_err)


@pytest.mark.skipif(lab.probe().reason is not None, reason=f"no lab here: {lab.probe().reason}")
def test_a_lab_works_inside_and_so_does_another_seal():
    assert sealed(sys.executable, "-c", LAB) == (0, "1\n", SILENT)
    status, _, err = sealed(sys.executable, SEALED, sys.executable, "-c", LOOK_UP)
    assert status == 1
    assert re.fullmatch(CAUGHT + SILENT, err)


@pytest.mark.thorough
@pytest.mark.skipif(os.getuid() != 0, reason="not root: every other test shows this")
def test_an_ordinary_user_has_it_too_and_a_lab_inside():
    python, how = python_for_anyone()
    assert sealed(python, "-c", LAB, python=python, **how) == (0, "1\n", SILENT)
    status, _, err = sealed(python, *send("198.51.100.1")[1:], python=python, **how)
    assert status == 1
    assert re.fullmatch(CAUGHT, err)


def test_where_namespaces_are_refused_it_says_so_and_runs_the_command():
    limits = "/proc/sys/user/max_user_namespaces /proc/sys/user/max_net_namespaces"
    forbid = f"for limit in {limits}; do echo 0 > $limit || exit 99; done"
    start = ["unshare", "--user", "--map-root-user", "sh", "-c", f'{forbid}; exec "$@"', "sh"]
    command = [*start, sys.executable, SEALED, "sh", "-c", "echo out; exit 7"]
    done = run(*command)
    if done.returncode in (1, 99):
        pytest.skip("the kernel has no user namespace in which to forbid more of them")
    assert (done.returncode, done.stdout) == (7, "out\n")
    assert re.fullmatch(
        r"sealed: not sealed, for this machine refuses it \([^\n]+\)\n", done.stderr
    )

# SPDX-License-Identifier: BSD-3-Clause
"""The seal around the tests: what would leave the machine fails."""

import os
import sys
from pathlib import Path

import pytest

from spead_tutorial import lab
from support import ROOT
from support.processes import python_for_anyone
from support.typed import run

SEALED = str(ROOT / ".ci" / "sealed.py")
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


def send(host: str) -> str:
    family = "AF_INET6" if ":" in host else "AF_INET"
    text = f"import socket; sock = socket.socket(socket.{family}, socket.SOCK_DGRAM)"
    return f"{text}; sock.sendto(b'x', ({host!r}, 9))"


@pytest.mark.parametrize("host", ["198.51.100.1", "ff15::1", "239.1.2.3", "2001:db8:1::1"])
def test_a_packet_to_another_machine_fails(host):
    if ":" in host and not Path("/proc/sys/net/ipv6").exists():
        pytest.skip("the kernel has no IPv6")
    status, _, err = sealed(sys.executable, "-c", send(host))
    assert status == 1
    assert err.endswith("Network is unreachable\n")


@pytest.mark.parametrize(
    ("command", "status", "out", "err"),
    [
        ([sys.executable, "-c", send("127.0.0.1")], 0, "", ""),
        (["sh", "-c", "echo out; echo err >&2; exit 7"], 7, "out\n", "err\n"),
        (["sh", "-c", "kill -9 $$"], -9, "", ""),
        (["no-such-command"], 127, "", "sealed: no-such-command: No such file or directory\n"),
        ([], 2, "", "sealed: say what to run: sealed.py COMMAND [ARG ...]\n"),
    ],
    ids=["loopback", "a status", "a signal", "no program", "nothing"],
)
def test_it_becomes_the_command(command, status, out, err):
    assert sealed(*command) == (status, out, err)


@pytest.mark.skipif(lab.probe().reason is not None, reason=f"no lab here: {lab.probe().reason}")
def test_a_lab_works_inside_and_so_does_another_seal():
    assert sealed(sys.executable, SEALED, sys.executable, "-c", LAB) == (0, "1\n", "")


@pytest.mark.thorough
@pytest.mark.skipif(os.getuid() != 0, reason="not root: every other test shows this")
def test_an_ordinary_user_has_it_too_and_a_lab_inside():
    python, how = python_for_anyone()
    assert sealed(python, "-c", LAB, python=python, **how) == (0, "1\n", "")
    status, _, err = sealed(python, "-c", send("198.51.100.1"), python=python, **how)
    assert (status, "Network is unreachable" in err) == (1, True)


def test_where_namespaces_are_refused_it_says_so_and_runs_the_command():
    limits = "/proc/sys/user/max_user_namespaces /proc/sys/user/max_net_namespaces"
    forbid = f"for limit in {limits}; do echo 0 > $limit || exit 99; done"
    start = ["unshare", "--user", "--map-root-user", "sh", "-c", f'{forbid}; exec "$@"', "sh"]
    command = [*start, sys.executable, SEALED, "sh", "-c", "echo out; exit 7"]
    done = run(*command)
    if done.returncode in (1, 99):
        pytest.skip("the kernel has no user namespace in which to forbid more of them")
    assert (done.returncode, done.stdout) == (7, "out\n")
    assert done.stderr == "sealed: not sealed, for this machine refuses a network of its own\n"

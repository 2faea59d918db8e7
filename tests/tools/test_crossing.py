# SPDX-License-Identifier: BSD-3-Clause
"""From one host to another: what arrives is counted on both, and nothing is left on either."""

import dataclasses
import io
import json
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from spead_tutorial.lab import LabError
from spead_tutorial.measure.programs import Done
from spead_tutorial.measure.records import RecordError
from spead_tutorial.tools import crossing, hosts, run
from spead_tutorial.tools.crossing import COUNTS, Crossing, counts
from spead_tutorial.tools.hosts import Command, Host, LostError, read_hosts, started_whole
from support import ROOT, sshd
from support.labs import needs_lab
from support.sshd import ssh_to_this_machine
from support.typed import COMMAND, PATIENCE_S, PIPES, Marked, check_refused, typed

NOTHING = dict.fromkeys(COUNTS, 0)

takes_long = pytest.mark.timeout(PATIENCE_S + 60)
thorough = pytest.mark.thorough


# ---- Between two machines, each a namespace of its own ----


@pytest.fixture(scope="module")
def lab_name() -> Iterator[str]:
    """A lab of two machines, one for each host."""
    name = f"way-{uuid.uuid4().hex[:8]}"
    assert typed("lab", "up", name, "--receiver").returncode == 0
    yield name
    done = typed("lab", "down", name)
    assert done.returncode == 0, done.stderr


class Way(Marked):
    """A file of two hosts, and runs between them whose processes can be found."""

    def __init__(self, folder: Path, lab_name: str) -> None:
        super().__init__()
        self.folder, self.path = folder, os.environ["PATH"]
        self.lab = [COMMAND, "lab", "--in", lab_name]
        self.write()

    def write(self, more: str = "", receives_at: str = "192.168.31.2") -> None:
        prefixes = ([*self.lab, "--"], [*self.lab, "--receiver", "--"])
        tables = (
            f'[[host]]\nname = "{name}"\nprefix = {json.dumps(prefix)}\n{more}'
            for name, prefix in zip("ab", prefixes, strict=True)
        )
        text = "".join(tables) + f'receives_at = "{receives_at}"\n'
        (self.folder / "hosts.toml").write_text(text)

    def reach_by_ssh(self, path: str) -> None:
        """Have both be reached by the ssh of a PATH."""
        self.path = path
        self.write(f'address = "there"\nfolder = "{self.folder}"\npython = "{sys.executable}"\n')

    def start(self, *more: str) -> "subprocess.Popen[str]":
        argv = [COMMAND, "run", "7", "--hosts", "hosts.toml", "--from-host", "a", "--to-host", "b"]
        environment = self.environment | {"PATH": self.path}
        return subprocess.Popen([*argv, *more], cwd=self.folder, env=environment, **PIPES)

    def run(self, *more: str) -> tuple[int, str, str]:
        with self.start(*more) as process:
            out, err = process.communicate(timeout=PATIENCE_S)
        return process.returncode, out, err


def table(out: str) -> list[tuple[str, int]]:
    """Find what was counted along the way, in lines of text."""
    return [(where, int(n)) for where, n in re.findall(r"^(\w[^:\n]*?) {2,}(\d+)$", out, re.M)]


@pytest.fixture
def way(tmp_path: Path, lab_name: str) -> Iterator[Way]:
    made = Way(tmp_path, lab_name)
    yield made
    made.kill()


@needs_lab
@takes_long
def test_what_one_host_sends_arrives_at_the_other_and_is_counted_on_both(way):
    status, out, err = way.run("-n", "3")
    assert status == 0, err
    assert "sending at 100 MB/s, below the rate of the link (--rate)" in err
    rows = dict(table(out))
    sent = rows["packets sent by blast"]
    assert rows["packets received by tut_7_recv_power"] == sent > 100
    assert 0 < rows["messages sent by the devices of a"] <= sent + 50
    assert out.splitlines()[-1] == f"proof: {sent} packets sent by a, {sent} received by b"
    assert "Received 3 heaps" in out
    page = (ROOT / "docs" / "how-to" / "two-machines.md").read_text()
    shown = table(page)
    assert [where for where, _ in shown] == [where for where, _ in table(out)]
    assert (shown[0], shown[-1]) == (table(out)[0], table(out)[-1])
    assert out.splitlines()[-1] in page
    way.wait_until_nothing_is_left()


def test_without_ssh_it_is_said_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RecordError, match="machines by ssh: apt install openssh-client"):
        Command(Host("a", "/", address="there"), [], "")


@needs_lab
@thorough
@takes_long
def test_over_a_real_sshd_other_chapters_and_languages_are_run_and_said_in_one_object(way):
    with sshd.running(way.folder) as path:
        way.reach_by_ssh(path)
        more = ["--from", "10", "--from-lang", "c", "-H", "65536", "-n", "4", "--json"]
        status, out, err = way.run(*more)
        assert status == 0, err
        way.wait_until_nothing_is_left()
    said = json.loads(out)
    assert said["sender"]["program"] == "tut_10_send_reuse_heaps"
    assert (said["sender"]["language"], said["receiver"]["language"]) == ("c", "python")
    assert (said["receiver"]["heaps"], said["whole"]) == (4, True)
    assert said["hosts"] == {"sender": "a", "receiver": "b"}


@needs_lab
@thorough
@takes_long
def test_a_receiver_is_ended_and_says_what_came_when_its_sender_has_failed(way):
    way.write(receives_at="10.9.8.7")  # to which a lab has no route
    status, out, err = way.run("-n", "2")
    assert status == 1
    assert "blast has failed" in err.splitlines()[-1]
    assert "packets received by tut_7_recv_power              0" in out
    way.wait_until_nothing_is_left()


@needs_lab
@takes_long
@pytest.mark.parametrize(
    ("program", "by_ssh"),
    [
        ("spead_tutorial.tools.crossing", False),
        pytest.param("spead_tutorial.tools.crossing", True, marks=thorough),
        pytest.param("bin/blast", False, marks=thorough),
        pytest.param("bin/blast", True, marks=thorough),
    ],
)
def test_when_ctrl_c_returns_nothing_runs_on_either_host(way, program, by_ssh):
    if by_ssh:
        way.reach_by_ssh(ssh_to_this_machine(way.folder))
    with way.start("-n", "1000000") as process:
        way.wait_for(program)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert way.processes() == []
    assert process.returncode == 130
    assert err.splitlines()[-1] == "spead-tutorial: interrupted"


@pytest.mark.parametrize(
    "said",
    [
        {"record": "line"},
        {"record": "line", "text": 3, "is_trouble": False},
        {"record": "failed"},
        {"record": "done", "status": 0, "output": "", "errors": "", "counted": {}},
        {"record": "strange"},
        {"record": None},
    ],
)
def test_what_a_host_says_that_is_not_understood_is_said_of_it_in_one_line(elsewhere, here, said):
    python = elsewhere / "python"
    python.write_text(f"#!/bin/sh\nread it\necho '{json.dumps(said)}'\nexec cat\n")
    python.chmod(0o755)
    text = f'[[host]]\nname = "a"\n[[host]]\nname = "b"\npython = "{python}"\n'
    (elsewhere / "F").write_text(f'{text}receives_at = "10.0.0.2"\n')
    done = here("run", "7", "--hosts", "F", "--from-host", "a", "--to-host", "b")
    check_refused(done, 1, "b is lost: it says what is not understood here")


def test_ctrl_c_while_a_command_starts_waits_until_somebody_can_end_it():
    begun = []

    def start():
        with started_whole():
            signal.raise_signal(signal.SIGINT)
            begun.append("command")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert begun == ["command"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_command_that_reads_nothing_holds_nobody_up(monkeypatch):
    monkeypatch.setattr(hosts, "_GONE_S", 0.1)
    command = Command(Host("a", python="/bin/sleep"), ["1000"], "x" * (1 << 20))
    assert command.lines() == []
    hosts.end_all([command])
    with pytest.raises(LostError, match="ended by SIGKILL"):
        command.lines()


def test_a_line_of_a_hosts_is_no_more_than_letters_to_a_terminal(capsys):
    for is_trouble in (False, True):
        run._show_line("a", "red \x1b[31mand bell \x07.", is_trouble)
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("a: red  [31mand bell  .\n", "red  [31mand bell  .\n")


@pytest.mark.parametrize("is_allowed", [False, True])
def test_packets_leave_a_machine_only_if_that_is_allowed(monkeypatch, capsys, is_allowed):
    def refuse(host: str, *, allow_real_network: bool) -> None:
        raise LabError(f"{host} {allow_real_network}")

    monkeypatch.setattr(crossing, "check_destination", refuse)
    what = {"program": "tut_6_send_pktsize", "language": "c", "arguments": [],
            "destination": "192.0.2.1", "allow_real_network": is_allowed}  # fmt: skip
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(what) + "\n"))
    assert crossing.main() == 1
    assert json.loads(capsys.readouterr().out) == {
        "record": "failed", "text": f"192.0.2.1 {is_allowed}",
    }  # fmt: skip


def test_the_files_of_hosts_that_the_guide_shows_can_be_read(tmp_path):
    page = (ROOT / "docs" / "how-to" / "two-machines.md").read_text()
    real, trial = re.findall(r"```toml\n(.*?)```", page, re.S)
    (tmp_path / "hosts.toml").write_text(real)
    digitiser, correlator = read_hosts(tmp_path / "hosts.toml")
    assert (digitiser.destination, correlator.destination) == ("10.0.0.2", "10.10.0.3")
    (tmp_path / "hosts.toml").write_text(trial)
    assert [host.name for host in read_hosts(tmp_path / "hosts.toml")] == ["a", "b"]


@pytest.mark.parametrize(
    ("speed", "rate"), [("1000", 62.5e6), ("100000", 100e6), ("-1", 100e6), (None, 100e6)]
)
def test_without_a_rate_it_is_below_that_of_the_link(tmp_path, monkeypatch, speed, rate):
    monkeypatch.setattr(crossing, "route_device", lambda host: "eth7")
    (tmp_path / "eth7").mkdir()
    if speed is not None:
        (tmp_path / "eth7" / "speed").write_text(f"{speed}\n")
    assert crossing.rate_to("10.0.0.2", tmp_path) == rate


# ---- The account ----


def crossed(sent: int, received: int, no_room: int = 0, **counted: int) -> Crossing:
    report = {
        **dict.fromkeys(("heaps", "heap_size", "packet_size", "payload_bytes", "spead_bytes"), 1),
        **dict.fromkeys(("errors", "elapsed_ns", "cpu_user_ns", "cpu_system_ns"), 1),
        **dict.fromkeys(("page_faults", "context_switches"), 1),
        **{"program": "sender", "language": "c", "packets": sent},
    }
    seen = {"socket_datagrams": received, "socket_dropped": no_room}
    dones = (Done(name, 0, json.dumps(said), "")
             for name, said in (("sender", report), ("receiver", seen)))  # fmt: skip
    counts_there = {key: n for key, n in counted.items() if key != "tx_dropped"}
    here = NOTHING | {"tx_dropped": counted.get("tx_dropped", 0)}
    return Crossing(("a", "b"), *dones, (here, NOTHING | counts_there))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (crossed(5, 3), "of 5 packets 2 are missing on the way: no counter of the two machines"),
        (crossed(5, 3, 2), "no room for 2 messages"),
        (crossed(5, 3, tx_dropped=2), "2 are missing on the way: the devices of a dropped 2"),
        (crossed(5, 3, rx_dropped=1, no_port=1), "those of b dropped 1; 1 messages came to a port"),
        (crossed(5, 6), "1 is too many on the way: something else sends there"),
    ],
)
def test_where_packets_are_missing_the_account_says_what_counted_them(made, words):
    assert made.is_whole is False
    assert words in made.account
    assert made.failure == made.account


@pytest.mark.parametrize(
    ("status", "said", "failure"),
    [
        (-9, "", "receiver: it was ended by SIGKILL"),
        (0, '{"socket_datagrams": "5"}', "sender or receiver did not say what it counted"),
        (0, '{"socket_datagrams": 3}', "on the way: no counter of the two machines has them"),
    ],
)
def test_an_account_without_a_gap_is_a_success_unless_its_receiver_says_otherwise(
    status, said, failure
):
    made = crossed(5, 5)
    assert (made.failure, made.account) == (None, "5 packets sent by a, 5 received by b")
    made = dataclasses.replace(made, received=Done("receiver", status, said, ""))
    assert failure in (made.failure or "")


def test_a_machine_counts_all_devices_but_loopback(tmp_path):
    head = "Inter-| Receive\n face |bytes\n"
    rows = ("lo: 9 9 9 9 0 0 0 0 9 9 9 9", "eth0: 100 1 0 2 0 0 0 0 300 4 0 5",
            "eth1:100 10 0 20 0 0 0 0 300 40 0 50")  # fmt: skip
    (tmp_path / "dev").write_text(head + "\n".join(f"{row} 0 0 0 0" for row in rows) + "\n")
    (tmp_path / "snmp").write_text(
        "Ip: InReceives\nIp: 3\nUdp: InDatagrams NoPorts RcvbufErrors\nUdp: 1 6 7\n"
        "UdpLite: A\nUdpLite: 1\n"
    )
    assert counts(tmp_path) == {
        "tx_packets": 44, "tx_dropped": 55, "rx_packets": 11, "rx_dropped": 22,
        "no_port": 6, "no_room": 7,
    }  # fmt: skip

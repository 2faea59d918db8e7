# SPDX-License-Identifier: BSD-3-Clause
"""Labs with a receiver: two machines, on whose way no packet is lost unless it is counted."""

import collections
import contextlib
import dataclasses
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator

import pytest

from spead_tutorial.lab import WAYS, Arrivals, Counters, Journey, Lab, LabError, disturbance
from support.lab_scripts import (
    begun,
    run_script,
    said_to_an_ordinary_user,
    send_gso,
    wait_for_the_end_of,
)
from support.labs import needs_lab
from support.sockets import messages

UDP_GRO, SO_MEMINFO = 104, 55
PATIENCE_S = 60

pytestmark = needs_lab


#: A veth, which has all that there is; loopback is looked at thoroughly.
KINDS = [pytest.param(one, marks=[pytest.mark.thorough] * (one != "veth")) for one in WAYS]


@pytest.fixture(scope="module")
def two_machines() -> Iterator[Lab]:
    with Lab(receiver=True) as lab:
        for machine in (lab, lab.receiver):
            assert machine.counters() == Counters("veth", 0, 0, 0, 0, 0, 0)
        assert lab.receiver.arrivals().packets == 0
        yield lab


@pytest.fixture(params=KINDS, scope="module")
def each_lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A lab with a receiver of every kind, for tests that leave it as it was."""
    if request.param == "veth":
        yield request.getfixturevalue("two_machines")
        return
    with Lab("loopback", receiver=True) as lab:
        assert lab.counters() == lab.receiver.counters() == Counters("loopback", 0, 0, 0, 0, 0, 0)
        yield lab


def arrived(lab: Lab, before: Arrivals, packets: int, unclaimed: int = 0) -> Arrivals:
    """Wait until so many packets have arrived, for the kernel may take its time; return them."""
    until = time.monotonic() + PATIENCE_S
    while True:
        arrivals = lab.receiver.arrivals() - before
        came = arrivals.packets >= packets and arrivals.unclaimed >= unclaimed
        if came or time.monotonic() > until:
            return arrivals
        time.sleep(0.001)


# -- two machines --


def passes(lab: Lab, data: bytes = b"arrives", host: str = "") -> None:
    """Check that what is sent to the lab's address arrives at the receiver."""
    host = host or lab.address
    with lab.receiver.socket(host=host) as receiver, lab.socket() as sender:
        assert receiver.getsockname() == (host, lab.port)
        if host != lab.address:
            group = socket.inet_aton(host) + socket.inet_aton(lab.address)
            receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
        sender.sendto(data, (host, lab.port))
        receiver.settimeout(PATIENCE_S)
        assert receiver.recv(1 << 16) == data


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_sent_to_a_group_arrives_at_the_receiver(kind):
    """In a lab of its own: who joins a group reports it later, too, in packets that count."""
    with Lab(kind, receiver=True) as lab:
        passes(lab, host="239.1.2.3")


def test_fragments_arrive_at_the_receiver_as_one_packet(each_lab):
    before = each_lab.receiver.arrivals()
    passes(each_lab, bytes(20000))
    assert (each_lab.receiver.arrivals() - before).packets == 1


def test_a_lab_says_whether_somebody_receives_and_how_to_have_somebody(each_lab, lab):
    devices = ("dummy1", "far0") if each_lab.kind == "veth" else ("lo", "lo")
    assert (each_lab.device, each_lab.receiver.device) == devices
    assert each_lab.facts()["receiver"] is True
    assert "receiver" not in lab.facts()
    with pytest.raises(LabError, match=r"Lab\(receiver=True\)"):
        _ = lab.receiver


def test_a_link_that_comes_up_again_leads_to_the_receiver_as_before(two_machines):
    for _ in range(2):
        two_machines.set_link(False)
        with pytest.raises(OSError, match="unreachable"):
            passes(two_machines)
        two_machines.set_link(True)
        passes(two_machines)


# -- every packet accounted for --


@pytest.mark.parametrize("room", [1 << 21, 60_000], ids=["room for all", "room for few"])
@pytest.mark.parametrize("gro", [False, True], ids=["read one by one", "read in runs"])
@pytest.mark.parametrize("gso", [False, True], ids=["sent one by one", "sent in runs"])
def test_what_arrives_is_counted_by_the_packet_whoever_merges_them(each_lab, gso, gro, room):
    to, before, counted = (each_lab.address, each_lab.port), each_lab.receiver.arrivals(), 800
    with each_lab.receiver.socket(buffer_size=room) as receiver, each_lab.socket() as sender:
        if gro:
            receiver.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
        for _ in range(40):
            if gso:
                send_gso(sender, 1000, bytes(20 * 1000), to)
            else:
                for _ in range(20):
                    sender.sendto(bytes(1000), to)
        arrivals = arrived(each_lab, before, counted)
        came = messages(receiver)
        memory = receiver.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, 36)
    dropped = struct.unpack("9I", memory)[8]
    assert arrivals.packets == counted
    received = sum(-(-len(one) // 1000) for one in came)  # the last of a run may be shorter
    assert (len(came) < received) == (gso and gro)
    it = Journey(counted, received, dropped, arrivals=arrivals, merging=gso and gro).check()
    assert it.ok, it.text
    assert Journey(counted + 1, received, dropped, arrivals=arrivals).check().ok is False
    # What the socket drops, it counts by what it keeps: runs, where it takes them.
    assert dropped == (counted - received) // (20 if gso and gro else 1)


def test_packets_that_nobody_receives_are_unclaimed(each_lab):
    before = each_lab.receiver.arrivals()
    with each_lab.socket() as sender:
        for _ in range(3):
            sender.sendto(bytes(1000), (each_lab.address, 9))
    arrivals = arrived(each_lab, before, 3, unclaimed=3)
    assert (arrivals.packets, arrivals.unclaimed) == (3, 3)
    assert "start the receiver before" in Journey(3, 0, arrivals=arrivals).check().text


# -- without root, and nothing left --


@pytest.mark.skipif(os.getuid() != 0, reason="not root: every other test shows this")
def test_an_ordinary_user_has_two_machines_and_can_lose_packets_on_the_way():
    text = """
        with Lab(receiver=True) as lab, lab.socket() as sender, lab.receiver.socket() as receiver:
            receiver.settimeout(60)
            with lab.disturbed(loss=0.3, seed=3) as way:
                for number in range(40):
                    sender.sendto(bytes([number]), (lab.address, lab.port))
            for number, fate in enumerate(way.fates(40)):
                if fate == "passed":
                    assert receiver.recv(100) == bytes([number])
            sender.sendto(b"after", (lab.address, lab.port))
            print(lab.rootless, receiver.recv(100).decode(), way.counts().lost > 0)
            print(way.counts().lost == way.fates(40).count("lost"))
            for side in (lab, lab.receiver):
                print(side.run(["id", "-u"], capture_output=True, text=True).stdout.strip())
    """
    assert said_to_an_ordinary_user(text) == ["True", "after", "True", "True", "65534", "65534"]


@pytest.mark.thorough
@pytest.mark.skipif(
    os.getuid() != 0 or shutil.which("setpriv") is None, reason="this takes root, and setpriv"
)
def test_root_without_raw_sockets_is_told_what_the_way_takes_and_keeps_its_lab():
    text = """
        with Lab(receiver=True) as lab, lab.socket() as sender, lab.receiver.socket() as receiver:
            for _ in range(2):
                try:
                    with lab.disturbed(loss=1.0):
                        pass
                except lab_module.LabError as error:
                    print(error)
            sender.sendto(b"arrived", (lab.address, lab.port))
            print(receiver.recv(100).decode())
    """
    done = run_script(text, before=["setpriv", "--bounding-set", "-net_raw"])
    assert done.stderr == ""
    first, second, third = done.stdout.splitlines()
    assert first == second
    assert re.fullmatch(r"raw sockets are refused, .*: have the capability NET_RAW, .*", first)
    assert third == "arrived"


def test_kill_9_of_the_parent_leaves_nothing_on_either_machine():
    text = """
        lab = Lab(receiver=True)
        if os.fork() == 0:
            signal.pause()  # a fork has a copy of everything: the lab must end all the same
        argv = ["sh", "-c", "setsid sleep 1000 & echo $! $$ $PPID; exec sleep 1000"]
        lab.receiver.popen(argv)
        lab.run(argv)
    """
    with begun(text) as (parent, words):
        pids = {int(pid) for pid in (*words, *parent.stdout.readline().split())}
        assert len(pids) == 5  # the parent of both programs is the one that is killed
        wait_for_the_end_of([*pids], parent.kill)


@pytest.mark.parametrize("helpers", ["serve", "were killed"])
def test_close_ends_programs_and_their_orphans_on_both_machines(helpers):
    argv = ["sh", "-c", "sleep 1000 >/dev/null & echo $! $$; exec sleep 1000"]
    with Lab(receiver=True) as lab:
        machines = (lab, lab.receiver)
        running = [one.popen(argv, stdout=subprocess.PIPE) for one in machines]
        pids = [int(pid) for one in running for pid in one.stdout.readline().split()]
        assert {one.pid for one in running} < set(pids)
        if helpers == "were killed":
            for one in machines:
                wait_for_the_end_of(
                    [one._helper.pid], lambda pid=one._helper.pid: os.kill(pid, signal.SIGKILL)
                )
                with pytest.raises(LabError, match="has ended"):
                    one.popen(argv)
        wait_for_the_end_of(pids, lab.close)
        for one in running:
            assert one.wait(PATIENCE_S) == -signal.SIGKILL
            one.stdout.close()
    lab.close()
    with pytest.raises(LabError, match="closed"):
        lab.receiver.counters()
    with pytest.raises(LabError, match="closed"):
        lab.receiver.popen(argv)


def test_a_receiver_that_cannot_be_made_leaves_no_helper(monkeypatch):
    real, started = subprocess.Popen, []

    def popen(*args: object, **how: object) -> object:
        if started:
            raise OSError("no more")
        started.append(real(*args, **how))
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", popen)
    with pytest.raises(LabError, match="the lab's helper cannot be started: no more"):
        Lab(receiver=True)
    assert started[0].poll() == 0


# -- a way that is disturbed --


def numbers_read(receiver: socket.socket) -> list[int]:
    return [struct.unpack_from("=I", one)[0] for one in messages(receiver)]


@pytest.mark.parametrize(("seed", "in_runs_of"), [(0, 20), (7, 1)])
def test_a_seed_loses_and_doubles_exactly_the_packets_that_it_says(two_machines, seed, in_runs_of):
    lab, before = two_machines, two_machines.receiver.arrivals()
    came: collections.Counter[int] = collections.Counter()
    with lab.receiver.socket() as receiver, lab.socket() as sender:
        with lab.disturbed(loss=0.1, duplicate=0.05, reorder=0.05, seed=seed) as way:
            for first in range(0, 1000, 40):  # any socket has room for so many
                for at in range(first, first + 40, in_runs_of):
                    run = [struct.pack("=I", at + i) + bytes(996) for i in range(in_runs_of)]
                    send_gso(sender, 1000, b"".join(run), (lab.address, lab.port))
                until = time.monotonic() + PATIENCE_S
                while way.counts().packets < first + 40 and time.monotonic() < until:
                    pass  # the relay answers when it has time
                came.update(numbers_read(receiver))
        fates, counts = way.fates(1000), way.counts()
        times = {"passed": 1, "held back": 1, "lost": 0, "duplicated": 2}
        arrivals = arrived(lab, before, sum(times[fate] for fate in fates))
        came.update(numbers_read(receiver))
    assert [came[n] for n in range(1000)] == [times[fate] for fate in fates]
    assert (counts.lost, counts.duplicated) == (fates.count("lost"), fates.count("duplicated"))
    assert (counts.packets, counts.overflown) == (1000, 0)
    assert 0 < counts.lost < 200
    assert 0 < fates.count("held back") < 200
    seen = {"packets": came.total(), "bytes": 1000 * came.total(), "dropped": 0}
    it = Journey.of(1000, seen, arrivals=arrivals, way=counts, sent_bytes=10**6)
    assert it.check().ok, it.check().text
    assert not dataclasses.replace(it, lost=it.lost - 1).check().ok


def test_a_packet_that_is_held_back_follows_the_next_ones():
    sent: list[int] = []
    fate = iter(["held back", "passed", "lost", "held back", "passed", "passed", "held back"])
    disturber = disturbance.Disturber(fate, 2, sent.append)
    for n in range(7):
        disturber.take(n)
    assert sent == [1, 0, 4, 5, 3]
    disturber.release()
    assert sent == [1, 0, 4, 5, 3, 6]


def test_the_last_packet_arrives_although_nothing_follows_it(two_machines):
    lab = two_machines
    receiver = lab.receiver.socket()
    with receiver, lab.socket() as sender, lab.disturbed(reorder=1.0) as way:
        sender.sendto(b"end", (lab.address, lab.port))
        receiver.settimeout(PATIENCE_S)
        assert receiver.recv(100) == b"end"
        assert way.counts().held_back == 1


def test_what_comes_too_fast_for_the_relay_is_counted(two_machines):
    lab, before = two_machines, two_machines.receiver.arrivals()
    with lab.disturbed() as way, lab.socket() as sender:
        way._process.send_signal(signal.SIGSTOP)
        for _ in range(20_000):
            sender.sendto(bytes(1000), (lab.address, lab.port))
        way._process.send_signal(signal.SIGCONT)
    counts = way.counts()
    assert counts.overflown > 0
    assert counts.packets + counts.overflown == 20_000
    assert arrived(lab, before, counts.packets).packets == counts.packets


def test_after_its_block_a_way_is_what_it_was(two_machines):
    lab = two_machines
    devices = lab.receiver.run(["cat", "/proc/net/dev"], capture_output=True).stdout.count(b":")
    facts = lab.facts()
    with pytest.raises(KeyError), lab.disturbed(loss=1.0):
        raise KeyError
    passes(lab)
    now = lab.receiver.run(["cat", "/proc/net/dev"], capture_output=True).stdout.count(b":")
    assert (now, lab.facts()) == (devices, facts)


def test_ctrl_c_in_the_block_ends_the_disturbance_and_leaves_the_lab_usable():
    text = """
        lab = Lab(receiver=True)
        try:
            with lab.disturbed(loss=1.0) as way:
                lab.run(["sh", "-c", "echo begun; exec sleep 1000"])
        except KeyboardInterrupt:
            print(way.counts().packets)
        with lab.receiver.socket() as receiver, lab.socket() as sender:
            sender.sendto(b"arrived", (lab.address, lab.port))
            print(receiver.recv(100).decode())
        lab.close()
    """
    with begun(text) as (parent, words):
        assert words == ["begun"]
        os.killpg(parent.pid, signal.SIGINT)
        out, _ = parent.communicate(timeout=PATIENCE_S)
    assert (out, parent.returncode) == ("0\narrived\n", 0)


def test_a_relay_that_dies_is_an_error_in_one_line(two_machines):
    with contextlib.ExitStack() as block:
        way = block.enter_context(two_machines.disturbed())
        way._process.kill()
        way._process.wait()
        for ask in (way.counts, block.close):
            with pytest.raises(LabError, match="disturbs the way has ended: leave"):
                ask()
    with two_machines.disturbed(loss=1.0) as way:
        pass
    assert way.counts().packets == 0


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"loss": -0.1}, "loss is -0.1"),
        ({"reorder": 1.5}, "reorder is 1.5"),
        ({"loss": 0.6, "duplicate": 0.6}, "more than 1 together"),
        ({"distance": 0}, "distance is 0"),
    ],
)
def test_shares_that_no_packets_can_have_are_refused(two_machines, how, words):
    with pytest.raises(ValueError, match=words), two_machines.disturbed(**how):
        pass


def test_loopback_and_a_lab_without_a_receiver_cannot_be_disturbed(lab):
    with pytest.raises(LabError, match="no machine receives"), lab.disturbed(loss=0.5):
        pass
    with (
        Lab("loopback", receiver=True) as by_loopback,
        pytest.raises(LabError, match="loopback cannot be disturbed"),
        by_loopback.disturbed(loss=0.5),
    ):
        pass

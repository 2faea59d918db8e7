# SPDX-License-Identifier: BSD-3-Clause
"""Labs with many machines: a switch that knows who is in a group, and counts what it loses."""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest

from spead_tutorial.lab import ArrayMachine, LabArray, LabError
from spead_tutorial.lab.device import RefusedError
from support.lab_scripts import begun, said_to_an_ordinary_user, script, wait_for_the_end_of
from support.labs import needs_lab

GROUP, PORT, PATIENCE_S = "239.1.0.1", 8888, 60
SIZE, HEADERS = 1000, 14 + 20 + 8

pytestmark = needs_lab


@pytest.fixture(scope="module")
def array() -> Iterator[LabArray]:
    with LabArray(3) as made:
        yield made


def udp(machine: ArrayMachine) -> socket.socket:
    return machine._helper.socket(socket.AF_INET, socket.SOCK_DGRAM)


@contextlib.contextmanager
def member(array: LabArray, number: int) -> Iterator[socket.socket]:
    """Have a machine in the group, and know that what is sent to it comes."""
    machine, sender = array.machines[number], array.machines[0]
    with udp(machine) as sock, udp(sender) as probe:
        sock.bind((GROUP, PORT))
        here = socket.inet_aton(GROUP) + socket.inet_aton(machine.address)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, here)
        sock.settimeout(0.05)
        for _ in range(PATIENCE_S * 20):
            probe.sendto(b"?", (GROUP, PORT))
            with contextlib.suppress(TimeoutError):
                while True:  # it may have had several
                    sock.recv(10)
            if not quiet(array, 3 - number):
                continue
            yield sock
            return
    raise AssertionError("the switch still floods")


def quiet(array: LabArray, other: int) -> bool:
    """Whether a machine that is in no group gets nothing that is sent to one."""
    before = array.machines[other].counters().rx_packets
    with udp(array.machines[0]) as probe:
        for _ in range(10):
            probe.sendto(b"?", (GROUP, PORT))
    return array.machines[other].counters().rx_packets - before < 10


def send(machine: ArrayMachine, packets: int, host: str = GROUP) -> None:
    with udp(machine) as sock:
        for _ in range(packets):
            sock.sendto(bytes(SIZE), (host, PORT))


def came(sock: socket.socket) -> int:
    sock.settimeout(0.2)
    n = 0
    with contextlib.suppress(TimeoutError):
        while True:
            n += len(sock.recv(SIZE)) == SIZE
    return n


def test_the_switch_sends_a_group_to_its_members_alone(array):
    with member(array, 1) as sock:
        before = [machine.counters() for machine in array.machines]
        send(array.machines[0], 50)
        assert came(sock) == 50
        grown = [m.counters() - b for m, b in zip(array.machines, before, strict=True)]
        assert grown[0].tx_bytes >= 50 * (SIZE + HEADERS)
        assert grown[1].rx_bytes >= 50 * (SIZE + HEADERS)
        assert grown[2].rx_bytes < SIZE  # at most questions about groups


def test_a_packet_for_one_machine_comes_to_it_alone(array):
    machine = array.machines[2]
    before = array.machines[1].counters()
    with udp(machine) as sock:
        sock.bind((machine.address, PORT))
        send(array.machines[0], 20, machine.address)
        assert came(sock) == 20
    assert (array.machines[1].counters() - before).rx_bytes < SIZE


def test_what_is_for_control_is_not_counted_as_data(array):
    before = [machine.counters().rx_bytes for machine in array.machines]
    receiver = array.machines[1]
    with udp(receiver) as sock, udp(array.machines[0]) as sender:
        sock.bind((receiver.control, PORT))
        sock.settimeout(PATIENCE_S)
        sender.sendto(bytes(SIZE), (receiver.control, PORT))
        assert sock.recv(SIZE) == bytes(SIZE)
    grown = [m.counters().rx_bytes - b for m, b in zip(array.machines, before, strict=True)]
    assert max(grown) < SIZE


@pytest.mark.parametrize(("share", "least", "most"), [(0.3, 1, 59), (1, 60, 60)])
def test_what_is_lost_by_chance_is_counted_one_by_one(array, share, least, most):
    try:
        ctypes.CDLL("libnftables.so.1")
    except OSError:
        pytest.skip("nftables is missing: apt install nftables")
    receiver = array.machines[1]
    with member(array, 1) as sock, receiver.losing(share):
        send(array.machines[0], 60)
        lost = receiver.lost()
        assert came(sock) == 60 - lost
        assert least <= lost <= most
    with member(array, 1) as sock:
        send(array.machines[0], 60)
        assert came(sock) == 60


def test_without_nftables_one_line_says_what_to_install():
    assert str(RefusedError("loss", 2)).endswith(": apt install nftables")


def test_what_comes_faster_than_a_link_passes_is_dropped_at_the_switch_and_counted(array):
    receiver = array.machines[1]
    before = receiver.counters().rx_bytes
    with member(array, 1), receiver.limited(10**6):
        send(array.machines[0], 600)
        dropped = receiver.dropped()
        passed = 600 - dropped
        assert 100 < dropped < 500
        until = time.monotonic() + PATIENCE_S
        while receiver.counters().rx_bytes - before < passed * (SIZE + HEADERS):
            assert time.monotonic() < until
            time.sleep(0.01)
        assert receiver.dropped() == dropped
    assert receiver.dropped() == 0


def test_a_slow_link_has_its_sender_wait(array):
    with array.machines[0].limited(10**7), udp(array.machines[1]) as sock:
        sock.bind((array.machines[1].address, PORT))
        began = time.monotonic()
        send(array.machines[0], 200, array.machines[1].address)
        n = came(sock)
    # What passes at once is the bucket's.
    assert time.monotonic() - began > (200 * SIZE - (1 << 17)) * 8 / 10**7
    assert n > 0


def test_a_machines_card_is_a_fine_destination(array):
    text = f"""
        for host in ("{GROUP}", "10.10.0.2"):
            lab_module.check_destination(host)
    """
    done = array.machines[0].run(script(text), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_more_machines_than_addresses_and_ports_are_for():
    for wrong in (0, 257):
        with pytest.raises(ValueError, match=f"machines is {wrong}: it must be in 1"):
            LabArray(wrong)


# -- nothing left --


def test_all_programs_end_with_the_array():
    with LabArray(2) as array:
        places = [array.switch, *array.machines]
        programs = [place.popen(["sleep", "1000"], stderr=subprocess.PIPE) for place in places]
    assert [program.wait(PATIENCE_S) for program in programs] == [-signal.SIGKILL] * 3
    with pytest.raises(LabError, match="the lab is closed"):
        array.machines[0].run(["true"])
    for program in programs:
        program.communicate()


@pytest.mark.parametrize("who", ["its caller", "its helper"])
def test_all_programs_and_the_folder_end_though_it_is_killed(who):
    text = """
        array = lab_module.LabArray(2)
        places = [array.switch, *array.machines]
        programs = [place.popen(["sleep", "1000"], stdout=subprocess.DEVNULL) for place in places]
        pids = [program.pid for program in programs]
        print(array.folder(), array._helper.pid, *pids, flush=True)
        sys.stdin.readline()
        array.close()
    """
    with begun(text) as (parent, words):
        folder, (helper, *programs) = words[0], map(int, words[1:])
        assert os.path.isdir(folder)

        def kill() -> None:
            os.kill(parent.pid if who == "its caller" else helper, signal.SIGKILL)
            if who == "its helper":
                parent.communicate("\n", timeout=PATIENCE_S)

        wait_for_the_end_of([helper, *programs], kill)
    assert not os.path.exists(folder)


@pytest.mark.skipif(os.getuid() != 0, reason="not root: every other test shows this")
def test_an_ordinary_user_has_many_machines():
    text = """
        with lab_module.LabArray(3) as array:
            m = array.machines
            print(m[2].run(["id", "-u"], capture_output=True, text=True).stdout.strip())
            with m[0].limited(10**9), m[2]._helper.socket(2, 2) as sock:
                sock.bind((m[2].address, 8888))
                sock.settimeout(60)
                with m[0]._helper.socket(2, 2) as sender:
                    sender.sendto(b"arrived", (m[2].address, 8888))
                print(sock.recv(10).decode(), m[2].dropped())
    """
    assert said_to_an_ordinary_user(text) == ["65534", "arrived", "0"]

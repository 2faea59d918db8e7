# SPDX-License-Identifier: BSD-3-Clause
"""All programs that receive, when what arrives is not what they were made for."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spead_tutorial.catalogue import RECEIVERS, find_chapter
from spead_tutorial.lab import Lab
from spead_tutorial.measure.delivery import deliver
from spead_tutorial.measure.programs import Done, ProgramOptions, built, program
from spead_tutorial.recv import Stream
from support.labs import probe
from support.receivers import PATIENCE_S, PORT, Receiver, flat, stream

SIZE = 8192
INTERRUPTED = "It was interrupted before the stream had ended.\n"
COMMAND = str(Path(sys.executable).parent / "spead-tutorial")
each_program = pytest.mark.parametrize(
    ("name", "language"),
    [(receiver.name, language) for receiver in RECEIVERS for language in built()],
)


def options_of(name: str, language: str) -> list[str]:
    """Tell those of its heaps' size that have to know."""
    argv = [*program(name, language), "--help"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return ["-H", str(SIZE)] if re.search(r"^ +-H", done.stdout, re.M) else []


def listening(lab: Lab, name: str, language: str, *arguments: str) -> Receiver:
    return Receiver(lab, language, *options_of(name, language), *arguments, name=name)


def send(lab: Lab, packets: list[bytes]) -> None:
    with lab.socket() as sock:
        for packet in packets:
            sock.sendto(packet, ("127.0.0.1", PORT))


def check_account(done: Done, packets: int, complete: int) -> None:
    """Every packet is in the account once, and so is every heap that is whole."""
    (row,) = re.findall(r"^packets: (.*)$", done.output, re.M)
    received, *fates = map(int, re.findall(r"\d+", row))
    assert received == sum(fates) == packets
    assert f"\nheaps: {complete} complete, " in done.output
    assert "\nsocket: 0 dropped\n" in done.output


@each_program
def test_started_twice_the_second_one_says_in_one_line_that_the_port_is_in_use(lab, name, language):
    first = listening(lab, name, language)
    argv = [*program(name, language), *options_of(name, language)]
    second = lab.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (second.returncode, second.stdout) == (1, "")
    assert re.fullmatch(rf"{name}: port {PORT} is in use: [^\n]+\n", second.stderr)
    send(lab, flat(stream()))
    done = first.end()
    assert done.status == 0
    check_account(done, packets=61, complete=10)


@each_program
def test_where_nobody_sends_it_waits_until_it_is_interrupted(lab, name, language):
    receiver = listening(lab, name, language, "-t", "0.1")
    with pytest.raises(subprocess.TimeoutExpired):
        receiver.process.wait(0.5)
    receiver.process.send_signal(signal.SIGINT)
    done = receiver.end()
    assert (done.status, done.errors) == (130, f"{name}: interrupted\n")
    assert done.output.startswith(INTERRUPTED + "packets: 0 received = none\nheaps: 0 complete, ")


def interrupted_in_the_eighth_heap(lab: Lab, name: str, language: str, *arguments: str) -> Done:
    """Interrupt a receiver that has seven heaps, and a packet of one more."""
    receiver = listening(lab, name, language, *arguments)
    before = lab.snmp()["Udp"]["InDatagrams"]
    packets = [*flat(stream()[:7]), stream()[7][0]]
    send(lab, packets)
    until = time.monotonic() + PATIENCE_S
    while lab.snmp()["Udp"]["InDatagrams"] - before < len(packets):  # until it has read them
        assert time.monotonic() < until
    receiver.process.send_signal(signal.SIGINT)
    return receiver.end()


@each_program
def test_interrupted_it_accounts_for_what_has_come_and_misses_nothing(lab, name, language):
    done = interrupted_in_the_eighth_heap(lab, name, language)
    assert (done.status, done.errors) == (130, f"{name}: interrupted\n")
    assert INTERRUPTED in done.output
    check_account(done, packets=len(flat(stream()[:7])) + 1, complete=7)
    assert "\nheaps: 7 complete, 0 incomplete, 0 never begun, 1 still arriving\n" in done.output
    assert name == "tut_3_recv" or done.output.endswith("\nReceived 7 heaps\n")


@each_program
def test_the_json_object_says_that_it_was_interrupted(lab, name, language):
    done = interrupted_in_the_eighth_heap(lab, name, language, "--json")
    said = json.loads(done.output)
    assert (done.status, said["ended"], said["heaps"]) == (130, "interrupt", 7)
    assert said["incomplete_heaps_flushed"] == 1


@each_program
def test_where_interrupts_are_ignored_as_under_nohup_it_goes_on(lab, name, language):
    ignoring = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
    options = options_of(name, language)
    receiver = Receiver(lab, language, *options, name=name, under=ignoring)
    receiver.process.send_signal(signal.SIGINT)
    send(lab, flat(stream()))
    done = receiver.end()
    assert done.status == 0
    check_account(done, packets=61, complete=10)


@pytest.mark.parametrize("whole_group", [True, False], ids=["at a terminal", "by kill"])
@each_program
def test_run_that_is_interrupted_shows_the_receivers_account(name, language, whole_group):
    if "veth" not in probe().kinds:
        pytest.skip("the kernel has no veth: modprobe veth")
    (receiver,) = (one for one in RECEIVERS if one.name == name)
    argv = [COMMAND, "run", str(receiver.number), "--lang", language, "--from", "6"]
    argv += ["--from-lang", "c", "-n", "1000000", "--rate", "20"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        argv, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        for line in process.stdout:
            if "Timestamp: " in line:
                break
        (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "spead-tutorial: interrupted"
    assert f"{name}: {INTERRUPTED}" in output
    (row,) = re.findall(rf"^{name}: packets: (.*)$", output, re.M)
    received, *fates = map(int, re.findall(r"\d+", row))
    assert received == sum(fates) > 0
    with pytest.raises(ProcessLookupError):  # nothing of it is left
        os.killpg(process.pid, 0)


@each_program
def test_started_late_it_accounts_for_what_came_and_says_that_it_is_not_all(lab, name, language):
    receiver = listening(lab, name, language)
    send(lab, flat(stream()[3:]))
    check_account(receiver.end(), packets=43, complete=7)


@each_program
def test_a_sender_that_stops_within_a_heap_is_a_loss_that_is_told(lab, name, language):
    receiver = listening(lab, name, language, "-t", "0.25")
    send(lab, flat(stream()[:-1])[:-1])
    done = receiver.end()
    assert "Nothing has come for 0.25 s: the stop heap may be lost.\n" in done.output
    check_account(done, packets=59, complete=9)
    assert "1 incomplete" in done.output
    assert done.status == 1
    assert re.fullmatch(rf"{name}: packets are missing: [^\n]+\n", done.errors)


@each_program
def test_a_sender_that_only_forgets_the_stop_heap_is_no_loss(lab, name, language):
    receiver = listening(lab, name, language, "-t", "0.25")
    send(lab, flat(stream()[:-1]))
    done = receiver.end()
    assert "Nothing has come for 0.25 s: the stop heap may be lost.\n" in done.output
    check_account(done, packets=60, complete=10)
    assert (done.status, done.errors) == (0, "")


@each_program
def test_a_receive_buffer_that_is_smaller_than_asked_for_is_said_with_what_helps(
    lab, name, language
):
    wanted = Stream.DEFAULT_UDP_BUFFER_SIZE
    allowed = int(Path("/proc/sys/net/core/rmem_max").read_text())
    receiver = listening(lab, name, language)
    send(lab, flat(stream()))
    receiver.end()
    words = (
        f"{name}: the receive buffer has {allowed} bytes, not {wanted}: allow more with"
        f" 'sysctl -w net.core.rmem_max={wanted}'\n"
    )
    assert (
        receiver.said == (words if allowed < wanted else "") + f"{name}: listening on port 8888\n"
    )


# ---- With a sender, as `run` does it ----


def test_a_receiver_to_which_nothing_came_from_a_sender_that_failed_is_ended():
    with Lab(receiver=True) as lab:
        sizes = ProgramOptions(packet_size=70000)
        done = deliver(lab, RECEIVERS[0], find_chapter("10"), ("c", "c"), sizes)
    assert (done.sent.status, done.received.status) == (1, -signal.SIGTERM)
    assert done.failure == "tut_10_send_reuse_heaps has failed, with status 1"


def test_a_receiver_whose_sender_fails_on_the_way_accounts_for_what_came():
    endless = ProgramOptions(heaps=1 << 40, heap_size=SIZE)
    with Lab(receiver=True) as lab:

        def pull(name: str, line: str, is_trouble: bool) -> None:
            if line.startswith("Timestamp: 8192 "):
                lab.set_link(False)

        done = deliver(
            lab, RECEIVERS[0], find_chapter("10"), ("c", "c"), endless, show=pull, bits_per_s=10**8
        )
    assert (done.failure, done.journey) == (
        "tut_10_send_reuse_heaps has failed, with status 1",
        None,
    )
    assert (
        "\nNothing has come for 5 s: the stop heap may be lost.\npackets: " in done.received.output
    )

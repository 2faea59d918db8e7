# SPDX-License-Identifier: BSD-3-Clause
"""The planted senders have the faults that they are said to have, and no others.

What is counted here is counted by others than a diagnosis would ask: by the device and the
protocol, by a receiver on loopback, by strace, and by what the kernel says of a process that ended.
"""

import contextlib
import dataclasses
import functools
import json
import mmap
import os
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from spead_tutorial import wire
from spead_tutorial.lab import Lab
from support.needs import needs
from support.senders import FINDINGS, SENDERS, Planted

HEAP = 1 << 20
#: How many heaps are sent: by strace's count, and by that of faults and CPU time in the longer run.
FEW, MANY = 20, 120
#: What starts a program, and prints what the kernel says of it when it has ended.
USAGE = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([used.ru_minflt, used.ru_utime]))
sys.exit(done.returncode)
"""
WATCHED = (
    "sendmsg,sendmmsg,sendto,write,writev,sched_setaffinity,nanosleep,clock_nanosleep,"
    "timerfd_settime,select,pselect6,poll,ppoll,epoll_wait,epoll_pwait"
)

#: Tried by `make test`: they need no core.
PLAIN = ("c message per packet", "c call per packet")
each = pytest.mark.parametrize(
    "sender",
    [
        pytest.param(one, id=one.name, marks=[] if one.name in PLAIN else pytest.mark.thorough)
        for one in SENDERS
    ],
)


@dataclasses.dataclass(frozen=True)
class Counted:
    """What a sender did for each heap, and where its threads were kept."""

    packets: float
    messages: float
    calls: float
    fragments: float
    sleeps: float
    together: int  # threads that may only use one core, and the same


def counted(sender: Planted, folder: Path, lab: Lab, tmp_path: Path) -> Counted:
    """Have a sender send under strace, and count."""
    log = tmp_path / "calls"
    strace = ["strace", "-f", "-qq", "-s", "0", "-e", f"trace={WATCHED}", "-o", str(log)]
    before = lab.snmp()
    run(lab, [*strace, *sender.argv(folder, lab.address, str(lab.port), FEW)])
    after = lab.snmp()

    def grown(protocol: str, name: str) -> int:
        return after[protocol][name] - before[protocol][name]

    kept = {}
    calls = sleeps = 0
    for line in log.read_text().splitlines():
        thread, _, call = line.partition(" ")
        match = re.match(r" *(?:<\.\.\. )?(\w+)", call)
        assert match is not None
        name, begun = match[1], "<..." not in call
        if name == "sched_setaffinity" and begun:
            of, cores = re.findall(r"\((\d+), \d+, \[([^]]*)\]", call)[0]
            kept[thread if of == "0" else of] = cores
        elif name.startswith("send"):
            calls += begun
        elif "nanosleep" in name or name == "timerfd_settime":
            sleeps += begun
        elif "(Timeout)" in call:
            sleeps += 1
    alone = Counter(core for core in kept.values() if re.fullmatch(r"\d+", core))
    return Counted(
        packets=-(-HEAP // (sender.packet_size - 64)),
        messages=grown("Udp", "OutDatagrams") / FEW,
        calls=calls / FEW,
        fragments=grown("Ip", "FragCreates") / FEW,
        sleeps=sleeps / FEW,
        together=max(alone.values(), default=0),
    )


def run(lab: Lab, argv: list[str]) -> str:
    done = lab.run(argv, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    return str(done.stdout)


def used(sender: Planted, folder: Path, lab: Lab) -> tuple[float, float]:
    """Return pages touched first, and seconds of the program's own, for each heap but the first."""
    amounts = []
    for heaps in (FEW, MANY):
        argv = sender.argv(folder, lab.address, str(lab.port), heaps)
        amounts.append(json.loads(run(lab, [sys.executable, "-c", USAGE, *argv])))
    (faults, user_s), (more_faults, more_user_s) = amounts
    return (more_faults - faults) / (MANY - FEW), (more_user_s - user_s) / (MANY - FEW)


@functools.cache
def sines_s() -> float:
    """Return seconds of CPU time in which as many sines are computed as a heap has samples."""
    phase = np.arange(HEAP) * 0.01
    begun = time.thread_time()
    for _ in range(10):
        np.sin(phase, out=phase)
    return (time.thread_time() - begun) / 10


def test_every_fault_is_planted_in_every_language_that_can_have_it():
    names = [sender.name for sender in SENDERS]
    assert len(set(names)) == len(names)
    there = {(sender.language, finding) for sender in SENDERS for finding in sender.findings}
    languages = ("c", "python", "spead2")
    wanted = {(language, finding) for language in languages for finding in FINDINGS}
    # The wheel makes its calls for many messages, and nobody can stop it.
    assert there == wanted - {("spead2", "call-per-packet")}


@each
def test_a_planted_sender_sends_spead_in_packets_of_its_size(
    sender: Planted, planted: Callable[[Planted], Path], receiver: socket.socket
):
    host, port = receiver.getsockname()
    argv = sender.argv(planted(sender), host, str(port), 1)
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    receiver.setblocking(False)  # what did not fit its buffer is lost, but is like the rest
    sizes: Counter[int] = Counter()
    with contextlib.suppress(BlockingIOError):
        while data := receiver.recv(65536):
            sizes[len(data)] += wire.parse(data).heap_length >= HEAP
    size, _ = sizes.most_common(1)[0]
    assert sender.packet_size - 8 < size <= sender.packet_size


@needs("strace")
@each
def test_a_planted_sender_has_its_faults_and_no_others(
    sender: Planted, planted: Callable[[Planted], Path], lab: Lab, tmp_path: Path
):
    if sender.needs_two_cores and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("with a single core of the machine there is no other to use")
    count = counted(sender, planted(sender), lab, tmp_path)
    faults, user_s = used(sender, planted(sender), lab)
    # What is not there is not there by half, either: nothing is in between.
    whole = not count.fragments
    amounts = {
        "no-segmentation-offload": (count.messages * whole / count.packets, 0.9, 0.5),
        "call-per-packet": (count.calls / count.packets, 0.9, 0.5),
        "fresh-memory": (faults * mmap.PAGESIZE / HEAP, 0.9, 0.1),
        "sleeps": (count.sleeps, 0.9, 0.2),
        "small-packets": (lab.mtu / sender.packet_size, 4, 4),
        "fragments": (count.fragments, 0, 1),
        "shared-core": (count.together, 1, 2),
        "slow-data": (user_s / sines_s(), 0.5, 0.5),
    }
    has = {name for name, (amount, most, _) in amounts.items() if amount > most}
    assert has == set(sender.findings), count
    little = {name for name, (amount, _, least) in amounts.items() if amount < least}
    assert has | little == set(FINDINGS), count

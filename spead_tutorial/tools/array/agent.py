# SPDX-License-Identifier: BSD-3-Clause
"""What Dask's workers run on an array's machines: programs, and looks at counters.

A program has a task of its own. It ends with its task, so when the task's client is gone, too; and
with its worker: when that is closed, and when that is killed.
"""

import contextlib
import ipaddress
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
from distributed import Worker, WorkerPlugin, get_worker, secede

from spead_tutorial.lab import Counters, check_destination
from spead_tutorial.lab.counters import protocols
from spead_tutorial.lab.network import queue_drops
from spead_tutorial.measure.corner_turn import Ended, Look, Machine
from spead_tutorial.measure.programs import program

#: Has the kernel kill a program when the thread of the worker ends that waits for it: 1 is
#: PR_SET_PDEATHSIG, see prctl(2). It asks by itself, since a worker with threads must not run
#: anything between fork and exec; it does not begin where the worker has gone meanwhile.
_END_WITH_WORKER = """\
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the worker has ended")
for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
    signal.signal(number, signal.SIG_DFL)
os.execv(sys.argv[2], sys.argv[2:])"""
_LINE, _KEPT = 4096, 4096  # the most of a line of errors that is read at once, and of all is kept
_SAID = 1 << 20  # bytes of what it prints, which is one object
_BOOT = Path("/proc/sys/kernel/random/boot_id")  # monotonic clocks begin with it
_PLUGIN = "spead-tutorial-array"
_ENDED = ("cancelled", "released", "forgotten")  # what becomes of a task that nobody wants any more


class Programs(WorkerPlugin):
    """The programs that a worker has started, by their tasks."""

    def __init__(self) -> None:
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    @contextlib.contextmanager
    def running(self, worker: Worker, task: str, argv: Sequence[str], output: Any) -> Iterator[Any]:
        """Run a program in a ``with`` block, in a session of its own."""
        begin = [sys.executable, "-I", "-S", "-c", _END_WITH_WORKER, str(os.getpid())]
        process = subprocess.Popen(
            [*begin, *argv], start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._running[task] = process
        try:
            with process:
                known = worker.state.tasks.get(task)
                if known is None or known.state in _ENDED:  # before it was one of these
                    process.kill()
                yield process
        finally:
            del self._running[task]

    def signal(self, number: int, tasks: str) -> None:
        """Send a signal to the programs of tasks whose names begin so."""
        for task, process in list(self._running.items()):
            if task.startswith(tasks):
                process.send_signal(number)

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """End the program of a task that is cancelled, as all are when their client is gone."""
        if finish in _ENDED:
            self.signal(signal.SIGKILL, str(key))

    def teardown(self, worker: Worker) -> None:
        """End all programs with the worker, which waits for them."""
        self.signal(signal.SIGKILL, "")


def run_program(run: str, machine: int, name: str, words: tuple[str, str], *options: str) -> Ended:
    """Run a program to its end; tell the run's topic when it listens."""
    worker = get_worker()
    task = str(worker.get_current_task())
    secede()  # a worker with one thread has room for others, too
    began, ended = time.monotonic(), Ended(name, machine)
    argv = [*program(*words), *options]
    with tempfile.TemporaryFile() as output:
        with _programs(worker).running(worker, task, argv, output) as process:
            for line in iter(lambda: process.stderr.readline(_LINE), b""):
                text = line.decode(errors="replace")
                if ": listening on port" in text:
                    ended.joined_s = time.monotonic() - began
                    worker.log_event(run, name)
                else:
                    ended.errors = (ended.errors + text)[-_KEPT:]
        output.seek(0)
        with contextlib.suppress(ValueError, RecursionError):
            said = json.loads(output.read(_SAID))
            ended.said = said if isinstance(said, dict) else None
    ended.status = process.returncode
    return ended


def interrupt(run: str) -> None:
    """Have a run's programs end by themselves, and say what they have counted."""
    _programs(get_worker()).signal(signal.SIGINT, run)


def _programs(worker: Worker) -> Programs:
    found = worker.plugins[_PLUGIN]
    assert isinstance(found, Programs)
    return found


# ---- The machine ----


async def describe(network: str | None) -> Machine:
    """Say which card of this machine carries data; a ValueError says that there is none.

    It prepares the worker for programs, too, and so runs in the loop's thread.
    """
    worker = get_worker()
    worker.plugins.setdefault(_PLUGIN, Programs())
    host, name = worker.address.rpartition(":")[0].rpartition("/")[2], str(worker.name)
    wanted = ipaddress.IPv4Network(network or host)
    clock, states = _BOOT.read_text().strip(), psutil.net_if_stats()
    cards = [
        Machine(name, one.address, device, clock, states[device].mtu)
        for device, addresses in psutil.net_if_addrs().items()
        for one in addresses
        if one.family == socket.AF_INET and ipaddress.IPv4Address(one.address) in wanted
    ]
    if not cards:
        raise ValueError(f"{name} ({os.uname().nodename}) has no address in {network or host}:"
                         " say with --data-network which one carries data")  # fmt: skip
    return cards[0]


def check(hosts: Sequence[str], device: str | None, allow_real_network: bool) -> None:
    """Refuse what would leave a lab, where nobody asked for that."""
    for host in hosts:
        check_destination(host, device=device, allow_real_network=allow_real_network)


def look(device: str) -> Look:
    """Read what this machine has counted."""
    tables = [Path("/proc/self/net", table).read_text() for table in ("dev", "snmp")]
    card = Counters.parse(tables[0], device, "")
    assert card is not None
    unclaimed = protocols(tables[1])["Udp"]["NoPorts"]
    return Look(card.rx_packets, card.rx_dropped, card.tx_packets, card.tx_dropped,
                queue_drops(device), unclaimed)  # fmt: skip

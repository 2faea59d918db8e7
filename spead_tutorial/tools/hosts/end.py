# SPDX-License-Identifier: BSD-3-Clause
"""One end of a way between two hosts: a program there, and what the machine counts meanwhile.

``python -m spead_tutorial.tools.hosts.end`` is told what to run, by a line of JSON, and prints
lines of JSON: each line of the program's as it comes, and then how it ended. When its standard
input ends, so does the program: nobody listens any more, or there is nothing more to come.
"""

import functools
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from spead_tutorial.lab import LabError, LabProcess, check_destination, route_device
from spead_tutorial.measure.machine import read_text
from spead_tutorial.measure.programs import ProgramError, program
from spead_tutorial.measure.running import Running
from spead_tutorial.send import route_packet_size

__all__ = ["COUNTS", "counts", "main", "rate_to"]

_PATIENCE_S = 10  # from Ctrl-C on
_NET = Path("/proc/net")
_DEVICES = Path("/sys/class/net")
#: What is sent at most where nobody says: as much as chapter 2 does, and half of a slower link.
_MOST, _SHARE = 100e6, 0.5
_PACKET_SIZE = 9000

#: What a machine counts of all messages that go over its devices but loopback, and of those of
#: UDP. A message may be a run of packets (segmentation and receive offload).
COUNTS = {
    "tx_packets": "messages sent by the devices of {}",
    "tx_dropped": "dropped by these",
    "rx_packets": "messages received by the devices of {}",
    "rx_dropped": "dropped by these",
    "no_port": "for a port without a socket",
    "no_room": "without room in a socket",
}
_COLUMNS = {"rx_packets": 1, "rx_dropped": 3, "tx_packets": 9, "tx_dropped": 11}


def counts(folder: Path = _NET) -> dict[str, int]:
    """Read what this machine has counted, by the names of `COUNTS`."""
    found = dict.fromkeys(COUNTS, 0)
    for line in (folder / "dev").read_text().splitlines()[2:]:
        name, _, numbers = line.partition(":")
        if name.strip() != "lo":
            for count, column in _COLUMNS.items():
                found[count] += int(numbers.split()[column])
    udp = [line.split() for line in (folder / "snmp").read_text().splitlines() if "Udp:" in line]
    by_name = dict(zip(udp[0], udp[1], strict=True))
    found["no_port"], found["no_room"] = int(by_name["NoPorts"]), int(by_name["RcvbufErrors"])
    return found


def rate_to(host: str, folder: Path = _DEVICES) -> float:
    """Return a rate that is below that of the link to a host, in bytes/s."""
    device = route_device(host)
    said = None if device is None else read_text(folder / device / "speed")
    megabits = int(said or -1)  # which it is where the kernel does not know
    return min(_MOST, _SHARE * megabits * 1e6 / 8) if megabits > 0 else _MOST


def _paced(host: str, rate: float | None, arguments: list[str]) -> list[str]:
    """Return what a sender with a rate is told of that, and of packets that go in one piece."""
    if rate is None:
        rate = rate_to(host)
        text = f"sending at {rate / 1e6:g} MB/s, below the rate of the link (--rate)"
        _write(record="line", text=text, is_trouble=True)
    options = ["-r", str(rate)]
    return options if "-p" in arguments else [*options, "-p", str(min(_PACKET_SIZE, _fits(host)))]


def _fits(host: str) -> int:
    try:
        return route_packet_size(host)
    except (OSError, ValueError):  # the sender says it all
        return _PACKET_SIZE


def _write(**record: object) -> None:
    print(json.dumps(record), flush=True)


def _pass_on(name: str, line: str, is_trouble: bool) -> None:
    _write(record="line", text=line, is_trouble=is_trouble)


def _end_with_input(process: LabProcess | subprocess.Popen[str]) -> None:
    sys.stdin.read()
    process.send_signal(signal.SIGINT)  # it says what has come
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _run(what: dict[str, Any]) -> None:
    destination = what["destination"]
    if destination is not None:
        check_destination(destination, allow_real_network=what["allow_real_network"])
    arguments = what["arguments"]
    if "rate" in what:
        arguments = [*_paced(destination, what["rate"], arguments), *arguments]
    argv = [*program(what["program"], what["language"]), *arguments]
    before, start = counts(), functools.partial(subprocess.Popen, stdin=subprocess.DEVNULL)
    with Running(start, what["program"], argv, _pass_on) as running:
        threading.Thread(target=_end_with_input, args=(running.process,), daemon=True).start()
        done = running.wait()
    grown = {name: count - before[name] for name, count in counts().items()}
    _write(record="done", status=done.status, output=done.output, errors=done.errors, counted=grown)


def main() -> int:
    """Do what the first line of the standard input says."""
    try:
        _run(json.loads(sys.stdin.readline()))
    except (LabError, ProgramError, ValueError, OSError) as error:
        _write(record="failed", text=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

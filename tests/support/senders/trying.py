# SPDX-License-Identifier: BSD-3-Clause
"""Planted senders in a lab: their rates with and without the fault, and what is said of them."""

import json
import subprocess
import time
from pathlib import Path
from statistics import median
from typing import Any

from spead_tutorial.lab import Lab
from spead_tutorial.lab.process import end_family
from spead_tutorial.measure.verify import IP_UDP_HEADERS
from support.senders import Planted
from support.typed import COMMAND

#: Heaps that last for longer than anybody looks.
ENDLESS = 10**6
#: How long a sender may take to begin, warms up, and is measured.
_START_S, _WARM_S, _MEASURED_S = 20.0, 1.0, 0.5


def rate(lab: Lab, argv: list[str]) -> float:
    """Return the bytes within UDP that a sender sends in a second, by the device's counters."""
    nothing = subprocess.DEVNULL
    before = lab.counters()
    process = lab.popen(argv, stdin=nothing, stdout=nothing, stderr=nothing)
    try:
        late = time.monotonic() + _START_S
        while lab.counters().packets == before.packets and time.monotonic() < late:
            time.sleep(0.005)
        time.sleep(_WARM_S)
        first, begun = lab.counters(), time.monotonic()
        time.sleep(_MEASURED_S)
        sent, elapsed = lab.counters() - first, time.monotonic() - begun
        if process.poll() is not None or not sent.packets:
            raise RuntimeError(f"{' '.join(argv)} does not send: status {process.poll()}")
    finally:
        end_family(process)
    return (sent.bytes - (sent.link_header + IP_UDP_HEADERS) * sent.packets) / elapsed


def rates(lab: Lab, sender: Planted, folder: Path, rounds: int) -> tuple[float, float]:
    """Return the median rates of a sender with its fault and of its mended twin, by turns."""
    argvs = [
        sender.argv(folder, lab.address, str(lab.port), ENDLESS, mended) for mended in (False, True)
    ]
    turns = [[rate(lab, argv) for argv in argvs] for _ in range(rounds)]
    planted, mended = (median(one) for one in zip(*turns, strict=True))
    return planted, mended


def diagnosis(sender: Planted, folder: Path, seconds: float = 2.0) -> dict[str, Any]:
    """Return what the command says of a sender."""
    command = [COMMAND, "why", "--json", "--seconds", str(seconds)]
    argv = [*command, "--", *sender.argv(folder, "{host}", "{port}", ENDLESS)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    made: dict[str, Any] = json.loads(done.stdout)
    return made

# SPDX-License-Identifier: BSD-3-Clause
"""Planted senders in a lab: their rates with and without the fault, and what is seen of them."""

import dataclasses
import json
import subprocess
import time
from pathlib import Path
from statistics import median
from typing import Any

from spead_tutorial.lab import Lab
from spead_tutorial.measure.verify import IP_UDP_HEADERS
from spead_tutorial.tools.why.facts import Seen
from spead_tutorial.tools.why.process import end
from support.senders import Planted
from support.typed import COMMAND

#: Heaps that last for longer than anybody looks.
ENDLESS = 10**6
#: How long a sender may take to begin, warms up, and is measured.
_START_S, _WARM_S, _MEASURED_S = 20.0, 1.0, 0.5
#: Share of the time that a thread has to have a core for, to be written down.
_IDLE = 0.02


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
        end(process)
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


def facts(made: dict[str, Any]) -> dict[str, Any]:
    """Return what the command saw of a sender and its threads, without those that idle."""
    idle_s = _IDLE * made["run"]["seconds"]
    accounts = (made.get("account") or {"threads": ()})["threads"]
    sends = {one["tid"] for one in accounts if one["sends"]}
    busy = [
        one
        for one in made["run"]["threads"]
        if one["tid"] in sends or one["user_s"] + one["system_s"] > idle_s
    ]
    tids = {one["tid"] for one in busy}
    names = {(one["name"], one.get("nth")) for one in busy}

    def is_idle(one: Any) -> bool:
        if not isinstance(one, dict):
            return False
        if "tid" in one:
            return one["tid"] not in tids
        return "nth" in one and (one["name"], one["nth"]) not in names

    def cut(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: cut(one) for name, one in value.items()}
        if isinstance(value, list):
            return [cut(one) for one in value if not is_idle(one)]
        if isinstance(value, str):
            return value.rpartition("/")[2] if value.startswith("/") else value
        return float(f"{value:.4g}") if isinstance(value, float) else value

    return {field.name: cut(made[field.name]) for field in dataclasses.fields(Seen)}

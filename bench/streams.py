# SPDX-License-Identifier: BSD-3-Clause
"""Observers of streams: how long a heap waits on an idle one, and how evenly one keeps a rate.

Both are measured from outside, by the kernel's time of receipt and by the device's counter, and
alike for all libraries.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from msgspec.structs import replace

from bench.peers import TIMEOUT_S, interpreter, missing_peer
from bench.receivers import rate_of
from bench.tables import grouped, medians
from spead_tutorial.lab import Lab, accounted
from spead_tutorial.measure.analysis import longest_burst
from spead_tutorial.measure.case import Case, Observer, Size, Step
from spead_tutorial.measure.programs import ProgramError, finish
from spead_tutorial.measure.records import OURS, Latency, Rate, Recording, Sample, joined
from spead_tutorial.results.tables import Column

_FOLDER = Path(__file__).resolve().parent / "peer"
NO_THREAD = "no thread"
#: Heaps at a process's start that do not count: what they run is new to the caches.
WARM_UP = 20
#: Heaps that count, and seconds at a rate, of runs of each size.
_HEAPS = {"quick": 300, "full": 1000, "tiny": 30}
_SECONDS = {"quick": 0.5, "full": 2.0, "tiny": 0.02}


class _OneStream(Observer):
    """What a process says that makes one stream, of whichever library."""

    warms_up = False

    def missing(self, case: Case) -> str | None:
        return missing_peer(case.implementation)


def _said(lab: Lab, case: Case, *words: object) -> dict[str, Any]:
    library = "spead_tutorial" if case.implementation == OURS else "spead2"
    flags = ["--no-thread"] * (NO_THREAD in case.words)
    argv = [*interpreter(case.implementation), str(_FOLDER / "one_stream.py"), library, *flags]
    done = finish(lab.run, case.program, [*argv, case.program, *map(str, words)], TIMEOUT_S)
    if done.status != 0:
        raise ProgramError(done.complaint)
    said: dict[str, Any] = json.loads(done.output)
    return said


def _name(one: Latency | Rate) -> str:
    return joined(one.implementation, one.variant)


class IdleStream(_OneStream):
    """How long a heap waits that is sent every few milliseconds, over the lab's loopback."""

    settings: ClassVar = {"warm_up": WARM_UP}

    def asked(self, step: Step) -> Latency:
        case = step.case
        return Latency(case.implementation, case.variant, step.number, case.heap_size)

    def observe(self, lab: Lab, size: Size, step: Step, known: Sample | None) -> Iterable[Latency]:
        heaps = WARM_UP + _HEAPS[size.name]
        said = _said(lab, step.case, "-n", heaps, "--seed", step.number)
        if min(said["latency_ns"]) <= 0:
            raise ProgramError(
                "latency: a packet came before it was sent: the clock was set meanwhile"
            )
        return [replace(self.asked(step), **said)]

    def table(self, recording: Recording) -> str:
        def quantile_us(q: float) -> Callable[[Latency], float]:
            return lambda one: float(np.quantile(np.array(one.latency_ns[WARM_UP:]) / 1e3, q))

        def heaps(group: Sequence[Latency]) -> int:
            return sum(len(one.latency_ns) - WARM_UP for one in group)

        return grouped(
            recording.those(Latency),
            _name,
            [("idle stream of", _name)],
            lambda ends: [
                Column("heaps", heaps),
                *medians(("median us", ends), quantile_us(0.5)),
                *medians(("99 % us", ends), quantile_us(0.99)),
            ],
        )


class KeptRate(_OneStream):
    """What a stream makes of a rate, as the device's counter sees it, which is watched."""

    def asked(self, step: Step) -> Rate:
        case, rate = step.case, rate_of(step.case)
        assert rate is not None
        variant = NO_THREAD if NO_THREAD in case.words else ""
        return Rate(case.implementation, variant, step.number, rate)

    def observe(self, lab: Lab, size: Size, step: Step, known: Sample | None) -> Iterable[Rate]:
        asked = self.asked(step)
        column = "rx" if lab.kind == "ifb" else "tx"  # as Counters.bytes has it
        watch = [sys.executable, "-P", str(_FOLDER / "watch.py"), lab.device, column]
        before, how = lab.counters(), ("--rate", asked.rate, "--seconds", _SECONDS[size.name])
        with lab.popen(watch, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            first = process.stdout.read(24)  # it watches
            said = _said(lab, step.case, *how, lab.address, lab.port)
            process.terminate()
            seen = np.frombuffer(first + process.stdout.read(), np.int64).reshape(-1, 3)
        counted = lab.counters() - before
        held = accounted(
            counted.packets,
            counted.bytes,
            packets=said["packets"],
            messages=min(counted.packets, said["packets"]),
            spead_bytes=said["spead_bytes"],
            link_header=counted.link_header,
        )
        if not held.ok:
            raise ProgramError(f"rate: {held.text}")
        if seen[-1, 2] - seen[0, 2] != counted.bytes:
            raise ProgramError("rate: the counter was not watched to the end")
        found = bursts(seen, asked.rate, said["spead_bytes"] / counted.bytes)
        if found["average_ns"] == 0:
            raise ProgramError("rate: all was over before the counter was looked at again")
        of_device = {"counted_packets": counted.packets, "counted_bytes": counted.bytes}
        return [replace(asked, **said, **of_device, **found)]

    def table(self, recording: Recording) -> str:
        def values(ends: str) -> list[Column[Sequence[Rate]]]:
            at_most, _ = medians(("at most", ends), lambda one: one.burst_most_bytes / 1024)
            grain, _ = medians(("grain us", ends), lambda one: one.grain_ns / 1e3)
            share = (lambda one: one.average_bytes / one.average_ns * 1e11 / one.rate), 2
            return [
                *medians(("% of it", ends), *share),
                *medians(("burst KiB", ends), lambda one: one.burst_bytes / 1024),
                at_most,
                grain,
            ]

        return grouped(
            recording.those(Rate),
            lambda one: (one.rate, _name(one)),
            [("MB/s asked", lambda one: f"{one.rate / 1e6:g}"), ("stream of", _name)],
            values,
        )


#: Steps in this time after the first are taken for the first burst.
_FIRST_BURST_NS = 10**6


def bursts(seen: np.ndarray[Any, Any], rate: float, share: float) -> dict[str, int]:
    """Say how evenly a counter grew."""
    early, late = seen[1:, 0], seen[1:, 1]
    n_bytes = (seen[:, 2] - seen[0, 2]) * share
    # Between the step that ends one look and that which ends another, both included.
    paid_early, paid_late = ((at - late[0]) * rate / 1e9 for at in (early, late))
    after, steps = n_bytes[1:], np.diff(n_bytes)
    begin = int(np.searchsorted(late, late[0] + _FIRST_BURST_NS, "right")) - 1
    return {
        "average_bytes": round(after[-1] - after[begin]),
        "average_ns": int(late[-1] - late[begin]),
        "burst_bytes": round(longest_burst(after, steps, paid_early, paid_late)),
        "burst_most_bytes": round(longest_burst(after, steps, paid_late, paid_early)),
        "steps": len(early),
        "grain_ns": int(np.median(late - early)),
        "longest_grain_ns": int((late - early).max()),
    }


IDLE_STREAM, KEPT_RATE = IdleStream(), KeptRate()

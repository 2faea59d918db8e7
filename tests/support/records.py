# SPDX-License-Identifier: BSD-3-Clause
"""Records of a made-up machine, for tests to change one thing of."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from spead_tutorial.check.comparison import SKELETON, YOURS, Comparison
from spead_tutorial.measure.analysis import Row
from spead_tutorial.measure.case import Case
from spead_tutorial.measure.records import Header, Received, Sample, Sent, Spacing, Timeline
from spead_tutorial.measure.stats import median

HEADER = Header(
    experiment="tour",
    time="2026-01-02T03:04:05+00:00",
    machine={"cpu": "a processor", "usable_cores": 2, "kernel": "6.1", "governor": None},
    lab={"kind": "dummy", "mtu": 9216},
    settings={"rounds": 3},
    versions={"python": "3.11", "numpy": "2.0", "compiler": None},
)

SAMPLE = Sent(
    case="6/1048576/c",
    round=0,
    warm_up=False,
    chapter=6,
    program="tut_6_send_pktsize",
    language="c",
    implementation="ours",
    random=False,
    heaps=10,
    heap_size=1 << 20,
    packet_size=9000,
    device="dummy1",
    kind="dummy",
    elapsed_ns=2_000_000,
    payload_bytes=10 << 20,
)

TIMELINE = Timeline(
    case="5/timeline",
    program="tut_5_send_pipeline",
    language="python",
    random=True,
    heap_size=1 << 20,
    packet_size=1472,
    prepare_ns=(0, 50),
    queued_ns=(10, 60),
    first_packet_ns=(20, 70),
    last_packet_ns=(30, 80),
    completed_ns=(35, 85),
    resumed_ns=(40, 90),
)


def make_spacing(
    program: str, is_random: bool, gap_us: int, every_us: int = 10, number: int = 0, heaps: int = 8
) -> Spacing:
    """Four messages of 64 KiB a heap, one as long after the other, and between heaps a gap."""
    times, time = [], 0
    for _ in range(heaps):
        times += [time + place * every_us * 1000 for place in range(4)]
        time += (3 * every_us + gap_us) * 1000
    return Spacing(
        program,
        "python",
        is_random,
        "",
        number,
        1 << 20,
        1472,
        heaps=tuple(heap for heap in range(8, 8 + heaps) for _ in range(4)),
        time_ns=tuple(times),
        message_bytes=(65536,) * (4 * heaps),
    )


def receiving(sample: Sent, **more: Any) -> Received:
    """The same of a receiver, as far as it can be."""
    common = {name: getattr(sample, name) for name in Sample.__struct_fields__}
    return Received(**common | more)


CASE = Case("ours", "c", "receive")

MOST_SENT = 6e9


def run_of(
    asked: float, capacity: float, number: int = 0, chance: bool = False, **more: Any
) -> Received:
    """What a receiver makes of a rate that loses something above its capacity, or by chance."""
    rate = min(asked, MOST_SENT)
    loses = chance or rate > capacity
    changed: dict[str, Any] = (
        {"case": CASE.name, "run": number, "asked_bytes_per_s": asked}
        | {"heaps": 1000, "heap_size": 1 << 20, "elapsed_ns": round(1000 * 2**20 / rate * 1e9)}
        | {"packets": 100, "received_packets": 99 if loses else 100}
        | {"received_dropped": int(loses), "received_heaps": 999 if loses else 1000}
        | more
    )
    return receiving(SAMPLE, **changed)


def row(implementation: str, rates: Sequence[float], failure: str | None = None) -> Row:
    samples = tuple(
        replace(
            SAMPLE,
            implementation=implementation,
            round=number,
            payload_bytes=10**9,
            elapsed_ns=round(1e18 / rate),
            failure=failure,
        )
        for number, rate in enumerate(rates)
    )
    return Row(samples, samples[-1], None if failure else median(list(rates)), failure)


def compared(yours: float, chapter: float = 3e9, last: float = 1.0) -> Comparison:
    """Rates that double in each of three rounds; in the last, yours is faster by a factor."""
    rates = {SKELETON: 1e9, YOURS: yours, "ours": chapter, "ceiling": 4e9}
    rounds = {who: [rate * 2**number for number in range(3)] for who, rate in rates.items()}
    rounds[YOURS][-1] *= last
    return Comparison({who: row(who, its) for who, its in rounds.items()}, None)

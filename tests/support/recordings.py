# SPDX-License-Identifier: BSD-3-Clause
"""Made-up recordings, one for each picture, and what draws them."""

import dataclasses
import statistics
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from spead_tutorial.chapters.catalogue import LANGUAGES, MEASURED, find_chapter
from spead_tutorial.measure.records import Received, Recording, Sample, Series, Split, Timeline
from spead_tutorial.results import plots
from spead_tutorial.results.plots.sweep import compared
from support.records import HEADER, SAMPLE, receiving

KIB, MIB = 1 << 10, 1 << 20
EIGHT, TEN = "tut_8_send_reuse_memory", "tut_10_send_reuse_heaps"
NEW_MEMORY = "tut_8_send_heap_size"
_MADE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
BARE = Series("ceiling", "c", "ceiling", "two threads")


def make_sample(program: str, language: str, rate_mb: float, **more: Any) -> Sample:
    payload = 10 * MIB
    numbers = {"ceiling": 0, NEW_MEMORY: 8}
    setting = [str(value) for name, value in more.items() if name != "round"]
    changed: dict[str, Any] = (
        {"case": "/".join([program, language, *setting])}
        | {"program": program, "language": language}
        | {"chapter": numbers.get(program) or find_number(program)}
        | {"payload_bytes": payload, "elapsed_ns": round(payload / rate_mb * 1e3)}
        | more
    )
    is_receiver = "recv" in program or program.startswith("receive")
    return (receiving if is_receiver else replace)(SAMPLE, **changed)


def find_number(program: str) -> int:
    return int(program.split("_")[1]) if program.startswith("tut_") else 0


def make_rounds(
    program: str, language: str, rates_mb: Sequence[float], **more: Any
) -> list[Sample]:
    return [
        make_sample(program, language, rate, round=number, **more)
        for number, rate in enumerate(rates_mb)
    ]


def around(rate_mb: float) -> list[float]:
    """Rates with the given one in the middle of them, in no order."""
    spread = [rate_mb * (1 + 0.01 * ((3 * number) % 7 - 3)) for number in range(7)]
    assert statistics.median(spread) == pytest.approx(rate_mb)
    return spread


def make_ladder(languages: Sequence[str] = MEASURED) -> Recording:
    steps = ((5, MIB), (6, MIB), (10, MIB), (10, 8192))
    samples = [
        one
        for chapter, heap_size in steps
        for language in languages
        for one in make_rounds(
            find_chapter(str(chapter)).name,
            language,
            [1000.0 * chapter + 10 * number for number in range(3)],
            heap_size=heap_size,
        )
    ]
    return Recording(HEADER, tuple(samples))


def _rows(name: str) -> Iterator[tuple[str, str, float, dict[str, Any]]]:
    """Program, language, rate and the rest of each point of a recording in `recordings.toml`."""
    made = _MADE[name]
    for row in made["rows"]:
        fields = made.get("common", {}) | row
        for place, rate in enumerate(fields.pop("rates")):
            one = {
                name: value[place] if isinstance(value, list) else value
                for name, value in fields.items()
            }
            yield one.pop("program"), one.pop("language"), rate, one


def example(name: str) -> Recording:
    """One of the recordings in `recordings.toml`."""
    samples = [
        one
        for program, language, rate, more in _rows(name)
        for one in make_rounds(program, language, around(rate), **more)
    ]
    return Recording(HEADER, tuple(samples))


AFTER = plots.Sweep(
    "Heaps used again make",
    compared((EIGHT, ""), (TEN, "")),
    ("chapter 8", "chapter 10"),
    "heap-sizes",
    limit=BARE,
)


def make_packets(mtu: int = 9216) -> Recording:
    header = replace(HEADER, lab={"kind": "dummy", "mtu": mtu})
    return dataclasses.replace(example("packets"), header=header)


def make_timeline(
    program: str, random: bool, prepare_us: int, send_us: int, variant: str = ""
) -> Timeline:
    """What a run with these times looks like: in chapter 5, two heaps are in flight."""
    n, now, free = 12, 0, 0
    overlapped = program == "tut_5_send_pipeline"
    times: dict[str, list[int]] = {name: [] for name in ("p", "q", "first", "last", "resumed")}
    for heap in range(n):
        times["p"].append(now)
        now += prepare_us * 1000
        times["q"].append(now)
        free = max(free, now)
        times["first"].append(free)
        free += send_us * 1000
        times["last"].append(free)
        waited_for = heap - 1 if overlapped else heap
        if waited_for >= 0:
            now = max(now, times["last"][waited_for])
            times["resumed"].append(now)
    if overlapped:
        times["resumed"].append(max(now, free))
    order = ("p", "q", "first", "last", "last", "resumed")
    columns: list[Any] = [tuple(times[name]) for name in order]
    case = f"{program}, random {random}, {variant}"
    return Timeline(case, program, "python", random, MIB, 1472, *columns, variant=variant)  # type: ignore[misc]


def make_pipeline() -> Recording:
    timelines = (
        make_timeline("tut_5_send_pipeline", False, 300, 800, "link of 10 Gb/s"),
        make_timeline("tut_5_send_pipeline", False, 300, 400),
        make_timeline("tut_4_send_perf", True, 8000, 2000),
        make_timeline("tut_4_send_constant", False, 300, 400),
        make_timeline("tut_5_send_pipeline", True, 8000, 2000),
    )
    return dataclasses.replace(example("pipeline"), timelines=timelines)


def make_where() -> Recording:
    """Heaps that take twice as long as the program runs; the stream of chapter 10 runs no less."""
    samples, splits = [], []
    for heap_size, ns in ((8 * KIB, 1000), (MIB, 50_000)):
        for program in (TEN, "tut_13_send_hot"):
            for language in ("python", "c"):
                found = {"fill": 10, "program": 2, "queue": 3, "wake-up": 5}
                sends = {"packetizing": 2, "copy": 20, "stack": 25, "looking": 3}
                both = found | sends if "13" in program else found
                for number in range(7):
                    cpu = {"program_cpu_ns": ns * 10, "cpu_user_ns": ns * 10, "cpu_system_ns": 0}
                    more = {"round": number, "heap_size": heap_size, "elapsed_ns": ns * 20}
                    one = make_sample(program, language, 1.0, **more, **cpu, heaps=10)
                    if "10" in program:
                        one = replace(one, cpu_system_ns=ns * 15)
                    samples.append(one)
                    others = sends if "10" in program else {}
                    splits.append(
                        Split(one.case, number, program, language, 10, heap_size, 1, both, others)
                    )
    return Recording(HEADER, tuple(samples), splits=tuple(splits))


def make_lossless() -> Recording:
    """Searches that have found those rates."""
    samples = [
        one
        for program, language, rate, more in _rows("lossless")
        for number, best in enumerate(around(rate))
        for one in make_search(program, language, best, round=number, **more)
    ]
    return Recording(HEADER, tuple(samples))


def make_bounds() -> Recording:
    """The same, but chapter 7 loses nothing, and its sender could not keep any higher rate."""
    samples = []
    for one in make_lossless().samples:
        if one.program != "tut_7_recv_power":
            samples.append(one)
        elif isinstance(one, Received) and not one.received_dropped:
            samples.append(replace(one, asked_bytes_per_s=2 * (one.asked_bytes_per_s or 0)))
    return Recording(HEADER, tuple(samples))


def make_search(program: str, language: str, best_mb: float, **more: Any) -> list[Sample]:
    """A search that has found a rate: three runs at it, and two with losses at some above it."""
    runs: list[Sample] = []
    for times_as_high, n, lost in ((1, 3, 0), (2, 2, 500), (1.05, 2, 20)):
        for _ in range(n):
            asked = 1e6 * best_mb * times_as_high
            setting = {"heaps": 10 * MIB // more["heap_size"], "asked_bytes_per_s": asked}
            got = {"received_packets": 1000 - lost, "received_dropped": lost}
            got |= {"received_heaps": setting["heaps"] - bool(lost), "run": len(runs)}
            runs.append(make_sample(program, language, asked / 1e6, **more, **setting, **got))
    return [replace(one, case=f"{one.series}, {one.heap_size}") for one in runs]


def with_warm_ups(recording: Recording) -> Recording:
    """The same recording, after warm-ups that would be seen if they were drawn."""
    warm = (
        replace(one, warm_up=True, elapsed_ns=10, page_faults=10**9)
        for one in recording.samples
        if one.round == 0
    )
    return dataclasses.replace(recording, samples=(*warm, *recording.samples))


#: The ladder, where C++ was measured, too.
IN_CPP = "ladder in C++"

#: What draws each picture, and of what.
PICTURES: dict[str, tuple[plots.Draw, Recording]] = {
    name: (draw, with_warm_ups(recording))
    for name, draw, recording in (
        ("ladder", plots.ladder, make_ladder()),
        (IN_CPP, plots.ladder, make_ladder(LANGUAGES)),
        ("sweep", AFTER, example("sweep")),
        ("causes", plots.causes, example("memory")),
        ("packets", plots.packet_sizes, make_packets()),
        ("loopback", plots.loopback, example("loopback")),
        ("pipeline", plots.pipeline, make_pipeline()),
        ("timeline", plots.timeline, make_pipeline()),
        ("where", plots.where, make_where()),
        ("receiving", plots.receiving, example("receiving")),
        ("receivers", plots.receivers_ladder, make_lossless()),
        ("lost", plots.lost, example("lost")),
        ("hot", plots.hot, example("hot")),
        ("one slow", plots.one_slow, example("one_slow")),
    )
}
OF_SAMPLES = sorted(set(PICTURES) - {"timeline", "where"})

# SPDX-License-Identifier: BSD-3-Clause
"""Made-up recordings, one for each picture, and what draws them."""

import dataclasses
import itertools
import statistics
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from spead_tutorial.chapters.catalogue import LANGUAGES, MEASURED, find_chapter
from spead_tutorial.measure.records import Recording, Sample, Series, Split, Timeline
from spead_tutorial.results import plots
from support.records import HEADER, SAMPLE, make_spacing, receiving

KIB, MIB = 1 << 10, 1 << 20
EIGHT, TEN = "tut_8_send_reuse_memory", "tut_10_send_reuse_heaps"
NEW_MEMORY = "tut_8_send_heap_size"
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


def around(rate_mb: float, n: int = 7) -> list[float]:
    """Rates with the given one in the middle of them, in no order."""
    spread = [rate_mb * (1 + 0.01 * ((3 * number) % n - n // 2)) for number in range(n)]
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


def make_sweep() -> Recording:
    samples = []
    for place, heap_size in enumerate((8 * KIB, 64 * KIB, 512 * KIB, 4 * MIB)):
        for implementation, language, program, rate in (
            ("ours", "python", EIGHT, 500),
            ("ours", "python", TEN, 2000),
            ("ours", "c", EIGHT, 900),
            ("ours", "c", TEN, 2600),
            ("spead2", "python", EIGHT, 400),
            ("spead2", "python", TEN, 1100),
        ):
            samples += make_rounds(
                program,
                language,
                around(rate + 1700.0 * place),
                implementation=implementation,
                heap_size=heap_size,
            )
        samples += make_rounds(
            "ceiling",
            "c",
            around(8000.0 + 100 * place),
            implementation="ceiling",
            variant="two threads",
            heap_size=heap_size,
        )
    return Recording(HEADER, tuple(samples))


AFTER = plots.Sweep(
    "Heaps used again: {8 KiB} at 8 KiB, {4 MiB} at 4 MiB",
    (
        (Series("ours", "python", TEN), "chapter 10, Python"),
        (Series("ours", "c", TEN), "chapter 10, C"),
        (Series("spead2", "python", TEN), "spead2, Python"),
    ),
    "tut-10",
    bare=BARE,
    before=tuple((Series("ours", one, EIGHT), Series("ours", one, TEN)) for one in ("python", "c")),
    gained="chapter 8",
)


def make_memory() -> Recording:
    machine = HEADER.machine | {"caches_bytes": {"L1d": 32 * KIB, "L2": 2 * MIB, "L3": 480 * MIB}}
    samples = []
    for language, heap_size in itertools.product(("python", "c"), (MIB, 16 * MIB, 64 * MIB)):
        kinds = [(NEW_MEMORY, "", 3000.0, heap_size // 4096), (EIGHT, "", 6000.0, 0)]
        kinds += [(NEW_MEMORY, "huge pages", 4500.0, heap_size // (2 * MIB))]
        kinds += [(NEW_MEMORY, "memory kept", 5500.0, 1)]
        for program, variant, rate, faults in kinds:
            samples += make_rounds(
                program,
                language,
                around(rate + (100 if language == "c" else 0)),
                heap_size=heap_size,
                variant=variant,
                page_faults=10 * faults,
            )
    return Recording(replace(HEADER, machine=machine), tuple(samples))


def make_packets(mtu: int = 9216) -> Recording:
    samples = []
    for size, rate in ((512, 4000.0), (1472, 8000.0), (9000, 12000.0), (9188, 12100.0)):
        for language in ("python", "c"):
            program = "tut_6_send_pktsize"
            samples += make_rounds(program, language, around(rate), packet_size=size)
        more = {"implementation": "ceiling", "variant": "two threads"}
        # The bare loop is told what is really sent.
        samples += make_rounds("ceiling", "c", around(2 * rate), packet_size=size // 8 * 8, **more)
    for language in ("python", "c"):
        samples += make_rounds("tut_6_send_pktsize", language, around(3000.0), packet_size=16384)
    header = replace(HEADER, lab={"kind": "dummy", "mtu": mtu})
    return Recording(header, tuple(samples))


def make_loopback() -> Recording:
    evidence: dict[str, dict[str, Any]] = {
        "no listener": {"icmp_errors": 1180, "kind": "loopback"},
        "slow listener": {"received_packets": 600, "received_dropped": 580, "kind": "loopback"},
        "listener": {"received_packets": 1180, "received_dropped": 0, "kind": "loopback"},
        "": {},
    }
    rates = {"no listener": 900.0, "slow listener": 700.0, "listener": 1500.0, "": 4000.0}
    samples = [
        one
        for language in ("python", "c")
        for variant, more in evidence.items()
        for one in make_rounds(
            "tut_6_send_pktsize",
            language,
            around(rates[variant]),
            variant=variant,
            packets=1180,
            **more,
        )
    ]
    return Recording(HEADER, tuple(samples))


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
    samples = []
    link = "link of 10 Gb/s"
    for language, (variant, scale) in itertools.product(
        ("python", "c"), (("", 1.0), ("pinned", 1.1), (link, 0.9))
    ):
        for program, random, rate in (
            ("tut_4_send_perf", False, 100.0),
            ("tut_5_send_pipeline", True, 150.0),
            ("tut_4_send_constant", False, 2000.0),
            ("tut_5_send_pipeline", False, 3000.0),
        ):
            rates = around(scale * rate)
            samples += make_rounds(program, language, rates, random=random, variant=variant)
    timelines = (
        make_timeline("tut_5_send_pipeline", False, 300, 800, link),
        make_timeline("tut_5_send_pipeline", False, 300, 400),
        make_timeline("tut_4_send_perf", True, 8000, 2000),
        make_timeline("tut_4_send_constant", False, 300, 400),
        make_timeline("tut_5_send_pipeline", True, 8000, 2000),
    )
    return Recording(HEADER, tuple(samples), timelines)


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


def make_spacings() -> Recording:
    runs = [
        make_spacing(program, is_random, gap + 7 * number, 10, number)
        for program, is_random, gap in (
            ("tut_5_send_pipeline", True, 2000),
            ("tut_4_send_perf", True, 6000),
            ("tut_5_send_pipeline", False, 20),
        )
        for number in range(7)
    ]
    return Recording(HEADER, (), spacings=tuple(runs))


def make_ceiling() -> Recording:
    samples = []
    for heap_size, scale in ((8 * KIB, 1.0), (MIB, 2.0)):
        for variant, rate in (
            ("two threads", 8000.0),
            ("one thread", 7000.0),
            ("one thread, 2 streams", 12000.0),
            ("one thread, no fill", 7500.0),
            ("one thread, zero-copy", 6000.0),
            ("two threads, zero-copy", 5000.0),
            ("one thread, no fill, zero-copy, huge pages", 10000.0 * scale),
        ):
            more = {"implementation": "ceiling", "variant": variant, "heap_size": heap_size}
            samples += make_rounds("ceiling", "c", around(rate), **more)
    return Recording(HEADER, tuple(samples))


def make_receiving() -> Recording:
    """Ours is half as fast again as the peer, and needs half of its CPU time."""
    samples = []
    for packet_size, scale in ((1472, 1.0), (9000, 2.0)):
        for heap_size in (64 * KIB, MIB, 16 * MIB):
            for implementation, language, rate, cpu_ns in (
                ("ours", "c", 4500.0, MIB),
                ("ours", "python", 3500.0, 2 * MIB),
                ("spead2-source", "c", 3000.0, 2 * MIB),
                ("spead2-source", "python", 2000.0, 3 * MIB),
                ("ceiling", "c", 5000.0, MIB),
            ):
                more: dict[str, Any] = {"variant": "in turns"}
                more |= {"implementation": implementation, "heap_size": heap_size}
                more |= {"packet_size": packet_size}
                more |= {"chapter": 0, "cpu_user_ns": 0, "cpu_system_ns": cpu_ns}
                samples += make_rounds("receive", language, around(scale * rate), **more)
    return Recording(HEADER, tuple(samples))


def make_lossless() -> Recording:
    """Searches that have found 1500 MB/s for chapter 3 in C, and twice as much for chapter 7."""
    samples = []
    for heap_size, packet_size in ((MIB, 9000), (64 * KIB, 9000)):
        for implementation, language, program, rate in (
            ("ours", "c", "tut_3_recv", 1500.0),
            ("ours", "python", "tut_3_recv", 500.0),
            ("ours", "c", "tut_7_recv_power", 3000.0),
            ("ours", "python", "tut_7_recv_power", 1500.0),
            ("ours", "c", "receive", 4500.0),
            ("ours", "python", "receive", 3500.0),
            ("spead2-source", "c", "receive", 2000.0),
            ("spead2-source", "python", "receive", 1800.0),
            ("ceiling", "c", "receive", 5000.0),
        ):
            more: dict[str, Any] = {"implementation": implementation, "packets": 1000}
            more |= {"heap_size": heap_size, "packet_size": packet_size}
            for number, best in enumerate(around(rate)):
                samples += make_search(program, language, best, round=number, **more)
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


def make_lost() -> Recording:
    """Of 1000 packets 10 are lost on the way, or 100 in the socket, or 400 by the ring."""
    samples = []
    for variant, way, pieces, ring, socket in (
        ("0.1 GB/s, 1 % lost", 10, 190, 0, 0),
        ("0.1 GB/s", 0, 0, 0, 0),
        ("0.1 GB/s, ring of 1", 0, 150, 0, 100),
        ("0.1 GB/s, ring of 1, full ring drops", 0, 0, 400, 0),
        ("0.1 GB/s, buffer of 8 KiB", 0, 300, 0, 100),
    ):
        got = 1000 - way - pieces - ring - socket
        more: dict[str, Any] = {"packets": 1000, "lost_packets": way, "incomplete_packets": pieces}
        more |= {"ring_dropped_packets": ring, "received_dropped": socket, "received_heaps": got}
        if variant.endswith("ring of 1"):
            more |= {"ring_waits": 40, "longest_ring_wait_ns": 5_000_000}
        more |= {"heaps": 1000, "heap_size": 8000, "chapter": 7, "variant": variant}
        samples += make_rounds("receive_lost", "python", around(100.0), **more)
    return Recording(HEADER, tuple(samples))


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
        ("sweep", AFTER, make_sweep()),
        ("memory", plots.memory, make_memory()),
        ("causes", plots.causes, make_memory()),
        ("packets", plots.packet_sizes, make_packets()),
        ("loopback", plots.loopback, make_loopback()),
        ("pipeline", plots.pipeline, make_pipeline()),
        ("timeline", plots.timeline, make_pipeline()),
        ("where", plots.where, make_where()),
        ("spacing", plots.spacing, make_spacings()),
        ("ceiling", plots.ceiling, make_ceiling()),
        ("receiving", plots.receiving, make_receiving()),
        ("receivers", plots.receivers_ladder, make_lossless()),
        ("loss", plots.loss, make_lossless()),
        ("lost", plots.lost, make_lost()),
    )
}
OF_SAMPLES = sorted(set(PICTURES) - {"timeline", "where", "spacing"})

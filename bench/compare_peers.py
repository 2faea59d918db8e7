# SPDX-License-Identifier: BSD-3-Clause
"""How fast the chapters are beside spead2's Python binding, and beside bare system calls.

In each round all programs run once, in a random order, one after the other, in one lab. Ratios
are taken within rounds. A run whose claims the lab's device does not confirm has no rate.
"""

import argparse
import dataclasses
import datetime
import importlib.metadata
import importlib.resources
import json
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spead_tutorial import doctor
from spead_tutorial.lab import DEVICE, Counters, Lab, accounted
from spead_tutorial.programs import LANGUAGES, Options, find_chapter, run_program, sample
from spead_tutorial.records import Header, RecordError, Recording, Sample, Writer, read
from spead_tutorial.stats import Estimate, gain, median

HERE = Path(__file__).resolve().parent
SEED = 31
TIMEOUT_S = 120.0
QUICK = 4  # a quick run sends one part in so many
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
PACKET_SIZE = 9000


# ---------------------------------------------------------------------------------------
# What is compared


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """One program at one setting.

    Parameters
    ----------
    who : str
        ``"python"`` or ``"c"`` for ours, ``"spead2"``, or ``"ceiling"``.
    chapter : int
        Which chapter's program; 0 for ``ceiling``.
    heap_size : int
        Bytes of samples in a heap.
    n_bytes : int
        Bytes of samples to send in a run: what takes half a second to a second.
    """

    who: str
    chapter: int
    heap_size: int
    n_bytes: int

    @property
    def name(self) -> str:
        """What a record calls it."""
        return f"{self.chapter}/{self.heap_size}/{self.who}"

    def heaps(self, share: int) -> int:
        """How many heaps one `share`-th of it has."""
        return max(2, self.n_bytes // share // self.heap_size)


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """Two cases, and what the ratio of their rates has to be.

    Parameters
    ----------
    ours, theirs : Case
        Of which the ratio is taken.
    required : float or None
        The smallest ratio that is good enough; None where it is for information.
    """

    ours: Case
    theirs: Case
    required: float | None


def _with_spead2(chapter: int, heap_size: int, n_bytes: int, required: float = 1.0) -> Comparison:
    ours, theirs = (Case(who, chapter, heap_size, n_bytes) for who in ("python", "spead2"))
    return Comparison(ours, theirs, required)


def _with_ceiling(chapter: int, heap_size: int, required: float | None = None) -> Comparison:
    ours = Case("c", chapter, heap_size, (1 if (chapter, heap_size) == (8, 8 * KIB) else 8) * GIB)
    return Comparison(ours, Case("ceiling", 0, heap_size, 8 * GIB), required)


COMPARISONS = (
    _with_spead2(8, 8 * KIB, 384 * MIB),
    _with_spead2(8, 64 * KIB, 2 * GIB),
    _with_spead2(8, MIB, 4 * GIB),
    _with_spead2(10, 8 * KIB, 2 * GIB, required=2.0),
    _with_spead2(10, 64 * KIB, 4 * GIB),
    _with_spead2(10, MIB, 6 * GIB),
    _with_spead2(11, 8 * KIB, 6 * GIB),
    _with_spead2(11, 64 * KIB, 6 * GIB),
    _with_spead2(11, MIB, 6 * GIB),
    _with_ceiling(11, 8 * KIB, required=0.8),
    _with_ceiling(6, MIB, required=0.8),
    _with_ceiling(8, 8 * KIB),
    _with_ceiling(10, 8 * KIB),
    _with_ceiling(8, MIB),
    _with_ceiling(10, MIB),
)


# ---------------------------------------------------------------------------------------
# Measuring


def measure(path: Path, comparisons: Sequence[Comparison], rounds: int, share: int) -> Recording:
    """Run all cases of some comparisons, and write what they say to a file.

    Parameters
    ----------
    path : path
        The file.
    comparisons : sequence of Comparison
        What to run.
    rounds : int
        How many rounds are counted; one more, before them, is not.
    share : int
        What part of a case to send: one in so many.
    """
    cases = list(dict.fromkeys(case for pair in comparisons for case in (pair.ours, pair.theirs)))
    order = random.Random(SEED)
    unfinished = path.with_suffix(".part")
    try:
        with Lab() as lab, Writer(unfinished, _header(lab, rounds, share)) as writer:
            for number in range(-1, rounds):
                print("warming up" if number < 0 else f"round {number + 1} of {rounds}", flush=True)
                order.shuffle(cases)
                for case in cases:
                    one = _run(lab, case, share, max(0, number), number < 0)
                    writer.add(one)
                    if one.failure is not None:
                        print(f"  {case.name}: {one.failure}", flush=True)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return read(path)


def _header(lab: Lab, rounds: int, share: int) -> Header:
    return Header(
        experiment="peers",
        time=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        machine=doctor.machine_facts(),
        lab={"kind": lab.kind, "mtu": lab.mtu},
        settings={"rounds": rounds, "share": share, "seed": SEED},
        versions=doctor.versions() | {"spead2": importlib.metadata.version("spead2")},
        revision=doctor.revision(),
    )


def _run(lab: Lab, case: Case, share: int, number: int, warm_up: bool) -> Sample:
    if case.who not in LANGUAGES:
        return _run_other(lab, case, share, number, warm_up)
    chapter = find_chapter(str(case.chapter))
    options = Options(
        heaps=case.heaps(share),
        heap_size=case.heap_size if "H" in chapter.accepted else None,
        packet_size=PACKET_SIZE,
    )
    result = run_program(lab, chapter, case.who, options, timeout=TIMEOUT_S)
    return sample(result, case=case.name, number=number, warm_up=warm_up)


def _run_other(lab: Lab, case: Case, share: int, number: int, warm_up: bool) -> Sample:
    """Run a program that is not one of ours: spead2's, or ``ceiling``."""
    program, argv = _other(case)
    argv += ["-n", str(case.heaps(share)), "-H", str(case.heap_size), "-p", str(PACKET_SIZE)]
    before = lab.counters()
    try:
        done = lab.run(
            [*argv, "--json", lab.address, str(lab.port)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        failure = _complaint(program, done)
        found = {} if failure else json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        failure, found = f"{program}: it did not end within {TIMEOUT_S:g} s", {}
    counted = lab.counters() - before
    known = {field.name for field in dataclasses.fields(Sample)} - {"case", "round", "warm_up"}
    told = {
        "chapter": case.chapter,
        "program": program,
        "language": "c" if case.who == "ceiling" else "python",
        "random": False,
        "heaps": case.heaps(share),
        "heap_size": case.heap_size,
        "packet_size": PACKET_SIZE,
    }
    one = Sample(
        case=case.name,
        round=number,
        warm_up=warm_up,
        device=DEVICE,
        kind=counted.kind,
        counted_packets=counted.packets,
        counted_bytes=counted.bytes,
        failure=failure,
        **told | {name: value for name, value in found.items() if name in known - told.keys()},
    )
    return one if failure else dataclasses.replace(one, failure=_contradiction(one, found, counted))


def _other(case: Case) -> tuple[str, list[str]]:
    """Name a program that is not one of ours, and how it is started."""
    if case.who == "ceiling":
        path = importlib.resources.files("spead_tutorial").joinpath("bin", "ceiling")
        return "ceiling", [str(path), "-t", "2"]
    program = find_chapter(str(case.chapter)).name
    return program, [sys.executable, str(HERE / "peer" / f"{program}.py")]


def _complaint(program: str, done: "subprocess.CompletedProcess[str]") -> str | None:
    """Say in a line why a program failed; None where it did not."""
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return lines[-1] if lines else f"{program}: it ended with status {done.returncode}"


def _contradiction(one: Sample, found: dict[str, Any], counted: Counters) -> str | None:
    """Say where what a program claims is not what the device counted; None where it is."""
    heaps = (one.heaps, one.heaps * one.heap_size)
    if (found["heaps"], found["payload_bytes"]) != heaps:
        return f"{one.program}: it sent {found['heaps']} heaps, not {one.heaps}"
    # spead2 does not say how many messages it made of its packets. The bytes tell whether the
    # device's count can be right: each message has one set of headers.
    messages = counted.packets if one.messages is None else one.messages
    if messages > (one.packets or 0):
        return f"{one.program}: the device counted {messages} packets, more than {one.packets}"
    held = accounted(
        counted.packets,
        counted.bytes,
        packets=one.packets or 0,
        messages=messages,
        spead_bytes=one.spead_bytes or 0,
        link_header=counted.link_header,
    )
    return None if held.ok else f"{one.program}: {held.text}"


# ---------------------------------------------------------------------------------------
# Showing


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """What the samples of a comparison came to.

    Parameters
    ----------
    comparison : Comparison
        Which.
    ours, theirs : float
        Median rates, payload bytes/s.
    ratio : Estimate
        Of the ratios within rounds.
    our_cpu, their_cpu : float
        Median CPU seconds for each 10⁹ bytes of payload.
    """

    comparison: Comparison
    ours: float
    theirs: float
    ratio: Estimate
    our_cpu: float
    their_cpu: float

    @property
    def met(self) -> bool | None:
        """Whether the requirement is met; None where noise hides it, or there is none."""
        required = self.comparison.required
        if required is None or self.ratio.low < required <= self.ratio.high:
            return None
        return self.ratio.low >= required

    @property
    def verdict(self) -> str:
        """The same in words."""
        required = self.comparison.required
        if required is None:
            return ""
        words = {True: "yes", False: "NO", None: "cannot tell"}
        return f"≥ {required:g}: {words[self.met]}"


def rows(recording: Recording, comparisons: Sequence[Comparison]) -> list[Row | Comparison]:
    """Sum a recording up; a comparison that has no ratio stands for itself."""
    found: list[Row | Comparison] = []
    for pair in comparisons:
        ours, theirs = (
            {
                one.round: one
                for one in recording.samples
                if one.case == case.name and not one.warm_up and one.rate is not None
            }
            for case in (pair.ours, pair.theirs)
        )
        if not ours.keys() & theirs.keys():
            found.append(pair)
            continue
        our_rates, their_rates = (
            {number: one.rate or 0.0 for number, one in samples.items()}
            for samples in (ours, theirs)
        )
        found.append(
            Row(
                pair,
                median(list(our_rates.values())).median,
                median(list(their_rates.values())).median,
                gain(their_rates, our_rates),
                median([_cpu(one) for one in ours.values()]).median,
                median([_cpu(one) for one in theirs.values()]).median,
            )
        )
    return found


def _cpu(one: Sample) -> float:
    return ((one.cpu_user_ns or 0) + (one.cpu_system_ns or 0)) / (one.payload_bytes or 1)


def table(recording: Recording, comparisons: Sequence[Comparison]) -> str:
    """Write a recording as a table for people."""
    lines = [
        f"{'chapter':>7} {'heap':>7}  {'ours':6} {'beside':8}"
        f" {'MB/s':>7} {'theirs':>7} {'ratio':>6} {'95 %':^13} {'CPU s/GB':>8} {'theirs':>7}"
    ]
    for row in rows(recording, comparisons):
        pair = row.comparison if isinstance(row, Row) else row
        size = pair.ours.heap_size
        heap = f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"
        place = f"{pair.ours.chapter:>7} {heap:>7}  {pair.ours.who:6} {pair.theirs.who:8}"
        if isinstance(row, Comparison):
            lines.append(f"{place} no rate")
            continue
        ratio = f"{row.ratio.median:6.2f} [{row.ratio.low:5.2f},{row.ratio.high:5.2f}]"
        rates = f"{row.ours / 1e6:7.0f} {row.theirs / 1e6:7.0f}"
        lines.append(
            f"{place} {rates} {ratio} {row.our_cpu:8.3f} {row.their_cpu:7.3f}  {row.verdict}"
        )
    header = recording.header
    failures = sum(one.failure is not None for one in recording.samples)
    warm_ups = sum(one.warm_up for one in recording.samples)
    return "\n".join(
        [
            *lines,
            "",
            f"MB/s: 10⁶ bytes of samples a second, median of {header.settings['rounds']} rounds;"
            " ratio: median of those within rounds.",
            f"{len(recording.samples)} samples, {warm_ups} of them not counted, {failures} without"
            f" a rate. Sent to: {header.lab['kind']}, MTU {header.lab['mtu']};"
            f" spead2 {header.versions.get('spead2')}.",
        ]
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, or read a record, and print the table; 1 where something is not as it has to be."""
    parser = argparse.ArgumentParser(prog="python -m bench.compare_peers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="rounds that count (9)")
    parser.add_argument("--quick", action="store_true", help=f"send a {QUICK}th only")
    parser.add_argument(
        "-o", dest="name", default="peers", help="name of the record in bench/results (peers)"
    )
    parser.add_argument("--table", type=Path, metavar="FILE", help="print the table of a record")
    options = parser.parse_args(argv)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    if options.table is not None:
        try:
            recording = read(options.table)
        except (OSError, RecordError) as error:
            parser.error(str(error))
    else:
        path = HERE / "results" / f"{options.name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        share = QUICK if options.quick else 1
        recording = measure(path, COMPARISONS, options.rounds, share)
        print()
    print(table(recording, COMPARISONS))
    failed = any(one.failure is not None for one in recording.samples)
    unmet = any(
        isinstance(row, Comparison) or row.met is False for row in rows(recording, COMPARISONS)
    )
    return int(failed or unmet)


if __name__ == "__main__":
    sys.exit(main())

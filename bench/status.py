# SPDX-License-Identifier: BSD-3-Clause
"""A recording as a table for people, with what makes its numbers less certain than they look."""

from collections.abc import Callable
from statistics import median

from bench.sweeps import find_sweep
from spead_tutorial.measure import search
from spead_tutorial.measure.analysis import ROUNDS_FOR_A_CLAIM, Row, rates_by_round, rows
from spead_tutorial.measure.records import Recording, Sample, Sent, Series, Turn
from spead_tutorial.measure.stats import Estimate, spread
from spead_tutorial.results.account import Account
from spead_tutorial.results.tables import Column, Table, estimate, plain
from spead_tutorial.results.units import size

#: An interval wider than this share of its median is noise.
_NOISY = 0.10
_SHORT_S = {"full": 0.3}  # of other sizes one knows that they are rough
_BUSY, _STOLEN = 0.5, 0.01
_FEWEST_FOR_A_FLOOR = 4

Setting = tuple[Series, int, int]


def by_setting(recording: Recording) -> dict[Setting, list[Sample]]:
    """Sort the samples that count into series and sizes."""
    found: dict[Setting, list[Sample]] = {}
    for one in recording.samples:
        if not one.warm_up:
            found.setdefault((one.series, one.heap_size, one.packet_size), []).append(one)
    return found


def is_noisy(rate: Estimate | None) -> bool:
    """Whether the interval, or the range, is too wide to say much."""
    return rate is not None and rate.high - rate.low > _NOISY * rate.median


def _merged(row: Row) -> float | None:
    """How many packets the device got as one, in the mean: 1.0 tells of no segmentation offload."""
    last = row.last
    if not isinstance(last, Sent) or not last.packets or not last.counted_packets:
        return None
    return last.packets / last.counted_packets


def _marks(row: Row) -> str:
    marks = {
        "noisy": is_noisy(row.rate),
        f"{row.repeated} repeated": row.repeated,
        "at least": search.is_bound(row.samples),
    }
    return " ".join(mark for mark, is_so in marks.items() if is_so)


def tables(recording: Recording) -> str:
    """Write what there is of samples, and of what else was observed."""
    try:
        cases = find_sweep(recording.header.experiment).cases
    except ValueError:  # a tour, or what a notebook measured
        cases = ()
    observers = dict.fromkeys(case.observer for case in cases)
    own = [observer.table(recording) for observer in observers]
    if recording.those(Turn):
        own.append("\n".join(map(plain, Account.of(recording).lines())))
    samples = [table(recording)] if recording.samples or not any(own) else []
    return "\n\n".join([*samples, *filter(None, own)])


def failures(recording: Recording) -> set[str]:
    """Return why something has no rate, or is not known."""
    found = {row.failure for row in rows(recording)}
    others = (one for one in recording.standing if not isinstance(one, Sample))
    found |= {getattr(one, "failure", None) for one in others}
    return set(filter(None, found))


def table(recording: Recording) -> str:
    """Write what samples came to, a line for each case."""
    found = sorted(
        rows(recording),
        key=lambda row: (row.last.heap_size, row.last.packet_size, str(row.series)),
    )

    def failure(row: Row) -> str | None:
        return None if row.failure is None else f"failed: {row.failure}"

    ends = spread(row.rate.n for row in found if row.rate is not None)
    names: list[Column[Row]] = [
        Column("heap", lambda row: row.last.heap_size, size),
        Column("packet", lambda row: row.last.packet_size),
        Column("program", lambda row: row.series, is_words=True),
        Column("n", lambda row: len(row.samples)),
    ]
    values: list[Column[Row]] = [
        *estimate(("MB/s", ends), lambda row: row.rate, lambda x: f"{x / 1e6:.1f}"),
        Column("CPU s/GB", lambda row: row.cpu_s_per_gb, "{:.3f}".format),
        Column("program", lambda row: row.program_busy, "{:.0%}".format),
        Column("others", lambda row: row.others_busy, "{:.0%}".format),
        Column("merged", _merged, "{:.1f}".format),
        Column("", _marks, is_words=True),
    ]
    return str(Table(names, values, found, failure))


def noise_floor(recording: Recording) -> float | None:
    """Return by what share even and odd rounds differ, by chance alone, in one case of 20."""
    differences = []
    for samples in by_setting(recording).values():
        halves: tuple[list[float], list[float]] = [], []
        for number, rate in rates_by_round(samples).items():
            halves[number % 2].append(rate)
        if min(map(len, halves)) >= _FEWEST_FOR_A_FLOOR // 2:
            ratio = median(halves[0]) / median(halves[1])
            differences.append(max(ratio, 1 / ratio) - 1)
    return sorted(differences)[int(0.95 * len(differences))] if differences else None


def advice(recording: Recording) -> list[str]:
    """Say what makes the numbers less certain than they look, and what to do about it."""
    notes = []
    all_rows = rows(recording)
    failed = sum(row.failure is not None for row in all_rows)
    if failed:
        notes.append(
            f"{failed} of {len(all_rows)} cases failed, and have no rate: see the table; the"
            " command that began it repeats the samples that failed"
        )
    if recording.superseded:
        notes.append(
            f"{len(recording.superseded)} samples failed and were repeated: the later ones count"
        )
    fewest = min((len(row.samples) for row in all_rows), default=0)
    if all_rows and fewest < ROUNDS_FOR_A_CLAIM:
        notes.append(
            f"{fewest} rounds: fewer than {ROUNDS_FOR_A_CLAIM} make no claim (--rounds"
            f" {ROUNDS_FOR_A_CLAIM})"
        )
    noisy = [row.rate.n for row in all_rows if row.rate is not None and is_noisy(row.rate)]
    if noisy:
        notes.append(
            f"{len(noisy)} of {len(all_rows)} cases have a {spread(noisy)} wider than {_NOISY:.0%}"
            " of their median: stop what else runs, then more --rounds add to all"
        )
    notes += _of_machine(recording.header.machine)
    if any(map(search.is_search, recording.samples)):
        notes.append(
            "rates are the highest without loss, as found by a search in each round: to within"
            f" {search.THOROUGH.narrow - 1:.0%}; 'at least' where the sender could do no more"
        )
    notes += _of_samples(recording)
    floor = noise_floor(recording)
    if floor is not None:
        notes.append(f"noise floor: the same case twice differs by up to {floor:.0%} here (A/A)")
    return notes


def _of_machine(machine: dict[str, object]) -> list[str]:
    notes = []
    governor, virtual = machine.get("governor"), machine.get("virtualisation")
    if governor not in (None, "performance"):
        notes.append(f"governor {governor}: cpupower frequency-set -g performance (as root)")
    if machine.get("turbo") == "on":
        notes.append("turbo is on: the clock depends on temperature and neighbours")
    if virtual not in (None, "none"):
        notes.append(f"a virtual machine ({virtual}): its neighbours are in the numbers")
    return notes


def _of_samples(recording: Recording) -> list[str]:
    counted = [sample for sample in recording.samples if not sample.warm_up and sample.elapsed_ns]
    short = _SHORT_S.get(str(recording.header.settings.get("size")), 0.0)
    # The runner itself, one program after the other, makes up a load of about 1 for each core
    # that the program uses; what is more than that was somebody else.
    cores = int(recording.header.machine.get("usable_cores") or 1)
    doubtful: dict[str, Callable[[Sample], bool]] = {
        f"lasted less than {short:g} s": lambda one: (one.elapsed_ns or 0) < short * 1e9,
        f"were taken at a load above {cores}: measure when nothing else runs": (
            lambda one: (one.load or 0) > cores + _BUSY
        ),
        f"were taken while the hypervisor gave more than {_STOLEN:.0%} of the time to others": (
            lambda one: (one.steal_ns or 0) > _STOLEN * cores * (one.elapsed_ns or 1)
        ),
    }
    found = {words: sum(map(is_so, counted)) for words, is_so in doubtful.items()}
    return [f"{n} of {len(counted)} samples {words}" for words, n in found.items() if n]

# SPDX-License-Identifier: BSD-3-Clause
"""What is done with whole records: the parts of a sweep put together, and other formats."""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

from spead_tutorial.records import (
    RecordError,
    Recording,
    Taken,
    Writer,
    identity,
    locked,
    read,
    words_for,
)

__all__ = ["FORMATS", "export", "merge"]

_MAY_DIFFER = ("shard", "rounds", "skipped")


def merge(paths: Sequence[Path], output: Path) -> Recording:
    """Put the parts of a sweep together, which may be of several machines.

    Parameters
    ----------
    paths : sequence of path
        The parts.
    output : path
        The record of them all.

    Raises
    ------
    RecordError
        Where they are not parts of one sweep, or hold the same sample twice; or where another
        run writes to the folder of the output.
    """
    with locked(output.parent):
        parts = [(path.name, read(path)) for path in paths]
        _refuse_strangers(parts)
        unfinished = output.with_suffix(".part")
        try:
            with Writer(unfinished, parts[0][1].header) as writer:
                for index, (_, part) in enumerate(parts):
                    _append(writer, part, begin=index > 0)
            unfinished.replace(output)
        finally:
            unfinished.unlink(missing_ok=True)
        return read(output)


def _refuse_strangers(parts: Sequence[tuple[str, Recording]]) -> None:
    first_name, first = parts[0]
    owner: dict[tuple[object, ...], int] = {}
    for number, (name, part) in enumerate(parts):
        for what in ("experiment", "settings"):
            mine, theirs = (_identity(r, what) for r in (first, part))
            if mine != theirs:
                raise RecordError(
                    f"{first_name} and {name} are not parts of one sweep: {what} is {mine} and"
                    f" {theirs}"
                )
        for taken in _taken(part):
            before = owner.setdefault(identity(taken), number)
            if before != number:
                raise RecordError(
                    f"{parts[before][0]} and {name} both hold {words_for(taken)}: they are the"
                    " same part"
                )


def _taken(part: Recording) -> Iterator[Taken]:
    """Yield what a part holds below its headers."""
    yield from part.superseded  # before what repeats them
    yield from part.samples
    yield from part.timelines
    yield from part.splits
    yield from part.spacings


def _identity(recording: Recording, what: str) -> object:
    value = getattr(recording.header, what)
    if not isinstance(value, dict):
        return value
    return {name: x for name, x in value.items() if name not in _MAY_DIFFER}


def _append(writer: Writer, part: Recording, *, begin: bool) -> None:
    """Write a part, each header before what was taken there."""
    for source, header in enumerate(part.headers):
        if begin or source > 0:
            writer.begin(header)
        for measurement in _taken(part):
            if measurement.source == source:
                writer.add(measurement)


def _csv(recording: Recording, output: Path) -> None:
    recording.frame().to_csv(output, index=False)


def _parquet(recording: Recording, output: Path) -> None:
    try:
        recording.frame().to_parquet(output, index=False)
    except ImportError:
        raise RecordError("parquet needs pyarrow: pip install 'spead-tutorial[bench]'") from None


def _pyperf(recording: Recording, output: Path) -> None:
    """Write pyperf's JSON: seconds for each heap, a run for each sample."""
    try:
        import pyperf
    except ImportError:
        raise RecordError("this needs pyperf: pip install 'spead-tutorial[bench]'") from None
    runs: dict[str, list[pyperf.Run]] = {}
    for sample in recording.samples:
        if sample.rate is None or sample.elapsed_ns is None or sample.warm_up:
            continue
        fields = dataclasses.asdict(sample)
        metadata = {
            "name": sample.case,
            "unit": "second",
            "loops": sample.heaps,
            **{k: fields[k] for k in ("heap_size", "packet_size", "implementation", "language")},
        }
        seconds = sample.elapsed_ns / 1e9 / sample.heaps
        run = pyperf.Run([seconds], metadata=metadata, collect_metadata=False)
        runs.setdefault(sample.case, []).append(run)
    if not runs:
        raise RecordError("no sample has a rate: there is nothing to export")
    suite = pyperf.BenchmarkSuite([pyperf.Benchmark(case_runs) for case_runs in runs.values()])
    output.unlink(missing_ok=True)
    suite.dump(str(output))


#: What a record can be exported to: a function that writes it, for the end of a file's name.
FORMATS = {".csv": _csv, ".parquet": _parquet, ".json": _pyperf}


def export(recording: Recording, output: Path) -> None:
    """Write a recording in another format, which the end of the file's name says.

    Raises
    ------
    RecordError
        For a format that is not one of `FORMATS`, or that needs what is not installed.
    """
    write = FORMATS.get(output.suffix)
    if write is None:
        raise RecordError(f"{output.name} does not end with one of {', '.join(FORMATS)}")
    output.parent.mkdir(parents=True, exist_ok=True)
    write(recording, output)

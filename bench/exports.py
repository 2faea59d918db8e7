# SPDX-License-Identifier: BSD-3-Clause
"""Records in other formats: all that a record holds, or what the format has a place for.

CSV and parquet are tables: a row for each sample that counts, and, in files beside it, the samples
that were repeated, the heaps of timelines, what splits found, and the messages of spacings. Their
``source`` says to which header a row belongs, counted from 0.
"""

import csv
import dataclasses
import json
import typing
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from spead_tutorial.measure.search import settled
from spead_tutorial.records import (
    Header,
    RecordError,
    Recording,
    Sample,
    Spacing,
    Split,
    Timeline,
    columns,
    row,
)

__all__ = ["FORMATS", "export", "tables"]

#: In a parquet file's metadata: the headers, as JSON.
HEADERS = "spead_tutorial.headers"

_Row = dict[str, Any]


def export(recording: Recording, output: Path) -> list[Path]:
    """Write a recording in another format, which the end of the file's name says."""
    write = FORMATS.get(output.suffix)
    if write is None:
        raise RecordError(f"{output.name} does not end with one of {', '.join(FORMATS)}")
    output.parent.mkdir(parents=True, exist_ok=True)
    return write(recording, output)


# ---------------------------------------------------------------------------------------
# As tables


def tables(recording: Recording) -> dict[str, list[_Row]]:
    """Return the tables of a recording by their names; that of its samples has an empty one."""
    return {
        "": [row(sample) for sample in recording.samples],
        "superseded": [row(sample) for sample in recording.superseded],
        "timelines": _joined(_heaps, recording.timelines),
        "splits": _joined(_parts, recording.splits),
        "spacings": _joined(_messages, recording.spacings),
    }


def _joined(rows: Callable[[Any], Iterator[_Row]], taken: Sequence[Any]) -> list[_Row]:
    return [one for each in taken for one in rows(each)]


def _heaps(timeline: Timeline) -> Iterator[_Row]:
    """Yield a row for each heap."""
    whole = row(timeline)
    times = {name: whole.pop(name) for name in list(whole) if name.endswith("_ns")}
    for heap, values in enumerate(zip(*times.values(), strict=True)):
        yield whole | {"heap": heap} | dict(zip(times, values, strict=True))


def _parts(split: Split) -> Iterator[_Row]:
    """Yield a row for each part that a thread was found at; one without any where it failed."""
    whole = row(split)
    looks = {name: whole.pop(name) for name in ("own", "others", "unsorted")}
    found: list[tuple[str | None, str | None, int | None]] = [
        (who, part, n) for who, parts in looks.items() for part, n in parts.items()
    ]
    for thread, part, n in found or [(None, None, None)]:
        yield whole | {"thread": thread, "part": part, "looks": n}


def _messages(spacing: Spacing) -> Iterator[_Row]:
    """Yield a row for each message; one without any where it failed."""
    whole = row(spacing)
    whole["cores"] = ",".join(map(str, whole["cores"]))
    names = ("heaps", "time_ns", "message_bytes")
    found = list(zip(*(whole.pop(name) for name in names), strict=True))
    for heap, time_ns, n_bytes in found or [(None, None, None)]:
        yield whole | {"heap": heap, "time_ns": time_ns, "message_bytes": n_bytes}


def _written(
    recording: Recording, output: Path, write: Callable[[list[str], list[_Row], Path], None]
) -> list[Path]:
    """Write the tables that hold something; those of another export of that name are removed."""
    written = []
    for name, rows in tables(recording).items():
        path = output.with_suffix(f".{name}{output.suffix}" if name else output.suffix)
        if name and not rows:
            path.unlink(missing_ok=True)
            continue
        write(list(rows[0]) if rows else columns(Sample), rows, path)
        written.append(path)
    return written


def _csv(recording: Recording, output: Path) -> list[Path]:
    def write(names: list[str], rows: list[_Row], path: Path) -> None:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(rows)

    headers = output.with_suffix(".headers.json")
    headers.write_text(json.dumps(_headers(recording), indent=2) + "\n", encoding="utf-8")
    return [*_written(recording, output, write), headers]


def _parquet(recording: Recording, output: Path) -> list[Path]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise RecordError("parquet needs pyarrow: pip install 'spead-tutorial[bench]'") from None
    metadata = {HEADERS: json.dumps(_headers(recording))}

    def write(names: list[str], rows: list[_Row], path: Path) -> None:
        values = {
            name: pyarrow.array([one[name] for one in rows], _TYPES.get(name)) for name in names
        }
        parquet.write_table(pyarrow.table(values, metadata=metadata), path)

    return _written(recording, output, write)


def _headers(recording: Recording) -> list[_Row]:
    return [dataclasses.asdict(header) for header in recording.headers]


def _types() -> dict[str, str]:
    """Return the type of a sample's columns, which those with nothing but nulls have too."""
    names = {int: "int64", float: "float64", str: "string", bool: "bool"}
    hints = typing.get_type_hints(Sample)
    plain = [(typing.get_args(hint) or (hint,))[0] for hint in hints.values()]
    found = dict(zip(columns(Sample), map(names.__getitem__, plain), strict=False))
    return found | {"rate_bytes_per_s": "float64"}


_TYPES = _types()


# ---------------------------------------------------------------------------------------
# As pyperf's JSON


def _pyperf(recording: Recording, output: Path) -> list[Path]:
    """Write pyperf's JSON: seconds for each heap, a run for each sample that counts."""
    try:
        import pyperf
    except ImportError:
        raise RecordError("this needs pyperf: pip install 'spead-tutorial[bench]'") from None
    recording = settled(recording)
    places = {(sample.case, sample.source) for sample in recording.samples}
    parts = Counter(case for case, _ in places)
    runs: dict[str, list[pyperf.Run]] = {}
    for sample in recording.samples:
        if sample.rate is None or sample.elapsed_ns is None or sample.warm_up:
            continue
        # pyperf takes no runs of several machines together.
        name = f"{sample.case}, part {sample.source + 1}"
        name = name if parts[sample.case] > 1 else sample.case
        metadata = _facts(recording.headers[sample.source]) | _of(sample) | {"name": name}
        seconds = sample.elapsed_ns / 1e9 / sample.heaps
        run = pyperf.Run([seconds], metadata=metadata, collect_metadata=False)
        runs.setdefault(name, []).append(run)
    if not runs:
        raise RecordError("no sample has a rate: there is nothing to export")
    suite = pyperf.BenchmarkSuite([pyperf.Benchmark(case_runs) for case_runs in runs.values()])
    output.unlink(missing_ok=True)
    suite.dump(str(output))
    return [output]


def _of(sample: Sample) -> _Row:
    """Say of a sample what pyperf has names for, and what tells it from others."""
    names = ("heap_size", "packet_size", "implementation", "language", "round", "attempt")
    found = {"unit": "second", "loops": sample.heaps} | {k: getattr(sample, k) for k in names}
    return found if sample.load is None else found | {"load_avg_1min": sample.load}


def _facts(header: Header) -> dict[str, str | int | float]:
    """Return what a header says: what pyperf has names for by these, and all by its own."""
    machine, versions = header.machine, header.versions
    said: dict[str, object] = {
        "cpu_model_name": machine.get("cpu"),
        "cpu_count": machine.get("cores"),
        "platform": f"Linux {machine.get('kernel')} {machine.get('architecture')}",
        "python_version": versions.get("python"),
    }
    for name, value in dataclasses.asdict(header).items():
        if isinstance(value, dict):
            said |= {f"{name}.{key}": one for key, one in value.items()}
        else:
            said[name] = value
    return {name: _plain(value) for name, value in said.items() if value not in (None, "")}


def _plain(value: object) -> str | int | float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    return " ".join((value if isinstance(value, str) else json.dumps(value)).split())


#: What a record can be exported to: a function that writes it, for the end of a file's name.
FORMATS = {".csv": _csv, ".parquet": _parquet, ".json": _pyperf}

# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a sweep put together, each header before what was taken there."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from spead_tutorial.measure.records import (
    RecordError,
    Recording,
    Taken,
    Writer,
    locked,
    read,
)

__all__ = ["merge", "put_together"]

_MAY_DIFFER = ("shard", "rounds", "skipped")


def merge(paths: Sequence[Path], output: Path) -> Recording:
    """Put the parts of a sweep together, which may be of several machines."""
    with locked(output.parent):
        return put_together(paths, output)


def put_together(paths: Sequence[Path], output: Path) -> Recording:
    """Do what `merge` does, in a folder that the caller has locked."""
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
            before = owner.setdefault(taken.key, number)
            if before != number:
                raise RecordError(
                    f"{parts[before][0]} and {name} both hold {taken}: they are the same part"
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

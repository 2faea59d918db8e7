# SPDX-License-Identifier: BSD-3-Clause
"""Records of several machines: parts of a sweep put together, and taken apart by machine again."""

import json
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from spead_tutorial.measure.records import Header, RecordError, Recording, read

_MAY_DIFFER = ("shard", "rounds", "skipped")


def facts_of(header: Header) -> dict[str, object]:
    """Return what makes a machine, with its lab, another one: all that is known but its load."""
    facts = {key: value for key, value in header.machine.items() if key != "load"}
    return facts | {f"lab {key}": value for key, value in header.lab.items()}


def name_of(header: Header) -> str:
    """Return what people tell a machine by."""
    facts = header.machine
    cpu, cores = facts.get("cpu") or "unknown CPU", facts.get("usable_cores")
    return f"{cpu}, {cores} cores, Linux {facts.get('kernel')}"


# ---- Taken apart ----


def by_machine(recording: Recording) -> dict[str, Recording]:
    """Take a recording apart: the samples that were taken on each machine, by all facts of it."""
    sources: dict[str, list[int]] = {}
    for source, header in enumerate(recording.headers):
        key = json.dumps(facts_of(header), sort_keys=True)
        sources.setdefault(key, []).append(source)
    return {key: _part_of(recording, those) for key, those in sources.items()}


def _part_of(recording: Recording, sources: Sequence[int]) -> Recording:
    """Return the samples that belong to some of a recording's headers."""
    first, *others = (recording.headers[source] for source in sources)
    place = {source: index for index, source in enumerate(sources)}
    mine = (one for one in recording.samples if one.source in place)
    samples = tuple(replace(one, source=place[one.source]) for one in mine)
    return Recording(first, samples, others=tuple(others))


# ---- Put together ----


def merge(paths: Sequence[Path], output: Path) -> Recording:
    """Put the parts of a sweep together, in a folder that the caller has locked."""
    _refuse_strangers([(path.name, read(path)) for path in paths])
    unfinished = output.with_suffix(".part")
    try:
        unfinished.write_bytes(b"".join(path.read_bytes() for path in paths))
        unfinished.replace(output)
    finally:
        unfinished.unlink(missing_ok=True)
    return read(output)


def _refuse_strangers(parts: Sequence[tuple[str, Recording]]) -> None:
    first_name, first = parts[0]
    owner: dict[tuple[object, ...], str] = {}
    for name, part in parts:
        for what in ("experiment", "settings"):
            mine, theirs = (_identity(getattr(one.header, what)) for one in (first, part))
            if mine != theirs:
                raise RecordError(
                    f"{first_name} and {name} are not parts of one sweep: {what} is {mine} and"
                    f" {theirs}"
                )
        for taken in part.taken:
            if taken.key in owner:
                raise RecordError(
                    f"{owner[taken.key]} and {name} both hold {taken}: they are the same part"
                )
        owner |= {taken.key: name for taken in part.taken}


def _identity(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {name: x for name, x in value.items() if name not in _MAY_DIFFER}

# SPDX-License-Identifier: BSD-3-Clause
"""Which samples are of which machine."""

import json
from collections.abc import Sequence

from msgspec.structs import replace

from spead_tutorial.measure.records import Header, Recording, Sample

__all__ = ["by_machine", "facts_of", "name_of"]


def facts_of(header: Header) -> dict[str, object]:
    """Return what makes a machine, with its lab, another one: all that is known but its load."""
    facts = {key: value for key, value in header.machine.items() if key != "load"}
    return facts | {f"lab {key}": value for key, value in header.lab.items()}


def name_of(header: Header) -> str:
    """Return what people tell a machine by."""
    facts = header.machine
    cpu, cores = facts.get("cpu") or "unknown CPU", facts.get("usable_cores")
    return f"{cpu}, {cores} cores, Linux {facts.get('kernel')}"


def by_machine(recording: Recording) -> dict[str, Recording]:
    """Take a recording apart: what was measured on each machine, by all facts of it."""
    sources: dict[str, list[int]] = {}
    for source, header in enumerate(recording.headers):
        key = json.dumps(facts_of(header), sort_keys=True)
        sources.setdefault(key, []).append(source)
    return {key: _part_of(recording, those) for key, those in sources.items()}


def _part_of(recording: Recording, sources: Sequence[int]) -> Recording:
    """Return the samples that belong to some of a recording's headers."""
    first, *others = (recording.headers[source] for source in sources)
    place = {source: index for index, source in enumerate(sources)}
    samples = [_moved(one, place[one.source]) for one in recording.samples if one.source in place]
    return Recording(first, tuple(samples), others=tuple(others))


def _moved(sample: Sample, source: int) -> Sample:
    return sample if sample.source == source else replace(sample, source=source)

# SPDX-License-Identifier: BSD-3-Clause
"""Where the numbers of a picture come from, for its foot."""

from collections import Counter
from collections.abc import Iterable

from spead_tutorial.measure.records import OURS, Recording, Sample
from spead_tutorial.measure.stats import FEWEST

__all__ = ["COLUMNS", "caption", "shown", "wrapped"]

_BARS = "median of {rounds} rounds, dots: samples, line: {spread}"
_PEER = "spead2"
_COMMAND = "make figures"
_SEPARATOR = " · "
#: Letters in a line of a picture that is as wide as a page.
COLUMNS = 84
#: Between what a picture shows and what is only in its description.
_REST = "\n\n"


def caption(recording: Recording, shown: str = _BARS) -> str:
    """Say where the numbers of a recording come from."""
    first = [*_machines(recording), *_rounds(recording, shown)]
    rest = [
        *_distinct(f"Linux {header.machine.get('kernel')}" for header in recording.headers),
        "sent to: " + " or ".join(_places(recording)) + _exceptions(recording),
        *_distinct(
            f"governor {header.machine.get('governor') or 'unknown'}"
            for header in recording.headers
        ),
        *_distinct(_software(header.versions) for header in recording.headers),
        *_peer(recording),
        *_distinct(
            header.versions.get("compiler") or "unknown compiler" for header in recording.headers
        ),
        *_distinct(
            f"revision {header.revision}" for header in recording.headers if header.revision
        ),
        recording.header.time[:10],
        f"drawn by: {recording.header.settings.get('drawn_by') or _COMMAND}",
    ]
    return _REST.join((wrapped(first) + _SEPARATOR.rstrip(), wrapped(rest)))


def shown(text: str, columns: int) -> str:
    """Return what a picture shows of a caption, or of another text, in lines of some length."""
    first, rest, _ = text.partition(_REST)
    parts = " ".join(first.split()).removesuffix(_SEPARATOR.rstrip() if rest else "")
    return wrapped((part.strip() for part in parts.split(_SEPARATOR)), columns)


def wrapped(parts: Iterable[str], columns: int = COLUMNS) -> str:
    """Write parts in lines, each of them whole where a line has room for it."""
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1]) + len(_SEPARATOR) + len(part) > columns:
            lines[-1] += _SEPARATOR.rstrip()
            lines.append("")
        lines[-1] += (_SEPARATOR if lines[-1] else "") + part
        while len(lines[-1]) > columns and " " in lines[-1][:columns]:
            end = lines[-1].rindex(" ", 0, columns)
            lines[-1:] = [lines[-1][:end], lines[-1][end + 1 :]]
    return "\n".join(lines)


def _distinct(texts: Iterable[str]) -> list[str]:
    """Join what differs from machine to machine."""
    return [", ".join(distinct)] if (distinct := list(dict.fromkeys(texts))) else []


def _machines(recording: Recording) -> list[str]:
    """Name the machines: different ones have different facts, whatever their load was."""
    machines = [
        {key: value for key, value in header.machine.items() if key != "load"}
        for header in recording.headers
    ]
    different = [
        machine for index, machine in enumerate(machines) if machine not in machines[:index]
    ]
    count = [f"{len(different)} machines"] if len(different) > 1 else []
    return count + _distinct(map(_machine, different))


def _machine(facts: dict[str, object]) -> str:
    virtual = facts.get("virtualisation")
    cores = f"{facts.get('cpu') or 'unknown CPU'}, {facts.get('usable_cores')} cores"
    return cores + (f" ({virtual})" if virtual not in (None, "none") else "")


def _places(recording: Recording) -> list[str]:
    texts = (
        f"{header.lab.get('kind')}, MTU {header.lab.get('mtu')}" for header in recording.headers
    )
    return list(dict.fromkeys(texts))


def _exceptions(recording: Recording) -> str:
    """Name the chapters that sent to loopback, or there too, though there was a lab."""
    if all(header.lab.get("kind") == "loopback" for header in recording.headers):
        return ""  # that is what has been said
    kinds: dict[int, set[bool]] = {}
    for sample in recording.samples:
        if sample.implementation == OURS and sample.chapter:
            kinds.setdefault(sample.chapter, set()).add(sample.kind == "loopback")
    words = {frozenset({True}): "loopback", frozenset({True, False}): "loopback too"}
    return "".join(
        f" (chapter {chapter}: {words[frozenset(places)]})"
        for chapter, places in sorted(kinds.items())
        if True in places
    )


def _rounds(recording: Recording, shown: str) -> list[str]:
    """Say how many samples a median is of, and what shows how far they are apart."""
    if "{" not in shown:
        return [shown]
    counts = Counter(_case(sample) for sample in recording.samples if not sample.warm_up)
    if not counts:
        return []
    fewest, most = min(counts.values()), max(counts.values())
    if fewest >= FEWEST:
        spread = "95 % interval"
    else:
        spread = "their range" if most < FEWEST else f"95 % interval (range below {FEWEST})"
    rounds = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return [shown.format(rounds=rounds, spread=spread)]


def _case(sample: Sample) -> tuple[object, ...]:
    return sample.series, sample.heap_size, sample.packet_size


def _software(versions: dict[str, str | None]) -> str:
    return f"Python {versions.get('python')}, NumPy {versions.get('numpy')}"


def _peer(recording: Recording) -> list[str]:
    """Name the peer's version where it was measured too."""
    if not any(sample.implementation.startswith(_PEER) for sample in recording.samples):
        return []
    versions = (header.versions.get(_PEER) for header in recording.headers)
    return _distinct(f"{_PEER} {version}" for version in versions if version)

# SPDX-License-Identifier: BSD-3-Clause
"""What tells machines apart, and parts of a sweep of several of one kind, put together."""

from collections.abc import Sequence
from pathlib import Path

from spead_tutorial.measure.records import Header, RecordError, Recording, read

_MAY_DIFFER = ("shard", "rounds", "skipped")


def facts_of(header: Header) -> dict[str, object]:
    """Return what makes a machine, with its lab, another one: all that is known but its load."""
    facts = {key: value for key, value in header.machine.items() if key != "load"}
    return facts | {f"lab {key}": value for key, value in header.lab.items()}


def different(
    mine: dict[str, object], theirs: dict[str, object]
) -> dict[str, tuple[object, object]]:
    """Return the facts that are not the same, each with both values; None where it is not there."""
    return {
        key: (mine.get(key), theirs.get(key))
        for key in [*mine, *(theirs.keys() - mine.keys())]
        if mine.get(key) != theirs.get(key)
    }


def differs(one: Header, other: Header) -> str | None:
    """Say what makes records no parts of one sweep, on machines of one kind, if anything does."""
    mine, theirs = (
        facts_of(header)
        | {"experiment": header.experiment, "revision": header.revision}
        | {name: value for name, value in header.settings.items() if name not in _MAY_DIFFER}
        | header.versions
        for header in (one, other)
    )
    # The same source, built in another folder, is another file.
    same_source = one.revision is not None and not one.revision.endswith("+")
    for key, both in different(mine, theirs).items():
        if not (same_source and key.endswith("build")):
            first, second = ("unknown" if x is None else x for x in both)
            return f"{key} is {first}, and {second}"
    return None


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
        if why := differs(first.header, part.header):
            raise RecordError(f"{first_name} and {name} are not parts of one sweep: {why}")
        for taken in part.taken:
            if taken.key in owner:
                raise RecordError(
                    f"{owner[taken.key]} and {name} both hold {taken}: they are the same part"
                )
        owner |= {taken.key: name for taken in part.taken}

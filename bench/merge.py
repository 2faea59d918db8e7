# SPDX-License-Identifier: BSD-3-Clause
"""Parts of a sweep that machines of one kind measured (``--shard``), put together."""

from collections.abc import Sequence
from pathlib import Path

from spead_tutorial.measure.machine import differs
from spead_tutorial.measure.records import RecordError, Recording, read


def put_together(paths: Sequence[Path], output: Path) -> Recording:
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
        if why := differs(first.header, part.header, of_parts=True):
            raise RecordError(f"{first_name} and {name} are not parts of one sweep: {why}")
        for taken in part.taken:
            if taken.key in owner:
                raise RecordError(
                    f"{owner[taken.key]} and {name} both hold {taken}: they are the same part"
                )
        owner |= {taken.key: name for taken in part.taken}

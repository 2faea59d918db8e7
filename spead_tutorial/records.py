# SPDX-License-Identifier: BSD-3-Clause
"""The one format in which measurements are kept: JSON Lines, a header and a line a sample.

Samples are raw: nanoseconds, bytes and counts, never rates alone. Nothing in a record names
the machine, its user, or a folder of it.
"""

import dataclasses
import json
import os
import re
import socket
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["SCHEMA", "Header", "RecordError", "Recording", "Sample", "Writer", "anonymous", "read"]

#: Grows when a reader of the version before would misread a record.
SCHEMA = 1
_TOOL = "spead_tutorial"


class RecordError(ValueError):
    """A file is not a recording that can be read; the text says where and why."""


@dataclasses.dataclass(frozen=True, slots=True)
class Header:
    """Where, when and with what the samples were taken.

    Parameters
    ----------
    experiment : str
        What was measured, such as ``"tour"``.
    time : str
        When it began: ISO 8601, UTC.
    machine : dict
        Facts of the machine, as `spead_tutorial.doctor.machine_facts` finds them.
    lab : dict
        The device that was sent to: its ``kind`` and ``mtu``.
    settings : dict
        What the experiment was told, such as its rounds and the seed of their order.
    versions : dict
        Of the software: ``spead_tutorial``, ``python``, ``numpy``, the compiler.
    revision : str or None
        Revision of the source, with a ``+`` where it was changed; None where not known.
    """

    experiment: str
    time: str
    machine: dict[str, Any]
    lab: dict[str, Any]
    settings: dict[str, Any]
    versions: dict[str, str | None]
    revision: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
    """One run of one program; what is None is not known, as the program failed.

    Parameters
    ----------
    case : str
        Which point of the experiment it is a sample of.
    round : int
        In which round it was taken, from 0.
    warm_up : bool
        Whether it is not to be counted.
    chapter, program, language, random
        What was run.
    heaps, heap_size, packet_size : int
        What it was told, or does by default; sizes in bytes.
    device, kind : str
        What it sent to.
    failure : str or None
        Why it has no rate: what was expected and what was seen.
    elapsed_ns : int
        From the first heap to the last.
    payload_bytes, spead_bytes : int
        Bytes of samples, and of the packets they were sent in.
    packets, messages, send_calls, waits, errors : int
        What the stream counted.
    counted_packets, counted_bytes : int
        What the device counted; a message with several packets is one to it.
    cpu_user_ns, cpu_system_ns : int
        CPU time of the program in that time.
    page_faults, context_switches : int
        The same.
    """

    case: str
    round: int
    warm_up: bool
    chapter: int
    program: str
    language: str
    random: bool
    heaps: int
    heap_size: int
    packet_size: int
    device: str
    kind: str
    failure: str | None = None
    elapsed_ns: int | None = None
    payload_bytes: int | None = None
    spead_bytes: int | None = None
    packets: int | None = None
    messages: int | None = None
    send_calls: int | None = None
    waits: int | None = None
    errors: int | None = None
    counted_packets: int | None = None
    counted_bytes: int | None = None
    cpu_user_ns: int | None = None
    cpu_system_ns: int | None = None
    page_faults: int | None = None
    context_switches: int | None = None

    @property
    def rate(self) -> float | None:
        """Payload bytes/s; None for a sample with a failure."""
        if self.failure is not None or not self.payload_bytes or not self.elapsed_ns:
            return None
        return self.payload_bytes / (self.elapsed_ns / 1e9)


@dataclasses.dataclass(frozen=True, slots=True)
class Recording:
    """A file's header and its samples, in the order in which they were taken."""

    header: Header
    samples: tuple[Sample, ...]


class Writer:
    """Writes a recording so that what is in the file is always whole lines.

    Parameters
    ----------
    path : path
        The file; one that is there already is replaced.
    header : Header
        Written at once.
    """

    def __init__(self, path: str | os.PathLike[str], header: Header) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o644)
        first = {"record": "header", "tool": _TOOL, "schema": SCHEMA}
        self._write(first | dataclasses.asdict(header))

    def add(self, sample: Sample) -> None:
        """Append a sample: it is on the disk when this returns."""
        record = dataclasses.asdict(sample)
        if sample.failure is not None:
            record["failure"] = anonymous(sample.failure)
        self._write({"record": "sample"} | record)

    def close(self) -> None:
        """Close the file; more than once does no harm."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _write(self, record: dict[str, Any]) -> None:
        line = json.dumps(record, allow_nan=False).encode() + b"\n"
        written = os.write(self._fd, line)
        if written != len(line):
            raise OSError(f"the disk took {written} of a record's {len(line)} bytes")
        os.fsync(self._fd)


def read(path: str | os.PathLike[str]) -> Recording:
    """Read a recording.

    Raises
    ------
    RecordError
        For a file that is cut off, or of another make, or newer than this program.
    OSError
        For a file that cannot be read at all.
    """
    name = Path(path).name
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise RecordError(f"{name} is not a recording: it is not text") from None
    lines = text.split("\n")
    if lines.pop():
        raise RecordError(
            f"{name} line {len(lines) + 1} is cut off: its writer was interrupted; delete that line"
        )
    if not lines:
        raise RecordError(f"{name} is empty: it has not even a header")
    header = _header(_object(name, 1, lines[0]), name)
    samples = [_sample(_object(name, n, line), name, n) for n, line in enumerate(lines[1:], 2)]
    return Recording(header, tuple(samples))


def anonymous(text: str) -> str:
    """Take out of a text what names the machine or a folder of it."""
    text = re.sub(r"(?<![\w./])/(?:[^\s/'\":]+/)+", "", text)
    host = socket.gethostname()
    return re.sub(rf"(?<!\w){re.escape(host)}(?!\w)", "this machine", text) if host else text


def _object(name: str, number: int, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise RecordError(f"{name} line {number} is not a JSON object: {line[:60]!r}")
    return found


def _header(found: dict[str, Any], name: str) -> Header:
    if found.pop("record", None) != "header" or found.pop("tool", None) != _TOOL:
        raise RecordError(f"{name} is not a recording of {_TOOL}: its first line is no header")
    schema = found.pop("schema", None)
    if not isinstance(schema, int) or schema < 1:
        raise RecordError(f"{name} line 1 has no valid schema version, but {schema!r}")
    if schema > SCHEMA:
        raise RecordError(
            f"{name} was written by a newer version (schema {schema}, this one reads {SCHEMA}):"
            f" update {_TOOL}"
        )
    try:
        return Header(**found)
    except TypeError as error:
        raise RecordError(f"{name} line 1 is no header of schema {schema}: {error}") from None


def _sample(found: dict[str, Any], name: str, number: int) -> Sample:
    if found.pop("record", None) != "sample":
        raise RecordError(f"{name} line {number} is not a sample")
    try:
        return Sample(**found)
    except TypeError as error:
        raise RecordError(f"{name} line {number} is no sample: {error}") from None

# SPDX-License-Identifier: BSD-3-Clause
"""The one format in which measurements are kept: JSON Lines, a header and a line a sample.

Samples are raw: nanoseconds, bytes and counts, never rates alone. Nothing in a record names
the machine, its user, or a folder of it. A file that was merged from those of several machines
has a header of each, before its samples.
"""

import contextlib
import dataclasses
import fcntl
import json
import os
import re
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from spead_tutorial.fields import FieldError, made, misfit

if TYPE_CHECKING:
    import pandas
    from _typeshed import DataclassInstance

__all__ = [
    "OURS",
    "SCHEMA",
    "Header",
    "RecordError",
    "Recording",
    "Sample",
    "Series",
    "Spacing",
    "Split",
    "Taken",
    "Timeline",
    "Writer",
    "anonymous",
    "columns",
    "identity",
    "locked",
    "object_of",
    "parse",
    "read",
    "row",
    "words_for",
]

#: Grows when a reader of the version before would misread a record.
SCHEMA = 3
_TOOL = "spead_tutorial"
_LOCKS = Path("/proc/locks")

#: The implementation that this package is.
OURS = "ours"

#: What has to be one at least: it is divided by.
_FROM_ONE = {"least": 1}
#: Of the parts of a header, what is computed with where it is there.
_PARTS: dict[str, dict[str, Any]] = {
    "machine": {
        "cores": int | None,
        "usable_cores": int | None,
        "memory_bytes": int | None,
        "caches_bytes": dict[str, int] | None,
    },
    "lab": {"kind": str | None, "mtu": int | None},
    "settings": {"rounds": int, "size": str, "shard": str, "skipped": dict[str, str]},
}
#: Lists with an element for each of the same things.
_ALIKE = {
    "timeline": tuple(
        f"{when}_ns"
        for when in ("prepare", "queued", "first_packet", "last_packet", "completed", "resumed")
    ),
    "spacing": ("heaps", "time_ns", "message_bytes"),
}


class RecordError(ValueError):
    """A file is not a recording that can be read; the text says where and why."""


@dataclasses.dataclass(frozen=True, slots=True)
class Header:
    """Where, when and with what the samples were taken.

    Parameters
    ----------
    experiment : str
        What was measured: ``"tour"``, or the name of a sweep.
    time : str
        When it began: ISO 8601, UTC.
    machine : dict
        Facts of the machine, by name.
    lab : dict
        The device that was sent to: its ``kind`` and ``mtu``, and what else
        `spead_tutorial.lab.Lab.facts` says.
    settings : dict
        What the experiment was told, such as its ``rounds`` and the ``seed`` of their order.
    versions : dict
        Of the software, by name.
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
class Series:
    """What makes one line of a picture: samples that differ in sizes alone.

    Parameters
    ----------
    implementation : str
        ``"ours"``; ``"spead2"``; ``"ceiling"``, the bare system calls; or the name that was
        given to another installation of ours.
    language : str
        One of `spead_tutorial.catalogue.LANGUAGES`.
    program : str
        Name of the program.
    variant : str
        What else was different, such as ``"huge pages"``; empty for the plain program.
    """

    implementation: str
    language: str
    program: str
    variant: str = ""

    def __str__(self) -> str:
        more = f", {self.variant}" if self.variant else ""
        who = "" if self.implementation == self.program else f"{self.implementation} "
        return f"{who}{self.language} {self.program}{more}"


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
    chapter : int
        Number of the chapter that was run, or that the program is a step to.
    program : str
        Name of the program that was run.
    language : str
        One of `spead_tutorial.catalogue.LANGUAGES`.
    random : bool
        Whether its samples were random instead of a fill.
    heaps : int
        How many heaps it was to send.
    heap_size : int
        Bytes of samples in a heap.
    packet_size : int
        Bytes of a packet at most, UDP and IP headers not counted.
    device : str
        What it sent to: the name of the device, or a host outside a lab.
    kind : str
        Kind of the device, such as ``"dummy"``, ``"ifb"`` or ``"loopback"``.
    failure : str or None
        Why it has no rate: what was expected and what was seen. None where all is well.
    elapsed_ns : int or None
        Time from the first heap to the last.
    payload_bytes : int or None
        Bytes of samples that were sent.
    spead_bytes : int or None
        Bytes of the packets they were sent in, UDP and IP headers not counted.
    packets : int or None
        Packets that the stream handed to the kernel.
    messages : int or None
        Messages that the kernel took; segmentation offload puts several packets into one.
    send_calls : int or None
        System calls made to send them.
    waits : int or None
        Times the socket was full and had to be waited for.
    errors : int or None
        Packets that failed.
    counted_packets : int or None
        Packets that the device counted; a message with several packets is one to it.
    counted_bytes : int or None
        Bytes that the device counted, the headers of UDP, IP and the link included.
    cpu_user_ns : int or None
        CPU time that the process used itself in that time.
    cpu_system_ns : int or None
        CPU time that the kernel used for the process in that time.
    page_faults : int or None
        Page faults of the process in that time.
    context_switches : int or None
        Context switches of the process in that time.
    implementation : str
        ``"ours"``, ``"spead2"``, ``"ceiling"``, or the name given to another installation.
    variant : str
        What else was different from the plain program, such as ``"huge pages"``; or empty.
    streams : int
        How many streams sent at once.
    steal_ns : int or None
        Time that the hypervisor gave to others, of all cores, while the program ran.
    load : float or None
        Load average of the last minute, before it ran: processes that ran or wanted to.
    icmp_errors : int or None
        On loopback: messages that came back as nobody listened.
    received_packets : int or None
        Packets that the listener got, or the receiver that was measured.
    received_dropped : int or None
        Packets that its socket had no room for.
    program_cpu_ns : int or None
        The part of the CPU time that the program's own thread used. The rest is that of its other
        threads, of which the stream's is one.
    looking_ns : int or None
        Time in which the stream's thread did not sleep, but looked whether there was more to do,
        from when the stream was made: CPU time that is no work.
    waiting_looking_ns : int or None
        The same of the program's own thread, as it waited.
    source : int
        Which of the recording's headers it belongs to, counted from 0. It is not written: the
        position in the file says it.
    zero_copy_messages : int or None
        Messages that the kernel was to read in place.
    zero_copy_copied : int or None
        Those of them that it copied after all.
    attempt : int
        How often the same round of the same case had been tried before. A sample takes the place
        of those that it repeats, which failed, and which the file keeps.
    received_heaps : int or None
        Where a receiver is measured: heaps of which all came. Then the payload is theirs, the CPU
        time is the receiver's, and the time ends when nothing is left in its socket.
    peak_memory_bytes : int or None
        The most memory that the receiver has had.
    asked_bytes_per_s : float or None
        Where the highest rate without loss is looked for: the payload in a second that the sender
        was to send. Then the time is that of sending, and ``heaps`` are those that were sent in it.
    run : int
        Which run of such a search it is, from 0: one round of a case has several.
    pool_empty : int or None
        Heaps that a receiver's pool had no buffer for, and that got new memory.
    pool_most_in_use : int or None
        The most buffers that were in use at once, new memory included.
    lost_packets : int or None
        Packets that never reached the receiver's machine.
    incomplete_packets : int or None
        Packets that the receiver got, of heaps that something else is missing of.
    ring_dropped_packets : int or None
        Packets of heaps that were complete, and that the receiver's full ring dropped.
    ring_waits : int or None
        How often the receiver waited until its program took a heap out of the full ring.
    longest_ring_wait_ns : int or None
        The longest of these waits.
    socket_buffer_bytes : int or None
        What the receiver's socket has room for, with what the kernel needs besides.
    """

    case: str
    round: int
    warm_up: bool
    chapter: int
    program: str
    language: str
    random: bool
    heaps: int = dataclasses.field(metadata=_FROM_ONE)
    heap_size: int = dataclasses.field(metadata=_FROM_ONE)
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
    implementation: str = OURS
    variant: str = ""
    streams: int = 1
    steal_ns: int | None = None
    load: float | None = None
    icmp_errors: int | None = None
    received_packets: int | None = None
    received_dropped: int | None = None
    program_cpu_ns: int | None = None
    looking_ns: int | None = None
    waiting_looking_ns: int | None = None
    source: int = 0
    zero_copy_messages: int | None = None
    zero_copy_copied: int | None = None
    attempt: int = 0
    received_heaps: int | None = None
    peak_memory_bytes: int | None = None
    asked_bytes_per_s: float | None = None
    run: int = 0
    pool_empty: int | None = None
    pool_most_in_use: int | None = None
    lost_packets: int | None = None
    incomplete_packets: int | None = None
    ring_dropped_packets: int | None = None
    ring_waits: int | None = None
    longest_ring_wait_ns: int | None = None
    socket_buffer_bytes: int | None = None

    @property
    def series(self) -> Series:
        """The line of a picture that it is on."""
        variant = ", ".join(filter(None, ("random" * self.random, self.variant)))
        return Series(self.implementation, self.language, self.program, variant)

    @property
    def rate(self) -> float | None:
        """Payload bytes/s; None for a sample with a failure."""
        if self.failure is not None or not self.payload_bytes or not self.elapsed_ns:
            return None
        return self.payload_bytes / (self.elapsed_ns / 1e9)


@dataclasses.dataclass(frozen=True, slots=True)
class Timeline:
    """When each heap of a run was prepared and sent: ns since the first was begun.

    All times are tuples with an element for each heap, in the order of sending.

    Parameters
    ----------
    case : str
        Which point of the experiment it is of.
    program : str
        What was run: the loop of this program.
    language : str
        ``"python"``.
    random : bool
        Whether its samples were random.
    heap_size : int
        Bytes of samples in a heap.
    packet_size : int
        Bytes of a packet at most, UDP and IP headers not counted.
    prepare_ns : tuple of int
        When its preparation began.
    queued_ns : tuple of int
        When it had been prepared and was given to the stream.
    first_packet_ns : tuple of int
        When the stream's thread was about to hand its first packet to the kernel.
    last_packet_ns : tuple of int
        When that thread had handed over its last packet.
    completed_ns : tuple of int
        When the stream let go of it.
    resumed_ns : tuple of int
        When the program went on after it had waited for it.
    source, variant : int, str
        As for `Sample`.
    """

    case: str
    program: str
    language: str
    random: bool
    heap_size: int
    packet_size: int
    prepare_ns: tuple[int, ...]
    queued_ns: tuple[int, ...]
    first_packet_ns: tuple[int, ...]
    last_packet_ns: tuple[int, ...]
    completed_ns: tuple[int, ...]
    resumed_ns: tuple[int, ...]
    source: int = 0
    variant: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Split:
    """What a program was doing whenever it was looked at, in a run of its own.

    Looking slows a program down. So its shares are to be multiplied with the time of the samples of
    the same case, which nobody looked at.

    Parameters
    ----------
    case : str
        Which point of the experiment it is of: that of its samples.
    round : int
        In which round it was taken, from 0.
    program : str
        What was run.
    language : str
        One of `spead_tutorial.catalogue.LANGUAGES`.
    heaps : int
        How many it sent.
    heap_size : int
        Bytes of samples in a heap.
    elapsed_ns : int or None
        From the first heap to the last, with someone looking. None where it failed.
    own : dict
        How often the program's own thread was found at each part of the work.
    others : dict
        The same of all its other threads together, of which the stream's is one.
    unsorted : dict
        The functions that most of the part ``"other"`` was found in, and how often.
    failure : str or None
        Why there is nothing of these.
    source : int
        As for `Sample`.
    """

    case: str
    round: int
    program: str
    language: str
    heaps: int = dataclasses.field(metadata=_FROM_ONE)
    heap_size: int = dataclasses.field(metadata=_FROM_ONE)
    elapsed_ns: int | None = None
    own: dict[str, int] = dataclasses.field(default_factory=dict)
    others: dict[str, int] = dataclasses.field(default_factory=dict)
    unsorted: dict[str, int] = dataclasses.field(default_factory=dict)
    failure: str | None = None
    source: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Spacing:
    """When each message of one run left: what the device got at once, of one packet or several.

    Those are its messages from the middle of the run. Tuples have an element for each of them.

    Parameters
    ----------
    program : str
        What was run.
    language : str
        One of `spead_tutorial.catalogue.LANGUAGES`.
    random : bool
        Whether its samples were random.
    variant : str
        What was different, such as ``"link of 10 Gb/s"``; or empty.
    round : int
        In which round it ran, from 0.
    heap_size : int
        Bytes of samples in a heap.
    packet_size : int
        Bytes of a packet at most, UDP and IP headers not counted.
    cores : tuple of int
        To which the program's thread and the stream's were pinned; empty where to none.
    heaps : tuple of int
        To which heap it belongs, counted from the run's first, which is 0.
    time_ns : tuple of int
        When the device got it, by the kernel's clock, since it got the first of these.
    message_bytes : tuple of int
        Bytes of its packets, UDP and IP headers not counted.
    failure : str or None
        Why there are none.
    source : int
        As for `Sample`.
    """

    program: str
    language: str
    random: bool
    variant: str
    round: int
    heap_size: int
    packet_size: int
    cores: tuple[int, ...] = ()
    heaps: tuple[int, ...] = ()
    time_ns: tuple[int, ...] = ()
    message_bytes: tuple[int, ...] = ()
    failure: str | None = None
    source: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Recording:
    """What a file holds, in the order in which it was taken.

    Parameters
    ----------
    header : Header
        The first, most often the only one.
    samples : tuple of Sample
        All samples, warm-ups and failures too, but those that were repeated.
    timelines : tuple of Timeline
        All timelines.
    others : tuple of Header
        Those that followed the first.
    splits : tuple of Split
        All splits.
    spacings : tuple of Spacing
        All runs of which one knows when their messages left.
    superseded : tuple of Sample
        Samples that failed and were repeated: later attempts took their place.
    """

    header: Header
    samples: tuple[Sample, ...]
    timelines: tuple[Timeline, ...] = ()
    others: tuple[Header, ...] = ()
    splits: tuple[Split, ...] = ()
    spacings: tuple[Spacing, ...] = ()
    superseded: tuple[Sample, ...] = ()

    @property
    def headers(self) -> tuple[Header, ...]:
        """All headers; a sample's ``source`` counts them."""
        return (self.header, *self.others)

    @property
    def rounds(self) -> int:
        """How many rounds each case has that count, at least."""
        rounds = {(one.case, one.source, one.round) for one in self.samples if not one.warm_up}
        cases = Counter(case for case, _, _ in rounds)
        return min(cases.values(), default=0)

    def frame(self) -> "pandas.DataFrame":
        """Return the samples as a table.

        Returns
        -------
        pandas.DataFrame, shape (n_samples, n_fields + 1)
            A row for each sample, warm-ups and failures too; the columns are those of `columns`.

        Raises
        ------
        ImportError
            Where there is no pandas, which comes with the extra ``[lab]``.
        """
        import pandas

        return pandas.DataFrame(list(map(row, self.samples)), columns=columns(Sample))


#: What a line holds that is no header.
Taken: TypeAlias = Sample | Timeline | Split | Spacing

_KINDS: dict[str, type[Taken]] = {
    kind.__name__.lower(): kind for kind in (Sample, Timeline, Split, Spacing)
}
_UNITS = {name: f"{name}_bytes" for name in ("heap_size", "packet_size")}
#: What no two lines of a kind share.
_IDENTITY = {
    Sample: ("case", "round", "warm_up", "run", "attempt"),
    Timeline: ("case",),
    Split: ("case", "round"),
    Spacing: ("program", "language", "random", "variant", "round", "heap_size", "packet_size"),
}


def identity(taken: Taken) -> tuple[object, ...]:
    """Return what no two lines of a recording share, whichever headers they are below.

    Parameters
    ----------
    taken : Sample or Timeline or Split or Spacing
        What one of them holds.
    """
    kind = type(taken)
    return kind.__name__, *(getattr(taken, name) for name in _IDENTITY[kind])


def columns(kind: type[Taken]) -> list[str]:
    """Return the names of the columns of a table of samples, or of other lines.

    Parameters
    ----------
    kind : type
        Such as `Sample`.

    Returns
    -------
    list of str
        The fields, units in their names; of a sample also ``rate_bytes_per_s``, which is missing
        where it failed.
    """
    rate = ["rate_bytes_per_s"] if kind is Sample else []
    return [_UNITS.get(field.name, field.name) for field in dataclasses.fields(kind)] + rate


def row(taken: Taken) -> dict[str, Any]:
    """Return a row of a table, which takes no pandas: a value for each of `columns`.

    Parameters
    ----------
    taken : Sample or Timeline or Split or Spacing
        What a line of a recording holds.
    """
    values = [getattr(taken, field.name) for field in dataclasses.fields(taken)]
    rate = [taken.rate] if isinstance(taken, Sample) else []
    return dict(zip(columns(type(taken)), [*values, *rate], strict=True))


def words_for(taken: Taken) -> str:
    """Say which line of a recording it is, for people.

    Parameters
    ----------
    taken : Sample or Timeline or Split or Spacing
        What it holds.
    """
    if isinstance(taken, Timeline):
        return f"the timeline of {taken.case!r}"
    who = f"{taken.language} {taken.program}" if isinstance(taken, Spacing) else taken.case
    words = f"the {type(taken).__name__.lower()} of {who!r} in round {taken.round}"
    if isinstance(taken, Sample) and taken.warm_up:
        words = f"the warm-up of {who!r}"
    if isinstance(taken, Sample) and taken.run:
        words = f"{words}, run {taken.run}"
    again = isinstance(taken, Sample) and taken.attempt
    return f"{words}, attempt {again}" if again else words


class Writer:
    """Writes a recording so that what is in the file is always whole lines.

    At the end of a ``with`` block it is closed.

    Parameters
    ----------
    path : path
        The file.
    header : Header, optional
        Written at once, to a file that is new or is emptied for it. Without one, what is
        written is appended to what is there, of which a line that was cut off is removed.

    Raises
    ------
    OSError
        Where the file cannot be opened, or a line not be written; FileNotFoundError where there
        is none to append to.
    """

    def __init__(self, path: str | os.PathLike[str], header: Header | None = None) -> None:
        new = os.O_CREAT | os.O_TRUNC if header is not None else 0
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | new, 0o644)
        if header is not None:
            self.begin(header)
        else:
            _cut_last_line(self._fd)

    def begin(self, header: Header) -> None:
        """Write a header: what follows was taken there.

        Parameters
        ----------
        header : Header
            Where, when and with what.
        """
        self._write(object_of(header))

    def add(self, taken: "DataclassInstance") -> None:
        """Append a sample, a timeline, or another dataclass: it is on the disk when this returns.

        Parameters
        ----------
        taken : dataclass
            What was measured. Of a failure's text `anonymous` takes out what names the machine.
        """
        self._write(object_of(taken))

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


def object_of(what: "DataclassInstance") -> dict[str, Any]:
    """Return what a line of a record says, as JSON has it.

    Parameters
    ----------
    what : dataclass
        A header, or what was measured. Of a failure's text `anonymous` takes out what names the
        machine.
    """
    record = dataclasses.asdict(what)
    if isinstance(what, Header):
        return {"record": "header", "tool": _TOOL, "schema": SCHEMA} | record
    record.pop("source", None)  # the position in the file says it
    if record.get("failure") is not None:
        record["failure"] = anonymous(record["failure"])
    return {"record": type(what).__name__.lower()} | record


def _cut_last_line(fd: int) -> None:
    """Remove from a file what follows its last newline: its writer was killed there."""
    size = os.fstat(fd).st_size
    end = os.pread(fd, size, 0).rfind(b"\n") + 1
    if end < size:
        os.ftruncate(fd, end)


@contextlib.contextmanager
def locked(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Have a folder for the records of this process alone, for the time of a ``with`` block.

    The lock is on the folder itself: it leaves no file behind, and ends with the process. Where
    the file system locks no folders, as NFS, there is none.

    Parameters
    ----------
    folder : path
        It is made where it is missing.

    Raises
    ------
    RecordError
        Where another process has it, or another block of this one.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RecordError(
                f"another run{_holder(os.fstat(fd))} writes to {folder}: wait for it, or choose"
                " another folder"
            ) from None
        except OSError:
            pass
        yield
    finally:
        os.close(fd)


def _holder(folder: os.stat_result) -> str:
    """Say which process has locked a folder; nothing where that is not known."""
    device = f"{os.major(folder.st_dev):02x}:{os.minor(folder.st_dev):02x}"
    try:
        lines = _LOCKS.read_text().splitlines()
    except OSError:
        return ""
    for _, kind, _, _, pid, place, *_ in map(str.split, lines):  # as in proc_locks(5)
        if (kind, place) == ("FLOCK", f"{device}:{folder.st_ino}"):
            return f" (process {pid})"
    return ""


def read(path: str | os.PathLike[str], *, unfinished: bool = False) -> Recording:
    """Read a recording.

    Parameters
    ----------
    path : path
        The file.
    unfinished : bool
        Whether a last line that is cut off is left out, instead of being an error.

    Returns
    -------
    Recording
        All of the file.

    Raises
    ------
    RecordError
        For a file that is cut off, or of another make, or newer than this program; for a field
        that is not what it has to be; and where it holds the same twice.
    OSError
        For a file that cannot be read at all.
    """
    name = Path(path).name
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise RecordError(f"{name} is not a recording: it is not text") from None
    lines = text.split("\n")
    if lines.pop() and not unfinished:
        raise RecordError(
            f"{name} line {len(lines) + 1} is cut off: its writer was interrupted; delete that line"
        )
    return parse(lines, name)


def parse(lines: Sequence[str], name: str) -> Recording:
    """Make a recording of its lines, as `read` does of a file's.

    Parameters
    ----------
    lines : sequence of str
        Each without its end.
    name : str
        What errors call them.

    Returns
    -------
    Recording
        All of them.

    Raises
    ------
    RecordError
        As `read` does.
    """
    if not lines:
        raise RecordError(f"{name} is empty: it has not even a header")
    headers = [_header(_object(name, 1, lines[0]), name, 1)]
    taken: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
    line_of: dict[tuple[object, ...], int] = {}
    for number, line in enumerate(lines[1:], 2):
        record = _object(name, number, line)
        kind = record.get("record")
        if kind == "header":
            headers.append(_header(record, name, number))
            continue
        one = _taken(record, name, number, len(headers) - 1)
        taken[str(kind)].append(one)
        before = line_of.setdefault(identity(one), number)
        if before != number:
            raise RecordError(
                f"lines {before} and {number} of {name} are both {words_for(one)}: two runs wrote"
                " it at once and disturbed each other, or lines were copied; measure it anew"
            )
        if isinstance(one, Sample) and one.attempt:
            repeated = dataclasses.replace(one, attempt=one.attempt - 1)
            if identity(repeated) not in line_of:
                raise RecordError(
                    f"{name} line {number} is {words_for(one)}, and before it there is no attempt"
                    f" {repeated.attempt}"
                )
    samples: list[Sample] = taken["sample"]
    last = {(one.case, one.round, one.warm_up, one.run): one for one in samples}.values()
    standing = set(map(id, last))
    return Recording(
        headers[0],
        tuple(one for one in samples if id(one) in standing),
        tuple(taken["timeline"]),
        tuple(headers[1:]),
        tuple(taken["split"]),
        tuple(taken["spacing"]),
        tuple(one for one in samples if id(one) not in standing),
    )


def anonymous(text: str) -> str:
    """Take out of a text what names the machine or a folder of it.

    Parameters
    ----------
    text : str
        Such as a program's complaint.

    Returns
    -------
    str
        The same with ``this machine`` for its name, and of paths only the last part.
    """
    text = re.sub(r"(?<![\w./])/(?:[^\s/'\":]+/)+", "", text)
    host = socket.gethostname()
    return re.sub(rf"(?<!\w){re.escape(host)}(?!\w)", "this machine", text) if host else text


def _object(name: str, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise RecordError(f"{name} line {number} is not a JSON object: {line[:60]!r}")
    return record


def _header(record: dict[str, Any], name: str, number: int) -> Header:
    if record.pop("record", None) != "header" or record.pop("tool", None) != _TOOL:
        raise RecordError(f"{name} is not a recording of {_TOOL}: its first line is no header")
    schema = record.pop("schema", None)
    if type(schema) is not int or schema < 1:
        raise RecordError(f"{name} line {number} has no valid schema version, but {schema!r}")
    if schema > SCHEMA:
        raise RecordError(
            f"{name} was written by a newer version (schema {schema}, this one reads {SCHEMA}):"
            f" update {_TOOL}"
        )
    try:
        header = made(Header, record)
    except FieldError as error:
        raise RecordError(
            f"{name} line {number} is no header of schema {schema}: {error}"
        ) from None
    for part, hints in _PARTS.items():
        there = getattr(header, part)
        for key in hints.keys() & there.keys():
            problem = misfit(f"{part}.{key}", there[key], hints[key])
            if problem is not None:
                raise RecordError(f"{name} line {number}: {problem}")
    return header


def _taken(record: dict[str, Any], name: str, number: int, source: int) -> Taken:
    kind = record.pop("record", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise RecordError(f"{name} line {number} is not a sample")
    try:
        if "source" in record:
            raise FieldError("source is not written: the position in the file says it")
        taken = made(_KINDS[kind], record | {"source": source})
    except FieldError as error:
        raise RecordError(f"{name} line {number} is no {kind}: {error}") from None
    lengths = {field: len(getattr(taken, field)) for field in _ALIKE.get(kind, ())}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{field} has {length}" for field, length in lengths.items())
        raise RecordError(f"{name} line {number} is no {kind}: of as many elements each, {said}")
    return taken

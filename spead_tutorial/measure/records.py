# SPDX-License-Identifier: BSD-3-Clause
"""The one format in which measurements are kept: JSON Lines, a header and a line a sample.

Samples are raw: nanoseconds, bytes and counts, never rates alone. But for an array's workers,
nothing in a record names the machine, its user, or a folder of it.
"""

import contextlib
import dataclasses
import errno
import fcntl
import json
import os
import re
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar

import msgspec
from msgspec.structs import asdict

from spead_tutorial._shown import shown
from spead_tutorial.measure.corner_turn import Measured

if TYPE_CHECKING:
    import pandas

__all__ = [
    "OURS",
    "SCHEMA",
    "Header",
    "Latency",
    "Memory",
    "Rate",
    "Received",
    "RecordError",
    "Recording",
    "Sample",
    "Sent",
    "Series",
    "Spacing",
    "Split",
    "Taken",
    "Timeline",
    "Turn",
    "Writer",
    "anonymous",
    "joined",
    "locked",
    "object_of",
    "parse",
    "read",
    "words_of",
]

SCHEMA = 4  #: The version of this format: no other is read.
_TOOL = "spead_tutorial"
_LONGEST = 200  # characters of what is said of a line

OURS = "ours"  #: The implementation that this package is.

#: A whole number, of which a table's column holds the greatest; one that is divided by; and others.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
Number = Annotated[float, msgspec.Meta(ge=0)]
_Rounds = Annotated[int, msgspec.Meta(ge=0, le=1000)]  # What as many steps are made of as it says.


class RecordError(ValueError):
    """A file is not a recording that can be read; the text says where and why."""


class _Machine(msgspec.Struct):
    cores: Count | None = None
    usable_cores: Count | None = None
    memory_bytes: Count | None = None
    caches_bytes: dict[str, Count] | None = None


class _Lab(msgspec.Struct):
    kind: str | None = None
    mtu: Count | None = None


class _Settings(msgspec.Struct):
    rounds: _Rounds = 0
    size: str = ""
    skipped: dict[str, str] = {}


class _Parts(msgspec.Struct):
    """What is computed with of a header's parts, where it is there."""

    machine: _Machine
    lab: _Lab
    settings: _Settings


class Header(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="record",
    tag="header",
):
    """Where, when and with what the samples were taken."""

    tool: Literal["spead_tutorial"] = "spead_tutorial"  #: ``"spead_tutorial"``.
    #: The version of this format.
    schema: Annotated[int, msgspec.Meta(ge=SCHEMA, le=SCHEMA)] = SCHEMA
    experiment: str  #: What was measured: ``"tour"``, or the name of a sweep.
    time: str  #: When it began: ISO 8601, UTC.
    machine: dict[str, Any]  #: Facts of the machine, by name.
    #: The device that was sent to: its ``kind`` and ``mtu``, and what else
    #: `spead_tutorial.lab.Lab.facts` says.
    lab: dict[str, Any]
    #: What the experiment was told, such as its ``rounds`` and the ``seed`` of their order.
    settings: dict[str, Any]
    versions: dict[str, str | None]  #: Of the software, by name.
    #: Revision of the source, with a ``+`` where it was changed; None where not known.
    revision: str | None = None

    def __post_init__(self) -> None:
        msgspec.convert({part: getattr(self, part) for part in _Parts.__struct_fields__}, _Parts)


def joined(*words: str) -> str:
    """Make a variant of words, or of variants; empty ones are left out."""
    return ", ".join(filter(None, words))


def words_of(variant: str) -> tuple[str, ...]:
    """Take a variant apart: the words that `joined` made it of."""
    return tuple(variant.split(", ")) if variant else ()


@dataclasses.dataclass(frozen=True, slots=True)
class Series:
    """What makes one line of a picture: samples that differ in sizes alone."""

    #: ``"ours"``; ``"spead2"``; ``"ceiling"``, the bare system calls; or the name that was given to
    #: another installation of ours.
    implementation: str
    language: str  #: One of `spead_tutorial.chapters.catalogue.LANGUAGES`.
    program: str  #: Name of the program.
    #: What else was different, such as ``"huge pages"``; empty for the plain program. Of several
    #: words `joined` makes it.
    variant: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """All that was different."""
        return words_of(self.variant)

    def __str__(self) -> str:
        more = f", {self.variant}" if self.variant else ""
        who = "" if self.implementation == self.program else f"{self.implementation} "
        return f"{who}{self.language} {self.program}{more}"


class Taken(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="record",
    tag=str.lower,
):
    """What a line of a recording holds that is no header.

    One that failed may be repeated: the file keeps both, and the later one counts.
    """

    #: The fields that no two lines of a recording share, but one that failed and what repeats it.
    _own: ClassVar[tuple[str, ...]] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """What no two lines of a recording share."""
        return self._own, *(getattr(self, name) for name in self._own)

    def __str__(self) -> str:
        facts = ", ".join(f"{name} {getattr(self, name)!r}" for name in self._own)
        return " with ".join(filter(None, [type(self).__name__.lower(), facts]))


class Sample(Taken, frozen=True, kw_only=True):
    """One run of one program: what those of senders and of receivers have in common.

    What is None is not known: the program failed, or does not count it.
    """

    case: str  #: Which point of the experiment it is a sample of.
    round: _Rounds  #: In which round it was taken, from 0.
    warm_up: bool  #: Whether it is not to be counted.
    #: Which run it is of a search for the highest rate without loss, from 0: one round of a case
    #: has several. Of all else it is 0.
    run: Count = 0
    #: ``"ours"``, ``"spead2"``, ``"ceiling"``, or the name given to another installation.
    implementation: str
    #: What else was different from the plain program, such as ``"huge pages"``; or empty.
    variant: str = ""
    chapter: Count  #: Number of the chapter that was run, or that the program is a step to.
    program: str  #: Name of the program that was run.
    language: str  #: One of `spead_tutorial.chapters.catalogue.LANGUAGES`.
    random: bool  #: Whether its samples were random instead of a fill.
    streams: Count = 1  #: How many streams sent at once.
    heaps: Positive  #: How many heaps it was to send.
    heap_size: Positive  #: Bytes of samples in a heap.
    packet_size: Count  #: Bytes of a packet at most, UDP and IP headers not counted.
    device: str  #: What it sent to: the name of the device, or a host outside a lab.
    kind: str  #: Kind of the device, such as ``"dummy"``, ``"ifb"`` or ``"loopback"``.
    #: Why it has no rate: what was expected and what was seen. None where all is well.
    failure: str | None = None
    elapsed_ns: Count | None = None  #: Time from the first heap to the last.
    payload_bytes: Count | None = None  #: Bytes of samples that were sent.
    #: Bytes of the packets they were sent in, UDP and IP headers not counted.
    spead_bytes: Count | None = None
    packets: Count | None = None  #: Packets that the stream handed to the kernel.
    #: Messages that the kernel took; segmentation offload puts several packets into one.
    messages: Count | None = None
    #: Packets that the listener got, or the receiver that was measured.
    received_packets: Count | None = None
    received_dropped: Count | None = None  #: Packets that its socket had no room for.
    cpu_user_ns: Count | None = None  #: CPU time that the process used itself in that time.
    #: CPU time that the kernel used for the process in that time.
    cpu_system_ns: Count | None = None
    #: The part of the CPU time that the program's own thread used. The rest is that of its other
    #: threads, of which the stream's is one.
    program_cpu_ns: Count | None = None
    page_faults: Count | None = None  #: Page faults of the process in that time.
    context_switches: Count | None = None  #: Context switches of the process in that time.
    #: Time that the hypervisor gave to others, of all cores, while the program ran.
    steal_ns: Count | None = None
    #: Load average of the last minute, before it ran: processes that ran or wanted to.
    load: Number | None = None

    _own = ("case", "round", "warm_up", "run")

    @property
    def series(self) -> Series:
        """The line of a picture that it is on."""
        variant = joined("random" * self.random, self.variant)
        return Series(self.implementation, self.language, self.program, variant)

    @property
    def rate(self) -> float | None:
        """Payload bytes/s; None for a sample with a failure."""
        if self.failure is not None or not self.payload_bytes or not self.elapsed_ns:
            return None
        return self.payload_bytes / (self.elapsed_ns / 1e9)


class Sent(Sample, frozen=True, kw_only=True):
    """One run of a sender."""

    send_calls: Count | None = None  #: System calls made to send them.
    waits: Count | None = None  #: Times the socket was full and had to be waited for.
    errors: Count | None = None  #: Packets that failed.
    #: Packets that the device counted; a message with several packets is one to it.
    counted_packets: Count | None = None
    #: Bytes that the device counted, the headers of UDP, IP and the link included.
    counted_bytes: Count | None = None
    icmp_errors: Count | None = None  #: On loopback: messages that came back, without a listener.
    #: Time in which the stream's thread did not sleep, but looked whether there was more to do,
    #: from when the stream was made: CPU time that is no work.
    looking_ns: Count | None = None
    waiting_looking_ns: Count | None = None  #: The same of the program's own thread, as it waited.
    zero_copy_messages: Count | None = None  #: Messages that the kernel was to read in place.
    zero_copy_copied: Count | None = None  #: Those of them that it copied after all.


class Received(Sample, frozen=True, kw_only=True):
    """One run of a receiver.

    Its payload is that of the heaps of which all came, its CPU time the receiver's, and its time
    ends when nothing is left in its socket.
    """

    received_heaps: Count | None = None  #: Heaps of which all came.
    peak_memory_bytes: Count | None = None  #: The most memory that the receiver has had.
    #: Where the highest rate without loss is looked for: the payload in a second that the sender
    #: was to send. Then the time is that of sending, and ``heaps`` are those that were sent in it.
    asked_bytes_per_s: Annotated[float, msgspec.Meta(gt=0)] | None = None
    #: Heaps that a receiver's pool had no buffer for, and that got new memory.
    pool_empty: Count | None = None
    #: The most buffers that were in use at once, new memory included.
    pool_most_in_use: Count | None = None
    lost_packets: Count | None = None  #: Packets that never reached the receiver's machine.
    #: Packets that the receiver got, of heaps that something else is missing of.
    incomplete_packets: Count | None = None
    #: Packets of heaps that were complete, and that the receiver's full ring dropped.
    ring_dropped_packets: Count | None = None
    #: How often the receiver waited until its program took a heap out of the full ring.
    ring_waits: Count | None = None
    longest_ring_wait_ns: Count | None = None  #: The longest of these waits.
    #: What the receiver's socket has room for, with what the kernel needs besides.
    socket_buffer_bytes: Count | None = None
    #: Where heaps are sent one by one: the median time from a heap's last packet until its result
    #: is there.
    lateness_ns: int | None = None
    #: Where one of several senders is slow: its heaps. All else is the other senders'.
    slow_heaps: Count | None = None
    slow_received_heaps: Count | None = None  #: Those of them of which all came.
    #: Of both ends in a run of minutes: the sender's CPU time.
    sender_cpu_ns: Count | None = None
    #: How much memory the end that grew more has added since the first fifth of the run.
    growth_bytes: Count | None = None
    #: How full the receiver's socket was at most, in percent, in looks every 50 ms.
    fullest_percent: float | None = None


class Timeline(Taken, frozen=True):
    """When each heap of a run was prepared and sent: ns since the first was begun.

    All times are tuples with an element for each heap, in the order of sending.
    """

    case: str
    program: str
    language: str
    random: bool
    heap_size: Count
    packet_size: Count
    prepare_ns: tuple[Count, ...]  #: When its preparation began.
    queued_ns: tuple[Count, ...]  #: When it had been prepared and was given to the stream.
    #: When the stream's thread was about to hand its first packet to the kernel.
    first_packet_ns: tuple[Count, ...]
    last_packet_ns: tuple[Count, ...]  #: When that thread had handed over its last packet.
    completed_ns: tuple[Count, ...]  #: When the stream let go of it.
    resumed_ns: tuple[Count, ...]  #: When the program went on after it had waited for it.
    variant: str = ""

    _own = ("case",)

    def __post_init__(self) -> None:
        _refuse_other_lengths(
            self, [name for name in self.__struct_fields__ if name.endswith("_ns")]
        )


class Split(Taken, frozen=True):
    """What a program was doing whenever it was looked at, in a run of its own.

    Looking slows a program down. So its shares are to be multiplied with the time of the samples of
    the same case, which was not looked at.
    """

    case: str
    round: _Rounds
    program: str
    language: str
    heaps: Positive
    heap_size: Positive
    #: From the first heap to the last, with someone looking. None where it failed.
    elapsed_ns: Count | None = None
    #: How often the program's own thread was found at each part of the work.
    own: dict[str, Count] = {}
    #: The same of all its other threads together, of which the stream's is one.
    others: dict[str, Count] = {}
    #: The functions that most of the part ``"other"`` was found in, and how often.
    unsorted: dict[str, Count] = {}
    failure: str | None = None  #: Why there is nothing of these.

    _own = ("case", "round")


class Spacing(Taken, frozen=True):
    """When each message of one run left: what the device got at once, of one packet or several.

    Those are its messages from the middle of the run. Tuples have an element for each of them.
    """

    program: str
    language: str
    random: bool
    variant: str
    round: _Rounds
    heap_size: Count
    packet_size: Count
    #: To which the program's thread and the stream's were pinned; empty where to none.
    cores: tuple[Count, ...] = ()
    #: To which heap it belongs, counted from the run's first, which is 0.
    heaps: tuple[Count, ...] = ()
    #: When the device got it, by the kernel's clock, since it got the first of these.
    time_ns: tuple[Count, ...] = ()
    message_bytes: tuple[Count, ...] = ()  #: Bytes of its packets, UDP and IP headers not counted.
    failure: str | None = None  #: Why there are none.

    _own = ("program", "language", "random", "variant", "round", "heap_size", "packet_size")

    def __post_init__(self) -> None:
        _refuse_other_lengths(self, ["heaps", "time_ns", "message_bytes"])


class Latency(Taken, frozen=True):
    """One process that sent a heap, of one packet, every few milliseconds."""

    implementation: str  #: ``"ours"``, ``"spead2"`` or ``"spead2-source"``.
    variant: str  #: ``"no thread"`` for a stream without a thread of its own; or empty.
    round: Count  #: In which round it ran, from 0.
    heap_size: Count | None = None  #: Bytes of samples in a heap.
    #: Of each heap the time from just before it was queued until the kernel had received its
    #: packet, over loopback. The first ``warm_up`` of the header's settings do not count.
    latency_ns: tuple[Count, ...] = ()
    failure: str | None = None  #: Why there are none.

    _own = ("implementation", "variant", "round")


class Rate(Taken, frozen=True):
    """One process that sent at a rate, as the device's counter saw it."""

    implementation: str  #: ``"ours"``, ``"spead2"`` or ``"spead2-source"``.
    variant: str  #: ``"no thread"`` for a stream without a thread of its own; or empty.
    round: Count  #: In which round it ran, from 0.
    rate: Number  #: Bytes of SPEAD packets a second that it was told.
    heaps: Count | None = None  #: How many it sent.
    heap_size: Count | None = None  #: Bytes of samples in each.
    packet_size: Count | None = None  #: Bytes of a packet at most.
    #: Bytes that the stream was to send at once, between two waits.
    burst_size: Count | None = None
    packets: Count | None = None  #: SPEAD packets that it sent.
    spead_bytes: Count | None = None  #: Their bytes.
    counted_packets: Count | None = None  #: What the device counted.
    #: What it counted, with the headers of UDP, IP and the link.
    counted_bytes: Count | None = None
    average_bytes: Count | None = None  #: SPEAD bytes after the first burst.
    average_ns: Count | None = None  #: The time from then to the last step of the counter.
    #: The longest burst, at least: what a bucket that is emptied at the rate must hold for all
    #: packets to pass, had every step of the counter been as early, or as late, as it can have
    #: been for the bucket to be small. Seen too roughly to say anything, it may be below zero.
    burst_bytes: int | None = None
    #: The longest burst at most: the same, for the bucket to be large.
    burst_most_bytes: Count | None = None
    steps: Count | None = None  #: Steps of the counter that were seen.
    grain_ns: Count | None = None  #: How exactly the time of a step is known: the median.
    longest_grain_ns: Count | None = None  #: The same of the step whose time is known worst.
    failure: str | None = None  #: Why there is nothing of these.

    _own = ("implementation", "variant", "round", "rate")


class Memory(Taken, frozen=True):
    """The resident memory of a program while it ran."""

    case: str  #: Chapter and language.
    heaps: Count  #: How many heaps it sent.
    heap_size: Count  #: Bytes of samples in a heap.
    elapsed_ns: Count | None = None  #: From the first heap to the last; None where it failed.
    #: Why it failed, what it claims and the device did not count, or by how much its memory grew.
    failure: str | None = None
    at_ns: tuple[Count, ...] = ()  #: When it was looked at, from its start.
    resident_bytes: tuple[Count, ...] = ()  #: How much of its memory was resident then.

    _own = ("case",)

    def __post_init__(self) -> None:
        _refuse_other_lengths(self, ["at_ns", "resident_bytes"])


class Turn(Taken, frozen=True):
    """A corner turn of an array: every sender to every receiver, once."""

    measured: Measured  #: All that is known of it.

    def __post_init__(self) -> None:
        if why := self.measured.contradiction:
            raise ValueError(why)

    @classmethod
    def of(cls, measured: Measured) -> Self:
        """Make one that says neither when a machine was booted nor what folders it has."""
        clocks = list(dict.fromkeys(one.clock for one in measured.machines))
        machines = [msgspec.structs.replace(one, clock=str(clocks.index(one.clock)))
                    for one in measured.machines]  # fmt: skip
        senders, receivers = (
            [msgspec.structs.replace(one, errors=anonymous(one.errors)) for one in some]
            for some in (measured.senders, measured.receivers)
        )
        return cls(measured=msgspec.structs.replace(
            measured, machines=machines, senders=senders, receivers=receivers))  # fmt: skip


def _refuse_other_lengths(taken: Taken, names: Sequence[str]) -> None:
    """Refuse lists that have no element for each of the same things."""
    lengths = {name: len(getattr(taken, name)) for name in names}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"of as many elements each, {said}")


_Kind = TypeVar("_Kind", bound=Taken)
_Made = TypeVar("_Made")


@dataclasses.dataclass(frozen=True, slots=True)
class Recording:
    """What a file holds, in the order in which it was taken."""

    header: Header  #: Where, when and with what it was taken.
    #: All samples, also warm-ups and failures, but those that were repeated.
    samples: tuple[Sample, ...]
    timelines: tuple[Timeline, ...] = ()  #: All timelines.
    splits: tuple[Split, ...] = ()  #: All splits.
    spacings: tuple[Spacing, ...] = ()  #: All runs of which one knows when their messages left.
    #: Lines that failed and were repeated: later ones took their place.
    superseded: tuple[Taken, ...] = ()
    more: tuple[Taken, ...] = ()  #: All lines of other kinds: latencies, rates, memories, turns.

    @classmethod
    def of(cls, header: Header, taken: Sequence[Taken]) -> Self:
        """Make one of lines in their order; of those that were repeated the last one counts."""
        last = {one.key: one for one in taken}
        standing = [one for one in taken if last[one.key] is one]
        return cls(
            header,
            _those(standing, Sample),
            _those(standing, Timeline),
            _those(standing, Split),
            _those(standing, Spacing),
            tuple(one for one in taken if last[one.key] is not one),
            tuple(x for x in standing if not isinstance(x, Sample | Timeline | Split | Spacing)),
        )

    def those(self, kind: type[_Kind]) -> tuple[_Kind, ...]:
        """Return all lines of a kind that count.

        :meta private:
        """
        return _those(self.standing, kind)

    @property
    def sent(self) -> tuple[Sent, ...]:
        """The samples of senders."""
        return tuple(one for one in self.samples if isinstance(one, Sent))

    @property
    def received(self) -> tuple[Received, ...]:
        """The samples of receivers."""
        return tuple(one for one in self.samples if isinstance(one, Received))

    @property
    def taken(self) -> tuple[Taken, ...]:
        """All that it holds below its header; what was repeated stands before what repeats it."""
        return (*self.superseded, *self.standing)

    @property
    def standing(self) -> tuple[Taken, ...]:
        """All that it holds below its header, but what was repeated."""
        return (*self.samples, *self.timelines, *self.splits, *self.spacings, *self.more)

    @property
    def rounds(self) -> int:
        """How many rounds each case has that count, at least."""
        rounds = {(one.case, one.round) for one in self.samples if not one.warm_up}
        cases = Counter(case for case, _ in rounds)
        return min(cases.values(), default=0)

    def frame(self) -> "pandas.DataFrame":
        """Return the samples as a table of pandas', which comes with the extra ``[lab]``.

        It has a row for each sample, also warm-ups and failures. The columns are the fields of
        senders and receivers, with units in their names, and ``rate_bytes_per_s``; what a sample
        has not is missing.
        """
        import pandas

        names = dict.fromkeys((*Sent.__struct_fields__, *Received.__struct_fields__))
        rows = [asdict(one) | {"rate_bytes_per_s": one.rate} for one in self.samples]
        frame = pandas.DataFrame(rows, columns=[*names, "rate_bytes_per_s"])
        return frame.rename(
            columns={size: f"{size}_bytes" for size in ("heap_size", "packet_size")}
        )


class Writer:
    """Writes a recording so that what is in the file is always whole lines.

    With a header, it begins a file that is new or is emptied for it. Without one it appends to
    what is there, of which a line that was cut off is removed. What cannot be opened or written is
    an OSError.
    """

    def __init__(self, path: str | os.PathLike[str], header: Header | None = None) -> None:
        new = os.O_CREAT | os.O_TRUNC if header is not None else 0
        self._path = os.fspath(path)
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | new, 0o644)
        if header is not None:
            self.add(header)
        else:
            _cut_last_line(self._fd)

    def add(self, what: Header | Taken) -> None:
        """Append what was measured: it is on the disk when this returns."""
        line = json.dumps(object_of(what), allow_nan=False).encode() + b"\n"
        written = os.write(self._fd, line)
        if written != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
        os.fsync(self._fd)

    def close(self) -> None:
        """Close the file; more than once does no harm."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def object_of(what: Header | Taken) -> dict[str, Any]:
    """Return what a line of a record says, as JSON has it.

    Of a failure's text `anonymous` takes out what names the machine.
    """
    record: dict[str, Any] = msgspec.to_builtins(what)
    if record.get("failure") is not None:
        record["failure"] = anonymous(record["failure"])
    return record


def _cut_last_line(fd: int) -> None:
    """Remove from a file what follows its last newline: its writer was killed there."""
    size = os.fstat(fd).st_size
    end = os.pread(fd, size, 0).rfind(b"\n") + 1
    if end < size:
        os.ftruncate(fd, end)


@contextlib.contextmanager
def locked(folder: str | os.PathLike[str], *, wait: bool = False) -> Iterator[None]:
    """Have a folder for the records of this process alone, for the time of a ``with`` block.

    It is made where it is missing. The lock is on the folder itself: it leaves no file behind, and
    ends with the process. Where the file system locks no folders, as NFS, there is none. Where
    another process has it, or another block of this one, that is a `RecordError`, unless one is to
    wait until it has not.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RecordError(
                f"another run writes to {folder}: wait for it, or choose another folder"
            ) from None
        except OSError:
            pass
        yield
    finally:
        os.close(fd)


def read(path: str | os.PathLike[str], *, unfinished: bool = False) -> Recording:
    """Read a recording from a file.

    A file that is of another make, or of another `SCHEMA`, is a `RecordError`, and so are a
    field that is not what it has to be, what is there twice, and a last line that is cut off,
    unless what is `unfinished` is to be left out. What cannot be read at all is an OSError.
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
    """Make a recording of its lines, each without its end; errors call them by this name."""
    if not lines:
        raise RecordError(f"{name} is empty: it has not even a header")
    header = _header(lines[0], name)
    taken: list[Taken] = []
    # of each key the last line, and whether it failed: then another may follow
    line_of: dict[tuple[object, ...], tuple[int, bool]] = {}
    for number, line in enumerate(lines[1:], 2):
        one = decoded(_LINE, line, name, number)
        if isinstance(one, Header):
            raise RecordError(f"{name} line {number} is a second header: two records were joined")
        taken.append(one)
        before, failed = line_of.get(one.key, (number, True))
        if not failed:
            raise RecordError(
                f"lines {before} and {number} of {name} are both {one}: two runs wrote"
                " it at once and disturbed each other, or lines were copied; measure it anew"
            )
        line_of[one.key] = number, getattr(one, "failure", None) is not None
    return Recording.of(header, taken)


def _those(taken: Sequence[Taken], kind: type[_Kind]) -> tuple[_Kind, ...]:
    return tuple(one for one in taken if isinstance(one, kind))


def anonymous(text: str) -> str:
    """Take out of a text what names the machine, and of its paths all but the last part."""
    text = re.sub(r"(?<![\w./])/(?:[^\s/'\":]+/)+", "", text)
    host = socket.gethostname()
    return re.sub(rf"(?<!\w){re.escape(host)}(?!\w)", "this machine", text) if host else text


# ---- A line ----


class _Mark(msgspec.Struct):
    """What tells whether the rest of a header can be read."""

    record: str = ""
    tool: str = ""
    schema: Any = None


_MARK = msgspec.json.Decoder(_Mark)
_HEADER = msgspec.json.Decoder(Header)
_LINE = msgspec.json.Decoder(
    Header | Sent | Received | Timeline | Split | Spacing | Latency | Rate | Memory | Turn
)


def decoded(decoder: msgspec.json.Decoder[_Made], line: str, name: str, number: int) -> _Made:
    """Return what a line of a file holds; `RecordError` where it does not fit."""
    try:
        return decoder.decode(line)
    except msgspec.ValidationError as error:
        said = shown(str(error)[:_LONGEST])
        what, _, field = said.partition(" - at `$.")
        where = f"{field.rstrip('`')}: " if field else ""
        raise RecordError(f"{name} line {number}: {where}{what}") from None
    except (ValueError, RecursionError):
        raise RecordError(f"{name} line {number} is not a JSON object: {line[:60]!r}") from None


def _header(line: str, name: str) -> Header:
    mark = decoded(_MARK, line, name, 1)
    if (mark.record, mark.tool) != ("header", _TOOL):
        raise RecordError(f"{name} is not a recording of {_TOOL}: its first line is no header")
    if isinstance(mark.schema, int) and mark.schema != SCHEMA:
        raise RecordError(
            f"{name} has schema {mark.schema}, and this version of {_TOOL} reads {SCHEMA}: take"
            " the version that wrote it, or measure anew"
        )
    return decoded(_HEADER, line, name, 1)

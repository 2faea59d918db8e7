# SPDX-License-Identifier: BSD-3-Clause
"""What the chapters' programs that receive share: options, waiting with an end, the account.

Ctrl-C is also an end, and so is SIGTERM. It stops the stream, and the program goes on with what has
come whole; then comes the account, and the status that a shell has for the signal.

Its twin in C is ``receiving.c``.
"""

import argparse
import json
import logging
import math
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from spead_tutorial import Descriptor, Empty, Item, MemoryPool, Stopped
from spead_tutorial._shown import shown
from spead_tutorial.chapters.report import (
    ABOUT,
    PROGRAM,
    Usage,
    bytes_of,
    check_last_port,
    end_as_in_c,
    fail,
    place,
    sender_count,
    tell,
    whole,
)
from spead_tutorial.recv import (
    Chunk,
    ChunkRingStream,
    ChunkStreamGroupMember,
    ChunkStreamRingGroup,
    HeapBase,
    Stream,
)
from spead_tutorial.recv._stats import FATES, StreamStats

_Came = TypeVar("_Came")
_LOOK_S = 0.1
#: A stream takes heaps up to 1 GiB, of which this much may be descriptors.
_LARGEST_HEAP, _MOST_BUFFERS, _MOST_SOCKETS = (1 << 30) - 8192, 1000, 256
#: How a stream has ended, as a JSON object says it, and the account with seconds of silence.
_ENDS = {
    "stop": "The stream has ended.",
    "silence": "Nothing has come for {:g} s: the stop heap may be lost.",
    "interrupt": "It was interrupted before the stream had ended.",
}
#: What says that something is missing, or may be.
_MISSING = (
    "heaps_never_begun",
    "incomplete_heaps_evicted",
    "incomplete_heaps_flushed",
    "packets_after_loss",
    "packets_inconsistent",
    "packets_too_large",
    "packets_unsized",
    "packets_no_memory",
)
_OTHERS = (
    "heaps_complete",
    "heaps_never_begun",
    "incomplete_heaps_evicted",
    "incomplete_heaps_flushed",
    "worker_blocked",
    "longest_ring_wait_ns",
    "socket_datagrams",
    "socket_messages",
    "socket_dropped",
    "socket_buffer",
    "payload_bytes",
)
#: What a program with chunks counts besides: its place function, and the stream.
UNFIT = "unfit_heaps"
_OF_CHUNKS = (
    "too_old_heaps",
    "misplaced_heaps",
    "rejected_heaps",
    "chunks",
    "chunk_waits",
    "longest_chunk_wait_ns",
    "room_waits",
    "longest_room_wait_ns",
)


@dataclass(frozen=True, slots=True)
class ReceiverOptions:
    """The command line; what is 0 is no option of the program."""

    host: str = ""  # any address of this machine
    port: int = 8888
    silence_s: float = 5.0
    json: bool = False
    text: bool = True
    heap_size: int = 0
    buffers: int = 0
    sockets: int = 0
    senders: int = 0
    interface: str = ""
    lossy: bool = False

    def say(self, text: str) -> None:
        """Print a line, unless a JSON object was asked for, and no text."""
        if self.text:
            print(text + "\n", end="")  # in one piece, also when other threads print


def parse_receiver_options(
    doc: str | None, usual: ReceiverOptions = ReceiverOptions()
) -> ReceiverOptions:
    """Read the command line, whose ``--help`` has a program's docstring and its defaults."""
    parser = argparse.ArgumentParser(description=doc, epilog=f"example: {PROGRAM}.py -t 60 8888")
    parser.add_argument("-t", dest="silence_s", type=_seconds, metavar="SECONDS",
                        default=usual.silence_s,
                        help="how long nothing has come when it ends"
                        f" ({usual.silence_s:g})")  # fmt: skip
    if usual.heap_size:
        parser.add_argument("-H", "--heap-size", dest="heap_size", metavar="BYTES",
                            type=partial(bytes_of, most=_LARGEST_HEAP), default=usual.heap_size,
                            help=f"bytes of samples in a heap ({usual.heap_size})")  # fmt: skip
    if usual.buffers:
        parser.add_argument("-b", "--buffers", dest="buffers", metavar="COUNT",
                            type=_from(0, _MOST_BUFFERS), default=usual.buffers,
                            help=f"heaps that the pool has memory for ({usual.buffers});"
                            " 0 for none, so that each gets new memory")  # fmt: skip
    if usual.sockets:
        parser.add_argument("-s", "--sockets", dest="sockets", metavar="COUNT",
                            type=_from(1, _MOST_SOCKETS), default=usual.sockets,
                            help="sockets on the port, each with a thread"
                            f" ({usual.sockets})")  # fmt: skip
    if usual.senders:
        parser.add_argument("--senders", type=sender_count, metavar="COUNT", default=usual.senders,
                            help="senders, each of which has a port, from PORT on"
                            f" ({usual.senders})")  # fmt: skip
        parser.add_argument("--interface", metavar="ADDRESS", default=usual.interface,
                            help="address of the card to join a group on"
                            " (the route's)")  # fmt: skip
        parser.add_argument("--lossy", action="store_true",
                            help="go on without senders that are too slow")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print a JSON object, not the heaps")
    parser.add_argument("--text", action="store_true", help="with --json: print the heaps, too")
    parser.add_argument("place", type=place, nargs="?", metavar="[HOST:]PORT",
                        default=(usual.host, usual.port),
                        help=f"address and UDP port to listen on (any, {usual.port})")  # fmt: skip
    given = vars(parser.parse_args())
    given["host"], given["port"] = given.pop("place")
    check_last_port(parser, given["port"], given.get("senders", 1))
    end_as_in_c()
    logging.getLogger("spead_tutorial").setLevel(logging.ERROR)  # what it warns of is counted here
    if sys.stdout is not None:  # as it is where it was closed before
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    given["text"] |= not given["json"]
    return replace(usual, **given)


def _seconds(text: str) -> float:
    """A time, for argparse."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number <= 1e6:
        raise argparse.ArgumentTypeError(f"must be a number of seconds up to 1e6, not {text!r}")
    return number


def _from(least: int, most: int) -> Callable[[str], int]:
    return partial(whole, least=least, most=most)


def describe(items: Iterable[Descriptor]) -> Iterator[str]:
    """Write what descriptors say: id, name, type, shape, and words."""
    for item in items:
        shape = "".join(f"[{'any' if size is None else size}]" for size in item.shape)
        yield f"{item.id:#x} {shown(item.name)}, {_type(item)}{shape}: {shown(item.description)}"


def numbers(updated: Mapping[str, Item], name: str) -> npt.NDArray[np.integer[Any]] | None:
    """Return the integers that a heap has as an item of that name; None where it has none."""
    value = np.asarray(updated[name].value) if name in updated else None
    return None if value is None or value.dtype.kind not in "iu" or value.size == 0 else value


def _type(item: Descriptor) -> str:
    """Kind and bits of an element, such as int8; a question mark for what is more than a number."""
    (code, bits), *more = item.format or [("?", 0)]
    if item.dtype is not None:
        code, bits, more = item.dtype.kind, item.itemsize_bits, []
    words = {"u": "uint", "i": "int", "f": "float", "b": "bool"}
    return f"{words[code]}{bits}" if code in words and not more else "?"


class _Together:
    """What several sockets on one port share: only one gets the stop heap, and all end together."""

    def __init__(self) -> None:
        self.since = 0.0  # when something came last; 0 before
        self.has_ended = False  # one had the stop heap
        self.interrupted = 0  # by which signal


class _Arrivals:
    """What comes of a stream, from its first packet to its end, to long silence, or to Ctrl-C."""

    def __init__(
        self,
        stream: Stream | ChunkRingStream | ChunkStreamGroupMember,
        options: ReceiverOptions,
        pool: MemoryPool | None = None,
        *,
        together: _Together | None = None,
    ) -> None:
        self.not_understood = 0  # heaps without descriptors, or with others; the program counts
        self._stream, self._options, self._pool = stream, options, pool
        self._streams: Sequence[Stream | ChunkRingStream | ChunkStreamGroupMember] = [stream]
        self._faults_before = Usage.now().page_faults
        self._n, self._ended, self._word = 0, "stop", "heap"
        self._came, self._together = 0, together or _Together()
        self._first_ns = self._last_ns = self._bytes_before = 0
        self._first_packets = 0.0  # when something was there first, at a look or with a chunk
        self._longest_pause = 0.0  # the most that nothing has come after that, at a look
        self._at_first: Usage | None = None  # what had been used when the first heap came
        if together is None:
            self._listen()

    def _listen(self) -> None:
        stream = self._stream
        granted = stream.stats.socket_buffer // 2
        if granted < stream.DEFAULT_UDP_BUFFER_SIZE:
            wanted = stream.DEFAULT_UDP_BUFFER_SIZE
            tell(f"the receive buffer has {granted} bytes, not {wanted}: allow more with"
                 f" 'sysctl -w net.core.rmem_max={wanted}'")  # fmt: skip
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._interrupt)
        tell(f"listening on port {self._options.port}")

    def _interrupt(self, number: int, _: object) -> None:
        # And no more: it may be called in the middle of anything.
        self._together.interrupted = number

    def _each(self, get_nowait: Callable[[], _Came], fd: int) -> Iterator[_Came]:
        while True:
            if self._together.interrupted:
                self._stream.stop()
            try:
                came = get_nowait()
            except Empty:
                if not select.select([fd], [], [], _LOOK_S)[0]:
                    self._look()
                continue
            except Stopped:
                if self._ended == "stop" and not self._together.interrupted:
                    self._together.has_ended = True
                return
            self._last_ns = time.monotonic_ns()
            self._note_that_something_came(time.monotonic())
            if self._first_ns == 0:
                self._first_ns = self._last_ns
                self._bytes_before = self._stats()["payload_bytes"]
                self._at_first = Usage.now()
            yield came
            del came  # whose memory the next one may need

    def _note_that_something_came(self, now: float) -> None:
        self._first_packets = self._first_packets or now
        self._together.since = now

    def _look(self) -> None:
        """End the stream if nothing has come for some time: the stop heap may be lost."""
        came, now, together = self._stats()["packets_received"], time.monotonic(), self._together
        if came != self._came:
            self._came = came
            self._note_that_something_came(now)
            return
        # A stream that has ended earlier keeps its socket: to close that would move flows.
        patience_s = _LOOK_S if together.has_ended else self._options.silence_s
        if not together.since:
            return
        self._longest_pause = max(self._longest_pause, now - together.since)
        if now - together.since >= patience_s:
            if self._ended == "stop" and not together.has_ended:
                self._ended = "silence"
            self._stream.stop()

    def report(self, last: str = "") -> None:
        """Print the account, a JSON object, or both; where heaps are missing, end with status 1."""
        if self._together.interrupted:
            self._ended = "interrupt"
        was_interrupted = self._ended == "interrupt"
        stats = self._stats()
        if self._options.text:
            print(*self._account(stats), *([last] if last else []), sep="\n")
        if self._options.json:
            print(json.dumps(self._record(stats)))
        trouble = self._trouble(stats) or _trouble(stats, was_interrupted)
        if self._pool is not None and self._pool.stats.passed_by:
            tell(f"heaps of {self._pool.stats.largest} bytes do not fit into buffers of the pool,"
                 " and each got new memory: say how large they are with -H")  # fmt: skip
        if trouble is not None:
            (tell if was_interrupted else fail)(trouble)
        if was_interrupted:
            sys.exit(128 + self._together.interrupted)

    def _stats(self) -> StreamStats:
        """The counts. Senders of chapters count every heap: what was skipped is missing."""
        first, *others = (stream.stats for stream in self._streams)
        stats = sum(others, first)
        stats["heaps_never_begun"] += stats["counts_skipped"]
        return stats

    def _account(self, stats: Mapping[str, int]) -> Iterator[str]:
        fates = [f"{count} {name.replace('_', ' ')}" for name, count in _fates(stats) if count]
        arriving = stats["incomplete_heaps_flushed"] if self._ended == "interrupt" else 0
        incomplete = stats["incomplete_heaps_evicted"] + stats["incomplete_heaps_flushed"]
        yield _ENDS[self._ended].format(self._options.silence_s)
        yield f"packets: {stats['socket_datagrams']} received = {' + '.join(fates) or 'none'}"
        yield (f"heaps: {stats['heaps_complete']} complete, {incomplete - arriving} incomplete,"
               f" {stats['heaps_never_begun']} never begun"
               f"{f', {arriving} still arriving' if arriving else ''}")  # fmt: skip
        yield from self._of_sockets(stats)
        if self.not_understood:
            yield (f"heaps not understood: {self.not_understood}"
                   " (their descriptors did not arrive, or say something else)")  # fmt: skip
        timed = stats["payload_bytes"] - self._bytes_before
        is_timed = timed * stats["heaps_complete"] >= stats["payload_bytes"]  # a heap's worth
        if self._last_ns > self._first_ns and is_timed:  # all may have come before one was taken
            rate = timed / (self._last_ns - self._first_ns) * 1e3
            yield f"{rate:.2f} MB/s from the first {self._word} to the last"
        if self._pool is not None:
            counts = self._pool_counts(self._pool)
            yield (f"pool of {self._options.buffers}: {counts['pool_requests']} requests,"
                   f" {counts['pool_empty']} while it was empty, {counts['pool_too_large']} too"
                   f" large; at most {counts['pool_most_in_use']} in use")  # fmt: skip
            yield f"page faults: {counts['page_faults']}"

    def _of_sockets(self, stats: Mapping[str, int]) -> Iterator[str]:
        yield f"socket: {stats['socket_dropped']} dropped"

    def _pool_counts(self, pool: MemoryPool) -> dict[str, int]:
        stats = pool.stats
        return {
            "pool_requests": stats.gets,
            "pool_empty": stats.empty,
            "pool_too_large": stats.passed_by,
            "pool_most_in_use": stats.most_in_use,
            "page_faults": Usage.now().page_faults - self._faults_before,
        }

    def _record(self, stats: Mapping[str, int]) -> dict[str, object]:
        now = Usage.now()
        used = now - (self._at_first or now)
        return {
            **ABOUT,
            "ended": self._ended,
            "heaps": self._n,
            "heaps_not_understood": self.not_understood,
            "elapsed_ns": self._last_ns - self._first_ns,
            "timed_bytes": stats["payload_bytes"] - self._bytes_before,
            "cpu_user_ns": used.cpu_user_ns,
            "cpu_system_ns": used.cpu_system_ns,
            "context_switches": used.context_switches,
            **{f"packets_{name}": count for name, count in _fates(stats)},
            **{name: stats[name] for name in _OTHERS},
            **(self._pool_counts(self._pool) if self._pool is not None else {}),
        }

    def _trouble(self, stats: Mapping[str, int]) -> str | None:
        """What else is to be said where not all is well."""
        return None


class Heaps(_Arrivals):
    """The heaps that a stream receives."""

    _stream: Stream

    def __iter__(self) -> Iterator[HeapBase]:
        for heap in self._each(self._stream.get_nowait, self._stream.fd):
            self._n += 1
            yield heap
            del heap  # as above


class HeapsOfAll(Heaps):
    """The heaps of several streams on one port: in `each` those of a thread; and one account."""

    def __init__(self, streams: Sequence[Stream], options: ReceiverOptions) -> None:
        super().__init__(streams[0], options)
        self._streams = streams
        self.each = [Heaps(stream, options, together=self._together) for stream in streams]

    def report(self, last: str = "") -> None:
        came = [one for one in self.each if one._n]
        if came:
            first = min(came, key=lambda one: one._first_ns)
            self._first_ns, self._at_first = first._first_ns, first._at_first
            self._last_ns = max(one._last_ns for one in came)
        for one in came:
            self._n += one._n
            self._bytes_before += one._bytes_before
            self.not_understood += one.not_understood
        self._ended = "stop" if self._together.has_ended else "silence"
        super().report(last)

    def _of_sockets(self, stats: Mapping[str, int]) -> Iterator[str]:
        yield from super()._of_sockets(stats)
        for i, one in enumerate(self._sockets(), 1):
            yield f"socket {i}: {one['heaps']} heaps, {one['dropped']} dropped"

    def _sockets(self) -> list[dict[str, int]]:
        return [
            {
                "heaps": one._n,
                "datagrams": one._stream.stats.socket_datagrams,
                "dropped": one._stream.stats.socket_dropped,
            }
            for one in self.each
        ]

    def _record(self, stats: Mapping[str, int]) -> dict[str, object]:
        return super()._record(stats) | {"sockets": self._sockets()}


class Chunks(_Arrivals):
    """The chunks that a stream fills, each to be given back to it; heaps are counted by them."""

    def __init__(
        self, rings: ChunkRingStream | ChunkStreamRingGroup, options: ReceiverOptions
    ) -> None:
        stream = rings if isinstance(rings, ChunkRingStream) else rings[0]
        super().__init__(stream, options)
        self._rings = rings

    def __iter__(self) -> Iterator[Chunk]:
        ring, self._word = self._rings.data_ringbuffer, "chunk"
        for chunk in self._each(ring.get_nowait, ring.data_fd):
            self._n += int(np.count_nonzero(chunk.present))
            yield chunk

    def _twice(self, stats: Mapping[str, int]) -> int:
        """Heaps that came whole, and were written over by others."""
        return stats["heaps_complete"] - self._n

    def _account(self, stats: Mapping[str, int]) -> Iterator[str]:
        yield from super()._account(stats)
        yield (f"chunks: {stats['chunks']} filled, waits: {stats['chunk_waits']} for a free one,"
               f" {stats['room_waits']} for room")  # fmt: skip
        placeless = stats["rejected_heaps"] - stats[UNFIT] - stats["misplaced_heaps"]
        counts = (
            (stats[UNFIT], "of another size"),
            (stats["too_old_heaps"], "too old for their chunk"),
            (stats["misplaced_heaps"], "beyond any chunk"),
            (placeless, "without a timestamp"),
            (self._twice(stats), "in the place of others"),
        )
        said = [f"{count} {words}" for count, words in counts if count]
        if said:
            yield f"heaps that are in no chunk: {', '.join(said)}"

    def _record(self, stats: Mapping[str, int]) -> dict[str, object]:
        return super()._record(stats) | {name: stats[name] for name in (UNFIT, *_OF_CHUNKS)}

    def _trouble(self, stats: Mapping[str, int]) -> str | None:
        size = self._options.heap_size
        if stats[UNFIT]:
            return (f"heaps are not of {size} bytes, or their timestamps are no multiples of that:"
                    " say with -H what the sender sends; descriptors need a heap of"
                    " their own")  # fmt: skip
        if stats["too_old_heaps"] or stats["misplaced_heaps"] or self._twice(stats):
            return ("timestamps jump, or come twice: let one sender send, in order,"
                    " to a receiver that was started for it")  # fmt: skip
        return None


class ChunksOfAll(Chunks):
    """The chunks that the streams of a group fill together, each for a sender; and one account."""

    def __init__(self, group: ChunkStreamRingGroup, options: ReceiverOptions) -> None:
        super().__init__(group, options)
        self._streams, self._group = group[:], group
        self._awaited: int | None = None  # the sender that the others wait for, at the last look

    def _look(self) -> None:
        self._awaited = self._group.stats.slow_member
        super()._look()

    def _of_sockets(self, stats: Mapping[str, int]) -> Iterator[str]:
        yield from super()._of_sockets(stats)
        for i, one in enumerate(self._senders()):
            yield (f"sender {i}: {one['heaps']} heaps, {one['incomplete']} incomplete,"
                   f" {one['missing']} missing, {one['too_old']} too old;"
                   f" {one['dropped']} dropped")  # fmt: skip
        yield f"waits for a sender: {self._group.stats.member_waits}"

    def _senders(self) -> list[dict[str, int]]:
        return [
            {
                "port": self._options.port + i,
                "heaps": one["heaps_complete"],
                "packets": one["socket_datagrams"],
                "incomplete": one["incomplete_heaps_evicted"] + one["incomplete_heaps_flushed"],
                "missing": one["heaps_never_begun"] + one["counts_skipped"],
                "too_old": one["too_old_heaps"],
                "dropped": one["socket_dropped"],
            }
            for i, one in enumerate(stream.stats for stream in self._streams)
        ]

    def _record(self, stats: Mapping[str, int]) -> dict[str, object]:
        waits = {
            "member_waits": self._group.stats.member_waits,
            "longest_member_wait_ns": self._group.stats.longest_member_wait_ns,
            "first_packets_ns": round(self._first_packets * 1e9),
            "longest_pause_ns": round(self._longest_pause * 1e9),
        }
        return super()._record(stats) | waits | {"senders": self._senders()}

    def _trouble(self, stats: Mapping[str, int]) -> str | None:
        if self._awaited is not None:
            return (f"all waited for sender {self._awaited}, of which nothing comes: have it send,"
                    " or go on without it with --lossy")  # fmt: skip
        if stats["too_old_heaps"] and self._options.lossy:
            return ("heaps came too late: their senders are too far behind the others, which"
                    " --lossy does not wait for")  # fmt: skip
        return super()._trouble(stats)


def _fates(stats: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return what packets that came have become, and how many."""
    return [(name, stats[f"packets_{name}"]) for name in FATES]


def _trouble(stats: Mapping[str, int], was_interrupted: bool = False) -> str | None:
    """Return what is to be said where not all is well."""
    if stats["socket_datagrams"] != sum(count for _, count in _fates(stats)):
        return "the account does not add up: that is a fault of this receiver"
    if stats["socket_dropped"]:
        return (f"{_slow(stats)}the socket had no room for all packets: send more slowly, or allow"
                " a larger buffer with 'sysctl -w net.core.rmem_max=67108864'")  # fmt: skip
    if stats["packets_malformed"]:
        return (f"packets are malformed: they are longer than {Stream.DEFAULT_UDP_MAX_SIZE} bytes,"
                " or something else sends to this port")  # fmt: skip
    arriving = ["incomplete_heaps_flushed"] if was_interrupted else []
    if any(stats[name] for name in _MISSING if name not in arriving):
        return ("packets are missing, or not in order: compare with what was sent, and look for"
                " drops on the way")  # fmt: skip
    if stats["packets_duplicate"] or stats["packets_late"]:
        return ("packets came twice, or late: let each sender count heaps on, and look for what"
                " repeats packets on the way")  # fmt: skip
    return None


def _slow(stats: Mapping[str, int]) -> str:
    """Say where packets waited because the program did: the ring was full before the socket was."""
    if not stats["worker_blocked"]:
        return ""
    longest = stats["longest_ring_wait_ns"] / 1e6
    return (f"the program took heaps too slowly (the ring was full {stats['worker_blocked']} times,"
            f" for up to {longest:.1f} ms), and ")  # fmt: skip

# SPDX-License-Identifier: BSD-3-Clause
"""What streams have counted: the numbers of a moment, and in words where everything went."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from spead_tutorial import _core
from spead_tutorial._types import whole
from spead_tutorial.ledger import Gap, first_complaint, some, table
from spead_tutorial.recv._config import StreamStatConfig

#: What becomes of a packet: the core's list, and what was read behind the end of the stream.
FATES = {**_core.FATES, "after_end": "it came after the end of the stream"}

_LEAST_RMEM_MAX = 1 << 26

_NOTHING = (
    "nothing has arrived: look at the sender's address and port, and for firewalls on the way"
)
_ON_THE_WAY = (
    "packets that never reached this socket: look at what the sender counted, and for drops on the"
    " way (ip -s link, ethtool -S)"
)
_NOT_CAPTURED = (
    "packets that are not in the capture: look at what the sender counted, and how many tcpdump"
    " says that it dropped"
)

#: Fates that are always said, the others where there are any; and what helps against some.
_ALWAYS = ("placed", "duplicate", "malformed")
_WAYS_OUT = {
    "malformed": (
        "see whether something else sends to this port, raise max_size, or take one apart with"
        " spead_tutorial.wire"
    ),
    "after_loss": "allow_out_of_order takes them, whatever is missing",
    "after_end": "without stop_on_stop_item the stream goes on",
    "inconsistent": "let each sender have heap counts of its own",
    "too_large": (
        "raise max_heap_size, unless the heap has more than 1048576 item pointers or 65536 gaps"
    ),
    "unsized": "allow_unsized_heaps takes them",
    "no_memory": "lower max_heaps, or give the memory allocator more",
    "no_place": "see what the place function says, or raise max_chunks",
}
_HEAPS = {
    "heaps_live": "still arriving",
    "heaps_dropped": "that ended the stream",
    "ring_dropped": "dropped by the full ring",
    "too_old_heaps": "too old for any chunk",
    "rejected_heaps": "that the place function gave none",
}

_FRAMES = {
    "capture_others": "of no UDP, or filtered out",
    "capture_fragments": "fragments",
    "capture_cut": "cut",
}

_Counts = Mapping[str, int]


class StreamStats(Mapping[str, int]):
    """Counts of a stream since it was made, all of one moment.

    It is a mapping from names to counts, in order. A count is also found by its place, and as an
    attribute: ``stats["heaps"]``, ``stats[stream_stat_indices.HEAPS]``, ``stats.heaps``. In each of
    these ways it can also be set. Counts of several streams can be added.

    Parameters
    ----------
    config : sequence of StreamStatConfig
        Their names and modes.
    values : sequence of int
        The counts.

    Attributes
    ----------
    config : list of StreamStatConfig
        Their names and modes.
    heaps : int
        Heaps that ended, complete or not, but for the one that says that the stream ends.
    incomplete_heaps_evicted : int
        Heaps that something was missing of when another one needed the room.
    incomplete_heaps_flushed : int
        Heaps that something was missing of at the end.
    packets : int
        Packets that are well-formed, in every fate.
    batches, max_batch : int
        Times that a reader found packets, and the most that it found at once.
    single_packet_heaps : int
        Heaps that were complete with their first packet.
    search_dist : int
        Packets whose heap was not that of the packet before, and had to be looked for.
    worker_blocked : int
        Times that a reader had to wait because the ring was full.
    packets_received : int
        Packets that were read: the sum of the next eleven.
    packets_placed, packets_malformed, packets_duplicate, packets_late : int
        Packets that have a place in a heap; that are wrong by themselves; that bring what has
        arrived before; whose heap is finished, or was given up.
    packets_after_loss, packets_inconsistent : int
        Packets that come, in order, behind one that is missing; that contradict others of their
        heap.
    packets_too_large, packets_unsized, packets_no_memory, packets_no_place : int
        Packets whose heap is larger than allowed; does not say how large it is, and has to; got no
        memory; has no place in a chunk.
    packets_after_end : int
        Packets that had been read when the stream ended, and were not looked at.
    malformed_header, malformed_flavour, malformed_pointers, malformed_missing : int
        Malformed packets: that do not begin as packets of SPEAD do; have no flavour of 64 bits;
        are too short for their item pointers; lack their heap count, payload offset or length.
    malformed_payload, malformed_beyond, malformed_surplus : int
        Malformed packets: that are too short for their payload; reach beyond the end of their
        heap; are longer than they say, or than allowed.
    heaps_begun, heaps_complete, heaps_live : int
        Heaps that a packet was placed into; of which all has arrived; of which packets are awaited.
    heaps_dropped : int
        Heaps that ended with the stream, as they brought the packet that says so.
    heaps_never_begun : int
        Heaps that were not begun, nor refused a place: their counts are missing in a sequence that
        is regular but for them.
    counts_skipped : int
        Heap counts that are missing in sequences that are not: nothing tells whether such heaps
        were sent here.
    sender_mismatches : int
        Of the packets that were received, those from the middle of a heap that their sender had not
        begun, while a heap of that count, by another sender, was awaited.
    incomplete_heaps_dropped : int
        Incomplete heaps that ``contiguous_only`` kept from you.
    payload_bytes, incomplete_bytes : int
        Bytes of payload that have a place, and those of them in heaps that are not complete.
    socket_datagrams, socket_bytes, socket_messages, socket_calls : int
        Datagrams of all sockets, their bytes (UDP and IP headers not counted), the messages that
        the kernel handed them over in (with GRO, runs of datagrams), and system calls to receive.
    socket_in_place : int
        Datagrams that were expected: the kernel has written their payload to its place in a heap.
    socket_dropped : int
        What the sockets had no room for, counted as the kernel keeps it: datagrams, or with GRO
        runs of them.
    socket_buffer : int
        Bytes of all sockets' buffers, as the kernel counts them: twice what was granted.
    ring_dropped, longest_ring_wait_ns : int
        Heaps that were dropped because the ring was full; the longest time, in ns, that a reader
        waited for it.
    longest_unread_ns : int
        Of a stream of heaps without a thread, the longest time, in ns, in which no call read it,
        until one did; times in which an event loop watched them do not count. With a thread
        it is 0.
    capture_frames, capture_others, capture_fragments, capture_cut : int
        Frames of captures; those that are of no UDP, or not asked for by the filter; that are
        fragments of datagrams; that were not captured as a whole.
    """

    __slots__ = ("_places", "_values", "config")

    config: list[StreamStatConfig]
    _values: list[int]
    _places: dict[str, int]

    def __init__(self, config: Sequence[StreamStatConfig], values: Sequence[int]) -> None:
        places = {stat.name: i for i, stat in enumerate(config)}
        members = {"config": list(config), "_values": list(values), "_places": places}
        for name, member in members.items():
            object.__setattr__(self, name, member)

    def _place(self, key: str | int) -> int:
        if isinstance(key, str):
            if key not in self._places:
                raise KeyError(f"there is no count {key!r}: list() of these has all names")
            return self._places[key]
        place = operator.index(key)
        if place < 0:
            raise TypeError(f"the place of a count is not negative, but {place}")
        return place

    def __getitem__(self, key: str | int) -> int:
        return self._values[self._place(key)]

    def __setitem__(self, key: str | int, value: int) -> None:
        place = self._place(key)
        self._values[place] = whole("a count", value)

    def __getattr__(self, name: str) -> int:
        if name in StreamStats.__slots__:  # which is asked for only where there is none yet
            raise AttributeError("these counts have not been made", name=name, obj=self)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no count {name!r}", name=name, obj=self) from None

    def __setattr__(self, name: str, value: int) -> None:
        try:
            self[name] = value
        except KeyError:
            raise AttributeError(f"there is no count {name!r}", name=name, obj=self) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return StreamStats, (self.config, self._values)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __add__(self, other: StreamStats) -> StreamStats:
        if not isinstance(other, StreamStats):
            return NotImplemented
        if self.config != other.config:
            raise ValueError("the counts of these streams have different names or modes")
        rows = zip(self.config, self._values, other._values, strict=True)
        return StreamStats(self.config, [stat.combine(a, b) for stat, a, b in rows])

    def __iadd__(self, other: StreamStats) -> Self:
        self._values[:] = (self + other)._values
        return self

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._places]

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}={count}" for name, count in self.items() if count)
        return f"<StreamStats {counts or 'nothing yet'}>"


# ---- In words ----


class Account:
    """Where everything went that came to a stream: a program ends with ``print(Account(stats))``.

    Every packet that was received is in one of its rows. What is missing has a line that says
    where it was lost, and what can be done.

    Parameters
    ----------
    stats : StreamStats
        The counts of a stream. From before it was stopped, heaps of which packets were still
        awaited do not count as lost.

    Attributes
    ----------
    stats : StreamStats
        These counts.

    Examples
    --------
    >>> import spead_tutorial
    >>> from spead_tutorial import recv
    >>> with spead_tutorial.ThreadPool() as pool, recv.Stream(pool) as stream:
    ...     print(recv.Account(stream.stats).conclusion)
    nothing has arrived: look at the sender's address and port, and for firewalls on the way
    """

    def __init__(self, stats: _Counts) -> None:
        self.stats = stats

    @property
    def troubles(self) -> list[str]:
        """What was lost where, and what can be done: a line each; none where all is well."""
        if self.stats["packets_received"] == 0 and self.stats["socket_dropped"] == 0:
            return list(_captured(self.stats)) or [_nothing(self.stats)]
        wrong = sums(self.stats)
        found = [
            *([wrong] if wrong else []),
            *_captured(self.stats),
            *_lost_here(self.stats),
            *_unused(self.stats),
        ]
        missing = _incomplete(self.stats) + self.stats["heaps_never_begun"]
        if missing and not found:
            where = _NOT_CAPTURED if self.stats.get("capture_frames") else _ON_THE_WAY
            verb = "lacks" if missing == 1 else "lack"
            found = [f"{some(missing, 'heap')} {verb} {where}"]
        return [*found, *_repeated(self.stats)]

    @property
    def notes(self) -> list[str]:
        """What may be a loss, and cannot be told from what is here: a line each."""
        if count := self.stats["counts_skipped"]:
            return [
                "heap counts have gaps: if the sender counts every heap that it sends here, up to"
                f" {some(count, 'heap')} may be missing"
            ]
        return []

    @property
    def is_whole(self) -> bool:
        """Whether everything has arrived, as far as can be seen here, and the sums are right."""
        return not self.troubles

    @property
    def conclusion(self) -> str:
        """All in one line: that all is well, or the first of the troubles."""
        for trouble in self.troubles:
            return trouble
        for note in self.notes:
            return f"all {self.stats['packets_received']} packets are accounted for; {note}"
        return f"all {self.stats['packets_received']} packets are accounted for, none is missing"

    @property
    def lines(self) -> list[str]:
        """A table of frames, packets, heaps and sockets, and what it comes to."""
        groups = [
            ("frames", list(_frame_rows(self.stats))),
            ("packets", list(_packet_rows(self.stats))),
            ("heaps", list(_heap_rows(self.stats))),
            ("sockets", list(_socket_rows(self.stats))),
        ]
        found = [*self.troubles, *self.notes]
        return [*table(groups), *(found if self.troubles else [self.conclusion])]

    def __str__(self) -> str:
        return "\n".join(self.lines)


def sums(stats: _Counts) -> str | None:
    """Say where a packet or a heap is nowhere, or twice; None where each is in one place."""
    received, datagrams = stats["packets_received"], stats["socket_datagrams"]
    fates = sum(stats[f"packets_{fate}"] for fate in FATES)
    ended = stats["heaps_complete"] + _incomplete(stats) + stats["heaps_dropped"]
    where = "in this stream, which is a fault of it: please report it"
    return first_complaint(
        Gap(where, came, became, unit=unit)
        for unit, came, became in (
            ("packet", received, fates),
            ("heap", stats["heaps_begun"], ended + stats["heaps_live"]),
            ("datagram", max(datagrams, received), received),  # there are packets in memory, too
        )
    )


def losses(stats: _Counts) -> str:
    """Say in a few words what is missing so far, or that nothing is."""
    found = [
        f"{count} {what}"
        for count, what in (
            (_incomplete(stats), "heaps incomplete"),
            (stats["heaps_never_begun"], "never begun"),
            (stats["counts_skipped"], "counts without a heap"),
            (stats["packets_late"] + stats["packets_duplicate"], "packets late or twice"),
            (stats["socket_dropped"], "dropped by the socket"),
            (stats["packets_malformed"], "malformed packets"),
        )
        if count
    ]
    return ", ".join(found) or "nothing missing"


def _incomplete(stats: _Counts) -> int:
    return stats["incomplete_heaps_evicted"] + stats["incomplete_heaps_flushed"]


# ---- Rows ----


def _frame_rows(stats: _Counts) -> Iterator[tuple[int, str]]:
    if stats.get("capture_frames"):
        yield stats["capture_frames"], "captured"
        yield from ((stats[name], what) for name, what in _FRAMES.items() if stats[name])


def _packet_rows(stats: _Counts) -> Iterator[tuple[int, str]]:
    yield stats["packets_received"], "received"
    others = [fate for fate in FATES if fate not in _ALWAYS and stats[f"packets_{fate}"]]
    for fate in (*_ALWAYS, *others):
        about = _about(stats, fate) if fate == "malformed" or fate in others else ""
        yield stats[f"packets_{fate}"], fate.replace("_", " ") + (f": {about}" if about else "")


def _about(stats: _Counts, fate: str) -> str:
    """Say what a fate means; or how many packets are malformed by what."""
    if fate != "malformed":
        return FATES[fate]
    found = [(stats[f"malformed_{fault}"], text) for fault, text in _core.FAULTS.items()]
    return ", ".join(f"{count}: {text}" for count, text in found if count)


def _heap_rows(stats: _Counts) -> Iterator[tuple[int, str]]:
    yield stats["heaps_complete"], "complete"
    arrived = f", of which {some(stats['incomplete_bytes'], 'byte')} arrived"
    yield _incomplete(stats), f"incomplete{arrived if _incomplete(stats) else ''}"
    yield stats["heaps_never_begun"], "never begun"
    if stats["counts_skipped"]:
        yield stats["counts_skipped"], "counts without a heap"
    yield from ((stats[name], what) for name, what in _HEAPS.items() if stats.get(name))


def _socket_rows(stats: _Counts) -> Iterator[tuple[int, str]]:
    if stats["socket_buffer"]:
        runs = f", in {_runs(stats)}" if _runs(stats) else ""
        unread = f", not read for up to {_unread(stats)}" if stats["longest_unread_ns"] else ""
        buffer = f"a buffer of {stats['socket_buffer'] // 2} bytes{unread}"
        yield stats["socket_dropped"], f"dropped for want of room in {buffer}{runs}"
    if stats["worker_blocked"]:
        longest = f"the longest for {stats['longest_ring_wait_ns'] / 1e6:.3g} ms"
        yield stats["worker_blocked"], f"waits until the program took a heap, {longest}"


def _unread(stats: _Counts) -> str:
    """The longest time in which a stream without a thread was not asked for heaps."""
    return f"{stats['longest_unread_ns'] / 1e6:.3g} ms"


def _runs(stats: _Counts) -> str:
    """What the kernel drops, where that is more than a packet: receive offload merges them."""
    if stats["socket_dropped"] == 0 or stats["socket_messages"] >= stats["socket_datagrams"]:
        return ""
    each = stats["socket_datagrams"] / stats["socket_messages"]
    return f"runs of {each:.3g} packets on average"


# ---- Troubles ----


def _nothing(stats: _Counts) -> str:
    if not stats.get("capture_frames"):
        return _NOTHING
    frames = some(stats["capture_frames"], "frame")
    return f"of {frames} in the capture none is UDP that the filter takes: see tcpdump -r FILE"


def _captured(stats: _Counts) -> Iterator[str]:
    """What was captured, and is no whole datagram."""
    if count := stats.get("capture_cut"):
        yield f"the capture cut {some(count, 'frame')}: have all of them taken, by tcpdump -s 0"
    if count := stats.get("capture_fragments"):
        yield (
            f"the capture has {some(count, 'fragment')} of datagrams, which are not put together:"
            " send packets that fit the MTU"
        )


def _lost_here(stats: _Counts) -> Iterator[str]:
    """What came as far as this machine."""
    if stats["socket_dropped"]:
        yield _dropped_by_socket(stats)
    if stats["ring_dropped"]:
        heaps = some(stats["ring_dropped"], "heap")
        yield f"the full ring dropped {heaps}: take them faster, or give it room for more"
    if _came_after(stats):
        packets = some(stats["packets_late"], "packet")
        yield f"{packets} came after their heaps had made room for others: raise max_heaps"
    if stats["sender_mismatches"]:
        packets = some(stats["sender_mismatches"], "packet")
        yield (
            f"{packets} came from other senders than the rest of their heaps: by_sender=False takes"
            " heaps of which several senders send parts"
        )


def _came_after(stats: _Counts) -> bool:
    """Whether packets were late as their heaps had been given up, rather than finished."""
    return bool(stats["packets_late"] and stats["incomplete_heaps_evicted"])


def _dropped_by_socket(stats: _Counts) -> str:
    why, faster = "", "receive faster"
    if stats["longest_unread_ns"]:  # there is no worker: what is read at once may fill the ring
        why = f"the program asked for no heap for up to {_unread(stats)}, and "
        faster = "have a thread pool receive"
    elif any(stats.get(name) for name in ("worker_blocked", "chunk_waits", "room_waits")):
        why = "the program took heaps too slowly, and "
    what = f"{stats['socket_dropped']} {_runs(stats) or 'packets'}"
    more = max(_LEAST_RMEM_MAX, 1 << stats["socket_buffer"].bit_length())
    return (
        f"{why}the socket had no room for {what}: send more slowly or {faster}, or ask for a"
        f" larger buffer, which 'sysctl -w net.core.rmem_max={more}' allows"
    )


def _unused(stats: _Counts) -> Iterator[str]:
    """What came, and could not be used."""
    for fate, way_out in _WAYS_OUT.items():
        if count := stats[f"packets_{fate}"]:
            what = f"{some(count, 'packet')} {fate.replace('_', ' ')}"
            yield f"{what} ({_about(stats, fate)}): {way_out}"


def _repeated(stats: _Counts) -> Iterator[str]:
    """What came twice, or of a heap that was finished: it may be of a heap that nobody gets."""
    late = 0 if _came_after(stats) else stats["packets_late"]
    for count, what in ((stats["packets_duplicate"], "duplicate"), (late, "late")):
        if count:
            yield (
                f"{some(count, 'packet')} {what} ({FATES[what]}): the network repeats packets, or a"
                " sender its heap counts, which allow_out_of_order=False takes as new heaps"
            )

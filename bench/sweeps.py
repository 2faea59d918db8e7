# SPDX-License-Identifier: BSD-3-Clause
"""What can be measured, as data: the sweeps, which are made of cases.

A sweep is the cases of a chapter's pictures: what came
before, what came after, and beside them the peer and bare system calls.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from spead_tutorial import catalogue
from spead_tutorial.catalogue import LADDER, MEASURED, find_chapter
from spead_tutorial.measure.baselines import CEILING, PEER
from spead_tutorial.measure.case import Case
from spead_tutorial.records import OURS

__all__ = [
    "ALONE",
    "BARE",
    "CEILING",
    "LOST",
    "PEER",
    "PEERS",
    "PEER_FROM_SOURCE",
    "POOL",
    "RECEIVERS",
    "SIZES",
    "SPOILT",
    "SWEEPS",
    "TURNS",
    "Size",
    "Sweep",
    "find_sweep",
]

#: The peer as it is installed, and built here, where the compiler sees what the kernel offers.
PEER_FROM_SOURCE = "spead2-source"
PEERS = (PEER, PEER_FROM_SOURCE)
#: Chapter 9's, which `bench.pools` runs, but for searches.
POOL = "tut_9_recv_memory_pool"
#: One that receives what is lost on purpose: `bench.losing` runs it.
LOST = "receive_lost"
#: Programs that do nothing but receive, of ours, the peer's and the bare loop: heaps one by one,
#: and in chunks.
ALONE = ("receive", "receive_chunks")
#: All that receive, those of the chapters, too: `bench.receivers` runs them.
RECEIVERS = (*ALONE, LOST, *(one.name for one in catalogue.RECEIVERS))
#: A variant of theirs: the socket is filled while the receiver is stopped, and then emptied.
TURNS = "in turns"
#: And another: some of the packets are lost, and some come in another order.
SPOILT = "spoilt"
#: What the bare loop is called, that belongs to the first.
BARE = "receive_bare"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclasses.dataclass(frozen=True, slots=True)
class Size:
    """How thorough a run is."""

    name: str  # `"quick"`, `"full"` or `"tiny"` (for tests)
    rounds: int  # rounds that count, where nobody says otherwise
    longest_s: float  # seconds that a sample lasts at most
    most_bytes: int  # bytes of payload that it sends at most


SIZES = {
    "quick": Size("quick", 5, 0.3, 4 * GIB),
    "full": Size("full", 9, 1.2, 4 * GIB),
    "tiny": Size("tiny", 2, 0.05, 4 * MIB),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Sweep:
    """Cases that are measured together."""

    name: str  # what one types; its record is called after it
    about: str  # what it shows
    cases: tuple[Case, ...]  # all of them
    quick: tuple[Case, ...]  # those of a quick run
    # numbers of chapters that have no sweep of their own, as this one has all of it
    chapters: tuple[str, ...] = ()

    def of(self, size: Size) -> tuple[Case, ...]:
        """Return the cases of a run of some size."""
        return self.cases if size.name == "full" else self.quick


# ---------------------------------------------------------------------------------------
# The sweeps

_HEAP_SIZES = (8 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB)
_QUICK_HEAP_SIZES = tuple(1 << n for n in (13, 16, 20, 24, 26))
#: So small that it is calls, threads and headers that cost, and hardly the bytes.
_SMALL_HEAP_SIZES = (256, KIB)
_MTU_PAYLOAD = 9216 - 28
#: From there on, packets are more than the lab's MTU allows: IP fragments them.
_PACKET_SIZES = (512, 1024, 1472, 2048, 4096, 6000, 8192, 9000, _MTU_PAYLOAD, 16384, 32768, 65504)
_QUICK_PACKET_SIZES = (512, 1472, 4096, 9000, 65504)
_CAUSE_SIZES = (MIB, 16 * MIB, 64 * MIB)
_RECORDING_SIZES = (64 * KIB, MIB, 16 * MIB)
_STREAMS_SIZES = (8 * KIB, 64 * KIB, MIB)
#: Payload of a sample: as much as most have at most, a quarter of it, and eight times as much.
_AMOUNTS_GIB = (1, 4, 32)
#: Packets that share messages, a batch that the caches hold, and one that they do not.
_CEILING_SIZES = (8 * KIB, MIB, 16 * MIB)
#: Cuts a heap of 16 KiB into two equal packets, with their headers of 56 and 40 bytes; one of
#: 64 KiB into as many packets, and messages, as 9000 does.
_HALF_OF_16_KIB = (16 * KIB + 56 + 40) // 2
#: Of one packet, two, three and more: those of 16 KiB can be cut into equal ones.
_EQUAL_SIZES = tuple(kib * KIB for kib in (8, 16, 24, 32, 64, 256))
_QUICK_EQUAL_SIZES = (8 * KIB, 16 * KIB, 64 * KIB)

#: What the allocator does with memory that a heap no longer needs. NumPy asks for huge pages by
#: itself; glibc has to be told to (2.35 and newer), and to keep what is freed.
_CAUSES: Mapping[str, tuple[tuple[str, str], ...]] = MappingProxyType(
    {
        "small pages": (("NUMPY_MADVISE_HUGEPAGE", "0"),),
        "huge pages": (
            ("NUMPY_MADVISE_HUGEPAGE", "1"),
            ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"),
        ),
        "memory kept": (
            ("NUMPY_MADVISE_HUGEPAGE", "0"),
            (
                "GLIBC_TUNABLES",
                f"glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold={16 * GIB}",
            ),
        ),
    }
)
#: Slower than memory: to send a heap takes longer than to fill it. And one so slow that to send a
#: heap takes about as long as to make random samples; the heap is larger than what a socket holds.
_LINK_BITS_PER_S = 10 * 10**9
_SLOW_LINK_BITS_PER_S = 10**9
_LISTENERS = {"no listener": "none", "listener": "fast", "slow listener": "slow"}


def _sizes(heap_sizes: Iterable[int], *programs: tuple[str, str, str, str]) -> tuple[Case, ...]:
    """Cross sizes of heaps with programs: implementation, language, program and variant."""
    return tuple(
        Case(implementation, language, program, size, variant=variant)
        for size in heap_sizes
        for implementation, language, program, variant in programs
    )


def _ours(*programs: str) -> list[tuple[str, str, str, str]]:
    return [(OURS, language, program, "") for program in programs for language in MEASURED]


def _peer(*programs: str) -> list[tuple[str, str, str, str]]:
    return [(peer, "python", program, "") for program in programs for peer in PEERS]


_TWO_THREADS = (CEILING, "c", "ceiling", "two threads")
_ONE_THREAD = (CEILING, "c", "ceiling", "one thread")
_BARE = (_TWO_THREADS, _ONE_THREAD)


def _both(name: str, about: str, programs: Iterable[tuple[str, str, str, str]]) -> Sweep:
    programs = list(programs)
    quick = _sizes(_QUICK_HEAP_SIZES, *programs)
    return Sweep(name, about, _sizes(_HEAP_SIZES, *programs), quick)


def _ladder() -> Sweep:
    cases = tuple(
        Case(
            OURS,
            language,
            rung.program,
            rung.heap_size,
            rung.packet_size,
        )
        for rung in LADDER
        for language in MEASURED
    )
    sizes = dict.fromkeys(rung.heap_size for rung in LADDER)
    peer = [
        (PEER_FROM_SOURCE, "python", find_chapter(number).name, "") for number in ("8", "10", "11")
    ]
    one = _sizes(sizes, *peer, _ONE_THREAD)
    two = (dataclasses.replace(case, streams=2) for case in _sizes(sizes, _ONE_THREAD))
    cases = (*cases, *one, *two)
    return Sweep("ladder", "every chapter at common settings", cases, cases)


def _in_cpp() -> Sweep:
    """What C++ costs beside C: every chapter as in the ladder, and two of them at all sizes."""
    in_ladder = [
        Case(OURS, language, rung.program, rung.heap_size, rung.packet_size)
        for rung in LADDER
        for language in ("c", "cpp")
    ]
    programs = [
        (OURS, language, find_chapter(number).name, "")
        for number in ("10", "13")
        for language in ("c", "cpp")
    ]
    cases = tuple(dict.fromkeys([*in_ladder, *_sizes(_HEAP_SIZES, *programs)]))
    return Sweep("cpp", "every chapter in C++ beside C", cases, tuple(in_ladder))


def _pipeline() -> Sweep:
    """In turns and overlapped, random samples and constant ones; pinned or not, behind a link."""
    plain = [
        Case(OURS, language, program, MIB, find_chapter(program).packet_size, random)
        for program, random in (
            ("tut_4_send_perf", False),
            ("tut_4_send_constant", False),
            ("tut_5_send_async", False),
            ("tut_5_send_pipeline", True),
            ("tut_5_send_pipeline", False),
        )
        for language in MEASURED
    ]
    compared = [case for case in plain if case.program != "tut_5_send_async"]
    pinned = [
        dataclasses.replace(case, pinned=where)
        for where in ("pinned", "one core")
        for case in plain
        if where == "pinned" or case in compared
    ]
    behind = [dataclasses.replace(case, link=_LINK_BITS_PER_S) for case in compared]
    behind += [
        dataclasses.replace(case, link=_SLOW_LINK_BITS_PER_S, heap_size=4 * MIB)
        for case in compared
        if case.random or case.program == "tut_4_send_perf"
    ]
    watched = [case for case in compared if case.language == "python"]
    constant = [case for case in watched if case.program != "tut_4_send_perf" and not case.random]
    watched += [dataclasses.replace(case, link=_LINK_BITS_PER_S) for case in constant]
    lines = [dataclasses.replace(case, timeline=True) for case in watched]
    cases = (*plain, *pinned, *behind, *lines)
    return Sweep("tut-5", "sending while preparing: rates and times", cases, cases)


def _packet_sizes() -> Sweep:
    def cases(sizes: Iterable[int]) -> tuple[Case, ...]:
        ours = [
            Case(OURS, language, "tut_6_send_pktsize", MIB, size)
            for size in sizes
            for language in MEASURED
        ]
        whole = [size for size in sizes if size <= _MTU_PAYLOAD]
        bare = [Case(*_TWO_THREADS[:3], MIB, size, variant=_TWO_THREADS[3]) for size in whole]
        return (*ours, *bare)

    return Sweep("tut-6", "the size of packets", cases(_PACKET_SIZES), cases(_QUICK_PACKET_SIZES))


def _loopback() -> Sweep:
    cases = tuple(
        Case(OURS, language, "tut_6_send_pktsize", variant=variant, listener=listener)
        for variant, listener in [*_LISTENERS.items(), ("", None)]
        for language in MEASURED
    )
    return Sweep("tut-6-loopback", "loopback, with and without a listener", cases, cases)


def _memory() -> Sweep:
    before, after = "tut_8_send_heap_size", "tut_8_send_reuse_memory"
    causes = tuple(
        Case(OURS, language, before, size, variant=variant, environment=environment)
        for size in _CAUSE_SIZES
        for variant, environment in _CAUSES.items()
        for language in MEASURED
    )
    plain = _ours(before, after)
    return Sweep(
        "tut-8",
        "reusing memory: rates and page faults",
        (*_sizes(_HEAP_SIZES, *plain), *causes),
        (*_sizes(sorted({*_QUICK_HEAP_SIZES, *_CAUSE_SIZES}), *plain), *causes),
    )


_EIGHT, _TEN, _ELEVEN, _THIRTEEN, _FOURTEEN, _FIFTEEN, _SIXTEEN = (
    find_chapter(number).name for number in ("8", "10", "11", "13", "14", "15", "16")
)
_NO_THREAD = "tut_13_send_no_thread"


def _batches() -> Sweep:
    """Chapter 11; and once more with packets that are equal where heaps have two of them."""
    sweep = _both(
        "tut-11",
        "batches of heaps: a list, then a HeapReferenceList",
        [*_ours(_TEN, "tut_11_send_list_of_heaps", _ELEVEN), *_peer(_TEN, _ELEVEN), *_BARE],
    )
    batches = [(OURS, language, _ELEVEN, "equal packets") for language in MEASURED]
    equal = (
        dataclasses.replace(case, packet_size=_HALF_OF_16_KIB)
        for case in _sizes((16 * KIB, 64 * KIB), *batches)
    )
    return dataclasses.replace(sweep, cases=(*sweep.cases, *equal))


def _streams() -> Sweep:
    """One stream and several; what the same cores do with two threads; bare loops likewise."""
    counted = [*_ours(_FOURTEEN), _ONE_THREAD]
    cases = (
        *_sizes(_STREAMS_SIZES, *_ours(_ELEVEN, _THIRTEEN)),
        *(
            dataclasses.replace(case, streams=streams)
            for case in _sizes(_STREAMS_SIZES, *counted)
            for streams in (1, 2, 4)
        ),
    )
    return Sweep("tut-14", "a stream for each core, one sequence of heaps", cases, cases)


def _zero_copy() -> Sweep:
    """Read in place or copied; out of huge pages or small ones; as it is or filled anew."""
    ours = [
        (OURS, language, _FIFTEEN, variant)
        for variant in ("", "small pages", "copy", "fill", "copy, fill")
        for language in MEASURED
    ]
    bare = "one thread, no fill"
    loops = [
        (CEILING, "c", "ceiling", variant)
        for variant in (bare, f"{bare}, zero-copy", f"{bare}, zero-copy, huge pages")
    ]
    cases = _sizes(_RECORDING_SIZES, *ours, *loops)
    return Sweep("tut-15", "a recording that the kernel reads in place", cases, cases)


def _equal_packets() -> Sweep:
    """Chapters 13 and 16 with packets of one size; then 16's with what the lab's route takes."""

    def cases(sizes: Iterable[int]) -> tuple[Case, ...]:
        route = _sizes(sizes, *((OURS, language, _SIXTEEN, "route") for language in MEASURED))
        return (
            *_sizes(sizes, *_ours(_THIRTEEN, _SIXTEEN), _ONE_THREAD),
            *(dataclasses.replace(case, packet_size=_MTU_PAYLOAD // 8 * 8) for case in route),
        )

    about = "equal packets, and as large as the route takes them"
    return Sweep("tut-16", about, cases(_EQUAL_SIZES), cases(_QUICK_EQUAL_SIZES))


def _targets() -> Sweep:
    """Every way of ours to send, beside the peer at its best and bare loops of the same kind."""
    ours = _ours(_EIGHT, _TEN, _NO_THREAD, _ELEVEN, _THIRTEEN, _SIXTEEN)
    peer = [(PEER_FROM_SOURCE, "python", program, "") for program in (_EIGHT, _TEN, _ELEVEN)]

    def cases(sizes: Iterable[int]) -> tuple[Case, ...]:
        two = _sizes(sizes, *_ours(_FOURTEEN), _ONE_THREAD)
        return (
            *_sizes(sizes, *ours, *peer, _TWO_THREADS, _ONE_THREAD),
            *(dataclasses.replace(case, streams=2) for case in two),
        )

    about = "all chapters from 8 on, beside spead2 from its source and the bare loops"
    return Sweep("targets", about, cases(_HEAP_SIZES), cases(_QUICK_HEAP_SIZES), ("13",))


def _small() -> Sweep:
    programs = [*_ours(_TEN, _ELEVEN), *_peer(_TEN, _ELEVEN), _TWO_THREADS]
    cases = _sizes(_SMALL_HEAP_SIZES, *programs)
    return Sweep("small", "what a heap costs: heaps of 256 bytes and 1 KiB", cases, cases)


def _ceiling() -> Sweep:
    """Bare loops: who sends, whether samples are written before, and what is read in place.

    Two threads are there to fill and to send; without a fill, one of them has nothing to do.
    """
    works = [
        ", ".join(filter(None, (fill, way)))
        for fill in ("", "no fill")
        for way in ("", "zero-copy", "zero-copy, huge pages")
    ]

    def loops(threads: str, works: Iterable[str]) -> list[tuple[str, str, str, str]]:
        words = (", ".join(filter(None, (threads, work))) for work in works)
        return [(CEILING, "c", "ceiling", variant) for variant in words]

    both = [work for work in works if "no fill" not in work]
    alone = _sizes(_CEILING_SIZES, *loops("one thread", works))
    cases = (
        *_sizes(_CEILING_SIZES, *loops("two threads", both)),
        *alone,
        *(dataclasses.replace(case, streams=2) for case in alone),
    )
    return Sweep("ceiling", "bare system calls: threads, filling, zero-copy", cases, cases)


def _lengths() -> Sweep:
    """The same programs for as long as samples last, for a quarter of that, and eight times."""
    cases = tuple(
        Case(OURS, language, program, size, variant=f"{gib} GiB", heaps=gib * GIB // size)
        for size in (8 * KIB, MIB)
        for language, program in (("python", _TEN), ("c", _TEN), ("c", _THIRTEEN))
        for gib in _AMOUNTS_GIB
    )
    return Sweep("length", "what is gained by longer samples", cases, cases)


#: Who receives heaps, and who receives chunks of them. The language of the peer's library is C++;
#: it stands as "c", as it is what C is held against.
_RECEIVING = (
    (OURS, "c", "receive"),
    (OURS, "python", "receive"),
    (PEER_FROM_SOURCE, "c", "receive"),
    (PEER_FROM_SOURCE, "python", "receive"),
    (PEER, "python", "receive"),
    (CEILING, "c", "receive"),
)
_CHUNKING = tuple((who, "python", "receive_chunks") for who in (OURS, PEER_FROM_SOURCE, PEER))
_RECEIVED_PACKETS = (1472, 9000)
_RECEIVED_SIZES = (64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB)
_CHUNKED_SIZES = (KIB, 8 * KIB, 64 * KIB)


def _receiving() -> Sweep:
    """Receivers where nothing is lost, at two sizes of packets; the bare loop without its parts.

    At once, sender and receiver are as fast as the slower one, and as it is to wake the receiver;
    in turns, one sees the receiver alone.
    """

    def cases(sizes: Iterable[int], chunked: Iterable[int]) -> tuple[Case, ...]:
        every = [
            *((size, who) for size in sizes for who in _RECEIVING),
            *((size, who) for size in chunked for who in _CHUNKING),
        ]
        both = tuple(
            Case(*who, size, variant=variant) for size, who in every for variant in ("", TURNS)
        )
        apart = tuple(
            Case(*who, size, variant=variant)
            for size in (64 * KIB, MIB)
            for who in _RECEIVING
            for variant in ("veth", f"veth, {TURNS}")
        )
        parts = tuple(
            Case(CEILING, "c", "receive", MIB, variant=f"{part}, {TURNS}")
            for part in ("no GRO", "no copy")
        )
        return tuple(
            dataclasses.replace(case, packet_size=packet_size)
            for packet_size in _RECEIVED_PACKETS
            for case in (*both, *apart, *parts)
        )

    return Sweep(
        "receive",
        "receivers beside spead2's and a bare loop, where nothing is lost",
        cases(_RECEIVED_SIZES, _CHUNKED_SIZES),
        cases((64 * KIB, MIB, 16 * MIB), (KIB,)),
    )


def _chunks() -> Sweep:
    """Chapter 12: heaps handed over one by one, and in chunks; each receiver alone."""
    programs = [
        (implementation, language, program, TURNS)
        for implementation, language in (*((OURS, one) for one in MEASURED),
                                         (PEER_FROM_SOURCE, "python"))
        for program in ALONE
    ]  # fmt: skip
    return Sweep(
        "tut-12",
        "heaps received one by one, and in chunks",
        _sizes((KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB), *programs),
        _sizes((KIB, 16 * KIB, 256 * KIB), *programs),
    )


def _paced() -> Sweep:
    """As many bytes in small heaps and in very large ones, at rates: how many heaps come whole."""
    cases = tuple(
        Case(*who, size, variant=f"{rate} GB/s", heaps=20 * 64 * MIB // size)
        for rate in (1, 2, 3, 4)
        for size in (MIB, 64 * MIB)
        for who in _RECEIVING
        if who[0] in (OURS, PEER_FROM_SOURCE)
    )
    return Sweep("receive-paced", "heaps of 1 MiB and of 64 MiB, at rates", cases, cases)


_LARGE = 16 * MIB
#: Chapters that are left out at a point: 3 is too slow for heaps that are as large, and 12 has
#: nothing to gain there; small packets are there to see what they cost, and one chapter shows it.
#: Of those that do nothing but receive, only what a chapter is held against is at every point.
_LEFT_OUT = {(_LARGE, 9000): (3, 12), (MIB, 1472): (3, 9, 12)}


def _lossless() -> Sweep:
    """The highest rate at which each receiver gets all: a search, see `measure.search`."""
    chapters = [
        (one.number, (OURS, language, one.name))
        for one in catalogue.RECEIVERS
        for language in MEASURED
    ]
    beside = [(PEER_FROM_SOURCE, "c", "receive"), (CEILING, "c", "receive")]
    alone = [who for who in _RECEIVING if who not in beside and who[0] != PEER]

    def cases(*points: tuple[int, int]) -> tuple[Case, ...]:
        return tuple(
            Case(*who, *point, search=True)
            for point in points
            for number, who in (*chapters, *((0, who) for who in beside))
            if number not in _LEFT_OUT.get(point, ())
        )

    quick = (*cases((MIB, 9000)), *(Case(*who, search=True) for who in alone))
    wheel = Case(PEER, "python", "receive", search=True)
    others = cases((64 * KIB, 9000), (_LARGE, 9000), (MIB, 1472))
    about = "the highest rate at which receivers lose nothing"
    return Sweep("receive-lossless", about, (*quick, wheel, *others), quick)


def _receivers_memory() -> Sweep:
    """A hundred times as many heaps, spoilt or not: the peak of memory has to be the same."""
    cases = tuple(
        Case(OURS, language, "receive", 4 * KIB, 1472, variant=variant, heaps=heaps)
        for language in MEASURED
        for variant in ("", SPOILT)
        for heaps in (10**5, 10**7)
    )
    about = "the memory of receivers, over ten million heaps"
    return Sweep("receive-memory", about, cases, cases)


#: A link that both programs of chapter 9 keep up with, and how many buffers they may have on it.
_LINK_OF_A_POOL = 4 * 10**9
_BUFFERS = (0, 3, 4, 5, 6, 7)


def _pools() -> Sweep:
    """New memory and a pool's, of a receiver alone and of chapter 9's, which may lose heaps."""
    alone = [
        (OURS, language, "receive", f"{memory}{TURNS}")
        for memory in ("", "no pool, ")
        for language in MEASURED
    ]
    chapter = [(OURS, language, POOL, "") for language in MEASURED]
    large = [dataclasses.replace(case, heaps=20) for case in _sizes([64 * MIB], *chapter)]
    none = [dataclasses.replace(case, variant="pool of 0") for case in large]
    linked = [dataclasses.replace(case, link=_LINK_OF_A_POOL) for case in (*large, *none)]
    small = [
        dataclasses.replace(case, variant=f"pool of {buffers}", heaps=1000)
        for case in _sizes([MIB], *chapter)
        for buffers in _BUFFERS
    ]

    def cases(sizes: Iterable[int]) -> tuple[Case, ...]:
        return (*_sizes(sizes, *alone), *linked, *large, *small)

    return Sweep(
        "receive-pool",
        "pools of memory for heaps, and heaps of 64 MiB over a link",
        cases((64 * KIB, 256 * KIB, MIB, 16 * MIB, 64 * MIB)),
        cases((64 * KIB, MIB, 64 * MIB)),
    )


#: Where packets are lost, in the words of `bench.losing`.
_LOSSES = (
    "0.2 GB/s",
    "0.2 GB/s, 0.2 % lost",
    "0.2 GB/s, bursts of 1024 KiB, buffer of 128 KiB",
    "0.2 GB/s, ring of 1, 10 ms a heap",
    "0.2 GB/s, ring of 1, 10 ms a heap, full ring drops",
)


def _lost() -> Sweep:
    """Each place where packets can be lost as the bottleneck, and first of all none."""
    cases = tuple(Case(OURS, "python", LOST, variant=variant, heaps=200) for variant in _LOSSES)
    return Sweep("receive-lost", "where packets are lost, each place in its turn", cases, cases)


SWEEPS = (
    _ladder(),
    _pipeline(),
    _packet_sizes(),
    _loopback(),
    _memory(),
    _both(
        "tut-10",
        "a deeper queue, then reusing heaps",
        [*_ours(_EIGHT, "tut_10_send_more_heaps", _TEN), *_peer(_EIGHT, _TEN), *_BARE],
    ),
    _batches(),
    _streams(),
    _zero_copy(),
    _equal_packets(),
    _small(),
    _targets(),
    _ceiling(),
    _lengths(),
    _receiving(),
    _chunks(),
    _paced(),
    _lossless(),
    _receivers_memory(),
    _pools(),
    _lost(),
    _in_cpp(),
)


def find_sweep(name: str) -> Sweep:
    """Look a sweep up by its name, or by a chapter's number."""
    for sweep in SWEEPS:
        if name in (sweep.name, sweep.name.removeprefix("tut-"), *sweep.chapters):
            return sweep
    names = ", ".join(sweep.name for sweep in SWEEPS)
    raise ValueError(f"there is no sweep {name!r}: there are {names}")

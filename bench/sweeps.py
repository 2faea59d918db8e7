# SPDX-License-Identifier: BSD-3-Clause
"""What can be measured, as data: the sweeps, which are made of cases.

A sweep is the cases of a chapter's pictures: what came
before, what came after, and beside them the peer and bare system calls.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable
from typing import Any

from bench.both_ends import BOTH_ENDS
from bench.lateness import LATENESS
from bench.losing import LOSING
from bench.memory import FLAT_MEMORY
from bench.one_slow import ONE_SLOW
from bench.peers import PEER_FROM_SOURCE, PEERS
from bench.receivers import (
    ALL_CORES,
    ALONE,
    DELIVERING,
    LOST,
    NOT_COMPILED,
    ONE_BY_ONE,
    ONE_CORE,
    RECEIVING,
    SEARCHING,
    TURNS,
)
from bench.senders import PLAIN_CARD, SENDING, TIMELINES, Timelines
from bench.spacing import SPACINGS
from bench.streams import IDLE_STREAM, KEPT_RATE, NO_THREAD
from bench.where import STACKS
from spead_tutorial.chapters import catalogue
from spead_tutorial.chapters.catalogue import MEASURED, find_chapter
from spead_tutorial.measure import baselines
from spead_tutorial.measure.baselines import CEILING, PEER
from spead_tutorial.measure.case import PLAIN, Case, Observer, Size
from spead_tutorial.measure.records import OURS, joined

#: Chapter 9's receiver, which is also measured as one runs it.
POOL = "tut_9_recv_memory_pool"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


SIZES = {
    "quick": Size("quick", 5, 0.3, 4 * GIB),
    "full": Size("full", 9, 0.7, 32 * GIB),
    "tiny": Size("tiny", 2, 0.05, 4 * MIB),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Sweep:
    """Cases that are measured together."""

    name: str  # what one types; its record is called after it
    about: str  # what it shows
    cases: tuple[Case, ...]  # all of them
    quick: tuple[Case, ...]  # those of a quick run
    rounds: int | None = None  # that count in a full run, if not as many as of others
    # numbers of chapters that have no sweep of their own, as this one has all of it
    chapters: tuple[str, ...] = ()

    def of(self, size: Size) -> tuple[Case, ...]:
        return self.cases if size.name == "full" else self.quick


# ---- What they are made of ----

#: Implementation, language and name of a program.
_Program = tuple[str, str, str]


def _cross(programs: Iterable[_Program], **settings: Iterable[Any]) -> list[Case]:
    """Cross programs with settings: a case's field that is named has each of its values."""
    programs = list(programs)
    return [
        Case(*program, **dict(zip(settings, values, strict=True)))
        for values in itertools.product(*settings.values())
        for program in programs
    ]


def _sweep(
    name: str,
    about: str,
    *groups: Iterable[Case],
    quick: Callable[[Case], bool] | None = None,
    rounds: int | None = None,
    chapters: tuple[str, ...] = (),
    observer: Observer = SENDING,
) -> Sweep:
    """Make a sweep, whose cases are observed by their own observer, or by that of all others."""
    found = tuple(dict.fromkeys(itertools.chain(*groups)))
    cases, few = (
        tuple(
            dataclasses.replace(case, observer=observer) if case.observer is PLAIN else case
            for case in some
        )
        for some in (found, filter(quick, found) if quick else found)
    )
    return Sweep(name, about, cases, few, rounds, chapters)


def _heaps_of(*sizes: int) -> Callable[[Case], bool]:
    return lambda case: case.heap_size in sizes


def _ours(*programs: str) -> list[_Program]:
    return [(OURS, language, program) for program in programs for language in MEASURED]


def _built(*programs: str) -> list[_Program]:
    """Return the peer's programs in both languages of its library, built here."""
    return [
        (PEER_FROM_SOURCE, language, name) for name in programs for language in ("cpp", "python")
    ]


def _loops(
    heap_sizes: Iterable[int], *variants: str, streams: Iterable[int | None] = (None,)
) -> list[Case]:
    """Return bare loops, which send."""
    loop = (CEILING, "c", "ceiling")
    return _cross([loop], heap_size=heap_sizes, variant=variants, streams=streams)


_TWO, _ONE = "two threads", "one thread"
#: With the small ones it is calls, threads and headers that cost, with large ones the bytes.
_HEAP_SIZES = (
    *(256, KIB, 2 * KIB, 8 * KIB, 16 * KIB, 64 * KIB, 256 * KIB),
    *(MIB, 16 * MIB, 64 * MIB),
)
_MTU_PAYLOAD = 9216 - 28
_EIGHT, _TEN, _ELEVEN, _THIRTEEN, _FOURTEEN, _FIFTEEN, _SIXTEEN = (
    find_chapter(number).name for number in ("8", "10", "11", "13", "14", "15", "16")
)

#: The peer as pip installs it.
_WHEEL: _Program = (PEER, "python", _TEN)
_MORE, _BEFORE_EIGHT = "tut_10_send_more_heaps", "tut_8_send_heap_size"
#: Packets that share messages, a batch that the caches hold, and one that they do not.
_CEILING_SIZES = (8 * KIB, MIB, 16 * MIB)
#: From heaps that memory costs little to those that it costs most.
_MEMORY_SIZES = (8 * KIB, 64 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB)
_RECORDING_SIZES = (64 * KIB, MIB, 16 * MIB)
_STREAMS_SIZES = (8 * KIB, 64 * KIB, MIB)
#: What a bare loop does with the bytes.
_WAYS = ("", "zero-copy", "zero-copy, huge pages")

# ---- Sweeps of senders ----


#: Slower than memory: to send a heap takes longer than to fill it. And one so slow that to send a
#: heap takes about as long as to make random samples; the heap is larger than what a socket holds.
_LINK_BITS_PER_S = 10 * 10**9
_SLOW_LINK_BITS_PER_S = 10**9


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

    def changed(cases: Iterable[Case], **settings: Any) -> list[Case]:
        return [dataclasses.replace(case, **settings) for case in cases]

    compared = [case for case in plain if case.program != "tut_5_send_async"]
    is_random = [case for case in compared if case.random or case.program == "tut_4_send_perf"]
    watched = [case for case in compared if case.language == "python"]
    constant = [case for case in watched if case not in is_random]
    return _sweep(
        "tut-5",
        "sending while preparing: rates and times",
        plain,
        changed(plain, pinned="pinned"),
        changed(compared, pinned="one core"),
        changed(compared, link=_LINK_BITS_PER_S),
        changed(is_random, link=_SLOW_LINK_BITS_PER_S, heap_size=4 * MIB),
        changed(watched, observer=TIMELINES),
        changed(constant, observer=TIMELINES, link=_LINK_BITS_PER_S),
    )


#: What the lab's MTU allows; packets of the other sizes are larger, and IP fragments them.
_WHOLE = (512, 1024, 1472, 2048, 4096, 6000, 8192, 9000, _MTU_PAYLOAD)
_PACKET_SIZES = (*_WHOLE, 16384, 32768, 65504)
_LISTENERS = {"no listener": "none", "listener": "fast", "slow listener": "slow", "": None}
#: What the allocator does with memory that a heap no longer needs. NumPy asks for huge pages by
#: itself; glibc has to be told to (2.35 and newer), and to keep what is freed.
_KEPT = f"glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold={16 * GIB}"
_HUGE = "glibc.malloc.hugetlb=1"
_CAUSES = {
    "small pages": (("NUMPY_MADVISE_HUGEPAGE", "0"),),
    "huge pages": (("NUMPY_MADVISE_HUGEPAGE", "1"), ("GLIBC_TUNABLES", _HUGE)),
    "memory kept": (("NUMPY_MADVISE_HUGEPAGE", "0"), ("GLIBC_TUNABLES", _KEPT)),
}


#: Cuts a heap of 16 KiB into two equal packets, with their headers of 56 and 40 bytes; one of
#: 64 KiB into as many packets, and messages, as 9000 does.
_HALF_OF_16_KIB = (16 * KIB + 56 + 40) // 2


def _heap_sizes() -> Sweep:
    """Every chapter from 8 on that sends, and their steps, beside the peer and bare loops.

    Chapter 11 once more with packets that are equal where heaps have two of them.
    """
    threaded = (_EIGHT, _MORE, _TEN, "tut_11_send_list_of_heaps", _ELEVEN)
    unthreaded = ("tut_13_send_no_thread", _THIRTEEN, _SIXTEEN)
    return _sweep(
        "heap-sizes",
        "the chapters from 8 on with heaps of all sizes, beside spead2 and bare loops",
        _cross(_ours(*threaded, *unthreaded), heap_size=_HEAP_SIZES),
        _cross([_WHEEL, *_built(_EIGHT, _TEN, _ELEVEN)], heap_size=_HEAP_SIZES),
        _loops(_HEAP_SIZES, _TWO, _ONE),
        _cross([*_ours(_FOURTEEN), *_built(_FOURTEEN)], heap_size=_HEAP_SIZES, streams=[2]),
        _loops(_HEAP_SIZES, _ONE, streams=[2]),
        _cross(
            _ours(_ELEVEN),
            heap_size=(16 * KIB, 64 * KIB),
            packet_size=[_HALF_OF_16_KIB],
            variant=["equal packets"],
        ),
        quick=_heaps_of(8 * KIB, MIB, 16 * MIB),
        chapters=("10", "11", "13"),
    )


#: Heaps of one packet, two, three and more: those of 16 KiB can be cut into equal ones.
_FEW_PACKETS = [kib * KIB for kib in (8, 16, 24, 32, 64, 256)]


# ---- Sweeps of receivers ----

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


def _receiving() -> Sweep:
    """Receivers where nothing is lost, at two sizes of packets; the bare loop without its parts.

    At once, sender and receiver are as fast as the slower one, and as it is to wake the receiver;
    in turns, one sees the receiver alone.
    """

    def cross(
        programs: Iterable[_Program], heap_sizes: Iterable[int], *variants: str
    ) -> list[Case]:
        packets = (1472, 9000)
        return _cross(programs, packet_size=packets, heap_size=heap_sizes, variant=variants)

    return _sweep(
        "receive",
        "receivers beside spead2's and a bare loop, where nothing is lost",
        cross(_RECEIVING, (64 * KIB, MIB, 16 * MIB), "", TURNS),
        cross(_CHUNKING, [KIB], "", TURNS),
        cross(_RECEIVING, (64 * KIB, MIB), "veth", f"veth, {TURNS}"),
        cross([(CEILING, "c", "receive")], [MIB], f"no GRO, {TURNS}", f"no copy, {TURNS}"),
        observer=RECEIVING,
    )


def _unthreaded() -> Sweep:
    """Receivers read by a thread and where heaps are asked for, of ours; others beside them."""
    ours = [who for who in _RECEIVING if who[0] == OURS]
    others = [who for who in _RECEIVING if who[0] in (PEER_FROM_SOURCE, CEILING)]
    kinds, packets = ("", "no thread"), (1472, 9000)
    alone, beside = (64 * KIB, MIB, 16 * MIB), (64 * KIB,)
    return _sweep(
        "no-thread",
        "receivers without a thread beside spead2's and a bare loop",
        *(
            _cross(
                programs,
                packet_size=packets,
                heap_size=sizes,
                variant=[joined(kind, turns) for kind in some],
            )
            for programs, some in ((ours, kinds), (others, kinds[:1]))
            for sizes, turns in ((alone, TURNS), (beside, ""))
        ),
        quick=_heaps_of(MIB),
        observer=RECEIVING,
    )


_LARGE = 16 * MIB
#: Chapters that are left out at a point: 3 is too slow for heaps that are as large, and 12 has
#: nothing to gain there; small packets are there to see what they cost, and one chapter shows it.
#: Of those that do nothing but receive, only what a chapter is held against is at every point.
_LEFT_OUT = {(_LARGE, 9000): (3, 12), (MIB, 1472): (3, 9, 12)}


def _lossless() -> Sweep:
    """The highest rate at which each receiver gets all: a search, see `measure.search`."""
    compared = [(PEER_FROM_SOURCE, "c", "receive"), (CEILING, "c", "receive")]

    def cases(*points: tuple[int, int]) -> list[Case]:
        return [
            Case(*who, *point)
            for point in points
            for who in (
                *_ours(
                    *(
                        one.name
                        for one in catalogue.CHAINED
                        if one.number not in _LEFT_OUT.get(point, ())
                    )
                ),
                *compared,
            )
        ]

    return _sweep(
        "receive-lossless",
        "the highest rate at which receivers lose nothing",
        cases((MIB, 9000)),
        _cross(_RECEIVING),
        cases((64 * KIB, 9000), (_LARGE, 9000), (MIB, 1472)),
        [Case(OURS, "python", "tut_7_recv_power", variant=NOT_COMPILED)],
        quick=lambda case: case.point == (MIB, 9000) and case.implementation != PEER,
        rounds=3,
        observer=SEARCHING,
    )


def _pools() -> Sweep:
    """New memory and a pool's, of a receiver alone and of chapter 9's, which may lose heaps."""
    alone = (TURNS, f"no pool, {TURNS}")
    sizes, large = (64 * KIB, 256 * KIB, MIB, 16 * MIB, 64 * MIB), 64 * MIB
    # The slowest is one that both of its programs keep up with; the fastest, none does.
    links = [gbit * 10**9 for gbit in (4, 8, 16, 24)]
    buffers = [f"pool of {n}" for n in (0, 5, 6)]  # six are enough
    return _sweep(
        "receive-pool",
        "pools of memory for heaps, and heaps of 64 MiB over a link",
        _cross(_ours("receive"), heap_size=sizes, variant=alone, observer=[RECEIVING]),
        _cross(
            _ours(POOL),
            heap_size=[large],
            heaps=[20],
            variant=("", buffers[0]),
            link=[*links, None],
        ),
        _cross(_ours(POOL), heap_size=[MIB], heaps=[1000], variant=buffers),
        quick=_heaps_of(64 * KIB, MIB, large),
        observer=DELIVERING,
    )


def _plain_card() -> Sweep:
    """The ladder once more, where the kernel cuts messages, and where the device promises to."""
    cases = [case for case in baselines.ladder() if find_chapter(case.program).takes_destination]
    plain = (dataclasses.replace(one, variant="plain card", observer=PLAIN_CARD) for one in cases)
    return _sweep("plain-card", "the ladder where the kernel cuts messages", cases, plain)


#: Rates in GB/s that receivers are sent to, and for how many seconds each time.
_RATES, _LOSS_S = (0.5, 1, 1.5, 2, 3, 4), 10


def _loss() -> Sweep:
    """What receivers lose at rates that are kept for ten seconds, in each round."""
    receivers = (
        *((OURS, language, "tut_7_recv_power", "") for language in MEASURED),
        (OURS, "c", "tut_17_recv_hot", ""),
        (OURS, "c", ALONE[0], ""),
        (OURS, "c", ALONE[0], "no thread"),
        (OURS, "python", ALONE[0], ""),
        (PEER_FROM_SOURCE, "c", ALONE[0], ""),
        (PEER_FROM_SOURCE, "python", ALONE[0], ""),
        (CEILING, "c", ALONE[0], ""),
    )
    return _sweep(
        "receive-loss",
        "the share of packets that receivers lose at rates kept for ten seconds",
        (
            Case(
                implementation,
                language,
                program,
                variant=joined(f"{rate} GB/s", words),
                heaps=int(rate * 1e9 * _LOSS_S / MIB),
            )
            for rate in _RATES
            for implementation, language, program, words in receivers
        ),
        quick=lambda case: case.words[0] == "1 GB/s",
        rounds=3,
        observer=RECEIVING,
    )


#: Who sends: the best of each library, for a core that fills and sends.
_SENDERS = {OURS: _THIRTEEN, PEER_FROM_SOURCE: _ELEVEN}


def _both_ends() -> Sweep:
    """Each library's sender into each one's receiver, in C (or C++) and in Python."""
    return _sweep(
        "both-ends",
        "the best sender into the best receiver over a link, for three minutes",
        (
            Case(
                who,
                "cpp" if language == "c" and who != OURS else language,
                program,
                variant=f"to {to}",
                link=_LINK_BITS_PER_S,
                observer=BOTH_ENDS,
            )
            for language in MEASURED
            for who, program in _SENDERS.items()
            for to in _SENDERS
        ),
    )


#: Of whom it is asked whether a thread for the stream is worth it, and the last one has none.
_THREADED = ("tut_7_recv_power", POOL, "tut_17_recv_hot")
#: How long each heap of 4 MiB is worked at: one comes every 84 ms, and the buffer lasts for 21.
_WORK_MS = (10, 20, 40, 60)


def _hot() -> Sweep:
    """With a thread that reads the socket and without: rates, results one by one, longer work."""
    work = [f"0.05 GB/s, buffer of 1024 KiB, {n} ms a heap" for n in _WORK_MS]
    threads = ("", "no thread")
    sizes = (64 * KIB, MIB)
    return _sweep(
        "tut-17",
        "receiving with a thread for the stream, and without",
        _cross(_ours(*_THREADED), heap_size=sizes, variant=[TURNS]),
        _cross(
            [(OURS, "python", _THREADED[0])], heap_size=sizes, variant=[joined(TURNS, NOT_COMPILED)]
        ),
        _cross(
            _ours(*_THREADED),
            heap_size=sizes,
            variant=[joined("1 GB/s", ONE_BY_ONE)],
            heaps=[200],
            observer=[LATENESS],
        ),
        _cross(
            [(OURS, "python", LOST)],
            heap_size=[4 * MIB],
            variant=[joined(words, thread) for words in work for thread in threads],
            heaps=[20],
            observer=[LOSING],
        ),
        observer=RECEIVING,
    )


#: Where packets are lost, in the words of `bench.losing`.
_LOSSES = (
    "0.2 GB/s",
    "0.2 GB/s, 0.2 % lost",
    "0.2 GB/s, bursts of 1024 KiB, buffer of 128 KiB",
    "0.2 GB/s, ring of 1, 10 ms a heap",
    "0.2 GB/s, ring of 1, 10 ms a heap, full ring drops",
)


# ---- Sweeps of streams ----


def _streams(program: str, heap_size: int, packet_size: int, *words: str) -> list[Case]:
    """Return streams of each library, and one of ours without a thread."""
    who = [(OURS, ""), (OURS, NO_THREAD), *((peer, "") for peer in PEERS)]
    return [
        Case(one, "python", program, heap_size, packet_size, variant=joined(*words, thread))
        for one, thread in who
    ]


SWEEPS = (
    _sweep(
        "ladder",
        "the chapters that make one sender faster, at common settings",
        baselines.ladder(),
        baselines.peers(PEER_FROM_SOURCE, ("cpp", "python")),
        baselines.bare((None, 2)),
    ),
    _pipeline(),
    _sweep(
        "tut-6",
        "the size of packets",
        _cross(_ours("tut_6_send_pktsize"), packet_size=_PACKET_SIZES),
        _cross([(CEILING, "c", "ceiling")], packet_size=_WHOLE, variant=[_TWO]),
        quick=lambda case: case.packet_size in (512, 1472, 4096, 9000, 65504),
    ),
    _sweep(
        "tut-6-loopback",
        "loopback, with and without a listener",
        *(
            _cross(_ours("tut_6_send_pktsize"), variant=[variant], listener=[listener])
            for variant, listener in _LISTENERS.items()
        ),
    ),
    _sweep(
        "tut-8",
        "reusing memory: rates and page faults",
        _cross(_ours(_BEFORE_EIGHT, _EIGHT), heap_size=_MEMORY_SIZES),
        *(
            _cross(
                _ours(_BEFORE_EIGHT),
                heap_size=(MIB, 16 * MIB, 64 * MIB),
                variant=[variant],
                environment=[environment],
            )
            for variant, environment in _CAUSES.items()
        ),
        quick=_heaps_of(8 * KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB),
    ),
    _heap_sizes(),
    _sweep(  # what the same cores do with two threads; bare loops likewise
        "tut-14",
        "a stream for each core, one sequence of heaps",
        _cross(_ours(_ELEVEN, _THIRTEEN), heap_size=_STREAMS_SIZES),
        _cross(_ours(_FOURTEEN), heap_size=_STREAMS_SIZES, streams=(1, 2, 4)),
        _cross(_built(_FOURTEEN), heap_size=_STREAMS_SIZES, streams=[2]),
        _loops(_STREAMS_SIZES, _ONE, streams=(1, 2, 4)),
    ),
    _sweep(  # read in place or copied; out of huge pages or small ones; as it is or filled anew
        "tut-15",
        "a recording that the kernel reads in place",
        _cross(
            _ours(_FIFTEEN),
            heap_size=_RECORDING_SIZES,
            variant=("", "small pages", "copy", "fill", "copy, fill"),
        ),
        _loops(_RECORDING_SIZES, *(joined(_ONE, "no fill", way) for way in _WAYS)),
    ),
    _sweep(
        "tut-16",
        "equal packets, and as large as the route takes them",
        _cross(_ours(_THIRTEEN, _SIXTEEN), heap_size=_FEW_PACKETS),
        _loops(_FEW_PACKETS, _ONE),
        _cross(
            _ours(_SIXTEEN),
            heap_size=_FEW_PACKETS,
            packet_size=[_MTU_PAYLOAD // 8 * 8],
            variant=["route"],
        ),
        quick=_heaps_of(8 * KIB, 16 * KIB, 64 * KIB),
    ),
    _plain_card(),
    # Who sends, whether samples are written before, and what is read in place. Two threads are
    # there to fill and to send; without a fill, one of them has nothing to do.
    _sweep(
        "ceiling",
        "bare system calls: threads, filling, zero-copy",
        _loops(_CEILING_SIZES, *(joined(_TWO, way) for way in _WAYS)),
        _loops(
            _CEILING_SIZES,
            *(joined(_ONE, fill, way) for fill in ("", "no fill") for way in _WAYS),
            streams=(None, 2),
        ),
    ),
    _receiving(),
    _unthreaded(),
    _sweep(
        "tut-12",
        "heaps received one by one, and in chunks",
        _cross(
            [
                *_ours(*ALONE),
                *((PEER_FROM_SOURCE, language, who) for who in ALONE for language in MEASURED),
            ],
            heap_size=(KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB),
            variant=[TURNS],
        ),
        quick=_heaps_of(KIB, 16 * KIB, 256 * KIB),
        observer=RECEIVING,
    ),
    _lossless(),
    _pools(),
    _sweep(
        "receive-lost",
        "where packets are lost, each place in its turn",
        _cross([(OURS, "python", LOST)], variant=_LOSSES, heaps=[200]),
        observer=LOSING,
    ),
    _hot(),
    _loss(),
    _both_ends(),
    _sweep(  # a receiver alone, whose sockets were filled before: it has all cores, or one
        "tut-18",
        "sockets on one port, a thread and a core for each",
        _cross(
            _ours("tut_18_recv_many_sockets"),
            heap_size=(64 * KIB, 256 * KIB, MIB),
            variant=[TURNS],
            streams=(1, 2),
        ),
        _cross(
            _ours("tut_18_recv_many_sockets"),
            heap_size=[MIB],
            variant=[joined(TURNS, ONE_CORE)],
            streams=[2],
        ),
        _cross(
            _ours("tut_7_recv_power"),
            heap_size=(64 * KIB, 256 * KIB, MIB),
            variant=[joined(TURNS, ALL_CORES)],
        ),
        observer=RECEIVING,
    ),
    _sweep(  # with groups that wait for the slow one, and with others
        "tut-19",
        "what comes of an array's senders while one is slow",
        _cross(
            _ours(catalogue.ARRAY[1].name),
            heap_size=[64 * KIB],
            variant=("", "lossy"),
            heaps=[4480],
        ),
        observer=ONE_SLOW,
    ),
    _sweep(
        "latency",
        "how long a heap waits on an idle stream",
        _streams("latency", KIB, 1472),
        observer=IDLE_STREAM,
    ),
    _sweep(
        "rate",
        "how evenly streams keep a rate",
        *(_streams("rate", 64 * KIB, 9000, f"{rate:g} GB/s") for rate in (0.001, 0.1, 1, 3)),
        observer=KEPT_RATE,
    ),
    _sweep(  # in turns and overlapped, random samples and constant ones
        "spacing",
        "when the packets of chapters 4 and 5 leave",
        *(
            _cross(
                [(OURS, "python", name)],
                packet_size=[1472],
                random=is_random,
                link=(None, _LINK_BITS_PER_S),
            )
            for name, is_random in (
                ("tut_4_send_perf", [False]),
                ("tut_4_send_constant", [False]),
                ("tut_5_send_pipeline", [True, False]),
            )
        ),
        observer=SPACINGS,
    ),
    _sweep(  # with a thread of the stream's own and without; chapter 4's heaps find it asleep
        "where",
        "the time of a heap, part by part",
        _cross(_ours(_TEN, _THIRTEEN), heap_size=(8 * KIB, MIB), observer=(SENDING, STACKS)),
        _cross(
            [(OURS, "python", "tut_4_send_constant")],
            heap_size=(8 * KIB, MIB),
            observer=[Timelines(200)],
        ),
    ),
    _sweep(  # each once, for ten million heaps
        "flat-memory",
        "whether memory stays flat however much is sent",
        _cross([(OURS, "c", _TEN), *_ours(_ELEVEN)], heap_size=[8 * KIB]),
        observer=FLAT_MEMORY,
    ),
    _sweep("cpp", "every chapter in C++ beside C", baselines.ladder(languages=("c", "cpp"))),
)


def find_sweep(name: str) -> Sweep:
    """Look a sweep up by its name, or by a chapter's number."""
    for sweep in SWEEPS:
        if name in (sweep.name, sweep.name.removeprefix("tut-"), *sweep.chapters):
            return sweep
    names = ", ".join(sweep.name for sweep in SWEEPS)
    raise ValueError(f"there is no sweep {name!r}: there are {names}")

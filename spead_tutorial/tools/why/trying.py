# SPDX-License-Identifier: BSD-3-Clause
"""Bare loops that send as a sender does, and with the remedies that it lacks, in rounds."""

import contextlib
import dataclasses
import operator
import time
from collections.abc import Callable

from spead_tutorial.measure.baselines import CEILING, started
from spead_tutorial.measure.programs import ProgramError, finish, program
from spead_tutorial.measure.verify import IP_UDP_HEADERS, Report
from spead_tutorial.tools.why.facts import PAGE, UNSEEN, Bare, Calls, Packets, Run
from spead_tutorial.tools.why.finding import ENOUGH_PACKETS, FRAGMENTED, FRESH, SMALL, mapped_share
from spead_tutorial.tools.why.places import InLab
from spead_tutorial.tools.why.remedies import FITTING, LARGER, OFFLOAD, REUSED, SENDMMSG, Tried

#: How many rounds, and seconds after which there are only as many as are needed.
ROUNDS, _NEEDED, _PATIENCE_S = 5, 3, 4.0
#: Seconds of CPU time of each loop in a round.
_EACH_S = 0.05
#: What each loop sends first, to see how much it sends in that time.
_FIRST_BYTES = 1 << 20
_LIMIT_S = 60.0
#: What the bare loop next to a sender sends at most.
_BARE_BYTES, _BARE_PACKETS = 1 << 29, 1 << 18
#: How much a heap has at most, and how many packets: all of a loop's are laid out before it begins.
_HEAP_BYTES, _HEAP_PACKETS = 16 << 20, 1 << 14
_SMALLEST, _LARGEST = 64, 65507
#: The most that is ever asked for: what the bare loop does if it is not told.
_MESSAGES, _PACKETS = 64, 64
#: What is larger is no small part of the largest message.
_HALF_A_MESSAGE = _LARGEST // 2


@dataclasses.dataclass(frozen=True, slots=True)
class Way:
    heap_bytes: int
    packet_bytes: int  # within UDP; larger than the MTU allows for fragments
    packets: int  # in a message, at most
    messages: int  # in a call, at most
    fresh: bool  # whether memory is new for each heap

    def mended(self, remedies: tuple[str, ...], largest: int) -> "Way":
        """Return it with some remedies, where the device takes packets of a largest size."""
        sized = FITTING in remedies or LARGER in remedies
        return dataclasses.replace(
            self,
            packet_bytes=largest if sized else self.packet_bytes,
            packets=_PACKETS if OFFLOAD in remedies else self.packets,
            messages=_MESSAGES if SENDMMSG in remedies else self.messages,
            fresh=self.fresh and REUSED not in remedies,
        )


def bare(spot: InLab, packets: Packets | None) -> Bare | str:
    """Run the bare loop with heaps and packets of a sender's sizes, or say why that cannot be."""
    largest = spot.mtu() - IP_UDP_HEADERS
    heap = min(max((packets and packets.heap_bytes) or 1 << 20, _SMALLEST), _HEAP_BYTES)
    packet = min(max(packets.packet_bytes if packets else largest, 256), largest)
    way = Way(heap, packet, _PACKETS, _MESSAGES, fresh=False)
    heaps = max(2, min(_BARE_BYTES, _BARE_PACKETS * min(heap, packet)) // heap)
    try:
        # The best of a few, as is the custom with ceilings: others may use this machine, too.
        best = min((ran(spot, way, heaps) for _ in range(3)), key=operator.attrgetter("elapsed_ns"))
        fewer = ran(spot, dataclasses.replace(way, packet_bytes=largest), heaps)
    except ProgramError as error:
        return UNSEEN["bare-loop"].format(why=error)
    apart = best.packets - fewer.packets
    return Bare(
        rate=best.spead_bytes / best.elapsed_ns * 1e9,
        gb_s=_cpu_s(best) * 1e9 / best.spead_bytes,
        packet_s=max(0.0, (_cpu_s(best) - _cpu_s(fewer)) / apart) if apart > 0 else 0.0,
    )


def _cpu_s(report: Report) -> float:
    return (report.cpu_user_ns + report.cpu_system_ns) / 1e9


def way_of(packets: Packets, calls: Calls | None, new: float) -> Way:
    """Return how a sender sends, of whose memory a share is new."""
    packet = min(max(packets.packet_bytes, _SMALLEST), _LARGEST)
    heap = min(packets.heap_bytes or 1 << 20, _HEAP_BYTES, _HEAP_PACKETS * packet)
    # Where no calls were seen, they are not what makes it slow.
    messages = _MESSAGES if calls is None or not calls.messages else round(calls.per_call)
    return Way(
        heap_bytes=max(heap, _SMALLEST),
        packet_bytes=packet,
        packets=min(max(round(packets.per_message), 1), _PACKETS),
        messages=min(max(messages, 1), _MESSAGES),
        fresh=new >= FRESH,
    )


def lacking(way: Way, packets: Packets, largest: int) -> tuple[str, ...]:
    """Return the remedies that a sender lacks; none for one of which too little was seen."""
    if packets.packets < ENOUGH_PACKETS:
        return ()
    cut = packets.fragments / packets.messages >= FRAGMENTED
    fits = min(way.packet_bytes, largest)
    is_heap = packets.per_heap is not None and packets.per_heap <= 1.0
    lacks = {
        FITTING: cut,
        LARGER: not cut and not is_heap and way.packet_bytes < SMALL * largest,
        SENDMMSG: way.messages == 1 and fits * way.packets <= _HALF_A_MESSAGE,
        OFFLOAD: way.packets == 1 and fits <= _HALF_A_MESSAGE,
        REUSED: way.fresh,
    }
    return tuple(remedy for remedy, lacked in lacks.items() if lacked)


def sets_of(lacks: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return what to try: nothing, each remedy alone, packets with the offload, and all."""
    sized = tuple(one for one in lacks if one in (FITTING, LARGER, OFFLOAD))
    sets = dict.fromkeys([(), *((one,) for one in lacks), sized, lacks])
    # The kernel merges no packets that it has to cut.
    return tuple(one for one in sets if OFFLOAD not in one or FITTING not in set(lacks) - set(one))


def new_share(packets: Packets, calls: Calls | None, run: Run) -> float:
    """Return how much of what is sent is in memory that is new, as far as it was seen."""
    return max(run.faults * PAGE / run.payload_bytes, mapped_share(packets, calls))


def tried(
    spot: InLab, packets: Packets, calls: Calls | None, run: Run, say: Callable[[str], None]
) -> tuple[Tried, ...] | str:
    """Run the bare loop as a sender sends, and with what it lacks, or say why that cannot be."""
    try:
        return _tried(spot, packets, way_of(packets, calls, new_share(packets, calls, run)), say)
    except ProgramError as error:
        return UNSEEN["remedies"].format(why=error)


def _tried(
    spot: InLab, packets: Packets, way: Way, say: Callable[[str], None]
) -> tuple[Tried, ...]:
    largest = spot.mtu() - IP_UDP_HEADERS
    sets = sets_of(lacking(way, packets, largest))
    ways = {remedies: way.mended(remedies, largest) for remedies in sets}
    heaps = {}
    for remedies, one in ways.items():
        # What the device or the kernel does not know is no remedy.
        with contextlib.suppress(*[ProgramError] if remedies else []):
            rate = rate_of(ran(spot, one, -(-_FIRST_BYTES // one.heap_bytes)))
            heaps[remedies] = max(1, round(rate * _EACH_S / one.heap_bytes))
    rates: dict[tuple[str, ...], list[float]] = {remedies: [] for remedies in heaps}
    end = time.monotonic() + _PATIENCE_S
    for number in range(ROUNDS):
        if number >= _NEEDED and time.monotonic() > end:  # others use this machine, too
            break
        say(f"Running the bare loop as it sends and mended, round {number + 1} of {ROUNDS}")
        for remedies in list(heaps)[:: -1 if number % 2 else 1]:
            rates[remedies].append(rate_of(ran(spot, ways[remedies], heaps[remedies])))
    return tuple(Tried(remedies, tuple(found)) for remedies, found in rates.items())


def rate_of(report: Report) -> float:
    """Return bytes within UDP in a second that its thread had a core: it waits for nothing else."""
    return report.spead_bytes / (report.program_cpu_ns or report.elapsed_ns) * 1e9


def ran(spot: InLab, way: Way, heaps: int) -> Report:
    """Run the bare loop in a lab, and return what it says; a ProgramError says why not."""
    sizes = {"n": heaps, "H": way.heap_bytes, "p": way.packet_bytes}
    sizes |= {"k": way.packets, "m": way.messages, "t": 1}
    words = [word for letter, value in sizes.items() for word in (f"-{letter}", str(value))]
    start = started(program(CEILING, "c"), [*words, *["--fresh"] * way.fresh])
    done = finish(spot.lab.run, CEILING, start(spot.destination), _LIMIT_S)
    report = Report.parse(done.output) if done.status == 0 else None
    if report is None:
        raise ProgramError(done.complaint)
    return report

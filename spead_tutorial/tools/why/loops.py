# SPDX-License-Identifier: BSD-3-Clause
"""The bare loop: what it takes here to send as a sender does, and otherwise."""

import contextlib
from collections.abc import Mapping

from msgspec.structs import replace

from spead_tutorial.lab import Lab
from spead_tutorial.measure.baselines import CEILING, started
from spead_tutorial.measure.programs import ProgramError, finish, program
from spead_tutorial.measure.verify import Report
from spead_tutorial.tools.why.facts import Calls, Loop, Packets, Way

#: How many rounds, seconds of CPU time of each loop in a round, and how long it may take for that.
ROUNDS, EACH_S, _LIMIT_S = 5, 0.03, 60.0
#: What a loop sends first, to see how much it sends in that time; and what a heap has at most, as
#: all of a loop's packets are laid out before it begins.
_FIRST_PACKETS, _HEAP_BYTES, _HEAP_PACKETS = 1 << 9, 1 << 20, 1 << 12
_SMALLEST, _LARGEST, _MOST_PIECES = 64, 65507, 1022
_HEADER, _FIRST_HEADER = 40, 56  # of the loop's packets
#: Packets in a message and messages in a call, where there are many.
PACKETS, MESSAGES = 64, 64
#: Packets smaller than this share of what the device takes count as small; messages that are
#: fragments from this share on; and packets in a message, and messages in a call, that are one.
_SMALL, _FRAGMENTED, _ONE, _ENOUGH = 0.5, 0.01, 1.2, 16

#: What can be done otherwise.
BATCHES, OFFLOAD, BOTH = "in batches", "with offload", "in batches with offload"
LARGER, FITTING = "in larger packets", "in packets that fit"
GATHERED, CONNECTED = "from one piece", "connected"
BEST, MERGED = "best", "merged"


def way_of(packets: Packets, calls: Calls | None) -> Way:
    """Return how a sender sends, on average; where no calls were seen, they are many at once."""
    each = packets.packet_bytes if packets.fragments else round(packets.mean_bytes)
    called = round(calls.per_call) if calls is not None and calls.messages else MESSAGES
    gathered = (calls.pieces if calls is not None else 1) / max(1, packets.per_message)
    return Way(
        packet_bytes=min(max(each, _SMALLEST), _LARGEST),
        packets=min(max(round(packets.per_message), 1), PACKETS),
        messages=min(max(called, 1), MESSAGES),
        pieces=min(max(round(gathered), 1), _MOST_PIECES),
        unconnected=calls is not None and calls.unconnected,
    )


def otherwise(way: Way, packets: Packets, largest: int) -> dict[str, Way]:
    """Return other ways to send what a sender sends, as far as it does not do so already."""
    change, found = replace, dict[str, Way]()
    if packets.packets < _ENOUGH:
        return {}
    is_cut = packets.fragments / packets.messages >= _FRAGMENTED
    is_single = way.messages < _ONE and way.packets < _ONE
    has_room = 2 * min(way.packet_bytes, largest) <= _LARGEST
    if is_cut:
        found[FITTING] = change(way, packet_bytes=largest, packets=PACKETS)
    elif way.packet_bytes < _SMALL * largest:
        found[LARGER] = change(way, packet_bytes=largest)
    if is_single and has_room and not is_cut:
        found[BATCHES] = change(way, messages=MESSAGES)
    if way.packets < _ONE and has_room and not is_cut and way.pieces * PACKETS < _MOST_PIECES:
        found[OFFLOAD] = change(way, packets=PACKETS)
        if is_single:
            found[BOTH] = change(way, packets=PACKETS, messages=MESSAGES)
    if way.pieces > 2:
        found[GATHERED] = change(way, pieces=1)
    if way.unconnected:
        found[CONNECTED] = change(way, unconnected=False)
    found[BEST] = Way(largest, PACKETS, MESSAGES)
    return found


def measured(lab: Lab, ways: Mapping[str, Way]) -> tuple[Loop, ...]:
    """Run the bare loop in some ways, in rounds; a `ProgramError` says why that cannot be."""
    heaps: dict[str, int] = {}
    found: dict[str, list[float]] = {changed: [] for changed in ways}

    def packet_s(changed: str, n_heaps: int) -> float:
        return _packet_s(lab, ways[changed], n_heaps, fill=changed == BEST)

    for changed, way in ways.items():
        try:
            each_s = packet_s(changed, max(1, _FIRST_PACKETS // _in_heap(way)))
            heaps[changed] = max(1, round(EACH_S / each_s / _in_heap(way)))
        except ProgramError:  # what the device or the kernel does not know is no way
            if not changed:
                raise
    for number in range(ROUNDS):
        for changed in list(heaps)[:: -1 if number % 2 else 1]:
            with contextlib.suppress(ProgramError):
                found[changed].append(packet_s(changed, heaps[changed]))
    return tuple(Loop(one, ways[one], tuple(its)) for one, its in found.items() if its)


def _in_heap(way: Way) -> int:
    return max(1, min(_HEAP_PACKETS, _HEAP_BYTES // way.packet_bytes))


def _packet_s(lab: Lab, way: Way, heaps: int, *, fill: bool) -> float:
    """Run the loop, and return seconds for a packet in which its thread had a core."""
    size = way.packet_bytes & ~7
    heap = _in_heap(way) * (size - _HEADER) - (_FIRST_HEADER - _HEADER)  # all packets are full
    sizes = {"-n": heaps, "-H": max(8, heap), "-p": size, "-k": way.packets, "-m": way.messages}
    words = [word for name, value in sizes.items() for word in (name, str(value))]
    words += ["-t", "1", "--pieces", str(way.pieces), *["--no-fill"] * (not fill)]
    words += ["--unconnected"] * way.unconnected
    start = started(program(CEILING, "c"), words)
    done = finish(lab.run, CEILING, start((lab.address, lab.port)), _LIMIT_S)
    report = Report.parse(done.output) if done.status == 0 else None
    if report is None:
        raise ProgramError(done.complaint)
    return (report.program_cpu_ns or report.elapsed_ns) / 1e9 / max(report.packets, 1)

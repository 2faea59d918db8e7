# SPDX-License-Identifier: BSD-3-Clause
"""What the facts mean: findings, those first that explain most. No I/O, and no clock."""

import dataclasses
import math

from spead_tutorial.tools.why import packet_faults, receiver_faults, time_faults
from spead_tutorial.tools.why.distance import Distance, distance
from spead_tutorial.tools.why.facts import Seen
from spead_tutorial.tools.why.finding import Check, Finding
from spead_tutorial.tools.why.remedies import Gain, gains_of

__all__ = ["CHECKS", "RECEIVER_CHECKS", "Finding", "diagnose"]

#: Of what sending takes some is needed: what can go is known from a bare loop alone.
SENDING = ("fragments", "small-packets", "small-heaps", "call-per-packet",
           "no-segmentation-offload")  # fmt: skip
#: Every kind that there is, in the order that those of the same cost are said in. What each takes
#: is no longer there for the next.
CHECKS: tuple[Check, ...] = (
    time_faults.sleeps,
    time_faults.spins,
    time_faults.waits_for_lock,
    time_faults.shared_core,
    time_faults.waits_for_thread,
    time_faults.waits_for_input,
    time_faults.waits_for_room,
    time_faults.other_calls,
    time_faults.slow_data,
    time_faults.fresh_memory,
    packet_faults.fragments,
    packet_faults.small_packets,
    packet_faults.small_heaps,
    packet_faults.call_per_packet,
    packet_faults.no_segmentation_offload,
)
RECEIVER_CHECKS: tuple[Check, ...] = (
    receiver_faults.device,
    receiver_faults.no_socket,
    receiver_faults.small_buffer,
    time_faults.sleeps,
    receiver_faults.pauses,
    time_faults.waits_for_lock,
    time_faults.waits_for_thread,
    receiver_faults.computes,
    time_faults.fresh_memory,
    time_faults.other_calls,
    receiver_faults.call_per_packet,
    receiver_faults.ring_full,
)


def diagnose(seen: Seen) -> tuple[Finding, ...]:
    """Return what makes a sender slow, what explains most first; nothing for one that is fast.

    Of a receiver it is why packets are lost; what has nothing to do with its time comes first, as
    it is where they are. Where no calls of a sender were seen, what explains most may be missing:
    then nothing is weighed, and the order is that of `CHECKS`.
    """
    its = seen.receiving
    if its is not None and not its.fates.lost and not its.told.get("ring_dropped"):
        return ()
    far = distance(seen)
    made = (check(seen, far) for check in (CHECKS if its is None else RECEIVER_CHECKS))
    found = [_gaining(seen, finding) for finding in made if finding is not None]
    if its is None and (seen.calls is None or seen.account is None):
        return tuple(dataclasses.replace(finding, cost_s=None) for finding in found)
    weighed = [_weighed(finding, far, seen) for finding in found]
    if its is not None:
        return tuple(sorted(weighed, key=lambda x: -(1.0 if x.explains is None else x.explains)))
    return tuple(sorted(weighed, key=lambda finding: -(finding.cost_s or 0.0)))


def _gaining(seen: Seen, finding: Finding) -> Finding:
    gain, others = gains_of(finding.kind, seen.tried)
    return dataclasses.replace(finding, gain=gain, with_others=others)


def _weighed(finding: Finding, far: Distance, seen: Seen) -> Finding:
    cost = finding.cost_s
    if cost is None:
        return finding
    explains = None
    if far.longer:
        explains = min(1.0, cost / far.longer)
    gain = finding.gain
    is_known = explains is not None or finding.kind not in SENDING
    if gain is None and is_known and 0 < cost < far.whole:
        gain = _gain(finding.kind, cost / far.whole, seen, _most(finding.kind, seen))
    return dataclasses.replace(finding, explains=explains, gain=gain)


def _most(kind: str, seen: Seen) -> float:
    """Return the most that can be gained: threads that no longer wait still need cores."""
    most = 1000.0
    if kind == "waits-for-lock" and seen.receiving is None and seen.account is not None:
        most = min(seen.cores, len(seen.account.senders))
    return max(1.0, most)


def _gain(kind: str, share: float, seen: Seen, most: float) -> Gain:
    """Return what it gains if a share of the time goes, which was seen so many times."""
    looks = sum(thread.looks for thread in seen.run.threads if thread.waits) or 100
    error = 2 * math.sqrt(share * (1 - share) / looks)

    def times(gone: float) -> float:
        return min(most, 1 / (1 - min(max(gone, 0.0), 0.999)))

    return Gain(times(share), times(share - error), times(share + error), (kind,), measured=False)

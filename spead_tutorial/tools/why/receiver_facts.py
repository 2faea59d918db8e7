# SPDX-License-Identifier: BSD-3-Clause
"""What was seen of a receiver: numbers, without a word on what they mean."""

import dataclasses

from spead_tutorial.tools.why.account import Account, ThreadTime
from spead_tutorial.tools.why.facts import Calls, Pauses, Run

#: The share of the time below which what is done in it loses no packets.
_IDLE = 0.05


@dataclasses.dataclass(frozen=True, slots=True)
class Way:
    """What was counted of the packets of one run, from the sender to the socket."""

    rate: float  # bytes within UDP in a second that were sent
    packets: int  # sent
    device: int  # messages that a device dropped
    arrived: int  # packets at the receiver's machine
    unclaimed: int  # messages for a port without a socket
    no_room: int  # messages that the socket had no room for
    per_message: float = 1.0  # packets in a message, where the socket takes merged ones

    @property
    def lost(self) -> int:
        """Packets that were lost, about: a message may hold several."""
        dropped = round((self.no_room + self.device) * self.per_message)
        return min(self.packets, dropped + self.unclaimed)

    @property
    def share(self) -> float:
        """Which part of the packets was lost."""
        return self.lost / (self.packets or 1)


@dataclasses.dataclass(frozen=True, slots=True)
class Socket:
    """A socket of the receiver; None is what could not be asked."""

    inode: int  # its number
    port: int
    buffer: int | None = None  # bytes that it has room for, with what the kernel needs besides
    merges: bool | None = None  # whether it takes runs of packets in one message (UDP_GRO)


@dataclasses.dataclass(frozen=True, slots=True)
class Watched:
    """All that was seen of a receiver."""

    program: str  # what it is called
    mtu: int  # of the way to it, in bytes
    packet_bytes: int  # within UDP
    burst: int  # packets that come at once
    held: float | None  # the highest rate without a loss that was found, in bytes/s
    way: Way  # of the run with a loss that was looked at
    sockets: tuple[Socket, ...]
    run: Run  # the one that nothing slowed: its messages are the packets that it read
    account: Account  # of the time of its threads: those that read are its senders
    calls: Calls | None  # None where they could not be seen
    pauses: Pauses | None
    # what it said of its stream at its end, by the names of the stream's counts
    told: dict[str, int] = dataclasses.field(default_factory=dict)
    unseen: tuple[str, ...] = ()  # what could not be seen, and how to get it: a sentence each

    @property
    def readers(self) -> tuple[ThreadTime, ...]:
        """The threads that read from the socket."""
        return self.account.senders

    @property
    def faults(self) -> int:
        """Pages that they touched for the first time."""
        tids = {one.tid for one in self.readers}
        return sum(one.faults for one in self.run.threads if one.tid in tids)

    @property
    def seconds(self) -> float:
        """The time of the threads that read."""
        return sum(one.seconds for one in self.readers)

    @property
    def busy_s(self) -> float:
        """What of it they waited neither for packets nor for a core: the time of what they read."""
        idle = self.account.of("input") + self.account.of("core")
        return max(1e-9, self.seconds - idle)

    @property
    def is_idle(self) -> bool:
        """Whether they had next to nothing to do while they had a core."""
        whole = self.account.seconds
        return self.busy_s < _IDLE * max(0.1 * whole, whole - self.account.of("core"))

    @property
    def waited(self) -> float:
        """The share of it in which they waited for packets."""
        return self.account.share("input")

    @property
    def buffer_s(self) -> float | None:
        """For how long the socket's buffer takes in what comes: about half of it is payload."""
        rooms = [one.buffer for one in self.sockets if one.buffer is not None]
        return sum(rooms) / 2 / self.way.rate if rooms and self.way.rate else None

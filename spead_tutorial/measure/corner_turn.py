# SPDX-License-Identifier: BSD-3-Clause
"""What is asked of an array's machines, and what was measured on them, as records have it."""

import ipaddress
from collections.abc import Sequence
from typing import Annotated, Self

import msgspec

from spead_tutorial.ledger import some

_HEADERS = 64  # bytes in a packet of the programs before its samples
MOST = 256  #: Machines of an array, and its programs of each kind.

_Some = Annotated[int, msgspec.Meta(ge=1, le=MOST)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A corner turn that is to be tried."""

    senders: _Some  #: How many.
    receivers: _Some  #: How many.
    language: str  #: ``"python"``, ``"c"`` or ``"cpp"``.
    rate: float  #: MB/s of each sender, to all receivers together.
    seconds: float  #: For how long.
    heap_size: _Count  #: Bytes of samples in a heap.
    packet_size: _Count  #: Bytes in a packet at most, UDP and IP not counted.
    ttl: int  #: Networks that multicast may cross.
    groups: str | None  #: A network of groups, one for each receiver; null for unicast.
    data_network: str | None  #: The network of the cards that carry data.
    port: int = 8888  #: The first that a machine's receivers have: one for each sender.
    allow_real_network: bool = False  #: Whether packets may leave a lab.

    @property
    def heaps(self) -> int:
        """How many a sender sends to each receiver; its rate is one of whole packets."""
        packets = -(-self.heap_size // max(1, self.packet_size - _HEADERS))
        heap_bytes = self.heap_size + packets * _HEADERS
        return max(1, round(self.rate * 1e6 * self.seconds / self.receivers / heap_bytes))

    def hosts(self, addresses: Sequence[str]) -> list[str]:
        """Return where to send to, of receivers on machines with these addresses."""
        if self.groups is None:
            return list(addresses)
        network = ipaddress.IPv4Network(self.groups)
        return [str(network[j]) for j in range(self.receivers)]


class Machine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A machine with a worker of Dask's."""

    name: str  #: Its worker's name.
    address: str  #: That of the card which carries data.
    device: str  #: That card.
    clock: str = ""  #: Whose clock it has: times of machines with the same one compare.
    mtu: _Count | None = None  #: That of the card, in bytes.


class _Counts(msgspec.Struct, forbid_unknown_fields=True):
    """What subtracts: by how much has each count grown?"""

    def __sub__(self, before: Self) -> Self:
        now, then = msgspec.structs.astuple(self), msgspec.structs.astuple(before)
        return type(self)(*(a - b for a, b in zip(now, then, strict=True)))


class Look(_Counts):
    """What a machine has counted of packets."""

    rx_packets: int  #: What its device received.
    rx_dropped: int  #: What its device had no room for.
    tx_packets: int  #: What its device sent.
    tx_dropped: int  #: What its device failed to send.
    queue_dropped: int  #: What the queues before its device dropped.
    unclaimed: int  #: What came to a port without a socket.


class Ended(msgspec.Struct, forbid_unknown_fields=True):
    """How a program ended."""

    name: str  #: Such as ``"sender 0"``.
    machine: _Count  #: Its index.
    status: int | None = None  #: Exit status, or minus a signal; null where nobody knows.
    said: dict[str, object] | None = None  #: What the program printed with ``--json``.
    errors: str = ""  #: What it wrote on its standard error.
    joined_s: float | None = None  #: Seconds from its start until a receiver had joined.
    lost: str = ""  #: Why nobody knows.

    @property
    def failure(self) -> str | None:
        """What is to be said of it, after its name; None where it did what it should."""
        if self.lost:
            return self.lost
        if self.status is not None and self.status < 0:
            return f"killed by signal {-self.status}"
        if self.said is None:
            last = (self.errors.strip().splitlines() or ["it said nothing"])[-1]
            return f"failed: {last}"
        return None


class Lost(_Counts):
    """What a lab's switch has lost of what was for a machine."""

    full: int = 0  #: Packets for which its buffer had no room.
    chance: int = 0  #: Packets that were lost by chance, as was asked for.


class Measured(msgspec.Struct, forbid_unknown_fields=True):
    """All that is known of a corner turn."""

    asked: Asked  #: What was to be tried.
    machines: list[Machine]  #: Where programs ran.
    senders: list[Ended]  #: How each ended.
    receivers: list[Ended]  #: How each ended.
    looks: list[Look | None]  #: By how much counters grew; null of a machine that was lost.
    switch: list[Lost] = []  #: In a lab: what its switch lost of what was for each machine.
    trouble: list[str] = []  #: What went wrong, a line each.
    interrupted: bool = False  #: Whether Ctrl-C ended it early.

    @property
    def contradiction(self) -> str | None:
        """What of it does not belong together, as its lists are of the same things."""
        n, asked = len(self.machines), self.asked
        if len(self.looks) != n or len(self.switch) not in (0, n):
            return f"counters are not those of {some(n, 'machine')}"
        if len(self.senders) > asked.senders or len(self.receivers) > asked.receivers:
            return "more programs ended than were asked for"
        if any(one.machine >= n for one in (*self.senders, *self.receivers)):
            return f"a program ran on none of {some(n, 'machine')}"
        return None

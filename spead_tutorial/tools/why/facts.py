# SPDX-License-Identifier: BSD-3-Clause
"""What was seen of a program: numbers, without a word on what they mean."""

import statistics

import msgspec

from spead_tutorial.measure.verify import IP_UDP_HEADERS
from spead_tutorial.tools.why.stacks import Sampled


class Thread(msgspec.Struct, frozen=True):
    """What one thread did, since it began or between two looks."""

    tid: int
    pid: int
    name: str  # what the kernel calls it
    user_s: float  # seconds of CPU time, in the program and in the kernel
    system_s: float
    runnable_s: float  # seconds in which it could have run, but had no core
    voluntary: int  # how often it gave its core up
    faults: int  # pages that it touched for the first time
    tracer: str = ""  # what the program is called that traces it, if one does

    @property
    def cpu_s(self) -> float:
        return self.user_s + self.system_s


class Waited(msgspec.Struct):
    call: str  # empty where it may not be seen
    timed: bool  # whether a time ends it
    seen: int  # in how many looks
    # in how many of those another thread ran, by its number, or slept until a time
    running: dict[int, int] = {}
    asleep: dict[int, int] = {}


class Watched(msgspec.Struct, frozen=True):
    thread: Thread  # between the first look and the last
    looks: int = 0  # at it
    waits: tuple[Waited, ...] = ()


class Run(msgspec.Struct, frozen=True):
    """A part of a run in which nothing else was looked at."""

    seconds: float
    messages: int  # what the device counted
    payload_bytes: int  # what they carried: bytes within UDP, about
    looks: int = 0
    crowded: float = 0.0  # the share of looks in which more threads could run than there are cores
    threads: tuple[Watched, ...] = ()
    whole: Watched | None = None  # all threads taken as one, which runs while any does


class Packets(msgspec.Struct, frozen=True):
    messages: int  # what the kernel gave to the device: one of them can hold several packets
    packets: int  # datagrams in them
    payload_bytes: int  # bytes within UDP
    fragments: int  # messages that are pieces of a datagram larger than the MTU
    packet_bytes: int  # the size within UDP of most packets, by their bytes

    @property
    def per_message(self) -> float:
        return self.packets / (self.messages - self.fragments or 1)

    @property
    def mean_bytes(self) -> float:
        return self.payload_bytes / self.packets


class Call(msgspec.Struct, frozen=True):
    """The calls of one name that a thread made, while strace looked."""

    tid: int
    thread: str  # what it is called
    name: str
    count: int
    seconds: float  # that they took, those that waited left out, less what looking at them costs
    timed_out: float = 0.0  # of the time that they waited, the part that a time ended
    messages: int = 0  # that they sent, or read
    sends: bool = False


class Calls(msgspec.Struct, frozen=True):
    send_calls: int  # calls that send
    messages: int  # what they sent
    names: tuple[str, ...]  # of those calls, most frequent first
    pieces: int  # of memory that a message is gathered from, mostly
    unconnected: bool  # whether they say where it goes
    all: tuple[Call, ...]
    wakes: dict[int, tuple[int, ...]] = {}  # by their numbers, which threads one has woken up

    @property
    def per_call(self) -> float:
        return self.messages / self.send_calls


class Way(msgspec.Struct, frozen=True):
    packet_bytes: int  # within UDP; larger than the MTU allows for fragments
    packets: int = 1  # in a message
    messages: int = 1  # in a call
    pieces: int = 1  # that a packet is gathered from
    unconnected: bool = False  # whether each message says where it goes


class Loop(msgspec.Struct, frozen=True):
    """What a bare loop takes that sends in some way."""

    changed: str  # what it does otherwise than the sender, in words; empty for nothing
    way: Way
    packet_s: tuple[float, ...]  # seconds of CPU time for a packet, in each round

    @property
    def median_s(self) -> float:
        return statistics.median(self.packet_s)

    @property
    def spread(self) -> float:
        return (max(self.packet_s) - min(self.packet_s)) / 2 / (self.median_s or 1.0)

    def as_much(self, packet_bytes: int) -> float:
        """Return what it takes for as many bytes as a packet of another way has."""
        return self.median_s * packet_bytes / self.way.packet_bytes


class Fates(msgspec.Struct, frozen=True):
    """What became of the packets of one run, from the sender to the receiver's socket."""

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
        return self.lost / (self.packets or 1)


class Socket(msgspec.Struct, frozen=True):
    """A socket of the receiver; None is what could not be asked."""

    inode: int  # its number
    port: int
    buffer: int | None = None  # bytes that it has room for, with what the kernel needs besides
    merges: bool | None = None  # whether it takes runs of packets in one message (UDP_GRO)
    queued: int = 0  # bytes in it, with what the kernel needs besides


class Receiving(msgspec.Struct, frozen=True):
    """What was seen of a receiver, but for its time."""

    fates: Fates  # of a run with a loss
    packet_bytes: int  # within UDP
    bare_lost: float  # the share that a bare reader with its buffer lost at the same rate
    held: float | None  # the highest rate without a loss that was found, in bytes/s
    sockets: tuple[Socket, ...]

    @property
    def buffer(self) -> int | None:
        """Bytes that the largest buffer has room for; None where none could be asked."""
        return max((one.buffer for one in self.sockets if one.buffer is not None), default=None)


class Seen(msgspec.Struct, frozen=True):
    program: str  # what it is called
    language: str  # what it is written in, as far as its interpreter tells; or ""
    place: str  # where it sent to, in words
    mtu: int  # of the device, in bytes
    run: Run  # a receiver's messages are the packets that it read
    packets: Packets | None = None  # None where they could not be seen
    calls: Calls | None = None
    loops: tuple[Loop, ...] = ()  # none where there is nothing to compare with
    sampled: dict[int, Sampled] | None = None  # of each thread; None where none could be
    fault_s: float = 0.0  # seconds of CPU time that a new page takes here
    receiving: Receiving | None = None  # None for a sender
    unseen: tuple[str, ...] = ()  # what could not be seen, and how to get it: a sentence each

    @property
    def largest_packet(self) -> int:
        return self.mtu - IP_UDP_HEADERS

    def loop(self, changed: str = "") -> Loop | None:
        """Return the loop that does something otherwise, or else as the sender does."""
        return next((one for one in self.loops if one.changed == changed), None)

    @property
    def rate(self) -> float:
        """Bytes within UDP in a second."""
        return self.run.payload_bytes / self.run.seconds

    @property
    def per_message(self) -> float:
        return self.packets.per_message if self.packets else 1.0

    @property
    def n_packets(self) -> float:
        per_counted = self.packets.packets / self.packets.messages if self.packets else 1.0
        return self.run.messages * per_counted

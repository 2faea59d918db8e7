# SPDX-License-Identifier: BSD-3-Clause
"""What was seen of a program: numbers, without a word on what they mean."""

import dataclasses
import importlib.resources
import tomllib

from spead_tutorial.measure.verify import IP_UDP_HEADERS
from spead_tutorial.tools.why.account import Account
from spead_tutorial.tools.why.remedies import Tried

#: What could not be seen, as the report says it.
UNSEEN: dict[str, str] = tomllib.loads(
    importlib.resources.files(__package__).joinpath("unseen.toml").read_text()
)
#: Bytes of payload that facts are given for: a gigabyte of 10⁹.
GB = 10**9
#: Bytes in a page.
PAGE = 4096


@dataclasses.dataclass(frozen=True, slots=True)
class Beside:
    """What another thread did while one waited."""

    tid: int
    doing: str  # "running", or "timed" for a wait that ends by itself
    seen: int  # in how many looks


@dataclasses.dataclass(frozen=True, slots=True)
class Wait:
    """Something that a thread was seen waiting in."""

    call: str  # the system call; empty where it may not be seen
    timed: bool  # whether it ends by itself, when a time has come
    seen: int  # in how many looks
    beside: tuple[Beside, ...] = ()  # what others did meanwhile, those who waited left out
    # what it was for, of `account.KINDS`, and on what, where the look itself has told
    kind: str = ""
    on: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Thread:
    """What one thread did while the program sent, or received."""

    tid: int  # its number
    name: str  # what the kernel calls it
    user_s: float  # seconds of CPU time, in the program and in the kernel
    system_s: float
    # seconds in which it could have run, but another thread had the core; None where the kernel
    # does not tell
    runnable_s: float | None
    voluntary: int  # how often it gave its core up
    faults: int  # pages that it touched for the first time
    cpus: tuple[int, ...]  # the cores that it may use
    looks: int = 0  # how often it was looked at, and what it was seen waiting in
    waits: tuple[Wait, ...] = ()
    nth: int = 0  # which one it is of those with its name, in the order of their making
    pid: int = 0  # the process that it is of

    @property
    def cpu_s(self) -> float:
        return self.user_s + self.system_s


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """The run that nothing slowed."""

    seconds: float  # from the first message to the last
    messages: int  # what the device counted
    payload_bytes: int  # what they carried: bytes within UDP, about
    threads: tuple[Thread, ...]  # those of all the sender's processes
    looks: int = 0  # how often its threads were looked at
    # whether threads stand in for each other, as those of Go do: what one begins, another ends
    pooled: bool = False

    @property
    def rate(self) -> float:
        """Bytes within UDP in a second."""
        return self.payload_bytes / self.seconds

    @property
    def cpu_s(self) -> float:
        return sum(thread.cpu_s for thread in self.threads)

    @property
    def user_s(self) -> float:
        return sum(thread.user_s for thread in self.threads)

    @property
    def faults(self) -> int:
        return sum(thread.faults for thread in self.threads)

    def per_gb(self, amount: float) -> float:
        return amount * GB / self.payload_bytes


@dataclasses.dataclass(frozen=True, slots=True)
class Packets:
    """What a packet socket saw at the device, in a run of its own."""

    messages: int  # what the kernel gave to the device: one of them can hold several packets
    packets: int  # datagrams in them
    payload_bytes: int  # bytes within UDP
    fragments: int  # messages that are pieces of a datagram larger than the MTU
    packet_bytes: int  # the size within UDP of most packets, by their bytes
    # the length of most SPEAD heaps, by their bytes; None where the packets are not SPEAD
    heap_bytes: int | None

    def per_gb(self, amount: float) -> float:
        return amount * GB / self.payload_bytes

    @property
    def per_message(self) -> float:
        return self.packets / (self.messages - self.fragments or 1)

    @property
    def per_heap(self) -> float | None:
        """Packets in a heap, with their headers left out; None where there are no heaps."""
        return None if self.heap_bytes is None else self.heap_bytes / self.packet_bytes


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """The calls of one name that a thread made."""

    name: str
    count: int
    each_s: float  # what one takes that does not wait, less what looking at it costs
    timed: bool = False  # whether it ends by itself, when a time has come
    timed_out: float | None = None  # of the time that it waited, the part that a time ended
    on: str = ""  # the file that it is about most often
    sends: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Caller:
    """The calls of one thread, while strace looked."""

    name: str  # what the kernel calls it, and which one it is of those with this name
    nth: int
    messages: int  # what it sent
    calls: tuple[Call, ...]
    mapped_bytes: int = 0  # bytes of new memory that it asked the kernel for


@dataclasses.dataclass(frozen=True, slots=True)
class Sampled:
    """Where the code of a thread was, when it was looked at in a run of its own."""

    name: str  # what the kernel calls it, and which one it is of those with this name
    nth: int
    samples: int
    clock: int  # of those, in code that reads the clock
    # samples by symbol and library: the most frequent
    places: tuple[tuple[str, str, int], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Calls:
    """What strace saw, in a run of its own."""

    send_calls: int  # system calls that send
    messages: int  # what they sent, as they returned it; or of a receiver, all of this of reads
    names: tuple[str, ...]  # the calls, most frequent first
    seconds: float  # from the first call that sends to the last
    mapped_bytes: int  # bytes of new memory that the program asked the kernel for in that time
    callers: tuple[Caller, ...] = ()  # those threads that made calls in that time

    @property
    def per_call(self) -> float:
        return self.messages / self.send_calls


@dataclasses.dataclass(frozen=True, slots=True)
class Pauses:
    """Times in which a receiver read nothing, far longer than most, in the run with strace."""

    times: int
    longest_s: float  # the longest
    own_s: float  # what of all of them was spent in no call


@dataclasses.dataclass(frozen=True, slots=True)
class Traffic:
    """What the processor counted of memory, in the run that counts."""

    n_bytes: int | None  # bytes that no cache had; None where they were not counted
    program_only: bool  # whether that is without the kernel's, which copies
    why: str  # why they were not counted


@dataclasses.dataclass(frozen=True, slots=True)
class Bare:
    """What bare system calls do here, with heaps and packets as the sender has them."""

    rate: float  # bytes within UDP in a second
    packet_s: float  # seconds of CPU time that one more packet in a message costs
    # seconds of CPU time for a gigabyte: less than that of a clock where others have the cores
    gb_s: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Fates:
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


@dataclasses.dataclass(frozen=True, slots=True)
class Socket:
    """A socket of the receiver; None is what could not be asked."""

    inode: int  # its number
    port: int
    buffer: int | None = None  # bytes that it has room for, with what the kernel needs besides
    merges: bool | None = None  # whether it takes runs of packets in one message (UDP_GRO)


@dataclasses.dataclass(frozen=True, slots=True)
class Receiving:
    """What was seen of a receiver, but for its time."""

    fates: Fates  # of a run with a loss
    packet_bytes: int  # within UDP
    burst: int  # packets that come at once
    held: float | None  # the highest rate without a loss that was found, in bytes/s
    sockets: tuple[Socket, ...]
    pauses: Pauses | None = None  # None where they could not be seen
    # what it said of its stream at its end, by the names of the stream's counts
    told: dict[str, int] = dataclasses.field(default_factory=dict)

    @property
    def buffer(self) -> int | None:
        """Bytes that the largest buffer has room for; None where none could be asked."""
        return max((one.buffer for one in self.sockets if one.buffer is not None), default=None)


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """All that was seen of a sender, or of a receiver."""

    program: str  # what it is called
    place: str  # where it sent to, in words
    mtu: int  # of the device, in bytes
    cores: int  # how many there are to use
    run: Run  # rate, times and faults; a receiver's messages are the packets that it read
    packets: Packets | None  # None where they could not be seen
    calls: Calls | None  # None where they could not be seen
    bare: Bare | None  # None where there is nothing to compare with
    unseen: tuple[str, ...] = ()  # what could not be seen, and how to get it: a sentence each
    traffic: Traffic | None = None  # None where it was not counted
    sampled: tuple[Sampled, ...] | None = None  # None where there is no perf, or it may not look
    account: Account | None = None  # of the run that nothing slowed; None where it was too short
    tried: tuple[Tried, ...] = ()  # bare loops with remedies, in rounds
    receiving: Receiving | None = None  # None for a sender

    @property
    def largest_packet(self) -> int:
        return self.mtu - IP_UDP_HEADERS

    @property
    def share(self) -> float | None:
        return None if self.bare is None else self.run.rate / self.bare.rate

# SPDX-License-Identifier: BSD-3-Clause
"""What streams are told and what they tell: plain types, used by the core and its callers."""

import enum
import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

#: How payload is copied to its place: as the C library does.
MEMCPY_STD = 0
#: How payload is copied to its place: it may pass by the caches. Accepted; it makes no difference.
MEMCPY_NONTEMPORAL = 1


class Stopped(RuntimeError):  # noqa: N818 - programs written for spead2 know it by this name
    """A stream has been closed, or its thread pool stopped: it takes, or has, no more heaps."""


class Empty(Exception):  # noqa: N818 - programs written for spead2 know it by this name
    """There is nothing to be got yet."""


class Full(Exception):  # noqa: N818 - programs written for spead2 know it by this name
    """There is no room yet."""


class ReaderError(OSError, RuntimeError):
    """A stream cannot receive there, such as from a port that is in use."""


class GroupMode(enum.Enum):
    """How the packets of a group's heaps follow each other."""

    #: A packet of each heap in turn.
    ROUND_ROBIN = 0
    #: All of one heap, then all of the next.
    SERIAL = 1


class RateMethod(enum.Enum):
    """What keeps the rate. UDP streams always use software; the others are accepted."""

    #: The sending thread, by the clock.
    SW = 0
    #: The network interface.
    HW = 1
    #: All that there is.
    AUTO = 2


def parse_range_list(ranges: str) -> list[int]:
    """Read a list of numbers and ranges, such as the cores that a command line names.

    Parameters
    ----------
    ranges : str
        Such as ``"2,3-5,8"``. Nothing at all is an empty list.

    Returns
    -------
    list of int
        All of them, in the order in which they stand there.

    Raises
    ------
    ValueError
        For what is neither a number nor a range.

    Examples
    --------
    >>> parse_range_list("2,3-5,8")
    [2, 3, 4, 5, 8]
    """
    numbers: list[int] = []
    for part in ranges.split(",") if ranges else []:
        first, dash, last = part.partition("-")
        numbers += range(int(first), int(last if dash else first) + 1)
    return numbers


def whole(name: str, value: object, bits: int = 64) -> int:
    """`value` as a count: whole, not negative and of no more bits, else a TypeError."""
    if isinstance(value, float) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    number: int = value.__index__()
    if number < 0:
        raise TypeError(f"{name} must not be negative, but is {number}")
    if number >= 1 << bits:
        raise TypeError(f"{name} must fit {bits} bits, but is {number:#x}")
    return number


def at_least_one(name: str, value: object) -> int:
    number = whole(name, value)
    if number == 0:
        raise ValueError(f"{name} must be at least 1")
    return number


def _real(name: str, value: float) -> float:
    if isinstance(value, str):  # which float() would read
        raise TypeError(f"{name} must be a number, not {value!r}")
    return float(value)


class Settings:
    """Base of data classes whose fields are checked whenever they are set.

    There are no others, but in classes that users derive from these. A field is what its default
    is: a truth, a member of an enumeration, or a whole number that is not negative.
    """

    #: Numbers that are not 0 either.
    _POSITIVE: ClassVar[tuple[str, ...]] = ()

    def _checked(self, name: str, value: Any) -> Any:
        """Return the value that a field gets."""
        kind = type(type(self).__dataclass_fields__[name].default)  # type: ignore[attr-defined]
        if kind is bool:
            return bool(value)
        if issubclass(kind, enum.Enum):
            if not isinstance(value, kind):
                raise TypeError(f"{name} must be a {kind.__qualname__}, not {value!r}")
            return value
        return at_least_one(name, value) if name in self._POSITIVE else whole(name, value)

    if not TYPE_CHECKING:  # where it is seen, any name may be set

        def __setattr__(self, name, value):
            if name in [one.name for one in fields(self)]:
                value = self._checked(name, value)
            elif not name.startswith("_") and Settings in type(self).__bases__:
                raise AttributeError(f"{type(self).__name__} has no {name!r} that can be set")
            object.__setattr__(self, name, value)

    def copy(self) -> Self:
        """Return another one that is the same, with lists of its own."""
        other = object.__new__(type(self))
        own = {k: list(v) if isinstance(v, list) else v for k, v in vars(self).items()}
        other.__dict__.update(own)
        return other

    __copy__ = copy


@dataclass(kw_only=True, eq=False)
class StreamConfig(Settings):
    """How a stream sends.

    Attributes have the names of the parameters, and may be changed. A stream copies what it is
    made with: later changes make no difference to it.

    Parameters
    ----------
    max_packet_size : int
        Bytes of a packet at most, at least 56; UDP (8) and IP headers (20 or 40) are not counted.
        The stream rounds it down to a multiple of 8. The default fills an Ethernet frame of 1500
        bytes under IPv4.
    rate : float
        Bytes of SPEAD packets per second; 0 for no limit.
    burst_size : int
        Bytes sent back to back before the rate is looked at.
    max_heaps : int
        Heaps between queueing and completion, at least 1. One more is refused.
    burst_rate_ratio : float
        A stream that is late catches up at no more than ``rate * burst_rate_ratio``; at least 1.
    rate_method : RateMethod
        What keeps the rate.
    timeline : int
        Keep the times of this many heaps for `Stream.timeline`; 0 keeps none.
    equal_packets : bool
        Cut a heap into packets that are all equal, where it takes no more of them so: then further
        heaps share messages with it. Others are cut as without it.

    Raises
    ------
    TypeError
        For an unknown name, and for whole numbers that are negative.
    ValueError
        For a value out of its range.
    """

    #: Default of `max_packet_size`, in bytes.
    DEFAULT_MAX_PACKET_SIZE: ClassVar[int] = 1472
    #: Default of `max_heaps`.
    DEFAULT_MAX_HEAPS: ClassVar[int] = 4
    #: Default of `burst_size`, in bytes.
    DEFAULT_BURST_SIZE: ClassVar[int] = 65536
    #: Default of `burst_rate_ratio`.
    DEFAULT_BURST_RATE_RATIO: ClassVar[float] = 1.05
    #: Default of `rate_method`.
    DEFAULT_RATE_METHOD: ClassVar[RateMethod] = RateMethod.AUTO

    #: Bytes of a packet at most, UDP and IP headers not counted.
    max_packet_size: int = DEFAULT_MAX_PACKET_SIZE
    #: Bytes of SPEAD packets per second; 0 for no limit.
    rate: float = 0.0
    #: Bytes sent back to back.
    burst_size: int = DEFAULT_BURST_SIZE
    #: Heaps between queueing and completion.
    max_heaps: int = DEFAULT_MAX_HEAPS
    #: How many times the rate a late stream may send at.
    burst_rate_ratio: float = DEFAULT_BURST_RATE_RATIO
    #: What keeps the rate.
    rate_method: RateMethod = DEFAULT_RATE_METHOD
    #: Heaps whose times are kept.
    timeline: int = 0
    #: Whether heaps are cut into equal packets where they can be.
    equal_packets: bool = False

    _POSITIVE = ("max_heaps",)

    def _checked(self, name: str, value: Any) -> Any:
        if name not in ("rate", "burst_rate_ratio"):
            value = super()._checked(name, value)
            if name == "max_packet_size" and value < 56:
                raise ValueError(
                    f"max_packet_size {value} is too small: the headers alone need 56 bytes"
                )
            return value
        real = _real(name, value)
        if name == "rate" and not 0 <= real < math.inf:
            raise ValueError(f"rate {real} is not a number of bytes per second (0 for no limit)")
        if name == "burst_rate_ratio" and not 1 <= real < math.inf:
            raise ValueError(f"burst_rate_ratio {real} is less than 1")
        return real

    @property
    def burst_rate(self) -> float:
        """Bytes per second at which a late stream catches up; follows from the two others."""
        return self.rate * self.burst_rate_ratio


@dataclass(frozen=True, slots=True)
class StreamStats:
    """Counts since a stream was made; complete for every heap whose future or call is done.

    Parameters
    ----------
    heaps : int
        Heaps completed, whether well or not.
    packets, bytes : int
        Packets that were handed over to the kernel, and bytes in them (UDP and IP not counted).
    send_calls : int
        System calls made to send.
    messages, gso_messages : int
        Messages in those calls that were taken, and those of them that carried several packets
        (generic segmentation offload).
    zero_copy_messages, zero_copy_copied : int
        Messages whose memory the kernel was to read in place, and those of them that it has
        copied after all, as it does on loopback.
    waits : int
        Times the socket was full and had to be waited for.
    looking_ns : int
        Time in which the stream's thread did not sleep, but looked whether there was more to do,
        in ns.
    waiting_looking_ns : int
        The same of threads that wait for a heap and, on a stream without a thread, of those that
        send for it. What several do at once is added up.
    errors : int
        Packets that failed.
    errors_by_errno : dict of int to int
        The packets that failed, by ``errno``.
    """

    heaps: int
    packets: int
    bytes: int
    send_calls: int
    messages: int
    gso_messages: int
    zero_copy_messages: int
    zero_copy_copied: int
    waits: int
    looking_ns: int
    waiting_looking_ns: int
    errors: int
    errors_by_errno: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MemoryPoolStats:
    """What was asked of a `MemoryPool` since it was made, and what it has.

    Parameters
    ----------
    gets : int
        Requests: those that got a buffer that was there, and those of `empty` and `passed_by`.
    empty : int
        Requests that came while there was no buffer: each got a new one.
    passed_by : int
        Requests for fewer bytes than the pool's ``lower``, or more than its ``upper``.
    largest : int
        Bytes of the largest request.
    free, fewest_free : int
        Buffers that it has now, and that it had when they were fewest.
    in_use, most_in_use : int
        Its buffers that heaps have now, and that they had when they were most.
    """

    gets: int
    empty: int
    passed_by: int
    largest: int
    free: int
    fewest_free: int
    in_use: int
    most_in_use: int

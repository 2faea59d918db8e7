# SPDX-License-Identifier: BSD-3-Clause
"""The numbers that the SPEAD protocol fixes, and the flavours it leaves open."""

from __future__ import annotations

import operator
from dataclasses import dataclass

__all__ = [
    "BUG_COMPAT_DESCRIPTOR_WIDTHS",
    "BUG_COMPAT_PYSPEAD_0_5_2",
    "BUG_COMPAT_SHAPE_BIT_1",
    "BUG_COMPAT_SWAP_ENDIAN",
    "CTRL_DESCRIPTOR_REISSUE",
    "CTRL_DESCRIPTOR_UPDATE",
    "CTRL_STREAM_START",
    "CTRL_STREAM_STOP",
    "DESCRIPTOR_DESCRIPTION_ID",
    "DESCRIPTOR_DTYPE_ID",
    "DESCRIPTOR_FORMAT_ID",
    "DESCRIPTOR_ID",
    "DESCRIPTOR_ID_ID",
    "DESCRIPTOR_NAME_ID",
    "DESCRIPTOR_SHAPE_ID",
    "HEAP_CNT_ID",
    "HEAP_LENGTH_ID",
    "NULL_ID",
    "PAYLOAD_LENGTH_ID",
    "PAYLOAD_OFFSET_ID",
    "STREAM_CTRL_ID",
    "Flavour",
]

# Items with a meaning of their own, in every packet or in every heap.
#: Id of padding.
NULL_ID = 0x00
#: Id of the heap count, which tells a heap from those before.
HEAP_CNT_ID = 0x01
#: Id of the bytes of payload in the whole heap.
HEAP_LENGTH_ID = 0x02
#: Id of where the packet's payload belongs in the heap's, in bytes.
PAYLOAD_OFFSET_ID = 0x03
#: Id of the bytes of payload in the packet.
PAYLOAD_LENGTH_ID = 0x04
#: Id of a descriptor, which is a packet inside the payload.
DESCRIPTOR_ID = 0x05
#: Id of stream control; its values are ``CTRL_*``.
STREAM_CTRL_ID = 0x06

# Items inside a descriptor.
#: Id of an item's name, inside its descriptor.
DESCRIPTOR_NAME_ID = 0x10
#: Id of an item's description, inside its descriptor.
DESCRIPTOR_DESCRIPTION_ID = 0x11
#: Id of an item's shape, inside its descriptor.
DESCRIPTOR_SHAPE_ID = 0x12
#: Id of an item's format, inside its descriptor.
DESCRIPTOR_FORMAT_ID = 0x13
#: Id of an item's id, inside its descriptor.
DESCRIPTOR_ID_ID = 0x14
#: Id of the header that describes an item's NumPy array, inside its descriptor.
DESCRIPTOR_DTYPE_ID = 0x15

# Values of the stream control item.
#: Stream control: the stream starts here.
CTRL_STREAM_START = 0
#: Stream control: descriptors are sent again.
CTRL_DESCRIPTOR_REISSUE = 1
#: Stream control: the stream ends here.
CTRL_STREAM_STOP = 2
#: Stream control: descriptors have changed.
CTRL_DESCRIPTOR_UPDATE = 3

# Deviations of the first implementation that its receivers still expect.
#: Descriptors have 4-byte format fields and 8-byte shape fields, in every flavour.
BUG_COMPAT_DESCRIPTOR_WIDTHS = 1
#: A dimension that varies is marked by 2 instead of 1.
BUG_COMPAT_SHAPE_BIT_1 = 2
#: The dtype in a descriptor has the other byte order.
BUG_COMPAT_SWAP_ENDIAN = 4
#: All three, as receivers made with PySPEAD 0.5.2 expect.
BUG_COMPAT_PYSPEAD_0_5_2 = 7


@dataclass(frozen=True, slots=True)
class Flavour:
    """One variant of the protocol: how an item pointer's 64 bits are shared out.

    Parameters
    ----------
    version : int
        Version of the protocol: 4 is the only one.
    item_pointer_bits : int
        Bits in an item pointer: 64 is the only width.
    heap_address_bits : int
        Bits of a pointer that hold an address or an immediate value: a multiple of 8 from 8 to 56.
        One bit is the mode, the other ``63 - heap_address_bits`` are the item's id.
    bug_compat : int
        Sum of ``BUG_COMPAT_*`` bits: how descriptors for an old receiver differ.

    Raises
    ------
    ValueError
        If a value is not one of those above.
    TypeError
        If a value is not an integer.

    Examples
    --------
    >>> Flavour()
    Flavour(version=4, item_pointer_bits=64, heap_address_bits=40, bug_compat=0)
    >>> Flavour(4, 64, 48) == Flavour(heap_address_bits=48)
    True
    """

    version: int = 4
    item_pointer_bits: int = 64
    heap_address_bits: int = 40
    bug_compat: int = 0

    def __post_init__(self) -> None:
        for name in ("version", "item_pointer_bits", "heap_address_bits", "bug_compat"):
            object.__setattr__(self, name, operator.index(getattr(self, name)))
        if self.version != 4:
            raise ValueError(f"version is {self.version}: SPEAD has only version 4")
        if self.item_pointer_bits != 64:
            raise ValueError(f"item_pointer_bits is {self.item_pointer_bits}: it has to be 64")
        if self.heap_address_bits not in range(8, 57, 8):
            raise ValueError(
                f"heap_address_bits is {self.heap_address_bits}: "
                "it has to be a multiple of 8 from 8 to 56"
            )
        if self.bug_compat not in range(BUG_COMPAT_PYSPEAD_0_5_2 + 1):
            raise ValueError(
                f"bug_compat is {self.bug_compat}: "
                "it has to be a sum of BUG_COMPAT_* bits, that is 0 to 7"
            )

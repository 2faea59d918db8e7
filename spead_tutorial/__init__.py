# SPDX-License-Identifier: BSD-3-Clause
"""A laboratory for high-rate senders of SPEAD heaps over UDP.

The names here, in `spead_tutorial.send` and in `spead_tutorial.recv` are those of spead2, so that a
program written for one runs with the other.
"""

from importlib.util import find_spec as _find_spec

if _find_spec("spead_tutorial._core") is None:
    raise ImportError(
        "spead_tutorial is being imported from its source folder, which has no compiled core: "
        "run from another folder, with the Python it is installed for (make sets up .venv)"
    )

from spead_tutorial._core import HugePages, MemoryAllocator, MemoryPool, MmapAllocator, ThreadPool
from spead_tutorial._types import (
    MEMCPY_NONTEMPORAL,
    MEMCPY_STD,
    Empty,
    Full,
    MemoryPoolStats,
    ReaderError,
    Stopped,
    parse_range_list,
)
from spead_tutorial.flavour import (
    BUG_COMPAT_DESCRIPTOR_WIDTHS,
    BUG_COMPAT_PYSPEAD_0_5_2,
    BUG_COMPAT_SHAPE_BIT_1,
    BUG_COMPAT_SWAP_ENDIAN,
    CTRL_DESCRIPTOR_REISSUE,
    CTRL_DESCRIPTOR_UPDATE,
    CTRL_STREAM_START,
    CTRL_STREAM_STOP,
    DESCRIPTOR_DESCRIPTION_ID,
    DESCRIPTOR_DTYPE_ID,
    DESCRIPTOR_FORMAT_ID,
    DESCRIPTOR_ID,
    DESCRIPTOR_ID_ID,
    DESCRIPTOR_NAME_ID,
    DESCRIPTOR_SHAPE_ID,
    HEAP_CNT_ID,
    HEAP_LENGTH_ID,
    NULL_ID,
    PAYLOAD_LENGTH_ID,
    PAYLOAD_OFFSET_ID,
    STREAM_CTRL_ID,
    Flavour,
)
from spead_tutorial.items import Descriptor, Item, ItemGroup, RawDescriptor

__version__ = "0.1.0"

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
    "MEMCPY_NONTEMPORAL",
    "MEMCPY_STD",
    "NULL_ID",
    "PAYLOAD_LENGTH_ID",
    "PAYLOAD_OFFSET_ID",
    "STREAM_CTRL_ID",
    "Descriptor",
    "Empty",
    "Flavour",
    "Full",
    "HugePages",
    "Item",
    "ItemGroup",
    "MemoryAllocator",
    "MemoryPool",
    "MemoryPoolStats",
    "MmapAllocator",
    "RawDescriptor",
    "ReaderError",
    "Stopped",
    "ThreadPool",
    "parse_range_list",
]

# SPDX-License-Identifier: BSD-3-Clause
"""A laboratory for high-rate senders of SPEAD heaps over UDP.

The names here, in `spead_tutorial.send` and in `spead_tutorial.recv` are those of spead2, so that a
program written for one runs with the other.
"""

import logging as _logging
from importlib.util import find_spec as _find_spec

if _find_spec("spead_tutorial._core") is None:
    raise ImportError(
        "spead_tutorial is being imported from its source folder, which has no compiled core: "
        "run from another folder, with the Python it is installed for (make sets up .venv)"
    )

from spead_tutorial import flavour
from spead_tutorial._core import (
    HugePages,
    InprocQueue,
    MemoryAllocator,
    MemoryPool,
    MmapAllocator,
    ThreadPool,
)
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
from spead_tutorial.flavour import *  # noqa: F403 - all numbers of the protocol
from spead_tutorial.items import Descriptor, Item, ItemGroup, RawDescriptor

#: What the library says is logged here, and below.
_logger = _logging.getLogger(__name__)

__version__ = "0.1.0"

__all__ = [
    "MEMCPY_NONTEMPORAL",
    "MEMCPY_STD",
    "Descriptor",
    "Empty",
    "Full",
    "HugePages",
    "InprocQueue",
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
__all__ += flavour.__all__

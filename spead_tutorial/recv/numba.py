# SPDX-License-Identifier: BSD-3-Clause
"""Place functions that Numba compiles. It takes Numba: the extra ``[numba]``."""

from __future__ import annotations

import spead_tutorial.numba  # noqa: F401 - first: it says what to do where there is no Numba

# isort: split
from numba.core import types

__all__ = ["chunk_place_data"]

#: What a place function is told of a heap, and says of it: a record. Pointers are numbers
#: (``packet``, ``items``, ``batch_stats``, ``extra``): `spead_tutorial.numba.intp_to_voidptr` makes
#: addresses of them.
chunk_place_data = types.Record.make_c_struct(
    [
        ("packet", types.intp),
        ("packet_size", types.size_t),
        ("items", types.intp),
        ("chunk_id", types.int64),
        ("heap_index", types.size_t),
        ("heap_offset", types.size_t),
        ("batch_stats", types.intp),
        ("extra", types.intp),
        ("extra_offset", types.size_t),
        ("extra_size", types.size_t),
    ]
)

# SPDX-License-Identifier: BSD-3-Clause
"""What functions that Numba compiles need of us. It takes Numba: the extra ``[numba]``."""

from __future__ import annotations

from importlib.util import find_spec as _find_spec
from typing import Any

if _find_spec("numba") is None:
    raise ImportError(
        "spead_tutorial.numba needs Numba, which is not installed: pip install"
        " 'spead-tutorial[numba]'"
    )

import numba
from numba.core import types

__all__ = ["intp_to_voidptr"]


def _to_voidptr(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.intp), generate


#: Make an address (``voidptr``) of a number (``intp``), in compiled functions:
#: ``numba.carray(intp_to_voidptr(data[0].items), 2, dtype=np.int64)``.
intp_to_voidptr: Any = numba.extending.intrinsic(_to_voidptr)

# SPDX-License-Identifier: BSD-3-Clause
"""What tests of programs that somebody looks at need: perf, and stacks as it sees them."""

import pytest

from bench.profile import Frame, require_perf
from spead_tutorial.measure.programs import ProgramError


def why_no_perf() -> str | None:
    """Say why this machine lets nobody look at a program; None where it does."""
    try:
        require_perf()
    except ProgramError as error:
        return str(error)
    return None


REASON = why_no_perf()


needs_perf = pytest.mark.skipif(REASON is not None, reason=f"nothing to look with: {REASON}")


def frames(*names: str, file: str = "/site-packages/spead_tutorial/_core.so") -> list[Frame]:
    """Make a stack from names: ``k:`` stands before one of the kernel, ``c:`` of the C library."""
    files = {"k": "[kernel.kallsyms]", "c": "/lib/libc.so.6", "p": "/lib/libpython3.11.so"}
    split = [name.rpartition(":") for name in names]
    return [Frame(name, files.get(prefix, file)) for prefix, _, name in split]

# SPDX-License-Identifier: BSD-3-Clause
"""What tests of programs that somebody looks at need: perf, and stacks as it sees them."""

import pytest

from bench import stacks


def why_no_perf() -> str | None:
    """Say why this machine lets nobody look at a program; None where it does."""
    try:
        stacks.require_perf()
    except stacks.StackError as error:
        return str(error)
    return None


REASON = why_no_perf()


needs_perf = pytest.mark.skipif(REASON is not None, reason=f"nothing to look with: {REASON}")


def frames(*names: str, file: str = "/site-packages/spead_tutorial/_core.so") -> list[stacks.Frame]:
    """Make a stack from names: ``k:`` stands before one of the kernel, ``c:`` of the C library."""
    files = {"k": "[kernel.kallsyms]", "c": "/lib/libc.so.6", "p": "/lib/libpython3.11.so"}
    split = [name.rpartition(":") for name in names]
    return [stacks.Frame(name, files.get(prefix, file)) for prefix, _, name in split]

# SPDX-License-Identifier: BSD-3-Clause
"""Labs, where there can be some; and processes that have begun to take signals."""

import functools

import pytest

from spead_tutorial import lab

#: What this machine offers for a lab, which a process asks for once.
probe = functools.cache(lab.probe)
REASON = f"no lab here: {probe().reason}"
needs_lab = pytest.mark.skipif(probe().reason is not None, reason=REASON)


def open_lab() -> lab.Lab:
    """Open a lab, or skip the test where there can be none."""
    if probe().reason is not None:
        pytest.skip(REASON)
    return lab.Lab()

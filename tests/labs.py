# SPDX-License-Identifier: BSD-3-Clause
"""Labs, where there can be some."""

import functools

import pytest

from spead_tutorial import lab

#: What this machine offers for a lab, which a process asks for once.
probe = functools.cache(lab.probe)


def open_lab() -> lab.Lab:
    """Open a lab, or skip the test where there can be none."""
    reason = probe().reason
    if reason is not None:
        pytest.skip(f"no lab here: {reason}")
    return lab.Lab()

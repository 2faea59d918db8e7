# SPDX-License-Identifier: BSD-3-Clause
"""The mean of the squares of samples, without an array of these: chapter 7 says why."""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt


def _in_a_loop(samples: npt.NDArray[np.integer[Any]]) -> int:
    total = 0
    for sample in samples:
        total += int(sample) * int(sample)
    return total


def _summed_at_once(samples: npt.NDArray[np.integer[Any]]) -> int:
    return int(np.einsum("i,i->", samples, samples, dtype=np.int64))


sum_squares: Callable[[npt.NDArray[np.integer[Any]]], int] = _summed_at_once
with contextlib.suppress(ImportError):  # without Numba, or with one that NumPy is too new for
    from numba import njit, types

    # Compiled here, and not when the first heap is there; other threads run while it adds up.
    array = types.Array(types.int8, 1, "C", readonly=True)
    sum_squares = njit(types.int64(array), nogil=True)(_in_a_loop)


def mean_square(samples: npt.NDArray[np.integer[Any]]) -> float:
    """Return the mean of the squares of samples of 8 bits."""
    return sum_squares(samples.reshape(-1)) / samples.size

# SPDX-License-Identifier: BSD-3-Clause
"""Place functions that Numba compiles; a program with one is in `test_telescopes`."""

import subprocess
import sys

import numpy as np
import pytest

from support.chunks import HEAP, Setup, heap


def test_without_numba_one_line_says_what_to_install():
    program = "import sys; sys.modules['numba'] = None; import spead_tutorial.recv.numba"
    ended = subprocess.run([sys.executable, "-P", "-c", program], stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 1
    assert "pip install 'spead-tutorial[numba]'" in ended.stderr.splitlines()[-1]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_compiled_place_function_that_raises_refuses_its_heap():
    import numba
    import scipy

    from spead_tutorial.numba import intp_to_voidptr
    from spead_tutorial.recv.numba import chunk_place_data

    @numba.cfunc(
        numba.void(numba.types.CPointer(chunk_place_data), numba.types.size_t), nopython=True
    )
    def place(data_ptr, data_size):
        data = numba.carray(data_ptr, 1)
        items = numba.carray(intp_to_voidptr(data[0].items), 2, dtype=np.int64)
        data[0].heap_index = items[0] // HEAP
        data[0].heap_offset = items[0]
        if items[0] == HEAP:
            raise ValueError
        data[0].chunk_id = 0

    compiled = scipy.LowLevelCallable(place.ctypes, signature="void (void *, size_t)")
    setup = Setup(place=compiled, packets=[heap(n) for n in range(3)])
    assert [present for _, present, *_ in setup.got()] == [[1, 0, 1, 0]]
    assert setup.stream.stats.rejected_heaps == 1

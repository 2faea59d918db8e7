# SPDX-License-Identifier: BSD-3-Clause
"""What Numba compiles: place functions, in programs written for spead2 too, and kernels."""

import subprocess
import sys

import numpy as np
import pytest

from support.chunks import HEAP, HEAPS, TIMESTAMP, Setup, heap

PROGRAM = """
import ctypes
import sys

import numba
import numpy as np
import scipy
from numba import types

import spead2
import spead2.recv
import spead2.recv.numba
from spead2.numba import intp_to_voidptr
from spead2.recv.numba import chunk_place_data

HEAP, HEAPS, TIMESTAMP = map(int, sys.argv[1:])


@numba.cfunc(
    types.void(types.CPointer(chunk_place_data), types.size_t, types.CPointer(types.int64)),
    nopython=True,
)
def place(data_ptr, data_size, sizes_ptr):
    data = numba.carray(data_ptr, 1)
    items = numba.carray(intp_to_voidptr(data[0].items), 2, dtype=np.int64)
    sizes = numba.carray(sizes_ptr, 2)
    timestamp, length = items[0], items[1]
    if timestamp >= 0 and length == sizes[0]:
        data[0].chunk_id = timestamp // sizes[1]
        data[0].heap_offset = timestamp % sizes[1]
        data[0].heap_index = data[0].heap_offset // sizes[0]


sizes = np.array([HEAP, HEAP * HEAPS], np.int64)
config = spead2.recv.StreamConfig(max_heaps=2)
chunk_config = spead2.recv.ChunkStreamConfig(
    items=[TIMESTAMP, spead2.HEAP_LENGTH_ID],
    max_chunks=1,
    place=scipy.LowLevelCallable(
        place.ctypes, user_data=sizes.ctypes.data_as(ctypes.c_void_p),
        signature="void (void *, size_t, void *)",
    ),
)
data_ring, free_ring = spead2.recv.ChunkRingbuffer(2), spead2.recv.ChunkRingbuffer(4)
pool = spead2.ThreadPool()
stream = spead2.recv.ChunkRingStream(pool, config, chunk_config, data_ring, free_ring)
for _ in range(free_ring.maxsize):
    present, data = np.zeros(HEAPS, np.uint8), np.zeros((HEAPS, HEAP), np.int8)
    stream.add_free_chunk(spead2.recv.Chunk(present=present, data=data))
stream.add_buffer_reader(sys.stdin.buffer.read())
heaps = 0
for chunk in data_ring:
    if np.any(chunk.present):
        heaps += int(np.sum(chunk.present, dtype=np.int64))
        print(chunk.chunk_id * HEAP * HEAPS, chunk.data[chunk.present.astype(bool)].sum())
    stream.add_free_chunk(chunk)
print("Received", heaps, "heaps")
"""

PACKETS = b"".join([heap(0, 4), *(heap(n) for n in range(1, 40)), heap(3), heap(60)])


def said_by(program: str) -> str:
    sizes = [str(number) for number in (HEAP, HEAPS, TIMESTAMP)]
    command = [sys.executable, "-P", "-c", program, *sizes]
    return subprocess.run(
        command, input=PACKETS, stdout=subprocess.PIPE, check=True
    ).stdout.decode()


@pytest.mark.parametrize("of", ["ours", pytest.param("spead2's", marks=pytest.mark.thorough)])
def test_a_program_for_spead2_says_the_same_when_its_imports_are_renamed(of):
    program = PROGRAM
    if of == "ours":
        program = program.replace("import spead2\n", "import spead_tutorial as spead2\n")
        program = program.replace("import spead2.", "import spead_tutorial.")
        program = program.replace("from spead2.", "from spead_tutorial.")
    chunk = HEAP * HEAPS
    sums = [(n, HEAP * sum(range(n + 1, n + HEAPS + 1))) for n in range(0, 40, HEAPS)]
    sums[0] = (0, sums[0][1] - HEAP)  # its first heap is half there
    lines = [f"{n // HEAPS * chunk} {total}" for n, total in (*sums, (60, HEAP * 61))]
    assert said_by(program).splitlines() == [*lines, "Received 40 heaps"]


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

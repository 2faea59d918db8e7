#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Work out the mean of the squares of samples in several ways: is it right, what does it take?"""

import argparse
import importlib.util
import timeit
import tracemalloc

import numpy as np

N = 1 << 20
SAMPLES = np.random.default_rng(1).integers(-100, 100, N, dtype=np.int8)


def in_8_bits(samples):
    return np.mean(np.square(samples))


def in_64_bits(samples):  # chapter 3
    return np.mean(np.square(samples.astype(np.int64)))


def with_floats(samples):
    floats = samples.astype(np.float32)
    return np.dot(floats, floats) / len(floats)


def summed_at_once(samples):
    return int(np.einsum("i,i->", samples, samples, dtype=np.int64)) / len(samples)


def in_a_loop(samples):  # chapter 7, compiled
    total = 0
    for sample in samples:
        total += int(sample) * int(sample)
    return total / len(samples)


def peak_bytes(mean, samples):
    """Return how much memory a way takes, besides the samples."""
    tracemalloc.start()
    mean(samples)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def milliseconds(way):
    return min(timeit.repeat(lambda: way(SAMPLES), number=5, repeat=5)) / 5 * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, epilog="example: mean_squares.py --time")
    parser.add_argument("--time", action="store_true", help="say how long each takes, too")
    timed = parser.parse_args().time
    ways = [in_8_bits, in_64_bits, with_floats, summed_at_once]
    if importlib.util.find_spec("numba") is not None:
        import numba

        ways.append(numba.njit(in_a_loop))
    print(f"{'way':24}{'result':>10}{'bytes a sample':>16}{'  milliseconds' * timed}")
    for way in ways:
        result = way(SAMPLES)  # which compiles a loop
        name = way.__name__.replace("_", " ") + ", compiled" * (way.__name__ == "in_a_loop")
        row = f"{name:24}{result:>10.2f}{peak_bytes(way, SAMPLES) / N:>16.1f}"
        print(row + (f"{milliseconds(way):>14.3f}" if timed else ""))


if __name__ == "__main__":
    main()

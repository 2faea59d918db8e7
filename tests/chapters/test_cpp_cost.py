# SPDX-License-Identifier: BSD-3-Clause
"""What the C++ header costs: instructions are counted, which no other program can disturb."""

import re
import subprocess

import pytest

from spead_tutorial.measure.programs import program_path
from support.needs import need
from support.sockets import udp_socket

HOT = "tut_13_send_hot"  # everything in one thread: each run takes the same way


def instructions(language: str, heaps: int) -> int:
    """Count what a program executes outside the kernel while it sends so many heaps of 8 KiB."""
    need("valgrind")
    with udp_socket() as receiver:
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
        command += [program_path(HOT, language), "-n", str(heaps), "-H", "8192", "-p", "9000"]
        command += ["127.0.0.1", str(receiver.getsockname()[1])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unhandled instruction" in done.stderr:
        pytest.skip("this valgrind does not know all instructions of this processor")
    assert done.returncode == 0, done.stderr
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found is not None, done.stderr
    return int(found[1])


def for_each_heap(language: str) -> float:
    """Count instructions for a heap, without those of starting and ending."""
    few, many = 100, 1100
    return (instructions(language, many) - instructions(language, few)) / (many - few)


@pytest.mark.thorough
def test_a_heap_takes_as_many_instructions_in_cpp_as_in_c():
    in_c = for_each_heap("c")
    assert in_c > 1000  # the run was that of a program
    assert for_each_heap("cpp") == pytest.approx(in_c, rel=0.01)

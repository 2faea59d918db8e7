# SPDX-License-Identifier: BSD-3-Clause
"""No file of the core includes one that comes after it.

What the Python package may import, ``make lint`` sees to: see pyproject.toml.
"""

import re

from support import ROOT

#: The files of csrc/src, or what the names of several begin with, each after those it includes.
ORDER = re.findall(
    r"\w+",
    """
    status sync clock memory wire item heap variable packetizer rate udp_socket inproc_queue
    transport thread_pool stream received_packet received_items received_descriptor received_group
    ranges counts sequence heap_memory memory_pool live_heap packet_run sender expected depacketizer
    datagrams sink waits chunk_ring chunk_window chunks heap_ring intake frame frame_filter capture
    source recv_stream chunk_group
    """,
)


def part_of_the_core(file: str) -> str:
    wholes = ("source", "stream", "thread_pool", "transport")
    return next((whole for whole in wholes if file.startswith(f"{whole}_")), file)


def test_no_file_of_the_core_includes_one_that_comes_after_it():
    sources = sorted((ROOT / "csrc/src").glob("*.[ch]"))
    assert {part_of_the_core(path.stem) for path in sources} == set(ORDER)
    for path in sources:
        own = ORDER.index(part_of_the_core(path.stem))
        for name in re.findall(r'#include "(\w+)\.h"', path.read_text()):
            assert ORDER.index(part_of_the_core(name)) <= own, f"{path.name} includes {name}.h"

# SPDX-License-Identifier: BSD-3-Clause
"""The last line of the peer's programs: that of ours, as far as spead2 can say it."""

import json

import spead2.send

from spead_tutorial.chapters.report import PROGRAM, Options, Usage


def report(
    options: Options,
    used: Usage,
    first_heap: spead2.send.Heap,
    heap: spead2.send.Heap,
    end: spead2.send.Heap,
) -> None:
    """Print the last line: the rate, or a JSON object.

    spead2 keeps no counts, and to add up what its futures say would cost time in the loop that is
    measured. So packets and their bytes are those that its packet generator makes of three heaps:
    the first, one of those that followed, and the one that ended the stream, or others just like
    them. The device that takes them has the last word.
    """
    payload_bytes = options.n_heaps * options.heap_size
    if not options.json:
        print(f"{payload_bytes / used.elapsed_ns * 1e3:.2f} MB/s")
        return
    n_packets = n_bytes = 0
    for each, count in ((first_heap, 1), (heap, options.n_heaps - 1), (end, 1)):
        sizes = [len(p) for p in spead2.send.PacketGenerator(each, 0, options.packet_size)]
        n_packets += count * len(sizes)
        n_bytes += count * sum(sizes)
    record = {
        "chapter": int(PROGRAM.split("_")[1]),
        "program": PROGRAM,
        "language": "python",
        "random": options.random,
        "streams": options.n_streams,
        "heaps": options.n_heaps,
        "heap_size": options.heap_size,
        "packet_size": options.packet_size,
        "payload_bytes": payload_bytes,
        "spead_bytes": n_bytes,
        "packets": n_packets,
        "messages": None,
        "send_calls": None,
        "waits": None,
        "looking_ns": None,
        "waiting_looking_ns": None,
        "errors": 0,
    }
    print(json.dumps(record | {name: getattr(used, name) for name in used.__slots__}))

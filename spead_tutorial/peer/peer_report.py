# SPDX-License-Identifier: BSD-3-Clause
"""The last line of the peer's programs: that of ours, as far as spead2 can say it."""

import spead2.send

from spead_tutorial.chapters.report import Options, Usage, print_report


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
    n_packets = n_bytes = 0
    for each, count in ((first_heap, 1), (heap, options.n_heaps - 1), (end, 1)):
        sizes = [len(p) for p in spead2.send.PacketGenerator(each, 0, options.packet_size)]
        n_packets += count * len(sizes)
        n_bytes += count * sum(sizes)
    counts = {"spead_bytes": n_bytes, "packets": n_packets, "errors": 0}
    print_report(options, used, options.n_streams, counts)

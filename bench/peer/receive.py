#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Receive heaps into a pool of memory and make arrays of them: to be measured.

It is the same program for each library: they have the same names.
"""

import argparse
import importlib
import json
import logging
import socket
import time

import numpy as np
from claims import Claims, parser_of

TIMESTAMP, SAMPLES = 0x1600, 0x3300
LIVE, MORE = 4, 8192  # bytes that a heap may have besides its samples


def parse_options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--no-pool", action="store_true", help="memory as the library allocates it")
    parser.add_argument(
        "--no-thread", action="store_true", help="read the socket where heaps are asked for"
    )
    parser.add_argument(
        "--out-of-order", action="store_true", help="take a heap's packets in any order"
    )
    parser.add_argument("--drop-when-full", action="store_true", help="what the ring cannot hold")
    parser.add_argument("--sleep-ms", type=float, default=0, help="how long each heap is worked at")
    parser.add_argument("--account", action="store_true", help="print all that was counted")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    logging.basicConfig(level=logging.ERROR)  # of what is lost, the counts are told at the end
    library = importlib.import_module(options.library)
    recv = importlib.import_module(f"{options.library}.recv")
    more = {"allow_out_of_order": options.out_of_order}
    if not options.no_pool:
        n = 2 * (LIVE + options.r)
        more["memory_allocator"] = library.MemoryPool(options.H, options.H + MORE, n, n)
    ring = {"drop_when_full": True} if options.drop_when_full else {}  # which spead2 has not
    stream = recv.Stream(
        None if options.no_thread else library.ThreadPool(),
        recv.StreamConfig(max_heaps=LIVE, **more),
        recv.RingStreamConfig(heaps=options.r, **ring),
    )
    group = library.ItemGroup()
    scalar = [("u", library.Flavour().heap_address_bits)]
    group.add_item(TIMESTAMP, "timestamp", "Index of the first sample", shape=(), format=scalar)
    samples = group.add_item(
        SAMPLES, "adc_samples", "Samples of the converter", shape=(options.H,), dtype=np.uint8
    )
    with socket.socket(fileno=options.socket) as sock:
        stream.add_udp_reader(sock, max_size=max(9200, options.p))
    claims = Claims(options)
    for heap in stream:
        group.update(heap)
        claims.check(heap.cnt, samples.value)
        claims.count(1)
        if options.sleep_ms:
            time.sleep(options.sleep_ms / 1e3)
    stream.stop()
    if options.account:
        print(json.dumps({"got": claims.heaps} | dict(stream.stats)))
    else:
        claims.end(stream.stats)


if __name__ == "__main__":
    main()

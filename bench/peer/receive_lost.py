#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Receive heaps, slowly if that is wanted, and say what has become of every packet."""

from spead_tutorial_run import run

import argparse
import json
import logging
import socket
import sys
import time

import spead_tutorial
from spead_tutorial import recv


def parse_options() -> argparse.Namespace:
    example = "example: receive_lost.py --socket 3 -r 1 --sleep-ms 20"
    parser = argparse.ArgumentParser(description=__doc__, epilog=example)
    parser.add_argument("-p", type=int, default=9000, metavar="BYTES", help="of a packet at most")
    parser.add_argument(
        "-r", type=int, default=4, metavar="HEAPS", help="that the ring has room for"
    )
    parser.add_argument("--drop-when-full", action="store_true", help="what it has no room for")
    parser.add_argument("--no-thread", action="store_true", help="but this one, which works, too")
    parser.add_argument("--sleep-ms", type=float, default=0, help="how long each heap is worked at")
    parser.add_argument("--socket", type=int, required=True, metavar="FD", help="that is bound")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    logging.basicConfig(level=logging.ERROR)  # of what is lost, the counts are told at the end
    ring = recv.RingStreamConfig(heaps=options.r, drop_when_full=options.drop_when_full)
    thread_pool = None if options.no_thread else spead_tutorial.ThreadPool()
    stream = recv.Stream(thread_pool, ring_config=ring)
    with socket.socket(fileno=options.socket) as sock:
        stream.add_udp_reader(sock, max_size=max(9200, options.p))
    print("receive_lost: listening on its socket", file=sys.stderr, flush=True)
    got = 0
    for _ in stream:
        got += 1
        time.sleep(options.sleep_ms / 1e3)
    print(json.dumps({"got": got} | dict(stream.stats)))


if __name__ == "__main__":
    run(main)

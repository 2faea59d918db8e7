#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 18: a socket for each core; the kernel spreads a sender's streams over them."""

import os
import threading
import time

import numpy as np

import spead_tutorial
import spead_tutorial.recv
from spead_tutorial.chapters.receiving import (
    Heaps,
    HeapsOfAll,
    ReceiverOptions,
    describe,
    numbers,
    parse_receiver_options,
)
from spead_tutorial.chapters.squares import mean_square

MAX_HEAPS = 8  # under way at a socket: one for each of the sender's streams there
PATIENCE_MS = 100


class Receiver:
    """The thread of a socket: it reads, and computes the power."""

    #: What descriptors have said: they come to one socket, and are for all.
    lock, item_group = threading.Lock(), spead_tutorial.ItemGroup()

    def __init__(self, options: ReceiverOptions) -> None:
        self.options, self.received = options, 0
        config = spead_tutorial.recv.StreamConfig(max_heaps=MAX_HEAPS)
        self.stream = spead_tutorial.recv.Stream(None, config)
        self.stream.add_udp_reader(options.port, bind_hostname=options.host, reuse_port=True)

    def update(self, heap: spead_tutorial.recv.HeapBase) -> dict[str, spead_tutorial.Item]:
        """Take in a heap, under the lock; say what it describes."""
        known = set(self.item_group.values())
        try:
            updated = self.item_group.update(heap)
        except ValueError:  # its items contradict their descriptors
            updated = {}
        for line in describe(item for item in self.item_group.values() if item not in known):
            self.options.say(line)
        return updated

    def tell_power(self, heap: spead_tutorial.recv.HeapBase, patience_ms: int) -> bool:
        """Tell the power of a heap; False if it is not understood.

        A socket's first heap may be earlier than the descriptors at another.
        """
        for ms in range(patience_ms + 1):
            with self.lock:
                updated = self.update(heap)
                timestamp = numbers(updated, "timestamp")
                adc_samples = numbers(updated, "adc_samples")
            if self.item_group or ms == patience_ms:
                break
            time.sleep(0.001)
        if timestamp is None or adc_samples is None or adc_samples.dtype != np.int8:
            return False
        power = mean_square(adc_samples)
        self.options.say(f"Timestamp: {timestamp.flat[0]:<10} Power: {power:.2f}")
        return True

    def receive(self, heaps: Heaps, core: int | None) -> None:
        """Work as a thread. Python's lock is let go to read and to compute."""
        if core is not None:
            spead_tutorial.ThreadPool.set_affinity(core)
        patience_ms = PATIENCE_MS
        for heap in heaps:
            if self.tell_power(heap, patience_ms):
                self.received += 1
            else:
                heaps.not_understood += 1
            patience_ms = 0


def main() -> None:
    cores = sorted(os.sched_getaffinity(0))
    options = parse_receiver_options(__doc__, ReceiverOptions(sockets=len(cores)))
    n = options.sockets
    receivers = [Receiver(options) for _ in range(n)]  # all of them, before anything is sent
    heaps = HeapsOfAll([receiver.stream for receiver in receivers], options)
    threads = []
    for k, receiver in enumerate(receivers):
        core = cores[k] if n <= len(cores) else None
        threads.append(threading.Thread(target=receiver.receive, args=[heaps.each[k], core]))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    heaps.report(f"Received {sum(receiver.received for receiver in receivers)} heaps")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""Send heaps on a way that loses, doubles and delays packets, and say where each packet went."""

import sys

import numpy as np

import spead_tutorial
from spead_tutorial import recv, send
from spead_tutorial.lab import Journey, Lab, LabError

HEAPS = 100


def main() -> None:
    group = send.ItemGroup()
    samples = np.zeros(1 << 16, np.int8)
    group.add_item(0x3300, "samples", "", shape=samples.shape, dtype=np.int8, value=samples)
    with Lab(receiver=True) as lab, spead_tutorial.ThreadPool() as pool:
        receiver = recv.Stream(
            pool,
            recv.StreamConfig(allow_out_of_order=True),
            recv.RingStreamConfig(heaps=2 * HEAPS, contiguous_only=False),
        )
        with lab.receiver.socket(buffer_size=1 << 22) as sock:
            receiver.add_udp_reader(sock)
        with lab.socket() as sock:
            config = send.StreamConfig(rate=3e7)  # slowly, for the relay and any socket's room
            sender = send.UdpStream(pool, sock, [(lab.address, lab.port)], config)
        before = lab.receiver.arrivals()
        with lab.disturbed(loss=0.01, duplicate=0.01, reorder=0.02, seed=1) as way:
            for _ in range(HEAPS):
                sender.send_heap(group.get_heap(descriptors="none", data="all"))
        sender.send_heap(group.get_end())  # after the trouble, so that it surely arrives
        whole = sum(isinstance(heap, recv.Heap) for heap in receiver)
        journey = Journey.of(
            sender.stats.packets,
            receiver.stats,
            arrivals=lab.receiver.arrivals() - before,
            way=way.counts(),
        )
    print(f"{whole} of {HEAPS} heaps are whole")
    print(journey.check().text)


if __name__ == "__main__":
    try:
        main()
    except LabError as error:
        sys.exit(f"disturbed_way.py: {error}")

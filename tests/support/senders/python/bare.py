# SPDX-License-Identifier: BSD-3-Clause
"""Nothing wrong: a plain socket whose messages hold as many packets as fit."""

import socket

import numpy as np
from sending import HEAP_SIZE, PACKET_SIZE, connected, packets, parse

TOGETHER = 65507 // PACKET_SIZE

to = parse(library=False)
sock = connected(to)
sock.setsockopt(socket.IPPROTO_UDP, 103, PACKET_SIZE)  # UDP_SEGMENT
samples = np.zeros(HEAP_SIZE, np.uint8)
for i in range(to.heaps):
    samples.fill(i % 256)
    pieces = [piece for packet in packets(samples.data, i + 1) for piece in packet]
    for first in range(0, len(pieces), 2 * TOGETHER):
        sock.sendmsg(pieces[first : first + 2 * TOGETHER])

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Send datagrams around the limit of the MTU, and ask the lab's device what it saw."""

from spead_tutorial.lab import Lab

IPV4, UDP = 20, 8

with Lab() as lab, lab.socket() as sock:
    limit = lab.mtu - IPV4 - UDP
    for size in (limit - 1, limit, limit + 1):
        before = lab.counters()
        sock.sendto(bytes(size), (lab.address, lab.port))
        seen = lab.counters() - before
        print(f"{size}: {seen.packets} x IP, {seen.bytes} bytes")

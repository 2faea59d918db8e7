# SPDX-License-Identifier: BSD-3-Clause
"""What ``spead-tutorial recv`` says of two heaps, and of one packet less: ``lose``."""

import os
import socket
import subprocess
import sys

import numpy as np

from spead_tutorial import send
from spead_tutorial.measure.verify import make_group

PORT = 8888
# All of 127.0.0.0/8 is this machine: an address of one's own has no port that is in use.
pid = os.getpid()
host = f"127.1.{pid >> 8 & 255}.{pid & 255}"
command = [sys.executable, "-P", "-m", "spead_tutorial.tools.cli", "recv", "--buffer=100000"]
receiver = subprocess.Popen([*command, f"{host}:{PORT}"], stdout=subprocess.PIPE, text=True)
print(receiver.stdout.readline().replace(host, "127.0.0.1"), end="")

group = make_group(4000)
heaps = []
for i in range(2):
    group["timestamp"].value = 4000 * i
    group["adc_samples"].value = np.arange(4000).astype(np.int8)
    heaps.append(group.get_heap())
packets = [
    packet
    for i, heap in enumerate([*heaps, group.get_end()])
    for packet in send.PacketGenerator(heap, 1 + i, 1472)
]
if "lose" in sys.argv:
    del packets[-3]
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    for packet in packets:
        sock.sendto(packet, (host, PORT))

print(receiver.communicate()[0], end="")

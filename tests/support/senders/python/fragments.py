# SPDX-License-Identifier: BSD-3-Clause
"""Packets larger than the MTU, which the kernel cuts into IP fragments.

Mended, it sends those that fit with segmentation offload: without that, they are slower still.
"""

from sending import Sender

sender = Sender(packet_size=32000, offload=True)
sender.send(sender.filled)

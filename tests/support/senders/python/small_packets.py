# SPDX-License-Identifier: BSD-3-Clause
"""Packets for an MTU of 1500 bytes, far smaller than the device takes; mended, of 9000."""

from sending import Sender

sender = Sender(packet_size=1472)
sender.send(sender.filled)

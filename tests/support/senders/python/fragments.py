# SPDX-License-Identifier: BSD-3-Clause
"""Packets larger than the MTU: the kernel cuts each into IP fragments."""

from sending import Sender

sender = Sender(packet_size=32000)
sender.send(sender.filled)

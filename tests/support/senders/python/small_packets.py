# SPDX-License-Identifier: BSD-3-Clause
"""Packets far smaller than the device takes."""

from sending import Sender

sender = Sender(packet_size=1000)
sender.send(sender.filled)

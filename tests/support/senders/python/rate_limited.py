# SPDX-License-Identifier: BSD-3-Clause
"""A rate that was asked for, and forgotten: the stream waits for the clock."""

from sending import Sender

sender = Sender(rate=100e6)
sender.send(sender.filled)

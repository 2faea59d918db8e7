# SPDX-License-Identifier: BSD-3-Clause
"""Nothing wrong, but for what the library cannot do: spead2's wheel merges no packets."""

from sending import Sender

sender = Sender()
sender.send(sender.filled)

# SPDX-License-Identifier: BSD-3-Clause
"""Sleeping: a few milliseconds before each heap, in which nothing is sent."""

import time
from typing import Any

from sending import Sender

sender = Sender()


def filled_late(i: int) -> Any:
    """Sleep, then fill."""
    if not sender.mended:
        time.sleep(0.005)
    return sender.filled(i)


sender.send(filled_late)

# SPDX-License-Identifier: BSD-3-Clause
"""Two threads on one core: what fills the heaps and what sends them, though there are others."""

import os

from sending import Sender

core = min(os.sched_getaffinity(0))
sender = Sender(cores=(core,))
sender.library.ThreadPool.set_affinity(core)
sender.send(sender.filled)

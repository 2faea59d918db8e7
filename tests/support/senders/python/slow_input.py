# SPDX-License-Identifier: BSD-3-Clause
"""The data comes through a pipe, a few times in a second, from a process that is no child of this.

Mended, it comes at once.
"""

import os
import signal
import time

from sending import HEAP_SIZE, Plain

plain = Plain()
reading, writing = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.close(reading)
        while os.write(writing, bytes(HEAP_SIZE)):
            time.sleep(0 if plain.mended else 0.02)
    os._exit(0)
os.close(writing)
for i in range(plain.heaps):
    got = 0
    while got < HEAP_SIZE:
        got += os.readv(reading, [plain.samples[got:]])
    plain.send(i + 1)

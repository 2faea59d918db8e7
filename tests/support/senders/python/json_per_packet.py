# SPDX-License-Identifier: BSD-3-Clause
"""Numbers as JSON, made anew for each packet; mended, once."""

import json

import numpy as np
from sending import HEAP_SIZE, PAYLOAD, Plain

plain = Plain()
for i in range(plain.heaps):
    for at in range(0, HEAP_SIZE, PAYLOAD):
        if plain.mended and i > 0:
            break
        text = json.dumps([(i + k) / 7 for k in range(500)]).encode()
        piece = plain.samples[at : at + PAYLOAD]
        piece[:] = np.resize(np.frombuffer(text, np.uint8), len(piece))
    plain.send(i + 1)

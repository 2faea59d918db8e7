# SPDX-License-Identifier: BSD-3-Clause
"""A coroutine that sleeps after each heap; mended, it lets others run and goes on."""

import asyncio

from sending import Plain


async def send_all(plain: Plain) -> None:
    """Send all heaps."""
    for i in range(plain.heaps):
        plain.samples.fill(i % 256)
        plain.send(i + 1)
        await asyncio.sleep(0 if plain.mended else 0.01)


asyncio.run(send_all(Plain()))

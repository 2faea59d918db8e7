# SPDX-License-Identifier: BSD-3-Clause
"""A system call for each packet, as a plain socket makes it; mended, with segmentation offload."""

from sending import Plain

plain = Plain()
plain.offload(on=plain.mended)
for i in range(plain.heaps):
    plain.samples.fill(i % 256)
    plain.send(i + 1)

# SPDX-License-Identifier: BSD-3-Clause
"""What is in the heaps of the chapters."""

import numpy as np

from spead_tutorial.send import ItemGroup

__all__ = ["make_group"]


def make_group(heap_size: int) -> ItemGroup:
    """Make the two items of the chapters: ``timestamp``, and ``adc_samples``.

    Parameters
    ----------
    heap_size : int
        Bytes of samples in a heap.

    Returns
    -------
    ItemGroup
        Both items have values: zeros.
    """
    group = ItemGroup()
    group.add_item(
        0x1600, "timestamp", "Index of the first sample", shape=(), format=[("u", 40)], value=0
    )
    group.add_item(
        0x3300,
        "adc_samples",
        "Samples of the converter",
        shape=(heap_size,),
        dtype=np.int8,
        value=np.zeros(heap_size, np.int8),
    )
    return group

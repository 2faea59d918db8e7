# SPDX-License-Identifier: BSD-3-Clause
"""Heaps of which all has arrived."""

from spead_tutorial._core import HeapBase

__all__ = ["Heap"]


class Heap(HeapBase):
    """A heap of which all has arrived.

    Streams make them. It is given to `spead_tutorial.ItemGroup.update`, or asked for its items.

    Attributes
    ----------
    cnt : int
        Its heap count.
    flavour : Flavour
        Its flavour; ``bug_compat`` is the stream's.
    """

    __slots__ = ()

# SPDX-License-Identifier: BSD-3-Clause
"""Where the cells of a notebook send to: a lab, or loopback where there can be none."""

import atexit
import functools
import os

from spead_tutorial.lab import Lab, LabError, probe
from spead_tutorial.measure.place import Device, Place, Unread

__all__ = ["LOOPBACK", "close_place", "open_place"]

#: Whether to do without a lab: ``SPEAD_TUTORIAL_LOOPBACK=1``.
LOOPBACK = os.environ.get("SPEAD_TUTORIAL_LOOPBACK", "0") not in ("", "0")

_open: Place | None = None


def open_place(*, loopback: bool = LOOPBACK, receiver: bool = False) -> Place:
    """Open a lab for this notebook, and say in a line that it works.

    Where there can be none it says why and what to do about it, and the place is loopback. A
    kernel has one place: a second call closes the first. It is closed when the kernel ends.

    Parameters
    ----------
    loopback : bool
        Whether to do without a lab also where there can be one; the environment variable
        ``SPEAD_TUTORIAL_LOOPBACK=1`` asks for it too.
    receiver : bool
        Whether the lab is to have a second machine, which receives, where there can be one.
    """
    close_place()
    two = receiver and not loopback and "veth" in probe().kinds
    make_lab = functools.partial(Lab, receiver=True) if two else Lab
    lab = None
    try:
        lab = None if loopback else make_lab()
    except LabError as error:
        print(f"There is no lab here: {error}.")
        print("All that a lab needs is looked at by: spead-tutorial doctor")
    if lab is not None:
        where = "its second machine" if two else "dummy1"
        print(f"The lab is open: packets go to {where} and nowhere else.")
    else:
        print("The cells below send over loopback, and what they show is marked: it is slower")
        print("than a device that throws packets away, and others may use it meanwhile.")
    global _open
    _open = Unread() if lab is None else Device(lab, again=make_lab)
    return _open


@atexit.register
def close_place() -> None:
    """Close the place that is open; nothing happens where there is none."""
    global _open
    if _open is not None:
        _open.close()
        _open = None

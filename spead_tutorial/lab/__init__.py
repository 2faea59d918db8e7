# SPDX-License-Identifier: BSD-3-Clause
"""A private network in which to send as fast as one likes, without root and without a cable.

A `Lab` is a network namespace of its own with one device, ``dummy1``, that throws away and
counts what is sent into it. A helper process lives in there; the calling process stays
where it is, and gets sockets and running programs from it:

>>> with Lab() as lab:  # doctest: +SKIP
...     before = lab.counters()
...     with lab.socket() as sock:
...         sock.sendto(bytes(1000), (lab.address, lab.port))
...     print((lab.counters() - before).packets)
1

With ``Lab(receiver=True)`` a second machine is at the other end of the device: `Lab.receiver`
makes sockets and runs programs there, `Lab.disturbed` has packets lost on the way to it, and a
`Journey` says whether every one is accounted for. A `LabArray` has many machines, and a switch.

This module also has what keeps the laboratory honest: `check_destination` refuses to send
out of a real interface, and `accounted` compares what a device counted with what a program
says it sent.
Imports are relative here, so that the lab works without the compiled core, and is tested without.
"""

from .array import ArrayMachine, LabArray
from .counters import Accounting, Arrivals, Counters, Journey, accounted, icmp_error_bytes
from .device import ADDRESS, ADDRESS6, DEVICE, KINDS, PORT, WAYS, LabError, root_commands
from .disturbance import Disturbance, Disturbed
from .lab import Lab, LabProbe, probe, sink_path
from .machine import LabMachine, LabReceiver
from .process import LabProcess
from .route import check_destination

__all__ = [
    "ADDRESS",
    "ADDRESS6",
    "DEVICE",
    "KINDS",
    "PORT",
    "WAYS",
    "Accounting",
    "ArrayMachine",
    "Arrivals",
    "Counters",
    "Disturbance",
    "Disturbed",
    "Journey",
    "Lab",
    "LabArray",
    "LabError",
    "LabMachine",
    "LabProbe",
    "LabProcess",
    "LabReceiver",
    "accounted",
    "check_destination",
    "icmp_error_bytes",
    "probe",
    "root_commands",
    "sink_path",
]

# SPDX-License-Identifier: BSD-3-Clause
"""The planted senders have the faults that they are said to have, and no others.

What is counted here is counted by others than a diagnosis would ask: by the device and the
protocol, by a receiver on loopback, by strace, and by what the kernel says of a process that ended.
"""

from pathlib import Path

import pytest
from senders import FINDINGS, SENDERS, Planted

from spead_tutorial.lab import Lab

each = pytest.mark.parametrize("sender", SENDERS, ids=lambda sender: sender.name)


def test_every_fault_is_planted_in_every_language_that_can_have_it():
    names = [sender.name for sender in SENDERS]
    assert len(set(names)) == len(names)
    there = {(sender.language, finding) for sender in SENDERS for finding in sender.findings}
    languages = ("c", "python", "spead2")
    wanted = {(language, finding) for language in languages for finding in FINDINGS}
    # The wheel makes its calls for many messages, and nobody can stop it.
    assert there == wanted - {("spead2", "call-per-packet")}


@each
def test_a_planted_sender_ends_by_itself(sender: Planted, planted: Path, lab: Lab):
    argv = sender.argv(planted, lab.address, str(lab.port), 2)
    done = lab.run(argv, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")

# SPDX-License-Identifier: BSD-3-Clause
"""The peer's programs are ours, with spead2 in our package's place, but for what is listed.

What must differ is in ``peers.diff``, beside this file; where it does not fit, the test says what
it would have to be.
"""

import difflib
import re
from pathlib import Path

from support import ROOT
from support.programs import PEERS

LISTED = Path(__file__).with_name("peers.diff")


def differences(peer: Path) -> list[str]:
    """The lines in which a program and the peer's differ, of each place those of both."""
    ours = (ROOT / "spead_tutorial" / "chapters" / peer.name).read_text()
    ours = re.sub(r"\bspead_tutorial\b(?!\.chapters)", "spead2", ours)
    both = ours.splitlines(), peer.read_text().splitlines()
    # On which lines they are tells nothing.
    found = difflib.unified_diff(*both, n=0, lineterm="", fromfile=peer.name)
    return [re.sub("^@@.*", "@@", line) for line in found if not line.startswith("+++")]


def test_a_peers_program_is_ours_but_for_what_must_differ():
    found = [line for peer in PEERS for line in differences(peer)]
    assert found == LISTED.read_text().splitlines(), "\n".join(found)

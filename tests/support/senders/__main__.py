# SPDX-License-Identifier: BSD-3-Clause
"""Measure planted senders, or write down what is seen of them, from the folder of the tests.

``python -m support.senders rates|record [NAME ...]``: all, or those whose names have these words.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from spead_tutorial.lab import Lab
from spead_tutorial.tools.why.findings import diagnose
from spead_tutorial.tools.why.report import seen_of
from support.senders import FACTS, SENDERS, Planted, compile_sender
from support.senders.trying import diagnosis, facts, rates

ROUNDS = 3


def show_rates(sender: Planted, folder: Path) -> str:
    """Measure a sender and its mended twin."""
    if sender.kind is None:
        return "nothing to mend"
    with Lab() as lab:
        planted, mended = rates(lab, sender, folder, ROUNDS)
    return f"{planted / 1e6:.0f} MB/s, mended {mended / 1e6:.0f} MB/s"


def record(sender: Planted, folder: Path) -> str:
    """Write down what is seen of a sender, and say what that means."""
    seen = facts(diagnosis(sender, folder))
    FACTS.mkdir(exist_ok=True)
    sender.facts.write_text(json.dumps(seen, separators=(",", ":")) + "\n")
    return ", ".join(finding.kind for finding in diagnose(seen_of(seen))) or "nothing found"


def main() -> None:
    """Do what was asked for, of each sender in turn."""
    does = {"rates": show_rates, "record": record}[sys.argv[1]]
    for sender in SENDERS:
        if len(sys.argv) > 2 and not any(word in sender.name for word in sys.argv[2:]):
            continue
        if sender.lacking is not None:
            print(f"{sender.name}: {sender.lacking}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            compile_sender(sender, Path(folder))
            try:
                said = does(sender, Path(folder))
            except subprocess.CalledProcessError as error:
                said = error.stderr.strip()
            print(f"{sender.name}: {said}", flush=True)


main()

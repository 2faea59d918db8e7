#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write the numbers that ``spead-tutorial why`` says of gains: an installed package has no records.

    .venv/bin/python .ci/gains.py

For each kind of finding, ``gains.json`` has the step that mends it, in the words of the role that
pages have, and in words for people. This is to be run again when a step is added, or when records
are taken anew; a test compares what is written with the records.
"""

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT), str(ROOT / "docs" / "_ext")]  # behind the installed package

from measured import fact, gain_estimate  # noqa: E402

FILE = ROOT / "spead_tutorial" / "tools" / "why" / "gains.json"


def collected() -> dict[str, Any]:
    """Return what the file is to hold."""
    found: dict[str, Any] = json.loads(FILE.read_text())
    for gain in found["gains"].values():
        estimate = gain_estimate(gain["role"])
        gain |= {name: round(getattr(estimate, name), 3) for name in ("median", "low", "high")}
    return found | {"machine": fact("cpu").text}


if __name__ == "__main__":
    FILE.write_text(json.dumps(collected(), indent=2) + "\n", encoding="utf-8")

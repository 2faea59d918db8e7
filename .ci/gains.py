#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write what ``spead-tutorial why`` says of gains, as an installed package has no records.

    .venv/bin/python .ci/gains.py

It is to be run again when records are taken anew; a test compares what is written with the records.
"""

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT), str(ROOT / "docs" / "_ext")]  # behind the installed package

from measured import fact, gain_estimate  # noqa: E402

FILE = ROOT / "spead_tutorial" / "tools" / "why" / "gains.json"

#: For each kind of finding the step that mends it, in the words of the role that pages have, and in
#: words for people.
STEPS = {
    "slow-data": (
        "ladder c 1MiB tut_4_send_perf -> tut_4_send_constant",
        "C, heaps of 1 MiB, constant samples for random ones",
    ),
    "shared-core": (
        'tut-5 c 1MiB random tut_5_send_pipeline "one core" -> pinned',
        "C, heaps of 1 MiB, random samples, two cores for one",
    ),
    "small-packets": (
        "tut-6 c p1472 -> p9000",
        "C, heaps of 1 MiB, packets of 9000 bytes for 1472",
    ),
    "fragments": (
        "tut-6 c p16384 -> p9000",
        "C, heaps of 1 MiB, packets of 9000 bytes for 16384",
    ),
    "fresh-memory": (
        "tut-8 c 64MiB tut_8_send_heap_size -> tut_8_send_reuse_memory",
        "C, heaps of 64 MiB",
    ),
    "small-heaps": (
        "ladder python 8KiB tut_10_send_reuse_heaps -> tut_11_send_batch_heaps",
        "Python, heaps of 8 KiB",
    ),
}


def collected() -> dict[str, Any]:
    """Return what the file is to hold."""
    gains = {}
    for kind, (role, words) in STEPS.items():
        estimate = gain_estimate(role)
        found = {name: round(getattr(estimate, name), 3) for name in ("median", "low", "high")}
        gains[kind] = {"role": role, "words": words, **found}
    return {"machine": fact("cpu").text, "gains": gains}


if __name__ == "__main__":
    FILE.write_text(json.dumps(collected(), indent=2) + "\n", encoding="utf-8")

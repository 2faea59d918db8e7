"""The table of a committed record of times, as ``bench timing`` prints it."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench import timing  # noqa: E402 - it is no part of the package

print(timing.table(timing.read(ROOT / "bench" / "results" / f"{sys.argv[1]}.jsonl")))

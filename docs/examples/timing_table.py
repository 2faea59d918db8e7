"""The table of a committed record of times, as ``bench status`` prints it."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench import status  # noqa: E402 - it is no part of the package
from spead_tutorial.measure.records import read  # noqa: E402

print(status.tables(read(ROOT / "bench" / "results" / f"{sys.argv[1]}.jsonl")))

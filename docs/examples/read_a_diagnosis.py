# SPDX-License-Identifier: BSD-3-Clause
"""Read what ``spead-tutorial why --json`` has printed, and say what it means."""

import json
import sys
from pathlib import Path

from spead_tutorial.tools.why.findings import diagnose
from spead_tutorial.tools.why.report import seen_of, text


def main(path: Path) -> None:
    """Show a diagnosis as the command does."""
    seen = seen_of(json.loads(path.read_text()))
    print(text(seen, diagnose(seen)))


if __name__ == "__main__":
    stored = Path(__file__).with_name("diagnosis.json")
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else stored)

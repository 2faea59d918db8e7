# SPDX-License-Identifier: BSD-3-Clause
"""Draw every committed picture again from the committed records: ``python -m bench.figures``."""

import argparse
from pathlib import Path

from spead_tutorial import plots, records

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
FIGURES = ROOT / "docs" / "figures"

#: Picture, what draws it, and its record.
PICTURES = [("tut-ladder.svg", plots.ladder, "tour.jsonl")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, epilog="example: python -m bench.figures")
    parser.add_argument("-o", "--output", type=Path, default=FIGURES, help="folder to draw into")
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    for name, draw, record in PICTURES:
        for path in plots.save(output / name, draw, records.read(RESULTS / record)):
            print(path)


if __name__ == "__main__":
    main()

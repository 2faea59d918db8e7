#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Count habits that make sentences hard to read, and fail above what ``plain.toml`` allows.

    .venv/bin/python .ci/plain.py      # habits of which there are too many, and where
    .venv/bin/python .ci/plain.py -v   # where all of them are

Code in pages is not looked at.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

HABITS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["habit"]
_SOURCE = (".c", ".cpp", ".h", ".hpp", ".py", ".pyi", ".pyx", ".pxi")
#: Blocks of code, but for directives that hold text; code in a line; where links lead.
_CODE = re.compile(r"^(`{3,})(\{(?!code-cell))?.*?^\1$|`[^`\n]+`|\]\([^)]*\)", re.M | re.S)


def kind(path: str) -> str | None:
    """Return what a file is, or None if it is of no matter here."""
    if path.endswith(".md"):
        return "chapters" if path.startswith(("docs/tutorial/", "notebooks/")) else "pages"
    shown = path.startswith(("spead_tutorial/", "csrc/include/")) and path.endswith(_SOURCE)
    return "source" if shown else None


def _without_code(found: re.Match[str]) -> str:
    """Return what stands for code: a word, or as many lines, so that lines keep their numbers."""
    return found[0] if found[2] else "\n" * found[0].count("\n") or "x"


def habits() -> Iterator[tuple[str, str, str]]:
    """Yield the kind of each file that has a habit, what to do about it, and where it is."""
    listed = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True)
    for path in listed.splitlines():
        group = kind(path)
        if group is None or not (ROOT / path).exists():
            continue
        text = (ROOT / path).read_text()
        if group != "source":
            text = _CODE.sub(_without_code, text)
        for habit in HABITS:
            for found in re.finditer(habit["is"], text, re.I | re.M):
                line = text.count("\n", 0, found.start()) + 1
                yield group, habit["advice"], f"{path}:{line}: {' '.join(found[0].split())}"


def main() -> int:
    """Print what there is too much of."""
    where: dict[tuple[str, str], list[str]] = {}
    for group, advice, place in habits():
        where.setdefault((group, advice), []).append(place)
    failed = False
    for group in ("pages", "chapters", "source"):
        for habit in HABITS:
            advice, allowed = habit["advice"], habit["most"][group]
            places = where.get((group, advice), [])
            failed |= len(places) > allowed
            if len(places) > allowed or "-v" in sys.argv:
                print(f"{group}: {advice} ({len(places)} times, {allowed} allowed)")
                print(*(f"    {place}" for place in places), sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

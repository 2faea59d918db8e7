#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Count habits that make sentences hard to read, and fail above what ``MOST`` allows.

    .venv/bin/python .ci/plain.py      # habits of which there are too many, and where
    .venv/bin/python .ci/plain.py -v   # where all of them are

Code in pages is not looked at. When sentences were mended, lower the numbers in ``MOST``.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: What to do about a habit, and the habit.
HABITS = {
    "name who acts": r"\b(?:nobody|somebody|anybody|whoever|whatever)\b",
    "one relative clause for each sentence": r", which\b[^.;:|]*, which\b",
    "begin with the subject": r"(?:^|[.:] )What (?:counts|decides|matters|remains|is missing)\b",
    "give the number": r"\bso (?:many|much)\b",
    "use the verb": r"\bthe (?:looking|waiting|handing over)\b",
    "leave out what is not known": r"\b(?:does not tell why|says nothing of|nobody knows)\b",
    "write 'next to' or 'compared with'": r"\bbeside\b",
    "leave out 'too', or write 'also'": r"\b(?:too|as well)(?=[.,;:)])",
}
_ANY = {advice: re.compile(habit, re.I | re.M) for advice, habit in HABITS.items()}

#: How often each habit may be there, in the order above, by the kind of file.
MOST = {
    # "Measured beside it" is a heading to which others link.
    "pages": (0, 0, 0, 0, 0, 0, 1, 0),
    "chapters": (2, 0, 0, 0, 0, 0, 0, 0),
    "source": (16, 0, 1, 3, 0, 0, 45, 6),  # in drawings, things are beside others
}
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
        for advice, habit in _ANY.items():
            for found in habit.finditer(text):
                line = text.count("\n", 0, found.start()) + 1
                yield group, advice, f"{path}:{line}: {' '.join(found[0].split())}"


def main() -> int:
    """Print what there is too much of."""
    where: dict[tuple[str, str], list[str]] = {}
    for group, advice, place in habits():
        where.setdefault((group, advice), []).append(place)
    failed = False
    for group, most in MOST.items():
        for advice, allowed in zip(HABITS, most, strict=True):
            places = where.get((group, advice), [])
            failed |= len(places) > allowed
            if len(places) > allowed or "-v" in sys.argv:
                print(f"{group}: {advice} ({len(places)} times, {allowed} allowed)")
                print(*(f"    {place}" for place in places), sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

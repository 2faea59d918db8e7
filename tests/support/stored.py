# SPDX-License-Identifier: BSD-3-Clause
"""What keeps a stored notebook from being believed."""

import itertools
import re
from collections.abc import Iterator
from typing import Any

_PAIR = "md:myst,ipynb"
_IGNORED = "nbval-ignore-output"
_MEASURING = re.compile(r"\b(measure|watch)\(")


def complaints(written: Any, stored: Any) -> Iterator[str]:
    """Say what is wrong with a notebook that is stored, beside its source."""
    yield from _differences(written, stored)
    yield from _unexecuted(stored)
    yield from unchecked(stored)


def _differences(written: Any, stored: Any) -> Iterator[str]:
    """Say where the source and what is stored are not the same notebook, or not a pair."""
    for one, what in ((written, "source"), (stored, "stored notebook")):
        if one.metadata.get("jupytext", {}).get("formats") != _PAIR:
            yield f"the {what} says nothing of the pair: its header needs formats: {_PAIR}"
    if written.metadata.get("card") != stored.metadata.get("card"):
        yield "its card is not what the source has: make notebooks-refresh"
    both = (
        [(cell.cell_type, cell.source, cell.metadata.get("tags", [])) for cell in one.cells]
        for one in (written, stored)
    )
    for where, (mine, theirs) in enumerate(itertools.zip_longest(*both)):
        if mine != theirs:
            yield f"cell {where} is not what the source has: make notebooks-refresh"


def _unexecuted(notebook: Any) -> Iterator[str]:
    """Say which cells have no outputs of a run, or those of one that failed."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for n, cell in enumerate(code, 1):
        if cell.execution_count != n:
            yield f"code cell {n} has not been run in its turn: make notebooks-refresh"
        for output in cell.outputs:
            if output.output_type == "error":
                yield f"code cell {n} failed: {output.ename}"
            told = output.get("metadata", {})
            for kind in output.get("data", {}):
                if kind.startswith("image/") and not told.get(kind, {}).get("alt"):
                    yield f"code cell {n} shows a picture without words: use notebook.picture"
            if output.output_type == "stream" and output.name == "stderr":
                yield f"code cell {n} wrote to stderr: {output.text[:60]!r}"


def unchecked(notebook: Any) -> Iterator[str]:
    """Say which cells measure something that no cell before the next of these makes sure of."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    measuring = [i for i, cell in enumerate(code) if _MEASURING.search(cell.source)]
    for begin, end in itertools.pairwise([*measuring, len(code)]):
        followers = code[begin + 1 : end]
        if not any(re.search(r"(?m)^\s*assert\b", cell.source) for cell in followers):
            yield f"code cell {begin} measures, but no cell after it asserts something"
        if _IGNORED not in code[begin].metadata.get("tags", []):
            yield f"code cell {begin} measures, but has no tag {_IGNORED}"

# SPDX-License-Identifier: BSD-3-Clause
"""Keeps the notebooks: ``notebooks.py refresh`` or ``html FOLDER``.

One writes ``notebooks/NAME.md``. From it ``refresh`` makes ``NAME.ipynb``, which has the outputs
of a run on this machine too, and shows what has changed.
"""

import argparse
import functools
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import nbdime
import nbdime.prettyprint
import nbformat

from spead_tutorial.tools import notebooks

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / notebooks.FOLDER
#: Folders of somebody's machine, and who is where, as prompts have it.
PRIVATE = re.compile(
    r"(?<![\w.])/(?:home|root|tmp|work|usr|opt|Users|var)/[\w.-]+|\w[\w.-]*@\w[\w.-]*"
)
_LONG = 2000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_subparsers(dest="what", required=True)
    refresh_parser = what.add_parser("refresh", help="run notebooks, and store what they give")
    refresh_parser.add_argument("names", nargs="*", metavar="NAME", help="which; all by default")
    html_parser = what.add_parser("html", help="run all notebooks quickly, and write them as pages")
    html_parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    if given.what == "refresh":
        return refresh([Path(name).stem for name in given.names])
    return html(given.folder)


# ---- Refreshing ----


def refresh(names: Sequence[str]) -> int:
    """Run notebooks as their sources are, store them, and show what has changed."""
    failed = []
    there = notebooks.names(FOLDER)
    wanted = [FOLDER / f"{name}.md" for name in there if not names or name in names]
    if set(names) - set(there):
        sys.exit(f"there are these notebooks: {', '.join(there)}")
    for source in wanted:
        print(f"running {source.stem}", flush=True)
        notebook, began = notebooks.read(source), time.monotonic()
        try:
            notebooks.execute(notebook, FOLDER, quick=False)
        except notebooks.FailedError as error:
            print(f"{source.stem}: {error}", file=sys.stderr)
            failed.append(source.stem)
            continue
        seconds = round(time.monotonic() - began)
        notebook.metadata[notebooks.METADATA] = {"seconds": seconds}  # for the site
        clean(notebook)
        if wrong := [*private(notebook)]:
            print(f"{source.stem}: it is not stored, as {'; '.join(wrong)}", file=sys.stderr)
            failed.append(source.stem)
            continue
        target = source.with_suffix(".ipynb")
        before = nbformat.read(target, 4) if target.exists() else None
        nbformat.validate(notebook)
        nbformat.write(notebook, target)
        print(f"stored {target.name} after {seconds} s", flush=True)
        if before is not None:
            show_changes(before, notebook, target.name)
    return 1 if failed else 0


def clean(notebook: Any) -> None:
    """Take out of a notebook what says when and with which version it ran."""
    notebook.metadata["language_info"] = {"name": "python", "file_extension": ".py"}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        cell.metadata.pop("collapsed", None)


def show_changes(before: Any, after: Any, name: str) -> None:
    """Show what has changed, pictures and tables of numbers only by their size."""
    old, new = (nbformat.from_dict(json.loads(json.dumps(one))) for one in (before, after))
    for cell in [*old.cells, *new.cells]:
        for output in cell.get("outputs", ()):
            for kind, data in output.get("data", {}).items():
                if len(data) > _LONG:
                    output["data"][kind] = f"<{kind}>"
    found = nbdime.diff_notebooks(old, new)
    if not found:
        print("nothing has changed but numbers in pictures")
        return
    config = nbdime.prettyprint.PrettyPrintConfig(use_color=sys.stdout.isatty())
    config.id = config.details = False
    nbdime.prettyprint.pretty_print_diff(old, found, "", config)
    print(f"these are the changes of {name}", flush=True)


# ---- What tells of somebody ----


def private(notebook: Any) -> Iterator[str]:
    """Say where the outputs tell who ran them, or where that machine keeps its files."""
    for i, cell in enumerate(notebook.cells):
        for text in texts(cell):
            found = PRIVATE.search(text)
            if found:
                yield f"cell {i} has {found[0]!r} in its output"
                break


def texts(cell: Any) -> Iterator[str]:
    """Yield all that a reader sees of a cell's outputs."""
    for output in cell.get("outputs", ()):
        yield output.get("text", "")
        for kind, data in output.get("data", {}).items():
            if kind != "image/png":  # its text is no words, but may look like any
                yield data if isinstance(data, str) else json.dumps(data)


# ---- As pages ----


def html(folder: Path) -> int:
    """Run all notebooks, measuring less, and write them as pages."""
    say = functools.partial(print, flush=True)
    for failure in (failures := notebooks.write_pages(FOLDER, folder, say, quick=True)):
        print(failure)
    print(f"The notebooks, as they ran here: {folder / notebooks.START}.html")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

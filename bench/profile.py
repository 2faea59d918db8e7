# SPDX-License-Identifier: BSD-3-Clause
"""The stacks of a chapter's program, as it sends in a lab, in a file that speedscope shows."""

import shutil
import sys
from pathlib import Path

import click

from bench import stacks
from bench.peers import TIMEOUT_S
from spead_tutorial.chapters.catalogue import LANGUAGES, Chapter, find_chapter
from spead_tutorial.lab import Lab
from spead_tutorial.measure.case import Case, Step, take
from spead_tutorial.measure.place import Device, Place
from spead_tutorial.measure.programs import ProgramError, command, finish
from spead_tutorial.measure.records import OURS
from spead_tutorial.tools.options import Number, parsed

__all__ = ["profile"]

RESULTS = Path("results", "profile")
_SECONDS = 3.0
_TOOLS = ("perf", "py-spy")
#: py-spy stops the program for each look, and each of its stacks takes it a while.
_PY_SPY_LOOKS_PER_S = 250


def _py_spy() -> str | None:
    """Find py-spy, beside this Python before anywhere else."""
    installed = shutil.which("py-spy", path=str(Path(sys.executable).parent))
    return installed or shutil.which("py-spy")


def tool_for(language: str, wanted: str | None) -> str:
    """Choose what looks: py-spy sees lines of Python, perf the kernel and the stream's thread."""
    if wanted == "py-spy" and language != "python":
        raise ProgramError("py-spy sees programs in Python alone: take perf")
    if wanted != "perf" and language == "python" and _py_spy() is not None:
        return "py-spy"
    if wanted == "py-spy":
        raise ProgramError("py-spy is missing: pip install 'spead-tutorial[profile]'")
    try:
        stacks.require_perf()
    except stacks.StackError as error:
        more = "; or pip install 'spead-tutorial[profile]'" if language == "python" else ""
        raise ProgramError(f"{error}{more}") from None
    return "perf"


def _profile(case: Case, seconds: float, tool: str, path: Path) -> None:
    """Run a program for about so long, and write what was seen."""
    look = _with_py_spy if tool == "py-spy" else _with_perf
    with Lab() as lab:
        place = Device(lab)
        first = take(place, Step(0, True, case), 1 + (64 << 20) // case.heap_size)
        if first.rate is None:
            raise ProgramError(first.failure or "it told no rate")
        look(place, case, 2 + round(first.rate * seconds / case.heap_size), path)


def _with_py_spy(place: Place, case: Case, heaps: int, path: Path) -> None:
    chapter = find_chapter(case.program)
    looks = ["--native", "--threads", "-r", str(_PY_SPY_LOOKS_PER_S)]
    options = ["-f", "speedscope", *looks, "-o", str(path)]
    place = place.fitting(chapter.takes_destination)
    with place.watching() as watched:
        to = watched.destination if chapter.takes_destination else None
        program = command(chapter, case.language, case.options(heaps), to)
        argv = [str(_py_spy()), "record", *options, "--", *program]
        done = finish(place.run, "py-spy", argv, TIMEOUT_S)
    if done.status != 0:
        raise ProgramError(done.complaint)


def _with_perf(place: Place, case: Case, heaps: int, path: Path) -> None:
    seen = path.with_suffix(".data")
    try:
        sample = stacks.sample(place, Step(0, False, case), heaps, seen)
        if sample.failure is not None:
            raise ProgramError(sample.failure)
        stacks.write(seen, path)
    finally:
        seen.unlink(missing_ok=True)


@click.command()
@click.argument("chapter", type=parsed(find_chapter))
@click.option("--lang", "language", type=click.Choice(LANGUAGES), default="python",
              show_default=True, help="Of the program.")  # fmt: skip
@click.option("-H", "heap_size", type=click.IntRange(1), default=8192, show_default=True,
              metavar="BYTES", help="Of samples in a heap.")  # fmt: skip
@click.option("--tool", type=click.Choice(_TOOLS),
              help="What looks: py-spy for Python, where it is there, else perf.")  # fmt: skip
@click.option("--seconds", type=Number(0, min_open=True), default=_SECONDS,
              show_default=True, help="How long to look.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path), default=RESULTS,
              show_default=True, help="Folder for the file.")  # fmt: skip
def profile(
    chapter: Chapter,
    language: str,
    heap_size: int,
    tool: str | None,
    seconds: float,
    output: Path,
) -> int:
    """Write down the stacks of a CHAPTER's program: which functions take its time.

    py-spy shows lines of Python; perf shows the kernel, and the stream's thread. Open the file in
    https://www.speedscope.app, which draws a flame graph of it in the browser.

    Example: python -m bench profile 10 --lang c
    """
    chosen = tool_for(language, tool)
    output.mkdir(parents=True, exist_ok=True)
    end = "speedscope.json" if chosen == "py-spy" else "perf.txt"
    path = output / f"{chapter.name}-{language}.{end}"
    _profile(Case(OURS, language, chapter.name, heap_size), seconds, chosen, path)
    click.echo(path)
    return 0

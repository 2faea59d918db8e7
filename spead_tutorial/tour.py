# SPDX-License-Identifier: BSD-3-Clause
"""The tour: every chapter in both languages, what each of them gained, and the proof.

All chapters are run at common settings, so that their gains can be chained: heaps of 1 MiB
for all, and of 8 KiB for those whose gain is with small heaps. Samples are taken in rounds,
in each of which all cases come in a random order.
"""

import contextlib
import dataclasses
import datetime
import importlib.util
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from spead_tutorial import doctor, notebook_run, plots
from spead_tutorial.catalogue import LANGUAGES, Chapter, find_chapter
from spead_tutorial.lab import Lab, LabError
from spead_tutorial.programs import Options, Result, run_loopback, run_program, sample
from spead_tutorial.records import Header, Recording, Sample, Writer, locked, read
from spead_tutorial.stats import median

__all__ = ["SIZES", "Case", "Plan", "Row", "plan", "rows", "table", "tour"]

SIZES = ("quick", "full", "tiny")
RECORDS = "tour.jsonl"
_PAGES, _SITE = "notebooks", "site"
_SITE_SOURCE = Path("docs")
_SEED = 20
_TIMEOUT_S = 300.0
_ROUNDS_FOR_A_CLAIM = 9
_FIRST = 2
_MIB, _KIB = 1 << 20, 1 << 10


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """One program at one setting.

    Parameters
    ----------
    chapter : Chapter
        Whose program.
    language : str
        Which of the two.
    heap_size : int
        Bytes of samples in a heap.
    heaps : int
        How many.
    random : bool
        Whether the samples are random where the chapter has the choice.
    """

    chapter: Chapter
    language: str
    heap_size: int
    heaps: int
    random: bool = False

    @property
    def name(self) -> str:
        """What a record calls it, such as ``"5-random/1048576/c"``."""
        variant = "-random" if self.random else ""
        return f"{self.chapter.number}{variant}/{self.heap_size}/{self.language}"

    def options(self, share: int = 1) -> Options:
        """Return what to tell the program, for one `share`-th of its heaps."""
        accepted = self.chapter.accepted
        return Options(
            heaps=max(1, self.heaps // share) if "n" in accepted else None,
            heap_size=self.heap_size if "H" in accepted else None,
            random=self.random,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What a tour does: its cases, and how many rounds of them."""

    size: str
    cases: tuple[Case, ...]
    rounds: int


def plan(size: str) -> Plan:
    """Return the plan of a size: ``"quick"``, ``"full"`` or ``"tiny"`` (for tests)."""
    rounds, factor = {"quick": (3, 1.0), "full": (9, 5.0), "tiny": (2, 1 / 512)}[size]
    # Chapter, random samples, heap size, MiB to send in a sample of the quick tour: about as
    # much as takes half a second.
    points = (
        (2, False, _MIB, 10),
        (4, False, _MIB, 64),
        (5, True, _MIB, 64),
        (5, False, _MIB, 4096),
        (6, False, _MIB, 4096),
        (8, False, _MIB, 4096),
        (10, False, _MIB, 4096),
        (11, False, _MIB, 4096),
        (8, False, 8 * _KIB, 512),
        (10, False, 8 * _KIB, 4096),
        (11, False, 8 * _KIB, 4096),
    )
    cases = tuple(
        Case(
            find_chapter(str(number)),
            language,
            heap_size,
            max(2, int(mebibytes * factor) * _MIB // heap_size),
            with_random,
        )
        for number, with_random, heap_size, mebibytes in points
        for language in LANGUAGES
    )
    return Plan(size, cases, rounds)


def tour(
    size: str,
    output: Path,
    *,
    loopback: bool = False,
    notebooks: bool = True,
    site: bool = True,
) -> int:
    """Do the tour, show its table, and return the exit status.

    Parameters
    ----------
    size : str
        One of `SIZES`.
    output : path
        Folder for the records and the pictures; it is made where it is missing.
    loopback : bool
        Whether to do without a lab. That is also what happens where there can be none.
    notebooks : bool
        Whether to run the notebooks too, where they are: in the repository.
    site : bool
        Whether to build the site too, where its source is: in the repository.

    Raises
    ------
    RecordError
        Where another run writes to that folder.
    """
    with locked(output):
        return _tour(plan(size), output, loopback, notebooks, site)


def _tour(what: Plan, output: Path, loopback: bool, notebooks: bool, site: bool) -> int:
    with contextlib.ExitStack() as stack:
        lab = None if loopback else _lab(stack)
        recording = _measure(lab, what, output / RECORDS)
    found = rows(recording)
    click.echo()
    click.echo(table(found, recording))
    pictures = _draw(recording, output)
    pages = _run_notebooks(output, loopback) if notebooks else []
    index = [output / _PAGES / "index.html"] if pages else []
    built, problem = _build_site(output / _SITE) if site else ([], None)
    _say_what_next(output, [*pictures, *index, *built])
    failures = {row.failure for row in found if row.failure is not None}
    failures |= {problem} if problem is not None else set()
    failures |= {page.failure for page in pages if page.failure is not None}
    for failure in sorted(failures):
        click.echo(f"spead-tutorial: {failure}", err=True)
    return 1 if failures else 0


def _lab(stack: contextlib.ExitStack) -> Lab | None:
    try:
        return stack.enter_context(Lab())
    except LabError as error:
        click.echo(f"No lab: {error}.")
        click.echo("The tour goes on over loopback, with a receiver: rates are not the lab's.")
        return None


# ---------------------------------------------------------------------------------------
# Measuring


def _measure(lab: Lab | None, what: Plan, path: Path) -> Recording:
    """Take all samples, and put the file in its place when it is whole."""
    unfinished = path.with_suffix(".part")
    try:
        with Writer(unfinished, _header(lab, what)) as writer:
            for number, case, warm_up in _schedule(what):
                result = _run(lab, case, share=8 if warm_up else 1)
                writer.add(sample(result, case=case.name, number=number, warm_up=warm_up))
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    return read(path)


def _header(lab: Lab | None, what: Plan) -> Header:
    place = {"kind": "loopback, no lab", "mtu": 65536} if lab is None else lab.facts()
    return Header(
        experiment="tour",
        time=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        machine=doctor.machine_facts(),
        lab=place,
        settings={"size": what.size, "rounds": what.rounds, "seed": _SEED},
        versions=doctor.versions(),
        revision=doctor.revision(),
    )


def _schedule(what: Plan) -> Iterator[tuple[int, Case, bool]]:
    """Yield round, case and whether it is a warm-up, and show how far it has come."""
    order = random.Random(_SEED)
    steps: list[tuple[int, Case, bool]] = []
    for number in range(-1, what.rounds):
        cases = list(what.cases)
        order.shuffle(cases)
        steps += [(max(0, number), case, number < 0) for case in cases]
    if not os.isatty(1):
        yield from _with_lines(steps, what.rounds)
        return
    with click.progressbar(
        steps, label="Running", item_show_func=lambda step: step[1].name if step else None
    ) as bar:
        yield from bar


def _with_lines(
    steps: Sequence[tuple[int, Case, bool]], rounds: int
) -> Iterator[tuple[int, Case, bool]]:
    """Yield the steps, with one line for each round."""
    shown = None
    for number, case, warm_up in steps:
        if (number, warm_up) != shown:
            shown = (number, warm_up)
            click.echo("warming up" if warm_up else f"round {number + 1} of {rounds}")
        yield number, case, warm_up


def _run(lab: Lab | None, case: Case, share: int) -> Result:
    options = case.options(share)
    if lab is None:
        return run_loopback(case.chapter, case.language, options, timeout=_TIMEOUT_S)
    return run_program(lab, case.chapter, case.language, options, timeout=_TIMEOUT_S)


# ---------------------------------------------------------------------------------------
# Showing


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """A line of the table: a case, and what all its samples came to.

    Parameters
    ----------
    chapter : Chapter
        Whose program it was.
    language : str
        Which of the two.
    heap_size : int
        Bytes of samples in a heap.
    random : bool
        Whether samples were random in a chapter that has the choice.
    rate : float or None
        Median, payload bytes/s; None with a failure.
    claimed, counted : int or None
        Packets that a run claims and that the device counted, in the last of them.
    calls_per_heap, cpu_s_per_gb : float or None
        Median calls to send for each heap, and CPU seconds for each 10⁹ bytes of payload.
    failure : str or None
        Why it has no rate.
    """

    chapter: Chapter
    language: str
    heap_size: int
    random: bool
    rate: float | None
    claimed: int | None
    counted: int | None
    calls_per_heap: float | None
    cpu_s_per_gb: float | None
    failure: str | None


def rows(recording: Recording) -> list[Row]:
    """Sum a recording up, a row for each case, in the order of the chapters."""
    cases: dict[str, list[Sample]] = {}
    for one in recording.samples:
        cases.setdefault(one.case, []).append(one)
    found = [_row(samples) for samples in cases.values()]
    return sorted(found, key=_place)


def _place(row: Row) -> tuple[bool, int, bool, bool]:
    return row.heap_size < _MIB, row.chapter.number, not row.random, row.language == "c"


def _row(samples: Sequence[Sample]) -> Row:
    """Make the row of a case; a failure in one of its runs, the warm-up too, fails it."""
    last = samples[-1]
    failure = next((one.failure for one in samples if one.failure is not None), None)
    counted = [one for one in samples if not one.warm_up and one.rate is not None]
    good = failure is None and counted
    return Row(
        chapter=find_chapter(last.program),
        language=last.language,
        heap_size=last.heap_size,
        random=last.random,
        rate=median([one.rate or 0.0 for one in counted]).median if good else None,
        claimed=last.packets,
        counted=last.counted_packets,
        calls_per_heap=median([_calls(one) for one in counted]).median if good else None,
        cpu_s_per_gb=median([_cpu(one) for one in counted]).median if good else None,
        failure=failure,
    )


def _calls(one: Sample) -> float:
    return (one.send_calls or 0) / one.heaps


def _cpu(one: Sample) -> float:
    return ((one.cpu_user_ns or 0) + (one.cpu_system_ns or 0)) / (one.payload_bytes or 1)


def table(found: Sequence[Row], recording: Recording) -> str:
    """Write the rows as a table for people."""
    lines = [
        f"{'chapter':36} {'heap':>6}  {'':6} {'MB/s':>9}  {'claimed':>8} {'counted':>8}  "
        f"{'calls/heap':>10} {'CPU s/GB':>8}"
    ]
    size = None
    for row in found:
        if size is not None and row.heap_size != size:
            lines.append("")
        size = row.heap_size
        lines.append(_line(row))
    return "\n".join([*lines, "", *_legend(recording)])


def _line(row: Row) -> str:
    title = f"{row.chapter.number:>2} {row.chapter.title}{_variant(row)}"
    mark = "✓" if row.failure is None else "✗"
    rate, calls, cpu = (
        "—" if value is None else text
        for value, text in (
            (row.rate, f"{(row.rate or 0) / 1e6:.1f}"),
            (row.calls_per_heap, f"{row.calls_per_heap or 0:.3f}"),
            (row.cpu_s_per_gb, f"{row.cpu_s_per_gb or 0:.2f}"),
        )
    )
    claimed, counted = ("—" if n is None else str(n) for n in (row.claimed, row.counted))
    language = {"python": "Python", "c": "C"}[row.language]
    what = f"{title:36} {_bytes(row.heap_size):>6}  {language:6} {rate:>9}"
    return f"{what}  {claimed:>8} {counted:>8} {mark}{calls:>10} {cpu:>8}"


def _variant(row: Row) -> str:
    if not row.chapter.then:
        return ""
    return "" if row.random else ", with a fill"


def _bytes(n: int) -> str:
    return f"{n >> 20} MiB" if n >= _MIB else f"{n >> 10} KiB"


def _legend(recording: Recording) -> list[str]:
    header = recording.header
    rounds = header.settings["rounds"]
    where = f"{header.lab['kind']}, MTU {header.lab['mtu']}"
    lines = [
        f"MB/s: 10⁶ bytes of samples a second, median of {rounds} rounds. Sent to: {where}.",
        "claimed: packets that the last run says it sent. ✓: none failed, and in every run the"
        " counters bear it out.",
    ]
    if rounds < _ROUNDS_FOR_A_CLAIM:
        lines.append(
            f"Fewer than {_ROUNDS_FOR_A_CLAIM} rounds: a difference of some percent may be chance"
            " (--full has more)."
        )
    if any(one.chapter == _FIRST for one in recording.samples):
        lines.append(
            f"Chapter {_FIRST} sends to loopback, at most 100 MB/s, and its time is that of the"
            " whole program."
        )
    if "no lab" in header.lab["kind"]:
        return [*lines, "counted: packets that the receiver got, or had no room for."]
    return [*lines, "counted: by the device, to which a message with several packets is one."]


def _draw(recording: Recording, output: Path) -> list[Path]:
    try:
        return plots.save(output / "tut-ladder.svg", plots.ladder, recording)
    except plots.MissingError as error:
        click.echo(f"\nNo pictures: {error}.")
        return []


def _run_notebooks(output: Path, loopback: bool) -> list[notebook_run.Page]:
    """Run the notebooks of this folder, and write them as pages; say why where it is not done."""
    folder = Path(notebook_run.FOLDER)
    click.echo()
    try:
        return notebook_run.write_pages(
            folder, output / _PAGES, click.echo, quick=True, loopback=loopback
        )
    except notebook_run.MissingError as error:
        click.echo(f"No notebooks: {error}.")
        return []


def _build_site(target: Path) -> tuple[list[Path], str | None]:
    """Build the site of this folder; return its first page, and what went wrong."""
    click.echo()
    if not (_SITE_SOURCE / "conf.py").is_file():
        click.echo(f"No site: there is no folder {_SITE_SOURCE} with it here.")
        return [], None
    if importlib.util.find_spec("sphinx") is None:
        click.echo("No site: Sphinx is not installed: pip install 'spead-tutorial[docs]'.")
        return [], None
    click.echo("building the site, with the reference machine's records")
    trees = target.with_name(f"{target.name}-doctrees")
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "-d"]
    command += [str(path) for path in (trees, _SITE_SOURCE, target)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return [], f"the site could not be built: {lines[-1]}"
    return [target / "index.html"], None


def _say_what_next(output: Path, pictures: Sequence[Path]) -> None:
    click.echo("\nLook at")
    for path in pictures:
        click.echo(f"  {path}")
    click.echo(f"  {output / RECORDS}")
    click.echo("and try")
    click.echo("  spead-tutorial run 10 --lang c -n 524288 -H 8192")
    click.echo("  spead-tutorial chapters")

# SPDX-License-Identifier: BSD-3-Clause
"""Measuring: the place that cells send to, programs that are run there in rounds, and records."""

import atexit
import contextlib
import dataclasses
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from spead_tutorial.chapters.catalogue import LANGUAGES, Chapter, find_chapter
from spead_tutorial.lab import Lab, LabError, probe
from spead_tutorial.measure.case import Case, Step, take
from spead_tutorial.measure.machine import header as make_header
from spead_tutorial.measure.place import LISTENERS, Device, Place, Unread
from spead_tutorial.measure.programs import ProgramError, ProgramOptions
from spead_tutorial.measure.records import OURS, Recording, Sample, Timeline, anonymous, words_of
from spead_tutorial.measure.rounds import measure as measure_rounds
from spead_tutorial.measure.rounds import schedule
from spead_tutorial.measure.timeline import record as record_timeline
from spead_tutorial.notebook.turns import turn

__all__ = [
    "LOOPBACK",
    "QUICK",
    "ROUNDS",
    "NotebookError",
    "Run",
    "StoppedError",
    "close_place",
    "heaps",
    "live",
    "measure",
    "open_place",
    "record",
    "watch",
]

#: Whether to measure less, so that all notebooks are done in minutes: ``SPEAD_TUTORIAL_QUICK=1``.
QUICK = os.environ.get("SPEAD_TUTORIAL_QUICK", "0") not in ("", "0")
#: Whether to do without a lab: ``SPEAD_TUTORIAL_LOOPBACK=1``.
LOOPBACK = os.environ.get("SPEAD_TUTORIAL_LOOPBACK", "0") not in ("", "0")
#: How many rounds are measured where a cell does not say otherwise.
ROUNDS = 2 if QUICK else 3

_QUICK_SHARE = 8
_TIMEOUT_S = 100.0
_SEED = 7
_VARIANTS = {"none": "no listener", "slow": "slow listener", "fast": "listener"}

_open: Place | None = None
#: The samples of the measurement that was stopped last, by what it was to measure, and how often.
_kept: dict[tuple[tuple[Case, ...], int, str], list[Sample]] = {}


class NotebookError(RuntimeError):
    """A cell could not do what it was to do; the text says what, in one line."""

    def _render_traceback_(self) -> list[str]:
        """Give IPython the line alone: how it came about inside of here helps no reader."""
        return [f"{type(self).__name__}: {self}"]


class StoppedError(NotebookError):
    """A measurement was interrupted; the text says what of it is kept."""

    def _render_traceback_(self) -> list[str]:
        """Give IPython the line alone: the reader has asked for this, so it is no failure."""
        return [str(self)]


# ---- The place ----


def open_place(*, loopback: bool = LOOPBACK, receiver: bool = False) -> Place:
    """Open a lab for this notebook, and say in a line that it works.

    Where there can be none it says why and what to do about it, and the place is loopback; so it is
    if `loopback` asks for it. With a `receiver`, the lab has a second machine if there can be one.
    A kernel has one place: a second call closes the first. It is closed when the kernel ends.
    """
    close_place()
    two = receiver and not loopback and "veth" in probe().kinds
    lab = None
    try:
        lab = None if loopback else Lab(receiver=two)
    except LabError as error:
        print(f"There is no lab here: {error.summary}.")
        print("All that a lab needs is looked at by: spead-tutorial doctor")
    if lab is not None:
        where = "its second machine" if two else "dummy1"
        print(f"The lab is open: packets go to {where} and nowhere else.")
    else:
        print("The cells below send over loopback, and what they show is marked: it is slower")
        print("than a device that throws packets away, and others may use it meanwhile.")
    global _open
    _open = Unread() if lab is None else Device(lab)
    return _open


@atexit.register
def close_place() -> None:
    """Close the place that is open; nothing happens where there is none."""
    global _open
    if _open is not None:
        _open.close()
        _open = None


# ---- Runs ----


def heaps(n: int) -> int:
    """Return how many heaps to send: `n`, or an eighth of it, at least 2, in quick mode."""
    return max(2, n // _QUICK_SHARE) if QUICK else n


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """A program, and what to tell it."""

    #: A chapter's number, or the name of a program: ``"10"``, ``"tut_10_send_more_heaps"``.
    chapter: str
    language: str = "python"  #: ``"python"``, ``"c"`` or ``"cpp"``.
    #: How many heaps to send; `heaps` makes it less in quick mode. By default the program's own
    #: number, even less in quick mode.
    heaps: int | None = None
    heap_size: int | None = None  #: Bytes of samples in a heap.
    packet_size: int | None = None  #: Bytes in a packet at most, UDP and IP not counted.
    random: bool = False  #: Random samples instead of a fill.
    #: ``"none"``, ``"fast"`` or ``"slow"``: send over loopback, without a listener, to one that
    #: reads as fast as it can, or to one that is slow. By default to the lab's device.
    listener: str | None = None
    #: What the program's environment has besides the kernel's.
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)
    #: What tables and pictures call it, where the environment makes a difference. Words that are
    #: options of the program are given to it, as ``"copy, fill"`` is. With a listener it is ``"no
    #: listener"``, ``"listener"`` or ``"slow listener"``.
    variant: str = ""
    streams: int | None = None  #: How many streams send at once, in a program that has the choice.

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            there = " and ".join(LANGUAGES)
            raise ValueError(f"there is no language {self.language!r}: there are {there}")
        if self.listener is not None and self.listener not in LISTENERS:
            there = ", ".join(LISTENERS)
            raise ValueError(f"there is no listener {self.listener!r}: there are {there}")
        self.options().arguments(self.program)  # raises what it does not take
        if self.listener is not None and not self.variant:
            object.__setattr__(self, "variant", _VARIANTS[self.listener])

    def __str__(self) -> str:
        arguments = self.options().arguments(self.program)
        more = f", {self.variant}" if self.variant else ""
        return " ".join([self.program.name, f"({self.language}{more})", *arguments])

    @property
    def program(self) -> Chapter:
        """The chapter or step whose program it is."""
        return find_chapter(self.chapter)

    @property
    def case(self) -> Case:
        """The case that is measured; its name is what a recording calls it."""
        program = self.program
        n = self.heaps
        if n is None and "n" in program.accepted:
            n = heaps(program.heaps)
        return Case(
            OURS,
            self.language,
            program.name,
            self.heap_size or program.heap_size,
            self.packet_size or program.packet_size,
            self.random,
            self.variant,
            tuple(self.environment.items()),
            self.listener,
            heaps=n,
            streams=self.streams,
        )

    def options(self) -> ProgramOptions:
        """Return what the program was asked to be told."""
        return ProgramOptions(
            self.heaps,
            self.heap_size,
            self.packet_size,
            self.random,
            self.streams,
            switches=self.program.switches(words_of(self.variant)),
        )


# ---- Measuring ----


def measure(
    place: Place,
    runs: Iterable[Run],
    rounds: int | None = None,
    *,
    timelines: Iterable[Timeline] = (),
) -> Recording:
    """Run programs, no two alike, in rounds (by default `ROUNDS`), each in a random order.

    Every one is run once before, shorter, which does not count. While it goes on, a line says
    how far it has come, where a person is looking. The recording also has the timelines that are
    given. A `NotebookError` says that a program failed, or that its packets do not add up.

    Notebooks that measure at the same time take turns. If it is interrupted, what was measured is
    kept, and the same call goes on from there.
    """
    runs = list(runs)
    wanted = {run.case.name: run for run in runs}
    twice = next((run for run in runs if wanted[run.case.name] is not run), None)
    if twice is not None:
        raise ValueError(f"{twice} is there twice: give them different variants")
    rounds = ROUNDS if rounds is None else rounds
    settings = {"cases": list(wanted), "rounds": rounds, "seed": _SEED, "quick": QUICK}
    empty = record(place, timelines=timelines, settings=settings)
    steps = list(schedule((run.case for run in runs), rounds, _SEED))
    key = tuple(run.case for run in runs), rounds, place.kind
    taken = _kept.get(key, [])
    done = {(one.case, one.round, one.warm_up) for one in taken}
    _kept.clear()

    def take_step(step: Step, _: Sample | None) -> Sample:
        taken.append(_run_once(place, wanted[step.case.name], step))
        return taken[-1]

    def complain(step: Step, failure: str) -> None:
        raise NotebookError(f"{wanted[step.case.name]}: {anonymous(failure)}")

    def shown(steps: Sequence[Step]) -> Iterator[Step]:
        with _progress(len(taken), len(taken) + len(steps)) as show:
            for step in steps:
                show(str(wanted[step.case.name]))
                yield step

    left = [step for step in steps if step.key not in done]
    try:
        with turn():
            measure_rounds(left, take_step, empty.header, show=shown, say=complain)
    except KeyboardInterrupt:
        _kept[key] = taken
        raise StoppedError(
            f"Stopped after {len(taken)} of {len(steps)}; what was measured is kept: run the cell"
            " again, and it goes on."
        ) from None
    return dataclasses.replace(empty, samples=tuple(taken))


def _run_once(place: Place, run: Run, step: Step) -> Sample:
    """Run a program once."""
    try:
        where = place if place.is_lab else place.listening("fast")
        return take(where, step, timeout=_TIMEOUT_S)
    except LabError as error:
        raise NotebookError(f"{run}: {anonymous(error.summary)}") from None


def record(
    place: Place,
    *,
    timelines: Iterable[Timeline] = (),
    settings: Mapping[str, Any] | None = None,
) -> Recording:
    """Make a recording without samples: of timelines alone, for their picture."""
    header = make_header(
        "notebook",
        place.facts(),
        {"drawn_by": "spead_tutorial.notebook", **(settings or {})},
    )
    return Recording(header, (), tuple(timelines))


def watch(place: Place, *, pipelined: bool, random: bool, **how: Any) -> Timeline:
    """Send heaps as the programs of chapters 4 and 5 do, and say when each of them was where.

    All but the place is as for ``spead_tutorial.measure.timeline.record``.
    """
    try:
        with turn():
            return record_timeline(
                place.run, (place.address, place.port), pipelined=pipelined, random=random, **how
            )
    except KeyboardInterrupt:
        raise StoppedError("Stopped: a timeline is whole, or there is none.") from None
    except ProgramError as error:
        raise NotebookError(anonymous(str(error))) from None


@contextlib.contextmanager
def _progress(done: int, steps: int) -> Iterator[Callable[[str], None]]:
    """Yield what shows the next step in a line, which is gone at the end."""
    if not live():
        yield lambda _: None
        return
    width = 0

    def show(text: str) -> None:
        nonlocal done, width
        done += 1
        line = f"measuring, {done} of {steps}: {text}"[:100]
        print(f"\r{line.ljust(width)}", end="", flush=True)
        width = len(line)

    try:
        yield show
    finally:
        print("\r" + " " * width + "\r", end="", flush=True)


def live() -> bool:
    """Say whether a person looks: at a terminal, or a front end whose user could be asked.

    Programs that run notebooks have no user to ask, and store what is shown: for them there
    is neither progress nor anything that can be moved.
    """
    ipython = sys.modules.get("IPython")
    kernel = getattr(ipython and ipython.get_ipython(), "kernel", None)
    if kernel is not None:
        return bool(getattr(kernel, "_allow_stdin", False))
    with contextlib.suppress(OSError, ValueError):
        return sys.stdout.isatty()
    return False

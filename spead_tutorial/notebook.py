# SPDX-License-Identifier: BSD-3-Clause
"""What the notebooks share: a place to send to, measurements, tables, pictures, exercises.

A notebook opens a lab, measures some programs there, and shows what came of it:

>>> from spead_tutorial import notebook, plots  # doctest: +SKIP
>>> place = notebook.open_place()  # doctest: +SKIP
The lab is open: packets go to dummy1 and nowhere else.
>>> before, after = notebook.Run("6"), notebook.Run("8")  # doctest: +SKIP
>>> recording = notebook.measure(place, [before, after])  # doctest: +SKIP
>>> notebook.gain(recording, before, after).median  # doctest: +SKIP
1.41

Where there can be no lab, the same cells send over loopback, and what they show is marked. IPython,
pandas and matplotlib, which come with the extra ``[notebook]``, are imported when they are used.
"""

import atexit
import contextlib
import dataclasses
import datetime
import html
import os
import random
import re
import socket as sockets
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spead_tutorial import doctor, plots, stats, wire
from spead_tutorial.lab import Counters, Lab, LabError
from spead_tutorial.programs import (
    LANGUAGES,
    LISTENERS,
    Chapter,
    Options,
    ProgramError,
    Result,
    find_chapter,
    run_loopback,
    run_on_loopback,
    run_program,
    sample,
)
from spead_tutorial.records import Header, Recording, Sample, Timeline, anonymous
from spead_tutorial.timeline import record as record_timeline

if TYPE_CHECKING:
    import pandas

__all__ = [
    "LOOPBACK",
    "QUICK",
    "ROUNDS",
    "Exercise",
    "NotebookError",
    "Place",
    "Run",
    "Seen",
    "close_place",
    "gain",
    "heaps",
    "live",
    "measure",
    "open_place",
    "packet",
    "picture",
    "rate",
    "record",
    "samples",
    "table",
    "watch",
]

#: Whether to measure less, so that all notebooks are done in minutes: ``SPEAD_TUTORIAL_QUICK=1``.
QUICK = os.environ.get("SPEAD_TUTORIAL_QUICK", "0") not in ("", "0")
#: Whether to do without a lab: ``SPEAD_TUTORIAL_LOOPBACK=1``.
LOOPBACK = os.environ.get("SPEAD_TUTORIAL_LOOPBACK", "0") not in ("", "0")
#: How many rounds are measured where a cell does not say otherwise.
ROUNDS = 2 if QUICK else 3

_QUICK_SHARE = _WARM_UP_SHARE = 8
_TIMEOUT_S = 100.0
_SEED = 7
_LOOPBACK = "127.0.0.1"
_LOOPBACK_MTU = 65536
_NO_LAB = "loopback, no lab"
_MARK = "measured over loopback"
_LINK_IP_AND_UDP = 14 + 20 + 8
_VARIANTS = {"none": "no listener", "slow": "slow listener", "fast": "listener"}


class NotebookError(RuntimeError):
    """A cell could not do what it was to do; the text says what, in one line."""

    def _render_traceback_(self) -> list[str]:
        """Give IPython the line alone: how it came about inside of here helps nobody."""
        return [f"{type(self).__name__}: {self}"]


# ---------------------------------------------------------------------------------------
# A place to send to


@dataclasses.dataclass(slots=True)
class Seen:
    """What was sent to a place while it was watched; made by `Place.watching`.

    Parameters
    ----------
    packets : int
        Packets; one with several packets in it, as segmentation offload makes them, is one.
    bytes : int
        Their bytes, with the headers of UDP, IP and Ethernet.
    """

    packets: int = 0
    bytes: int = 0


class Place:
    """Where the cells of a notebook send to: a lab, or loopback where there can be none.

    Made by `open_place`.

    Attributes
    ----------
    address, port : str, int
        Where to send to.
    mtu : int
        Bytes, counted from the IP header.
    kind : str
        Kind of the lab's device, or ``"loopback, no lab"``.
    """

    def __init__(self, lab: Lab | None) -> None:
        self._lab = lab
        self._receiver: sockets.socket | None = None
        if lab is None:
            # It is never read but to count: what it has no room for is thrown away, as by a
            # lab's device, and nothing comes back as it does from a port where nobody listens.
            self._receiver = sockets.socket(sockets.AF_INET, sockets.SOCK_DGRAM)
            self._receiver.bind((_LOOPBACK, 0))
            self.address, self.port = _LOOPBACK, int(self._receiver.getsockname()[1])
            self.mtu, self.kind = _LOOPBACK_MTU, _NO_LAB
        else:
            self.address, self.port = lab.address, lab.port
            self.mtu, self.kind = lab.mtu, lab.kind

    def __repr__(self) -> str:
        return f"<Place {self.address} port {self.port}>"

    @property
    def is_lab(self) -> bool:
        """Whether it is a lab, in which nothing else is going on."""
        return self._lab is not None

    @property
    def lab(self) -> Lab | None:
        """The lab, or None. One that has died, as after an interrupt, is replaced by a new one."""
        if self._lab is not None:
            try:
                self._lab.counters()
            except LabError:
                self._lab.close()
                self._lab = Lab()
        return self._lab

    def socket(self) -> sockets.socket:
        """Make an unconnected UDP socket whose packets go to the place."""
        lab = self.lab
        return sockets.socket(sockets.AF_INET, sockets.SOCK_DGRAM) if lab is None else lab.socket()

    def run(self, argv: Sequence[str], **how: Any) -> subprocess.CompletedProcess[Any]:
        """Run a program in the lab, or beside it on loopback, to its end.

        Parameters
        ----------
        argv : sequence of str
            The program and its arguments.
        **how
            As for `spead_tutorial.lab.Lab.run`; output is collected, as text, unless it says
            otherwise.
        """
        how = {"capture_output": True, "text": True, "check": False} | how
        lab = self.lab
        if lab is None:
            return subprocess.run(argv, **how)
        return lab.run(argv, **how)

    def counters(self) -> Counters | None:
        """Read the counters of the lab's device; None on loopback, which others use too."""
        lab = self.lab
        return None if lab is None else lab.counters()

    @contextlib.contextmanager
    def watching(self) -> Iterator[Seen]:
        """Count what is sent to the place meanwhile; the result has it after the ``with`` block.

        A lab's device counts exactly. On loopback it is what the receiver had room for, a few
        hundred KiB: enough for packets that a cell sends one by one.
        """
        seen = Seen()
        before = self.counters()
        if before is None:
            self._take()
        yield seen
        after = self.counters()
        if before is None or after is None:
            seen.packets, seen.bytes = self._take()
        else:
            seen.packets, seen.bytes = (after - before).packets, (after - before).bytes

    def close(self) -> None:
        """End the lab and what runs in it; may be called again."""
        if self._lab is not None:
            self._lab.close()
        if self._receiver is not None:
            self._receiver.close()

    def facts(self) -> dict[str, Any]:
        """Return what a record says of the place."""
        lab = self.lab
        return {"kind": self.kind, "mtu": self.mtu} if lab is None else lab.facts()

    def _take(self) -> tuple[int, int]:
        """Take from the receiver what it has got: packets, and bytes with their headers."""
        packets = n_bytes = 0
        assert self._receiver is not None
        with contextlib.suppress(BlockingIOError):
            while True:
                n_bytes += len(self._receiver.recv(1 << 16, sockets.MSG_DONTWAIT))
                packets += 1
        return packets, n_bytes + _LINK_IP_AND_UDP * packets


_open: Place | None = None


def open_place(*, loopback: bool = LOOPBACK) -> Place:
    """Open a lab for this notebook, and say in a line that it works.

    Where there can be none it says why and what to do about it, and the place is loopback. A
    kernel has one place: a second call closes the first. It is closed when the kernel ends.

    Parameters
    ----------
    loopback : bool
        Whether to do without a lab also where there can be one; the environment variable
        ``SPEAD_TUTORIAL_LOOPBACK=1`` asks for it too.
    """
    close_place()
    lab = None
    try:
        lab = None if loopback else Lab()
    except LabError as error:
        print(f"There is no lab here: {error}.")
        print("All that a lab needs is looked at by: spead-tutorial doctor")
    if lab is not None:
        print("The lab is open: packets go to dummy1 and nowhere else.")
    else:
        print("The cells below send over loopback, and what they show is marked: it is slower")
        print("than a device that throws packets away, and others may use it meanwhile.")
    global _open
    _open = Place(lab)
    return _open


@atexit.register
def close_place() -> None:
    """Close the place that is open; nothing happens where there is none."""
    global _open
    if _open is not None:
        _open.close()
        _open = None


# ---------------------------------------------------------------------------------------
# Measuring


def heaps(n: int) -> int:
    """Return how many heaps to send: `n`, or an eighth of it, at least 2, in quick mode."""
    return max(2, n // _QUICK_SHARE) if QUICK else n


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """A program, and what to tell it.

    Parameters
    ----------
    chapter : str
        A chapter's number, or the name of a program: ``"10"``, ``"tut_10_send_more_heaps"``.
    language : str
        ``"python"`` or ``"c"``.
    heaps : int, optional
        How many heaps to send; `heaps` makes it less in quick mode. By default the program's own
        number, less in quick mode too.
    heap_size : int, optional
        Bytes of samples in a heap.
    packet_size : int, optional
        Bytes in a packet at most, UDP and IP not counted.
    random : bool
        Random samples instead of a fill.
    listener : str, optional
        ``"none"``, ``"fast"`` or ``"slow"``: send over loopback, where nobody listens, somebody
        who keeps up, or somebody who does not. By default to the lab's device.
    environment : mapping
        What the program's environment has besides the kernel's.
    variant : str
        What tables and pictures call it, where the environment makes a difference. With a
        listener it is ``"no listener"``, ``"listener"`` or ``"slow listener"``.
    """

    chapter: str
    language: str = "python"
    heaps: int | None = None
    heap_size: int | None = None
    packet_size: int | None = None
    random: bool = False
    listener: str | None = None
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)
    variant: str = ""

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
        told = self.options().arguments(self.program)
        more = f", {self.variant}" if self.variant else ""
        return " ".join([self.program.name, f"({self.language}{more})", *told])

    @property
    def program(self) -> Chapter:
        """The chapter or step whose program it is."""
        return find_chapter(self.chapter)

    @property
    def case(self) -> str:
        """What a recording calls it."""
        parts = (
            self.program.name + "-random" * self.random,
            self.heap_size or self.program.heap_size,
            self.packet_size or self.program.packet_size,
            self.heaps or "",
            self.language,
            self.variant,
        )
        return "/".join(str(part) for part in parts if part != "")

    def options(self, share: int = 1) -> Options:
        """Return what to tell the program, for one `share`-th of its heaps."""
        n = self.heaps
        if "n" in self.program.accepted:
            n = heaps(self.program.heaps) if n is None else n
            n = max(1, n // share)
        return Options(n, self.heap_size, self.packet_size, self.random)


def measure(
    place: Place,
    runs: Iterable[Run],
    rounds: int | None = None,
    *,
    timelines: Iterable[Timeline] = (),
) -> Recording:
    """Run programs in rounds, in each of which they come in a random order.

    Every one is run once before, shorter, which does not count. While it goes on, a line says
    how far it has come, where a person is looking.

    Parameters
    ----------
    place : Place
        Where to send to.
    runs : iterable of Run
        No two alike.
    rounds : int, optional
        How many; by default `ROUNDS`.
    timelines : iterable of Timeline
        What `watch` returned: the recording has them too.

    Raises
    ------
    NotebookError
        Where a program fails, or its packets do not add up: it has no rate then.
    """
    wanted = list(runs)
    cases = [one.case for one in wanted]
    twice = next((one for one in wanted if cases.count(one.case) > 1), None)
    if twice is not None:
        raise ValueError(f"{twice} is there twice: give them different variants")
    rounds = ROUNDS if rounds is None else rounds
    settings = {"cases": cases, "rounds": rounds, "seed": _SEED, "quick": QUICK}
    empty = record(place, timelines=timelines, settings=settings)
    taken: list[Sample] = []
    with _progress(len(wanted) * (rounds + 1)) as show:
        for number in range(-1, rounds):
            order = list(wanted)
            random.Random(f"{_SEED}/{number}").shuffle(order)
            for one in order:
                show(str(one))
                taken.append(_take(place, one, number))
    return dataclasses.replace(empty, samples=tuple(taken))


def _take(place: Place, one: Run, number: int) -> Sample:
    """Run a program once; a number of -1 is the warm-up."""
    warm_up = number < 0
    try:
        result = _run(place, one, one.options(_WARM_UP_SHARE if warm_up else 1))
    except (LabError, ProgramError) as error:
        raise NotebookError(anonymous(f"{one}: {error}")) from None
    if result.failure is not None:
        raise NotebookError(anonymous(f"{one}: {result.failure}"))
    return sample(
        result, case=one.case, number=max(0, number), warm_up=warm_up, variant=one.variant
    )


def _run(place: Place, one: Run, options: Options) -> Result:
    how: dict[str, Any] = {"timeout": _TIMEOUT_S, "environment": dict(one.environment)}
    what = (one.program, one.language, options)
    lab = place.lab
    if lab is None:
        return run_loopback(*what, listener=one.listener or "fast", **how)
    if one.listener is not None:
        return run_on_loopback(lab, *what, listener=one.listener, **how)
    return run_program(lab, *what, **how)


def record(
    place: Place,
    *,
    timelines: Iterable[Timeline] = (),
    settings: Mapping[str, Any] | None = None,
) -> Recording:
    """Make a recording without samples: of timelines alone, for their picture.

    Parameters
    ----------
    place : Place
        Where they were taken.
    timelines : iterable of Timeline
        What `watch` returned.
    settings : mapping, optional
        What the header says of how it was measured.
    """
    header = Header(
        experiment="notebook",
        time=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        machine=doctor.machine_facts(),
        lab=place.facts(),
        settings={"drawn_by": "spead_tutorial.notebook", **(settings or {})},
        versions=doctor.versions(),
        revision=doctor.revision(),
    )
    return Recording(header, (), tuple(timelines))


def watch(place: Place, *, pipelined: bool, random: bool, **how: Any) -> Timeline:
    """Send heaps as the programs of chapters 4 and 5 do, and say when each of them was where.

    Parameters
    ----------
    place : Place
        Where to send to.
    pipelined, random, **how
        As for `spead_tutorial.timeline.record`.
    """
    with place.socket() as sock:
        return record_timeline(
            sock, (place.address, place.port), pipelined=pipelined, random=random, **how
        )


@contextlib.contextmanager
def _progress(steps: int) -> Iterator[Callable[[str], None]]:
    """Yield what shows the next step in a line, which is gone at the end."""
    if not live():
        yield lambda _: None
        return
    done = width = 0

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
    """Say whether somebody looks: at a terminal, or a front end whose user could be asked.

    Programs that run notebooks have nobody to ask, and they store what is shown: for them there
    is neither progress nor anything that can be moved.
    """
    kernel = getattr(_ipython(), "kernel", None)
    if kernel is not None:
        return bool(getattr(kernel, "_allow_stdin", False))
    with contextlib.suppress(OSError, ValueError):
        return sys.stdout.isatty()
    return False


def _ipython() -> Any:
    """Return the IPython that this is running in, or None."""
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()


# ---------------------------------------------------------------------------------------
# What came of it


def samples(recording: Recording, run: Run) -> list[Sample]:
    """Return the samples of a run that count, one for each round.

    Raises
    ------
    NotebookError
        Where the recording has none of it.
    """
    found = [one for one in recording.samples if one.case == run.case and not one.warm_up]
    if not found:
        raise NotebookError(f"{run} was not measured in this recording")
    return found


def rate(recording: Recording, run: Run) -> float:
    """Return the median rate of a run: bytes/s of payload."""
    return stats.median(list(_rates(recording, run).values())).median


def gain(recording: Recording, before: Run, after: Run) -> stats.Estimate:
    """Return how many times as fast `after` is as `before`, of ratios within rounds."""
    return stats.gain(_rates(recording, before), _rates(recording, after))


def _rates(recording: Recording, run: Run) -> dict[int, float]:
    return {one.round: one.rate for one in samples(recording, run) if one.rate is not None}


def table(recording: Recording) -> "pandas.DataFrame":
    """Return a row for each run, in the order in which `measure` was given them.

    Sizes are in bytes; ``± %`` is half of the interval of the rate, in percent of its median
    (of a few rounds, half of their range); ``packets`` is what the last round sent.
    """
    import pandas

    wanted = recording.header.settings.get("cases") or [one.case for one in recording.samples]
    cases: dict[str, list[Sample]] = {case: [] for case in wanted}
    for one in recording.samples:
        if not one.warm_up:
            cases.setdefault(one.case, []).append(one)
    shown = pandas.DataFrame([_row(found) for found in cases.values() if found])
    if _over_loopback(recording):
        shown.columns.name = shown.attrs["title"] = _MARK
    return shown


def _row(found: Sequence[Sample]) -> dict[str, object]:
    last = found[-1]
    rates = stats.median([one.rate or 0.0 for one in found])

    def middle(value: Callable[[Sample], float], digits: int) -> float:
        return round(stats.median([value(one) for one in found]).median, digits)

    return {
        "program": last.program,
        "language": last.language,
        "heap": last.heap_size,
        "packet": last.packet_size,
        "variant": last.series.variant,
        "MB/s": round(rates.median / 1e6, 1),
        "± %": round(50 * (rates.high - rates.low) / rates.median, 1),
        "packets": last.packets,
        "calls per heap": middle(lambda one: (one.send_calls or 0) / one.heaps, 3),
        "faults per heap": middle(lambda one: (one.page_faults or 0) / one.heaps, 2),
        "CPU µs per heap": middle(_cpu_us_per_heap, 1),
    }


def _cpu_us_per_heap(one: Sample) -> float:
    return ((one.cpu_user_ns or 0) + (one.cpu_system_ns or 0)) / 1e3 / one.heaps


def _over_loopback(recording: Recording) -> bool:
    return any("no lab" in str(header.lab.get("kind")) for header in recording.headers)


def picture(draw: plots.Draw, recording: Recording) -> None:
    """Draw a picture of a recording and show it; one over loopback says so across it.

    Parameters
    ----------
    draw : function
        Such as `spead_tutorial.plots.ladder`.
    recording : Recording
        What `measure` returned.
    """
    from IPython.display import SVG, display

    drawn = _marked(draw) if _over_loopback(recording) else draw
    svg = plots.render(drawn, recording, plots.LIGHT).decode()
    title = re.search(r"<title[^>]*>([^<]*)", svg)
    alt = html.unescape(title[1]) if title else ""
    display(SVG(data=svg), metadata={"image/svg+xml": {"alt": alt}})


def _marked(draw: plots.Draw) -> plots.Draw:
    """Return what draws the same, and across it where it was measured."""

    def drawn(recording: Recording, theme: plots.Theme) -> Any:
        figure, title, words = draw(recording, theme)
        look: Any = {"fontsize": 26, "color": theme.text, "alpha": 0.25, "rotation": 25}
        figure.text(0.5, 0.5, _MARK, ha="center", va="center", **look)
        return figure, title, f"{words} {_MARK.capitalize()}."

    return drawn


# ---------------------------------------------------------------------------------------
# Packets

#: For the fields of a table: how its row is tinted. The words say the same without colours.
_TINTS = {
    "header": "rgba(120, 120, 120, 0.16)",
    "pointer": "rgba(0, 103, 165, 0.20)",
    "descriptor": "rgba(204, 85, 0, 0.20)",
    "value": "rgba(0, 128, 90, 0.20)",
    "padding": "rgba(120, 120, 120, 0.08)",
}
_MOST_SHOWN = 16


class _Table:
    """Rows of a packet, which a front end shows as HTML and a terminal as text."""

    def __init__(self, title: str, fields: Sequence[wire.Field]) -> None:
        self._title = title
        self._fields = fields

    def __repr__(self) -> str:
        return f"{self._title}\n{wire.format_table(self._fields)}"

    def _repr_html_(self) -> str:
        cell = "text-align: left; padding: 1px 8px"
        head = "".join(
            f'<th scope="col" style="{cell}">{name}</th>'
            for name in ("offset", "bytes", "part", "field", "meaning")
        )
        rows = "".join(map(self._row, self._fields))
        caption = f'<caption style="text-align: left">{html.escape(self._title)}</caption>'
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def _row(self, field: wire.Field) -> str:
        part = _part(field)
        raw = field.raw[:_MOST_SHOWN].hex(" ")
        if len(field.raw) > _MOST_SHOWN:
            raw += f" … ({len(field.raw)} bytes)"
        indent = "\N{NO-BREAK SPACE}" * 4 * field.depth
        style = f"text-align: left; padding: 1px 8px; background-color: {_TINTS[part]}"
        return "<tr>{}</tr>".format(
            "".join(
                f'<td style="{style}">{text}</td>'
                for text in (
                    str(field.offset),
                    f"<code>{raw}</code>",
                    part,
                    indent + html.escape(field.field),
                    html.escape(field.meaning),
                )
            )
        )


def _part(field: wire.Field) -> str:
    """Say which part of a packet a row belongs to."""
    if field.depth or "descriptor" in field.field:
        return "descriptor"
    if field.field == "item pointer":
        return "pointer"
    if field.field == "padding":
        return "padding"
    return "value" if "value" in field.field or field.field == "payload" else "header"


def packet(
    data: bytes | Sequence[wire.Field],
    *,
    names: Mapping[int, str] | None = None,
    title: str = "",
) -> None:
    """Show a packet as a table: where, which bytes, what they are, and what they say.

    Parameters
    ----------
    data : bytes-like, or sequence of Field
        A packet, or what `spead_tutorial.wire.dissect_heap` made of one, which knows of
        the heap's other packets too.
    names : mapping from int to str, optional
        Names of items by their id.
    title : str
        What stands above; by default how long it is.
    """
    from IPython.display import display

    if isinstance(data, bytes | bytearray | memoryview):
        fields: Sequence[wire.Field] = wire.dissect(data, names=names)
    else:
        fields = data
    n_bytes = sum(len(field.raw) for field in fields)
    display(_Table(title or f"A packet of {n_bytes} bytes", fields))


# ---------------------------------------------------------------------------------------
# Exercises


@dataclasses.dataclass(frozen=True, slots=True)
class Exercise:
    """A question whose answer is checked, and hidden until it is asked for.

    Parameters
    ----------
    question : str
        Markdown.
    answer : object
        The answer, or a function without arguments that finds it when it is needed.
    tolerance : float
        By how much a number may differ, in the answer's own unit.
    hint : str
        What to think about, for those whose answer is wrong.
    explanation : str
        Why the answer is what it is.
    """

    question: str
    answer: Any
    tolerance: float = 0.0
    hint: str = ""
    explanation: str = ""

    def __repr__(self) -> str:
        return f"Exercise: {self.question}"

    def _repr_markdown_(self) -> str:
        return f"**Exercise.** {self.question}"

    def check(self, answer: Any) -> None:
        """Say whether an answer is right; None is for one that has not been given."""
        if answer is None:
            print("Not answered yet.")
        elif _same(answer, self._answer(), self.tolerance):
            print("Right.")
        else:
            print(f"Not yet: {self.hint or 'think again'}")

    def reveal(self) -> None:
        """Tell the answer, and why it is that."""
        print(f"The answer is {self._answer()}. {self.explanation}".rstrip())

    def _answer(self) -> Any:
        return self.answer() if callable(self.answer) else self.answer


def _same(given: Any, right: Any, tolerance: float) -> bool:
    if isinstance(right, str):
        return isinstance(given, str) and given.strip().casefold() == right.strip().casefold()
    if isinstance(right, bool | bytes):
        return bool(given == right)
    if isinstance(right, list | tuple):
        there = isinstance(given, Sequence) and len(given) == len(right)
        pairs = zip(given, right, strict=True) if there else ()
        return there and all(_same(one, other, tolerance) for one, other in pairs)
    try:
        return bool(abs(given - right) <= tolerance)
    except TypeError:
        return bool(given == right)

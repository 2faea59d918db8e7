# SPDX-License-Identifier: BSD-3-Clause
"""How to run a program in some place, and whether what it says is so.

A program's rate counts only when its claims hold: no send failed, and the device it sent to
counted exactly what the program says it sent. Otherwise a `Result` has no rate, but a text
that says what was expected and what was seen.
"""

import dataclasses
import functools
import importlib.resources
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from spead_tutorial.chapters.catalogue import LANGUAGES, Chapter, switch_flag
from spead_tutorial.lab import Accounting
from spead_tutorial.measure.place import Evidence, Loopback, Place
from spead_tutorial.measure.running import Done, ProgramError, finish
from spead_tutorial.measure.verify import Report, check_sizes, checks, contradiction

__all__ = [
    "TOOLS",
    "Done",
    "Launch",
    "ProgramError",
    "ProgramOptions",
    "Result",
    "built",
    "command",
    "finish",
    "program",
    "program_path",
    "run",
]

#: The programs that are no chapters': bare loops that send, a receiver, and a sender for receivers.
TOOLS = ("ceiling", "sink", "blast")

_FLAGS = {
    "heaps": "n",
    "heap_size": "H",
    "packet_size": "p",
    "random": "r",
    "streams": "s",
    "cores": "c",
}

#: Returns how a program is started that sends to a host and a port, or where it always does.
Launch = Callable[[tuple[str, int] | None], Sequence[str]]


# ---- What to tell a program ----


@dataclasses.dataclass(frozen=True, slots=True)
class ProgramOptions:
    """What to tell a program; what is None or False is left to the program."""

    heaps: int | None = None  #: How many heaps to send (``-n``).
    heap_size: int | None = None  #: Bytes of samples in a heap (``-H``).
    packet_size: int | None = None  #: Bytes in a packet at most, UDP and IP not counted (``-p``).
    random: bool = False  #: Random samples instead of a fill (``-r``).
    streams: int | None = None  #: How many streams, each with a thread of its own (``-s``).
    #: Cores to pin the program's thread and the stream's to, such as ``"0,1"`` (``-c``).
    cores: str | None = None
    #: Some of `spead_tutorial.chapters.catalogue.SWITCHES`, such as ``"copy"`` (``--copy``).
    switches: tuple[str, ...] = ()

    def arguments(self, chapter: Chapter) -> list[str]:
        """Return a program's arguments; a ValueError names an option that it does not take."""
        who = f"chapter {chapter.number}" if chapter.number else chapter.name
        takes = f"it takes {', '.join(chapter.flags)}" if chapter.flags else "it takes none"
        arguments = []
        for name, letter in _FLAGS.items():
            value = getattr(self, name)
            if value is None or value is False:
                continue
            if letter not in chapter.accepted:
                raise ValueError(f"{who} has no option -{letter}: {takes}")
            arguments += [f"-{letter}"] if value is True else [f"-{letter}", str(value)]
        for flag in map(switch_flag, self.switches):
            if flag not in chapter.flags:
                raise ValueError(f"{who} has no option {flag}: {takes}")
            arguments.append(flag)
        return arguments


def command(
    chapter: Chapter,
    language: str,
    options: ProgramOptions = ProgramOptions(),
    destination: tuple[str, int] | None = None,
) -> list[str]:
    """Return the command that runs a chapter's program, and prints a JSON object.

    A ValueError names what the program does not take: an option, or host and port.
    """
    arguments = [*program(chapter.name, language), *options.arguments(chapter), "--json"]
    if destination is None:
        return arguments
    if not chapter.takes_destination:
        raise ValueError(
            f"chapter {chapter.number} takes no destination: it sends to loopback, port 8888"
        )
    host, port = destination
    at = [f"{host}:{port}"] if "a" in chapter.accepted else [host, str(port)]
    return [*arguments, "--", *at]


def program(name: str, language: str) -> list[str]:
    """Return how a program is started. A script by its path, so that no folder shadows it."""
    path = str(program_path(name, language))
    return [sys.executable, path] if language == "python" else [path]


def program_path(name: str, language: str) -> Path:
    """Return where a chapter's program is, or one of `TOOLS`, if it has been built."""
    if language not in LANGUAGES:
        raise ValueError(f"there is no language {language!r}: there are {', '.join(LANGUAGES)}")
    # An editable install has compiled programs in its build folder, and only importlib knows where.
    folder = "bin" if name in TOOLS else "chapters/cpp" if language == "cpp" else "chapters"
    file = name + (".py" if language == "python" else "")
    path = importlib.resources.files("spead_tutorial").joinpath(*folder.split("/"), file)
    if not isinstance(path, Path) or not path.is_file():
        first = "" if language in built() else "get a C++ compiler (apt install g++), then "
        raise ProgramError(
            f"the package has no program {name} in {language}: {first}build and install it"
            " (pip install .)"
        )
    return path


def built() -> tuple[str, ...]:
    """Return those of `spead_tutorial.chapters.catalogue.LANGUAGES` that are there.

    Where there was no compiler for C++, the package is whole without the programs in it.
    """
    there = importlib.resources.files("spead_tutorial").joinpath("chapters", "cpp").is_dir()
    return tuple(language for language in LANGUAGES if language != "cpp" or there)


# ---- Running it ----


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """A program's run with its report, and whether what it says is so.

    The `report` is what it printed; None where it printed no such thing.
    """

    chapter: Chapter  #: Whose program it was.
    language: str  #: One of `spead_tutorial.chapters.catalogue.LANGUAGES`.
    options: ProgramOptions  #: What it was told.
    status: int  #: Exit status, or minus the signal that ended it.
    report: Report | None
    device: str  #: What it sent to: see `Place`.
    kind: str  #: What kind of device that is.
    #: What was counted, and what the program claims; None where nothing counted.
    accounting: Accounting | None
    evidence: Evidence  #: What others saw of its packets.
    failure: str | None  #: Why there is no rate; None where there is one.
    said: str  #: What it wrote on standard error: it may have something to say though all is well.

    @property
    def rate(self) -> float | None:
        """Payload bytes/s; None for a run with a failure."""
        if self.failure is not None or self.report is None:
            return None
        return self.report.payload_bytes / (self.report.elapsed_ns / 1e9)

    @property
    def proof(self) -> str:
        """One line: packets claimed, and what was counted."""
        claimed = f"{self.report.packets if self.report else 0} packets claimed"
        if self.accounting is None:
            where = "outside a lab of its own, where nothing is counted for it alone"
            return f"{claimed}; {where}: take it on trust"
        counted = f"{self.device} ({self.kind}): {self.accounting.text}"
        if self.evidence.icmp_errors:
            came_back = self.evidence.icmp_errors
            counted += f"; {came_back} messages came back, as there was no listener"
        received = self.evidence.received
        if received is None:
            return f"{claimed}; {counted}"
        packets, heaps = received["packets"], received["complete_heaps"]
        return f"{claimed}; {counted}; the sink received {packets} packets, {heaps} whole heaps"

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        report = dataclasses.asdict(self.report) if self.report else {}
        return report | {
            "device": self.device,
            "kind": self.kind,
            "counted_packets": self.accounting.counted_packets if self.accounting else None,
            "counted_bytes": self.accounting.counted_bytes if self.accounting else None,
            "accounted": self.accounting.ok if self.accounting else None,
            "sink": self.evidence.received,
            "icmp_errors": self.evidence.icmp_errors,
            "status": self.status,
            "failure": self.failure,
            "rate_bytes_per_s": self.rate,
        }


def run(
    place: Place,
    chapter: Chapter,
    language: str,
    options: ProgramOptions = ProgramOptions(),
    *,
    launch: Launch | None = None,
    timeout: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> Result:
    """Run a program to its end, and hold what it says against what others counted.

    Chapter, language and options are as for `command`, which raises what is wrong with them.
    Nothing else may send to the place meanwhile. A program that cannot be told where to send to, as
    chapter 2's, goes to the loopback of the place, and has a receiver there. It is started as
    `command` has it, unless there is a `launch`; ended, and has failed, after `timeout` seconds;
    and its environment has what is given besides this process's. Without a listener, packets or
    heaps of less than 576 bytes are a ValueError: how long the errors are that return small
    messages cannot be known from what the program reports.
    """
    start = launch or functools.partial(command, chapter, language, options)
    start(None)  # raises what is wrong, before anything is begun
    place = place.fitting(chapter.takes_destination)
    if isinstance(place, Loopback) and place.listener == "none" and place.lab is not None:
        check_sizes(
            options.heap_size or chapter.heap_size, options.packet_size or chapter.packet_size
        )
    with place.watching() as watched:
        argv = start(watched.destination if chapter.takes_destination else None)
        done = finish(place.run, chapter.name, argv, timeout, environment)
        evidence = watched.end(done.status == 0)
    report = Report.parse(done.output)
    held = () if report is None else checks(report, evidence)
    if done.status != 0 or report is None:
        failure: str | None = done.complaint
    else:
        failure = contradiction(report, evidence, options.heaps)
    return Result(
        chapter,
        language,
        options,
        done.status,
        report,
        place.device,
        place.kind,
        held[0] if held else None,
        evidence,
        failure,
        done.errors,
    )

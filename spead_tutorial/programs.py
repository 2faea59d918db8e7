# SPDX-License-Identifier: BSD-3-Clause
"""How to run a chapter's program, and believe what it says.

A program's rate counts only when its claims hold: no send failed, and the device it sent to
counted exactly what the program says it sent. Otherwise a `Result` has no rate, but a text
that says what was expected and what was seen.
"""

import contextlib
import dataclasses
import importlib.resources
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

import spead_tutorial
import spead_tutorial.send
from spead_tutorial.catalogue import LANGUAGES, Chapter
from spead_tutorial.lab import (
    DEVICE,
    Accounting,
    Counters,
    Lab,
    LabError,
    LabProcess,
    accounted,
    check_destination,
    icmp_error_bytes,
    sink_path,
)
from spead_tutorial.records import Sample

__all__ = [
    "LISTENERS",
    "SLOW_BYTES_PER_S",
    "Options",
    "ProgramError",
    "Report",
    "Result",
    "command",
    "run_loopback",
    "run_on_loopback",
    "run_program",
    "run_to",
    "sample",
]

#: Who listens on loopback: nobody, a sink that reads as fast as it can, or a slow one.
LISTENERS = ("none", "fast", "slow")
#: Bytes that the slow one reads in a second: well below what a sender without a limit sends, and
#: enough to empty its buffer within a moment of the end.
SLOW_BYTES_PER_S = 200_000_000
_LOOPBACK = "127.0.0.1"
_IP_UDP_HEADERS = 20 + 8
_MOST_QUOTED = icmp_error_bytes(1 << 16)  # an ICMP error of this size quotes a part of a message
_SINK_BUFFER = 1 << 26  # far more than the system allows, so that it gives all that it allows
_SINK_SILENCE_S = 60  # ends a sink whose sender never comes
_SINK_DRAIN_S = 2.0
_FLAGS = {"heaps": "n", "heap_size": "H", "packet_size": "p", "random": "r"}


class ProgramError(RuntimeError):
    """A program cannot be run; the text says why and what to do about it."""


# ---------------------------------------------------------------------------------------
# What to tell a program


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What to tell a program; what is None or False is left to the program.

    Parameters
    ----------
    heaps : int, optional
        How many heaps to send (``-n``).
    heap_size : int, optional
        Bytes of samples in a heap (``-H``).
    packet_size : int, optional
        Bytes in a packet at most, UDP and IP not counted (``-p``).
    random : bool
        Random samples instead of a fill (``-r``).
    """

    heaps: int | None = None
    heap_size: int | None = None
    packet_size: int | None = None
    random: bool = False

    def arguments(self, chapter: Chapter) -> list[str]:
        """Return the program's arguments.

        Parameters
        ----------
        chapter : Chapter
            Whose program it is.

        Returns
        -------
        list of str
            As one types them.

        Raises
        ------
        ValueError
            For an option that the program does not take.
        """
        arguments = []
        for name, letter in _FLAGS.items():
            value = getattr(self, name)
            if value is None or value is False:
                continue
            if letter not in chapter.accepted:
                takes = f"it takes {', '.join(chapter.flags)}" if chapter.flags else "it takes none"
                raise ValueError(f"chapter {chapter.number} has no option -{letter}: {takes}")
            arguments += [f"-{letter}"] if value is True else [f"-{letter}", str(value)]
        return arguments


def command(
    chapter: Chapter,
    language: str,
    options: Options = Options(),
    destination: tuple[str, int] | None = None,
) -> list[str]:
    """Return the command that runs a chapter's program, and prints a JSON object.

    Parameters
    ----------
    chapter : Chapter
        Which.
    language : str
        One of `spead_tutorial.catalogue.LANGUAGES`.
    options : Options
        What to tell it.
    destination : tuple of str and int, optional
        Host and port, for a chapter that takes them.

    Returns
    -------
    list of str
        The command and its arguments.

    Raises
    ------
    ValueError
        Where the chapter does not take an option, or a destination.
    ProgramError
        Where the program has not been built.
    """
    arguments = [*_program(chapter, language), *options.arguments(chapter), "--json"]
    if destination is None:
        return arguments
    if not chapter.takes_destination:
        raise ValueError(
            f"chapter {chapter.number} takes no destination: it sends to {_LOOPBACK} port 8888"
        )
    return [*arguments, "--", destination[0], str(destination[1])]


def _program(chapter: Chapter, language: str) -> list[str]:
    """Return how a program is started. A script by its path, so that no folder shadows it."""
    if language not in LANGUAGES:
        raise ValueError(f"there is no language {language!r}: there are {', '.join(LANGUAGES)}")
    # An editable install has C programs in its build folder, and only importlib knows where.
    folder = importlib.resources.files("spead_tutorial").joinpath("chapters")
    path = folder.joinpath(chapter.name + (".py" if language == "python" else ""))
    if not isinstance(path, Path) or not path.is_file():
        raise ProgramError(
            f"the package has no program {chapter.name} in {language}: build and install it"
            " (pip install .)"
        )
    return [sys.executable, str(path)] if language == "python" else [str(path)]


# ---------------------------------------------------------------------------------------
# What a program says of its run


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """The JSON object that a program prints.

    Parameters
    ----------
    chapter : int
        The chapter's number.
    program, language : str
        Name of the program, and one of `spead_tutorial.catalogue.LANGUAGES`.
    random : bool
        Whether its samples were random.
    heaps : int
        Heaps of samples; the one that ends the stream is not counted.
    heap_size, packet_size : int
        Bytes of samples in a heap, and bytes in a packet at most (UDP and IP not counted).
    payload_bytes, spead_bytes : int
        Bytes of samples, and bytes of all SPEAD packets.
    packets, messages, send_calls, waits, errors : int
        As in `spead_tutorial.send.StreamStats`.
    elapsed_ns : int
        Time from the first heap to the last, in ns.
    cpu_user_ns, cpu_system_ns : int
        CPU time of the process meanwhile, in ns.
    page_faults, context_switches : int
        What the kernel counted of the process meanwhile.
    """

    chapter: int
    program: str
    language: str
    random: bool
    heaps: int
    heap_size: int
    packet_size: int
    payload_bytes: int
    spead_bytes: int
    packets: int
    messages: int
    send_calls: int
    waits: int
    errors: int
    elapsed_ns: int
    cpu_user_ns: int
    cpu_system_ns: int
    page_faults: int
    context_switches: int

    @classmethod
    def parse(cls, output: str) -> Self | None:
        """Read what a program printed.

        Parameters
        ----------
        output : str
            What it wrote on its standard output.

        Returns
        -------
        Report or None
            None where that is no such object.
        """
        try:
            found = json.loads(output)
            return cls(**{field.name: found[field.name] for field in dataclasses.fields(cls)})
        except (ValueError, TypeError, KeyError):
            return None


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """A program's run, and whether to believe it.

    Parameters
    ----------
    chapter : Chapter
        Whose program it was.
    language : str
        One of `spead_tutorial.catalogue.LANGUAGES`.
    options : Options
        What it was told.
    status : int
        Exit status, or minus the signal that ended it.
    report : Report or None
        What it printed; None where it printed no such thing.
    device : str
        What it sent to: the lab's device, ``"lo"``, or a host outside a lab.
    kind : str
        Kind of that device; ``"loopback, no lab"`` or ``"no lab"`` outside one.
    accounting : Accounting or None
        What was counted beside what the program claims; None where nothing counted.
    sink : dict or None
        What the receiver saw, where there was one.
    failure : str or None
        Why there is no rate; None where there is one.
    icmp_errors : int or None
        Messages that came back, as nobody listened; None where that was not counted.
    """

    chapter: Chapter
    language: str
    options: Options
    status: int
    report: Report | None
    device: str
    kind: str
    accounting: Accounting | None
    sink: dict[str, Any] | None
    failure: str | None
    icmp_errors: int | None = None

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
        if self.icmp_errors:
            counted += f"; {self.icmp_errors} messages came back, as nobody listened"
        if self.sink is None:
            return f"{claimed}; {counted}"
        packets, heaps = self.sink["packets"], self.sink["complete_heaps"]
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
            "sink": self.sink,
            "icmp_errors": self.icmp_errors,
            "status": self.status,
            "failure": self.failure,
            "rate_bytes_per_s": self.rate,
        }


def sample(
    result: Result, *, case: str, number: int, warm_up: bool = False, variant: str = ""
) -> Sample:
    """Make the record of a result.

    Parameters
    ----------
    result : Result
        What was run.
    case : str
        Which point of the experiment it belongs to.
    number : int
        In which round, from 0.
    warm_up : bool
        Whether it is not to be counted.
    variant : str
        What was different from the plain program, such as its environment.

    Returns
    -------
    Sample
        One line of a record; the result's failure is in it.
    """
    options, chapter = result.options, result.chapter
    measured: dict[str, Any] = {
        "heaps": options.heaps or chapter.heaps,
        "heap_size": options.heap_size or chapter.heap_size,
        "packet_size": options.packet_size or chapter.packet_size,
    }
    if result.report is not None:
        measured |= dataclasses.asdict(result.report)
        for name in ("chapter", "program", "language", "random"):
            del measured[name]
    if result.accounting is not None:
        measured["counted_packets"] = result.accounting.counted_packets
        measured["counted_bytes"] = result.accounting.counted_bytes
    if result.sink is not None:
        measured["received_packets"] = result.sink["packets"]
        measured["received_dropped"] = result.sink["dropped"]
    return Sample(
        case=case,
        round=number,
        warm_up=warm_up,
        chapter=chapter.number,
        program=chapter.name,
        language=result.language,
        random=options.random,
        device=result.device,
        kind=result.kind,
        failure=result.failure,
        variant=variant,
        icmp_errors=result.icmp_errors,
        **measured,
    )


# ---------------------------------------------------------------------------------------
# Running them


def run_program(
    lab: Lab,
    chapter: Chapter,
    language: str,
    options: Options = Options(),
    *,
    timeout: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> Result:
    """Run a chapter's program in a lab, and check what it says against the lab's counters.

    Chapter 2, which sends to loopback, gets a receiver there.

    Parameters
    ----------
    lab : Lab
        Where. Nothing else may send there meanwhile.
    chapter, language, options
        As for `command`, which raises what is wrong with them.
    timeout : float, optional
        Seconds after which the program is ended, and has failed.
    environment : mapping, optional
        What its environment has besides this process's.
    """
    more: dict[str, Any] = {"timeout": timeout, "environment": environment}
    if not chapter.takes_destination:
        return run_on_loopback(lab, chapter, language, options, listener="fast", **more)
    argv = command(chapter, language, options, (lab.address, lab.port))
    before = lab.counters()
    done = _finish(lab.run, argv, **more)
    counted = lab.counters() - before
    report = Report.parse(done.output)
    accounting = None if report is None else _accounted(report, counted)
    failure = _failure(done, report, accounting)
    place = (DEVICE, counted.kind)
    return Result(
        chapter, language, options, done.status, report, *place, accounting, None, failure
    )


def run_on_loopback(
    lab: Lab,
    chapter: Chapter,
    language: str,
    options: Options = Options(),
    *,
    listener: str,
    timeout: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> Result:
    """Run a chapter's program over the loopback of a lab.

    There are more witnesses than a device that throws everything away has: where nobody
    listens, every message comes back as an ICMP error, and is counted; where somebody does,
    what was received and what the socket had no room for is all that was sent.

    Parameters
    ----------
    lab : Lab
        Where. Nothing else may send there meanwhile.
    chapter, language, options
        As for `command`, which raises what is wrong with them.
    listener : str
        One of `LISTENERS`. A slow one reads `SLOW_BYTES_PER_S`.
    timeout, environment
        As for `run_program`.

    Raises
    ------
    ValueError
        Where nobody is to listen to packets or heaps of less than 576 bytes: how long the
        errors are that return small messages cannot be known from what the program reports.
    """
    if listener not in LISTENERS:
        raise ValueError(f"there is no listener {listener!r}: there are {', '.join(LISTENERS)}")
    destination = (_LOOPBACK, lab.port) if chapter.takes_destination else None
    argv = command(chapter, language, options, destination)
    if listener == "none":
        _check_large(chapter, options)
    seen = None
    with contextlib.ExitStack() as stack:
        sink = None
        if listener != "none":
            slow = ["-r", str(SLOW_BYTES_PER_S)] if listener == "slow" else []
            sink = stack.enter_context(_Sink(lab.popen, lab.port, *slow))
        before, said = lab.counters("lo"), lab.snmp()
        done = _finish(lab.run, argv, timeout=timeout, environment=environment)
        counted, says = lab.counters("lo") - before, lab.snmp()
        if sink is not None:
            seen = sink.summary(done.status == 0)
    icmp_errors = says["Icmp"]["OutDestUnreachs"] - said["Icmp"]["OutDestUnreachs"]
    report = Report.parse(done.output)
    accounting = received = None
    if report is not None:
        accounting = _accounted(report, counted, icmp_errors)
        received = None if seen is None else _received(report, seen)
    failure = _failure(done, report, accounting) or _failure(done, report, received)
    if failure is None and seen is None and icmp_errors == 0:
        failure = f"{done.program}: nobody was to listen, but no message came back: somebody did"
    place = ("lo", counted.kind)
    return Result(
        chapter,
        language,
        options,
        done.status,
        report,
        *place,
        accounting,
        seen,
        failure,
        icmp_errors,
    )


def run_loopback(
    chapter: Chapter,
    language: str,
    options: Options = Options(),
    *,
    listener: str = "fast",
    timeout: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> Result:
    """Run a chapter's program over loopback where there can be no lab.

    Others may use loopback meanwhile, so that its counters prove nothing: what a receiver
    got, or its socket had no room for, is held against what the program says. Where nobody
    listens, nothing is.

    Parameters
    ----------
    chapter, language, options
        As for `command`, which raises what is wrong with them.
    listener : str
        One of `LISTENERS`, as for `run_on_loopback`.
    timeout, environment
        As for `run_program`.
    """
    if listener not in LISTENERS:
        raise ValueError(f"there is no listener {listener!r}: there are {', '.join(LISTENERS)}")
    argv = command(chapter, language, options)  # raises what is wrong with the options
    seen = None
    with contextlib.ExitStack() as stack:
        sink = None
        if listener == "none":
            port = _free_port()
        else:
            slow = ["-r", str(SLOW_BYTES_PER_S)] if listener == "slow" else []
            wanted = 0 if chapter.takes_destination else 8888
            sink = stack.enter_context(_Sink(_start, wanted, *slow))
            port = sink.port
        if chapter.takes_destination:
            argv = command(chapter, language, options, (_LOOPBACK, port))
        done = _finish(_run, argv, timeout=timeout, environment=environment)
        if sink is not None:
            seen = sink.summary(done.status == 0)
    report = Report.parse(done.output)
    accounting = None if report is None or seen is None else _received(report, seen)
    failure = _failure(done, report, accounting)
    place = ("lo", "loopback, no lab")
    return Result(
        chapter, language, options, done.status, report, *place, accounting, seen, failure
    )


def _free_port() -> int:
    """Return a port of loopback at which nobody listens."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((_LOOPBACK, 0))
        return int(sock.getsockname()[1])


def run_to(
    host: str,
    port: int,
    chapter: Chapter,
    language: str,
    options: Options = Options(),
    *,
    allow_real_network: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Result:
    """Run a chapter's program outside a lab, where nobody counts what it sends.

    Parameters
    ----------
    host, port : str, int
        Where to send to.
    chapter, language, options
        As for `command`, which raises what is wrong with them.
    allow_real_network : bool
        Whether it may leave through a real interface, as the user asked by name.
    environment : mapping, optional
        As for `run_program`.

    Raises
    ------
    LabError
        For a destination that is not allowed, or not known.
    """
    argv = command(chapter, language, options, (host, port))
    check_destination(host, allow_real_network=allow_real_network)
    done = _finish(_run, argv, environment=environment)
    report = Report.parse(done.output)
    failure = _failure(done, report, None)
    return Result(
        chapter, language, options, done.status, report, host, "no lab", None, None, failure
    )


def _accounted(report: Report, counted: Counters, icmp_errors: int = 0) -> Accounting:
    """Hold a program's claims against a device's counters."""
    return accounted(
        counted.packets,
        counted.bytes,
        packets=report.packets,
        messages=report.messages,
        spead_bytes=report.spead_bytes,
        link_header=counted.link_header,
        icmp_errors=icmp_errors,
        icmp_bytes=_icmp_bytes(report, counted, icmp_errors) if icmp_errors else 0,
    )


def _icmp_bytes(report: Report, counted: Counters, icmp_errors: int) -> int:
    """Return how many bytes the errors have that return all of a program's messages.

    It is what was counted, where that can be, and what is most likely otherwise. A message is
    quoted as far as there is room. Small ones, which are quoted whole, are the stop heap and,
    of other heaps, last packets for which the message before had no room: how often that was,
    the report does not say.
    """
    first, other, stop = (
        _MOST_QUOTED - icmp_error_bytes(size)
        for size in _last_packets(report.heap_size, report.packet_size)
    )
    likely = icmp_errors * _MOST_QUOTED - stop
    seen = counted.bytes - report.spead_bytes - icmp_errors * _IP_UDP_HEADERS
    for rest in (likely - seen, likely - seen - first):
        times, left = divmod(rest, other) if other else (0, rest)
        if left == 0 and 0 <= times < report.heaps:
            return seen
    return likely


def _last_packets(heap_size: int, packet_size: int) -> tuple[int, int, int]:
    """Return the sizes of the last packets of a program's first heap, of others, and of its end."""
    group = spead_tutorial.send.ItemGroup()
    scalar = [("u", spead_tutorial.Flavour().heap_address_bits)]
    group.add_item(0x1600, "timestamp", "Index of the first sample", shape=(), format=scalar)
    group.add_item(
        0x3300, "adc_samples", "Samples of the converter", shape=(heap_size,), dtype=np.int8
    )
    sizes = []
    for make in (group.get_heap, group.get_heap, group.get_end):
        group["timestamp"].value = 0
        group["adc_samples"].value = np.zeros(heap_size, np.int8)
        *_, last = spead_tutorial.send.PacketGenerator(make(), 1, packet_size)
        sizes.append(len(last))
    return sizes[0], sizes[1], sizes[2]


def _check_large(chapter: Chapter, options: Options) -> None:
    """Refuse sizes at which full packets would be quoted whole."""
    for what, size in (
        ("heaps", options.heap_size or chapter.heap_size),
        ("packets", options.packet_size or chapter.packet_size),
    ):
        if size < _MOST_QUOTED:
            raise ValueError(
                f"{what} of {size} bytes cannot be accounted for where nobody listens: they must"
                f" have at least {_MOST_QUOTED}"
            )


def _received(report: Report, seen: dict[str, Any]) -> Accounting:
    """Hold a program's claims against what a receiver saw."""
    packets = seen["packets"] + seen["dropped"]
    ok = packets == report.packets and (seen["dropped"] > 0 or seen["bytes"] == report.spead_bytes)
    text = (
        f"the sink received {seen['packets']} packets and had no room for {seen['dropped']},"
        f" {'which is all' if ok else 'but the program claims'}"
        f" {'of the' if ok else ''} {report.packets} SPEAD packets of {report.spead_bytes} bytes"
    ).replace("  ", " ")
    return Accounting(ok, text, report.packets, report.spead_bytes, packets, seen["bytes"])


def _failure(done: "_Done", report: Report | None, accounting: Accounting | None) -> str | None:
    """Say why a run has no rate; None where it has one."""
    if done.status != 0 or report is None:
        return done.complaint
    if report.errors:
        return f"{report.program}: {report.errors} of its packets failed to be sent"
    if report.payload_bytes != report.heaps * report.heap_size or report.elapsed_ns <= 0:
        return f"{report.program}: its report contradicts itself: {report}"
    if report.spead_bytes <= report.payload_bytes:
        return (
            f"{report.program}: it claims {report.payload_bytes} bytes of payload, but sent"
            f" {report.spead_bytes} bytes in all"
        )
    if accounting is not None and not accounting.ok:
        return f"{report.program}: {accounting.text}"
    return None


@dataclasses.dataclass(frozen=True, slots=True)
class _Done:
    """A program that has ended."""

    program: str
    status: int
    output: str
    errors: str

    @property
    def complaint(self) -> str:
        """What it has to say of its failure, in one line."""
        if self.status < 0:
            return f"{self.program}: it was ended by {signal.Signals(-self.status).name}"
        lines = [line.strip() for line in self.errors.splitlines() if line.strip()]
        if self.status == 0:
            return f"{self.program}: it printed no report, but {self.output.strip()[:200]!r}"
        if not lines:
            return f"{self.program}: it ended with status {self.status} and said nothing"
        last = lines[-1]
        return last if last.startswith(self.program) else f"{self.program}: {last}"


def _finish(
    run: Callable[..., subprocess.CompletedProcess[Any]],
    argv: list[str],
    *,
    timeout: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> _Done:
    """Run a program to its end."""
    name = Path(argv[1] if argv[0] == sys.executable else argv[0]).stem
    env = {**os.environ, **environment} if environment else None
    try:
        done = run(argv, capture_output=True, text=True, timeout=timeout, env=env)
    except subprocess.TimeoutExpired:
        return _Done(name, 1, "", f"it did not end within {timeout:g} s")
    except OSError as error:
        raise ProgramError(f"{name} cannot be started: {error.strerror or error}") from None
    return _Done(name, done.returncode, done.stdout, done.stderr)


def _run(argv: Sequence[str], **how: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, check=False, stdin=subprocess.DEVNULL, **how)


def _start(argv: Sequence[str | os.PathLike[str]], **how: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, **how)


class _Sink:
    """A receiver on loopback; a context manager that leaves none behind."""

    def __init__(
        self, start: Callable[..., LabProcess | subprocess.Popen[str]], port: int, *more: str
    ) -> None:
        options = ["--json", "-b", str(_SINK_BUFFER), "-t", str(_SINK_SILENCE_S), *more]
        self._process = start(
            [str(sink_path()), *options, _LOOPBACK, str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._process.stdout is not None
        try:
            words = self._process.stdout.readline().split()
            if words[:1] != ["listening"]:
                raise LabError(" ".join(words) or "sink: it ended without a word")
        except BaseException:
            self._end()
            raise
        self.port = int(words[2])

    def summary(self, expect_the_end: bool) -> dict[str, Any]:
        """Return what it saw, once it saw the stream's end or had the time to."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_SINK_DRAIN_S if expect_the_end else 0.2)
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        try:
            found: dict[str, Any] = json.loads(self._process.stdout.read())
        except ValueError:
            raise ProgramError("the sink ended without its summary") from None
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

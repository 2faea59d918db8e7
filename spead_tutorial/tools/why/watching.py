# SPDX-License-Identifier: BSD-3-Clause
"""Watching a sender: with nothing in its way, then its packets and its code, then its calls."""

import contextlib
import fcntl
import mmap
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import click

from spead_tutorial.lab import Counters, Lab, LabError
from spead_tutorial.lab.process import end_family, family
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.measure.verify import IP_UDP_HEADERS
from spead_tutorial.tools.why import instruments, loops
from spead_tutorial.tools.why.facts import Calls, Loop, Packets, Run, Seen
from spead_tutorial.tools.why.looks import followed, threads
from spead_tutorial.tools.why.places import Spot
from spead_tutorial.tools.why.stacks import Sampled

#: What is said of a program that does not know with whom to speak.
SAY_WHERE = (
    "say where in its arguments ({host} and {port} stand for it), or let it read"
    " SPEAD_TUTORIAL_HOST and SPEAD_TUTORIAL_PORT"
)
#: What is kept of the end of what a program prints; a pipe's size, and how often it is emptied.
_KEPT, _PIPE, _EVERY_S = 1 << 16, 1 << 20, 5e-3
#: How long its packets and its code are looked at, and its calls, at most; and how long it is left
#: alone before, once it sends.
_PROFILE_S, _TRACED_S, _WARM_S = 1.0, 0.7, 0.2
#: How long a diagnosis takes beside the time in which nothing disturbs it.
_REST_S = 10
#: Bytes that are touched to see what a new page takes.
_TOUCHED = 1 << 24
#: What a sender gets to begin to send; how often it is asked that, and what its threads are called.
_START_S, _POLL_S, _MEET_S = 20.0, 0.005, 0.05
_NO_PACKETS = (
    "The packets were not seen: there was no UDP with data, or this kernel does not show merged"
    " ones (before 6.2)."
)


def watch(argv: Sequence[str], spot: Spot, seconds: float, say: Callable[[str], None]) -> Seen:
    """Run a sender, or look at one that runs, and return what was seen."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        program = stack.enter_context(Sender(argv, spot))
        say(f"Watching {program.name}, in about {seconds + _REST_S:.0f} s in all: how fast it is")
        run = program.undisturbed(seconds)
        language = instruments.language(
            max(run.threads, key=lambda one: one.thread.cpu_s).thread.pid
        )
        say(f"Watching {program.name}: its packets and its code")
        packets, sampled = program.looked_into(folder, min(seconds, _PROFILE_S))
        say(f"Watching {program.name}: its calls")
        calls = program.traced(folder, min(seconds, _TRACED_S))
        program.end()
        unseen = program.unseen
    looped: tuple[Loop, ...] = ()
    if packets is not None:
        say("Running a bare loop")
        way = loops.way_of(packets, calls)
        ways = {"": way} | loops.otherwise(way, packets, spot.mtu - IP_UDP_HEADERS)
        try:  # where else it sends to is for its own packets
            here = contextlib.nullcontext(spot.lab) if spot.lab else Lab(mtu=max(1280, spot.mtu))
            with here as lab:
                looped = loops.measured(lab, ways)
        except (LabError, ProgramError) as error:
            unseen.append(f"There is no bare loop beside it: {error}.")
    return Seen(
        program=program.name,
        language=language,
        place=spot.text,
        mtu=spot.mtu,
        run=run,
        packets=packets,
        calls=calls,
        loops=looped,
        sampled=sampled,
        fault_s=fault_s(),
        unseen=tuple(unseen),
    )


def fault_s() -> float:
    """Measure what pages take when they are touched for the first time."""
    with mmap.mmap(-1, _TOUCHED) as memory:
        with contextlib.suppress(AttributeError, OSError):
            memory.madvise(mmap.MADV_NOHUGEPAGE)
        pages = _TOUCHED // mmap.PAGESIZE
        begun = time.thread_time()
        memory[:: mmap.PAGESIZE] = b"\1" * pages
        return (time.thread_time() - begun) / pages


class Output:
    """What a program prints: its last part, from a pipe emptied now and then."""

    # A file would grow without end; who reads each line as it comes takes a core from the program.

    def __enter__(self) -> Self:
        self._last = b""
        self._pipe, self.to = os.pipe()
        os.set_blocking(self._pipe, False)
        with contextlib.suppress(OSError):  # this user has too many pipes
            fcntl.fcntl(self.to, fcntl.F_SETPIPE_SZ, _PIPE)
        self._over = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.lines()
        os.close(self._pipe)
        os.close(self.to)

    def _read(self) -> None:
        is_over = False
        while not is_over:
            is_over = self._over.wait(_EVERY_S)
            with contextlib.suppress(BlockingIOError):
                self._last = (self._last + os.read(self._pipe, _PIPE))[-_KEPT:]

    def lines(self) -> list[str]:
        self._over.set()
        self._reader.join()
        said = self._last.decode(errors="replace").splitlines()
        return [line.strip() for line in said if line.strip()]


class Program:
    """A program that is started where it is watched, again where it has ended."""

    def __init__(
        self, argv: Sequence[str], popen: Any, more: Mapping[str, str], name: str = ""
    ) -> None:
        self.argv, self._popen, self._more = tuple(argv), popen, more
        scripts = [word for word in argv if word.endswith((".py", ".sh"))]
        self.name = name or Path([*scripts, *argv][0]).name
        self.output = Output()
        self._process: Any = None
        self.pids = list[int]()  # of all that ran

    def __enter__(self) -> Self:
        self.output.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self.output.__exit__()
        instruments.forget_names(self.pids)

    @property
    def pid(self) -> int:
        return int(self._process.pid)

    def has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def start(self, under: Sequence[str] = ()) -> None:
        argv, nothing, to = [*under, *self.argv], subprocess.DEVNULL, self.output.to
        env = {**os.environ, **self._more, **instruments.naming()}
        try:
            self._process = self._popen(argv, stdin=nothing, stdout=to, stderr=to, env=env)
        except OSError as error:
            reason = f"{argv[0]}: {error.strerror or error}"
            raise click.ClickException(f"it cannot be started: {reason}") from None

    def end(self) -> None:
        if self._process is not None:
            self.pids += family(self._process.pid)
            end_family(self._process)
            self._process = None

    def check_status(self, when: str = "") -> None:
        """Refuse one that has failed; where a time is said, also one that has only ended by it."""
        status = self._process.wait() if self._process is not None else 0
        how = f"was ended by signal {-status}" if status < 0 else f"failed with status {status}"
        if status or when:
            said = [f"{self.name} {how if status else 'ended'}{when}", *self.output.lines()[-1:]]
            raise click.ClickException(": ".join(said))

    def followed(self, counters: Callable[[], Counters], seconds: float, *more: Any) -> Run:
        run = followed(self.pid, counters, seconds, self.has_ended, *more)
        if self.has_ended():
            self.check_status()
        if run is None:
            raise click.ClickException(
                "it was over too soon to be looked at: have it run for a second or more"
            )
        return run


class Sender(Program):
    """A sender that is watched: it is started again where it has ended before all was seen."""

    def __init__(self, argv: Sequence[str], spot: Spot) -> None:
        self._spot, self._runs = spot, spot.pid  # already
        name = f"process {self._runs}" if self._runs else ""
        popen = spot.lab.popen if spot.lab else subprocess.Popen
        super().__init__(argv, popen, spot.environment, name)
        self.names = dict[int, str]()  # of threads
        self.unseen = list[str]()  # what could not be seen, and how to get it

    @property
    def pid(self) -> int:
        return self._runs or super().pid

    def has_ended(self) -> bool:
        return not Path(f"/proc/{self.pid}").exists() if self._runs else super().has_ended()

    def _sends(self, seconds: float, under: Sequence[str] = ()) -> bool:
        """Whether it sends within some time; it is started first, if it does not run."""
        before = self._spot.counters().packets
        if not self._runs and (under or self.has_ended()):
            self.end()
            self.start(under)
        until = time.monotonic() + seconds + _START_S * (not self._runs)
        while self._spot.counters().packets <= before:
            if self.has_ended() or time.monotonic() > until:
                return self._spot.counters().packets > before
            time.sleep(_POLL_S)
        return True

    def _wait(self, seconds: float) -> None:
        """Wait for some time, or until it has ended; and see what its threads are called."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.has_ended():
            self.names |= {tid: one.name for tid, one in threads(family(self.pid)).items()}
            time.sleep(_MEET_S)

    def _lasting(self) -> list[int]:
        """Return its processes, without those that have just begun and may end at once."""
        found = set(family(self.pid))
        self._wait(_MEET_S)
        return [pid for pid in family(self.pid) if pid in found]

    def undisturbed(self, seconds: float) -> Run:
        begun = time.monotonic()
        if not self._sends(seconds):
            self._complain(time.monotonic() - begun)
        self._wait(min(_WARM_S, seconds / 5))
        return self.followed(self._spot.counters, seconds)

    def looked_into(
        self, folder: Path, seconds: float
    ) -> tuple[Packets | None, dict[int, Sampled] | None]:
        """Look at its packets, and meanwhile where its code is."""
        capture = self._spot.capture()
        with contextlib.nullcontext(None) if isinstance(capture, str) else capture as noted:
            if self.has_ended():
                self._sends(0.0)
            sampled, unseen = instruments.profile(self._lasting(), folder, seconds, self.names)
            packets = noted.packets() if noted else None
        if packets is None:
            self.unseen.append(capture if isinstance(capture, str) else _NO_PACKETS)
        self.unseen += unseen
        return packets, sampled

    def traced(self, folder: Path, seconds: float) -> Calls | None:
        """Have strace look at it, or at another run of it where it may not be attached to."""
        why, runs = "", bool(self._runs) or not self.has_ended()
        for attaches in (True,) * runs + (False,) * (not self._runs):
            pids = self._lasting() if attaches else []
            under = instruments.strace(its := Path(tempfile.mkdtemp(dir=folder)), pids)
            if under is None:
                why = ", as there is no strace: apt install strace"
                break
            with contextlib.ExitStack() as stack:
                tracer: Program = self
                if attaches:
                    tracer = stack.enter_context(Program((), subprocess.Popen, {}, "strace"))
                    tracer.start(under)
                else:
                    self._sends(seconds, under)
                self._wait(seconds)
                tracer.end()
                said = [line for line in tracer.output.lines()[:1] if "strace" in line]
            if found := instruments.parse_calls(instruments.strace_lines(its), self.names):
                return found
            why = ": " + "; ".join(["strace saw none that sends", *said])
        self.unseen.append(f"Its calls were not seen{why}.")
        return None

    def _complain(self, waited: float) -> None:
        if self.has_ended():
            self.check_status()
        here, (host, port) = self._spot.text, self._spot.destination
        sent = f"sent nothing to {host}, port {port}: {SAY_WHERE}"
        raise click.ClickException(
            f"{self.name} {'ended' if self.has_ended() else f'ran for {waited:.2g} s'}, and"
            f" {f'nothing was sent by {here}' if self._runs else sent}"
        )

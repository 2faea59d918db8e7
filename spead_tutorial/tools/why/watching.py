# SPDX-License-Identifier: BSD-3-Clause
"""Watching a sender: with nothing in its way, then its packets and its code, then its calls."""

import contextlib
import mmap
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from spead_tutorial.lab import Counters, Lab, LabError
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.measure.verify import IP_UDP_HEADERS
from spead_tutorial.tools.why import loops, profilers
from spead_tutorial.tools.why.calls import parse_calls
from spead_tutorial.tools.why.facts import Calls, Loop, Packets, Run, Seen
from spead_tutorial.tools.why.looks import Follower, family, threads
from spead_tutorial.tools.why.places import Spot
from spead_tutorial.tools.why.process import SAY_WHERE, Program
from spead_tutorial.tools.why.stacks import Sampled

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
        language = profilers.language(max(run.threads, key=lambda one: one.thread.cpu_s).thread.pid)
        say(f"Watching {program.name}: its packets and its code")
        packets, sampled = program.looked_into(folder, min(seconds, _PROFILE_S))
        say(f"Watching {program.name}: its calls")
        calls = program.traced(folder, min(seconds, _TRACED_S))
        program.end()
        unseen = program.unseen
    looped: tuple[Loop, ...] = ()
    if packets is not None:
        say("Running a bare loop")
        try:
            looped = _looped(spot, packets, calls)
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


def _looped(spot: Spot, packets: Packets, calls: Calls | None) -> tuple[Loop, ...]:
    way = loops.way_of(packets, calls)
    ways = {"": way} | loops.otherwise(way, packets, spot.mtu - IP_UDP_HEADERS)
    # Where else it sends to is for its own packets.
    with contextlib.nullcontext(spot.lab) if spot.lab else Lab(mtu=max(1280, spot.mtu)) as lab:
        return loops.measured(lab, ways)


class Sender(Program):
    """A sender that is watched: it is started again where it has ended before all was seen."""

    def __init__(self, argv: Sequence[str], spot: Spot) -> None:
        self._spot = spot
        self._runs = spot.pid  # already
        name = f"process {self._runs}" if self._runs else ""
        super().__init__(argv, spot.popen, spot.environment, name)
        self.names = dict[int, str]()  # of threads
        self.unseen = list[str]()  # what could not be seen, and how to get it

    @property
    def pid(self) -> int:
        return self._runs or super().pid

    def has_ended(self) -> bool:
        return not Path(f"/proc/{self.pid}").exists() if self._runs else super().has_ended()

    def _started(self, under: Sequence[str] = ()) -> Counters:
        """Start it, if it does not run, and return the device's counters before."""
        before = self._spot.counters()
        if not self._runs and (under or self.has_ended()):
            self.end()
            self.start(under)
        return before

    def _until_it_sends(self, before: Counters, seconds: float) -> bool:
        """Wait until something is sent, or it ends, or for some time; one that starts has more."""
        until = time.monotonic() + seconds + _START_S * (not self._runs)
        while self._spot.counters().packets <= before.packets:
            if self.has_ended() or time.monotonic() > until:
                return self._spot.counters().packets > before.packets
            time.sleep(_POLL_S)
        return True

    # ---- Its runs ----

    def undisturbed(self, seconds: float) -> Run:
        begun, before = time.monotonic(), self._started()
        if not self._until_it_sends(before, seconds):
            self._complain(time.monotonic() - begun)
        self._wait(min(_WARM_S, seconds / 5))
        follower = Follower(self.pid, self._spot.counters)
        follower.follow(seconds, self.has_ended)
        if self.has_ended() and not self._runs:
            self.check_status()
        return follower.run()

    def looked_into(
        self, folder: Path, seconds: float
    ) -> tuple[Packets | None, dict[int, Sampled] | None]:
        """Look at its packets, and meanwhile where its code is."""
        capture = self._spot.capture()
        with contextlib.nullcontext(None) if isinstance(capture, str) else capture as noted:
            if self.has_ended():
                self._until_it_sends(self._started(), 0.0)
            sampled, unseen = profilers.profile(
                self._lasting(), folder, seconds, self.names, ours=not self._runs
            )
            packets = noted.packets() if noted else None
        if packets is None:
            self.unseen.append(capture if isinstance(capture, str) else _NO_PACKETS)
        self.unseen += unseen
        return packets, sampled

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

    def traced(self, folder: Path, seconds: float) -> Calls | None:
        """Have strace look at it, or at another run of it where it may not be attached to."""
        why, runs = "", bool(self._runs) or not self.has_ended()
        for attaches in (True,) * runs + (False,) * (not self._runs):
            pids = self._lasting() if attaches else []
            under = profilers.strace(its := Path(tempfile.mkdtemp(dir=folder)), pids)
            if under is None:
                why = ", as there is no strace: apt install strace"
                break
            with contextlib.ExitStack() as stack:
                tracer: Program = self
                if attaches:
                    tracer = Program((), subprocess.Popen, os.environ, "strace")
                    stack.enter_context(tracer).start(under)
                else:
                    self._until_it_sends(self._started(under), seconds)
                self._wait(seconds)
                tracer.end()
                said = [line for line in tracer.output.lines()[:1] if "strace" in line]
            if found := parse_calls(profilers.strace_lines(its), self.names):
                return found
            why = ": " + "; ".join(["strace saw none that sends", *said])
        self.unseen.append(f"Its calls were not seen{why}.")
        return None

    def _complain(self, waited: float) -> None:
        """Say that it sends nothing there, or why it has failed."""
        if self.has_ended() and not self._runs:
            self.check_status()
        host, port = self._spot.destination
        sent = f"sent nothing to {host}, port {port}: {SAY_WHERE}"
        raise click.ClickException(
            f"{self.name} {'ended' if self.has_ended() else f'ran for {waited:.2g} s'}, and"
            f" {f'nothing was sent by {self._spot.text}' if self._runs else sent}"
        )

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
import msgspec

from spead_tutorial.lab import Counters, Lab, LabError
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.measure.verify import IP_UDP_HEADERS
from spead_tutorial.tools.why import loops, profilers
from spead_tutorial.tools.why.calls import parse_calls
from spead_tutorial.tools.why.facts import Calls, Loop, Packets, Run, Seen
from spead_tutorial.tools.why.looks import Follower, family, threads, whole_of
from spead_tutorial.tools.why.places import Capture, InLab, Spot
from spead_tutorial.tools.why.process import SAY_WHERE, Program
from spead_tutorial.tools.why.profilers import Profile

#: How long its packets and its code are looked at, and its calls, at most; and how long it is left
#: alone before, once it sends.
_PROFILE_S, _TRACED_S, _WARM_S = 1.0, 0.7, 0.2
#: How long a diagnosis takes beside the time in which nothing disturbs it.
_REST_S = 10
#: Bytes that are touched to see what a new page takes.
_TOUCHED = 1 << 24
#: What a sender gets to begin to send; how often it is asked that, and what its threads are called.
_START_S, _POLL_S, _MEET_S = 20.0, 0.005, 0.05
#: How long a lab has to be quiet before the next run, but for what the kernel itself may say there.
_LEFTOVERS_S, _STRAYS = 0.1, 8
_TOO_SHORT = (
    "What its time went into was not seen, as it was over too soon: have it send for a second or"
    " more."
)
_CONTAINERS = ("docker", "podman", "nerdctl", "lxc", "kubectl")
Say = Callable[[str], None]


def watch(argv: Sequence[str], spot: Spot, seconds: float, say: Say) -> Seen:
    """Run a sender, or look at one that runs, and return what was seen."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        program = stack.enter_context(Sender(argv, spot))
        say(f"Watching {program.name}, in about {seconds + _REST_S:.0f} s in all: how fast it is")
        run = program.undisturbed(seconds)
        busiest = max((one.thread for one in run.threads), key=lambda its: its.cpu_s, default=None)
        language = profilers.language(busiest.pid) if busiest else ""
        say(f"Watching {program.name}: its packets and its code")
        longer = 1 + 2 * run.crowded  # where others have the cores for most of the time
        packets, profile = program.looked_into(folder, min(seconds, _PROFILE_S) * longer)
        say(f"Watching {program.name}: its calls")
        calls = program.traced(folder, min(seconds, _TRACED_S))
        program.end()
        sampled, unsampled = profile.read()
        sampled = sampled and {  # py-spy has other names
            tid: msgspec.structs.replace(its, name=program.names.get(tid, its.name))
            for tid, its in sampled.items()
        }
    unseen = [*program.unseen, *[_TOO_SHORT] * (not run.threads)]
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
        cores=len(os.sched_getaffinity(0)),
        run=run,
        packets=packets,
        calls=calls,
        loops=looped,
        sampled=sampled,
        fault_s=fault_s(),
        unseen=(*unseen, *unsampled),
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
        looped, begun = self._to_loopback(), time.monotonic()
        before = self._started()
        if not self._until_it_sends(before, seconds):
            self._complain(time.monotonic() - begun, self._to_loopback() - looped)
        self._meet_until(time.monotonic() + min(_WARM_S, seconds / 5))
        run = Follower(self.pid, self._spot.counters).follow(seconds, self.has_ended)
        self.pids += {one.thread.pid for one in run.threads}
        if self.has_ended() and not self._runs:
            self._check_end()
        if not run.messages:  # it has sent something at its beginning alone
            self.end()
            sent = self._spot.counters() - before
            run = whole_of(sent, time.monotonic() - begun)
        return run

    def looked_into(self, folder: Path, seconds: float) -> tuple[Packets | None, Profile]:
        """Look at its packets, and meanwhile where its code is: again if it ended too soon."""
        with contextlib.ExitStack() as stack:
            for is_last in (bool(self._runs), True):
                stack.close()
                capture = self._spot.capture()
                if not isinstance(capture, str):
                    stack.enter_context(capture)
                if self.has_ended():
                    self._until_it_sends(self._started(), 0.0)
                pids = self._lasting()
                self.pids += pids
                with profilers.profile(pids, folder, seconds) as profile:
                    lasted = self._meet_until(time.monotonic() + seconds)
                if lasted or is_last:
                    break
            return self._packets(capture), profile

    def _packets(self, capture: Capture | str) -> Packets | None:
        if isinstance(capture, str):
            self.unseen.append(capture)
            return None
        found, wrong = capture.packets(), ""
        if found is None and not capture.is_empty():
            wrong = "sent something, but no UDP, which is what this is about"
        elif found is not None and not found.payload_bytes:
            wrong = "sends empty datagrams, which carry no data"
        if wrong:
            raise click.ClickException(f"{self.name} {wrong}")
        if found is None:
            self.unseen.append(
                "The packets were not seen: this kernel does not show merged ones (before 6.2)."
            )
        return found

    def _meet_until(self, until: float) -> bool:
        """Look what its threads are called, and whether it has not ended before some time."""
        while time.monotonic() < until and not self.has_ended():
            self.names |= {tid: one.name for tid, one in threads(family(self.pid)).items()}
            time.sleep(_MEET_S)
        return not self.has_ended()

    def _lasting(self) -> list[int]:
        """Return its processes, without those that have just begun and may end at once."""
        found = set(family(self.pid))
        time.sleep(_MEET_S)
        return [pid for pid in family(self.pid) if pid in found]

    def traced(self, folder: Path, seconds: float) -> Calls | None:
        """Have strace look at it, or at another run of it where it may not be attached to."""
        found, why = None, ""
        if self._runs or (not self.has_ended() and profilers.may_attach()):
            found, why = self._traced(folder / "attached", seconds, self._lasting())
        if found is None and not self._runs:
            found, why = self._traced(folder / "started", seconds, [])
        self.unseen += [f"Its calls were not seen{why}"] * (found is None)
        return found

    def _traced(
        self, folder: Path, seconds: float, pids: Sequence[int]
    ) -> tuple[Calls | None, str]:
        """Return its calls, and else why there are none."""
        folder.mkdir()
        under = profilers.strace(folder, pids)
        if under is None:
            return None, ", as there is no strace: apt install strace."
        with contextlib.ExitStack() as stack:
            tracer: Program = self
            if pids:
                tracer = stack.enter_context(Program((), subprocess.Popen, os.environ, "strace"))
                tracer.start(under)
            else:
                self._until_it_sends(self._started(under), seconds)
            self._meet_until(time.monotonic() + seconds)
            tracer.end()
            said = [line for line in tracer.output.lines()[:1] if "strace" in line]
        found = parse_calls(profilers.strace_lines(folder), self.names)
        return found, ": " + "; ".join(["strace saw none that sends", *said]) + "."

    # ---- What goes wrong ----

    def _to_loopback(self) -> int:
        """Count what was sent to the lab's loopback."""
        spot = self._spot
        return spot.lab.counters("lo").packets if isinstance(spot, InLab) else 0

    def _check_end(self) -> None:
        """Refuse what has failed, and what still sends though it has ended."""
        self.check_status()
        if isinstance(self._spot, InLab):  # beside what still sends no other run could be watched
            before = self._spot.counters().packets
            time.sleep(_LEFTOVERS_S)
            if self._spot.counters().packets > before + _STRAYS:
                raise click.ClickException(
                    f"{self.name} ended, but left something behind that still sends: have"
                    " it stay in the foreground until all is sent"
                )

    def _complain(self, waited: float, looped: int) -> None:
        has_ended = self.has_ended()
        if has_ended and not self._runs:
            self.check_status()
        ended = "ended" if has_ended else f"ran for {waited:.2g} s"
        if self._runs:
            raise click.ClickException(
                f"{self.name} {ended}, and nothing was sent by {self._spot.text}"
            )
        host, port = self._spot.destination
        elsewhere = f" ({looped} packets went to its own loopback)" if looped else ""
        way_out = f"{elsewhere}: {SAY_WHERE}"
        if Path(self.argv[0]).name in _CONTAINERS:
            way_out = (
                ": a container has a network of its own, so start it as usual, and say --pid with"
                " the process in it"
            )
        raise click.ClickException(
            f"{self.name} {ended}, and sent nothing to {host}, port {port}{way_out}"
        )

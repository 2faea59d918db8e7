# SPDX-License-Identifier: BSD-3-Clause
"""Watching a sender: once with nothing in its way, then with its packets and its calls noted."""

import contextlib
import dataclasses
import mmap
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from spead_tutorial.tools.why import following, instruments, samples, trying
from spead_tutorial.tools.why.accounting import Prices, account
from spead_tutorial.tools.why.calls import parse_calls
from spead_tutorial.tools.why.facts import (
    PAGE,
    UNSEEN,
    Bare,
    Calls,
    Packets,
    Run,
    Sampled,
    Seen,
    Traffic,
)
from spead_tutorial.tools.why.following import LOOK_S, Follower, Look, grown, has_cores
from spead_tutorial.tools.why.places import AtProcess, InLab, Spot
from spead_tutorial.tools.why.process import Output, end, name_of, start
from spead_tutorial.tools.why.remedies import Tried

#: How long perf looks.
_PROFILE_S = 0.5
#: What perf gets to begin to look, where others have the cores.
_PERF_STARTS_S = 5.0
#: How many times as long it is watched where others have the cores for most of the time.
_LONGER = 4
#: How long the runs are whose rate does not count, once something is sent.
_SHORT_S = 1.0
#: What a sender gets to begin to send, beside the seconds that it is watched.
_START_S = 20.0
#: How long it may do nothing at all before that.
_IDLE_S = 5.0
#: How long a lab has to be quiet before the next run, but for what the kernel itself may say there.
_LEFTOVERS_S, _STRAYS = 0.1, 8
_CONTAINERS = ("docker", "podman", "nerdctl", "lxc", "kubectl")
_TOUCHED = 64 << 20
_Found = TypeVar("_Found")


@dataclasses.dataclass(frozen=True, slots=True)
class Sender:
    argv: tuple[str, ...] = ()  # how it is started; empty for one that runs already
    pid: int | None = None  # the one that runs already

    @property
    def name(self) -> str:
        if self.pid is not None:
            return f"process {self.pid}"
        return name_of(self.argv)


def watch(
    sender: Sender, spot: Spot, seconds: float, say: Callable[[str], None], *, trace: bool = True
) -> Seen:
    """Run a sender several times, or look at one that runs, and return what was seen."""
    if sender.pid is not None:
        assert isinstance(spot, AtProcess)
        if not spot.has_socket():
            raise click.ClickException(f"{sender.name} sends nothing: it has no socket")
        time.sleep(0.2)
        spot.settle()
    say(f"Watching {sender.name}: how fast it is")
    run, from_memory = _undisturbed(sender, spot, seconds)
    times: str | Run = run
    if not run.threads:
        times = UNSEEN["too-short"]
    elif not run.looks:
        times = UNSEEN["not-traced"]
    say(f"Watching {sender.name}: its packets and its code")
    packets, sampled = _packets(sender, spot, min(seconds, _SHORT_S), pooled=run.pooled)
    calls: Calls | str = UNSEEN["calls-unasked"]
    if trace:
        say(f"Watching {sender.name}: its calls")
        calls = _calls(sender, spot, min(seconds, _SHORT_S), pooled=run.pooled)
    bare: Bare | str = UNSEEN["bare-loop-elsewhere"]
    tried: tuple[Tried, ...] | str = ()
    if isinstance(spot, InLab):
        say("Running the bare loop")
        bare = trying.bare(spot, _seen(packets))
        if isinstance(packets, Packets) and isinstance(bare, Bare):
            tried = trying.tried(spot, packets, _seen(calls), run, say)
    counted, called, code = _seen(packets), _seen(calls), _seen(sampled)
    per_message = counted.per_message if counted else 1.0
    unseen = calls, sampled, times, packets, bare, tried
    return Seen(
        program=sender.name,
        place=spot.text,
        mtu=spot.mtu(),
        cores=len(os.sched_getaffinity(0)),
        run=run,
        packets=counted,
        calls=called,
        bare=_seen(bare),
        unseen=tuple(one for one in unseen if isinstance(one, str)),
        traffic=from_memory,
        sampled=code,
        tried=_seen(tried) or (),
        account=account(run, called, code, prices(), per_message),
    )


def _seen(found: _Found | str) -> _Found | None:
    """Return what was seen; None for what says why nothing was."""
    return None if isinstance(found, str) else found


# ---- The sender's runs ----


@contextlib.contextmanager
def _running(sender: Sender, spot: Spot, argv: Sequence[str], output: Output) -> Any:
    """Start a sender, and end it with the block; yield its process, None for one that runs."""
    if sender.pid is not None:
        yield None
        return
    process = start(spot.popen, argv, output, spot.environment)
    try:
        yield process
    finally:
        end(process)


def _undisturbed(sender: Sender, spot: Spot, seconds: float) -> tuple[Run, Traffic]:
    with Output() as output:
        before, first = _looped(spot), Look(time.monotonic(), spot.counters(), {})
        with (
            _running(sender, spot, sender.argv, output) as process,
            instruments.traffic(sender.pid or process.pid) as found,
        ):
            looks, whole, pooled = _followed(sender, spot, process, seconds)
        looped = _looped(spot) - before
        status = None if process is None else process.wait()
        if not grown(looks[0], looks[-1]):  # unless all was sent before it could be looked at
            looks.insert(0, first)
        sent = [i for i in range(1, len(looks)) if grown(looks[i - 1], looks[i])]
        if whole and status:
            how = f"was ended by signal {-status}" if status < 0 else f"failed with status {status}"
            raise click.ClickException(": ".join([f"{sender.name} {how}", *output.lines()[-1:]]))
        if not sent:
            waited = min(looks[-1].at - looks[0].at, seconds + _START_S * (sender.pid is None))
            raise click.ClickException(_nothing_sent(sender, spot, whole, waited, looped))
    if sender.pid is None and isinstance(spot, InLab):
        # Beside what still sends no other run could be watched.
        before = spot.counters().packets
        time.sleep(_LEFTOVERS_S)
        if spot.counters().packets > before + _STRAYS:
            raise click.ClickException(
                f"{sender.name} ended, but left something behind that still sends: have it stay in"
                " the foreground until all is sent"
            )
    run = following.run_of(looks, sent[0] - 1, sent[-1] + 1, pooled=pooled)
    traffic = found[0]
    if traffic.n_bytes is not None:  # as much of it as all messages have that are in the run
        part = run.messages / (looks[-1].counted - looks[0].counted).packets
        traffic = dataclasses.replace(traffic, n_bytes=round(traffic.n_bytes * part))
    return run, traffic


def _followed(
    sender: Sender,
    spot: Spot,
    process: Any,
    seconds: float,
    enough: Callable[[], bool] = lambda: False,
) -> tuple[list[Look], bool, bool]:
    """Follow a sender, and return looks, whether it has ended, and if threads are pooled."""
    pid = sender.pid or process.pid
    follower, begun = Follower(pid, seconds), time.monotonic()
    looks, worked, used_s = [Look(begun, spot.counters(), {})], begun, 0.0
    first: float | None = None
    while True:
        ended = process is not None and process.poll() is not None
        look = follower.look(spot.counters(), ended=ended)
        if first is None and grown(looks[-1], look):
            first = look.at
        now_s = sum(one.cpu_s for one in (look.threads or {}).values())
        if now_s > used_s + LOOK_S:
            worked, used_s = look.at, now_s
        # What has not changed is of no use, if it is not the last before a change.
        if len(looks) > 1 and first is None:
            looks.pop()
        looks.append(look)
        if ended or (process is None and not Path(f"/proc/{pid}").exists()):
            return looks, True, follower.pooled
        is_idle = sender.pid is None and look.at > worked + max(seconds, _IDLE_S)
        late = begun + seconds + _START_S * (sender.pid is None)  # or else it has begun
        if first is not None:
            late = first + seconds * (1 if has_cores(looks) else _LONGER)
        if look.at > late or (first is None and is_idle) or enough():
            return looks, False, follower.pooled
        time.sleep(LOOK_S)


def _looped(spot: Spot) -> int:
    """Count what was sent to the lab's loopback."""
    return spot.lab.counters("lo").packets if isinstance(spot, InLab) else 0


def _nothing_sent(sender: Sender, spot: Spot, whole: bool, waited: float, looped: int) -> str:
    ended = "ended" if whole else f"ran for {waited:.2g} s"
    if spot.destination is None:
        return f"{sender.name} {ended}, and nothing was sent by {spot.text}"
    host, port = spot.destination
    elsewhere = f" ({looped} packets went to its own loopback)" if looped else ""
    way_out = (
        f"{elsewhere}: say where in its arguments ({{host}} and {{port}} stand for it), or let it"
        " read SPEAD_TUTORIAL_HOST and SPEAD_TUTORIAL_PORT"
    )
    if Path(sender.argv[0]).name in _CONTAINERS:
        way_out = (
            ": a container has a network of its own, so start it as usual, and say --pid with the"
            " process in it"
        )
    return f"{sender.name} {ended}, and sent nothing to {host}, port {port}{way_out}"


def _packets(
    sender: Sender, spot: Spot, seconds: float, *, pooled: bool
) -> tuple[Packets | str, tuple[Sampled, ...] | str]:
    """Look at a sender's packets, and meanwhile where its own code is."""
    capture = spot.capture()
    with contextlib.ExitStack() as stack:
        output = stack.enter_context(Output())
        ring = None if isinstance(capture, str) else stack.enter_context(capture)
        with _running(sender, spot, sender.argv, output) as process:
            _followed(sender, spot, process, 0.0)  # as starting is no sending
            pids, begun = instruments.family(sender.pid or process.pid), time.monotonic()
            with samples.profile(pids, min(seconds, _PROFILE_S)) as profile:

                def enough() -> bool:
                    is_seen = ring is None or ring.is_full() or time.monotonic() > begun + seconds
                    return profile.is_over() and is_seen

                looks, *_ = _followed(sender, spot, process, seconds + _PERF_STARTS_S, enough)
        sampled = profile.sampled(following.numbered(looks), pooled=pooled)
        if ring is None:
            assert isinstance(capture, str)
            return capture, sampled
        found = ring.packets()
        if found is None and not ring.is_empty():
            raise click.ClickException(
                f"{sender.name} sent something, but no UDP, which is what this is about"
            )
        if found is not None and not found.payload_bytes:
            raise click.ClickException(f"{sender.name} sends empty datagrams, which carry no data")
    return found or UNSEEN["packets-merged"], sampled


def _calls(sender: Sender, spot: Spot, seconds: float, *, pooled: bool) -> Calls | str:
    with tempfile.TemporaryDirectory() as folder, Output() as output:
        written = Path(folder, "strace")
        argv = instruments.strace(str(written), sender.argv, sender.pid)
        if argv is None:
            return UNSEEN["no-strace"]
        watched = Sender(tuple(argv))
        with _running(watched, spot, argv, output) as process:
            looks, *_ = _followed(sender, spot, process, seconds)
        try:
            with written.open(encoding="utf-8", errors="replace") as lines:
                found = parse_calls(lines, following.numbered(looks), pooled=pooled)
        except OSError:
            found = None
        if found is not None:
            return found
        said = output.lines()
    why = f" ({said[0]})" if said and "strace" in said[0] else ""
    return UNSEEN["no-sends"].format(why=why)


# ---- What the kernel asks ----


def prices() -> Prices:
    """Measure what pages take when they are touched for the first time."""
    return Prices(_page_fault_s("MADV_NOHUGEPAGE"), _page_fault_s("MADV_HUGEPAGE"))


def _page_fault_s(advice: str) -> float:
    with mmap.mmap(-1, _TOUCHED) as memory:
        with contextlib.suppress(AttributeError, OSError):
            memory.madvise(getattr(mmap, advice))
        pages = _TOUCHED // PAGE
        begun = time.thread_time()
        memory[::PAGE] = b"\1" * pages
        return (time.thread_time() - begun) / pages

# SPDX-License-Identifier: BSD-3-Clause
"""Watching a sender: once with nothing in its way, then with its packets and its calls noted."""

import contextlib
import dataclasses
import itertools
import mmap
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from spead_tutorial.lab import Counters
from spead_tutorial.measure.verify import IP_UDP_HEADERS
from spead_tutorial.tools.why import instruments, samples, trying, waits
from spead_tutorial.tools.why.accounting import Prices, account
from spead_tutorial.tools.why.calls import parse_calls
from spead_tutorial.tools.why.facts import (
    PAGE,
    Bare,
    Calls,
    Packets,
    Run,
    Sampled,
    Seen,
    Thread,
    Traffic,
)
from spead_tutorial.tools.why.places import AtProcess, InLab, Spot
from spead_tutorial.tools.why.process import Output, end, name_of, start
from spead_tutorial.tools.why.remedies import Tried

#: How often counters are read, in seconds, and threads: every few times.
_LOOK_S, _LOOKS_PER_THREADS = 0.01, 4
#: After so many looks threads are asked what they wait in, and more seldom in a long run.
_LOOKS_PER_WAIT, _MOST_WAITS = 2, 1000
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
    """What to watch."""

    argv: tuple[str, ...] = ()  # how it is started; empty for one that runs already
    pid: int | None = None  # the one that runs already

    @property
    def name(self) -> str:
        """What it is called."""
        if self.pid is not None:
            return f"process {self.pid}"
        return name_of(self.argv)


@dataclasses.dataclass(slots=True)
class _Look:
    """The device's counters at a time, and the threads where they were read."""

    at: float
    counted: Counters
    threads: dict[int, Thread] | None = None
    waiting: waits.Look | None = None  # what they do now, where they were asked
    pooled: bool = False


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
        times = (
            "What its time went into was not seen, as it was over too soon: have it send for a"
            " second or more."
        )
    elif not run.looks:
        times = (
            "What it waits for was not seen, as this user may not trace it: run this as the user"
            " whose program it is, or as root."
        )
    say(f"Watching {sender.name}: its packets and its code")
    packets, sampled = _packets(sender, spot, min(seconds, _SHORT_S), pooled=run.pooled)
    calls: Calls | str = "Its calls were not looked at (--no-strace)."
    if trace:
        say(f"Watching {sender.name}: its calls")
        calls = _calls(sender, spot, min(seconds, _SHORT_S), pooled=run.pooled)
    bare: Bare | str = (
        "There is no bare loop beside it, as that is for labs alone: run it with -- COMMAND, and"
        " without --interface."
    )
    tried: tuple[Tried, ...] | str = ()
    if isinstance(spot, InLab):
        say("Running the bare loop")
        bare = trying.bare(spot, _seen(packets))
        if isinstance(packets, Packets) and isinstance(bare, Bare):
            tried = trying.tried(spot, packets, _seen(calls), run, say)
    missing = {"strace": calls, "perf": sampled, "/proc": times}
    counted = _seen(packets)
    return Seen(
        program=sender.name,
        place=spot.text,
        mtu=spot.mtu(),
        cores=len(os.sched_getaffinity(0)),
        run=run,
        packets=counted,
        calls=_seen(calls),
        bare=_seen(bare),
        unseen=tuple(
            one for one in (calls, sampled, times, packets, bare, tried) if isinstance(one, str)
        ),
        traffic=from_memory,
        sampled=_seen(sampled),
        tried=_seen(tried) or (),
        account=account(
            run, _seen(calls), _seen(sampled), prices(),
            tuple(name for name, found in missing.items() if isinstance(found, str)),
            counted.per_message if counted else 1.0,
        ),
    )  # fmt: skip


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
        before, first = _looped(spot), _Look(time.monotonic(), spot.counters(), {})
        with (
            _running(sender, spot, sender.argv, output) as process,
            instruments.traffic(sender.pid or process.pid) as found,
        ):
            looks, whole = _followed(sender, spot, process, seconds)
        looped = _looped(spot) - before
        status = None if process is None else process.wait()
        if not _grown(looks[0], looks[-1]):  # unless all was sent before it could be looked at
            looks.insert(0, first)
        sent = [i for i in range(1, len(looks)) if _grown(looks[i - 1], looks[i])]
        if whole and status:
            how = f"was ended by signal {-status}" if status < 0 else f"failed with status {status}"
            raise click.ClickException(": ".join([f"{sender.name} {how}", *output.lines()[-1:]]))
        if not sent:
            waited = min(looks[-1].at - looks[0].at, seconds + _start_s(sender))
            raise click.ClickException(_nothing_sent(sender, spot, whole, waited, looped))
    if sender.pid is None and isinstance(spot, InLab):
        _refuse_leftovers(sender, spot)
    run = _between(looks, sent[0] - 1, sent[-1] + 1, whole)
    traffic = found[0]
    if traffic.n_bytes is not None:  # as much of it as all messages have that are in the run
        part = run.messages / (looks[-1].counted - looks[0].counted).packets
        traffic = dataclasses.replace(traffic, n_bytes=round(traffic.n_bytes * part))
    return run, traffic


def _refuse_leftovers(sender: Sender, spot: InLab) -> None:
    """Raise an error where something still sends, beside which no other run could be watched."""
    before = spot.counters().packets
    time.sleep(_LEFTOVERS_S)
    if spot.counters().packets > before + _STRAYS:
        raise click.ClickException(
            f"{sender.name} ended, but left something behind that still sends: have it stay in the"
            " foreground until all is sent"
        )


def _followed(sender: Sender, spot: Spot, process: Any, seconds: float) -> tuple[list[_Look], bool]:
    """Look at counters and threads, until the sender has ended, or has sent for long enough."""
    pid = sender.pid or process.pid
    begun = time.monotonic()
    looks = [_Look(begun, spot.counters(), {})]
    first = None
    worked, used_s = begun, 0.0
    pids: list[int] = []
    every = max(_LOOKS_PER_WAIT, round(seconds / _LOOK_S / _MOST_WAITS))
    for number in range(1 << 30):
        ended = process is not None and process.poll() is not None
        look = _Look(time.monotonic(), spot.counters())
        if first is None and _grown(looks[-1], look):
            first = look.at
        if not ended and number % _LOOKS_PER_THREADS == 0:
            pids = instruments.family(pid) if number % (4 * _LOOKS_PER_THREADS) == 0 else pids
            look.threads = instruments.threads(pids) or None
            if (
                now_s := sum(one.cpu_s for one in (look.threads or {}).values())
            ) > used_s + _LOOK_S:
                worked, used_s = look.at, now_s
            look.pooled = any(map(waits.is_pooled, pids))
        if not ended and number % every == 0:
            look.waiting = waits.look(pids)
        # What has not changed is of no use, if it is not the last before a change.
        if len(looks) > 1 and first is None:
            looks.pop()
        looks.append(look)
        if ended or (process is None and not Path(f"/proc/{pid}").exists()):
            return looks, True
        is_idle = sender.pid is None and look.at > worked + max(seconds, _IDLE_S)
        if first is None and (is_idle or look.at > begun + seconds + _start_s(sender)):
            return looks, False
        if first is not None and look.at > first + seconds * (1 if _has_cores(looks) else _LONGER):
            return looks, False
        time.sleep(_LOOK_S)
    raise AssertionError("unreachable")


def _start_s(sender: Sender) -> float:
    """Return how long a sender may take to begin; one that runs already has begun."""
    return _START_S if sender.pid is None else 0.0


def _has_cores(looks: Sequence[_Look]) -> bool:
    """Whether threads worked for longer than they waited for a core, as far as that is known."""
    known = [look.threads for look in looks if look.threads]
    if len(known) < 2:
        return True
    done = instruments.between(known[0], known[-1])
    return sum(one.cpu_s for one in done) >= sum(one.runnable_s or 0.0 for one in done)


def _grown(before: _Look, after: _Look) -> bool:
    return after.counted.packets > before.counted.packets


def _between(looks: Sequence[_Look], begin: int, end: int, whole: bool) -> Run:
    """Return what was done from one look to another: threads' part from looks in between.

    Threads are looked at less often, and their part is scaled to the time of all.
    """
    used = looks[begin:end]
    first, last = used[0], used[-1]
    read = [look for look in used if look.threads is not None]
    # Rate, times and faults all from the same span, which ends where threads were looked at.
    if len(read) > 1 and _grown(read[0], read[-1]):
        first, last = read[0], read[-1]
    done: tuple[Thread, ...] = ()
    known = [look.threads or {} for look in read]
    if len(known) > 1:  # with a single one, all that came before the first message would count
        # The last that is known of each: it may have ended before the sender has.
        latest = {tid: one for threads in known for tid, one in threads.items()}
        done = instruments.between(known[0], latest)
    counted = last.counted - first.counted
    header = counted.link_header + IP_UDP_HEADERS
    run = Run(
        seconds=max(last.at - first.at, 1e-6),
        messages=counted.packets,
        payload_bytes=max(1, counted.bytes - header * counted.packets),
        threads=done,
        whole=whole,
    )
    asked = [look.waiting for look in used if look.waiting and first.at <= look.at <= last.at]
    named = {tid: one.name for look in looks for tid, one in (look.threads or {}).items()}
    pooled = any(look.pooled for look in used)
    return waits.added(run, asked, waits.numbered(named), pooled=pooled)


def _looped(spot: Spot) -> int:
    """Count what was sent to the lab's loopback."""
    return spot.lab.counters("lo").packets if isinstance(spot, InLab) else 0


def _nothing_sent(sender: Sender, spot: Spot, whole: bool, waited: float, looped: int) -> str:
    ended = "ended" if whole else f"ran for {waited:.2g} s"
    if spot.destination is None:
        return f"{sender.name} {ended}, and nothing was sent by {spot.text}"
    host, port = spot.destination
    elsewhere = f" ({looped} packets went to its own loopback)" if looped else ""
    if Path(sender.argv[0]).name in _CONTAINERS:
        return (
            f"{sender.name} {ended}, and sent nothing to {host}, port {port}: a container has a"
            " network of its own, so start it as usual, and say --pid with the process in it"
        )
    return (
        f"{sender.name} {ended}, and sent nothing to {host}, port {port}{elsewhere}: say where"
        " in its arguments ({host} and {port} stand for it), or let it read SPEAD_TUTORIAL_HOST and"
        " SPEAD_TUTORIAL_PORT"
    )


def _until_sent(
    sender: Sender, spot: Spot, process: Any, seconds: float, enough: Callable[[], bool]
) -> dict[int, str]:
    """Wait until a sender has ended, has sent for some time, or there is enough of it.

    Returns what its threads are called.
    """
    begun, before, first = time.monotonic(), spot.counters().packets, None
    names: dict[int, str] = {}
    for number in itertools.count():
        if process is not None and process.poll() is not None:
            break
        now = time.monotonic()
        if first is None and spot.counters().packets > before:
            first = now
        if number % _LOOKS_PER_THREADS == 0:
            names |= instruments.names(instruments.family(sender.pid or process.pid))
        if now > (begun + _START_S if first is None else first + seconds) or enough():
            break
        if process is None and not Path(f"/proc/{sender.pid}").exists():
            break
        time.sleep(_LOOK_S)
    return names


def _packets(
    sender: Sender, spot: Spot, seconds: float, *, pooled: bool
) -> tuple[Packets | str, tuple[Sampled, ...] | str]:
    """Look at a sender's packets, and meanwhile where its own code is."""
    capture = spot.capture()
    with contextlib.ExitStack() as stack:
        output = stack.enter_context(Output())
        ring = None if isinstance(capture, str) else stack.enter_context(capture)
        with _running(sender, spot, sender.argv, output) as process:
            _until_sent(sender, spot, process, 0.0, lambda: False)  # as starting is no sending
            pids, begun = instruments.family(sender.pid or process.pid), time.monotonic()
            with samples.profile(pids, min(seconds, _PROFILE_S)) as profile:

                def enough() -> bool:
                    is_seen = ring is None or ring.is_full() or time.monotonic() > begun + seconds
                    return profile.is_over() and is_seen

                names = _until_sent(sender, spot, process, seconds + _PERF_STARTS_S, enough)
        sampled = profile.sampled(waits.numbered(names), pooled=pooled)
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
    unseen = "The packets were not seen: this kernel does not show merged ones (before 6.2)."
    return found or unseen, sampled


def _calls(sender: Sender, spot: Spot, seconds: float, *, pooled: bool) -> Calls | str:
    with tempfile.TemporaryDirectory() as folder, Output() as output:
        written = Path(folder, "strace")
        argv = instruments.strace(str(written), sender.argv, sender.pid)
        if argv is None:
            return instruments.NO_STRACE
        watched = Sender(tuple(argv))
        with _running(watched, spot, argv, output) as process:
            names = _until_sent(sender, spot, process, seconds, lambda: False)
        try:
            with written.open(encoding="utf-8", errors="replace") as lines:
                found = parse_calls(lines, waits.numbered(names), pooled=pooled)
        except OSError:
            found = None
        if found is not None:
            return found
        said = output.lines()
    why = f" ({said[0]})" if said and "strace" in said[0] else ""
    return f"Its calls were not seen: strace saw none that sends{why}."


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

# SPDX-License-Identifier: BSD-3-Clause
"""Watching a receiver: at which rate it loses packets, where, and what its threads do meanwhile."""

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
from msgspec.structs import replace

from spead_tutorial.lab import Counters, Lab
from spead_tutorial.lab.process import family
from spead_tutorial.measure.case import Case
from spead_tutorial.measure.delivery import blast
from spead_tutorial.measure.programs import Done, program_path
from spead_tutorial.measure.running import Running
from spead_tutorial.measure.verify import IP_UDP_HEADERS, Report
from spead_tutorial.tools.why import instruments
from spead_tutorial.tools.why.facts import Calls, Fates, Loop, Receiving, Seen, Way
from spead_tutorial.tools.why.looks import between, bound, sockets, threads
from spead_tutorial.tools.why.loops import MERGED
from spead_tutorial.tools.why.places import Spot
from spead_tutorial.tools.why.watching import SAY_WHERE, Program, fault_s

#: Bytes in a heap, and in a packet where the MTU has room for it.
_HEAP, _PACKET = 1 << 16, 9000
#: How long a run of the search sends, at which rates in bytes/s, and at which share of what was
#: taken of the highest.
_RUN_S, _HIGH, _HIGHEST, _LOWEST, _SHARE = 0.4, 1e9, 3e9, 1e6, 0.6
_ABOVE = 1.2  # How much above what it takes it is looked at.
#: How long the socket gets to fill before that, and how long strace and profilers look.
_FILL_S, _TRACED_S, _PROFILE_S = 0.3, 0.7, 1.0
_PATIENCE_S = 20.0  # until a sender has ended, beside the time that it should take
#: What a receiver gets until it listens, and how often it is seen whether it does.
_START_S, _LOOK_S = 20.0, 0.02
_NO_READS = (
    "Its calls were not seen, so that it is not known how many packets a read brings, nor what else"
    " it calls: apt install strace."
)
#: How long a diagnosis takes beside the time in which its threads are looked at.
_REST_S = 14
#: Messages in a call of the bare reader, and how often it has to lose in a buffer.
_BATCH, _LOSING = 8, 3


def watch(
    argv: Sequence[str], spot: Spot, seconds: float, say: Callable[[str], None]
) -> Seen | str:
    """Look at a receiver, or say in a line that it has lost nothing."""
    program = Receiver(argv, spot)
    lab, name, size = program.lab, program.name, program.packet_bytes
    say(f"Watching {name}, in about {seconds + _REST_S:.0f} s in all: which rate it takes")
    found = _search(argv, spot)
    if found.lossy is None:
        return (
            f"{name} lost nothing of {found.held / 1e6:.3g} MB/s in packets of {size} bytes, the"
            " most that was sent to it"
        )
    rate = _ABOVE * found.taken  # so that it has always something to read
    with tempfile.TemporaryDirectory() as folder:
        say(f"Watching {name}: its calls")
        traced = _calls(argv, spot, rate, Path(folder))
        say(f"Watching {name}: what its threads do")
        with program:
            pid = program.listening()
            its = sockets(family(pid), lab.port)
            # So much that the buffer is full soon.
            fills = found.taken + sum(one.buffer or 0 for one in its) / 2 / _FILL_S
            with program.sent_to(max(rate, fills), seconds + _PROFILE_S + 3 * _FILL_S) as sent:
                time.sleep(_FILL_S)
                before = lab.receiver.arrivals()
                run = program.followed(
                    lab.counters, seconds, lambda: any(one.queued for one in bound(pid, lab.port))
                )
                arrived, pids = lab.receiver.arrivals() - before, family(pid)
                names = {one.thread.tid: one.thread.name for one in run.threads}
                sampled, unseen = instruments.profile(pids, Path(folder), _PROFILE_S, names)
                language = instruments.language(pids[-1])
    packets = max(1, round(arrived.packets - arrived.no_room * sent[0].per_message))
    run = replace(run, messages=packets, payload_bytes=packets * size)
    say("Running a bare reader")
    fates = found.lossy or sent[0]
    words, loops = _readers(spot, rate, traced, size, merges=any(one.merges for one in its))
    receiving = Receiving(fates, size, 0.0, found.held or None, its)
    lost = _lost_by_bare(spot, fates.rate, words, receiving.buffer)
    return Seen(
        program=name,
        language=language,
        place=spot.text,
        mtu=spot.mtu,
        run=run,
        calls=traced,
        loops=loops,
        sampled=sampled,
        fault_s=fault_s(),
        receiving=replace(receiving, bare_lost=lost),
        unseen=(*[_NO_READS] * (traced is None), *unseen),
    )


class Receiver(Program):
    """A receiver in a lab: it is started for each run, as it may end with each stream."""

    def __init__(self, argv: Sequence[str], spot: Spot) -> None:
        assert spot.lab is not None
        super().__init__(argv, spot.lab.receiver.popen, spot.environment)
        self.lab, self.packet_bytes = spot.lab, min(_PACKET, spot.mtu - IP_UDP_HEADERS)

    def listening(self, under: Sequence[str] = ()) -> int:
        """Start it, and return its process when it listens."""
        self.start(under)
        late, port = time.monotonic() + _START_S, self.lab.port
        while not bound(self.pid, port):
            if self.has_ended():
                self.check_status(" before it listened")
            if time.monotonic() > late:
                others = sorted({one.port for one in bound(self.pid)})
                where = f", but at {', '.join(map(str, others))}" if others else ""
                raise click.ClickException(
                    f"{self.name} did not listen at UDP port {port} within {_START_S:g} s{where}:"
                    f" {SAY_WHERE}"
                )
            time.sleep(_LOOK_S)
        return self.pid

    @contextlib.contextmanager
    def sent_to(self, rate: float, seconds: float, *more: str) -> Iterator[list[Fates]]:
        """Send to it at a rate, during a block and to the end; the fates are known then."""
        lab, found = self.lab, list[Fates]()
        case = Case("ours", "c", "blast", _HEAP, self.packet_bytes)
        n_heaps, more = max(2, round(rate * seconds / _HEAP)), more or ("--describe",)
        argv = [*blast(case, n_heaps, *more, rate=rate), lab.address, str(lab.port)]
        merges = any(one.merges for one in sockets(family(self.pid), lab.port))
        before = _counted(lab)
        with Running(lab.popen, "blast", argv) as running:
            yield found
            done = running.wait(seconds + _PATIENCE_S)
        found.append(_fates(before, _counted(lab), done, merges=merges))


def _counted(lab: Lab) -> tuple[Counters, Counters, Any]:
    return lab.counters(), lab.receiver.counters(), lab.receiver.arrivals()


def _fates(before: Any, after: Any, done: Done, *, merges: bool) -> Fates:
    report = Report.parse(done.output) if done.status == 0 else None
    if report is None:
        raise click.ClickException(f"it could not be sent to: {done.complaint}")
    device, far, arrived = (now - then for now, then in zip(after, before, strict=True))
    sent_s = max(int(done.said.get("sending_ns", report.elapsed_ns)), 1) / 1e9
    per_message = report.packets / max(report.messages or report.packets, 1) if merges else 1.0
    return Fates(
        rate=report.spead_bytes / sent_s,
        packets=report.packets,
        device=device.tx_dropped + far.rx_dropped,
        arrived=arrived.packets,
        unclaimed=arrived.unclaimed,
        no_room=arrived.no_room,
        per_message=per_message,
    )


# ---- Which rate it takes ----


class _Found(NamedTuple):
    held: float  # the highest rate at which nothing was lost, or 0
    lossy: Fates | None  # the run at the lowest rate at which something was lost
    taken: float  # what it takes of too much, in bytes/s


def _search(argv: Sequence[str], spot: Spot) -> _Found:
    """Send far too much to it, and then less than it took of that."""
    first, _ = _try(argv, spot, _HIGH)
    held = 0.0 if first.lost else first.rate
    if held:  # what the way itself does not take at such a rate is no matter of the receiver
        first = replace(_try(argv, spot, _HIGHEST)[0], device=0)
        if not first.lost:
            return _Found(max(held, first.rate), None, first.rate)
    taken = first.rate * (1 - first.share)
    second, _ = _try(argv, spot, max(_SHARE * taken, _LOWEST))
    if second.lost:
        return _Found(held, second, taken)
    return _Found(max(held, second.rate), first, taken)


def _try(argv: Sequence[str], spot: Spot, rate: float, *more: str) -> tuple[Fates, float]:
    """Send to it at a rate for a moment; return also the CPU time of all its threads."""
    with Receiver(argv, spot) as program:
        pid = program.listening()
        before = threads(family(pid))
        with program.sent_to(rate, _RUN_S, *more) as sent:
            time.sleep(_RUN_S / 2)
            latest = threads(family(pid))
        done = between(before, latest | threads(family(pid)))
    return sent[0], sum(one.cpu_s for one in done.values())


# ---- Its calls ----


def _calls(argv: Sequence[str], spot: Spot, rate: float, folder: Path) -> Calls | None:
    """Look at the calls of a receiver that strace runs; None where it reads nothing, or may not."""
    under = instruments.strace(folder)
    if under is None:
        return None
    with contextlib.suppress(click.ClickException, OSError), Receiver(argv, spot) as program:
        pid = program.listening(under)
        inodes = [one.inode for one in bound(pid, program.lab.port)]
        with program.sent_to(rate, _TRACED_S):
            since = time.time()
            time.sleep(_TRACED_S)
            names = {tid: one.name for tid, one in threads(family(pid)).items()}
            until = time.time()
        program.end()
        ended = instruments.read(instruments.strace_lines(folder))
        reads = [one for one in instruments.reads(ended, inodes) if since <= one.at <= until]
        return instruments.counted(ended, reads, names)
    return None


# ---- The bare reader ----


def _readers(
    spot: Spot, rate: float, traced: Calls | None, size: int, *, merges: bool
) -> tuple[list[str], tuple[Loop, ...]]:
    """Run bare readers that read as it does, which is said, and as the kernel merges packets."""
    single = traced is not None and traced.per_call < 2
    as_is = ["-m", str(1 if single else _BATCH), *["--no-gro"] * (not merges)]
    ways = {"": as_is} | ({} if merges else {MERGED: ["-m", str(_BATCH)]})
    found = list[Loop]()
    for changed, words in ways.items():
        if (tried := _read(spot, rate, words)) is not None:
            fates, cpu_s = tried
            found.append(Loop(changed, Way(size), (cpu_s / max(1, fates.packets - fates.lost),)))
    return as_is, tuple(found)


def _lost_by_bare(spot: Spot, rate: float, words: Sequence[str], buffer: int | None) -> float:
    """Return how much more a bare reader loses with a buffer of the same size, as a share."""
    room = (buffer or 0) // 2  # the kernel reports twice what is asked for
    if not 0 < room < int(Path("/proc/sys/net/core/rmem_max").read_text()):
        return 0.0

    def lost(*more: str) -> float:
        tried = _read(spot, rate, [*words, *more])
        return tried[0].share if tried else 0.0

    least = 1.0
    for _ in range(_LOSING):  # what is lost but now and then is the machine's doing
        least = min(least, lost("-b", str(room)) - lost())
        if least <= 0:
            return 0.0
    return least


def _read(spot: Spot, rate: float, words: Sequence[str]) -> tuple[Fates, float] | None:
    where, size = spot.destination, min(_PACKET, spot.mtu - IP_UDP_HEADERS)
    argv = [str(program_path("blast", "c").with_name("receive_bare")), "--no-copy", *words]
    argv += ["-H", str(_HEAP), "-p", str(size), *map(str, where)]
    with contextlib.suppress(click.ClickException):
        return _try(argv, spot, rate, "-w", "0")
    return None

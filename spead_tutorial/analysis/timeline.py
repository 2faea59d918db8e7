# SPDX-License-Identifier: BSD-3-Clause
"""When heaps were prepared and sent: the loops of chapters 4 and 5, watched.

`record` runs the program itself and notes when it calls its stream; the stream notes when its
own thread did its part. It takes a socket, so that a notebook can send in a lab:

>>> with Lab() as lab, lab.socket() as sock:  # doctest: +SKIP
...     one = record(sock, (lab.address, lab.port), pipelined=True, random=True)
>>> shares(one)  # doctest: +SKIP
Shares(preparing=0.93, waiting=0.06, rest=0.01, sending=0.21)

As a process of its own, ``spead-tutorial timeline`` says what it saw, with ``--json`` as one
object.
"""

import argparse
import asyncio
import bisect
import contextlib
import dataclasses
import functools
import itertools
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator
from types import FunctionType, SimpleNamespace
from typing import Any, Self

import click

import spead_tutorial
import spead_tutorial.send
import spead_tutorial.send.asyncio
from spead_tutorial.chapters import tut_4_send_constant, tut_4_send_perf, tut_5_send_pipeline
from spead_tutorial.chapters.report import Options, check_cores, two_cores
from spead_tutorial.lab import check_destination
from spead_tutorial.records import Timeline

__all__ = [
    "Interval",
    "Shares",
    "first_steady",
    "preparing",
    "record",
    "sending",
    "shares",
    "span",
    "steady",
    "waiting",
]

_SIZE = click.IntRange(1, 2**63 - 1)  # as the programs have it
_STEPS = (
    "prepare_ns",
    "queued_ns",
    "first_packet_ns",
    "last_packet_ns",
    "completed_ns",
    "resumed_ns",
)

#: Begin and end in ns.
Interval = tuple[int, int]


# ---------------------------------------------------------------------------------------
# Recording


def record(
    sock: socket.socket,
    endpoint: tuple[str, int],
    *,
    pipelined: bool,
    random: bool,
    heaps: int = 24,
    heap_size: int = 1 << 20,
    packet_size: int = 1472,
    rate: float = 0.0,
    cores: tuple[int, ...] = (),
) -> Timeline:
    """Send heaps with a chapter's program, and return when each of them was where.

    It can be called anywhere, also where an event loop runs, as in a notebook's cell, and can be
    interrupted.
    """
    if heaps < 1:
        raise ValueError(f"heaps is {heaps}: there must be at least 1")
    check_cores(cores)
    sock.setsockopt(
        socket.SOL_SOCKET, socket.SO_SNDBUF, spead_tutorial.send.UdpStream.DEFAULT_BUFFER_SIZE
    )
    options = Options(
        n_heaps=heaps,
        heap_size=heap_size,
        packet_size=packet_size,
        random=random,
        cores=cores,
        host=endpoint[0],
        port=endpoint[1],
    )
    watch = _Watch(sock, options, rate)
    usable = os.sched_getaffinity(0)
    try:
        if pipelined:
            _to_the_end(watch.run_coroutine(tut_5_send_pipeline.main))
            return _joined(watch, "tut_5_send_pipeline")
        program = tut_4_send_perf if random else tut_4_send_constant
        watch.run(program.main)
        return _joined(watch, program.__name__.rpartition(".")[2])
    finally:
        os.sched_setaffinity(0, usable)  # the program pins the thread that it is run in


class _Watch:
    """Runs a program, and is its stream: notes when the program calls it, and when it goes on.

    The program prepares a heap from when it last went on until it sends the heap.
    """

    stats = None  # for the program's last line, which nobody prints

    def __init__(
        self,
        sock: socket.socket,
        options: Options,
        rate: float,
    ) -> None:
        self.sock, self.options, self.rate = sock, options, rate
        self.thread_pool: spead_tutorial.ThreadPool | None = None
        self.stream: Any = None
        self.futures: list[asyncio.Future[int]] = []
        self.prepare_ns: list[int] = []
        self.resumed_ns: list[int] = []
        self.went_on_ns = 0

    def run(self, main: Callable[[], None]) -> None:
        with self._closing():
            self._watched(main)()

    async def run_coroutine(self, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
        with self._closing():
            await self._watched(main)()

    @contextlib.contextmanager
    def _closing(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            for future in self.futures:
                _forget(future)
            raise
        finally:
            if self.stream is not None:
                self.stream.close()
            if self.thread_pool is not None:
                self.thread_pool.stop()

    def _watched(self, main: Callable[[], Any]) -> Callable[[], Any]:
        """Return the program with what it is to have, in it alone, in place of its imports."""
        send = spead_tutorial.send
        open_async = functools.partial(self._open, send.asyncio.UdpStream)
        streams = {
            "UdpStream": functools.partial(self._open, send.UdpStream),
            "asyncio": SimpleNamespace(UdpStream=open_async),
        }
        package = {"send": SimpleNamespace(**vars(send) | streams)}
        imports = {
            "spead_tutorial": SimpleNamespace(**vars(spead_tutorial) | package),
            "Usage": SimpleNamespace(now=self._go_on),
            "parse_options": lambda *_: self.options,
            "report": lambda *_: None,
        }
        return FunctionType(main.__code__, main.__globals__ | imports)

    def _open(self, kind: Callable[..., Any], thread_pool: Any, to: Any, config: Any) -> Self:
        self.thread_pool = thread_pool
        config.max_packet_size = self.options.packet_size
        config.rate = self.rate
        config.timeline = self.options.n_heaps + 1  # and the stop heap
        self.stream = kind(thread_pool, self.sock, to, config)
        return self

    def _go_on(self) -> int:
        self.went_on_ns = time.monotonic_ns()
        return self.went_on_ns

    def send_heap(self, heap: spead_tutorial.send.Heap) -> None:
        self.prepare_ns.append(self.went_on_ns)
        self.stream.send_heap(heap)
        self.resumed_ns.append(self._go_on())

    def async_send_heap(self, heap: spead_tutorial.send.Heap) -> "_Sent":
        self.prepare_ns.append(self.went_on_ns)
        future = self.stream.async_send_heap(heap)
        self.futures.append(future)
        self._go_on()
        return _Sent(future, lambda: self.resumed_ns.append(self._go_on()))


@dataclasses.dataclass(frozen=True, slots=True)
class _Sent:
    """A future that says when the program that waits for it goes on."""

    future: asyncio.Future[int]
    go_on: Callable[[], None]

    def __await__(self) -> Generator[Any, None, int]:
        n_bytes = yield from self.future
        self.go_on()
        return n_bytes


def _forget(future: asyncio.Future[int]) -> None:
    """Give a future up, such that asyncio does not complain that nobody looked at its error."""
    if not future.cancel() and not future.cancelled():
        future.exception()


def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end, in a thread where this one's event loop is running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)
    begun, ended = threading.Lock(), threading.Event()

    def run() -> None:
        if not begun.acquire(blocking=False):
            return
        try:
            loop.run_until_complete(asyncio.wait([task]))  # which does not raise what the task did
        finally:
            loop.close()
            ended.set()

    try:
        threading.Thread(target=run).start()
        ended.wait()  # unlike join(), it can be interrupted and called again
    except BaseException:
        with contextlib.suppress(RuntimeError):  # the loop has just been closed
            loop.call_soon_threadsafe(task.cancel)
        threading.Thread(target=run).start()  # the interrupt may have come before the first began
        ended.wait()
        raise
    return task.result()


def _joined(watch: _Watch, program: str) -> Timeline:
    """Put the program's and the stream's times together, those of the heap at the end left out."""
    options = watch.options
    stream = watch.stream.timeline()
    times: dict[str, Any] = {"prepare_ns": watch.prepare_ns, "resumed_ns": watch.resumed_ns}
    times |= {name: stream[name].tolist() for name in _STEPS if name in stream.dtype.names}
    start = watch.prepare_ns[0]
    times = {
        name: tuple(moment - start for moment in moments[: options.n_heaps])
        for name, moments in times.items()
    }
    timeline = Timeline(
        case="",
        program=program,
        language="python",
        random=options.random,
        heap_size=options.heap_size,
        packet_size=options.packet_size,
        **times,
    )
    _check(timeline)
    return timeline


def _check(timeline: Timeline) -> None:
    """Refuse times that cannot be: each step of a heap follows the one before."""
    for before, after in itertools.pairwise(_STEPS):
        pairs = zip(getattr(timeline, before), getattr(timeline, after), strict=True)
        for heap, (first, second) in enumerate(pairs):
            if first > second:
                raise RuntimeError(
                    f"the times of heap {heap} contradict each other: {before} is {first}, but"
                    f" {after} is {second}"
                )


# ---------------------------------------------------------------------------------------
# What the time was used for


@dataclasses.dataclass(frozen=True, slots=True)
class Shares:
    """Fractions of the time of `steady`."""

    preparing: float  # in which the program prepared heaps
    waiting: float  # in which it waited for them
    rest: float  # in which it did anything else; these three make 1
    # in which the network thread was between the first and the last packet of a heap
    sending: float


def shares(timeline: Timeline) -> Shares:
    """Return what the time of a run was used for.

    It is plain arithmetic with intervals: the time that at least one of them covers, divided by
    the time that the heaps took which count. `preparing`, `waiting`, `sending` and `steady` say
    which intervals.
    """
    begin, end = steady(timeline)
    whole = max(1, end - begin)
    prepared, waited, sent = (
        _covered((max(one, begin), min(other, end)) for one, other in intervals) / whole
        for intervals in (preparing(timeline), waiting(timeline), sending(timeline))
    )
    return Shares(prepared, waited, max(0.0, 1 - prepared - waited), sent)


def first_steady(timeline: Timeline) -> int:
    """Return the first heap that counts: the third part of a run before it is a cold start.

    Memory is new there, its pages have yet to be found, and threads are asleep.
    """
    return len(timeline.prepare_ns) // 3


def steady(timeline: Timeline) -> Interval:
    """Return when the heaps that count began, and when a run had waited for its last heap."""
    return timeline.prepare_ns[first_steady(timeline)], span(timeline)[1]


def span(timeline: Timeline) -> Interval:
    """Return when a run began, and when it had waited for its last heap."""
    return timeline.prepare_ns[0], max(*timeline.resumed_ns, *timeline.last_packet_ns)


def preparing(timeline: Timeline) -> list[Interval]:
    """Return when the program prepared each heap, until it was queued."""
    return list(zip(timeline.prepare_ns, timeline.queued_ns, strict=True))


def sending(timeline: Timeline) -> list[Interval]:
    """Return when the network thread sent each heap, its first packet to its last.

    One call may have the end of a heap and the beginning of the next: the next one's time begins
    when the first has been sent, so that no time counts for two heaps.
    """
    before = (0, *timeline.last_packet_ns)
    first = map(max, timeline.first_packet_ns, before)
    return list(zip(first, timeline.last_packet_ns, strict=True))


def waiting(timeline: Timeline) -> list[Interval]:
    """Return when the program waited for heaps.

    What ends when it goes on with a heap began when it had last queued one, or gone on with one.
    """
    queued = set(timeline.queued_ns)
    marks = sorted({*queued, *timeline.resumed_ns})
    intervals = []
    for end in sorted(set(timeline.resumed_ns) - queued):  # at others it went on at once
        place = bisect.bisect_left(marks, end)
        if place > 0:
            intervals.append((marks[place - 1], end))
    return intervals


def _covered(intervals: Iterable[Interval]) -> int:
    """Return how long at least one of the intervals lasts."""
    total = 0
    last: int | None = None
    for begin, end in sorted(intervals):
        begin = begin if last is None else max(begin, last)
        total += max(0, end - begin)
        last = end if last is None else max(end, last)
    return total


# ---------------------------------------------------------------------------------------
# As a process of its own


def _cores(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, ...]:
    try:
        return () if text is None else two_cores(text)
    except argparse.ArgumentTypeError as error:
        raise click.BadParameter(str(error)) from None


@click.command("timeline")
@click.argument("host")
@click.argument("port", type=click.IntRange(1, 65535))
@click.option("--pipelined", is_flag=True,
              help="Prepare a heap while the last one is sent, as chapter 5 does.")  # fmt: skip
@click.option("--random", is_flag=True, help="Random samples instead of a fill.")
@click.option("-n", "heaps", type=_SIZE, default=24, show_default=True, metavar="HEAPS",
              help="Heaps to send.")  # fmt: skip
@click.option("-H", "heap_size", type=_SIZE, default=1 << 20, show_default=True, metavar="BYTES",
              help="Bytes of samples in a heap.")  # fmt: skip
@click.option("-p", "packet_size", type=_SIZE, default=1472, show_default=True, metavar="BYTES",
              help="Bytes in a packet at most, UDP and IP not counted.")  # fmt: skip
@click.option("-c", "cores", metavar="A,B", callback=_cores,
              help="Cores to pin the program's thread and the stream's to.")  # fmt: skip
@click.option("--allow-real-network", is_flag=True,
              help="Let packets leave this machine.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with every time.")
def command(
    host: str,
    port: int,
    pipelined: bool,
    random: bool,
    heaps: int,
    heap_size: int,
    packet_size: int,
    cores: tuple[int, ...],
    allow_real_network: bool,
    as_json: bool,
) -> int:
    """Say who worked when, the program or the network thread.

    It runs the program of chapter 4, or of chapter 5, in Python, and prints for what share of the
    time it prepared heaps, for what share it waited, and for what share the network thread sent.

    \b
    Example: spead-tutorial lab -- spead-tutorial timeline 192.168.31.2 8888
    Example: spead-tutorial timeline --pipelined --random -n 12 127.0.0.1 8888
    """
    check_destination(host, allow_real_network=allow_real_network)
    family = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0][0]
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        try:
            timeline = record(
                sock,
                (host, port),
                pipelined=pipelined,
                random=random,
                heaps=heaps,
                heap_size=heap_size,
                packet_size=packet_size,
                cores=cores,
            )
        except (ValueError, MemoryError) as error:
            raise click.ClickException(str(error)) from None
    click.echo(_report(timeline, as_json))
    return 0


def _report(timeline: Timeline, as_json: bool) -> str:
    if as_json:
        return json.dumps(dataclasses.asdict(timeline))
    parts = shares(timeline)
    begin, end = span(timeline)
    return (
        f"{len(timeline.prepare_ns)} heaps in {(end - begin) / 1e6:.2f} ms; from heap"
        f" {first_steady(timeline)} on, counted from 0, the program prepared"
        f" for {parts.preparing:.1%} of the time, waited for {parts.waiting:.1%}, did other"
        f" things for {parts.rest:.1%}; the network thread sent for {parts.sending:.1%}"
    )

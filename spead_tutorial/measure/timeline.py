# SPDX-License-Identifier: BSD-3-Clause
"""When heaps were prepared and sent: the programs of chapters 4 and 5, watched.

A stream says when its own thread did its part of a heap; one that is watched also notes when its
program calls it. The program prepares a heap from when it last went on until it sends the heap. It
runs in a process of its own, anywhere: `record` is given what runs it, such as a lab's.

>>> with Lab() as lab:  # doctest: +SKIP
...     one = record(lab.run, (lab.address, lab.port), pipelined=True, random=True)
>>> shares(one)  # doctest: +SKIP
Shares(preparing=0.93, waiting=0.06, rest=0.01, sending=0.21)
"""

import asyncio
import bisect
import dataclasses
import functools
import importlib
import inspect
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import numpy.typing as npt

import spead_tutorial.send
import spead_tutorial.send.asyncio
from spead_tutorial.measure.records import Timeline
from spead_tutorial.measure.running import ProgramError, finish

#: What becomes of a heap, in this order.
TIMES = tuple(name for name in Timeline.__struct_fields__ if name.endswith("_ns"))
_OF_STREAM = TIMES[1:-1]  # the others are the program's
_OVER = object()


# ---- In the process of the program ----


class Watch:
    """What is noted of a program: its calls of the stream, and when it went on after them."""

    def __init__(self) -> None:
        self.prepare_ns: list[int] = []  # of each heap
        self.resumed_ns: list[int] = []
        self._went_on_ns = 0

    def calling(self, send: Callable[[], Any]) -> Any:
        """Have the stream send a heap."""
        self.prepare_ns.append(self._went_on_ns)
        sent = send()
        self.goes_on()
        return sent

    def goes_on(self) -> None:
        """Note that the program begins to prepare a heap now."""
        self._went_on_ns = time.monotonic_ns()

    def resumed(self) -> None:
        """Note that the program goes on, after it has waited."""
        self.goes_on()
        self.resumed_ns.append(self._went_on_ns)

    def stream(self, kind: Any, method: str, *, waits: bool = False) -> Any:
        """Return a kind of streams whose sending is watched, and may wait until it is done."""

        def call(stream: Any, *what: Any, **how: Any) -> Any:
            sent = self.calling(functools.partial(getattr(kind, method), stream, *what, **how))
            if waits:
                self.resumed()
            return sent

        return type("UdpStream", (kind,), {method: call})  # as its program knows it

    def times(self, heaps: npt.NDArray[np.void]) -> dict[str, list[int]]:
        """Return when each heap was where, as a `Timeline` has it: the stream has noted some."""
        times = {name: heaps[name].tolist() for name in _OF_STREAM}
        times["prepare_ns"] = self.prepare_ns[: len(heaps)]
        times["resumed_ns"] = [
            self.resumed_ns[bisect.bisect_left(self.resumed_ns, moment)]
            for moment in times["completed_ns"]
        ]
        start = self.prepare_ns[0]
        return {name: [moment - start for moment in found] for name, found in times.items()}


@dataclasses.dataclass(frozen=True, slots=True)
class Watched:
    """Awaits something, and says so whenever that goes on."""

    going: Any
    resumed: Callable[[], None]

    def __await__(self) -> Generator[Any, Any, None]:
        steps = self.going.__await__()
        self.resumed()
        waits_for = next(steps, _OVER)
        while waits_for is not _OVER:
            yield waits_for
            self.resumed()
            waits_for = next(steps, _OVER)


def main() -> None:
    """Run a chapter's program as it is, and print the times of its heaps last."""
    settings, name = json.loads(sys.argv[1]), sys.argv[2]
    sys.argv[:] = [name, *sys.argv[3:]]  # by which the program calls itself, once it is imported
    program: Any = importlib.import_module(f"spead_tutorial.chapters.{name}")
    watch, streams = Watch(), []

    def opening(kind: Any) -> Callable[..., Any]:
        def open_stream(pool: Any, to: Any, config: spead_tutorial.send.StreamConfig) -> Any:
            for name, value in settings.items():
                setattr(config, name, value)
            streams.append(kind(pool, to, config))
            return streams[-1]

        return open_stream

    class Usage(program.Usage):  # type: ignore[misc]
        """The clock: it is read before the first heap."""

        @classmethod
        def now(cls) -> Any:
            watch.goes_on()
            return super().now()

    async def watched() -> None:
        await Watched(program.main(), watch.resumed)

    send: Any = spead_tutorial.send
    blocking = watch.stream(send.UdpStream, "send_heap", waits=True)
    send.asyncio.UdpStream = opening(watch.stream(send.asyncio.UdpStream, "async_send_heap"))
    send.UdpStream = opening(blocking)
    program.Usage = Usage
    if inspect.iscoroutinefunction(program.main):
        asyncio.run(watched())
    else:
        program.main()
    watch.resumed()
    (stream,) = streams
    heaps = stream.timeline()[:-1]  # without the one that ends the stream
    print(json.dumps(watch.times(heaps)))


# ---- In the process that wants to know ----


def record(
    run: Callable[..., subprocess.CompletedProcess[Any]],
    destination: tuple[str, int],
    *,
    pipelined: bool,
    random: bool,
    heaps: int = 24,
    heap_size: int = 1 << 20,
    packet_size: int = 1472,
    rate: float = 0.0,
    cores: str | None = None,
    timeout: float | None = None,
) -> Timeline:
    """Send heaps with a chapter's program, and return when each of them was where."""
    name = "tut_4_send_perf" if random else "tut_4_send_constant"
    name = "tut_5_send_pipeline" if pipelined else name
    settings = {"max_packet_size": packet_size, "rate": rate, "timeline": heaps + 1}
    options = ["-n", str(heaps), "-H", str(heap_size)]
    options += ["-r"] if pipelined and random else []
    options += ["-c", cores] if cores is not None else []
    # -P: not the package's source in the working folder.
    argv = [sys.executable, "-P", "-m", __name__, json.dumps(settings)]
    to = ["--", destination[0], str(destination[1])]
    done = finish(run, name, [*argv, name, *options, *to], timeout)
    if done.status != 0:
        raise ProgramError(done.complaint)
    times: dict[str, Any] = {step: tuple(done.said[step]) for step in TIMES}
    timeline = Timeline(
        case="",
        program=name,
        language="python",
        random=random,
        heap_size=heap_size,
        packet_size=packet_size,
        **times,
    )
    _check(timeline)
    return timeline


def _check(timeline: Timeline) -> None:
    """Refuse times that cannot be: each step of a heap follows the one before."""
    for before, after in itertools.pairwise(TIMES):
        pairs = zip(getattr(timeline, before), getattr(timeline, after), strict=True)
        for heap, (first, second) in enumerate(pairs):
            if first > second:
                raise ProgramError(
                    f"the times of heap {heap} contradict each other: {before} is {first}, but"
                    f" {after} is {second}"
                )


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""The process in which a reader's sender is tried: ``python -m``, told on standard input.

It is one of its own so that a sender that never ends can be killed, and so that page faults are
those of the sender. It knows the sender only by what it does: by the calls that it makes, by what
the stream, the kernel and a receiver count.
"""

import asyncio
import bisect
import contextlib
import ctypes
import dataclasses
import functools
import inspect
import json
import os
import pickle
import resource
import signal
import socket
import statistics
import sys
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Awaitable, Callable, Generator, Iterator
from typing import Any

import numpy as np

import spead_tutorial.send.asyncio
from spead_tutorial import ThreadPool, wire
from spead_tutorial.send import StreamConfig

_TIMESTAMP, _SAMPLES = 0x1600, 0x3300
_STEPS = ("queued_ns", "first_packet_ns", "last_packet_ns", "completed_ns")
_OVER = object()
_PR_SET_THP_DISABLE = 41
_LARGEST, _ROOM = 1 << 16, 4 << 20


class UdpStream(spead_tutorial.send.asyncio.UdpStream):
    """A stream that counts the calls of its program, which knows it by its usual name."""

    def __init__(self, *how: Any) -> None:
        super().__init__(*how)
        self.futures: list[asyncio.Future[int]] = []
        self.sizes: list[int] = []
        self.prepare_ns: list[int] = []
        self.resumed_ns: list[int] = []
        self.went_on_ns = 0

    def async_send_heap(self, *what: Any, **how: Any) -> asyncio.Future[int]:
        return self._noted(1, functools.partial(super().async_send_heap, *what, **how))

    def async_send_heaps(self, heaps: Any, *what: Any, **how: Any) -> asyncio.Future[int]:
        heaps = heaps if hasattr(heaps, "__len__") else list(heaps)
        call = functools.partial(super().async_send_heaps, heaps, *what, **how)
        return self._noted(len(heaps), call)

    def _noted(self, n_heaps: int, call: Callable[[], asyncio.Future[int]]) -> asyncio.Future[int]:
        self.sizes.append(n_heaps)
        self.prepare_ns += [self.went_on_ns] * n_heaps
        self.futures.append(call())
        self.went_on_ns = time.monotonic_ns()
        return self.futures[-1]

    def resumed(self) -> None:
        """Note that the program goes on, after it has waited."""
        self.went_on_ns = time.monotonic_ns()
        self.resumed_ns.append(self.went_on_ns)

    def times(self) -> dict[str, list[int]]:
        """Return when each heap was where, as in `spead_tutorial.records.Timeline`."""
        taken = self.timeline()
        times = {name: taken[name].tolist() for name in _STEPS}
        times["prepare_ns"] = self.prepare_ns
        times["resumed_ns"] = [
            self.resumed_ns[bisect.bisect_left(self.resumed_ns, moment)]
            for moment in times["completed_ns"]
        ]
        start = self.prepare_ns[0]
        return {name: [moment - start for moment in found] for name, found in times.items()}

    def in_flight(self) -> int:
        """Say of how many calls heaps were under way when a call was made: the median."""
        times = self.timeline()
        queued, completed, first = [], [], 0
        for size in self.sizes:
            heaps = times[first : first + size]
            first += size
            if size and len(heaps) == size:
                queued.append(int(heaps["queued_ns"][0]))
                completed.append(int(heaps["completed_ns"][-1]))
        begun: list[int] = []  # when the calls so far were over, in order
        counts = []
        for moment, end in zip(queued, completed, strict=True):
            bisect.insort(begun, end)
            counts.append(len(begun) - bisect.bisect_right(begun, moment))
        return statistics.median_low(counts) if counts else 0

    def failure(self) -> str | None:
        """Say how a call failed, of those whose results are there."""
        over = [future for future in self.futures if future.done() and not future.cancelled()]
        errors = [error for future in over if (error := future.exception()) is not None]
        return _in_words(errors[0]) if errors else None


@dataclasses.dataclass(frozen=True, slots=True)
class _Watched:
    """Awaits what a sender returned, and tells the stream whenever that goes on."""

    going: Any
    stream: UdpStream

    def __await__(self) -> Generator[Any, Any, None]:
        steps = self.going.__await__()
        self.stream.resumed()
        waits_for = next(steps, _OVER)
        while waits_for is not _OVER:
            yield waits_for
            self.stream.resumed()
            waits_for = next(steps, _OVER)


def _in_words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


async def _send(told: dict[str, Any], target: tuple[str, int]) -> dict[str, Any]:
    """Let the sender send, and say what it did."""
    send: Callable[..., Awaitable[None] | None] = told["send"]
    config = StreamConfig(
        max_packet_size=told["packet_size"],
        max_heaps=told["max_heaps"],
        rate=told["rate"],
        # No two packets at once for a receiver: a program has time before each of them leaves.
        burst_size=0 if told["target"] is None else StreamConfig.DEFAULT_BURST_SIZE,
        timeline=2 * told["n_heaps"],
    )
    with ThreadPool() as pool, UdpStream(pool, [target], config) as stream:
        before, begin = resource.getrusage(resource.RUSAGE_SELF), time.monotonic_ns()
        raised = None
        try:
            going = send(stream, told["heap_size"], told["n_heaps"])
            if inspect.isawaitable(going):
                await _Watched(going, stream)
        except Exception as error:
            raised = _raised(error, send)
        unfinished = sum(not future.done() for future in stream.futures)
        await stream.async_flush()
        elapsed, after = time.monotonic_ns() - begin, resource.getrusage(resource.RUSAGE_SELF)
        await asyncio.sleep(0)  # futures are done only while the event loop runs
        stream.resumed()
        failed, stats = stream.failure(), stream.stats
        failure = raised or failed
        return {
            "failure": failure,
            "times": stream.times() if told["watch"] and failure is None else None,
            "calls": len(stream.futures),
            "in_flight": stream.in_flight(),
            "unfinished": unfinished,
            "elapsed_ns": elapsed,
            "page_faults": after.ru_minflt - before.ru_minflt,
            "page_size": resource.getpagesize(),
            "heaps": stats.heaps,
            "packets": stats.packets,
            "messages": stats.messages,
            "send_calls": stats.send_calls,
        }


def _raised(error: Exception, send: Callable[..., Any]) -> str:
    """Say what a sender raised, and where in the cell that it is of."""
    cell = inspect.unwrap(send).__code__.co_filename if inspect.isroutine(send) else None
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == cell
    ]
    return f"{_in_words(error)} (line {lines[-1]} of its cell)" if lines else _in_words(error)


@contextlib.contextmanager
def _receiving(heap_size: int) -> Iterator[tuple[tuple[str, int], list[list[int]]]]:
    """Receive packets on loopback; yield where, and a list that is then filled with the heaps.

    Each heap is its timestamp, and its lowest and its highest sample.
    """
    packets: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM)
        receiver.bind(("127.0.0.1", 0))

        def receive() -> None:
            while packet := receiver.recv(_LARGEST):
                packets.append(packet)

        thread = threading.Thread(target=receive, daemon=True)
        thread.start()
        heaps: list[list[int]] = []
        yield receiver.getsockname(), heaps
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", receiver.getsockname())
        thread.join()
    heaps += _heaps(packets, heap_size)


def _heaps(packets: list[bytes], heap_size: int) -> Iterator[list[int]]:
    """Put heaps together, in the order in which they came; yield those that are whole."""
    parts: dict[int, list[wire.Packet]] = defaultdict(list)
    for packet in map(wire.parse, packets):
        parts[packet.heap_cnt].append(packet)
    for of_heap in parts.values():
        payload = b"".join(
            part.payload for part in sorted(of_heap, key=lambda part: part.payload_offset)
        )
        pointers = {item.id: item.value for part in of_heap for item in part.items}
        begin = pointers.get(_SAMPLES, 0)
        samples = np.frombuffer(payload[begin : begin + heap_size], np.int8)
        whole = len(payload) == of_heap[0].heap_length and len(samples) == heap_size
        if whole and {_SAMPLES, _TIMESTAMP} <= pointers.keys():
            yield [pointers[_TIMESTAMP], int(samples.min()), int(samples.max())]


def main() -> None:
    result = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the sender prints does not come between
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    told = pickle.load(sys.stdin.buffer)
    if told["small_pages"]:
        # The kernel may otherwise bring 2 MiB with one page fault, on some machines.
        ctypes.CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)
    signal.alarm(told["limit_s"])
    if told["target"] is not None:
        done = asyncio.run(_send(told, told["target"]))
    else:
        with _receiving(told["heap_size"]) as (target, arrived):
            done = asyncio.run(_send(told, target))
        done["arrived"] = arrived
    json.dump(done, result)
    result.close()


if __name__ == "__main__":
    main()

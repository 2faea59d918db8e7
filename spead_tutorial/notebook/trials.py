# SPDX-License-Identifier: BSD-3-Clause
"""Trying a sender that is a function of a notebook: what it did, as others counted it.

It sends in a process of its own, so that one that never ends can be killed, and so that page faults
are those of the sender. What is known of it is what it did: its calls, and what the stream and the
kernel count.
"""

import asyncio
import base64
import contextlib
import ctypes
import dataclasses
import inspect
import json
import logging
import pickle
import resource
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from spead_tutorial import ThreadPool
from spead_tutorial.check.trying import collecting, with_line
from spead_tutorial.ledger import Gap
from spead_tutorial.measure.place import Place
from spead_tutorial.measure.running import Done, finish
from spead_tutorial.measure.timeline import UdpStream, Watched
from spead_tutorial.notebook.measuring import NotebookError
from spead_tutorial.send import StreamConfig

__all__ = ["Trial", "try_sender"]

_PROCESS = "from spead_tutorial.notebook.trials import main; main()"
#: What cloudpickle calls the file of a cell.
_PICKLED = "<dynamic-code>"
#: Seconds in which a sender has to end; and, beyond it, those that its process takes at most to
#: begin on a busy machine.
_LIMIT_S, _BEGIN_S = 8, 60
_PR_SET_THP_DISABLE = 41


@dataclasses.dataclass(frozen=True, slots=True)
class Trial:
    """What a sender did; made by `try_sender`.

    Packets that `arrived` are those of one who sent to a socket; None where it sent to the place,
    which has no receiver.
    """

    #: Why it did not come to its end, or which call failed unseen; None where all went well. If
    #: there is one, nothing else is known but what it printed.
    failure: str | None
    calls: int = 0  #: How often it called its stream to send.
    #: Of how many of these calls heaps were under way when one was made, that one included: the
    #: median.
    in_flight: int = 0
    unfinished: int = 0  #: Futures that were not done when it came back.
    elapsed_ns: int = 0  #: From its call until its last heap was sent, in ns.
    page_faults: int = 0  #: Page faults meanwhile.
    page_size: int = 0  #: Bytes of a page.
    heaps: int = 0  #: What its stream counted, as in `spead_tutorial.send.StreamStats`.
    packets: int = 0  #: As with heaps.
    messages: int = 0  #: As with heaps.
    send_calls: int = 0  #: As with heaps.
    arrived: list[bytes] | None = None
    #: When each heap was where, by the names of `spead_tutorial.measure.records.Timeline`; None
    #: where that was not asked for.
    times: dict[str, list[int]] | None = None
    said: str = ""  #: What it printed.


def try_sender(
    place: Place,
    send: Callable[..., Any],
    *,
    heap_size: int,
    n_heaps: int,
    packet_size: int = 9000,
    max_heaps: int = 2,
    rate: float = 0.0,
    receive: bool = False,
    small_pages: bool = False,
    watch: bool = False,
) -> Trial:
    """Call a function that sends heaps, in a process of its own, and say what it did.

    It is called as ``send(stream, heap_size, n_heaps)`` with a stream of
    `spead_tutorial.send.asyncio`, which is as `packet_size`, `max_heaps` and `rate` say; what it
    returns is awaited. It may use what the notebook has defined. It sends to the place, or, to
    `receive` the packets, to a receiver on its loopback. With `small_pages` the kernel gives it no
    huge ones, so that page faults are the same everywhere; and `watch` notes when each heap was
    prepared and sent. A `NotebookError` says that the sender cannot be tried at all, or that the
    lab's device counted other messages than the stream did.
    """
    job: dict[str, Any] = {
        "send": send,
        "heap_size": heap_size,
        "n_heaps": n_heaps,
        "config": {"max_packet_size": packet_size, "max_heaps": max_heaps, "rate": rate},
        "small_pages": small_pages,
        "watch": watch,
        "limit_s": _LIMIT_S,
        "target": (place.address, place.port),
    }
    arrived = None
    with contextlib.ExitStack() as stack:
        if receive:
            anywhere = collecting(place.socket, ("127.0.0.1", 0))
            job["target"], arrived = stack.enter_context(anywhere)
            # No two packets at once: a program has time before each of them leaves.
            job["config"] |= {"burst_size": 0}
        seen = stack.enter_context(place.watching())
        argv = [sys.executable, "-Pu", "-c", _PROCESS]
        limit_s = _LIMIT_S + _BEGIN_S
        done = finish(place.run, "sender", argv, limit_s, input=_packed(job))
    trial = _trial(done, send)
    if place.is_lab and not receive and trial.failure is None:
        others = "something else was sent meanwhile, so try again"
        way = "between the stream and the device"
        gap = Gap(way, trial.messages, seen.packets, unit="message", surplus=others)
        if gap.complaint is not None:
            raise NotebookError(gap.complaint)
    return dataclasses.replace(trial, arrived=arrived)


def _packed(job: dict[str, Any]) -> str:
    """Pack a function of the notebook, with what it uses of it, for another process."""
    try:
        import cloudpickle
    except ImportError:
        raise NotebookError(
            "cloudpickle is not installed: pip install 'spead-tutorial[notebook]'"
        ) from None
    try:
        return base64.b64encode(cloudpickle.dumps(job)).decode()
    except Exception as error:  # what the notebook has defined may raise
        raise NotebookError(
            f"the sender uses something that cannot go into another process ({error}): make it"
            " inside of the function"
        ) from None


def _trial(done: Done, send: Callable[..., Any]) -> Trial:
    """Return what a sender's process said of it."""
    if done.status == -signal.SIGALRM:
        words = f"it did not end within {_LIMIT_S} s, and was ended: something waits for ever"
        return Trial(f"{done.program}: {words}", said=done.output)
    if done.status != 0 or not done.said:
        code = getattr(inspect.unwrap(send), "__code__", None)
        cell = code.co_filename if code is not None else ""
        called = _PICKLED if f'File "{_PICKLED}"' in done.errors else cell
        return Trial(with_line(done, cell, called), said=done.output)
    printed = done.output.rstrip("\n").rpartition("\n")[0]
    return Trial(None, **done.said, said=printed + done.errors)


# ---- The process of the sender ----


async def _send(job: dict[str, Any]) -> dict[str, Any]:
    """Let the sender send, and say what it did."""
    config = StreamConfig(**job["config"], timeline=2 * job["n_heaps"])
    with ThreadPool() as pool, UdpStream(pool, [job["target"]], config) as stream:
        before, begin = resource.getrusage(resource.RUSAGE_SELF), time.monotonic_ns()
        going = job["send"](stream, job["heap_size"], job["n_heaps"])
        if inspect.isawaitable(going):
            await Watched(going, stream.watch.resumed)
        unfinished = sum(not future.done() for future in stream.futures)
        await stream.async_flush()
        elapsed, after = time.monotonic_ns() - begin, resource.getrusage(resource.RUSAGE_SELF)
        await asyncio.sleep(0)  # futures are done only while the event loop runs
        stream.watch.resumed()
        for future in stream.futures:
            if future.done() and not future.cancelled():
                future.result()  # raises what may have happened unseen
        stats, heaps = stream.stats, stream.timeline()
        return {
            "times": stream.watch.times(heaps) if job["watch"] else None,
            "calls": len(stream.futures),
            "in_flight": stream.watch.in_flight(heaps),
            "unfinished": unfinished,
            "elapsed_ns": elapsed,
            "page_faults": after.ru_minflt - before.ru_minflt,
            "page_size": resource.getpagesize(),
            "heaps": stats.heaps,
            "packets": stats.packets,
            "messages": stats.messages,
            "send_calls": stats.send_calls,
        }


def main() -> None:
    """Do what is told on standard input, and say what came of it in the last line."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # of futures of a sender that failed
    job = pickle.loads(base64.b64decode(sys.stdin.read()))
    if job["small_pages"]:
        # The kernel may otherwise bring 2 MiB with one page fault, on some machines.
        ctypes.CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)
    signal.alarm(job["limit_s"])
    print(f"\n{json.dumps(asyncio.run(_send(job)))}")

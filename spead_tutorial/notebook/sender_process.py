# SPDX-License-Identifier: BSD-3-Clause
"""The process in which a reader's sender is tried: ``python -m``, told on standard input.

It is one of its own so that a sender that never ends can be killed, and so that page faults are
those of the sender. It knows the sender only by what it does: by the calls that it makes, by what
the stream and the kernel count. That is its last line; a sender that fails, fails with its error.
"""

import asyncio
import base64
import ctypes
import inspect
import json
import logging
import pickle
import resource
import signal
import sys
import time
from typing import Any

from spead_tutorial import ThreadPool
from spead_tutorial.measure.watched import UdpStream, Watched
from spead_tutorial.send import StreamConfig

_PR_SET_THP_DISABLE = 41


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
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # of futures of a sender that failed
    job = pickle.loads(base64.b64decode(sys.stdin.read()))
    if job["small_pages"]:
        # The kernel may otherwise bring 2 MiB with one page fault, on some machines.
        ctypes.CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)
    signal.alarm(job["limit_s"])
    print(f"\n{json.dumps(asyncio.run(_send(job)))}")


if __name__ == "__main__":
    main()

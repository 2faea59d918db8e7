# SPDX-License-Identifier: BSD-3-Clause
"""Trying a sender that is a function of a notebook: what it did, as others counted it."""

import dataclasses
import json
import linecache
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from spead_tutorial.notebook.measuring import NotebookError
from spead_tutorial.notebook.place import NotebookPlace

__all__ = ["Trial", "try_sender"]

_PROCESS = "spead_tutorial.notebook.sender_process"
#: Seconds in which a sender has to end; and, beyond it, those that its process takes at most to
#: begin on a busy machine.
_LIMIT_S, _BEGIN_S = 8, 60


@dataclasses.dataclass(frozen=True, slots=True)
class Trial:
    """What a sender did; made by `try_sender`.

    Parameters
    ----------
    failure : str or None
        Why it did not come to its end, or which call failed unseen; None where all went well.
    calls : int
        How often it called its stream to send.
    in_flight : int
        Of how many of these calls heaps were under way when one was made, that one included: the
        median.
    unfinished : int
        Futures that were not done when it came back.
    elapsed_ns : int
        From its call until its last heap was sent, in ns.
    page_faults, page_size : int
        Page faults meanwhile, and bytes of a page.
    heaps, packets, messages, send_calls : int
        What its stream counted, as in `spead_tutorial.send.StreamStats`.
    arrived : sequence of (int, int, int), optional
        Of each whole heap, in the order of arrival, its timestamp, and its lowest and highest
        sample; None where it sent to the place, where nobody receives.
    times : mapping, optional
        When each heap was where, by the names of `spead_tutorial.records.Timeline`; None where
        that was not asked for.
    said : str
        What it printed.
    """

    failure: str | None
    calls: int
    in_flight: int
    unfinished: int
    elapsed_ns: int
    page_faults: int
    page_size: int
    heaps: int
    packets: int
    messages: int
    send_calls: int
    arrived: list[list[int]] | None = None
    times: dict[str, list[int]] | None = None
    said: str = ""


def try_sender(
    place: NotebookPlace,
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

    Parameters
    ----------
    place : NotebookPlace
        Where to send to.
    send : function
        Called as ``send(stream, heap_size, n_heaps)`` with a stream of
        `spead_tutorial.send.asyncio`; what it returns is awaited. It may use what the notebook
        has defined.
    heap_size, n_heaps : int
        What it is told: bytes of samples in a heap, and how many heaps to send.
    packet_size, max_heaps, rate
        As for `spead_tutorial.send.StreamConfig`; `packet_size` is ``max_packet_size`` there.
    receive : bool
        Whether to send to a receiver on the place's loopback, which takes the heaps apart.
    small_pages : bool
        Whether the kernel may give it no huge pages, so that page faults are the same everywhere.
    watch : bool
        Whether to note when each heap was prepared and sent.

    Raises
    ------
    NotebookError
        Where the sender cannot be tried at all, or the lab's device counted other messages than
        the stream did.
    """
    told = {
        "send": send,
        "heap_size": heap_size,
        "n_heaps": n_heaps,
        "packet_size": packet_size,
        "max_heaps": max_heaps,
        "rate": rate,
        "small_pages": small_pages,
        "watch": watch,
        "limit_s": _LIMIT_S,
        "target": None if receive else (place.address, place.port),
    }
    argv = [sys.executable, "-P", "-m", _PROCESS]
    with place.watching() as seen:
        try:
            done = place.run(argv, input=_packed(told), text=False, timeout=_LIMIT_S + _BEGIN_S)
        except subprocess.TimeoutExpired:
            return _ended(f"it could not be ended within {_LIMIT_S + _BEGIN_S} s")
    trial = _told(done, send)
    if place.is_lab and not receive and trial.failure is None and seen.packets != trial.messages:
        raise NotebookError(
            f"the device counted {seen.packets} messages, and the stream {trial.messages}:"
            " something else was sent meanwhile, so try again"
        )
    return trial


def _packed(told: dict[str, Any]) -> bytes:
    """Pack a function of the notebook, with what it uses of it, for another process."""
    try:
        import cloudpickle
    except ImportError:
        raise NotebookError(
            "cloudpickle is not installed: pip install 'spead-tutorial[notebook]'"
        ) from None
    try:
        packed: bytes = cloudpickle.dumps(told)
    except Exception as error:  # whatever the notebook has defined may raise
        raise NotebookError(
            f"the sender uses something that cannot go into another process ({error}): make it"
            " inside of the function"
        ) from None
    return packed


def _told(done: subprocess.CompletedProcess[bytes], send: Callable[..., Any]) -> Trial:
    """Return what a sender's process said of it."""
    said = done.stderr.decode(errors="replace")
    if done.returncode == -signal.SIGALRM:
        words = f"it did not end within {_LIMIT_S} s, and was ended: something waits for ever"
        return _ended(words, said)
    if done.returncode < 0:
        return _ended(f"its process was ended by {signal.Signals(-done.returncode).name}", said)
    if done.returncode > 0 or not done.stdout:
        last = said.strip().rpartition("\n")[2] or "it said nothing"
        return _ended(f"its process ended with status {done.returncode}: {last}")
    trial = Trial(**json.loads(done.stdout), said=said)
    if trial.failure is None:
        return trial
    return dataclasses.replace(trial, failure=_with_line(trial.failure, send))


def _ended(failure: str, said: str = "") -> Trial:
    return Trial(failure, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, said=said)


def _with_line(failure: str, send: Callable[..., Any]) -> str:
    """Add to the number of a line what is in it: only this process has seen the cell."""
    found = re.search(r"\(line (\d+) of its cell\)$", failure)
    code = getattr(send, "__code__", None)
    if found is None or code is None:
        return failure
    line = linecache.getline(code.co_filename, int(found[1])).strip()
    return f"{failure[:-1]}: {line})" if line else failure

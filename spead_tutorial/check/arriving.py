# SPDX-License-Identifier: BSD-3-Clause
"""Sending known values to a receiver that a reader wrote, and looking at what it says of them."""

import contextlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

import spead_tutorial
import spead_tutorial.send
from spead_tutorial.chapters.catalogue import ReceiverExercise
from spead_tutorial.check.trying import with_line
from spead_tutorial.lab import PORT, Arrivals, Counters, Journey, Lab
from spead_tutorial.ledger import Gap, first_complaint
from spead_tutorial.measure.delivery import NO_ACCOUNT, listening, receiving_lab
from spead_tutorial.measure.programs import Done, ProgramError
from spead_tutorial.measure.verify import make_group

#: More heaps than are in a chunk, of a size that is no power of two, and of several packets each.
HEAPS, HEAP_SIZE, _PACKET_SIZE = 300, 8000, 1472
#: So slowly that no receiver loses any of it because it is slow; the values are seeded.
_BYTES_PER_S, _SEED = 20e6, 3
_ATTEMPTS = 5
_END_S = 15.0  # until a receiver has ended that got the end of the stream
_SILENCE_S = 10  # after which it is to end without that
_CLOSE = 0.011  # what is printed has two digits
_LINE = re.compile(r"^Timestamp: +(\d+) +Power: +(\S+) *$", re.M)
_LAST = re.compile(r"^Received (\d+) heaps$", re.M)


def samples(i: int) -> npt.NDArray[np.int8]:
    """Return a heap's samples: random, and louder in some heaps than in others."""
    most = 1 + i * 37 % 127
    return np.random.default_rng((_SEED, i)).integers(-most - 1, most + 1, HEAP_SIZE, np.int8)


def power(first: int, n: int = 1) -> float:
    """Return the mean of the squares of what was sent in some heaps."""
    squares = (np.square(samples(i), dtype=np.int64).mean() for i in range(first, first + n))
    return float(sum(squares) / n)


def fault(exercise: ReceiverExercise, program: Path) -> str | None:
    """Send to a receiver in a lab of its own, and say what is wrong with what it prints, if any."""
    argv, what = [sys.executable, str(program)], (HEAP_SIZE, str(PORT), "-t", str(_SILENCE_S))
    with receiving_lab() as lab:
        for _ in range(_ATTEMPTS):
            before, counted = lab.receiver.arrivals(), lab.counters()
            try:
                with listening(lab.receiver, exercise.chapter, argv, *what, text=True) as receiver:
                    sent = _send(lab, exercise)
                    done = receiver.wait(_END_S)
            except ProgramError as error:
                return str(error)
            device, arrivals = lab.counters() - counted, lab.receiver.arrivals() - before
            if arrivals.no_room == 0:
                wrong = first_fault(exercise, done, program)
                return wrong or _unaccounted(done, sent, device, arrivals)
    return (
        f"{program.stem}: its socket had no room for {arrivals.no_room} packets, at"
        f" {_BYTES_PER_S / 1e6:g} MB/s, {_ATTEMPTS} times: it takes packets too slowly, or this"
        " machine is busy"
    )


def _send(lab: Lab, exercise: ReceiverExercise) -> int:
    """Send all heaps, and the end, and return how many packets these were."""
    config = spead_tutorial.send.StreamConfig(max_packet_size=_PACKET_SIZE, rate=_BYTES_PER_S)
    group = make_group(HEAP_SIZE)
    with contextlib.ExitStack() as stack:
        sock = stack.enter_context(lab.socket())
        pool = stack.enter_context(spead_tutorial.ThreadPool())
        endpoints = [(lab.address, lab.port)]
        stream = stack.enter_context(spead_tutorial.send.UdpStream(pool, sock, endpoints, config))
        if exercise.gathers:  # in places of one size, as they are without descriptors
            stream.send_heap(group.get_heap(descriptors="all", data="none"))
        for i in range(HEAPS):
            group["timestamp"].value = i * HEAP_SIZE
            group["adc_samples"].value = samples(i)
            stream.send_heap(group.get_heap())
        stream.send_heap(group.get_end())
        return stream.stats.packets


# ---- What it says ----


def first_fault(exercise: ReceiverExercise, done: Done, program: Path) -> str | None:
    """Say what is wrong first with what a receiver has printed; None where nothing is."""
    if done.status < 0 or (done.status != 0 and not done.said):
        return with_line(done, str(program))
    found = [(int(at), text) for at, text in _LINE.findall(done.output)]
    wrong = _wrong_values(found, gathers=exercise.gathers)
    if wrong is not None:
        return wrong
    if exercise.counts:
        said = [int(n) for n in _LAST.findall(done.output)]
        if said != [HEAPS]:
            n = said[-1] if said else "no such line"
            return f"the last line: expected 'Received {HEAPS} heaps', found {n}"
    return None if "socket_datagrams" in done.said else NO_ACCOUNT


def _wrong_values(found: Sequence[tuple[int, str]], *, gathers: bool) -> str | None:
    """Say what is wrong with the powers that were printed, by the timestamp of their heaps."""
    if not found:
        return f"it printed no heap: expected {_expected(0, 1)}"
    lines = dict(found)
    for at, _ in found:
        if at % HEAP_SIZE or at >= HEAPS * HEAP_SIZE:
            return f"timestamp {at}: there is no such heap, as they have {HEAP_SIZE} samples each"
    if len(lines) < len(found):
        twice = next(at for at in lines if sum(at == other for other, _ in found) > 1)
        return f"heap {twice // HEAP_SIZE + 1}: it printed several lines of timestamp {twice}"
    heaps = sorted({0, *(at // HEAP_SIZE for at in lines)}) if gathers else list(range(HEAPS))
    for heap, following in zip(heaps, [*heaps[1:], HEAPS], strict=True):
        if heap * HEAP_SIZE not in lines:
            return f"heap {heap + 1} is missing: expected {_expected(heap, 1)}, found no line"
        n, text = following - heap, lines[heap * HEAP_SIZE]
        try:
            is_close = abs(float(text) - power(heap, n)) < _CLOSE
        except ValueError:
            is_close = False
        if not is_close:
            which = f"heaps {heap + 1} to {heap + n}" if n > 1 else f"heap {heap + 1}"
            return f"{which}: expected {_expected(heap, n)}, found Power: {text}"
    return None


def _expected(heap: int, n: int) -> str:
    return f"'Timestamp: {heap * HEAP_SIZE:<10} Power: {power(heap, n):.2f}'"


def _unaccounted(done: Done, sent: int, device: Counters, arrivals: Arrivals) -> str | None:
    """Say where what it counted does not add up with what was sent and arrived."""
    account = done.said
    complete = account["heaps_complete"]
    begun = complete + account["incomplete_heaps_evicted"] + account["incomplete_heaps_flushed"]
    checked = Journey.of(sent, account, arrivals=arrivals, device=device).check()
    if not checked.ok:
        return checked.text
    wrong = first_complaint((
        Gap("between the sender and the receiver", sent, account["socket_datagrams"]),
        Gap("or incomplete", HEAPS, complete, unit="heap"),
        Gap("or incomplete", HEAPS, begun + account["heaps_never_begun"], unit="heap"),
    ))  # fmt: skip
    return wrong or (done.complaint if done.status != 0 else None)

# SPDX-License-Identifier: BSD-3-Clause
"""Questions that a reader asks by choosing: each choice is run, and what came of it is shown.

In a live notebook that has ipywidgets, `explore` makes a control for each choice. All else, a page
or a test, gets what the first choices show. The functions that show it can be called as they are.
"""

import functools
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from spead_tutorial.chapters.tut_11_send_batch_heaps import Batch
from spead_tutorial.measure.place import Place
from spead_tutorial.measure.records import Timeline
from spead_tutorial.measure.verify import make_group
from spead_tutorial.notebook.measuring import QUICK, NotebookError, Run, live, measure, record
from spead_tutorial.notebook.showing import per_heap, picture, rate
from spead_tutorial.notebook.trials import Trial, try_sender
from spead_tutorial.results import plots
from spead_tutorial.results.units import size as in_words
from spead_tutorial.send import GroupMode

__all__ = ["explore", "try_batches", "try_depth", "try_memory"]

_MEMORY = {"new": "tut_8_send_heap_size", "used again": "tut_8_send_reuse_memory"}
_IN_FLIGHT = 128
_BYTES = (64 << 20) if QUICK else (512 << 20)

#: A row of a table, or None from what shows something by itself.
Shown = dict[str, Any] | None
#: What a choice is from: values, or names of values.
Choices = Sequence[Any] | Mapping[str, Any]


# ---- What can be asked ----


def try_depth(place: Place, depth: int = 2, random: bool = True, rate: float = 0.0) -> None:
    """Send heaps of 1 MiB, and draw when the program and the network thread worked.

    There are `depth` heaps in flight at most: with 1, program and thread take turns. The stream
    sends `rate` bytes/s at most; 0 is no limit.
    """
    send = functools.partial(_send_deep, depth=depth, random=random)
    how: Any = {"heap_size": 1 << 20, "packet_size": 1472}
    trial = _right(
        try_sender(place, send, n_heaps=24, max_heaps=depth, rate=rate, watch=True, **how)
    )
    times: dict[str, Any] = {name: tuple(one) for name, one in (trial.times or {}).items()}
    timeline = Timeline(
        case="",
        program="tut_5_send_pipeline" if depth > 1 else "tut_4_send_constant",
        language="python",
        random=random,
        variant=f"{depth} in flight",
        **how,
        **times,
    )
    picture(plots.timeline, record(place, timelines=[timeline]))


def try_memory(place: Place, heap_size: int = 1 << 20, memory: str = "new") -> Shown:
    """Run a program of chapter 8 once, and say how fast it was, and how many page faults it met.

    Its heaps have `heap_size` bytes of samples, whose memory is ``"new"`` or ``"used again"``.
    """
    if memory not in _MEMORY:
        raise ValueError(f"there is no memory {memory!r}: there is {' and '.join(_MEMORY)}")
    run = Run(_MEMORY[memory], heaps=max(4, _BYTES // heap_size), heap_size=heap_size)
    recording = measure(place, [run], 1)
    return {
        "heap": in_words(heap_size),
        "memory": memory,
        "page faults per heap": round(per_heap(recording, run, "page_faults"), 2),
        "MB/s": round(rate(recording, run) / 1e6),
    }


def try_batches(place: Place, batch: int = 1, heap_size: int = 8192) -> Shown:
    """Send heaps in batches, and say how many calls that took, and how fast it was.

    A call has `batch` heaps, of `heap_size` bytes of samples each. There are as many batches as 128
    heaps make, used in turn, and at least two, so that the number of heaps in flight does not
    depend on the batch.
    """
    send = functools.partial(_send_batches, batch=batch)
    n_heaps, in_flight = _BYTES // heap_size, batch * _batches(batch)
    trial = _right(
        try_sender(place, send, heap_size=heap_size, n_heaps=n_heaps, max_heaps=in_flight)
    )
    return {
        "heap": in_words(heap_size),
        "heaps in a batch": batch,
        "calls per heap": round(trial.calls / trial.heaps, 4),
        "system calls per heap": round(trial.send_calls / trial.heaps, 4),
        "MB/s": round(trial.heaps * heap_size / trial.elapsed_ns * 1e3),
    }


def _right(trial: Trial) -> Trial:
    if trial.failure is not None:
        raise NotebookError(trial.failure)
    return trial


async def _send_deep(
    stream: Any, heap_size: int, n_heaps: int, *, depth: int, random: bool
) -> None:
    """Send heaps, a number of them in flight."""
    group, rng = make_group(heap_size), np.random.default_rng(seed=1)
    under_way: deque[Any] = deque()
    for i in range(n_heaps):
        if random:
            samples = rng.integers(-100, 100, size=heap_size, dtype=np.int8)
        else:
            samples = np.full(heap_size, i, np.int8)
        group["timestamp"].value = i * heap_size
        group["adc_samples"].value = samples
        under_way.append(stream.async_send_heap(group.get_heap()))
        if len(under_way) == depth:
            await under_way.popleft()
    while under_way:
        await under_way.popleft()


def _batches(batch: int) -> int:
    """Return how many batches there are."""
    return max(2, _IN_FLIGHT // batch)


async def _send_batches(stream: Any, heap_size: int, n_heaps: int, *, batch: int) -> None:
    """Send heaps, a number of them with each call, as chapter 11's program does."""
    batches = [Batch(batch, heap_size) for _ in range(_batches(batch))]
    for first in range(0, n_heaps, batch):
        one = batches[first // batch % len(batches)]
        if one.future is not None:
            await one.future
        n = min(batch, n_heaps - first)
        index = np.arange(first, first + n)
        one.adc_samples[:n] = index.astype(np.int8)[:, np.newaxis]
        one.timestamps[:n] = index * heap_size
        one.future = stream.async_send_heaps(one.heaps[:n], GroupMode.SERIAL)
    for one in batches:
        if one.future is not None:
            await one.future


# ---- Choosing ----


def explore(show: Callable[..., Shown], place: Place, **choices: Choices) -> list[Any] | None:
    """Show what a function shows for what the reader chooses.

    The function is called as ``show(place, name=value, ...)``, as `try_depth` is, for each name
    with what is chosen from its values, or from those that have names in a mapping. The rows that
    it returns become a table, and are returned; to them every choice adds one. Without controls to
    choose by, it is what it shows for the first of each; if that is a row, there is a row for every
    value of the first choice.
    """
    named = {
        name: dict(of) if isinstance(of, Mapping) else {str(one): one for one in of}
        for name, of in choices.items()
    }
    rows: list[Any] = []

    def add(**chosen: Any) -> bool:
        row = show(place, **chosen)
        rows.extend([] if row is None else [row])
        return row is not None

    if live() and find_spec("ipywidgets") is not None:
        _with_controls(add, rows, named)
    else:
        _without_controls(add, rows, named)
    return rows or None


def _without_controls(
    add: Callable[..., bool], rows: list[Any], choices: Mapping[str, Mapping[str, Any]]
) -> None:
    chosen = {name: next(iter(of.values())) for name, of in choices.items()}
    if add(**chosen):
        name, of = next(iter(choices.items()))
        for value in list(of.values())[1:]:
            add(**chosen | {name: value})
    _show_rows(rows)
    print("(In a live notebook with ipywidgets, there are controls here.)")


def _with_controls(
    add: Callable[..., bool], rows: list[Any], choices: Mapping[str, Mapping[str, Any]]
) -> None:
    from IPython.display import display
    from ipywidgets import interactive

    def send(**chosen: Any) -> None:
        add(**chosen)
        _show_rows(rows)

    options = {name: list(of.items()) for name, of in choices.items()}
    controls = interactive(send, {"manual": True, "manual_name": "Send"}, **options)
    for control in controls.children[: len(options)]:
        control.description = control.description.replace("_", " ")
    display(controls)
    controls.update()


def _show_rows(rows: list[Any]) -> None:
    import pandas
    from IPython.display import display

    if rows:
        display(pandas.DataFrame(rows))

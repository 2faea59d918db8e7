# SPDX-License-Identifier: BSD-3-Clause
"""What the notebooks share: a place to send to, measurements, tables, pictures, exercises.

A notebook opens a lab, measures some programs there, and shows what came of it:

>>> from spead_tutorial import notebook, plots  # doctest: +SKIP
>>> place = notebook.open_place()  # doctest: +SKIP
The lab is open: packets go to dummy1 and nowhere else.
>>> before, after = notebook.Run("6"), notebook.Run("8")  # doctest: +SKIP
>>> recording = notebook.measure(place, [before, after])  # doctest: +SKIP
>>> notebook.gain(recording, before, after).median  # doctest: +SKIP
1.41

Where there can be no lab, the same cells send over loopback, and what they show is marked. IPython,
pandas and matplotlib, which come with the extra ``[notebook]``, are imported when they are used.
"""

from spead_tutorial.measure.heaps import make_group
from spead_tutorial.notebook.exercises import Exercise, Repair
from spead_tutorial.notebook.exploring import explore, try_batches, try_depth, try_memory
from spead_tutorial.notebook.measuring import (
    LOOPBACK,
    QUICK,
    ROUNDS,
    NotebookError,
    Run,
    close_place,
    heaps,
    live,
    measure,
    open_place,
    record,
    watch,
)
from spead_tutorial.notebook.showing import (
    by_heap_size,
    contents,
    gain,
    median_ms,
    overlapping,
    packet,
    per_heap,
    picture,
    predict_overlap,
    rate,
    samples,
    table,
    time_shares,
)
from spead_tutorial.notebook.trials import Trial, try_sender

__all__ = [
    "LOOPBACK",
    "QUICK",
    "ROUNDS",
    "Exercise",
    "NotebookError",
    "Repair",
    "Run",
    "Trial",
    "by_heap_size",
    "close_place",
    "contents",
    "explore",
    "gain",
    "heaps",
    "live",
    "make_group",
    "measure",
    "median_ms",
    "open_place",
    "overlapping",
    "packet",
    "per_heap",
    "picture",
    "predict_overlap",
    "rate",
    "record",
    "samples",
    "table",
    "time_shares",
    "try_batches",
    "try_depth",
    "try_memory",
    "try_sender",
    "watch",
]

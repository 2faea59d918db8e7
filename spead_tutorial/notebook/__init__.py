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
from spead_tutorial.notebook.exercises import Exercise
from spead_tutorial.notebook.exploring import explore, try_batches, try_depth, try_memory
from spead_tutorial.notebook.measuring import (
    QUICK,
    ROUNDS,
    NotebookError,
    Run,
    heaps,
    live,
    measure,
    record,
    watch,
)
from spead_tutorial.notebook.overlap import (
    median_ms,
    overlapping,
    predict_overlap,
    time_shares,
)
from spead_tutorial.notebook.packets import packet
from spead_tutorial.notebook.place import LOOPBACK, close_place, open_place
from spead_tutorial.notebook.repairs import Repair
from spead_tutorial.notebook.showing import (
    by_heap_size,
    contents,
    gain,
    per_heap,
    picture,
    rate,
    samples,
    table,
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

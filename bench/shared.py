# SPDX-License-Identifier: BSD-3-Clause
"""Machines of one kind that share a sweep, by workers of Dask's: each takes cases of some sizes.

Cases of one point are compared with each other, so they are all of one machine, as long as it is
there.
"""

import contextlib
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import CancelledError

from bench.plan import Plan, header_of, observed
from spead_tutorial.measure.case import Step
from spead_tutorial.measure.machine import differs
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.measure.records import Header, RecordError, Sample, Taken
from spead_tutorial.tools.array.workers import Workers, connected

_LOOK_S = 0.05


class Shared:
    """A plan's steps, on the workers of a scheduler."""

    def __init__(self, workers: Workers, plan: Plan) -> None:
        self._workers, self._plan = workers, plan
        points = sorted({case.point for case in plan.cases})
        self._lanes = {point: i % len(workers.all) for i, point in enumerate(points)}

    def header(self) -> Header:
        """Return what the record says of its machines, which have to be of one kind."""
        found = self._workers.each(header_of, [(self._plan,)] * len(self._workers.all))
        for worker, one in zip(self._workers.all, found, strict=True):
            if isinstance(one, Exception):
                raise RecordError(f"{worker.name}: {one}")
            if (why := differs(found[0], one)) is not None:
                raise RecordError(f"{worker.name} is of another kind: {why}")
        first: Header = found[0]
        return first

    def lane(self, step: Step) -> int:
        """Return which worker a step is for."""
        return self._lanes[step.case.point]

    def take(self, step: Step, known: Sample | None) -> list[Taken]:
        """Have a worker take a step: its own, or another one where that is lost."""
        alive = [i for i, one in enumerate(self._workers.all) if not one.lost]
        if not alive:
            raise RecordError("no worker is left: start some, and the same command goes on")
        own = self.lane(step)
        i = own if own in alive else alive[own % len(alive)]
        task = self._workers.submit(uuid.uuid4().hex, i, observed, self._plan, step, known)
        while not self._workers.is_over(task):
            time.sleep(_LOOK_S)
        if task[1].cancelled():  # after Ctrl-C
            raise CancelledError
        found = self._workers.outcome(task)
        if isinstance(found, Exception):
            raise ProgramError(f"its sample is lost: {found}")
        taken: list[Taken] = found
        return taken


@contextlib.contextmanager
def sharing(address: str, plan: Plan) -> Iterator[Shared]:
    """Lend what measures on the workers that a scheduler has."""
    with connected(address, 1) as client:
        yield Shared(Workers(client), plan)

# SPDX-License-Identifier: BSD-3-Clause
"""Workers of Dask's, of which no answer is waited for where one is gone, or stuck."""

import contextlib
import dataclasses
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from distributed import Client, Future

from spead_tutorial.ledger import some
from spead_tutorial.measure.programs import ProgramError

CONNECT_S = 60
#: Seconds after which a worker that gives no sign of life is given up.
STUCK_S = 30.0
_LOOK_S, _LOOK_AT_WORKERS_S = 0.05, 1.0


@contextlib.contextmanager
def connected(address: str, workers: int) -> Iterator[Client]:
    """Connect to a scheduler with so many workers; where there is none, that is one line."""
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise ProgramError(f"no scheduler of Dask's answers at {address}: {why}") from None
    with client:
        try:
            client.wait_for_workers(workers, timeout=CONNECT_S)
        except TimeoutError:
            found = _known_at(client).values()
            paused = sum(one["status"] == "paused" for one in found)
            way = "--memory-limit 0, as some are paused" if paused else "--no-nanny"
            raise ProgramError(
                f"the scheduler has {some(len(found) - paused, 'worker')}, not {workers}: on each"
                f" machine, start dask worker with {way}"
            ) from None
        yield client


def _known_at(client: Client) -> dict[str, Any]:
    """Return what a scheduler knows of its workers; in `scheduler_info` there are at times none."""
    assert client.scheduler is not None
    found: dict[str, Any] = client.sync(client.scheduler.identity, n_workers=-1)["workers"]
    return found


@dataclasses.dataclass
class Worker:
    """A worker of Dask's, and whether it lives."""

    address: str
    name: str
    sign: float = 0.0  # when it gave a sign of life, by the scheduler's clock
    seen: float = dataclasses.field(default_factory=time.monotonic)  # and when we saw that
    lost: str = ""  # why it was given up

    def give_up(self, why: str) -> None:
        self.lost = self.lost or f"{self.name} {why}"


#: What a worker runs as a task of Dask's.
Task = tuple[Worker, "Future[Any]"]


class Workers:
    """All workers of a client, in the order of their names."""

    def __init__(self, client: Client) -> None:
        self._client = client
        found = [Worker(address, str(one["name"])) for address, one in _known_at(client).items()]
        self.all = sorted(found, key=lambda one: (len(one.name), one.name))
        self._looked = time.monotonic()

    def submit(self, key: str, i: int, function: Callable[..., Any], *its: Any) -> Task:
        """Have the i-th worker call a function."""
        worker = self.all[i]
        return worker, self._client.submit(function, *its, key=key, workers=[worker.address])

    def wait(self, tasks: Sequence[Task], patience_s: float) -> bool:
        """Wait until tasks are over; say whether they are."""
        until = time.monotonic() + patience_s
        while not (are_over := all(map(self.is_over, tasks))) and time.monotonic() < until:
            time.sleep(_LOOK_S)
        return are_over

    def is_over(self, task: Task) -> bool:
        """Say whether a task has ended, or never will as its worker was given up."""
        self._look_at_workers()
        worker, future = task
        return bool(worker.lost) or future.status != "pending"

    def _look_at_workers(self) -> None:
        """Give up, now and then, workers that are gone or stuck."""
        now = time.monotonic()
        if now - self._looked < _LOOK_AT_WORKERS_S:
            return
        self._looked = now
        there = _known_at(self._client)
        for worker in self.all:
            sign = there.get(worker.address, {"last_seen": None})["last_seen"]
            if sign is None:
                worker.give_up("was lost")
            elif sign != worker.sign:
                worker.sign, worker.seen = sign, now
            elif now - worker.seen > STUCK_S:
                worker.give_up("is stuck")

    def outcome(self, task: Task) -> Any:
        """Return what a task has returned, or an exception; what has not ended does so now."""
        worker, future = task
        if future.status == "error":
            return future.exception()
        if future.status == "finished" and not worker.lost:
            try:
                return future.result(timeout=STUCK_S)
            except TimeoutError:  # the worker has it, and is stuck since
                worker.give_up("is stuck")
        future.cancel()
        return RuntimeError(worker.lost or f"{worker.name} did not end it in time")

    def ask(self, function: Callable[..., Any], its: list[tuple[Any, ...]]) -> list[Task]:
        """Have each worker call a function, with arguments of its own."""
        return [self.submit(uuid.uuid4().hex, i, function, *one) for i, one in enumerate(its)]

    def each(self, function: Callable[..., Any], its: list[tuple[Any, ...]]) -> list[Any]:
        """Return what the function returned on each worker, or its exception."""
        tasks = self.ask(function, its)
        self.wait(tasks, STUCK_S + 2 * _LOOK_AT_WORKERS_S)
        return list(map(self.outcome, tasks))

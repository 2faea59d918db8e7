# SPDX-License-Identifier: BSD-3-Clause
"""An array's programs as tasks of Dask's: started, watched and ended from one place.

All that is asked of workers is a task, and no task is waited for whose worker is gone, or stuck.
"""

import collections
import dataclasses
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from distributed import Client, Future

from spead_tutorial.chapters.catalogue import ARRAY
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.tools.array import agent
from spead_tutorial.tools.array.measured import Asked, Ended, Look, Machine, Measured

_SENDER, _RECEIVER = (one.name for one in ARRAY)
_PORTS = 1 << 16
_LOOK_S, _LOOK_AT_WORKERS_S = 0.05, 1.0
#: Seconds after which a worker that gives no sign of life is given up; and that receivers may take
#: to join, and switches after that, to learn who is in which group.
_STUCK_S, _JOIN_S, _SETTLE_S = 30.0, 30.0, 0.5
#: After so much silence a receiver ends; and it may take so much longer to say its account.
_SILENCE_S, _ACCOUNT_S = 3.0, 10.0


def workers_at(client: Client) -> dict[str, Any]:
    """Return what a scheduler knows of its workers; in `scheduler_info` there are at times none."""
    assert client.scheduler is not None
    found: dict[str, Any] = client.sync(client.scheduler.identity, n_workers=-1)["workers"]
    return found


@dataclasses.dataclass
class _Worker:
    """A worker of Dask's, and whether it lives."""

    address: str
    name: str
    sign: float = 0.0  # when it gave a sign of life, by the scheduler's clock
    seen: float = dataclasses.field(default_factory=time.monotonic)  # and when we saw that
    lost: str = ""  # why it was given up

    def give_up(self, why: str) -> None:
        self.lost = self.lost or f"{self.name} {why}"


#: What a worker runs as a task of Dask's: a program, or the answer to a question.
_Task = tuple[_Worker, "Future[Any]"]


class Engine:
    """One corner turn on the workers of a client."""

    def __init__(self, client: Client, asked: Asked) -> None:
        self._client, self._asked = client, asked
        self._run = f"array-{uuid.uuid4().hex[:12]}"
        found = workers_at(client).items()
        workers = [_Worker(address, str(one["name"])) for address, one in found]
        self._workers = sorted(workers, key=lambda one: (len(one.name), one.name))
        self._looked = time.monotonic()
        self._programs: list[tuple[Ended, _Task]] = []
        self._trouble: list[str] = []

    def measure(self) -> Measured:
        """Try it; Ctrl-C ends it early, with what has been measured until then."""
        asked, n = self._asked, len(self._workers)
        machines: list[Machine] = self._all(agent.describe, [(asked.data_network,)] * n)
        at = [j % n for j in range(asked.receivers)]
        places = _places(asked, [machines[i].address for i in at])
        here = [["--interface", one.address] if asked.groups else [] for one in machines]
        hosts, allowed = [host for host, _ in places], asked.allow_real_network
        self._all(
            agent.check,
            [(hosts, one.device if asked.groups else None, allowed) for one in machines],
        )
        before = self._looks(machines)
        result = Measured(asked, machines, [], [], [])
        try:
            for j, (host, port) in enumerate(places):
                options = ["-t", str(_SILENCE_S), "--lossy", *here[at[j]], f"{host}:{port}"]
                self._start("receiver", j, at[j], _RECEIVER, options)
            if self._have_joined():
                self._start_senders(here, places)
                self._until_ended()
        except KeyboardInterrupt:
            result.interrupted = True
        self._end()
        ended = [self._ended(*one) for one in self._programs]
        result.receivers, result.senders = ended[: asked.receivers], ended[asked.receivers :]
        after = self._looks(machines)
        result.looks = [b - a if a and b else None for a, b in zip(before, after, strict=True)]
        result.trouble = self._trouble
        return result

    # ---- Programs ----

    def _start(self, kind: str, i: int, machine: int, program: str, options: list[str]) -> None:
        asked, name = self._asked, f"{kind} {i}"
        common = ["-H", str(asked.heap_size), "--senders", str(asked.senders), "--json"]
        words = (program, asked.language)
        task = self._submit(
            f"{kind}-{i}", machine, agent.run_program,
            self._run, machine, name, words, *common, *options,
        )  # fmt: skip
        self._programs.append((Ended(name, machine), task))

    def _start_senders(self, here: list[list[str]], places: list[tuple[str, int]]) -> None:
        asked = self._asked
        text = f"all receivers have joined; sending {asked.rate:g} MB/s for {asked.seconds:g} s"
        print(f"spead-tutorial: {text}", file=sys.stderr, flush=True)
        size = ["-n", str(asked.heaps), "-p", str(asked.packet_size), "--rate", str(asked.rate)]
        size += ["--ttl", str(asked.ttl)] if asked.groups else []
        hosts = [f"{host}:{port}" for host, port in places]
        for i in range(asked.senders):
            machine = (asked.receivers + i) % len(self._workers)
            options = [*size, "--sender", str(i), *here[machine], *hosts]
            self._start("sender", i, machine, _SENDER, options)

    def _have_joined(self) -> bool:
        """Wait until all receivers listen; say which one does not."""
        until = time.monotonic() + _JOIN_S
        while waiting := self._silent():
            failed = [ended.name for ended, task in waiting if self._is_over(task)]
            if failed or time.monotonic() > until:
                late = ", ".join(failed or (ended.name for ended, _ in waiting))
                self._trouble.append(f"nothing was sent: {late} did not listen")
                return False
            time.sleep(_LOOK_S)
        time.sleep(_SETTLE_S)
        return True

    def _silent(self) -> list[tuple[Ended, _Task]]:
        """Return the receivers that have not said that they listen."""
        joined = {name for _, name in self._client.get_events(self._run)}
        return [one for one in self._programs if one[0].name not in joined]

    def _until_ended(self) -> None:
        """Wait for the senders, then for the receivers, which may have got no stop heap."""
        tasks = [task for _, task in self._programs]
        receivers, senders = tasks[: self._asked.receivers], tasks[self._asked.receivers :]
        patience_s = 2 * self._asked.seconds + _STUCK_S
        if not self._wait(senders, patience_s):
            self._trouble.append(f"senders did not end within {patience_s:g} s")
        self._wait(receivers, _SILENCE_S + 1)

    def _end(self) -> None:
        """Have all programs that still run say what they have counted."""
        tasks = [task for _, task in self._programs]
        if not self._wait(tasks, 0):
            asking = self._ask(agent.interrupt, [(self._run,)] * len(self._workers))
            self._wait([*tasks, *asking], _ACCOUNT_S)

    def _ended(self, ended: Ended, task: _Task) -> Ended:
        outcome = self._outcome(task)
        if isinstance(outcome, Ended):
            return outcome
        ended.lost = str(outcome)
        return ended

    # ---- Workers ----

    def _submit(self, what: str, machine: int, function: Callable[..., Any], *its: Any) -> _Task:
        worker, key = self._workers[machine], f"{self._run}-{what}"
        return worker, self._client.submit(function, *its, key=key, workers=[worker.address])

    def _wait(self, tasks: Sequence[_Task], patience_s: float) -> bool:
        until = time.monotonic() + patience_s
        while not all(map(self._is_over, tasks)):
            if time.monotonic() > until:
                return False
            time.sleep(_LOOK_S)
        return True

    def _is_over(self, task: _Task) -> bool:
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
        there = workers_at(self._client)
        for worker in self._workers:
            sign = there.get(worker.address, {"last_seen": None})["last_seen"]
            if sign is None:
                worker.give_up("was lost")
            elif sign != worker.sign:
                worker.sign, worker.seen = sign, now
            elif now - worker.seen > _STUCK_S:
                worker.give_up("is stuck")

    def _outcome(self, task: _Task) -> Any:
        """Return what a task has returned, or an exception; what has not ended does so now."""
        worker, future = task
        if future.status == "error":
            return future.exception()
        if future.status == "finished" and not worker.lost:
            try:
                return future.result(timeout=_STUCK_S)
            except TimeoutError:  # the worker has it, and is stuck since
                worker.give_up("is stuck")
        future.cancel()
        return RuntimeError(worker.lost or f"{worker.name} did not end it in time")

    def _ask(self, function: Callable[..., Any], its: list[tuple[Any, ...]]) -> list[_Task]:
        """Have each worker call a function, with arguments of its own."""
        return [self._submit(uuid.uuid4().hex, i, function, *one) for i, one in enumerate(its)]

    def _each(self, function: Callable[..., Any], its: list[tuple[Any, ...]]) -> list[Any]:
        """Return what the function returned on each worker, or its exception."""
        tasks = self._ask(function, its)
        self._wait(tasks, _STUCK_S + 2 * _LOOK_AT_WORKERS_S)
        return list(map(self._outcome, tasks))

    def _all(self, function: Callable[..., Any], its: list[tuple[Any, ...]]) -> list[Any]:
        """Do the same; what goes wrong on one of them goes wrong."""
        found = self._each(function, its)
        for one in found:
            if isinstance(one, Exception):
                raise ProgramError(str(one))
        return found

    def _looks(self, machines: list[Machine]) -> list[Look | None]:
        found = self._each(agent.look, [(one.device,) for one in machines])
        return [one if isinstance(one, Look) else None for one in found]


def _places(asked: Asked, addresses: list[str]) -> list[tuple[str, int]]:
    """Return host and first port of each receiver: those of one machine share no port."""
    before = collections.Counter[str]()
    places = []
    for address, host in zip(addresses, asked.hosts(addresses), strict=True):
        port = asked.port + before[address] * asked.senders
        if port + asked.senders > _PORTS:
            raise ProgramError(f"{host} has too few ports for {asked.senders} senders to each of"
                               " its receivers: take more machines")  # fmt: skip
        places.append((host, port))
        before[address] += 1
    return places

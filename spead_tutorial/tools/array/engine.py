# SPDX-License-Identifier: BSD-3-Clause
"""An array's programs as tasks of Dask's: started, watched and ended from one place."""

import collections
import contextlib
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
#: Seconds that a worker may take to answer, and receivers to join; and that switches have after it,
#: to learn who is in which group.
_ANSWER_S, _JOIN_S, _SETTLE_S = 30.0, 30.0, 0.5
#: After so much silence a receiver ends; and it may take so much longer to say its account.
_SILENCE_S, _ACCOUNT_S = 3.0, 10.0
_LOST = "its worker was lost"


class Engine:
    """One corner turn on the workers of a client."""

    def __init__(self, client: Client, asked: Asked, say: Callable[[str], None]) -> None:
        self._client, self._asked, self._say = client, asked, say
        self._run = f"array-{uuid.uuid4().hex[:12]}"
        found = client.scheduler_info(n_workers=-1)["workers"]
        names = {address: str(one["name"]) for address, one in found.items()}
        self._workers = sorted(names, key=lambda one: (len(names[one]), names[one]))
        self._alive, self._looked = set(self._workers), time.monotonic()
        self._joined: set[str] = set()
        self._tasks: list[tuple[Ended, Future[Any]]] = []
        self._trouble: list[str] = []

    def measure(self) -> Measured:
        """Try it; Ctrl-C ends it early, with what has been measured until then."""
        self._client.register_plugin(agent.Programs(self._run), name=self._run)
        self._client.subscribe_topic(self._run, lambda event: self._joined.add(event[1]))
        try:
            return self._measure()
        finally:
            with contextlib.suppress(OSError):  # of a worker that dies just now
                self._client.unregister_worker_plugin(self._run)  # which ends what still runs

    def _measure(self) -> Measured:
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
        ended = [self._ended(*one) for one in self._tasks]
        result.receivers, result.senders = ended[: asked.receivers], ended[asked.receivers :]
        after = self._looks(machines)
        result.looks = [b - a if a and b else None for a, b in zip(before, after, strict=True)]
        result.trouble = self._trouble
        return result

    # ---- Programs ----

    def _start(self, kind: str, i: int, machine: int, program: str, options: list[str]) -> None:
        asked, name = self._asked, f"{kind} {i}"
        common = ["-H", str(asked.heap_size), "--senders", str(asked.senders), "--json"]
        task = self._client.submit(
            agent.run_program, self._run, machine, name, (program, asked.language), *common,
            *options, key=f"{self._run}-{kind}-{i}", workers=[self._workers[machine]], pure=False,
        )  # fmt: skip
        self._tasks.append((Ended(name, machine), task))

    def _start_senders(self, here: list[list[str]], places: list[tuple[str, int]]) -> None:
        asked = self._asked
        self._say(f"all receivers have joined; sending for {asked.seconds:g} s")
        size = ["-n", str(asked.heaps), "-p", str(asked.packet_size), "--rate", str(asked.rate)]
        size += ["--ttl", str(asked.ttl)] if asked.groups else []
        hosts = [f"{host}:{port}" for host, port in places]
        for i in range(asked.senders):
            machine = (asked.receivers + i) % len(self._workers)
            options = [*size, "--sender", str(i), *here[machine], *hosts]
            self._start("sender", i, machine, _SENDER, options)

    def _have_joined(self) -> bool:
        """Wait until all receivers listen; say which one does not."""
        receivers = list(self._tasks)
        until = time.monotonic() + _JOIN_S
        while waiting := [one for one in receivers if one[0].name not in self._joined]:
            failed = [ended.name for ended, task in waiting if self._is_over(ended, task)]
            if failed or time.monotonic() > until:
                late = ", ".join(failed or (ended.name for ended, _ in waiting))
                self._trouble.append(f"nothing was sent: {late} did not listen")
                return False
            time.sleep(_LOOK_S)
        time.sleep(_SETTLE_S)
        return True

    def _until_ended(self) -> None:
        """Wait for the senders, then for the receivers, which may have got no stop heap."""
        senders, receivers = ([one for one in self._tasks if one[0].name.startswith(kind)]
                              for kind in ("sender", "receiver"))  # fmt: skip
        patience_s = 2 * self._asked.seconds + _ANSWER_S
        if not self._wait(senders, patience_s):
            self._trouble.append(f"senders did not end within {patience_s:g} s")
        self._wait(receivers, _SILENCE_S + 1)

    def _wait(self, tasks: Sequence[tuple[Ended, Future[Any]]], patience_s: float) -> bool:
        until = time.monotonic() + patience_s
        while not all(self._is_over(*one) for one in tasks):
            if time.monotonic() > until:
                return False
            time.sleep(_LOOK_S)
        return True

    def _end(self) -> None:
        """Have all programs that still run say what they have counted."""
        if self._wait(self._tasks, 0):
            return
        alive = sorted(self._alive)
        self._client.run(agent.interrupt, self._run, "", workers=alive, on_error="ignore")
        self._wait(self._tasks, _ACCOUNT_S)

    def _is_over(self, ended: Ended, task: "Future[Any]") -> bool:
        self._look_at_workers()
        if task.status == "pending" and self._workers[ended.machine] in self._alive:
            return False
        if task.status == "pending":
            task.cancel()  # or it would wait for the worker to come back
        return True

    def _ended(self, ended: Ended, task: "Future[Any]") -> Ended:
        if task.status == "finished":
            found: Ended = task.result(timeout=_ANSWER_S)
            return found
        error = task.exception(timeout=_ANSWER_S) if task.status == "error" else None
        is_lost = error is None or type(error).__name__ == "KilledWorker"
        ended.lost = (
            "it did not end" if task.status == "pending" else _LOST if is_lost else str(error)
        )
        return ended

    # ---- Workers ----

    def _look_at_workers(self) -> None:
        """Notice, now and then, workers that are gone: their tasks would wait for ever."""
        if time.monotonic() - self._looked < _LOOK_AT_WORKERS_S:
            return
        self._looked = time.monotonic()
        there = self._client.scheduler_info(n_workers=-1)["workers"]
        self._alive &= set(there)

    def _each(self, function: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> list[Any]:
        """Call a function on each worker; return what it returned, or its exception."""
        tasks = [
            (Ended("", i), self._client.submit(function, *arguments[i], workers=[one], pure=False))
            for i, one in enumerate(self._workers)
        ]
        self._wait(tasks, _ANSWER_S)
        found: list[Any] = []
        for _, task in tasks:
            if task.status in ("finished", "error"):
                found.append(task.exception(timeout=_ANSWER_S) or task.result(timeout=_ANSWER_S))
            else:
                found.append(RuntimeError(f"a worker gave no answer within {_ANSWER_S:g} s"))
        return found

    def _all(self, function: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> list[Any]:
        """Call a function on each worker; what goes wrong on one of them goes wrong."""
        found = self._each(function, arguments)
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

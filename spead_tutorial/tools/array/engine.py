# SPDX-License-Identifier: BSD-3-Clause
"""An array's programs as tasks of Dask's: started, watched and ended from one place."""

import collections
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any

from distributed import Client
from msgspec.structs import replace

from spead_tutorial.chapters.catalogue import ARRAY
from spead_tutorial.measure.corner_turn import Asked, Ended, Look, Machine, Measured
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.tools.array import agent
from spead_tutorial.tools.array.workers import Task, Workers

_SENDER, _RECEIVER = (one.name for one in ARRAY)
_PORTS = 1 << 16
_LOOK_S = 0.05
#: Seconds that receivers may take to join, and senders to begin; and that switches have after the
#: former, to learn who is in which group.
_JOIN_S, _BEGIN_S, _SETTLE_S = 30.0, 30.0, 0.5
#: After so much silence a receiver ends; and it may take so much longer to say its account.
_SILENCE_S, _ACCOUNT_S = 3.0, 10.0


class Engine:
    """One corner turn on the workers of a client."""

    def __init__(self, client: Client, asked: Asked) -> None:
        self._client, self._asked = client, asked
        self._run = f"array-{uuid.uuid4().hex[:12]}"
        self._workers = Workers(client)
        self._programs: list[tuple[Ended, Task]] = []
        self._trouble: list[str] = []

    def measure(self) -> Measured:
        """Try it; Ctrl-C ends it early, with what has been measured until then."""
        asked, n = self._asked, len(self._workers.all)
        machines: list[Machine] = self._all(agent.describe, [(asked.data_network,)] * n)
        at = [j % n for j in range(asked.receivers)]
        places = _places(asked, [machines[i].address for i in at])
        here = [["--interface", one.address] if asked.groups else [] for one in machines]
        hosts, allowed = [host for host, _ in places], asked.allow_real_network
        by = [one.device if asked.groups else None for one in machines]
        self._all(agent.check, [(hosts, device, allowed) for device in by])
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
        common = ["-H", str(asked.heap_size), "--senders", str(asked.senders), "--json", *options]
        what = self._run, machine, name, (program, asked.language), *common
        key = f"{self._run}-{kind}-{i}"
        task = self._workers.submit(key, machine, agent.run_program, *what)
        self._programs.append((Ended(name, machine), task))

    def _start_senders(self, here: list[list[str]], places: list[tuple[str, int]]) -> None:
        asked = self._asked
        text = f"all receivers have joined; sending {asked.rate:g} MB/s for {asked.seconds:g} s"
        print(f"spead-tutorial: {text}", file=sys.stderr, flush=True)
        size = ["-n", str(asked.heaps), "-p", str(asked.packet_size), "--rate", str(asked.rate)]
        size += ["--ttl", str(asked.ttl)] if asked.groups else []
        hosts = [f"{host}:{port}" for host, port in places]
        for i in range(asked.senders):
            machine = (asked.receivers + i) % len(self._workers.all)
            options = [*size, "--sender", str(i), *here[machine], *hosts]
            self._start("sender", i, machine, _SENDER, options)

    def _have_joined(self) -> bool:
        """Wait until all receivers listen; say which one does not."""
        until, waiting = (
            time.monotonic() + _JOIN_S,
            {one.name: task for one, task in self._programs},
        )
        while waiting:
            failed = [name for name, task in waiting.items() if self._workers.is_over(task)]
            if failed or time.monotonic() > until:
                late = ", ".join(failed or waiting)
                self._trouble.append(f"nothing was sent: {late} did not listen")
                return False
            time.sleep(_LOOK_S)
            for _, name in self._client.get_events(self._run):
                waiting.pop(name, None)
        time.sleep(_SETTLE_S)
        return True

    def _until_ended(self) -> None:
        """Wait for the senders, then for the receivers, which may have got no stop heap."""
        tasks = [task for _, task in self._programs]
        receivers, senders = tasks[: self._asked.receivers], tasks[self._asked.receivers :]
        patience_s = 2 * self._asked.seconds + _BEGIN_S
        if not self._workers.wait(senders, patience_s):
            self._trouble.append(f"senders did not end within {patience_s:g} s")
        self._workers.wait(receivers, _SILENCE_S + 1)

    def _end(self) -> None:
        """Have all programs that still run say what they have counted."""
        tasks = [task for _, task in self._programs]
        if not self._workers.wait(tasks, 0):
            asking = self._workers.ask(agent.interrupt, [(self._run,)] * len(self._workers.all))
            self._workers.wait([*tasks, *asking], _ACCOUNT_S)

    def _ended(self, begun: Ended, task: Task) -> Ended:
        found = self._workers.outcome(task)
        return found if isinstance(found, Ended) else replace(begun, lost=str(found))

    def _all(self, function: Callable[..., Any], its: list[tuple[Any, ...]]) -> list[Any]:
        """Call a function on each worker; what goes wrong on one of them goes wrong."""
        found = self._workers.each(function, its)
        for one in found:
            if isinstance(one, Exception):
                raise ProgramError(str(one))
        return found

    def _looks(self, machines: list[Machine]) -> list[Look | None]:
        found = self._workers.each(agent.look, [(one.device,) for one in machines])
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

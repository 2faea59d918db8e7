# SPDX-License-Identifier: BSD-3-Clause
"""An array in a lab: machines of its own, a worker in each, and the engine beside the switch.

The engine is in a process of its own in the lab, with the scheduler, which nobody else can reach.
"""

import contextlib
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from distributed import Client, LocalCluster

from spead_tutorial.lab import LabArray, LabError, LabProcess
from spead_tutorial.lab.array import DATA
from spead_tutorial.measure.corner_turn import Asked, Lost, Measured
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.tools.array.engine import Engine
from spead_tutorial.tools.array.workers import CONNECT_S, connected

#: What measures a corner turn on machines that are there.
Measure = Callable[[Asked], Measured]
_PORT = 8786
#: Dask's profiler looks at a worker's threads 100 times a second, and keeps what it has seen.
_PROFILE = "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED"
_ENGINE = f"import {__name__} as local; local.main()"


@contextlib.contextmanager
def lab_of(
    machines: int, slow: Mapping[int, float], losing: Mapping[int, float]
) -> Iterator[Measure]:
    """Make a lab, in which some links are slow or lose packets; lend what measures there."""
    with LabArray(machines) as lab, contextlib.ExitStack() as links:
        for i, rate in slow.items():
            links.enter_context(lab.machines[i].limited(round(rate * 8e6)))
        for i, share in losing.items():
            links.enter_context(lab.machines[i].losing(share))
        env = os.environ | {"DASK_TEMPORARY_DIRECTORY": lab.folder(), _PROFILE: "False"}
        for i in range(machines):
            _start_worker(lab, i, env)
        argv = [sys.executable, "-P", "-c", _ENGINE, lab.control, str(machines)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        engine = lab.switch.popen(argv, **pipes, env=env, start_new_session=True)
        if why := _answer(engine):  # before it, Ctrl-C would find Python starting
            raise ProgramError(why)

        def lost() -> list[Lost]:
            return [
                Lost(one.dropped() if i in slow else 0, one.lost() if i in losing else 0)
                for i, one in enumerate(lab.machines)
            ]

        def measure(asked: Asked) -> Measured:
            asked, before = msgspec.structs.replace(asked, data_network=str(DATA)), lost()
            measured = _measured(engine, asked)
            measured.switch = [b - a for a, b in zip(before, lost(), strict=True)]
            return measured

        yield measure


def _start_worker(lab: LabArray, i: int, env: Mapping[str, str]) -> None:
    machine = lab.machines[i]
    argv = [
        *(sys.executable, "-P", "-m", "distributed.cli.dask_worker"),
        *(f"tcp://{lab.control}:{_PORT}", "--name", machine.name, "--host", machine.control),
        *("--no-nanny", "--no-dashboard", "--nthreads", "2", "--memory-limit", "0"),
        *("--death-timeout", str(CONNECT_S)),
    ]
    null = subprocess.DEVNULL
    machine.popen(argv, stdin=null, stdout=null, stderr=null, env=env, start_new_session=True)


def _measured(engine: LabProcess, asked: Asked) -> Measured:
    """Have the engine measure; Ctrl-C is passed on, so that it says what it has until then."""
    assert engine.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it has ended, and its answer is that
        engine.stdin.write(f"{msgspec.json.encode(asked).decode()}\n")
        engine.stdin.flush()
    try:
        line = _answer(engine)
    except KeyboardInterrupt:
        engine.send_signal(signal.SIGINT)
        line = _answer(engine)
    try:
        return msgspec.json.decode(line, type=Measured)
    except msgspec.DecodeError:
        raise ProgramError(line) from None


def _answer(engine: LabProcess) -> str:
    """Return the next line that the engine writes."""
    assert engine.stdout is not None
    if line := str(engine.stdout.readline()):
        return line.strip()
    raise ProgramError(f"the engine in the lab ended with status {engine.wait()}")


# ---- Workers ----


@contextlib.contextmanager
def workers_of(address: str, workers: int) -> Iterator[Measure]:
    """Wait until a scheduler has so many workers; lend what measures on all that it has."""
    with connected(address, workers) as client:
        yield lambda asked: _measure(client, asked)


def _measure(client: Client, asked: Asked) -> Measured:
    """Measure on the workers of a client; a scheduler that is lost is one line."""
    try:
        return Engine(client, asked).measure()
    except OSError as error:  # of which those of Dask's connections are
        raise ProgramError(f"the scheduler was lost: {error}") from None


# ---- In the lab ----


def main() -> None:
    """Be the scheduler and the engine: answer each line, with what is asked, by what was measured.

    Where it could not be, by a line that says why.
    """
    host, machines = sys.argv[1:]
    settings: dict[str, Any] = {"host": host, "scheduler_port": _PORT, "dashboard_address": None}
    with contextlib.suppress(KeyboardInterrupt):
        try:
            cluster = LocalCluster(n_workers=0, silence_logs=logging.CRITICAL, **settings)
            client = Client(cluster, set_as_default=False)
            client.wait_for_workers(int(machines), timeout=CONNECT_S)
            print(flush=True)  # from now on Ctrl-C leads to an account
            for line in sys.stdin:
                measured = _measure(client, msgspec.json.decode(line, type=Asked))
                print(msgspec.json.encode(measured).decode(), flush=True)
        except (ProgramError, LabError, TimeoutError) as error:
            print(str(error).splitlines()[0], flush=True)
    os._exit(0)  # the lab ends all else

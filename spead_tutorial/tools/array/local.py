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
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import dask
import msgspec
from distributed import Client, LocalCluster

from spead_tutorial.lab import LabArray, LabError, LabProcess
from spead_tutorial.lab.array import DATA
from spead_tutorial.ledger import some
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.tools.array.engine import Engine
from spead_tutorial.tools.array.measured import Asked, Lost, Measured

_PORT, _CONNECT_S, _ACCOUNT_S = 8786, 60, 20.0
_ENGINE = f"import {__name__} as local; local.main()"
#: A worker that is gone loses its tasks at once, and one that is stopped after some seconds.
_SETTINGS = {"distributed.scheduler.allowed-failures": 0, "distributed.scheduler.worker-ttl": "10s"}


def measure_in_lab(
    machines: int, asked: Asked, slow: Mapping[int, float], losing: Mapping[int, float]
) -> Measured:
    """Make a lab, in which some links are slow or lose packets, and measure there."""
    asked = msgspec.structs.replace(asked, data_network=str(DATA))
    with LabArray(machines) as lab, contextlib.ExitStack() as links:
        for i, rate in slow.items():
            links.enter_context(lab.machines[i].limited(round(rate * 8e6)))
        for i, share in losing.items():
            links.enter_context(lab.machines[i].losing(share))
        env = os.environ | {"DASK_TEMPORARY_DIRECTORY": lab.folder()}
        for i in range(machines):
            _start_worker(lab, i, env)
        words = [lab.control, str(machines), msgspec.json.encode(asked).decode()]
        argv = [sys.executable, "-P", "-c", _ENGINE, *words]
        engine = lab.switch.popen(argv, stdout=subprocess.PIPE, env=env, start_new_session=True)
        output = _finished(engine)
        unsaid = f"the engine in the lab ended with status {engine.returncode}"
        last = (output.splitlines() or [unsaid])[-1]
        try:
            measured = msgspec.json.decode(last, type=Measured)
        except msgspec.DecodeError:
            raise ProgramError(last) from None
        measured.switch = [
            Lost(one.dropped() if i in slow else 0, one.lost() if i in losing else 0)
            for i, one in enumerate(lab.machines)
        ]
    return measured


def _start_worker(lab: LabArray, i: int, env: Mapping[str, str]) -> None:
    machine = lab.machines[i]
    argv = [
        *(sys.executable, "-P", "-m", "distributed.cli.dask_worker"),
        *(f"tcp://{lab.control}:{_PORT}", "--name", machine.name, "--host", machine.control),
        *("--no-nanny", "--no-dashboard", "--nthreads", "2", "--memory-limit", "0"),
        *("--death-timeout", str(_CONNECT_S)),
    ]
    null = subprocess.DEVNULL
    machine.popen(argv, stdin=null, stdout=null, stderr=null, env=env, start_new_session=True)


def _finished(engine: LabProcess) -> str:
    """Return what the engine wrote; Ctrl-C is passed on, so that it says what it has until then."""
    assert engine.stdout is not None
    first = engine.stdout.readline()  # before it, Ctrl-C would find Python starting
    late = threading.Timer(_ACCOUNT_S, engine.kill)
    try:
        output = engine.stdout.read()
    except KeyboardInterrupt:
        engine.send_signal(signal.SIGINT)
        late.start()
        if not (output := engine.stdout.read()):
            raise
    finally:
        late.cancel()
    engine.wait()
    return str((first + output).decode().strip())


# ---- In the lab ----


@contextlib.contextmanager
def client_of(address: str, workers: int) -> Iterator[Client]:
    """Connect to a scheduler with so many workers; where there is none, that is one line."""
    try:
        client = Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise ProgramError(f"no scheduler of Dask's answers at {address}: {why}") from None
    with client:
        try:
            client.wait_for_workers(workers, timeout=_CONNECT_S)
        except TimeoutError:
            found = client.scheduler_info(n_workers=-1)["workers"].values()
            paused = sum(one["status"] == "paused" for one in found)
            way = "--memory-limit 0, as some are paused" if paused else "--no-nanny"
            raise ProgramError(
                f"the scheduler has {some(len(found) - paused, 'worker')}, not {workers}: on each"
                f" machine, start dask worker with {way}"
            ) from None
        yield client


def measure_with(client: Client, asked: Asked) -> Measured:
    """Measure on the workers of a client; a scheduler that is lost is one line."""
    try:
        return Engine(client, asked).measure()
    except OSError as error:  # of which those of Dask's connections are
        raise ProgramError(f"the scheduler was lost: {error}") from None


def main() -> None:
    """Be the scheduler and the engine; the last line of the output is what was measured."""
    try:
        measured = _measure(*sys.argv[1:])
        print(msgspec.json.encode(measured).decode(), flush=True)
    except (ProgramError, LabError, TimeoutError) as error:
        print(str(error).splitlines()[0], flush=True)
    os._exit(0)  # the lab ends all else


def _measure(host: str, machines: str, asked: str) -> Measured:
    settings: dict[str, Any] = {"host": host, "scheduler_port": _PORT, "dashboard_address": None}
    with dask.config.set(_SETTINGS):
        cluster = LocalCluster(n_workers=0, silence_logs=logging.CRITICAL, **settings)
        client = Client(cluster, set_as_default=False)
        client.wait_for_workers(int(machines), timeout=_CONNECT_S)
        print(flush=True)  # from now on Ctrl-C leads to an account
        return measure_with(client, msgspec.json.decode(asked, type=Asked))

# SPDX-License-Identifier: BSD-3-Clause
"""Engines of ipyparallel, one on each host: commands go out as text, and their lines come back.

Nothing is pickled: an engine gets the text of `spead_tutorial.hosts.on_host` and strings, and what
it prints comes back while it runs. So hosts may have other Pythons than the machine that asks.
"""

import contextlib
import functools
import json
import logging
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from spead_tutorial.hosts import left
from spead_tutorial.hosts.file import Host, Hosts
from spead_tutorial.records import RecordError

__all__ = ["Conversation", "Engines", "Job", "LostError"]

_START_S = 60
_LAST_WORDS_S = 10
_GOODBYE_S = 1
_GONE_S = 15  # longer than any command takes that has been told to end
_ANSWER_S = 30  # less than a heartbeat that is missed notices
#: An engine that does not answer for so long is gone: a cable was pulled, a machine went down.
_HEARTBEAT_MS, _MISSES = 1000, 20
_ON_HOST = Path(__file__).with_name("on_host.py")


class LostError(Exception):
    """A host is not there any more, or cannot do what it was asked for."""


class Job:
    """A command that runs on a host."""

    def __init__(self, result: Any) -> None:
        self._result = result
        self._read = 0
        self._words = ""
        self.over = False

    def lines(self) -> list[dict[str, Any]]:
        """Return what the command has printed since the last call, a record for each line."""
        ended = self._result.ready()
        if ended and self._result.successful():
            with contextlib.suppress(TimeoutError):
                self._result.wait_for_output(_LAST_WORDS_S)
        text = self._result.stdout[self._read :]
        whole = text.rfind("\n") + 1
        self._read += whole
        found = []
        for line in text[:whole].splitlines():
            record = _record(line)
            if record is None:
                self._words = line.strip() or self._words
            elif record.get("record") != "ended":
                found.append(record)
            elif record["status"] == 0:
                self.over = True
            elif not found:
                raise LostError(self._words or f"its command ended with status {record['status']}")
            else:  # next time: what came before is whole
                self._read -= len(line) + 1
        if ended and not self.over and not found:
            raise LostError(self._complaint())
        return found

    def _complaint(self) -> str:
        if self._result.successful():
            return "its last words did not come"
        return _why(self._result)


def _why(result: Any) -> str:
    """Say why an engine has not done what it was asked for."""
    said = str(result.exception()).strip().splitlines()
    return "its engine died" if not said or "died" in said[-1] else said[-1]


def _record(line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and "record" in record else None


class Conversation:
    """A command that runs on a host, and may be asked to end."""

    def __init__(self, execute: Callable[[str], Any]) -> None:
        self._execute = execute
        self.status: int | None = None

    def lines(self) -> list[dict[str, Any]]:
        """Return what the command has printed since the last call, a record for each line."""
        found = []
        for line in self._ask("heard()").splitlines():
            record = _record(line) or {"record": "said", "text": line}
            if record["record"] == "ended":
                self.status = record["status"]
            else:
                found.append(record)
        return found

    def end(self) -> None:
        """Ask the command to end; its last words are still to be heard."""
        self._ask("end()")

    def _ask(self, code: str) -> str:
        result = self._execute(code)
        result.wait(_ANSWER_S)
        if not result.ready():
            raise LostError(f"it has not answered for {_ANSWER_S} s")
        if not result.successful():
            raise LostError(_why(result))
        with contextlib.suppress(TimeoutError):
            result.wait_for_output(_LAST_WORDS_S)
        return str(result.stdout)


class Engines:
    """An engine on each host, for the time of a ``with`` block."""

    def __init__(self, hosts: Hosts) -> None:
        try:
            import ipyparallel
        except ImportError:
            raise RecordError(
                f"--hosts needs ipyparallel: {sys.executable} -m pip install '.[hosts]' installs it"
            ) from None
        missing = [one for one in ("ssh", "scp") if shutil.which(one) is None]
        if missing and any(host.address for host in hosts.all):
            raise RecordError(
                f"--hosts needs {' and '.join(missing)} to reach other machines: apt install"
                " openssh-client"
            )
        self._hosts = hosts
        self._parallel = ipyparallel
        self._folder = tempfile.mkdtemp(prefix="spead-tutorial-hosts-")
        self._log = Path(self._folder, "ssh")
        self._there = f"{self._folder}-there"  # a host may be this machine
        self._ids: dict[str, int] = {}
        self._cluster: ipyparallel.Cluster | None = None
        self._client: ipyparallel.Client | None = None

    def __enter__(self) -> Self:
        try:
            self._start_controller()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _start_controller(self) -> None:
        remote = any(host.address for host in self._hosts.all)
        arguments = [
            f"--HeartMonitor.period={_HEARTBEAT_MS}",
            f"--HeartMonitor.max_heartmonitor_misses={_MISSES}",
        ]
        if remote:
            # It listens on a network that others may use: what goes over it is encrypted.
            arguments.append("--IPController.enable_curve=True")
        self._cluster = self._parallel.Cluster(
            profile_dir=self._folder,
            log_level=logging.CRITICAL,
            controller_ip="*" if remote else "127.0.0.1",
            controller_location=self._hosts.here or "",
            controller_args=arguments,
        )
        # After Ctrl-C it would say at length what ipyparallel was at.
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
        self._cluster.start_controller_sync()
        self._client = self._cluster.connect_client_sync()

    def start(self, host: Host) -> None:
        """Start the engine of a host."""
        assert self._cluster is not None
        assert self._client is not None
        python = host.python_path
        there = set(self._client.ids)
        try:
            if host.address:
                _ask(host, "test", "-x", python)
                self._try_copying(host)
                self._cluster.engine_launcher_class = "ssh"
                self._cluster.start_engines_sync(
                    n=1,
                    engine_set_id=host.name,
                    engines={host.address: 1},
                    ssh_cmd=self._quiet("ssh"),
                    scp_cmd=self._quiet("scp"),
                    remote_python=python,
                    remote_profile_dir=self._there,
                )
            else:
                if not os.access(python, os.X_OK):
                    raise LostError(f"there is no {python}")
                self._cluster.engine_launcher_class = "local"
                self._cluster.start_engines_sync(
                    n=1, engine_set_id=host.name, engine_cmd=[python, "-m", "ipyparallel.engine"]
                )
            self._client.wait_for_engines(len(there) + 1, timeout=_START_S, interactive=False)
        except (self._parallel.error.TimeoutError, TimeoutError):
            raise LostError(f"its engine did not come in {_START_S} s") from None
        except (OSError, subprocess.CalledProcessError, RuntimeError) as error:
            why = self._log.read_text().strip() if self._log.exists() else ""
            raise LostError(
                f"its engine could not be started: {_last_line(why or error)}"
            ) from None
        self._ids[host.name] = (set(self._client.ids) - there).pop()

    def _quiet(self, program: str) -> list[str]:
        """Return a command that asks for no password, and complains to a file."""
        return ["sh", "-c", f'exec {program} -o BatchMode=yes "$@" 2>>"$0"', str(self._log)]

    def run(self, host: Host, argv: Sequence[str], first: str) -> Job:
        """Have a host run a command of its repository's."""
        return Job(self._execute(host, self._code("run", host, argv, first)))

    def begin(self, host: Host, argv: Sequence[str], first: str) -> Conversation:
        """Have a host begin a command, which goes on while others are asked for something."""
        conversation = Conversation(functools.partial(self._execute, host))
        conversation._ask(self._code("begin", host, argv, first))
        return conversation

    def _code(self, function: str, host: Host, argv: Sequence[str], first: str) -> str:
        command = [*host.prefix, host.python_path, *argv]
        return f"{_ON_HOST.read_text()}\n{function}({command!r}, {host.folder!r}, {first!r})\n"

    def _execute(self, host: Host, code: str) -> Any:
        assert self._client is not None
        try:
            view = self._client[self._ids[host.name]]
            return view.execute(code, silent=True, block=False)
        except (IndexError, self._parallel.error.NoEnginesRegistered):
            raise LostError("its engine died") from None

    def close(self) -> None:
        """Stop all engines, and remove what they needed; more than once does no harm."""
        if self._client is not None:
            with contextlib.suppress(Exception):  # some are gone already
                self._client.shutdown(targets=self._client.ids, hub=False, block=False)
                time.sleep(_GOODBYE_S)
            self._client.close()
            self._client = None
        if self._cluster is not None:
            self._cluster.shutdown_atexit = False  # or it says it all again
            with contextlib.suppress(Exception):
                self._cluster.stop_cluster_sync()
            self._cluster = None
            left.wait(self._folder, _GONE_S)
            for host in self._hosts.all:
                if host.address:
                    self._leave(host)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _leave(self, host: Host) -> None:
        """Wait until nothing of ours runs on a host, and remove the files that it needed."""
        text = Path(left.__file__).read_text()
        with contextlib.suppress(LostError):
            _ask(host, host.python_path, "-c", text, self._there, str(_GONE_S))
        with contextlib.suppress(LostError):
            _ask(host, "rm", "-rf", self._there)

    def _try_copying(self, host: Host) -> None:
        """Copy a file to a host as scp does, which takes more of it than ssh alone."""
        assert host.address
        _ask(host, "mkdir", "-p", self._there)
        source = Path(self._folder, "tried")
        source.touch()
        try:
            _run("scp", "-q", str(source), f"{host.address}:{self._there}/tried")
        except LostError as error:
            raise LostError(
                f"scp cannot copy to it ({error}): it needs an SFTP server there (apt install"
                " openssh-sftp-server)"
            ) from None


def _ask(host: Host, *argv: str) -> None:
    """Run a short command on a host, by ssh itself."""
    assert host.address
    _run("ssh", host.address, shlex.join(argv))


def _run(program: str, *arguments: str) -> None:
    options = ("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=10")
    done = subprocess.run(
        [program, *(word for option in options for word in ("-o", option)), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:] or [f"{arguments[-1]} failed there"]
        raise LostError(why[0])


def _last_line(what: object) -> str:
    return (str(what).strip().splitlines() or [type(what).__name__])[-1]

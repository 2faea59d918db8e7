# SPDX-License-Identifier: BSD-3-Clause
"""What several tests need: receivers, streams that stay busy, labs, and programs as processes."""

import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import spead_tutorial
import spead_tutorial.send
from spead_tutorial.chapters import exercises
from spead_tutorial.lab import Lab
from support.c_library import install
from support.labs import open_lab
from support.needs import need
from support.once import MadeOnce, locked
from support.senders import Planted, made
from support.sockets import udp_socket
from support.typed import Run

# Notebooks' packages check addresses of the web with it where it is there, and it takes seconds to
# import, in each worker.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

# Hundreds of processes import NumPy, and none does linear algebra: threads for that wait busily for
# as long as the import takes.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Whether the peer has been built on this machine makes no difference here.
os.environ["SPEAD_TUTORIAL_PEER"] = os.devnull

# Under nohup, and in some CI, signals are ignored, and so they would be in the processes that tests
# start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_finish() -> None:
    """Leave the thousands of tests, and what they import, to no collection of garbage."""
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Remove the folder of exercises' skeletons: workers end without what is done at exit."""
    if exercises._folder.cache_info().currsize:
        exercises._folder().cleanup()


@pytest.fixture
def own_threads() -> Iterator[spead_tutorial.ThreadPool]:
    with spead_tutorial.ThreadPool() as pool:
        yield pool


@pytest.fixture(params=["its thread", "the caller's"])
def thread_pool(request: pytest.FixtureRequest) -> spead_tutorial.ThreadPool | None:
    """What to make a stream with: tests of streams are run for both kinds."""
    if request.param == "its thread":
        return request.getfixturevalue("own_threads")
    return None


@pytest.fixture
def receiver() -> Iterator[socket.socket]:
    """A UDP socket on loopback that keeps what it gets, a few MB at most."""
    with udp_socket() as sock:
        sock.settimeout(60)  # a machine can be busy
        yield sock


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    """Have a folder filled by the worker that needs it first; the others wait for it."""

    def get(name: str, make: Callable[[Path], None]) -> Path:
        with locked(tmp_path_factory, name) as folder:
            made = folder / "made"
            if not (folder / "whole").exists():
                shutil.rmtree(made, ignore_errors=True)  # an attempt that failed
                made.mkdir()
                make(made)
                (folder / "whole").touch()
        return made

    return get


@pytest.fixture
def planted(made_once: MadeOnce) -> Callable[[Planted], Path]:
    """Return the folder with the program of a planted sender that is in C."""
    return lambda sender: made(sender, made_once)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def here(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command of spead-tutorial in this process."""
    from spead_tutorial.tools.cli import cli  # most tests do without
    from spead_tutorial.tools.command_line import finish

    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        status = finish(cli, "spead-tutorial", [*map(str, words)])
        return subprocess.CompletedProcess(words, status, *capfd.readouterr())

    return run


@pytest.fixture(scope="session")
def installed(made_once: MadeOnce) -> Path:
    """A folder into which the C library has been installed."""
    need("pkg-config", "cc")
    return made_once("installed", install)


@pytest.fixture
def make_lab() -> Callable[..., Lab]:
    """Make a lab of a test's own, to change or to break, or in which nothing was sent before."""
    return open_lab


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """The lab of a module's tests, which leave it as it was."""
    with open_lab() as lab:
        yield lab

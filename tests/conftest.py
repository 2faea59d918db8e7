# SPDX-License-Identifier: BSD-3-Clause
"""What several tests need: receivers, streams that stay busy, labs, and programs as processes."""

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from labs import open_lab
from senders import compile_senders
from tools import pytest_runtest_makereport  # noqa: F401

import spead_tutorial
import spead_tutorial.send
from spead_tutorial.lab import Lab

MadeOnce = Callable[[str, Callable[[Path], None]], Path]

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
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        sock.bind(("127.0.0.1", 0))
        sock.settimeout(60)  # a machine can be busy
        yield sock


@contextlib.contextmanager
def locked(tmp_path_factory: pytest.TempPathFactory, name: str) -> Iterator[Path]:
    """Keep the other workers out; yield a folder that they share for this."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


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


@pytest.fixture(scope="session")
def planted(made_once: MadeOnce) -> Path:
    """Return the folder with the programs of `senders` that are in C."""
    return made_once("planted", compile_senders)


@pytest.fixture
def only_kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let one worker at a time have kernels: two could be told the same free ports."""
    with locked(tmp_path_factory, "kernels"):
        yield


@pytest.fixture
def make_lab() -> Callable[[], Lab]:
    """Make a lab of a test's own, to change or to break, or in which nothing was sent before."""
    return open_lab


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """The lab of a module's tests, which leave it as it was."""
    with open_lab() as lab:
        yield lab


@pytest.fixture
def lend_lab(lab: Lab) -> Callable[[], contextlib.AbstractContextManager[Lab]]:
    """Lend the lab of the module, in the place of one of a test's own."""
    return lambda: contextlib.nullcontext(lab)


def make_heap(n_bytes: int = 1000, value: int = 1) -> spead_tutorial.send.Heap:
    """A heap with one array of bytes."""
    group = spead_tutorial.send.ItemGroup()
    group.add_item(
        0x3300, "samples", "", shape=(n_bytes,), dtype=np.int8, value=np.full(n_bytes, value, "i1")
    )
    return group.get_heap(descriptors="none", data="all")


def slow_config(**more: int) -> spead_tutorial.send.StreamConfig:
    """A stream that sends one packet, and then nothing for hours: what follows stays in flight."""
    return spead_tutorial.send.StreamConfig(rate=0.1, burst_size=1, **more)


def run_script(text: str, tmp_path: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run Python source as a process of its own."""
    script = tmp_path / "script.py"
    script.write_text(text)
    return subprocess.run(
        [sys.executable, str(script), *args],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def python_for_anyone() -> str | None:
    """Find a Python that a user other than root may execute."""
    for candidate in (sys.executable, shutil.which("python3", path="/usr/local/bin:/usr/bin")):
        if candidate is None:
            continue
        try:
            found = subprocess.run(
                [candidate, "-c", "import sys; print(sys.version_info >= (3, 11))"],
                user=65534,
                group=65534,
                extra_groups=[],
                cwd="/",
                capture_output=True,
                check=True,
            )
        except (OSError, subprocess.CalledProcessError):
            continue
        if found.stdout == b"True\n":
            return candidate
    return None

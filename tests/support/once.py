# SPDX-License-Identifier: BSD-3-Clause
"""What is made once for all workers."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

MadeOnce = Callable[[str, Callable[[Path], None]], Path]


@contextlib.contextmanager
def locked(tmp_path_factory: pytest.TempPathFactory, name: str) -> Iterator[Path]:
    """Keep the other workers out; yield a folder that they share for this."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder

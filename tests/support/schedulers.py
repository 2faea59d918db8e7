# SPDX-License-Identifier: BSD-3-Clause
"""A scheduler of Dask's with two workers, for whom the machine is two."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def two_workers(
    folder: Path, cwd: Path | None = None
) -> Iterator[tuple[str, list["subprocess.Popen[str]"]]]:
    """Start them, with a thread each; the settings are the usual. Lend address and processes."""
    from distributed import Client

    port = str(20000 + os.getpid() % 10000)
    address, here = f"tcp://127.0.0.1:{port}", ["--host", "127.0.0.1", "--no-dashboard"]
    more = ["--no-nanny", "--nthreads", "1", "--local-directory", str(folder)]
    argvs = [["scheduler", *here, "--port", port]]
    argvs += [["worker", address, "--name", f"host{i}", *here, *more] for i in range(2)]
    null, where = subprocess.DEVNULL, cwd or folder
    with contextlib.ExitStack() as stack:
        started = []
        for name, *argv in argvs:
            words = [sys.executable, "-m", f"distributed.cli.dask_{name}", *argv]
            process = subprocess.Popen(words, stdout=null, stderr=null, text=True, cwd=where)
            started.append(stack.enter_context(process))
            stack.callback(process.kill)
        with Client(address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        yield address, started

# SPDX-License-Identifier: BSD-3-Clause
"""The harness: its commands, and made-up records for them; its modules are beside the package."""

import contextlib
import io
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from msgspec.structs import replace

from bench.cli import cli
from spead_tutorial.measure.records import Header, Recording, Sample, Writer
from spead_tutorial.tools.command_line import finish
from support import ROOT
from support.records import HEADER, SAMPLE

PATIENCE_S = 120


def bench(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, whose standard streams it does not use."""
    out, err = io.StringIO(), io.StringIO()
    argv = [str(argument) for argument in arguments]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = finish(cli, "python -m bench", argv)
    return subprocess.CompletedProcess(argv, status, out.getvalue(), err.getvalue())


def succeeds(*arguments: object) -> str:
    """Check that a command has nothing to complain of, and return what it says."""
    done = bench(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def fails(*arguments: object, status: int = 1) -> str:
    """Check that a command fails with one line, and return it."""
    done = bench(*arguments)
    assert done.returncode == status, done.stderr
    assert re.fullmatch(r"python -m bench: [^\n]+\n", done.stderr), done.stderr
    return done.stderr


def start(*arguments: object, **more: Any) -> "subprocess.Popen[str]":
    """Start a command as a process, with pipes for what it says."""
    settings: dict[str, Any] = {"stdin": subprocess.DEVNULL} | more
    return subprocess.Popen(
        [sys.executable, "-m", "bench", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **settings,
    )


def keys(recording: Recording) -> Counter[tuple[str, int, bool]]:
    return Counter((one.case, one.round, one.warm_up) for one in recording.samples)


def made(rates: Sequence[float], **more: Any) -> list[Sample]:
    """Samples with these rates in bytes/s, a round for each."""
    payload = 10 << 20
    base: dict[str, Any] = {"case": "one", "implementation": "ours"} | more
    return [
        replace(
            SAMPLE, round=n, payload_bytes=payload, elapsed_ns=round(payload / rate * 1e9), **base
        )
        for n, rate in enumerate(rates)
    ]


def recording(*groups: Iterable[Sample], header: Header = HEADER) -> Recording:
    return Recording(header, tuple(one for group in groups for one in group))


def write(path: Path, what: Recording) -> Path:
    """Write all of a recording to a file, without a wait for the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with mock.patch("os.fsync"), Writer(path, what.header) as writer:
        for one in what.taken:
            writer.add(one)
    return path

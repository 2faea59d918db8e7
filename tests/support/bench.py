# SPDX-License-Identifier: BSD-3-Clause
"""The harness as a process, and its modules, which are beside the package."""

import dataclasses
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from bench import stacks
from spead_tutorial.records import (
    Header,
    Recording,
    Sample,
)
from support import ROOT
from support.records import HEADER, SAMPLE

PATIENCE_S = 120


def bench(
    *arguments: object, module: str = "bench", **more: Any
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        stdin=subprocess.DEVNULL,
        **more,
    )


def fails(*arguments: object, status: int = 1) -> str:
    """Check that a command fails with one line, and return it."""
    done = bench(*arguments)
    assert done.returncode == status, done.stderr
    assert re.fullmatch(r"python -m bench: [^\n]+\n", done.stderr), done.stderr
    return done.stderr


def start(*arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "bench", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def keys(recording: Recording) -> Counter[tuple[str, int, bool]]:
    return Counter((one.case, one.round, one.warm_up) for one in recording.samples)


def made(rates: Sequence[float], **more: Any) -> list[Sample]:
    """Samples with these rates in bytes/s, a round for each."""
    payload = 10 << 20
    base: dict[str, Any] = {"case": "one", "implementation": "ours"} | more
    return [
        dataclasses.replace(
            SAMPLE, round=n, payload_bytes=payload, elapsed_ns=round(payload / rate * 1e9), **base
        )
        for n, rate in enumerate(rates)
    ]


def recording(*groups: Sequence[Sample], header: Header = HEADER) -> Recording:
    return Recording(header, tuple(one for group in groups for one in group))


def why_no_perf() -> str | None:
    """Say why this machine lets nobody look at a program; None where it does."""
    try:
        stacks.require_perf()
    except stacks.StackError as error:
        return str(error)
    return None


REASON = why_no_perf()


needs_perf = pytest.mark.skipif(REASON is not None, reason=f"nothing to look with: {REASON}")


def frames(*names: str, file: str = "/site-packages/spead_tutorial/_core.so") -> list[stacks.Frame]:
    """Make a stack from names: ``k:`` stands before one of the kernel, ``c:`` of the C library."""
    files = {"k": "[kernel.kallsyms]", "c": "/lib/libc.so.6", "p": "/lib/libpython3.11.so"}
    split = [name.rpartition(":") for name in names]
    return [stacks.Frame(name, files.get(prefix, file)) for prefix, _, name in split]

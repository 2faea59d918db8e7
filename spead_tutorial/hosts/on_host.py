# SPDX-License-Identifier: BSD-3-Clause
"""What an engine does on its host: this text goes there, and nothing else of the harness.

So an engine needs ipyparallel alone, and its Python may be another than the one that asks.
"""

import contextlib
import json
import queue
import subprocess
import threading

__all__ = ["begin", "end", "heard", "run"]


def run(argv: list[str], folder: str, first: str) -> None:
    """Run a command, and print its lines as they come, then how it ended.

    Its standard input stays open for as long as this runs: where the engine dies, the command
    finds its end, and ends, too.
    """
    with _started(argv, folder, first) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
        print(json.dumps({"record": "ended", "status": process.wait()}), flush=True)


def _started(argv: list[str], folder: str, first: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        argv,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # its last words say why
        process.stdin.write(first + "\n")
        process.stdin.flush()
    return process


# ---- A command that goes on between calls ----

_begun: "list[tuple[subprocess.Popen[str], queue.SimpleQueue[str]]]" = []


def begin(argv: list[str], folder: str, first: str) -> None:
    """Start a command that is listened to by `heard`, and may be asked to end."""
    process = _started(argv, folder, first)
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put(json.dumps({"record": "ended", "status": process.wait()}) + "\n")

    threading.Thread(target=read, daemon=True).start()
    _begun.append((process, lines))


def heard() -> None:
    """Print the lines that the command has printed since the last call."""
    _, lines = _begun[-1]
    with contextlib.suppress(queue.Empty):
        while True:
            print(lines.get_nowait(), end="", flush=True)


def end() -> None:
    """Let the command find the end of its standard input."""
    process, _ = _begun[-1]
    assert process.stdin is not None
    process.stdin.close()

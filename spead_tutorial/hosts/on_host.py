# SPDX-License-Identifier: BSD-3-Clause
"""What an engine does on its host: this text goes there, and nothing else of the harness.

So an engine needs ipyparallel alone, and its Python may be another than the one that asks.
"""

import json
import subprocess

__all__ = ["run"]


def run(argv: list[str], folder: str, first: str) -> None:
    """Run a command, and print its lines as they come, then how it ended.

    Its standard input stays open for as long as this runs: where the engine dies, the command
    finds its end, and ends, too.

    Parameters
    ----------
    argv : list of str
        The command.
    folder : str
        Where it runs.
    first : str
        The line that it is told.
    """
    with subprocess.Popen(
        argv,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(first + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass  # its last words say why
        for line in process.stdout:
            print(line, end="", flush=True)
        print(json.dumps({"record": "ended", "status": process.wait()}), flush=True)

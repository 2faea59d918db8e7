# SPDX-License-Identifier: BSD-3-Clause
"""Commands that were started without some of the three standard streams."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from spead_tutorial.lab import probe

REASON = probe().reason
PATIENCE_S = 60
COMMAND = [sys.executable, "-m", "spead_tutorial.cli"]
CLOSE = {0: "0<&-", 1: "1>&-", 2: "2>&-"}
CLOSED = [some for n in (1, 2, 3) for some in itertools.combinations(CLOSE, n)]
#: Writes to both streams, and to a file what descriptors there are; ends with 5.
LOOK = """
import json, os, sys
found = {}
for fd in os.listdir("/proc/self/fd"):
    try:
        found[fd] = os.readlink(f"/proc/self/fd/{fd}")
    except FileNotFoundError:
        pass  # that of the folder
for fd in (1, 2):
    os.write(fd, b"text\\n")
with open(sys.argv[1], "w") as file:
    json.dump(found, file)
sys.exit(5)
"""

pytestmark = pytest.mark.usefixtures("elsewhere")
needs_lab = pytest.mark.skipif(REASON is not None, reason=f"no lab here: {REASON}")
without = pytest.mark.parametrize("closed", CLOSED, ids=str)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)


def start_without(closed: tuple[int, ...], *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command that has no descriptors of these numbers."""
    how = " ".join(CLOSE[fd] for fd in closed)
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {how}', "sh", *command],
        stdin=subprocess.PIPE,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


@needs_lab
@without
def test_a_command_in_a_lab_has_nothing_in_place_of_a_stream_that_is_missing(tmp_path, closed):
    found = tmp_path / "found"
    look = [sys.executable, "-c", LOOK, str(found)]
    done = start_without(closed, *COMMAND, "lab", "--", *look)
    assert done.returncode == 5
    assert done.stdout == "text\n" * (1 not in closed)
    assert done.stderr == "text\n" * (2 not in closed)
    links = json.loads(found.read_text())
    assert sorted(links) == ["0", "1", "2"]
    for fd in range(3):
        assert (links[str(fd)] == "/dev/null") == (fd in closed)


@needs_lab
@without
def test_run_works_without_a_stream(closed):
    done = start_without(closed, *COMMAND, "run", "6", "-n", "3", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    if 1 not in closed:
        assert json.loads(done.stdout)["accounted"] is True


@without
def test_doctor_works_without_a_stream(closed):
    done = start_without(closed, *COMMAND, "doctor")
    assert (done.returncode, done.stderr) == (0 if REASON is None else 1, "")
    if 1 not in closed:
        assert " lab " in done.stdout


@pytest.mark.parametrize("closed", [(1,), (0, 1, 2)], ids=str)
def test_a_program_that_takes_the_commands_place_has_all_streams(tmp_path, closed):
    pytest.importorskip("jupyterlab")
    (tmp_path / "00_start_here.ipynb").touch()
    done = start_without(closed, *COMMAND, "notebook", "--folder", ".", "--", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) == (1 not in closed)

# SPDX-License-Identifier: BSD-3-Clause
"""Commands that were started without some of the three standard streams, or with poor ones."""

import functools
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import ROOT
from support.labs import needs_lab, probe

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


@needs_lab
def test_nobody_has_to_look_at_all_that_a_receiver_prints():
    with subprocess.Popen(
        [*COMMAND, "run", "3"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("tut_3_recv: ")
        process.stdout.close()
        said = process.stderr.read()
    assert "Traceback" not in said
    assert "did not say what it counted" not in said


@without
def test_doctor_works_without_a_stream(closed):
    done = start_without(closed, *COMMAND, "doctor")
    assert (done.returncode, done.stderr) == (0 if REASON is None else 1, "")
    if 1 not in closed:
        assert " lab " in done.stdout


@pytest.mark.parametrize("closed", [(1,), (0, 1, 2)], ids=str)
def test_a_program_that_takes_the_commands_place_has_all_streams(tmp_path, closed):
    (tmp_path / "00_start_here.ipynb").touch()
    done = start_without(closed, *COMMAND, "notebook", "--folder", ".", "--", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) == (1 not in closed)


# ---- Streams that do not take every character ----

POOR = [
    ("latin-1", {"PYTHONIOENCODING": "latin-1"}),
    ("ascii", {"PYTHONIOENCODING": "ascii"}),
    ("ascii", {"LC_ALL": "C", "PYTHONUTF8": "0"}),
]
COMPARE = ["bench/results/tut-10.jsonl", "--before", "spead2", "--after", "ours"]
poor = pytest.mark.parametrize(("encoding", "settings"), POOR, ids=["latin-1", "ascii", "C"])


def bytes_of(command: list[str], settings: dict[str, str]) -> tuple[int, bytes, bytes]:
    keep = {name: value for name, value in os.environ.items() if not name.startswith("LC_")}
    env = keep | {"PYTHONIOENCODING": ""} | settings
    done = subprocess.run(command, env=env, capture_output=True, timeout=PATIENCE_S)
    return done.returncode, done.stdout, done.stderr


@functools.cache
def rich(*command: str) -> tuple[int, str]:
    """What a command ends with, and writes to a stream that takes every character."""
    status, out, _ = bytes_of([*command], {"PYTHONIOENCODING": "utf-8"})
    return status, out.decode()


@poor
@pytest.mark.parametrize("name", ["doctor", "chapters", "run 6 -n 3"])
def test_what_a_stream_cannot_write_is_written_in_other_words(name, encoding, settings):
    if name.startswith("run") and REASON is not None:
        pytest.skip(f"no lab here: {REASON}")
    command = [*COMMAND, *name.split()]
    expected, said = rich(*command)
    status, out, err = bytes_of(command, settings)
    assert (status, err) == (expected, b"")
    assert ("→" in said) == ("->" in out.decode(encoding))


@poor
def test_the_harness_compares_in_other_words(monkeypatch, encoding, settings):
    monkeypatch.chdir(ROOT)
    command = [sys.executable, "-m", "bench", "compare", *COMPARE]
    expected, said = rich(*command)
    assert "—" in said
    status, out, err = bytes_of(command, settings)
    assert (status, err) == (expected, b"")
    assert out.decode(encoding) == said.replace("—", "-")


@poor
def test_a_file_that_is_not_there_is_named_in_other_words(encoding, settings):
    command = [*COMMAND, "notebook", "--folder", "пусто-é"]
    status, out, err = bytes_of(command, settings)
    assert (status, out) == (1, b"")
    text = err.decode(encoding)
    assert text.startswith("spead-tutorial: there are no notebooks in ")
    assert text.count("\n") == 1


#: The command, but a tour finds what it would measure.
MEASURED = """
import sys
from support.records import HEADER, SAMPLE
from spead_tutorial import cli, tour
from spead_tutorial.records import Recording
tour._measure = lambda *_: Recording(HEADER, (SAMPLE,))
cli.main()
"""


@needs_lab
def test_the_tour_has_its_table_in_other_words():
    command = [sys.executable, "-c", MEASURED, "tour", "--tiny"]
    tests = str(ROOT / "tests")
    status, out, err = bytes_of(command, {"PYTHONIOENCODING": "ascii", "PYTHONPATH": tests})
    assert (status, err) == (0, b"")
    text = out.decode("ascii")
    assert "10^6 bytes of samples a second" in text
    assert "y: none failed" in text

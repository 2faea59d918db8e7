# SPDX-License-Identifier: BSD-3-Clause
"""Commands that were started without some of the three standard streams, or with poor ones."""

import itertools
import json
import os
import subprocess
import sys

import pytest

from spead_tutorial.measure import programs
from support.labs import needs_lab
from support.needs import need
from support.typed import COMMAND, PIPES, Typed, run

CLOSE = {0: "0<&-", 1: "1>&-", 2: "2>&-"}
CLOSED = [some for n in (1, 2, 3) for some in itertools.combinations(CLOSE, n)]
#: Writes to both streams, and to a file what the three descriptors are; ends with 5.
LOOK = "cd /proc/$$/fd; (readlink 0 1 2 >$OLDPWD/found); echo text; echo text >&2; exit 5"

pytestmark = pytest.mark.usefixtures("elsewhere")


def without(*plain: tuple[int, ...]) -> pytest.MarkDecorator:
    """Try a test without any streams there are: `make test` without these alone."""
    cases = [
        pytest.param(one, id=str(one), marks=[] if one in plain else pytest.mark.thorough)
        for one in CLOSED
    ]
    return pytest.mark.parametrize("closed", cases)


def start_without(closed: tuple[int, ...], *command: str) -> Typed:
    """Run a command that has no descriptors of these numbers."""
    how = " ".join(CLOSE[fd] for fd in closed)
    return run("sh", "-c", f'exec "$@" {how}', "sh", *command, stdin=subprocess.PIPE)


@needs_lab
@without((0, 1), (2,))
def test_a_command_in_a_lab_has_nothing_in_place_of_a_stream_that_is_missing(elsewhere, closed):
    done = start_without(closed, COMMAND, "lab", "--", "sh", "-c", LOOK)
    assert done.returncode == 5
    assert done.stdout == "text\n" * (1 not in closed)
    assert done.stderr == "text\n" * (2 not in closed)
    links = (elsewhere / "found").read_text().splitlines()
    assert [link == "/dev/null" for link in links] == [fd in closed for fd in range(3)]


@needs_lab
@without((0, 1, 2), (0, 2))
def test_run_works_without_a_stream(closed):
    done = start_without(closed, COMMAND, "run", "6", "--lang", "c", "-n", "3", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    if 1 not in closed:
        assert json.loads(done.stdout)["accounted"] is True


@needs_lab
def test_nobody_has_to_look_at_all_that_a_receiver_prints():
    with subprocess.Popen([COMMAND, "run", "3"], **PIPES) as process:
        assert process.stdout.readline().startswith("tut_3_recv: ")
        process.stdout.close()
        said = process.stderr.read()
    assert "Traceback" not in said
    assert "did not say what it counted" not in said


@needs_lab
@pytest.mark.parametrize(
    "words", [["run", "3"], ["run", "4", "--lang", "c", "-n", "3"], ["chapters"]], ids=str
)
def test_a_full_disk_is_one_line(words):
    with open("/dev/full", "w") as full:
        done = subprocess.run([COMMAND, *words], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "spead-tutorial: No space left on device"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("language", ["python", "c", "cpp"])
def test_a_program_whose_words_are_lost_has_failed(language):
    if language == "cpp":
        need("c++")
    path = str(programs.program_path("tut_4_send_perf", language))
    start = [sys.executable] if language == "python" else []
    for file, status, words in (
        ("/dev/full", 1, "tut_4_send_perf: No space left on device\n"),
        ("/dev/null", 0, ""),
    ):
        with open(file, "w") as out:
            done = subprocess.run(
                [*start, path, "-n", "3", "127.0.0.1", "8888"],
                stdout=out, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
        assert (done.returncode, done.stderr) == (status, words)


@needs_lab
def test_a_lab_can_be_used_from_a_folder_that_is_gone(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    done = run("sh", "-c", f'cd {gone}; rmdir {gone}; exec "{COMMAND}" lab -- echo fine')
    assert (done.returncode, done.stdout) == (0, "fine\n")


# ---- Streams that do not take every character ----

LATIN_1 = ("latin-1", {"PYTHONIOENCODING": "latin-1"})
ASCII = ("ascii", {"PYTHONIOENCODING": "ascii"})
C = ("ascii", {"LC_ALL": "C", "PYTHONUTF8": "0"})


def bytes_of(command: list[str], settings: dict[str, str]) -> tuple[int, bytes, bytes]:
    keep = {name: value for name, value in os.environ.items() if not name.startswith("LC_")}
    env = keep | {"PYTHONIOENCODING": ""} | settings
    done = subprocess.run(command, env=env, capture_output=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("name", "encoding", "settings"),
    [
        ("doctor", *LATIN_1),
        pytest.param("doctor", *ASCII, marks=pytest.mark.thorough),
        pytest.param("run 6 -n 3", *C, marks=[pytest.mark.thorough, needs_lab]),
    ],
)
def test_what_a_stream_cannot_write_is_written_in_other_words(here, name, encoding, settings):
    expected = here(*name.split())
    status, out, err = bytes_of([COMMAND, *name.split()], settings)
    assert (status, err) == (expected.returncode, b"")
    assert ("→" in expected.stdout) == ("->" in out.decode(encoding))


def test_a_file_that_is_not_there_is_named_in_other_words():
    encoding, settings = C
    status, out, err = bytes_of([COMMAND, "notebook", "--folder", "пусто-é"], settings)
    assert (status, out) == (1, b"")
    text = err.decode(encoding)
    assert text.startswith("spead-tutorial: there are no notebooks in ")
    assert text.count("\n") == 1

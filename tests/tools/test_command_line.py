# SPDX-License-Identifier: BSD-3-Clause
"""What commands tell to type, and where what they say cannot be written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spead_tutorial.measure import programs
from support import ROOT
from support.bench import write
from support.labs import needs_lab
from support.needs import need
from support.tours import recorded
from support.typed import COMMAND, PIPES, Typed, run

pytestmark = pytest.mark.usefixtures("elsewhere")


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


# ---- What is to be typed ----


@pytest.fixture
def environment_here(elsewhere: Path) -> str:
    """The folder of the environment's commands, as one types it after make tour."""
    Path(".venv").symlink_to(Path(COMMAND).parent.parent)
    return ".venv/bin"


def commands_in(said: str) -> list[str]:
    """What a text has of commands that begin as one of ours does."""
    return re.findall(r"(?m)(?:[\w./-]*/)?spead-tutorial [a-z-][^\n()]*[^\n ().:,;]", said)


def at(folder: str, *words: str) -> Typed:
    """Run a command by its place, which the shell does not look at."""
    path = os.pathsep.join(
        one
        for one in os.environ["PATH"].split(os.pathsep)
        if not Path(one, "spead-tutorial").exists()
    )
    return run(f"{folder}/spead-tutorial", *words, env=os.environ | {"PATH": path})


@pytest.mark.parametrize(
    "words", ["chapters", "lab", "run", "run --help", "recv", "path none", "tour --from-record",
              "lab --kind none -- true"],
)  # fmt: skip
def test_commands_are_told_with_the_folder_that_was_typed(environment_here, words):
    for folder in (environment_here, f"./{environment_here}", str(Path(COMMAND).parent)):
        done = at(folder, *words.split())
        told = commands_in(done.stdout + done.stderr)
        assert told
        assert [one for one in told if not one.startswith(f"{folder}/spead-tutorial ")] == []


def test_a_tour_and_its_page_tell_what_can_be_typed_and_no_folder_but_the_repositorys(
    environment_here,
):
    write(Path("out", "tour.jsonl"), recorded())
    for folder in (str(Path(COMMAND).parent), environment_here):
        done = at(folder, "tour", "--from-record", "--output", "out")
        assert (done.returncode, len(commands_in(done.stdout))) == (0, 3)
        assert all(one.startswith(f"{folder}/spead-tutorial ") for one in commands_in(done.stdout))
        page = Path("out/index.html").read_text()
        is_here = folder == environment_here
        assert f"<code>{f'{folder}/' * is_here}spead-tutorial tour --quick</code>" in page
        assert str(Path(COMMAND).parent) not in page


def test_the_name_alone_is_told_where_the_shell_finds_it(environment_here):
    found = f"{Path(COMMAND).parent}{os.pathsep}{os.environ['PATH']}"
    for start in ("spead-tutorial", COMMAND, f"{environment_here}/spead-tutorial"):
        done = run("sh", "-c", f"{start} chapters", env=os.environ | {"PATH": found})
        assert commands_in(done.stdout) == ["spead-tutorial run 10"]


def test_a_folder_with_spaces_is_told_as_a_shell_wants_it(environment_here):
    Path("my folder").symlink_to(environment_here)
    done = at("my folder", "chapters")
    assert done.stdout.endswith("Run one: 'my folder'/spead-tutorial run 10\n")
    assert run("sh", "-c", "'my folder'/spead-tutorial path 10").returncode == 0


def test_the_harness_is_told_with_its_python(monkeypatch):
    python = os.path.relpath(sys.executable, ROOT)
    done = run(python, "-m", "bench", "run", "--nothing", cwd=ROOT)
    assert f"(see {python} -m bench run --help)" in done.stderr

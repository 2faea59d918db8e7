# SPDX-License-Identifier: BSD-3-Clause
"""The packages install, and everything runs, where there is no compiler and no network.

They are built from what is committed, the wheel from the unpacked source package, and installed
into a fresh environment, which has its dependencies and nothing else. Where wheels are made, a new
one is installed already, and SPEAD_TUTORIAL_INSTALLED says so: then that is tried.
"""

import functools
import importlib.metadata
import json
import os
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from spead_tutorial.chapters.catalogue import MEASURED
from support import ROOT, typed
from support.labs import needs_lab, probe
from support.once import MadeOnce

PACKAGE = "spead-tutorial"
INSTALLED = "SPEAD_TUTORIAL_INSTALLED" in os.environ

#: The core and all programs are compiled.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1200)]


def run(*command: str | Path, **environment: str) -> str:
    """Run a command that succeeds, and return what it printed."""
    done = typed.run(*command, env=os.environ | environment, timeout=None)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# ---- What is made ----


def build(made: Path) -> None:
    """Pack what is committed, and build the wheel from what was packed.

    In a clone, for the tool that packs has a folder of its own beside the sources.
    """
    run("git", "clone", "--quiet", "--shared", ROOT, made / "tree")
    run(
        *(sys.executable, "-m", "build", "--no-isolation", "--outdir", made, made / "tree"),
        PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    )


def needed(name: str) -> Iterator[importlib.metadata.Distribution]:
    """Yield what a package needs, without extras, from this environment."""
    for text in importlib.metadata.requires(name) or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield importlib.metadata.distribution(requirement.name)
            yield from needed(requirement.name)


def install(wheel: Path, environment: Path) -> None:
    """Install a wheel and, in place of a network, links to its dependencies in this environment."""
    run(sys.executable, "-m", "venv", "--without-pip", environment)
    (packages,) = environment.glob("lib/python*/site-packages")
    for one in needed(PACKAGE):
        for name in {file.parts[0] for file in one.files or ()} - {"..", "__pycache__"}:
            if not (packages / name).exists():
                (packages / name).symlink_to(str(one.locate_file(name)))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python"]
    run(*pip, environment / "bin" / "python", "install", "--no-index", "--no-deps", wheel)


@pytest.fixture(scope="module")
def built(made_once: MadeOnce) -> Path:
    """A folder with the source package and the wheel."""
    if INSTALLED:
        pytest.skip("what is installed is tried: make test-packages tries the clone")
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("what is packed is what git has: make it a clone, and apt install git")
    return made_once("packages", build)


@pytest.fixture(scope="module")
def installed(request: pytest.FixtureRequest, made_once: MadeOnce) -> Path:
    """The programs of an environment in which the wheel is installed."""
    if INSTALLED:
        return Path(sys.executable).parent
    (wheel,) = request.getfixturevalue("built").glob("*.whl")
    return made_once("environment", functools.partial(install, wheel)) / "bin"


def type_in(programs: Path, *words: str) -> str:
    """Type a command where no other programs are to be found than those of the environment."""
    return run(programs / "spead-tutorial", *words, **only(programs))


def only(programs: Path) -> dict[str, str]:
    return {"PATH": str(programs), "PYTHONPATH": "", "CC": "", "CXX": ""}


# ---- What is in them ----


def test_the_source_package_has_every_file_that_is_committed(built):
    (archive,) = built.glob("*.tar.gz")
    committed = run("git", "-C", built / "tree", "ls-files").splitlines()
    with tarfile.open(archive) as packed:
        there = {name.partition("/")[2] for name in packed.getnames()}
    assert set(committed) - there == set()


def test_the_wheel_has_the_programs_and_nothing_of_the_machine_that_built_it(built):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        facts = json.loads(packed.read("spead_tutorial/_build.json"))
    assert "spead_tutorial/py.typed" in names
    assert {"spead_tutorial/bin/ceiling", "spead_tutorial/bin/sink"} <= set(names)
    assert [name for name in names if name.endswith((".pyc", "meson.build"))] == []
    assert str(built) not in json.dumps(facts)


# ---- What they do ----


def test_the_doctor_finds_every_program_of_the_wheel(installed):
    done = typed.run(installed / "spead-tutorial", "doctor", env=os.environ | only(installed))
    assert done.returncode == (0 if probe().reason is None else 1), done.stdout + done.stderr
    (line,) = [line for line in done.stdout.splitlines() if "chapters in" in line]
    assert "missing" not in line
    assert "none found here" in done.stdout  # a compiler


@needs_lab
@pytest.mark.parametrize("language", MEASURED)
def test_packets_of_the_wheels_programs_merge(installed, language):
    """A device of the lab counts a message as one, whatever number of packets it is cut into."""
    output = type_in(installed, "run", "10", "--lang", language, "-n", "64", "--json")
    sent = json.loads(output)
    assert sent["failure"] is None
    assert sent["counted_packets"] > 0
    assert sent["packets"] / sent["counted_packets"] > 4  # 7 of 9000 bytes fit in a message


@needs_lab
def test_the_wheel_receives_what_it_sends(installed):
    output = type_in(installed, "run", "7", "--from", "6", "--rate", "100", "-n", "50", "--json")
    assert json.loads(output)["accounted"]


@needs_lab
def test_the_wheel_measures_a_tour(installed, tmp_path):
    output = type_in(installed, "tour", "--tiny", "--output", str(tmp_path / "out"))
    assert "✗" not in output
    assert INSTALLED or "No pictures: " in output  # these take the extra [lab]
    assert (tmp_path / "out" / "index.html").is_file()

# SPDX-License-Identifier: BSD-3-Clause
"""Fuzz the core and what Python reads side by side: ``fuzz.py BUILD_FOLDER SECONDS``.

Targets begin with the inputs that are committed, few that reach all that was reached so far. What a
long run finds beyond them stays in BUILD_FOLDER; to have the few of all in an empty folder, which
then takes the place of the committed one (for the core's target ``chunks``)::

    fuzz_chunks -set_cover_merge=1 EMPTY csrc/fuzz/corpus/chunks BUILD_FOLDER/chunks
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent  # where meson and ninja are
ROOT = Path(__file__).parent.parent
CORPUS = ROOT / "csrc/fuzz/corpus"  # a folder of inputs for each of the core's targets
PYTHON = ROOT / "tests/fuzz"  # programs, and theirs


def fuzz_core(folder: Path) -> list[list[str]]:
    """Build the targets; return their commands: none where they cannot be."""
    if shutil.which("clang") is None:
        print("skipped: fuzzing C needs clang and its runtime (Debian: clang, libclang-rt-*-dev)")
        return []
    os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    os.environ["CC"] = "clang"
    if not (folder / "build.ninja").exists():
        subprocess.run(["meson", "setup", "-Dfuzz=true", "-Db_lundef=false", folder], check=True)
    targets = {name: f"csrc/fuzz/fuzz_{name}" for name in sorted(os.listdir(CORPUS))}
    subprocess.run(["ninja", "-C", folder, *targets.values()], check=True)
    return [
        [str(folder / target), made(folder / name), str(CORPUS / name)]
        for name, target in targets.items()
    ]


def fuzz_python(folder: Path) -> list[list[str]]:
    """Return the commands: none where they cannot be."""
    if importlib.util.find_spec("atheris") is None:
        print("skipped: fuzzing Python needs atheris, which is not offered for this machine")
        return []
    return [
        [sys.executable, f"{PYTHON / name}.py", made(folder / name), str(PYTHON / "corpus" / name)]
        for name in ("wire", "descriptors")
    ]


def made(folder: Path) -> str:
    """Make the folder to which inputs are added."""
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


def main() -> None:
    folder, seconds = Path(sys.argv[1]), int(sys.argv[2])
    commands = [*fuzz_core(folder), *fuzz_python(folder)]
    print(f"Fuzzing for {seconds} s.", flush=True)
    options = [f"-max_total_time={seconds}", "-verbosity=0"]
    running = [subprocess.Popen([*command, *options]) for command in commands]
    statuses = [process.wait() for process in running]
    if any(statuses):
        sys.exit("fuzzing found a fault: above is which, and the file that its input is in")


if __name__ == "__main__":
    main()

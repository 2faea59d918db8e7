# SPDX-License-Identifier: BSD-3-Clause
"""Fuzz the core and the dissector side by side: ``fuzz.py BUILD_FOLDER SECONDS``."""

import importlib.util
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent  # where meson and ninja are
ROOT = Path(__file__).parent.parent


def fuzz_core(folder: Path) -> list[list[str]]:
    """Build the targets; return their commands: none where they cannot be."""
    if shutil.which("clang") is None:
        print("skipped: fuzzing C needs clang and its runtime (Debian: clang, libclang-rt-*-dev)")
        return []
    os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    os.environ["CC"] = "clang"
    if not (folder / "build.ninja").exists():
        subprocess.run(["meson", "setup", "-Dfuzz=true", "-Db_lundef=false", folder], check=True)
    names = ("packetizer", "depacketizer", "received_group", "chunks")
    targets = [f"csrc/fuzz/fuzz_{name}" for name in names]
    subprocess.run(["ninja", "-C", folder, *targets], check=True)
    return [[str(folder / target)] for target in targets]


def fuzz_dissector(folder: Path) -> list[list[str]]:
    """Make packets to begin with; return the command: none where it cannot be."""
    if importlib.util.find_spec("atheris") is None:
        print("skipped: fuzzing Python needs atheris, which is not offered for this machine")
        return []
    corpus = folder / "wire"
    corpus.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(ROOT / "tests"))
    from random_heaps import random_heap

    for seed in range(40):
        packet = random_heap(random.Random(seed)).encode(1, 1472)[0]
        (corpus / str(seed)).write_bytes(packet)
    return [[sys.executable, str(ROOT / "tests" / "fuzz_wire.py"), str(corpus)]]


def main() -> None:
    folder, seconds = Path(sys.argv[1]), int(sys.argv[2])
    commands = [*fuzz_core(folder), *fuzz_dissector(folder)]
    print(f"Fuzzing for {seconds} s.", flush=True)
    options = [f"-max_total_time={seconds}", "-verbosity=0"]
    running = [subprocess.Popen([*command, *options]) for command in commands]
    statuses = [process.wait() for process in running]
    if any(statuses):
        sys.exit("fuzzing found a fault: above is which, and the file that its input is in")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""Fuzz the packetizer and the dissector, half the time each: ``fuzz.py BUILD_FOLDER SECONDS``."""

import importlib.util
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent  # where meson and ninja are


ROOT = Path(__file__).parent.parent


def fuzz_packetizer(folder: Path, seconds: int) -> None:
    if shutil.which("clang") is None:
        print("skipped: fuzzing C needs clang and its runtime (Debian: clang, libclang-rt-*-dev)")
        return
    os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    os.environ["CC"] = "clang"
    if not (folder / "build.ninja").exists():
        subprocess.run(["meson", "setup", "-Dfuzz=true", "-Db_lundef=false", folder], check=True)
    subprocess.run(["ninja", "-C", folder, "csrc/fuzz/fuzz_packetizer"], check=True)
    target = folder / "csrc" / "fuzz" / "fuzz_packetizer"
    subprocess.run([target, f"-max_total_time={seconds}", "-verbosity=0"], check=True)


def fuzz_dissector(folder: Path, seconds: int) -> None:
    if importlib.util.find_spec("atheris") is None:
        print("skipped: fuzzing Python needs atheris, which is not offered for this machine")
        return
    corpus = folder / "wire"
    corpus.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(ROOT / "tests"))
    from random_heaps import random_heap

    for seed in range(40):
        packet = random_heap(random.Random(seed)).encode(1, 1472)[0]
        (corpus / str(seed)).write_bytes(packet)
    target = ROOT / "tests" / "fuzz_wire.py"
    limit = f"-max_total_time={seconds}"
    subprocess.run([sys.executable, target, limit, "-verbosity=0", corpus], check=True)


def main() -> None:
    folder, seconds = Path(sys.argv[1]), int(sys.argv[2])
    print(f"Fuzzing for {seconds} s.", flush=True)
    fuzz_packetizer(folder, seconds // 2)
    fuzz_dissector(folder, seconds // 2)


if __name__ == "__main__":
    main()

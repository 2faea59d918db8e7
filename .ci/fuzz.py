# SPDX-License-Identifier: BSD-3-Clause
"""Fuzz the core and what Python reads side by side: ``fuzz.py BUILD_FOLDER SECONDS``.

The core's targets begin with the inputs that are committed, few that reach all that was reached so
far. What a long run finds beyond them stays in BUILD_FOLDER; to have the few of all in an empty
folder, which then takes the place of the committed one (for the target ``chunks``)::

    fuzz_chunks -set_cover_merge=1 EMPTY csrc/fuzz/corpus/chunks BUILD_FOLDER/chunks
"""

import importlib.util
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

BIN = Path(sys.executable).parent  # where meson and ninja are
ROOT = Path(__file__).parent.parent
CORPUS = ROOT / "csrc/fuzz/corpus"  # a folder of inputs for each of the core's targets


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
        [str(folder / target), str(in_folder(folder / name)), str(CORPUS / name)]
        for name, target in targets.items()
    ]


def fuzz_python(folder: Path) -> list[list[str]]:
    """Make inputs to begin with; return the commands: none where they cannot be."""
    if importlib.util.find_spec("atheris") is None:
        print("skipped: fuzzing Python needs atheris, which is not offered for this machine")
        return []
    sys.path.insert(0, str(ROOT / "tests"))
    return [
        [sys.executable, str(ROOT / "tests/fuzz" / f"{name}.py"), str(in_folder(folder / name, of))]
        for name, of in (("wire", packets()), ("descriptors", descriptors()))
    ]


def in_folder(folder: Path, inputs: Iterable[bytes] = ()) -> Path:
    """Write a file for each input; return the folder, to which more are added."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, data in enumerate(inputs):
        (folder / str(i)).write_bytes(data)
    return folder


def packets() -> Iterator[bytes]:
    from support.random_heaps import random_heap

    for seed in range(40):
        yield random_heap(random.Random(seed)).encode(1, 1472)[0]


def descriptors() -> Iterator[bytes]:
    """What `tests/fuzz/descriptors.py` reads: NumPy's types, and those of SPEAD's own formats."""
    import numpy as np

    from support.random_heaps import DTYPES, FORMATS

    structures = ([("a", ">i4"), ("b", "<f8", (2,))], [("a", [(("t", "c"), "<U2")], (3,))])
    for dtype in map(np.dtype, (*DTYPES, ">U2", "V5", "<M8[ns]", ">m8[25s]", *structures)):
        descr = dtype.descr if dtype.names else dtype.str
        for shape in ((), (2,), (0, 3)):
            header = {"descr": descr, "fortran_order": bool(shape), "shape": shape}
            yield b"\1%b\xff%b" % (str(header).encode(), bytes(range(32, 32 + 2 * dtype.itemsize)))
    for fields in FORMATS:
        format = b"".join(letter.encode() + bits.to_bytes(2, "big") for letter, bits in fields)
        for shape in (b"", b"\x80", b"\2\x80"):
            yield b"\0%b\xfe%b\xff%b" % (format, shape, bytes(range(32)))


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

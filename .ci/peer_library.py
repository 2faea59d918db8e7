# SPDX-License-Identifier: BSD-3-Clause
"""Build spead2's C++ library from its release, and our programs that receive with it.

The library stays, for a program of the how-to guides that is built with it.

usage: peer_library.py RELEASE FOLDER
"""

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
#: What takes long to build, or needs more, and is not measured.
WITHOUT = ("tools", "unit_test", "cuda", "gdrapi")


def run(*words: object, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        list(map(str, words)), check=True, stdout=subprocess.PIPE, text=True, env=env
    )
    return done.stdout


def build(release: str, folder: Path, work: Path) -> None:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    run(*pip, "--no-deps", "--no-binary", "spead2", "-d", work, f"spead2=={release}")
    with tarfile.open(next(work.glob("spead2-*.tar.gz"))) as archive:
        archive.extractall(work, filter="data")
    library = folder / "cpp"
    options = ["--libdir", "lib", "--buildtype", "release", "-Ddefault_library=static"]
    options += [f"-D{name}=disabled" for name in WITHOUT]
    source = next(path for path in work.glob("spead2-*") if path.is_dir())
    run(BIN / "meson", "setup", work / "build", source, "--prefix", library, *options)
    run(BIN / "ninja", "-C", work / "build", "install")
    where = {**os.environ, "PKG_CONFIG_PATH": str(library / "lib" / "pkgconfig")}
    flags = run("pkg-config", "--static", "--cflags", "--libs", "spead2", env=where).split()
    # With the options and the claims of our receivers.
    ours, parts = work / "ours", ("bench/libmeasuring.a", "chapters/libcommon.a", "libspt.a")
    run(BIN / "meson", "setup", ours, ROOT)
    run(BIN / "ninja", "-C", ours, *(f"csrc/{part}" for part in parts))
    headers = ["-I", ROOT / "csrc" / "include", "-I", ROOT / "csrc" / "bench"]
    libraries = [ours / "csrc" / part for part in parts]
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    for path in (ROOT / "bench" / "peer").glob("*.cc"):
        words = [*headers, path, *libraries, "-o", programs / path.stem, *flags]
        run("g++", "-std=c++17", "-O3", *words)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as made:
        build(sys.argv[1], Path(sys.argv[2]).absolute(), Path(made))

# SPDX-License-Identifier: BSD-3-Clause
"""Build spead2's C++ library from its release, and our programs that send and receive with it.

The library stays, for a program of the how-to guides that is built with it.

usage: peer_library.py RELEASE FOLDER
"""

import html
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
#: What takes long to build, or needs more, and is not measured.
WITHOUT = ("tools", "unit_test", "cuda", "gdrapi")
#: Whose loops bench/peer/send.cc has, each by its name.
SENDERS = (
    "tut_8_send_reuse_memory",
    "tut_10_send_reuse_heaps",
    "tut_11_send_batch_heaps",
    "tut_14_send_many_streams",
)


def run(*words: object, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        list(map(str, words)), check=True, stdout=subprocess.PIPE, text=True, env=env
    )
    return done.stdout


def found_at(release: str) -> str:
    """Return where the release is: pip would build all of it before it hands it out."""
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/") + "/spead2/"
    with urllib.request.urlopen(index) as answer:
        page = answer.read().decode()
    link = re.search(rf'href="([^"]*spead2-{re.escape(release)}\.tar\.gz[^"]*)"', page)
    if link is None:
        sys.exit(f"{index} has no source of spead2 {release}")
    return urllib.parse.urljoin(index, html.unescape(link[1]))


def build(release: str, folder: Path, work: Path) -> None:
    with urllib.request.urlopen(found_at(release)) as answer:
        packed = io.BytesIO(answer.read())
    with tarfile.open(fileobj=packed) as archive:
        # Debian 12's Python has no filters yet.
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(work, **safely)
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
    folders = ("include", "bench", "chapters")
    headers = [word for name in folders for word in ("-I", ROOT / "csrc" / name)]
    libraries = [ours / "csrc" / part for part in parts]
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    for path in (ROOT / "bench" / "peer").glob("*.cc"):
        words = [*headers, path, *libraries, "-o", programs / path.stem, *flags]
        run("g++", "-std=c++20", "-O3", *words)
    for name in SENDERS:
        (programs / name).symlink_to("send")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as made:
        build(sys.argv[1], Path(sys.argv[2]).absolute(), Path(made))

# SPDX-License-Identifier: BSD-3-Clause
"""Fetch Python for browsers, which the site then offers to run: ``make pyodide docs``.

It is Pyodide's own package of the npm registry, of which only what runs is kept. The site works
without it, and says nothing of it then.
"""

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "pyodide@314.0.7"
FILES = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "pyodide-lock.json",
    "python_stdlib.zip",
)


def fetch(folder: Path) -> None:
    """Put Pyodide's files into a folder, all of them or none."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent.parent) as place:
        command = ["npm", "pack", "--silent", "--pack-destination", place, PACKAGE]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (packed,) = Path(place).glob("*.tgz")
        kept = Path(place, "kept")
        kept.mkdir()
        with tarfile.open(packed) as archive:
            for name in FILES:
                member = archive.extractfile(f"package/{name}")
                if member is None:
                    raise LookupError(f"{PACKAGE} has no file {name}")
                (kept / name).write_bytes(member.read())
        shutil.rmtree(folder, ignore_errors=True)
        kept.rename(folder)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="example: python .ci/pyodide.py build/python"
    )
    parser.add_argument("folder", type=Path, help="where the folder pyodide is to be")
    try:
        fetch(parser.parse_args().folder / "pyodide")
    except FileNotFoundError:
        sys.exit("npm is missing: apt install npm; the site is built without it, too")
    except (subprocess.CalledProcessError, LookupError) as error:
        sys.exit(f"Pyodide could not be fetched: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""Build the C core by itself, and test it: ``meson_test.py BUILD_FOLDER [MESON_OPTION ...]``."""

import os
import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent  # where meson and ninja are


def main() -> None:
    folder, *options = sys.argv[1:]
    os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    again = ["--reconfigure"] if Path(folder, "build.ninja").exists() else []
    setup = ["meson", "setup", "--werror", *again, *options, folder]
    for command in (setup, ["meson", "test", "-C", folder, "--print-errorlogs"]):
        status = subprocess.call(command)
        if status:
            sys.exit(status)
    log = Path(folder, "meson-logs", "testlog.txt").read_text().splitlines()
    print(*(line for line in log if line.startswith("skipped: ")), sep="\n")


if __name__ == "__main__":
    main()

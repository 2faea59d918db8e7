# SPDX-License-Identifier: BSD-3-Clause
"""Every linter and type check, from the repository's root; all are run, then the status tells."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent

C_FILES = sorted(str(path) for path in (ROOT / "csrc").rglob("*.[ch]"))
CYTHON_FILES = sorted(str(path) for path in (ROOT / "spead_tutorial").glob("*.p[yx][xd]"))
STUBTEST = ["--mypy-config-file", str(ROOT / "pyproject.toml")]
STUBTEST += ["--allowlist", str(ROOT / ".ci" / "stubtest_allowlist")]

CHECKS = [
    (ROOT, ["ruff", "check", "."]),
    (ROOT, ["ruff", "format", "--check", "."]),
    (ROOT, ["mypy"]),
    # From elsewhere: the installed package is what is checked, not the source folder.
    (BIN, ["stubtest", "spead_tutorial", *STUBTEST]),
    (ROOT, ["clang-format", "--dry-run", "--Werror", *C_FILES]),
    (ROOT, ["cython-lint", "--max-line-length", "100", *CYTHON_FILES]),
    (ROOT, ["codespell"]),
]


def main() -> None:
    os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    failed = []
    for folder, command in CHECKS:
        print("+", " ".join(command[:3]), flush=True)
        if subprocess.call(command, cwd=folder):
            failed.append(command[0])
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()

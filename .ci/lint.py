# SPDX-License-Identifier: BSD-3-Clause
"""Every linter and type check, side by side; all are run, then the status tells."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent

C_FILES = sorted(
    str(path)
    for folder in ("csrc", "tests/support/senders")
    for kind in ("*.[ch]", "*.[ch]pp")
    for path in (ROOT / folder).rglob(kind)
)
CPP_FILES = sorted(str(path) for path in (ROOT / "csrc").rglob("*.cpp"))
INCLUDED = (f"-I{ROOT / 'csrc' / folder}" for folder in ("include", "chapters"))
CPP_FLAGS = ["-std=c++20", *INCLUDED, "-D_GNU_SOURCE"]
CYTHON_FILES = sorted(
    str(path) for kind in ("*.pyx", "*.px[di]") for path in (ROOT / "spead_tutorial").glob(kind)
)
WORKFLOWS = sorted(str(path) for path in (ROOT / ".github" / "workflows").glob("*.yml"))
STUBTEST = ["--mypy-config-file", str(ROOT / "pyproject.toml")]
STUBTEST += ["--allowlist", str(ROOT / ".ci" / "stubtest_allowlist")]

CHECKS = [
    (ROOT, ["mypy"]),
    # From elsewhere: the installed package is what is checked, not the source folder.
    (BIN, ["stubtest", "spead_tutorial", *STUBTEST]),
    (ROOT, ["ruff", "check", "."]),
    (ROOT, ["ruff", "format", "--check", "."]),
    (ROOT, ["clang-format", "--dry-run", "--Werror", *C_FILES]),
    (ROOT, ["cython-lint", "--max-line-length", "100", *CYTHON_FILES]),
    (ROOT, ["codespell"]),
    (ROOT, ["check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS]),
    (ROOT, ["check-jsonschema", "--builtin-schema", "vendor.readthedocs", ".readthedocs.yaml"]),
]

# It comes with the compiler, if at all; .clang-tidy says what it looks for.
if shutil.which("clang-tidy"):
    CHECKS.append((ROOT, ["clang-tidy", "--quiet", *CPP_FILES, "--", *CPP_FLAGS]))


def run(check: tuple[Path, list[str]]) -> subprocess.CompletedProcess[str]:
    folder, command = check
    pipe, both = subprocess.PIPE, subprocess.STDOUT
    return subprocess.run(command, cwd=folder, stdout=pipe, stderr=both, text=True, check=False)


def main() -> None:
    os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    failed = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in pool.map(run, CHECKS):
            print("+", *done.args[:3], f"\n{done.stdout}", end="", flush=True)
            if done.returncode:
                failed.append(done.args[0])
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()

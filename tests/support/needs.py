# SPDX-License-Identifier: BSD-3-Clause
"""What tests want of the machine: a reason to skip one says what to install, or what it is."""

import shutil

import pytest

#: Debian's packages, where they are called other than the program.
PACKAGES = {
    "c++": "g++",
    "cc": "gcc",
    "go": "golang",
    "ip": "iproute2",
    "java": "default-jre-headless",
    "javac": "default-jdk-headless",
    "node": "nodejs",
    "perf": "linux-perf",
    "setpriv": "util-linux",
    "tc": "iproute2",
    "unshare": "util-linux",
}


def lacking(*programs: str) -> str | None:
    """Say which programs are missing, and what installs them; None where all are here."""
    missing = [name for name in programs if shutil.which(name) is None]
    if not missing:
        return None
    packages = " ".join(dict.fromkeys(PACKAGES.get(name, name) for name in missing))
    return f"there is no {' and no '.join(missing)}: apt install {packages}"


def need(*programs: str) -> None:
    """Skip the test where one of these programs is missing."""
    reason = lacking(*programs)
    if reason is not None:
        pytest.skip(reason)


def needs(*programs: str) -> pytest.MarkDecorator:
    reason = lacking(*programs)
    return pytest.mark.skipif(reason is not None, reason=reason or "")

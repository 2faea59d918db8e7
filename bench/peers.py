# SPDX-License-Identifier: BSD-3-Clause
"""Programs beside ours: those of another installation, the peer's, and the bare loops."""

import hashlib
import importlib.resources
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from spead_tutorial.measure import baselines
from spead_tutorial.measure.baselines import CEILING, PEER
from spead_tutorial.measure.programs import ProgramError

#: The peer as it is installed, and built here, where the compiler sees what the kernel offers.
PEER_FROM_SOURCE = "spead2-source"
PEERS = (PEER, PEER_FROM_SOURCE)

PACKAGE = Path(str(importlib.resources.files("spead_tutorial")))
_MADE = Path(__file__).resolve().parent.parent / "build" / "peer"  # by make peer
_FROM_SOURCE = Path(os.environ.get("SPEAD_TUTORIAL_PEER") or _MADE)
#: Programs of ours over its C++ library.
PEER_PROGRAMS = _FROM_SOURCE / "programs"
TIMEOUT_S = 120.0


def find_installation(python: str) -> tuple[Path, Path]:
    """Return the folder of another installation of ours, and its interpreter."""
    source = (
        "import spead_tutorial._core, pathlib; print(pathlib.Path(spead_tutorial.__file__).parent)"
    )
    path = Path(python).absolute()  # not resolved: a link is what makes it an environment's
    try:
        done = subprocess.run(
            [path, "-c", source], capture_output=True, text=True, check=False, cwd="/"
        )
    except OSError as error:
        raise ProgramError(f"{python} cannot be started: {error.strerror}") from None
    if done.returncode:
        raise ProgramError(f"{python} has no spead_tutorial: install it there (pip install .)")
    return Path(done.stdout.strip()), path


def missing_peer(implementation: str) -> str | None:
    """Say why an implementation cannot run here, if it is a peer's; None where it can."""
    if implementation == PEER_FROM_SOURCE and not (_FROM_SOURCE / "spead2").is_dir():
        return "spead2 has not been built from its source: make peer"
    return baselines.missing_peer() if implementation in PEERS else None


def interpreter(implementation: str) -> list[str]:
    """Return how Python is started: to find the peer built here before the one pip installed."""
    built_here = implementation == PEER_FROM_SOURCE
    return ["env", f"PYTHONPATH={_FROM_SOURCE}"] * built_here + [sys.executable]


# ---- What they are made of ----


def build_key(name: str) -> str:
    """Return under which name a record's versions have the build of a program beside ours."""
    return f"{name}-build"


def builds() -> dict[str, str]:
    """Return what tells builds of programs beside ours, and of their drivers, from one another."""
    # A version tells nothing: the peer that is built here is not the program that pip installs.
    drivers = PACKAGE / "peer"
    parts: dict[str, tuple[Path, ...]] = {CEILING: (PACKAGE / "bin" / CEILING,)}
    parts[PEER_FROM_SOURCE] = (_FROM_SOURCE / "spead2", drivers, PEER_PROGRAMS)
    if (installed := _installed_peer()) is not None:
        parts[PEER] = (installed, drivers)
    return {name: build_of(*paths) for name, paths in sorted(parts.items()) if paths[0].exists()}


def _installed_peer() -> Path | None:
    spec = importlib.util.find_spec("spead2")
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def build_of(*paths: Path) -> str:
    """Return what tells files, and what is in folders, from others, whatever their versions."""
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(file.read_bytes())
    return digest.hexdigest()[:12]

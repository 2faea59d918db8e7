# SPDX-License-Identifier: BSD-3-Clause
"""Programs beside ours: those of another installation, the peer's, and the bare loops."""

import contextlib
import functools
import hashlib
import importlib.resources
import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from bench.sweeps import PEER_FROM_SOURCE, PEERS
from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.lab import Lab, LabError
from spead_tutorial.measure import baselines
from spead_tutorial.measure.baselines import CEILING, PEER
from spead_tutorial.measure.case import Case
from spead_tutorial.measure.machine import two_cores
from spead_tutorial.measure.programs import Launch, ProgramError, command
from spead_tutorial.measure.records import OURS, Timeline
from spead_tutorial.measure.timeline import record

#: Folder of each installation of ours that is not the running one, and its interpreter.
Installations = Mapping[str, tuple[Path, Path]]

PACKAGE = Path(str(importlib.resources.files("spead_tutorial")))
_MADE = Path(__file__).resolve().parent.parent / "build" / "peer"  # by make peer
_FROM_SOURCE = Path(os.environ.get("SPEAD_TUTORIAL_PEER") or _MADE)
#: Programs of ours over its C++ library.
PEER_PROGRAMS = _FROM_SOURCE / "programs"
TIMEOUT_S = 120.0
_SO_ZEROCOPY = 60


def find_installation(python: str) -> tuple[Path, Path]:
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


def missing(case: Case) -> str | None:
    """Say why a case cannot run here; None where it can."""
    reason = missing_peer(case.implementation)
    if reason is not None:
        return reason
    if case.pinned == "pinned" and two_cores() is None:
        return "there are no two cores to pin threads to"
    if case.link is not None and (reason := why_no_link(case.link)):
        return reason
    if "zero-copy" in case.words and not _zero_copy():
        return "the kernel does not offer zero-copy"
    if case.implementation in PEERS and case.language != "python":
        return (
            None if (PEER_PROGRAMS / case.program).exists() else "it has not been built: make peer"
        )
    if case.implementation in (*PEERS, CEILING):
        return baselines.missing(case)
    try:
        command(find_chapter(case.program), case.language)
    except ProgramError as error:
        return str(error)
    return None


def missing_peer(implementation: str) -> str | None:
    """Say why an implementation cannot run here, if it is a peer's; None where it can."""
    if implementation == PEER_FROM_SOURCE and not (_FROM_SOURCE / "spead2").is_dir():
        return "spead2 has not been built from its source: make peer"
    return baselines.missing_peer() if implementation in PEERS else None


@functools.cache
def why_no_link(bits_per_s: int) -> str | None:
    """Say why no link's rate can be limited here; None where it can."""
    try:
        with Lab() as lab, lab.limited(bits_per_s):
            return None
    except LabError as error:
        return error.summary


def _zero_copy() -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.setsockopt(socket.SOL_SOCKET, _SO_ZEROCOPY, 1)
        except OSError:
            return False
    return True


def launch(case: Case, heaps: int | None, installations: Installations) -> Launch | None:
    """Return how a case's program is started, if not as all others are."""
    if case.implementation == OURS:
        return None
    if case.implementation == CEILING or (
        case.implementation in PEERS and case.language == "python"
    ):
        return baselines.launch(case, heaps, interpreter(case.implementation))
    if case.implementation in PEERS:
        words = [str(PEER_PROGRAMS / case.program)]
    else:
        folder, python = installations[case.implementation]
        path = folder / "chapters" / case.program
        words = [str(path)] if case.language == "c" else [str(python), f"{path}.py"]
    return baselines.started(words, case.options(heaps).arguments(find_chapter(case.program)))


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


# ---- Times ----


def take_timeline(lab: Lab, case: Case, heaps: int = 24) -> Timeline:
    """Have the loop of a case's program say when it did what."""
    with lab.limited(case.link) if case.link is not None else contextlib.nullcontext():
        found = record(
            lab.run,
            (lab.address, lab.port),
            pipelined=case.program == "tut_5_send_pipeline",
            random=case.random or case.program == "tut_4_send_perf",
            heaps=heaps,
            heap_size=case.heap_size,
            packet_size=case.packet_size,
            cores=case.options().cores,
            timeout=TIMEOUT_S,
        )
    return replace(found, case=case.name, variant=case.different)

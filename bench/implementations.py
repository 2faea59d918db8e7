# SPDX-License-Identifier: BSD-3-Clause
"""How a case is run: our programs, those of another installation, the peer's, and the bare loops.

Whoever runs, the lab's counters have the last word: a run that they do not bear out has no rate.
"""

import dataclasses
import importlib.resources
import importlib.util
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.cases import CEILING, PEER, Case
from spead_tutorial.catalogue import find_chapter
from spead_tutorial.lab import DEVICE, Counters, Lab, accounted
from spead_tutorial.programs import (
    Options,
    ProgramError,
    command,
    run_on_loopback,
    run_program,
    sample,
)
from spead_tutorial.records import OURS, Sample, Timeline

__all__ = ["Installations", "find_installation", "missing", "take", "take_timeline"]

#: Folder of each installation of ours that is not the running one, and its interpreter.
Installations = Mapping[str, tuple[Path, Path]]

_PEERS = Path(__file__).resolve().parent / "peer"
_TIMEOUT_S = 120.0
_TIMELINE_HEAPS = 24
_SO_ZEROCOPY = 60
_CEILING_FLAGS = {
    "one thread": ["-t", "1"],
    "two threads": ["-t", "2"],
    "no fill": ["--no-fill"],
    "zero-copy": ["-z"],
}


def find_installation(python: str) -> tuple[Path, Path]:
    """Find the package of another environment.

    Parameters
    ----------
    python : str
        Its interpreter.

    Returns
    -------
    tuple of path
        The package's folder, and the interpreter.

    Raises
    ------
    ProgramError
        Where there is no such interpreter, or no such package in it.
    """
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
    if case.implementation == PEER and importlib.util.find_spec("spead2") is None:
        return "spead2 is not installed: pip install 'spead-tutorial[peer]'"
    if "zero-copy" in case.variant and not _zero_copy():
        return "the kernel does not offer zero-copy"
    if case.implementation in (PEER, CEILING):
        return None if Path(_others_command(case, {})[-1]).is_file() else _NOT_BUILT
    try:
        command(find_chapter(case.program), case.language)
    except ProgramError as error:
        return str(error)
    return None


_NOT_BUILT = "it has not been built: pip install ."


def _zero_copy() -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.setsockopt(socket.SOL_SOCKET, _SO_ZEROCOPY, 1)
        except OSError:
            return False
    return True


def take(
    lab: Lab, case: Case, heaps: int, number: int, warm_up: bool, installations: Installations
) -> Sample:
    """Run a case once.

    Parameters
    ----------
    lab : Lab
        Where. Nothing else may send there meanwhile.
    case : Case
        Not a timeline.
    heaps : int
        How many to send, where the program lets itself be told.
    number : int
        The round, from 0.
    warm_up : bool
        Whether it is not to be counted.
    installations : mapping
        Those that cases name, other than the running one.
    """
    load, stolen = os.getloadavg()[0], _stolen_ns()
    if case.implementation == OURS:
        one = _take_ours(lab, case, heaps, number, warm_up)
    else:
        one = _take_other(lab, case, heaps, number, warm_up, installations)
    return dataclasses.replace(
        one,
        implementation=case.implementation,
        load=round(load, 2),
        steal_ns=_stolen_ns() - stolen,
    )


def _stolen_ns() -> int:
    """Time that the hypervisor has given to others, all cores together."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return round(int(fields[8]) * 1e9 / os.sysconf("SC_CLK_TCK"))


def _take_ours(lab: Lab, case: Case, heaps: int, number: int, warm_up: bool) -> Sample:
    what = (lab, find_chapter(case.program), case.language, _options(case, heaps))
    if case.listener is not None:
        result = run_on_loopback(*what, listener=case.listener, timeout=_TIMEOUT_S)
    else:
        result = run_program(*what, timeout=_TIMEOUT_S, environment=dict(case.environment))
    return sample(result, case=case.name, number=number, warm_up=warm_up, variant=case.variant)


def _options(case: Case, heaps: int) -> Options:
    """Return what a chapter's program is told: as much as it lets itself be told."""
    accepted = find_chapter(case.program).accepted
    return Options(
        heaps=heaps if "n" in accepted else None,
        heap_size=case.heap_size if "H" in accepted else None,
        packet_size=case.packet_size if "p" in accepted else None,
        random=case.random,
    )


# ---------------------------------------------------------------------------------------
# Programs that are not of this installation


def _take_other(
    lab: Lab,
    case: Case,
    heaps: int,
    number: int,
    warm_up: bool,
    installations: Installations,
) -> Sample:
    argv = [*_others_command(case, installations), *_others_arguments(case, heaps), "--json"]
    before = lab.counters()
    found, failure = _run(lab, case.program, [*argv, lab.address, str(lab.port)])
    counted = lab.counters() - before
    told: dict[str, Any] = {
        "case": case.name,
        "round": number,
        "warm_up": warm_up,
        "chapter": 0 if case.implementation == CEILING else find_chapter(case.program).number,
        "program": case.program,
        "language": case.language,
        "random": case.random,
        "variant": case.variant,
        "heaps": heaps,
        "heap_size": case.heap_size,
        "packet_size": case.packet_size,
        "device": DEVICE,
        "kind": counted.kind,
        "counted_packets": counted.packets,
        "counted_bytes": counted.bytes,
        "failure": failure,
    }
    known = {field.name for field in dataclasses.fields(Sample)} - told.keys()
    one = Sample(**told, **{name: value for name, value in found.items() if name in known})
    return one if failure else dataclasses.replace(one, failure=_contradiction(one, found, counted))


def _others_command(case: Case, installations: Installations) -> list[str]:
    """Return how a program that is not of this installation is started."""
    if case.implementation == CEILING:
        path = importlib.resources.files("spead_tutorial").joinpath("bin", "ceiling")
        return [str(path)]
    if case.implementation == PEER:
        return [sys.executable, str(_PEERS / f"{case.program}.py")]
    folder, python = installations[case.implementation]
    path = folder / "chapters" / case.program
    return [str(path)] if case.language == "c" else [str(python), f"{path}.py"]


def _others_arguments(case: Case, heaps: int) -> list[str]:
    if case.implementation != CEILING:
        return _options(case, heaps).arguments(find_chapter(case.program))
    flags = [flag for word in case.variant.split(", ") for flag in _CEILING_FLAGS[word]]
    sizes = ["-n", heaps, "-H", case.heap_size, "-p", case.packet_size]
    return [*flags, *map(str, sizes)]


def _run(lab: Lab, program: str, argv: list[str]) -> tuple[dict[str, Any], str | None]:
    """Run a program; return what it printed, or why there is nothing."""
    try:
        done = lab.run(argv, capture_output=True, text=True, timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return {}, f"{program}: it did not end within {_TIMEOUT_S:g} s"
    except OSError as error:
        return {}, f"{program}: it cannot be started: {error.strerror}"
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        said = lines[-1] if lines else f"it ended with status {done.returncode}"
        return {}, said if said.startswith(program) else f"{program}: {said}"
    try:
        return dict(json.loads(done.stdout)), None
    except ValueError:
        return {}, f"{program}: it printed no report, but {done.stdout.strip()[:200]!r}"


def _contradiction(one: Sample, found: dict[str, Any], counted: Counters) -> str | None:
    """Say where what a program claims is not what the device counted; None where it is."""
    heaps = (one.heaps, one.heaps * one.heap_size)
    if (found.get("heaps"), found.get("payload_bytes")) != heaps:
        return f"{one.program}: it sent {found.get('heaps')} heaps, not {one.heaps}"
    if one.errors:
        return f"{one.program}: {one.errors} of its packets failed to be sent"
    # spead2 does not say how many messages it made of its packets. The bytes tell whether the
    # device's count can be right: each message has one set of headers.
    messages = counted.packets if one.messages is None else one.messages
    if messages > (one.packets or 0):
        return f"{one.program}: the device counted {messages} packets, more than {one.packets}"
    held = accounted(
        counted.packets,
        counted.bytes,
        packets=one.packets or 0,
        messages=messages,
        spead_bytes=one.spead_bytes or 0,
        link_header=counted.link_header,
    )
    return None if held.ok else f"{one.program}: {held.text}"


# ---------------------------------------------------------------------------------------
# Times


def take_timeline(lab: Lab, case: Case) -> Timeline:
    """Have the loop of a case's program say when it did what.

    Raises
    ------
    ProgramError
        Where it failed.
    """
    # -P: not the package's source in the working folder.
    argv = [sys.executable, "-P", "-m", "spead_tutorial.timeline", "--json"]
    argv += ["-n", str(_TIMELINE_HEAPS)]
    argv += ["--pipelined"] if "pipeline" in case.program else []
    argv += ["--random"] if case.random or "pipeline" not in case.program else []
    found, failure = _run(lab, "timeline", [*argv, lab.address, str(lab.port)])
    if failure is not None:
        raise ProgramError(failure)
    times = {name: tuple(value) for name, value in found.items() if name.endswith("_ns")}
    return Timeline(**found | times | {"case": case.name})

# SPDX-License-Identifier: BSD-3-Clause
"""Records of the ladder from other machines, and what each has to be: ``python -m bench check``."""

import getpass
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from bench.figures import RESULTS
from bench.sweeps import PEER_FROM_SOURCE, SIZES, find_sweep
from spead_tutorial.lab import KINDS
from spead_tutorial.measure.analysis import ROUNDS_FOR_A_CLAIM, rows
from spead_tutorial.measure.records import Header, RecordError, Recording, anonymous, read
from spead_tutorial.results.tables import plain

#: The reference machine's record, and the folder with those of all others.
LADDER = RESULTS / "ladder.jsonl"
MACHINES = RESULTS / "machines"

_SWEEP = "ladder"
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\.jsonl")
_REVISION = re.compile(r"[0-9a-f]{7,40}")
_BUILD = re.compile(r"[\w-]+-build|spead2")  # versions of what is measured only where it is there
#: What has to be known of a machine. Other facts may be null, as not every machine tells them.
_KNOWN = {
    "machine": "cpu architecture cores usable_cores memory_bytes kernel virtualisation",
    "lab": "kind mtu",
    "versions": "spead_tutorial python numpy compiler",
}


def records(folder: Path = MACHINES) -> dict[str, Path]:
    """Return each machine's record by a name for it, the reference machine's first."""
    return {"reference": LADDER} | {path.stem: path for path in sorted(folder.glob("*.jsonl"))}


def problems(path: Path, user: str = "") -> list[str]:
    """Say why a record cannot be contributed: a line for each thing that is wrong with it."""
    found = []
    if not _NAME.fullmatch(path.name) or path.stem == "reference":
        found.append(
            f"a record cannot be called {path.name}: take small letters, digits and hyphens, such"
            " as amd-epyc-2-cores.jsonl"
        )
    try:
        recording = read(path)
    except RecordError as error:
        return [*found, str(error)]
    return [*found, *_personal(path, user), *_measured_where(recording), *_measured(recording)]


def _personal(path: Path, user: str) -> Iterator[str]:
    """Look in all that is text, where it is."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for text in sorted(set(line.split('"'))):
            if anonymous(text) != text:
                yield f"line {number} names this machine or a folder of it: {text[:80]!r}"
            elif user and re.search(rf"(?<!\w){re.escape(user)}(?!\w)", text):
                yield f"line {number} has the name of a user, {user}: {text[:80]!r}"


# ---- Where it was measured, and how ----


def _measured_where(recording: Recording) -> Iterator[str]:
    header = recording.header
    if recording.others:
        yield "it was merged, but a ladder is of one machine, and was measured in one go"
    if header.experiment != _SWEEP:
        yield f"it is of the sweep {header.experiment}: python -m bench run {_SWEEP}"
    yield from _facts(header)
    if header.revision is None:
        yield "it does not say which revision was measured: install from a clone (make setup)"
    elif header.revision.endswith("+"):
        yield f"revision {header.revision} had changes: commit or stash them, and measure it anew"
    elif not _REVISION.fullmatch(header.revision):
        yield f"{header.revision!r} is no revision"
    settings = header.settings
    if settings.get("size") != SIZES["full"].name or settings.get("shard") != "1/1":
        yield "it is no whole record of full size: python -m bench run, without --quick or --shard"


def _facts(header: Header) -> Iterator[str]:
    """Hold the facts against those of the reference machine: no more, and no fewer."""
    ours = read(LADDER).header
    for part in ("machine", "lab", "settings", "versions"):
        have, expected = getattr(header, part), getattr(ours, part)
        for name in have.keys() ^ expected.keys():
            if not (part == "versions" and _BUILD.fullmatch(name)):
                what = "nothing that a record has" if name in have else "missing"
                yield f"{part}.{name} is {what}"
        for name in _KNOWN.get(part, "").split():
            if name in have and have[name] in (None, ""):
                yield f"{part}.{name} is not known"
    if header.lab.get("kind") not in KINDS:
        yield f"it was not measured in a lab of kind {', '.join(KINDS)}: spead-tutorial doctor"


# ---- What was measured ----


def _measured(recording: Recording) -> Iterator[str]:
    cases = {row.last.case: row for row in rows(recording)}
    wanted = {case.name: case for case in find_sweep(_SWEEP).cases}
    missing = [
        case.name
        for case in wanted.values()
        if case.implementation != PEER_FROM_SOURCE  # it is not built everywhere
        and case.name not in cases
    ]
    yield from _several(f"not measured, and {_SWEEP} has it", missing)
    yield from _several(f"no case of {_SWEEP}", [name for name in cases if name not in wanted])
    short = [
        f"{name} ({n})"
        for name, row in cases.items()
        if (n := len(row.samples)) < ROUNDS_FOR_A_CLAIM
    ]
    yield from _several(f"fewer than {ROUNDS_FOR_A_CLAIM} rounds", short)
    failures = [f"{name}: {row.failure}" for name, row in cases.items() if row.failure]
    yield from _several("failed (--only-noisy repeats it)", failures)


def _several(what: str, which: Sequence[str]) -> Iterator[str]:
    if which:
        more = f", and {len(which) - 1} more" if len(which) > 1 else ""
        yield f"{what}: {which[0]}{more}"


# ---- The command ----


@click.command()
@click.argument(
    "paths", metavar="RECORDS", nargs=-1, required=True, type=click.Path(path_type=Path)
)
def check(paths: tuple[Path, ...]) -> int:
    """Say whether RECORDS of the sweep `ladder` can be contributed, and if not, why.

    A record has to be complete, of one clean revision, and measured in a lab without a failure;
    and nothing in it may name the machine, its user or its folders. The exit status is 1 where
    something is wrong.

    Example: python -m bench check results/bench/ladder.jsonl
    """
    user = getpass.getuser()
    refused = False
    for path in paths:
        found = problems(path, "" if user == "root" else user)
        refused = refused or bool(found)
        for line in found:
            click.echo(plain(f"{path}: {line}"), err=True)
        if not found:
            recording = read(path)
            facts = recording.header.machine
            machine = f"{facts['cpu']}, {facts['usable_cores']} cores, Linux {facts['kernel']}"
            words = f"{machine}, {recording.rounds} rounds"
            click.echo(plain(f"{path}: can be contributed ({words})"))
    return int(refused)

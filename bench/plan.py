# SPDX-License-Identifier: BSD-3-Clause
"""Plans the measuring of a sweep: which cases, how thoroughly, and for how long."""

import dataclasses
import importlib.metadata
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import spead_tutorial
from bench.peers import build_key, build_of, builds
from bench.senders import SENDING, Installed
from bench.sweeps import Sweep
from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.lab import Lab
from spead_tutorial.measure import rounds
from spead_tutorial.measure.baselines import PEER
from spead_tutorial.measure.case import Case, Observer, Size, Step
from spead_tutorial.measure.delivery import receiving_lab
from spead_tutorial.measure.machine import header
from spead_tutorial.measure.records import OURS, Header, Recording, Sample, Taken, locked
from spead_tutorial.measure.rounds import schedule

if TYPE_CHECKING:
    from bench.shared import Shared

SEED = 31
#: Locked for one step, whoever measures; not where ``TMPDIR`` says, which differs among users.
ONE_AT_A_TIME = Path("/tmp")


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What is to be measured for one record."""

    sweep: str  # its name
    size: Size  # how thorough
    cases: tuple[Case, ...]  # those of the sweep that can run here
    rounds: int  # how many count
    skipped: dict[str, str]  # why the other cases cannot run: a reason for the name of each

    def steps(self) -> Iterator[Step]:
        """Yield all steps in their order: a warm-up, the rounds, and what is done once."""
        return schedule(self.cases, self.rounds, SEED)

    @property
    def observers(self) -> tuple[Observer, ...]:
        """All observers of its cases, each once."""
        return tuple(dict.fromkeys(case.observer for case in self.cases))

    @property
    def settings(self) -> dict[str, Any]:
        own: dict[str, Any] = {}
        for observer in self.observers:
            own |= observer.settings
        return own | {
            "size": self.size.name,
            "rounds": self.rounds,
            "seed": SEED,
            "longest_s": self.size.longest_s,
            "most_bytes": self.size.most_bytes,
            "skipped": self.skipped,
        }


def plan_of(
    sweep: Sweep,
    size: Size,
    rounds: int | None = None,
    installations: Mapping[str, Installed] = MappingProxyType({}),
) -> Plan:
    cases = list(sweep.of(size))
    for name, installed in installations.items():
        cases += [
            dataclasses.replace(case, implementation=name, observer=installed)
            for case in sweep.of(size)
            if case.implementation == OURS and _plain(case)
        ]
    found = [(case, case.observer.missing(case)) for case in cases]
    return Plan(
        sweep.name,
        size,
        tuple(case for case, reason in found if reason is None),
        rounds or (size.name == "full" and sweep.rounds) or size.rounds,
        {case.name: reason for case, reason in found if reason is not None},
    )


def _plain(case: Case) -> bool:
    """Whether a case is a program that sends to the lab's device, and nothing else."""
    special = bool(case.environment or case.pinned) or (case.listener, case.link) != (None, None)
    plain = case.observer is SENDING and not special
    return plain and find_chapter(case.program).takes_destination


# ---- Doing it ----


def measure(
    plan: Plan,
    path: Path,
    show: Callable[[Sequence[Step]], Iterator[Step]],
    say: Callable[[str], None],
    shared: "Shared | None" = None,
) -> Recording:
    """Have all steps of a plan observed that a record does not hold yet."""
    how: dict[str, Any] = {"path": path, "show": show}
    how["say"] = lambda step, failure: say(f"{step.case.name}: {failure}")
    if shared is not None:
        return rounds.measure(plan.steps(), shared.take, shared.header(), lane=shared.lane, **how)
    with _lab(plan) as lab:

        def observe(step: Step, known: Sample | None) -> Iterator[Taken]:
            with locked(ONE_AT_A_TIME, wait=True):
                yield from step.case.observer.observe(lab, plan.size, step, known)

        return rounds.measure(plan.steps(), observe, _header(plan, lab), **how)


def _lab(plan: Plan) -> Lab:
    receives = any(observer.receives for observer in plan.observers)
    return receiving_lab() if receives else Lab()


def observed(plan: Plan, step: Step, known: Sample | None) -> list[Taken]:
    """Return what there is of one step, in a lab of its own."""
    with locked(ONE_AT_A_TIME, wait=True), _lab(plan) as lab:
        return list(step.case.observer.observe(lab, plan.size, step, known))


def header_of(plan: Plan) -> Header:
    """Return what a record says of this machine."""
    with _lab(plan) as lab:
        return _header(plan, lab)


def _header(plan: Plan, lab: Lab) -> Header:
    """Return what a record says of where its samples were taken, and with what."""
    facts: dict[str, Any] = {}
    software = versions()
    for observer in plan.observers:
        facts |= observer.facts(lab)
        software |= observer.versions()
    return header(plan.sweep, facts, plan.settings, software)


def versions() -> dict[str, str | None]:
    """Return what a record says of the software, besides what every record says."""
    found: dict[str, str | None] = {"build": build_of(Path(spead_tutorial.__file__).parent)}
    if importlib.util.find_spec(PEER) is not None:
        found[PEER] = importlib.metadata.version(PEER)
    return found | {build_key(name): build for name, build in builds().items()}

# SPDX-License-Identifier: BSD-3-Clause
"""Observers of senders: their rate, and the times of their heaps."""

import contextlib
import dataclasses
import functools
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bench.peers import PEER_PROGRAMS, PEERS, TIMEOUT_S, interpreter, missing_peer
from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.lab import Lab, LabError
from spead_tutorial.measure import baselines
from spead_tutorial.measure.baselines import CEILING
from spead_tutorial.measure.case import Case, Observer, Size, Step
from spead_tutorial.measure.machine import two_cores
from spead_tutorial.measure.programs import Launch, ProgramError, command
from spead_tutorial.measure.records import OURS, Sample, Taken, Timeline
from spead_tutorial.measure.timeline import TIMES, record

_SO_ZEROCOPY = 60


class Sending(Observer):
    """How fast programs send: ours, the peer's and bare loops."""

    def missing(self, case: Case) -> str | None:
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
            there = (PEER_PROGRAMS / case.program).exists()
            return None if there else "it has not been built: make peer"
        if case.implementation in (*PEERS, CEILING):
            return baselines.missing(case)
        try:
            command(find_chapter(case.program), case.language)
        except ProgramError as error:
            return str(error)
        return None

    def launch(self, case: Case, heaps: int) -> Launch | None:
        if case.implementation == OURS:
            return None
        if case.implementation == CEILING or case.language == "python":
            return baselines.launch(case, heaps, interpreter(case.implementation))
        return _started(case, heaps, str(PEER_PROGRAMS / case.program))


@dataclasses.dataclass(frozen=True, slots=True)
class Installed(Sending):
    """How fast the programs of another installation of ours send."""

    folder: Path
    python: Path

    def launch(self, case: Case, heaps: int) -> Launch:
        folder = self.folder / "chapters"
        if case.language == "python":
            return _started(case, heaps, str(self.python), str(folder / f"{case.program}.py"))
        folder = folder / "cpp" if case.language == "cpp" else folder
        return _started(case, heaps, str(folder / case.program))


def _started(case: Case, heaps: int, *words: str) -> Launch:
    return baselines.started(words, case.options(heaps).arguments(find_chapter(case.program)))


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


class PlainCard(Sending):
    """How fast programs send where the kernel cuts messages and computes their checksums."""

    def missing(self, case: Case) -> str | None:
        return super().missing(case) or _why_no_plain_card()

    def facts(self, lab: Lab) -> dict[str, Any]:
        with lab.plain_card():
            return {"plain_card": super().facts(lab)["offloads"]}

    def observe(self, lab: Lab, size: Size, step: Step, known: Sample | None) -> Iterable[Taken]:
        with lab.plain_card():
            return list(super().observe(lab, size, step, known))


@functools.cache
def _why_no_plain_card() -> str | None:
    try:
        with Lab() as lab, lab.plain_card():
            return None
    except LabError as error:
        return error.summary


@dataclasses.dataclass(frozen=True, slots=True)
class Timelines(Sending):
    """When each of some heaps was prepared and sent."""

    n_heaps: int = 24

    warms_up, once, named = False, True, "/timeline"

    def asked(self, step: Step) -> Timeline:
        case = step.case
        nothing: dict[str, Any] = dict.fromkeys(TIMES, ())
        return Timeline(
            case=case.name,
            program=case.program,
            language=case.language,
            random=case.makes_random,
            heap_size=case.heap_size,
            packet_size=case.packet_size,
            variant=case.different,
            **nothing,
        )

    def observe(self, lab: Lab, size: Size, step: Step, known: Sample | None) -> Iterable[Taken]:
        case, asked = step.case, self.asked(step)
        with lab.limited(case.link) if case.link is not None else contextlib.nullcontext():
            found = record(
                lab.run,
                (lab.address, lab.port),
                pipelined=case.program == "tut_5_send_pipeline",
                random=asked.random,
                heaps=self.n_heaps,
                heap_size=case.heap_size,
                packet_size=case.packet_size,
                cores=case.options().cores,
                timeout=TIMEOUT_S,
            )
        return [replace(found, case=asked.case, variant=asked.variant)]


SENDING, TIMELINES, PLAIN_CARD = Sending(), Timelines(), PlainCard()

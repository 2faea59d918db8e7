# SPDX-License-Identifier: BSD-3-Clause
"""Senders with a known fault each, in several languages: it is what the diagnosis says first."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from spead_tutorial.tools.why.findings import diagnose
from spead_tutorial.tools.why.report import CHAPTERS, seen_of, text
from support.labs import needs_lab, open_lab
from support.needs import needs
from support.programs import alone_but, name_of
from support.senders import LANGUAGES, SENDERS, Planted
from support.senders.trying import diagnosis, rates

ATTEMPTS = 3
ROUNDS = 5
#: How far a share of the distance may be from what mending gains.
FACTOR = 1.5
#: Whose fault `make test` looks for in a process that runs.
REPRESENTATIVE = "c call per packet"
#: The device of a lab takes at once what it is given, so that nobody waits for room there.
NOT_IN_A_LAB = {"waits-for-room"}

Made = Callable[[Planted], Path]
needs_strace = needs("strace")


@pytest.fixture
def folder(planted: Made, request: pytest.FixtureRequest) -> Path:
    """Where the program of a case's sender is, which is compiled first."""
    sender: Planted = request.getfixturevalue("sender")
    if sender.lacking is not None:
        pytest.skip(sender.lacking)
    if sender.needs_two_cores and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("the machine has no other core")
    return planted(sender)


def is_found(sender: Planted, kinds: list[str]) -> bool:
    """Whether the fault of a sender comes first, and nothing is found where there is none."""
    if sender.kind is None:
        return not kinds
    return sender.kind in (kinds[:1] if sender.is_certain else kinds)


def test_every_fault_is_planted_and_every_language_has_some():
    assert {sender.kind for sender in SENDERS} >= set(CHAPTERS) - NOT_IN_A_LAB
    assert {sender.language for sender in SENDERS if sender.kind} == set(LANGUAGES)
    assert len({sender.name for sender in SENDERS}) == len(SENDERS)


@pytest.mark.parametrize("sender", [one for one in SENDERS if one.kind], ids=name_of)
def test_every_planted_sender_can_be_mended(sender):
    # Arguments of a stream are what `mended` takes back.
    assert re.search(r"mended|Sender\(\w", sender.source.read_text())


@pytest.mark.parametrize("sender", SENDERS, ids=name_of)
def test_of_what_was_seen_of_a_sender_its_fault_is_said_first(sender):
    seen = seen_of(json.loads(sender.facts.read_text()))
    found = diagnose(seen)
    kinds = [finding.kind for finding in found]
    assert is_found(sender, kinds), kinds
    words = " ".join(text(seen, found).split())
    for one in found:
        assert f"Chapter {CHAPTERS[one.kind]}, " in words
        assert " ".join(one.symptom.replace("\N{THIN SPACE}", "").split()) in words


@needs_lab
@needs_strace
@pytest.mark.parametrize("sender", alone_but(REPRESENTATIVE, SENDERS))
def test_of_a_sender_that_runs_its_fault_is_said_first(sender, folder):
    for attempt in range(ATTEMPTS):  # a machine can be so busy that nothing sleeps, or all does
        made = diagnosis(sender, folder, 0.5 * (1 << attempt))
        kinds = [finding["kind"] for finding in made["findings"]]
        if is_found(sender, kinds):
            return
    pytest.fail(f"found: {kinds}")


@needs_lab
@needs_strace
@pytest.mark.alone
@pytest.mark.parametrize(
    "sender", [one for one in SENDERS if one.kind and one.is_certain], ids=name_of
)
@pytest.mark.timeout(600)
def test_the_share_of_a_fault_is_what_mending_it_gains(sender, folder):
    for _ in range(ATTEMPTS):
        with open_lab() as lab:
            planted, mended = rates(lab, sender, folder, ROUNDS)
        made = diagnosis(sender, folder)
        distance_s = 1 / planted - 1 / made["bare"]["rate"]
        gained = min(1.0, (1 / planted - 1 / mended) / distance_s)
        shares = {finding["kind"]: finding["explains"] or 0.0 for finding in made["findings"]}
        share = shares.get(sender.kind, 0.0)
        if 0 < gained / FACTOR <= share <= gained * FACTOR:
            return
    pytest.fail(f"it explains {share:.0%}, and mending gains {gained:.0%}")

# SPDX-License-Identifier: BSD-3-Clause
"""Senders with a known fault each, in several languages: it is what the diagnosis says first."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spead_tutorial.tools.why.stacks import KINDS
from support.labs import needs_lab, open_lab
from support.needs import needs
from support.programs import alone_but, name_of
from support.senders import LANGUAGES, SENDERS, Planted
from support.senders.trying import diagnosis, rates

ATTEMPTS = 3
ROUNDS = 5
#: Whose fault `make test` looks for in a process that runs.
REPRESENTATIVE = "c call per packet"
#: What none of them has: a lab's device takes at once what it is given, and the others are known
#: from stacks and from loops alone.
NOT_PLANTED = {
    "waits-for-room", "copies", "garbage", "opens", "starts", "event-loop", "other-calls", "sends",
    "small-pieces", "unconnected", "no-core", "traced",
}  # fmt: skip
OF_RECEIVERS = {"waits-for-packets", "reads", "device", "no-socket", "small-buffer"}

Made = Callable[[Planted], Path]
needs_strace = needs("strace")


@pytest.fixture
def folder(planted: Made, request: pytest.FixtureRequest) -> Path:
    """Where the program of a case's sender is, which is compiled first."""
    sender: Planted = request.getfixturevalue("sender")
    if sender.lacking is not None:
        pytest.skip(sender.lacking)
    if sender.kind == "waits-for-thread" and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("the machine has no other core")
    return planted(sender)


def is_found(sender: Planted, made: dict[str, Any]) -> bool:
    """Whether the fault of a sender comes first, and nothing is found where there is none."""
    kinds = [finding["kind"] for finding in made["findings"]]
    if sender.kind is None:
        return not kinds
    return sender.kind in (kinds[:1] if sender.is_certain else kinds)


def test_every_fault_is_planted_and_every_language_has_some():
    assert {sender.kind for sender in SENDERS if sender.kind} == (
        set(KINDS) - NOT_PLANTED - OF_RECEIVERS
    )
    assert {sender.language for sender in SENDERS if sender.kind} == set(LANGUAGES)
    assert len({sender.name for sender in SENDERS}) == len(SENDERS)


@pytest.mark.parametrize("sender", [one for one in SENDERS if one.kind], ids=name_of)
def test_every_planted_sender_can_be_mended(sender):
    # Arguments of a stream are what `mended` takes back.
    assert re.search(r"mended|Sender\(\w", sender.source.read_text())


@needs_lab
@needs_strace
@pytest.mark.parametrize("sender", alone_but(REPRESENTATIVE, SENDERS))
def test_of_a_sender_that_runs_its_fault_is_said_first(sender, folder):
    for attempt in range(ATTEMPTS):  # a machine can be so busy that nothing sleeps, or all does
        made = diagnosis(sender, folder, 0.5 * (1 << attempt))
        if is_found(sender, made):
            return
    pytest.fail(f"found: {[finding['kind'] for finding in made['findings']]}")


@needs_lab
@needs_strace
@pytest.mark.alone
@pytest.mark.parametrize(
    "sender", [one for one in SENDERS if one.kind and one.is_certain], ids=name_of
)
@pytest.mark.timeout(600)
def test_the_range_of_a_gain_holds_what_mending_gains(sender, folder):
    for _ in range(ATTEMPTS):
        with open_lab() as lab:
            planted, mended = rates(lab, sender, folder, ROUNDS)
        found = {one["kind"]: one["gain"] for one in diagnosis(sender, folder)["findings"]}
        gain = found.get(sender.kind) or {"low": 0.0, "high": 0.0}
        if gain["low"] <= mended / planted <= gain["high"]:
            return
    pytest.fail(f"it said {gain['low']:.1f} to {gain['high']:.1f}, and is {mended / planted:.1f}")

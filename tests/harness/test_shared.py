# SPDX-License-Identifier: BSD-3-Clause
"""A sweep that machines share: one record, which says all, whoever measured what."""

import dataclasses
import subprocess
from collections.abc import Iterator

import pytest

from bench import sweeps
from bench.senders import SENDING
from bench.shared import Shared
from spead_tutorial.measure.case import Case
from spead_tutorial.measure.records import read
from support import ROOT
from support.bench import bench, keys
from support.labs import needs_lab
from support.schedulers import two_workers

pytestmark = needs_lab


@pytest.fixture
def shared(tmp_path, monkeypatch) -> Iterator[tuple[list[str], list["subprocess.Popen[str]"]]]:
    """The command that measures six samples of two sizes; and its scheduler and workers."""
    case = Case("ours", "c", "tut_6_send_pktsize", 8192, 1472, observer=SENDING)
    cases = (case, dataclasses.replace(case, packet_size=9000))
    monkeypatch.setattr(sweeps, "SWEEPS", (sweeps.Sweep("two", "two sizes", cases, cases),))
    with two_workers(tmp_path, ROOT) as (address, processes):
        yield ["run", "two", "--tiny", "-o", str(tmp_path), "--scheduler", address], processes


def test_machines_share_a_sweep_and_the_record_has_every_sample_once(shared, tmp_path, monkeypatch):
    words, _ = shared
    took = []
    lane = Shared.lane
    monkeypatch.setattr(Shared, "lane", lambda *given: took.append(lane(*given)) or took[-1])
    done = bench(*words)
    assert done.returncode == 0, done.stderr
    assert set(took) == {0, 1}
    found = read(tmp_path / "two.jsonl")
    assert sorted(keys(found).values()) == [1] * 6
    assert [one.failure for one in found.samples if one.failure is not None] == []
    assert bench(*words[:-2]).returncode == 0  # this machine goes on with it: nothing is left
    assert read(tmp_path / "two.jsonl").samples == found.samples


def test_a_worker_that_is_lost_loses_its_sample_and_the_same_command_goes_on(
    shared, tmp_path, monkeypatch
):
    words, (_, victim, _) = shared
    header = Shared.header

    def kill(self):
        found = header(self)
        victim.kill()
        return found

    with monkeypatch.context() as patched:
        patched.setattr(Shared, "header", kill)
        done = bench(*words)
    assert done.returncode == 1
    assert done.stderr.count("its sample is lost: host0 was lost") == 1
    assert len(keys(read(tmp_path / "two.jsonl"))) == 5
    done = bench(*words)
    assert done.returncode == 0, done.stderr
    assert sorted(keys(read(tmp_path / "two.jsonl")).values()) == [1] * 6


def test_machines_of_another_kind_are_refused(shared, monkeypatch):
    words, _ = shared
    monkeypatch.setattr("bench.shared.differs", lambda one, other: "cpu is A, and B")
    done = bench(*words)
    assert done.returncode == 1
    assert done.stderr.endswith("host0 is of another kind: cpu is A, and B\n")

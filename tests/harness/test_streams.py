# SPDX-License-Identifier: BSD-3-Clause
"""The harness: when packets go."""

import dataclasses
import re

import numpy as np
import pytest
from msgspec.structs import replace

from bench import spacing, streams, sweeps
from bench.status import failures, tables
from bench.streams import bursts
from spead_tutorial import lab
from spead_tutorial.measure.analysis import burst, silence
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.measure.records import Latency, Rate, Recording, read
from support.bench import bench
from support.labs import needs_lab
from support.records import HEADER

thorough = pytest.mark.thorough


def observed(tmp_path, monkeypatch, name: str, n: int | None = None) -> tuple[int, Recording]:
    """The status of a run of a sweep, or of its first cases, whose table is shown; and its record.

    Run again, it has nothing to do, unless something failed.
    """
    sweep = sweeps.find_sweep(name)
    cases = sweep.cases[:n]
    few = dataclasses.replace(sweep, cases=cases, quick=cases)
    monkeypatch.setattr(sweeps, "SWEEPS", (few,))
    argv = ("run", name, "--tiny", "-o", tmp_path)
    done = bench(*argv)
    found = read(tmp_path / f"{name}.jsonl")
    assert tables(found) in done.stdout
    assert found.header.experiment == name
    assert len(found.taken) == 2 * len(cases) - 2 * len(found.header.settings["skipped"])
    if not failures(found):  # on a busy machine some rates are not seen in time
        assert ": sample" not in bench(*argv).stdout
        assert read(tmp_path / f"{name}.jsonl") == found
    return done.returncode, found


@needs_lab
def test_latency_is_measured_for_streams_with_and_without_a_thread_beside_the_peer(
    tmp_path, monkeypatch
):
    status, recording = observed(tmp_path, monkeypatch, "latency")
    found = recording.those(Latency)
    assert status == 0
    assert {(one.implementation, one.variant) for one in found} >= {
        ("ours", ""),
        ("ours", "no thread"),
        ("spead2", ""),
    }
    for one in found:
        assert one.failure is None
        assert len(one.latency_ns) == streams.WARM_UP + 30
        assert min(one.latency_ns) > 0
    assert recording.header.settings["warm_up"] == streams.WARM_UP


@needs_lab
@pytest.mark.parametrize("n", [1, pytest.param(None, marks=thorough)])
def test_every_rate_is_measured_and_borne_out_by_the_device(tmp_path, monkeypatch, n):
    status, recording = observed(tmp_path, monkeypatch, "rate", n)
    found = recording.those(Rate)
    rates = {1e6} if n else {1e6, 1e8, 1e9, 3e9}
    assert {one.rate for one in found if one.implementation == "ours"} == rates
    for one in found:
        if one.failure is not None:  # where the machine is busy, nobody looks in time
            assert "all was over before the counter was looked at again" in one.failure
            continue
        assert one.spead_bytes > one.heaps * one.heap_size
        assert one.counted_bytes > one.spead_bytes
        assert 0 < one.average_bytes < one.spead_bytes
        assert one.packet_size < one.burst_most_bytes
        assert one.burst_bytes <= one.burst_most_bytes
    assert (status == 1) == any(one.failure is not None for one in found)


@needs_lab
@pytest.mark.parametrize("n", [1, pytest.param(None, marks=thorough)])
def test_messages_of_both_chapters_are_noted_as_the_device_counts_them(tmp_path, monkeypatch, n):
    status, recording = observed(tmp_path, monkeypatch, "spacing", n)
    assert status == 0
    for one in recording.spacings:
        assert one.failure is None
        assert sorted(set(one.heaps)) == list(spacing.STEADY)
        assert sorted(one.heaps) == list(one.heaps)
        # All samples of each heap, and in each of its packets a header.
        assert sum(one.message_bytes) > len(spacing.STEADY) * one.heap_size
        assert len(one.time_ns) == len(one.heaps) == len(one.message_bytes)
        assert 0 < silence(one) < max(one.time_ns)
        assert max(one.message_bytes) <= burst(one) < 2 * one.heap_size


@needs_lab
def test_messages_are_noted_with_their_lengths_and_heads_while_there_is_room():
    with lab.Lab() as private, private.socket() as sock:
        to = private.address, private.port
        with spacing.Capture(private) as capture:
            for n_bytes in (0, 1000, 5):
                sock.sendto(bytes(range(1, 6))[:n_bytes].ljust(n_bytes), to)
            noted = list(capture.messages())
        with spacing.Capture(private) as capture:
            for _ in range(capture.room + 7):
                sock.sendto(b"", to)
            with pytest.raises(ProgramError, match="no room to note 7 messages"):
                list(capture.messages())
    assert [one.n_bytes for one in noted] == [28, 1028, 33]
    assert noted[2].head[28:] == bytes(range(1, 6))
    assert noted[0].time_ns <= noted[1].time_ns <= noted[2].time_ns


def test_what_failed_has_no_figures_but_a_reason():
    good = Latency("spead2", "", 0, 1024, (1000,) * (streams.WARM_UP + 9))
    bad = Latency("ours", "no thread", 0, failure="it failed")
    found = Recording.of(HEADER, [replace(good, failure="it was repeated"), good, bad])
    lines = streams.IDLE_STREAM.table(found).splitlines()
    assert failures(found) == {"it failed"}
    assert lines[0].count("range") == 2
    assert re.match(r"ours, no thread +failed: it failed$", lines[1])
    assert re.match(r"spead2 +1 +9 +1\.0 ", lines[2])


# ---- Bursts of a counter ----


NS = 10**9


def counter(at_ns, n_bytes, unsure_ns=0):
    """What is seen of a counter that steps at some times, each of which is known so well."""
    early = np.array([0, *(at - unsure_ns for at in at_ns)])
    late = np.array([0, *(at + unsure_ns for at in at_ns)])
    return np.stack([early, late, np.cumsum([7, *n_bytes])], axis=1)


def even(step, period_ns, n):
    return [NS + period_ns * i for i in range(n)], [step] * n


def test_a_steady_counter_has_bursts_of_one_step_and_its_rate_or_one_without_end_if_too_fast():
    found = bursts(counter(*even(1000, 10_000, 1001)), 1e8, 1.0)
    assert (found["burst_bytes"], found["burst_most_bytes"]) == (1000, 1000)
    assert found["average_bytes"] * NS == found["average_ns"] * 100_000_000
    assert (found["steps"], found["grain_ns"], found["longest_grain_ns"]) == (1001, 0, 0)
    found = bursts(counter(*even(2000, 10_000, 1001)), 1e8, 1.0)
    assert found["burst_bytes"] == 1000 * 1001 + 1000


def test_what_is_caught_up_after_a_pause_is_a_burst():
    at, n_bytes = even(1000, 10_000, 1001)
    at = [max(t, NS + 5_000_000) if t > NS + 2_000_000 else t for t in at]
    found = bursts(counter(at, n_bytes), 1e8, 1.0)
    # All that was due in 3 ms came at once.
    assert found["burst_bytes"] == found["burst_most_bytes"] == 300_000


def test_the_longest_burst_lies_between_its_bounds_where_times_are_unsure():
    rng = np.random.default_rng(31)
    for unsure_ns in (0, 500, 5000):
        at = NS + np.cumsum(rng.integers(2 * unsure_ns + 1, 40_000, 300))
        n_bytes = rng.integers(1, 3000, 300)
        true = bursts(counter(at, n_bytes), 1e8, 1.0)["burst_bytes"]
        seen = counter(at, n_bytes, unsure_ns)
        found = bursts(seen, 1e8, 1.0)
        assert found["burst_bytes"] <= true <= found["burst_most_bytes"]
        # By brute force, and of the packets' own bytes alone.
        early, late, total = seen.T
        window = [
            (total[j] - total[i - 1]) * 0.9 - (late[j] - early[i]) / 10
            for i in range(1, 301)
            for j in range(i, 301)
        ]
        assert bursts(seen, 1e8, 0.9)["burst_bytes"] == round(max(window))

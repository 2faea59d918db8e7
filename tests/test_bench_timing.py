# SPDX-License-Identifier: BSD-3-Clause
"""The harness: when packets go."""

import json
import re
import signal
import subprocess
import sys
import time

import pytest
from test_bench import PATIENCE_S, ROOT, bench, fails, needs_lab

from bench import timing


@needs_lab
def test_latency_is_measured_for_streams_with_and_without_a_thread_beside_the_peer(tmp_path):
    done = bench("timing", "latency", "--tiny", "-o", tmp_path)
    assert done.returncode == 0, done.stderr
    path = tmp_path / "latency.jsonl"
    found = timing.read(path)
    assert [one.failure for one in found] == [None] * len(found)
    assert {(one.implementation, one.variant) for one in found} >= {
        ("ours", ""),
        ("ours", "no thread"),
        ("spead2", ""),
    }
    for one in found:
        assert len(one.latency_ns) == timing.WARM_UP + timing.SIZES["tiny"].heaps
        assert min(one.latency_ns) > 0
    first = json.loads(path.read_text().splitlines()[0])
    assert (first["experiment"], first["settings"]["warm_up"]) == ("latency", timing.WARM_UP)
    assert done.stdout.endswith(timing.table(found) + "\n")
    again = bench("timing", "latency", "--read", path)
    assert (again.returncode, again.stdout) == (0, timing.table(found) + "\n")


@needs_lab
def test_every_rate_is_measured_and_borne_out_by_the_device(tmp_path):
    done = bench("timing", "rate", "--tiny", "-o", tmp_path)
    assert done.returncode == 0, done.stderr
    found = timing.read(tmp_path / "rate.jsonl")
    assert {one.rate for one in found if one.implementation == "ours"} == set(timing.RATES)
    for one in found:
        assert one.failure is None
        assert one.spead_bytes > one.heaps * one.heap_size
        assert one.counted_bytes > one.spead_bytes
        assert 0 < one.average_bytes < one.spead_bytes
        assert one.packet_size < one.burst_most_bytes
        assert one.burst_bytes <= one.burst_most_bytes
    assert done.stdout.endswith(timing.table(found) + "\n")


@needs_lab
def test_ctrl_c_leaves_whole_lines_and_says_one(tmp_path):
    path = tmp_path / "latency.jsonl"
    argv = [sys.executable, "-m", "bench", "timing", "latency", "-o", str(tmp_path)]
    with subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not (path.exists() and path.stat().st_size):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "python -m bench: interrupted"
    assert "Traceback" not in errors
    lines = path.read_text().splitlines(keepends=True)
    assert all(line.endswith("\n") and json.loads(line) for line in lines)


def test_what_failed_has_no_figures_but_a_reason(tmp_path):
    good = timing.Latency("spead2", "", 0, 1024, [1000] * (timing.WARM_UP + 9))
    bad = timing.Latency("ours", "no thread", 0, failure="it failed")
    lines = timing.table([good, bad]).splitlines()
    assert re.match(r"ours, no thread +failed: it failed$", lines[1])
    assert re.match(r"spead2 +1 +9 +1\.0 ", lines[2])


@pytest.mark.parametrize("content", ["", "{}\n", '{"record": "header"}\n{"record": "sample"}\n'])
def test_a_file_that_is_no_such_record_is_one_line(tmp_path, content):
    path = tmp_path / "some.jsonl"
    path.write_text(content)
    line = fails("timing", "rate", "--read", path)
    assert "some.jsonl is no record of python -m bench timing" in line

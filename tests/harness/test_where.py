# SPDX-License-Identifier: BSD-3-Clause
"""The harness: where the time of a heap goes."""

import dataclasses
import os
import re
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from bench import perf, sweeps, where
from spead_tutorial.measure import records
from spead_tutorial.measure.analysis import PARTS, Kind, split_times
from support.bench import bench
from support.labs import needs_lab
from support.recordings import TEN, make_where

#: What ``perf script`` writes of two looks: one in the kernel, and one in a program.
WRITTEN = """\
 1000/1002 35215.429197: \n\
\tffffffff81b6a534 _copy_from_iter ([kernel.kallsyms])
\tffffffff82044dc2 udp_sendmsg ([kernel.kallsyms])
\t          10b106 __sendmmsg (/lib/libc.so.6)

 1000/1000 35215.429400: \n\
\t          16e0ba __memset_avx2 (/lib/libc.so.6)
\t            2560 main (/a folder/spead_tutorial/chapters/tut_10_send_reuse_heaps)

"""


def frames(*names: str) -> list[perf.Frame]:
    """Make a stack from names: ``k:`` stands before one of the kernel, ``c:`` of the C library."""
    files = {"k": "[kernel.kallsyms]", "c": "/lib/libc.so.6", "p": "/lib/libpython3.11.so"}
    ours = "/site-packages/spead_tutorial/_core.so"
    split = [name.rpartition(":") for name in names]
    return [perf.Frame(name, files.get(prefix, ours)) for prefix, _, name in split]


@needs_lab
@pytest.mark.parametrize("n", [1, pytest.param(None, marks=pytest.mark.thorough)])
def test_every_case_is_split_with_and_without_someone_looking(tmp_path, monkeypatch, n):
    """One of C with a thread of its own, or all."""
    if (reason := perf.missing()) is not None:
        pytest.skip(f"nothing to look with: {reason}")
    sweep = sweeps.find_sweep("where")
    wanted = [case for case in sweep.cases if case.program == "tut_10_send_reuse_heaps"][:1]
    cases = [case for case in sweep.cases if n is None or case.name == wanted[0].name]
    few = dataclasses.replace(sweep, cases=tuple(cases), quick=tuple(cases))
    monkeypatch.setattr(sweeps, "SWEEPS", (few,))
    done = bench("run", "where", "--tiny", "-o", tmp_path)
    assert done.returncode == 0, done.stderr
    recording = records.read(tmp_path / "where.jsonl")
    looked_at = {case.name for case in cases if case.observer is where.STACKS}
    assert {one.case for one in recording.splits} == looked_at
    assert {one.case for one in recording.samples} == looked_at
    own, sending = Counter[str](), Counter[str]()
    for split in recording.splits:
        has_thread = "tut_10" in split.program
        assert bool(split.others) is has_thread
        own.update(split.own)
        sending.update(split.others if has_thread else split.own)
    assert own.keys() | sending.keys() <= {*PARTS}
    assert own["fill"] > 0
    # There are few looks in so short a run: each part is in that of some case, not of all.
    parts = ("copy", "stack", "system call", "packetizing")
    assert min(sending[part] for part in (parts[:1] if n else parts)) > 0
    assert own["other"] + sending["other"] <= 0.1 * (own.total() + sending.total())
    assert where.STACKS.table(recording) in done.stdout


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (None, "perf is missing: apt install linux-perf"),
        ("exit 255", "perf may not look at the kernel here: run as root, or say: sudo sysctl"),
        ("echo 'WARNING: perf not found for kernel 6.1' >&2; exit 2", "not the one for this"),
    ],
)
def test_without_a_perf_that_may_look_a_case_is_skipped_that_says_what_to_do(
    tmp_path, monkeypatch, script, why
):
    if script is not None:
        program = tmp_path / "perf"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path) if script is None else f"{tmp_path}:{os.defpath}")
    assert why in perf.missing.__wrapped__()


def test_what_perf_writes_is_taken_apart():
    first, second = perf._looks(WRITTEN.splitlines())
    assert (first.process, first.thread, first.at_s) == (1000, 1002, 35215.429197)
    assert [frame.name for frame in first.frames] == [
        "_copy_from_iter",
        "udp_sendmsg",
        "__sendmmsg",
    ]
    assert [frame.of_kernel for frame in first.frames] == [True, True, False]
    assert Path(second.frames[1].file).name == "tut_10_send_reuse_heaps"


@pytest.mark.parametrize(
    ("names", "part"),
    [
        (["k:_copy_from_iter", "k:udp_sendmsg", "k:__sys_sendmmsg"], "copy"),
        (["k:clear_page", "k:__alloc_pages", "k:udp_sendmsg"], "buffers"),
        (["k:ip_output", "k:udpv6_sendmsg", "k:__sys_sendmmsg"], "stack"),
        (["k:import_iovec", "k:___sys_sendmsg", "k:do_syscall_64"], "system call"),
        (["k:try_to_wake_up", "k:futex_wake", "k:do_syscall_64"], "wake-up"),
        (["c:pthread_mutex_lock", "enqueue", "spt_stream_send_heap"], "lock"),
        (["spt_packetizer_next", "spti_stream_run", "run"], "packetizing"),
        (["c:__memmove", "spti_heap_item_immediate", "spti_stream_run"], "packetizing"),
        (["spti_heap_borrow", "spt_stream_send_heaps"], "queue"),
        (["p:_PyObject_Malloc", "__pyx_f_14spead_tutorial_5_core_11AsyncStream_send"], "queue"),
        (["p:type_call", "__pyx_f_14spead_tutorial_5_core_settle", "p:eval"], "completion"),
        (["c:clock_gettime", "spti_now_ns", "wait_until", "spt_stream_wait"], "looking"),
        (["c:__memset_avx2", "p:raw_array_assign_scalar"], "fill"),
        (["p:_PyEval_EvalFrameDefault"], "program"),
        (["record_times", "spti_stream_retire", "send_batch"], "completion"),
        (["take_step", "spti_stream_run", "run"], "packetizing"),
        (["k:irqentry_exit", "spti_heap_return", "spti_stream_retire"], "completion"),
        (["[unknown]"], "other"),
        ([], "other"),
    ],
)
def test_the_innermost_known_function_says_the_part(names, part):
    assert where.part_of(frames(*names), own=True) == part


def test_the_table_knows_only_functions_that_there_are():
    root = Path(__file__).parents[2]
    sources = [*root.glob("csrc/*/*.[ch]"), root / "spead_tutorial/_core.pyx"]
    words = " ".join({word for one in sources for word in re.findall(r"\w+", one.read_text())})
    for _, names in where._OURS:
        for name in re.split(r"\|(?![^(]*\))", names.replace(r"\d+", "")):
            assert re.search(rf"\b(?:{name})\b", words), name


def test_only_the_programs_own_thread_runs_what_is_not_ours():
    assert where.part_of(frames("p:blas_thread_server"), own=False) == "other"


def test_what_comes_before_the_first_send_and_after_the_last_does_not_count():
    def look(at_s: float, *names: str, thread: int = 1) -> perf.Look:
        return perf.Look(1, thread, at_s, tuple(frames(*names)))

    send = ("k:_copy_from_iter", "k:udp_sendmsg")
    own, others, unsorted = where.sorted_out(
        [
            look(1, "p:import_name"),
            look(2, *send, thread=2),
            look(3, "p:eval"),
            look(4, "strange", thread=2),
            look(5, *send, thread=2),
            look(6, "p:finalize"),
        ]
    )
    assert (own, others, unsorted) == ({"program": 1}, {"copy": 2, "other": 1}, {"strange": 1})
    assert where.sorted_out([look(1, "p:eval")]) == ({}, {}, {})


def test_shares_of_the_one_run_split_the_time_of_the_other():
    own, stream = split_times(make_where())[Kind(8 << 10, TEN, "c")]
    assert (own.own, own.elapsed.median, own.busy_ns, own.idle_ns) == (True, 2000, 1000, 1000)
    assert (stream.own, stream.busy_ns, stream.idle_ns) == (False, 1500, 500)
    found = {part: x.median for part, x in stream.parts.items()}
    assert found == {"packetizing": 60, "copy": 600, "stack": 750, "looking": 90}


def test_failed_runs_split_nothing_and_a_record_of_them_says_what_to_run():
    made = make_where()
    failed = tuple(replace(one, failure="it failed") for one in made.splits)
    with pytest.raises(ValueError, match="no splits: python -m bench run where"):
        split_times(dataclasses.replace(made, splits=failed))

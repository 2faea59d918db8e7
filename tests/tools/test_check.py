# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial check``: what it says of wrong senders, and when it is asked for wrongly."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spead_tutorial import cli as cli_module
from spead_tutorial.check import trying, worth
from spead_tutorial.check.trying import fault
from spead_tutorial.check.worth import SKELETON, YOURS
from spead_tutorial.exercises import find_exercise
from spead_tutorial.records import Sample
from support.labs import needs_lab
from support.records import row

Run = Callable[..., subprocess.CompletedProcess[str]]

#: What is changed in chapter 10's program, into what, and what is said of it.
WRONG = [
    (
        "state.timestamp[...] = i * heap_size",
        "state.timestamp[...] = i",
        "heap 2, packet 1, timestamp: expected 8000, found 1",
    ),
    (
        "        state.timestamp[...]",
        "        state.adc_samples[7000] += i > 0\n        state.timestamp[...]",
        "heap 2, packet 5, sample 7000: expected 1, found 2",
    ),
    (
        "state.heap if i > 0 else state.first_heap",
        "state.heap",
        "heap 1: expected a descriptor of item 0x1600 (timestamp), found none",
    ),
    (
        "        state = states[i % n_states]",
        "        state = states[i % n_states]\n        if i == 7:\n            continue",
        "heap 8, packet 1, timestamp: expected 56000, found 64000",
    ),
    (
        "for i in range(options.n_heaps):",
        "for i in range(options.n_heaps - 1):",
        "heap 300 ends the stream: expected 300 heaps before it, found 299",
    ),
    (
        "    await stream.async_send_heap(states[0].end)\n",
        "",
        "expected one heap that ends the stream (get_end), found none",
    ),
    (
        "    start = Usage.now()",
        "    start = Usage.now() / 2",
        "my_sender: TypeError: unsupported operand type(s) for /: 'Usage' and 'int' (line 58)",
    ),
    (
        "    start = Usage.now()",
        "    raise ValueError('no samples today')",
        "my_sender: no samples today",
    ),
]


@pytest.fixture
def here(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run the command in this process."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        status = cli_module.finish(cli_module.cli, "spead-tutorial", ["check", *arguments])
        return subprocess.CompletedProcess(arguments, status, *capfd.readouterr())

    return run


def sender(tmp_path: Path, old: str, new: str) -> Path:
    """Change chapter 10's program in one place."""
    text = find_exercise(10).solution.read_text()
    assert text.count(old) == 1
    path = tmp_path / "my_sender.py"
    path.write_text(text.replace(old, new))
    return path


@needs_lab
@pytest.mark.parametrize(("old", "new", "words"), WRONG)
def test_of_a_wrong_sender_one_line_says_what_is_wrong_first(tmp_path, here, old, new, words):
    done = here("10", str(sender(tmp_path, old, new)), "--no-measure")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"spead-tutorial: {words}\n"


@needs_lab
def test_memory_that_is_written_to_too_early_is_noticed(tmp_path):
    program = sender(tmp_path, "max_heaps=n_states", "max_heaps=2 * options.n_heaps")
    waits = "        if state.future is not None:\n            await state.future\n        state."
    text = program.read_text()
    assert waits in text
    program.write_text(text.replace(waits, "        state."))
    found = fault(find_exercise(10), program)
    assert found is not None
    assert re.match(r"heap \d+, packet \d+, (timestamp|sample \d+): expected ", found)


@needs_lab
def test_a_sender_that_never_ends_is_ended(tmp_path, here, monkeypatch):
    monkeypatch.setattr(trying, "_LIMIT_S", 1.0)
    program = sender(tmp_path, "    start = Usage.now()", "    while True:\n        pass")
    done = here("10", str(program))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "spead-tutorial: my_sender: it did not end within 1 s\n"


@needs_lab
def test_what_is_wrong_is_said_in_json_too(tmp_path, here):
    old, new, words = WRONG[0]
    done = here("10", str(sender(tmp_path, old, new)), "--json")
    assert done.returncode == 1
    facts = json.loads(done.stdout)
    assert (facts["chapter"], facts["right"], facts["fault"]) == (10, False, words)


@needs_lab
def test_ctrl_c_ends_the_sender_too(tmp_path):
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)
    alive = f"    alive = open({str(fifo)!r}, 'w')\n    print('begun', file=alive, flush=True)\n"
    waits = alive + "    while True:\n        pass"
    program = sender(tmp_path, "    start = Usage.now()", waits)
    argv = [sys.executable, "-m", "spead_tutorial.cli", "check", "10", str(program)]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        with fifo.open() as end:
            assert end.readline() == "begun\n"
            process.send_signal(signal.SIGINT)
            assert end.read() == ""  # nobody has it open any more
        assert process.stderr is not None
        assert process.stderr.read().strip() == "spead-tutorial: interrupted"
    assert process.returncode == 130


# ---- What it is worth ----


def make_samples_up(monkeypatch: pytest.MonkeyPatch, failing: str | None = None) -> None:
    """Have nothing measured, bytes taken for right, and one implementation fail."""
    rates = {SKELETON: 1e9, YOURS: 2e9, "ours": 3e9, "ceiling": 4e9}

    def take(place: object, step: worth.Step, **how: object) -> Sample:
        who = step.case.implementation
        (sample,) = row(who, [rates[who]], "it was ended" if who == failing else None).samples
        where = {"case": step.case.name, "round": step.number, "warm_up": step.warm_up}
        return dataclasses.replace(sample, program=step.case.program, **where)

    monkeypatch.setattr(worth, "take", take)
    monkeypatch.setattr("spead_tutorial.check.command.fault", lambda *_: None)


@pytest.fixture
def without_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    make_samples_up(monkeypatch)


@needs_lab
@pytest.mark.usefixtures("without_measuring")
def test_a_table_compares_it_with_the_skeleton_the_chapter_and_a_bare_loop(here):
    done = here("10", str(find_exercise(10).skeleton), "--rounds", "3")
    assert (done.returncode, done.stderr) == (0, "")
    plain = done.stdout.replace("\N{EN DASH}", "-").replace("\N{MULTIPLICATION SIGN}", "x")
    lines = [re.sub(" +", " ", line).strip() for line in plain.splitlines()]
    table = lines.index("MB/s range gain share")
    assert lines[table + 1 : table + 5] == [
        "the skeleton 1000 1000-1000 25 %",
        "chapter_10.py 2000 2000-2000 x2.00 50 %",
        "chapter 10 3000 3000-3000 x3.00 75 %",
        "bare loop 4000 4000-4000 x4.00",
    ]
    assert lines[-1] == "chapter_10.py gains 50 % of the step."


@needs_lab
@pytest.mark.usefixtures("without_measuring")
def test_what_was_measured_is_one_json_object(here):
    facts = json.loads(here("15", str(find_exercise(15).skeleton), "--json").stdout)
    assert facts["measured"]["yours"]["times_skeleton"]["median"] == pytest.approx(2)
    assert facts["measured"]["yours"]["share_of_bare_loop"] is None  # it fills, and copies
    assert facts["verdict"] == "chapter_15.py gains 50 % of the step"


@needs_lab
def test_where_one_fails_while_it_is_measured_there_is_no_verdict(here, monkeypatch):
    make_samples_up(monkeypatch, failing=YOURS)
    done = here("10", str(find_exercise(10).skeleton))
    assert done.returncode == 1
    assert done.stderr == "spead-tutorial: chapter_10.py: it was ended\n"


@pytest.mark.usefixtures("without_measuring")
def test_a_rate_that_is_limited_is_not_measured(here):
    done = here("2", str(find_exercise(2).solution))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "Its rate is limited, so there is nothing to measure."


# ---- The command ----


def test_a_skeleton_is_printed_as_it_is(here):
    done = here("8", "--skeleton")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == find_exercise(8).skeleton.read_text()


def test_a_hint_comes_with_the_task(here):
    exercise = find_exercise(8)
    assert here("8", "--hint").stdout == f"{exercise.task}\n{exercise.hint}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["1", "x.py"], "chapter 1 has no exercise: there are those of 2, 3, 4,"),
        (["ten", "x.py"], "'ten' is no chapter's number"),
        (["8"], "say which program: my_sender.py; or --skeleton, to begin one"),
        (["8", "no_such_file.py"], "'no_such_file.py' does not exist"),
        (["8", "--skeleton", __file__], "--skeleton and --hint go without a program"),
    ],
)
def test_what_is_asked_for_wrongly_is_one_line(here, arguments, words):
    done = here(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"spead-tutorial: [^\n]+\n", done.stderr)
    assert words in done.stderr

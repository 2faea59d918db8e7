# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial check``: what it says of wrong senders, and how fast right ones are."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from spead_tutorial.chapters.exercises import find_exercise, skeleton, solution
from spead_tutorial.check import comparison, trying
from spead_tutorial.check.comparison import SKELETON, YOURS, Comparison, verdict
from spead_tutorial.measure.records import Sample
from support import ROOT
from support.labs import needs_lab
from support.records import compared, row
from support.typed import Run, Typed, check_refused

TEN, EIGHT_IN_C = find_exercise(10), ROOT / "csrc" / "chapters" / "tut_8_send_reuse_memory.c"
SOLVED = solution(TEN)
START = "    start = Usage.now()"
NEVER_ENDS = "    while True:\n        pass"


@pytest.fixture
def check(here: Run) -> Callable[..., Typed]:
    return lambda *words: here("check", *words)


def sender(folder: Path, old: str, new: str, program: Path = SOLVED) -> Path:
    """Change chapter 10's program, or another, in one place."""
    text = program.read_text()
    assert text.count(old) == 1
    path = folder / f"my_sender{program.suffix}"
    path.write_text(text.replace(old, new))
    return path


# ---- What it says of a wrong one ----


@needs_lab
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "state.timestamp[...] = i * heap_size",
            "state.timestamp[...] = i",
            "heap 2, packet 1, timestamp: expected 8000, found 1",
        ),
        (
            START,
            "    start = Usage.now() / 2",
            "my_sender: TypeError: unsupported operand type(s) for /: 'Usage' and 'int' (line 56:"
            " start = Usage.now() / 2)",
        ),
        (START, "    raise ValueError('no samples today')", "my_sender: no samples today"),
    ],
)
def test_of_a_wrong_sender_one_line_says_what_is_wrong_first(tmp_path, check, old, new, words):
    program = sender(tmp_path, old, new)
    done = check("10", program, "--no-measure")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"spead-tutorial: {words}\n"


@needs_lab
def test_memory_that_is_written_to_too_early_is_noticed(tmp_path):
    program = sender(tmp_path, "max_heaps=n_states", "max_heaps=2 * options.n_heaps")
    waits = "        if state.future is not None:\n            await state.future\n        state."
    sender(tmp_path, waits, "        state.", program)
    found = trying.fault(TEN, program)
    assert re.match(r"heap \d+, packet \d+, (timestamp|sample \d+): expected ", found or "")


@needs_lab
def test_a_sender_that_never_ends_is_ended(tmp_path, check, monkeypatch):
    monkeypatch.setattr(trying, "_LIMIT_S", 1.0)
    done = check("10", sender(tmp_path, START, NEVER_ENDS))
    check_refused(done, 1, "my_sender: it did not end within 1 s\n")


IN_TURN = "packets 4 to 6 of all: expected one to each receiver, found 127.0.0."


@needs_lab
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("GroupMode.ROUND_ROBIN)", "GroupMode.SERIAL)", IN_TURN),
        ("substream_index=j", "substream_index=0", "receiver 0: heap 2"),
        ("options.rate * 1e6", "0", "the rate of all packets together: expected 10 MB/s, found "),
    ],
)
def test_of_a_sender_to_several_receivers_turns_and_rate_are_looked_at(tmp_path, old, new, words):
    nineteen = find_exercise(19)
    program = sender(tmp_path, old, new, solution(nineteen))
    assert (trying.fault(nineteen, program) or "").startswith(words)


# ---- In C ----


@pytest.fixture
def library(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pkg-config know the core."""
    (folder,) = installed.glob("prefix/**/pkgconfig")
    monkeypatch.setenv("PKG_CONFIG_PATH", str(folder))


@needs_lab
@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("new", "status", "said"),
    [
        ("(int)(i % 256)", 0, r"my_sender\.c sends what it should\.\n"),
        ("(int)(i % 2)", 1, "spead-tutorial: heap 3, packet 1, sample 0: expected 2, found 0\n"),
        ("(int)(i % 256", 1, r"spead-tutorial: [^\n]*my_sender\.c:\d+:\d+: error: [^\n]+\n"),
    ],
)
def test_a_sender_in_c_is_compiled_and_checked(tmp_path, check, new, status, said):
    program = sender(tmp_path, "(int)(i % 256)", new, EIGHT_IN_C)
    done = check("8", program, "--no-measure")
    assert done.returncode == status
    assert re.fullmatch(said, done.stdout + done.stderr)


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"CC": "no-such-compiler"}, "there is no C compiler 'no-such-compiler': install one"),
        (
            {"PKG_CONFIG_PATH": "", "PKG_CONFIG_LIBDIR": "nowhere"},
            "pkg-config knows no library spead_tutorial: install it",
        ),
    ],
)
@pytest.mark.usefixtures("library")
def test_without_a_compiler_or_the_library_one_line_says_so(check, monkeypatch, environment, words):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    check_refused(check("8", EIGHT_IN_C), 1, words)


# ---- How fast it is ----


OWN = "the chapter's own program"
NOTHING = "gains nothing of the step: it"
ALONE = {who: its for who, its in compared(2e9).found.items() if who != SKELETON}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (compared(1e9), f"{NOTHING} is as fast as the skeleton"),
        (compared(2e9), "gains 50 % of the step"),
        (compared(2.9e9), f"is as fast as {OWN}"),
        (compared(4e9), f"is faster than {OWN}"),
        (compared(4e9, last=0.7), f"cannot be told from {OWN}"),
        (compared(2e9, last=1.6), f"cannot be told from {OWN}"),
        (compared(1.5e9, last=0.6), f"{NOTHING} cannot be told from the skeleton"),
        (compared(0.5e9), f"{NOTHING} is slower than the skeleton"),
        (compared(1e9, chapter=1e9), f"is as fast as {OWN}, which gains nothing here itself"),
        # Without a skeleton it is compared with the chapter alone.
        (Comparison(ALONE, None), f"is slower than {OWN}"),
        (Comparison(ALONE | {YOURS: ALONE["ours"]}, None), f"is as fast as {OWN}"),
    ],
)
def test_a_sentence_says_how_fast_it_is(found, words):
    assert verdict(found, "x.py") == f"x.py {words}"


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have nothing measured, bytes taken for right, and those fail that a test says."""
    rates = {SKELETON: 1e9, YOURS: 2e9, "ours": 3e9, "ceiling": 4e9}
    fails: list[str] = []

    def take(place: object, step: comparison.Step, **how: object) -> Sample:
        who = step.case.implementation
        (sample,) = row(who, [rates[who]], "it was ended" if who in fails else None).samples
        where = {"case": step.case.name, "round": step.number, "warm_up": step.warm_up}
        return replace(sample, program=step.case.program, **where)

    monkeypatch.setattr(comparison, "take", take)
    monkeypatch.setattr("spead_tutorial.check.trying.fault", lambda *_: None)
    return fails


@needs_lab
@pytest.mark.usefixtures("failing")
def test_a_table_compares_it_with_the_skeleton_the_chapter_and_a_bare_loop(check):
    done = check("10", skeleton(TEN), "--rounds", "3")
    assert (done.returncode, done.stderr) == (0, "")
    plain = done.stdout.replace("\N{EN DASH}", "-").replace("\N{MULTIPLICATION SIGN}", "x")
    lines = [re.sub(" +", " ", line).strip() for line in plain.splitlines()]
    table = lines.index("MB/s range gain share")
    assert lines[table + 1 : table + 5] == [
        "the skeleton 1000 1000-1000 — 25 %",
        "chapter_10.py 2000 2000-2000 x2.00 50 %",
        "chapter 10 3000 3000-3000 x3.00 75 %",
        "bare loop 4000 4000-4000 x4.00 —",
    ]
    assert lines[-1] == "chapter_10.py gains 50 % of the step."
    assert "Fewer than 9 rounds: a difference of some percent may be" in done.stdout


@needs_lab
@pytest.mark.usefixtures("failing")
def test_there_is_no_share_of_a_bare_loop_that_fills_and_copies(check):
    out = check("15", skeleton(find_exercise(15))).stdout
    assert "\nWithout a bare loop: no bare loop does the same.\n" in out
    assert "share" not in out


@needs_lab
def test_where_one_fails_while_it_is_measured_there_is_no_verdict(check, failing):
    failing.append(YOURS)
    done = check("10", skeleton(TEN))
    assert done.returncode == 1
    assert done.stderr == "spead-tutorial: chapter_10.py: it was ended\n"


@pytest.mark.usefixtures("failing")
def test_a_sender_may_go_to_any_address_of_loopback(tmp_path, check, make_lab):
    if make_lab().address6 is None:
        pytest.skip("the kernel has no IPv6")
    to = "[(options.host, options.port)]"
    program = sender(tmp_path, to, '[("::1", options.port)]', solution(find_exercise(2)))
    done = check("2", program)
    assert done.returncode == 0, done.stderr


@needs_lab
def test_a_rate_that_is_limited_is_not_measured(check):
    done = check("2", solution(find_exercise(2)))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "Its rate is limited, so there is nothing to measure."


# ---- The command ----


def test_a_skeleton_is_printed_as_it_is_and_a_hint_comes_with_the_task(check):
    eight = find_exercise(8)
    assert check("8", "--skeleton").stdout == skeleton(eight).read_text()
    assert check("8", "--hint").stdout == f"{eight.task}\n{eight.hint}\n"

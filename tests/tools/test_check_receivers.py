# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial check`` of receivers: what it says of wrong ones, and how fast others are."""

import json
import re
from pathlib import Path

import pytest

from spead_tutorial.chapters.catalogue import RECEIVING, ReceiverExercise
from spead_tutorial.chapters.exercises import skeleton, solution
from spead_tutorial.check import arriving, comparison
from spead_tutorial.check.arriving import HEAP_SIZE, HEAPS, fault, first_fault, power
from spead_tutorial.check.comparison import SKELETON, YOURS, verdict
from spead_tutorial.lab import Arrivals, Counters
from spead_tutorial.measure.case import Case, Step
from spead_tutorial.measure.delivery import NO_ACCOUNT, receiving_lab
from spead_tutorial.measure.programs import Done, ProgramError
from spead_tutorial.measure.records import OURS
from support.labs import needs_lab

SEVEN, TWELVE = RECEIVING[1], RECEIVING[3]
COUNTS = "            received += 1\n"
NOTHING = Counters("veth", 0, 0, 0, 0, 0, 0)


def receiver(tmp_path: Path, old: str, new: str) -> Path:
    """Change chapter 7's program in one place."""
    text = solution(SEVEN).read_text()
    assert text.count(old) == 1
    path = tmp_path / "my_receiver.py"
    path.write_text(text.replace(old, new))
    return path


@needs_lab
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "power = mean_square(adc_samples)",
            "power = float(np.mean(adc_samples * adc_samples))",  # as 8-bit integers
            r"heap 2: expected 'Timestamp: 8000       Power: \d+\.\d\d', found Power: -?\d+\.\d\d",
        ),
        (
            COUNTS,
            f"{COUNTS}            assert received < 5, 'enough'\n",
            r"my_receiver: AssertionError: enough \(line \d+: assert .*\)",
        ),
        (
            "    item_group = spead_tutorial.ItemGroup()\n",
            "    raise SystemExit(3)\n",
            r"my_receiver: it ended with status 3 and said nothing",
        ),
    ],
)
def test_of_a_wrong_receiver_it_is_said_what_is_wrong_first(tmp_path, old, new, words):
    assert re.fullmatch(words, fault(SEVEN, receiver(tmp_path, old, new)) or "")


@needs_lab
def test_a_receiver_that_never_stops_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(arriving, "_END_S", 1.0)
    never = "    while True:\n        pass\n    heaps.report"
    found = fault(SEVEN, receiver(tmp_path, "    heaps.report", never))
    assert found == "my_receiver: it did not end within 1 s"


# ---- What it prints ----

LOST = ("incomplete_heaps_evicted", "incomplete_heaps_flushed", "heaps_never_begun")
COUNTED = {"socket_datagrams": 9, "socket_dropped": 0, "heaps_complete": HEAPS}
COUNTED |= dict.fromkeys(LOST, 0)
ACCOUNT = f"Received {HEAPS} heaps\n{json.dumps(COUNTED)}\n"


def line(heap: int, n: int = 1, more: float = 0.0) -> str:
    return f"Timestamp: {heap * HEAP_SIZE:<10} Power: {power(heap, n) + more:.2f}"


def said(exercise: ReceiverExercise, lines: list[str], account: str = ACCOUNT) -> str | None:
    done = Done("x", 0, "\n".join([*lines, account]), "")
    return first_fault(exercise, done, Path("x.py"))


EACH = [line(heap) for heap in range(HEAPS)]
GATHERED = [line(0, 131), line(131, 131), line(262, HEAPS - 262)]

MORE = ACCOUNT.replace("Received 300", "Received 600")


@pytest.mark.parametrize(
    ("exercise", "lines", "words"),
    [
        # Heaps may be in any order, and be gathered where the chapter does so.
        (SEVEN, EACH[::-1], None),
        (TWELVE, EACH, None),
        (TWELVE, GATHERED, None),
        (SEVEN, [], "it printed no heap: expected 'Timestamp: 0          Power: 1.50'"),
        (SEVEN, [*EACH[:7], *EACH[8:]], "heap 8 is missing: expected 'Timestamp: 56000 "),
        (SEVEN, GATHERED, "heap 1: expected "),
        (SEVEN, [*EACH[:1], line(1, 1, 0.5), *EACH[2:]], "heap 2: expected "),
        (SEVEN, [*EACH[:1], "Timestamp: 8000 Power: many", *EACH[2:]], "heap 2: expected "),
        (SEVEN, [*EACH, EACH[4]], "heap 5: it printed several lines of timestamp 32000"),
        (SEVEN, [*EACH, "Timestamp: 8001 Power: 3.00"], "timestamp 8001: there is no such heap"),
        (TWELVE, [GATHERED[0], GATHERED[2]], "heaps 1 to 262: expected "),
        (TWELVE, GATHERED[1:], "heap 1 is missing: "),
    ],
)
def test_the_first_wrong_line_is_named_with_its_heap(exercise, lines, words):
    found = said(exercise, lines)
    assert found == words or found.startswith(words)


@pytest.mark.parametrize(
    ("account", "words"),
    [
        (MORE, "the last line: expected 'Received 300 heaps', found 600"),
        ("Received 300 heaps\n", NO_ACCOUNT),
        ('Received 300 heaps\n{"mine": 1}\n', NO_ACCOUNT),
    ],
)
def test_a_last_line_that_is_wrong_and_an_account_that_is_missing_are_faults(account, words):
    assert said(SEVEN, EACH, account) == words


def test_packets_and_heaps_that_it_does_not_account_for_are_a_fault():
    done = Done("x", 0, ACCOUNT, "")
    assert arriving._unaccounted(done, 9, NOTHING, Arrivals(9)) is None
    assert "10 packets" in (arriving._unaccounted(done, 10, NOTHING, Arrivals(10)) or "")
    lost = json.dumps(COUNTED | {"heaps_complete": HEAPS - 1, "incomplete_heaps_flushed": 1})
    assert arriving._unaccounted(Done("x", 1, lost, ""), 9, NOTHING, Arrivals(9)) == (
        f"the account does not add up: of {HEAPS} heaps 1 is missing or incomplete"
    )


# ---- How fast it is ----


def make_runs_up(monkeypatch: pytest.MonkeyPatch, most: dict[str, float]) -> None:
    """Have receivers lose something above a rate, and the sender keep any below 8 GB/s."""

    def both(
        lab: object, exercise: object, program: object, case: Case, heaps: int, rate: float
    ) -> tuple[Done, Done]:
        asked = min(rate, 8e9)
        lost = asked > most[case.implementation]
        n_bytes, packets = heaps * case.heap_size, 2 * heaps
        sent = {"sending_ns": round(n_bytes / asked * 1e9), "packets": packets, "spead_bytes": 0}
        received = {
            "heaps_complete": heaps + 1 - lost,
            "heaps_not_understood": 1,
            "packets_no_place": 0,
            "socket_datagrams": packets - lost,
            "socket_dropped": int(lost),
        }
        sent |= {"heaps": heaps, "warm_up_bytes": 0, "warm_up_packets": 0}
        return Done("blast", 0, json.dumps(sent), ""), Done("x", 0, json.dumps(received), "")

    monkeypatch.setattr(comparison, "_both", both)


@needs_lab
def test_the_highest_rate_without_loss_is_found_of_each(monkeypatch):
    most = {SKELETON: 3e8, YOURS: 6e8, OURS: 1.2e9}
    make_runs_up(monkeypatch, most)
    found = comparison.lossless(SEVEN, skeleton(SEVEN), 3, list)
    for who, row in found.found.items():
        assert most[who] / 1.1 <= row.rate.median <= most[who]
    assert re.fullmatch(r"x\.py gains (2|3|4)\d % of the step", verdict(found, "x.py"))


@needs_lab
def test_where_the_sender_is_the_slower_one_there_is_no_verdict(monkeypatch):
    make_runs_up(monkeypatch, {SKELETON: 1e11, YOURS: 1e11, OURS: 1e11})
    with pytest.raises(ProgramError, match="this machine is busy"):
        comparison.lossless(SEVEN, skeleton(SEVEN), 1, list)


@needs_lab
def test_a_table_has_the_rates_without_loss_and_says_which_are_bounds(monkeypatch, here):
    make_runs_up(monkeypatch, {SKELETON: 3e8, YOURS: 1e11, OURS: 1e11})
    monkeypatch.setattr(arriving, "fault", lambda *_: None)
    done = here("check", "7", skeleton(SEVEN))
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "chapter_7.py receives all that was sent."
    assert "share" not in " ".join(lines)
    assert lines[-3] == "A lower bound, as the sender was the slower one: yours, chapter 7."
    assert lines[-1] == "chapter_7.py is as fast as the chapter's own program."


@needs_lab
def test_real_programs_are_sent_to_at_a_rate_and_counted():
    """Of one run alone: whether it loses something is the machine's affair."""
    case = Case(OURS, "python", SEVEN.program)
    with receiving_lab() as lab:
        run = comparison._receive(lab, SEVEN, Step(0, False, case), solution(SEVEN), 100, 1e9)
    assert run.failure is None
    assert 0 < (run.received_packets or 0) <= (run.packets or 0)


def test_chapter_3_has_nothing_to_be_measured_beside(monkeypatch, here):
    monkeypatch.setattr(arriving, "fault", lambda *_: None)
    done = here("check", "3", solution(RECEIVING[0]))
    assert done.returncode == 0
    last = done.stdout.splitlines()[-1]
    assert last == "There was no receiver before it, so there is nothing to compare it with."

# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial check`` of receivers: what it says of wrong ones, and of right ones."""

import json
import re
from pathlib import Path

import pytest

from spead_tutorial.chapters.catalogue import RECEIVING, ReceiverExercise
from spead_tutorial.chapters.exercises import solution
from spead_tutorial.check import arriving
from spead_tutorial.check.arriving import HEAP_SIZE, HEAPS, fault, first_fault, power
from spead_tutorial.lab import Arrivals, Counters
from spead_tutorial.measure.delivery import NO_ACCOUNT
from spead_tutorial.measure.programs import Done
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


def test_a_receiver_that_is_right_is_told_so(monkeypatch, here):
    monkeypatch.setattr(arriving, "fault", lambda *_: None)
    done = here("check", "3", solution(RECEIVING[0]))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "tut_3_recv.py receives all that was sent.\n"

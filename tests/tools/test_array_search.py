# SPDX-License-Identifier: BSD-3-Clause
"""The search for the highest rate of an array at which all arrives."""

import json
import signal
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from spead_tutorial.measure.corner_turn import Asked, Ended, Look, Machine, Measured
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.results.account import Account
from spead_tutorial.tools.array.highest import Search, search
from support import arrays
from support.labs import needs_lab

ASKED = replace(arrays.ASKED, rate=10)


def run_at(asked: Asked, most: float, fastest: float = 1e9) -> Measured:
    """A run in which a receiver can take a rate, and a sender send one."""
    rate, lost = min(asked.rate, fastest), int(asked.rate > most)
    sent = {"destinations": [{"packets": 100}], "spead_bytes": int(rate * 1e6), "elapsed_ns": 10**9}
    came = {"senders": [{"packets": 100 - lost}]}
    ends = [Ended("sender 0", 0, 0, sent)], [Ended("receiver 0", 0, 0, came)]
    return Measured(asked, [Machine("host0", "", "")], *ends, [Look(0, 0, 0, 0, 0, 0)])


def rates(found: Search) -> list[float]:
    return [round(one.asked, 1) for one in found.tried]


@pytest.mark.parametrize(
    ("limits", "tried", "answer", "best"),
    [
        # Doubled, then what is between is halved, and three runs hold.
        ({"most": 33}, [10, 20, 40, 28.3, 33.6, 30.8, 30.8, 30.8],
         "All arrives at 30.84 MB/s of each sender; at 33.64 MB/s packets are missing.", 30.84),
        # Where the first rate is too high, it is halved at once.
        ({"most": 3}, [10, 5, 2.5, 3.5, 3.0, 3.2, 3.0, 3.0],
         "All arrives at 2.973 MB/s of each sender; at 3.242 MB/s packets are missing.", 2.973),
        ({"most": 1000, "fastest": 50}, [10, 20, 40, 80, 80, 80],
         "All arrives at 50 MB/s of each sender, which send no faster.", 80),
        ({"most": 0}, [10, 5, 2.5, 1.2, 0.6, 0.3, 0.2],
         "All that was tried is too fast: at 0.1562 MB/s packets are missing.", 0.15625),
    ],
)  # fmt: skip
def test_the_highest_rate_at_which_all_arrives_is_found(limits, tried, answer, best, capsys):
    found, measured = search(lambda asked: run_at(asked, **limits), ASKED)
    assert rates(found) == tried
    assert found.answer == answer
    assert measured.asked.rate == pytest.approx(best, rel=1e-3)
    said = capsys.readouterr().err.splitlines()
    missing = "spead-tutorial: 1 of 100 packets are missing (1.00%), in 1 of 1 pair."
    assert [line == missing for line in said] == [rate > limits["most"] for rate in tried]


def test_a_rate_that_loses_something_later_has_not_held():
    runs = iter(
        [100, 100, 0, 100, 0, 100, 100, 0, *[100] * 9]
    )  # 10, 20, 40, 28, 34, 31 three times
    found, best = search(lambda asked: run_at(asked, most=next(runs) and 1000), ASKED)
    assert rates(found) == [10, 20, 40, 28.3, 33.6, 30.8, 30.8, 30.8, 28.3, 28.3]
    assert (
        found.answer
        == "All arrives at 28.28 MB/s of each sender; at 30.84 MB/s packets are missing."
    )
    assert best.asked.rate == pytest.approx(28.28, rel=1e-3)
    assert Account(best).is_whole


def test_senders_that_are_late_once_do_not_end_it():
    late = iter([5, *[1e9] * 30])
    found, _ = search(lambda asked: run_at(asked, 33, fastest=next(late)), ASKED)
    assert rates(found)[:5] == [10, 10, 10, 20, 40]


def cut_short_at(number: int, how: Callable[[Measured], Measured]) -> tuple[str, Measured]:
    asked: list[Asked] = []

    def measure(one: Asked) -> Measured:
        asked.append(one)
        found = run_at(one, 1000)
        return how(found) if len(asked) == number else found

    found, best = search(measure, ASKED)
    assert len(asked) == number
    return found.answer, best


def test_ctrl_c_ends_it_with_the_best_so_far():
    def interrupted(found: Measured) -> Measured:
        ended = [replace(one, status=-signal.SIGINT) for one in found.senders]
        return replace(found, senders=ended, interrupted=True)

    def raised(_: Measured) -> Measured:
        raise KeyboardInterrupt

    for how in (interrupted, raised):
        answer, best = cut_short_at(3, how)
        assert answer == "So far, all arrives at 20 MB/s of each sender; no more was tried."
        assert (round(best.asked.rate), best.interrupted) == (20, True)
    with pytest.raises(KeyboardInterrupt):
        cut_short_at(1, raised)


def test_what_fails_ends_it_and_is_said():
    def failed(found: Measured) -> Measured:
        return replace(found, trouble=["host0 is stuck"])

    def raised(_: Measured) -> Measured:
        raise ProgramError("host0 is stuck")

    for how in (failed, raised):
        answer, best = cut_short_at(2, how)
        assert answer == "So far, all arrives at 10 MB/s of each sender; no more was tried."
        assert (best.asked.rate, best.trouble) == (10, ["host0 is stuck"])
    assert cut_short_at(1, failed)[0] == "None was tried."
    with pytest.raises(ProgramError):
        cut_short_at(1, raised)


def test_ctrl_c_is_said_also_where_nothing_held():
    runs = iter([0, 0])

    def measure(asked: Asked) -> Measured:
        for most in runs:
            return run_at(asked, most)
        raise KeyboardInterrupt

    found, best = search(measure, ASKED)
    assert found.answer == "All that was tried is too fast: at 5 MB/s packets are missing."
    assert best.interrupted


@needs_lab
def test_a_slow_link_is_found_in_a_lab(here):
    small = ["--local", "2", "--senders", "1", "--receivers", "1", "--seconds", "1"]
    done = here("array", *small, "--search", "--rate", "4", "--slow", "0", "1", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert found["whole"]
    assert found["search"]["tried"][0]["lost"]
    assert found["measured"]["asked"]["rate"] < 4
    assert found["search"]["answer"].startswith("All arrives at ")
    assert found["measured"]["switch"][0] == {"full": 0, "chance": 0}

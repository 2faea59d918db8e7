# SPDX-License-Identifier: BSD-3-Clause
"""The account of an array: what is missing of each pair, and which counter has it."""

import signal

import msgspec
import pytest

from spead_tutorial.measure.corner_turn import Ended, Look, Lost, Machine
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.measure.records import RecordError, Recording
from spead_tutorial.results import plots
from spead_tutorial.results.account import Account
from support.arrays import ASKED, account, receiver, recorded, sender
from support.records import HEADER, SAMPLE


def test_where_everything_arrived_the_matrix_has_sums_and_rates():
    found = account(
        [sender(0, 10, 10), sender(1, 20, 20)], [receiver(0, 10, 20), receiver(1, 10, 20)]
    )
    assert found.is_whole
    assert list(found.lines()) == [
        "4 pairs, 60 packets: all arrived.",
        "",
        "Packets that are missing, and what was sent and received:",
        "          receiver 0  receiver 1  all           sent",
        "sender 0           0           0    0  20, 5000 MB/s",
        "sender 1           0           0    0  40, 5000 MB/s",
        "all                0           0    0",
        "received          30          30",
        "rate       3000 MB/s   3000 MB/s",
        "",
        "From its start, a receiver took up to 0.50 s to join.",
    ]


@pytest.mark.parametrize(
    ("more", "dropped", "said"),
    [
        ({}, 4, ["= 4 by its sockets, which were full"]),
        ({"looks": [Look(0, 3, 0, 0, 0, 1)]}, 0, ["= 3 by its device + 1 at a port without a"]),
        ({"switch": [Lost(3, 1)]}, 0, ["= 3 by the switch, whose port to it was full + 1 by the"]),
        ({}, 0, ["4 missing = no counter of ours has any", "they cannot be placed"]),
        ({}, 3, ["4 missing = 3 by its sock", "that does not add up: of 10 packets 4 are missing"]),
        ({"looks": [Look(0, 0, 0, 4, 0, 0)]}, 0, ["before they left their machines: 4"]),
    ],
)  # fmt: skip
def test_what_is_missing_is_where_a_counter_has_it_and_else_cannot_be_placed(more, dropped, said):
    found = account([sender(0, 10)], [receiver(0, 6, dropped=dropped)], **more)
    assert not found.is_whole
    assert found.verdict == "4 of 10 packets are missing (40.00%), in 1 of 1 pair."
    text = "\n".join(found.lines())
    assert all(words in text for words in said)
    assert ("cannot be placed" in text) == ("they cannot be placed" in said)


def test_what_a_program_did_not_live_to_say_is_not_known():
    dead = Ended("sender 1", 0, -9)
    found = account([sender(0, 10), dead], [receiver(0, 10, 5)])
    assert not found.is_whole
    assert found.failures == ["sender 1: killed by signal 9"]
    assert found.verdict == "1 pair, 10 packets: all arrived; of 1 pair nothing is known"
    assert [one.missing for row in found.pairs for one in row] == [0, None]
    assert "sender 1           ?      ?           ?, ?" in list(found.lines())
    assert "all            0 + ?  0 + ?" in list(found.lines())


@pytest.mark.parametrize("said", [{}, {"destinations": [{}]}, {"destinations": [{}, 1]}], ids=str)
def test_what_a_program_of_another_version_says_is_one_line(said):
    with pytest.raises(
        ProgramError, match=r"^sender 0 did not print a count for each of its 2 destinations: "
    ):
        account([Ended("sender 0", 0, 0, said)], [receiver(0, 10), receiver(1, 10)])


def test_what_many_programs_say_alike_is_one_line():
    said = [Ended(f"sender {i}", 0, 1, errors="the same\n") for i in range(5)]
    other = Ended("sender 5", 0, 1, errors="another\n")
    assert account([*said, other], [receiver(0, *[0] * 6)]).failures == [
        "sender 0 and 4 others: failed: the same",
        "sender 5: failed: another",
    ]


def test_what_the_tool_itself_interrupts_has_not_failed():
    cut = Ended("sender 0", 0, -signal.SIGINT)
    assert account([cut], [receiver(0, 9)], interrupted=True).failures == []
    assert account([cut], [receiver(0, 9)], trouble=["late"]).failures == ["late"]
    assert account([cut], [receiver(0, 9)]).failures == ["sender 0: killed by signal 2"]


def test_what_arrives_beyond_what_was_sent_does_not_hide_a_loss():
    found = account([sender(0, 10, 10)], [receiver(0, 7), receiver(1, 14)])
    assert not found.is_whole
    assert found.verdict == "3 of 20 packets are missing (15.00%), in 1 of 2 pairs."
    beyond = account([sender(0, 10)], [receiver(0, 14)])
    assert beyond.verdict == ("4 packets more arrived than were sent: something else sends there.")
    assert "missing =" not in "\n".join(beyond.lines())


def test_a_run_lasts_as_long_as_is_asked_for_also_with_heaps_smaller_than_headers():
    tiny, large = (msgspec.structs.replace(ASKED, heap_size=n, packet_size=9000, seconds=10)
                   for n in (1, 1 << 20))  # fmt: skip
    assert tiny.heaps * (64 + 1) == pytest.approx(10e6, rel=0.01)
    assert large.heaps * (1 << 20) == pytest.approx(10e6, rel=0.1)


def test_where_a_run_was_too_short_to_time_no_rate_is_shown():
    short = receiver(0, 10)
    assert short.said is not None
    short.said["timed_bytes"] = 0
    assert list(account([sender(0, 10)], [short]).lines())[-3] == "received          10"


@pytest.mark.parametrize(("rate", "said"), [(5.1, False), (5.5, True)])
def test_senders_that_do_not_keep_their_rate_are_spoken_of(rate, said):
    senders = [sender(i, 10) for i in range(2)]
    for one, n_bytes in zip(senders, (5000, 6000), strict=True):
        assert one.said is not None
        one.said |= {"spead_bytes": n_bytes, "elapsed_ns": 10**6}
    measured = account(senders, [receiver(0, 10, 10)]).measured
    measured.asked = msgspec.structs.replace(measured.asked, rate=rate)
    line = "A sender sent 5 MB/s, not 5.5: its core or link passes no more."
    assert (line in list(Account(measured).lines())) == said


def timed(*receivers: tuple[int, dict[str, object]], clocks: str = "a") -> Account:
    """An account of receivers on machines, which say more; a letter for each machine's clock."""
    came = [receiver(j, 10, machine=m) for j, (m, _) in enumerate(receivers)]
    for one, (_, more) in zip(came, receivers, strict=True):
        assert one.said is not None
        one.said |= {"ended": "stop"} | more
    found = account([sender(0, *[10] * len(came))], came)
    machines = [Machine(f"host{m}", "", "", clock) for m, clock in enumerate(clocks)]
    return Account(msgspec.structs.replace(found.measured, machines=machines))


def test_when_first_packets_came_is_compared_by_one_clock():
    first: list[dict[str, object]] = [
        {"first_packets_ns": n * 10**8, "longest_pause_ns": n * 10**7} for n in (50, 52, 90)
    ]
    alike = timed(*((0, one) for one in first))
    assert (alike.skew_s, alike.longest_pause_s) == (4.0, 0.9)
    said = "First packets came to receivers within 4.1 s. A receiver got nothing for 0.9 s, and"
    assert f"{said} then more." in list(alike.lines())
    some = timed((0, first[0]), (1, first[1]), (2, first[2]), clocks="aab")
    assert some.as_dict()["skew_s"] == pytest.approx(0.2)
    assert "on machines of one clock (2 clocks) within 0.3 s." in "\n".join(some.lines())
    none = timed((0, first[0]), (1, first[1]), clocks="ab")
    assert none.skew_s is None
    assert "Each receiver has a clock of its own" in "\n".join(none.lines())


def test_silence_that_ended_a_receiver_is_no_pause():
    found = timed((0, {"longest_pause_ns": 3 * 10**9, "ended": "silence"}))
    assert found.longest_pause_s == 0
    assert "got nothing" not in "\n".join(found.lines())


def test_packets_are_out_of_order_where_none_is_missing():
    found = timed((0, {"packets_after_loss": 3}))
    assert "3 packets overtook others of their heaps." in list(found.lines())
    assert found.measured.receivers[0].said is not None
    found.measured.receivers[0].said["senders"] = [{"packets": 9}]
    assert Account(found.measured).out_of_order == 0


def test_of_many_receivers_the_pairs_that_lost_most_are_listed():
    found = account([sender(0, *[10] * 30)], [receiver(j, j % 11) for j in range(30)])
    lines = list(found.lines())
    assert "28 of 30 pairs lost packets, most of all:" in lines
    assert "sender 0 to receiver 22       10    10" in lines
    assert sum("sender 0 to receiver" in line for line in lines) == 10
    whole = account([sender(0, *[10] * 30)], [receiver(j, 10) for j in range(30)])
    assert len(list(whole.lines())) == 3


def test_what_a_program_cannot_have_counted_is_not_known():
    for count in (-1, 1 << 63, 10**400, "9", None):
        (one,) = account([sender(0, 9)], [receiver(0, 9)]).measured.receivers
        one.said = {"senders": [{"packets": count}], "longest_pause_ns": count}
        found = account([sender(0, 9)], [one])
        assert found.verdict == "Nothing is known of any pair."
        assert found.longest_pause_s == 0


def test_the_picture_says_what_came_out_and_which_pairs_lost():
    dead = Ended("sender 2", 0, -9)
    senders, receivers = [sender(0, 8, 8), sender(1, 8, 8), dead], [receiver(0, 8, 6, 0)]
    found = account(senders, [*receivers, receiver(1, 8, 8, 0)])
    svg = plots.render(plots.matrix(recorded(found)), plots.LIGHT).decode()
    most = "Most for host0 (receiver 0, 1): 2 missing = no counter of ours has any"
    assert f'<title id="picture-title">{found.verdict}. {most}</title>' in svg
    assert "sender 1: receiver 0 25 %." in svg
    assert "sender 2: receiver 0 ?, receiver 1 ?." in svg
    assert "sender 0" not in svg
    assert "1 MB/s of each sender for 1 s" in svg
    assert "programs in C \N{MIDDLE DOT}" in svg


def test_a_record_of_something_else_has_no_account():
    with pytest.raises(RecordError, match="the record is of tour, not of an array"):
        Account.of(Recording.of(HEADER, [SAMPLE]))


def test_of_a_record_with_counts_of_others_or_nothing_to_draw_one_line_says_so():
    found = account([sender(0, 10)], [receiver(0, 10)])
    found.measured.senders[0].said = {"destinations": []}
    with pytest.raises(RecordError, match="sender 0 did not print a count for each"):
        Account.of(recorded(found))
    nothing = recorded(account([], [receiver(0, 0)]))
    with pytest.raises(RecordError, match="there is nothing to draw: nothing was sent"):
        plots.matrix(nothing)

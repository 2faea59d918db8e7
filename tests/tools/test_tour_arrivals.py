# SPDX-License-Identifier: BSD-3-Clause
"""What arrives on a tour: where from, what is a failure and what is a loss, and how it is shown."""

import pytest

from spead_tutorial.chapters.catalogue import MEASURED
from spead_tutorial.lab import Journey, Lab, LabError
from spead_tutorial.measure import delivery as deliveries
from spead_tutorial.measure.delivery import Delivery
from spead_tutorial.measure.programs import Done
from spead_tutorial.measure.records import RecordError
from spead_tutorial.measure.report import Report
from spead_tutorial.tools import tour
from spead_tutorial.tools.tour.rows import arrivals_text, read_arrivals
from support.labs import needs_lab
from support.tours import arrived, recorded

REPORT = Report("tut_6_send_pktsize", "c", 2, 8, 9000, 16, 99, 3, 0, 1, 0, 0, 0, 0)


def lost(sent: int, received: int, dropped: int, status: int) -> Delivery:
    """A delivery of some packets, of which the socket dropped some."""
    journey = Journey(sent, received, dropped)
    errors = "tut_7_recv_power: it is none of ours\n" if status else ""
    ended = Done("tut_7_recv_power", status, "Timestamp: 0  Power: 1.00\n", errors)
    return Delivery(ended, Done("s", 0, "", ""), REPORT, journey, journey.check())


@needs_lab
def test_without_a_link_to_a_second_machine_it_arrives_over_the_labs_loopback(monkeypatch):
    def without_veth(kind: str | None = None, *, receiver: bool) -> Lab:
        if kind is None:
            raise LabError("this kernel offers no veth")
        return Lab(kind, receiver=receiver)

    monkeypatch.setattr(deliveries, "Lab", without_veth)
    found, reasons = tour.receive_some("tiny")
    assert reasons == []
    assert [one.language for one in found] == list(MEASURED)
    for one in found:
        assert (one.way, one.failure) == ("loopback", None)
        assert one.sent == one.received + one.lost + one.dropped > 0


def test_where_nobody_can_receive_a_tour_says_why_and_goes_on(monkeypatch):
    def no_lab(kind: str | None = None, *, receiver: bool) -> None:
        raise LabError("it is forbidden here")

    monkeypatch.setattr(deliveries, "Lab", no_lab)
    assert tour.receive_some("tiny") == ([], ["Without data that arrives: it is forbidden here."])


@pytest.mark.parametrize(
    ("delivery", "counts", "failure"),
    [
        (lost(10, 10, 0, 0), (10, 10, 0), None),
        (lost(10, 7, 3, 1), (10, 7, 3), None),
        (lost(10, 10, 0, 1), (10, 10, 0), "tut_7_recv_power: it is none of ours"),
        (lost(10, 7, 0, 1), (0, 0, 0), "tut_7_recv_power has failed, with status 1"),
        (lost(10, 7, 0, 0), (0, 0, 0), "3 are missing between"),
    ],
    ids=["all", "a loss", "a complaint", "a complaint and a gap", "a gap"],
)
def test_a_loss_that_is_accounted_for_is_no_failure_and_all_else_is(
    monkeypatch, delivery, counts, failure
):
    monkeypatch.setattr(tour, "deliver", lambda *_, **__: delivery)
    monkeypatch.setattr(tour, "receiving_lab", lambda: Stand())
    found, _ = tour.receive_some("tiny")
    for one in found:
        assert (one.sent, one.received, one.dropped) == counts
        assert (one.failure is None) if failure is None else (failure in one.failure)


class Stand:
    """Stands for a lab."""

    kind = "veth"

    def __enter__(self) -> "Stand":
        return self

    def __exit__(self, *_: object) -> None:
        pass


def test_what_arrived_is_a_table_and_a_failure_is_named_in_it():
    values = tuple(f"Timestamp: {i:<10} Power: 1.00" for i in range(4))
    lossy = {"received": 11790, "lost": 4, "dropped": 7, "values": values}
    shown = arrivals_text(read_arrivals(arrived(recorded(), lossy, {"failure": "why"})))
    numbers = [line.split() for line in shown.splitlines() if line.startswith("C ")]
    assert numbers == [["C", "100", "11801", "11790", "4", "7", "✓"], ["C", "✗", "failed:", "why"]]
    assert f"  {values[2]}\n  …\n  {values[3]}\n" in shown
    assert arrivals_text([]) == ""


def test_what_a_strangers_record_says_is_no_more_than_letters_to_a_terminal():
    shown = arrivals_text(read_arrivals(arrived(recorded(), {"way": "veth\x1b[31m"})))
    assert "(veth [31m)" in shown


def test_a_failure_of_what_arrives_fails_the_tour(tmp_path, monkeypatch, capsys):
    recording = arrived(recorded(), {"failure": "one is missing"})
    monkeypatch.setattr(tour, "_measure", lambda *_: recording)
    monkeypatch.setattr(tour, "_draw", lambda *_: [])
    assert tour.do_tour("tiny", tmp_path, loopback=True) == 1
    assert capsys.readouterr().err == "spead-tutorial: one is missing\n"


def test_a_record_that_says_it_otherwise_is_refused_in_one_line():
    with pytest.raises(RecordError, match=r"arrivals: Expected `int` >= 0 - at `\$\[0\]\.sent`"):
        read_arrivals(arrived(recorded(), {"sent": -1}))

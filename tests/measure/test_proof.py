# SPDX-License-Identifier: BSD-3-Clause
"""Only a run that is proven has a rate: programs that lie or fail have none."""

import dataclasses
import json
import os
import sys
from pathlib import Path

import pytest

from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.lab import Counters, LabError
from spead_tutorial.measure import place as place_module
from spead_tutorial.measure import programs, verify
from spead_tutorial.measure.case import Begun, Case, Step
from spead_tutorial.measure.place import LISTENERS, Device, Evidence, Host, Loopback
from spead_tutorial.measure.programs import ProgramOptions, run
from spead_tutorial.measure.verify import Report, contradiction
from support.programs import PATIENCE_S, in_c

CHAPTER_6 = find_chapter("6")
THREE = ProgramOptions(heaps=3)
REPORT = Report(
    chapter=6,
    program="tut_6_send_pktsize",
    language="c",
    random=False,
    heaps=1,
    heap_size=3000,
    packet_size=1472,
    payload_bytes=3000,
    spead_bytes=3200,
    packets=4,
    messages=2,
    send_calls=2,
    waits=0,
    errors=0,
    elapsed_ns=1000,
    cpu_user_ns=1,
    cpu_system_ns=1,
    page_faults=0,
    context_switches=0,
)
CLAIM = f"print({json.dumps(dataclasses.asdict(REPORT))!r})"


def pretend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str) -> None:
    """Put a script in the place of every chapter's program."""
    script = tmp_path / "tut_6_send_pktsize.py"
    script.write_text(source)
    monkeypatch.setattr(programs, "program", lambda *_: [sys.executable, str(script)])


def test_a_place_without_a_lab_has_no_link_and_no_real_interface(monkeypatch):
    with pytest.raises(ValueError, match="no link of ours: take a lab"):
        Host("127.0.0.1", 9).limited(10**9)

    def refuse(host: str, *, allow_real_network: bool) -> None:
        raise LabError(f"{host} {allow_real_network}")

    monkeypatch.setattr(place_module, "check_destination", refuse)
    with pytest.raises(LabError, match=r"192\.0\.2\.1 False"):
        run(Host("192.0.2.1", 9), CHAPTER_6, "c")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (CLAIM, "the device counted 0 packets"),
        (CLAIM, "4 SPEAD packets of 3200 bytes"),
        ("import sys; sys.exit('tut_6_send_pktsize: no luck')", "tut_6_send_pktsize: no luck"),
        ("import sys; sys.exit(3)", "ended with status 3 and said nothing"),
        ("import os; os.kill(os.getpid(), 9)", "ended by SIGKILL"),
        ("print('100.00 MB/s')", "printed no report, but '100.00 MB/s'"),
        ("print('{}')", "printed no report"),
        ("print('[1, 2]')", "printed no report"),
        ("", "printed no report"),
        ("import time; time.sleep(60)", "did not end within 0.5 s"),
    ],
)
def test_a_program_that_lies_or_fails_has_no_rate(lab, tmp_path, monkeypatch, source, words):
    pretend(monkeypatch, tmp_path, source)
    timeout = 0.5 if "sleep" in source else PATIENCE_S
    result = run(Device(lab), CHAPTER_6, "c", ProgramOptions(heaps=1), timeout=timeout)
    assert result.rate is None
    assert words in result.failure
    assert "\n" not in result.failure
    record = Begun(Step(0, False, Case("ours", "c", "tut_6_send_pktsize"))).sent(result)
    values = record.heaps, record.heap_size, record.packet_size, record.elapsed_ns
    assert values == ((1, 3000, 1472, 1000) if source == CLAIM else (1, 1 << 20, 9000, None))
    assert (record.rate, record.failure) == (None, result.failure)


@pytest.mark.parametrize(
    ("changed", "is_wrong"),
    [
        ({}, False),
        ({"errors": 1}, True),
        ({"payload_bytes": 4000}, True),
        ({"elapsed_ns": 0}, True),
        ({"spead_bytes": 2999}, True),
        ({"packets": 5}, False),  # which are two to the device, merged
        ({"messages": 3}, True),
    ],
)
def test_a_report_with_something_wrong_has_no_rate(changed, is_wrong):
    # What the device counts for two messages: a header of 42 bytes for each.
    counted = Counters("dummy", 0, 0, 0, 2, REPORT.spead_bytes + 2 * 42, 0)
    report = dataclasses.replace(REPORT, **changed)
    assert (contradiction(report, Evidence(counted)) is not None) == is_wrong


# ---- Over loopback in a lab ----


#: Last packets of 408 bytes, which ICMP quotes whole where they are messages of their own.
SMALL_LAST = ProgramOptions(heaps=60, packet_size=1472)


@in_c
@pytest.mark.parametrize("listener", LISTENERS)
@pytest.mark.parametrize("options", [THREE, SMALL_LAST], ids=["9000", "1472"])
def test_chapter_6_is_borne_out_whoever_listens_on_loopback(lab, language, listener, options):
    result = run(Loopback(listener, lab), CHAPTER_6, language, options)
    assert result.failure is None
    assert result.rate is not None
    assert (result.device, result.kind) == ("lo", "loopback")
    case = Case("ours", language, "tut_6_send_pktsize", variant=listener)
    record = Begun(Step(0, False, case)).sent(result)
    assert record.variant == listener
    messages = result.report.messages
    if listener == "none":
        assert (record.icmp_errors, record.counted_packets) == (messages, 2 * messages)
        assert (record.received_packets, record.received_dropped) == (None, None)
        assert "messages came back, as there was no listener" in result.proof
    else:
        assert (record.icmp_errors, record.counted_packets) == (0, messages)
        assert record.received_packets + record.received_dropped == result.report.packets


def test_a_slow_listener_loses_what_a_fast_sender_sends(lab):
    result = run(Loopback("slow", lab), CHAPTER_6, "c", ProgramOptions(heaps=200))
    assert result.failure is None
    assert result.evidence.received["dropped"] > 0
    assert result.as_dict()["icmp_errors"] == 0


def test_where_nobody_is_to_listen_somebody_is_noticed(lab):
    with lab.socket() as somebody:
        somebody.bind(("127.0.0.1", lab.port))
        result = run(Loopback("none", lab), CHAPTER_6, "c", THREE)
    assert result.rate is None
    assert "no message came back: there was a listener" in result.failure


def test_a_packet_that_a_listener_never_got_is_missed(lab, monkeypatch):
    summary = place_module._Sink.summary

    def forgetful(sink, expect_the_end):
        seen = summary(sink, expect_the_end)
        return seen | {"packets": seen["packets"] - 1}

    monkeypatch.setattr(place_module._Sink, "summary", forgetful)
    result = run(Loopback("fast", lab), CHAPTER_6, "c", THREE)
    again = run(Device(lab), find_chapter("2"), "c")
    for one in (result, again):
        assert one.rate is None
        assert "1 is missing between the sender and the receiver's socket" in one.failure


def icmp_failure(report: Report, icmp_bytes: int, icmp_errors: int = 2) -> bool:
    """Whether so many bytes of errors beside the messages of a report are refused."""
    lo_bytes = report.spead_bytes + 2 * 28 + icmp_bytes
    counted = Counters("loopback", 0, 0, 0, 2 + icmp_errors, lo_bytes, 0)
    return not verify._accounted(report, counted, icmp_errors).ok


def test_errors_that_return_messages_are_accounted_for_to_the_byte():
    # The stop heap has 57 bytes: its error has 56 more. A heap's last packet has 408.
    report = dataclasses.replace(REPORT, heaps=1, heap_size=1 << 20, payload_bytes=1 << 20)
    assert [one[-1] for one in verify.packet_sizes(1 << 20, 1472)] == [732, 408, 57]
    assert not icmp_failure(report, 576 + 57 + 56)
    assert icmp_failure(report, 576 + 57 + 57)
    assert icmp_failure(report, 576 + 576)
    assert icmp_failure(report, 576 + 57 + 56, icmp_errors=1)
    # So many heaps, so many last packets that may have been messages of their own at most.
    assert icmp_failure(report, 408 + 56 + 57 + 56)
    report = dataclasses.replace(report, heaps=2, payload_bytes=2 << 20)
    assert not icmp_failure(report, 408 + 56 + 57 + 56)


def test_what_cannot_be_proven_or_is_not_known_is_refused_before_it_runs(lab):
    for options in (ProgramOptions(heap_size=500), ProgramOptions(packet_size=500)):
        with pytest.raises(ValueError, match="500 bytes cannot be accounted for"):
            run(Loopback("none", lab), find_chapter("8"), "c", options)
    with pytest.raises(ValueError, match="none, fast, slow"):
        run(Loopback("deaf", lab), find_chapter("8"), "c")


# ---- What a measured program has ----


def test_a_program_gets_what_it_is_to_have_in_its_environment(lab, tmp_path, monkeypatch):
    source = "import os, sys; sys.exit(os.environ['COLOUR'] + str(len(os.environ['PATH'])))"
    pretend(monkeypatch, tmp_path, source)
    for place, chapter in (
        (Device(lab), CHAPTER_6),
        (Device(lab), find_chapter("2")),
        (Loopback(), CHAPTER_6),
        (Host("127.0.0.1", 9), CHAPTER_6),
    ):
        result = run(place, chapter, "c", environment={"COLOUR": "blue"})
        assert f"blue{len(os.environ['PATH'])}" in result.failure

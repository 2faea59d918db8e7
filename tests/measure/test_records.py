# SPDX-License-Identifier: BSD-3-Clause
"""Records and statistics: that what is written is read again, and what is wrong is said."""

import errno
import json
import os
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from spead_tutorial.measure import records
from spead_tutorial.measure.records import RecordError, Sample, Writer, locked, read
from support import arrays
from support.records import HEADER, SAMPLE, TIMELINE, make_spacing

SPLIT = records.Split("6/c", 2, "tut_6_send_pktsize", "c", 10, 1 << 20, 2_000_000, {"fill": 3}, {})
SPACING = make_spacing("p", False, 0, number=2)
TURN = records.Turn.of(arrays.account([arrays.sender(0, 9)], [arrays.receiver(0, 8)]).measured)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A recording with one sample."""
    file = tmp_path / "some.jsonl"
    with Writer(file, HEADER) as writer:
        writer.add(SAMPLE)
    return file


def add(path: Path, *taken: object) -> None:
    with Writer(path) as writer:
        for one in taken:
            writer.add(one)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in path.read_text().splitlines()]


def write(path: Path, *records: dict[str, Any]) -> None:
    path.write_text("".join(json.dumps(one) + "\n" for one in records))


def change(path: Path, line: int, **changed: object) -> None:
    """Change fields of a line, or drop those that are to be an ellipsis."""
    all_lines = lines(path)
    all_lines[line] = {k: v for k, v in (all_lines[line] | changed).items() if v is not ...}
    write(path, *all_lines)


def of_round(number: int, **more: object) -> Sample:
    return replace(SAMPLE, round=number, **more)


# ---- What is written is read again ----


def test_a_sample_is_on_the_disk_at_once_and_read_again(tmp_path):
    path = tmp_path / "some.jsonl"
    writer = Writer(path, HEADER)
    try:
        assert read(path).samples == ()
        writer.add(SAMPLE)
        assert (read(path).header, read(path).samples) == (HEADER, (SAMPLE,))
    finally:
        writer.close()
        writer.close()
    assert SAMPLE.rate == pytest.approx((10 << 20) / 2e-3)


def test_a_full_disk_is_named_with_the_file(tmp_path, monkeypatch):
    with Writer(tmp_path / "some.jsonl", HEADER) as writer:
        monkeypatch.setattr(os, "write", lambda fd, line: len(line) // 2)
        with pytest.raises(OSError, match=r"No space left on device: '.*/some\.jsonl'"):
            writer.add(SAMPLE)


def test_what_was_killed_in_the_middle_of_a_line_goes_on_from_the_line_before(path):
    whole = path.read_bytes()
    path.write_bytes(whole + whole[-40:-1])
    with pytest.raises(RecordError, match=r"some\.jsonl line 3 is cut off"):
        read(path)
    assert read(path, unfinished=True).samples == (SAMPLE,)
    add(path, of_round(1))
    assert [one.round for one in read(path).samples] == [0, 1]
    assert path.read_bytes().startswith(whole)


def test_the_rounds_of_a_recording_are_those_that_every_case_has(path):
    add(path, of_round(1), of_round(1, warm_up=True), of_round(0, warm_up=True))
    assert read(path).rounds == 2
    add(path, of_round(0, case="another"))
    assert read(path).rounds == 1


def test_a_recording_is_a_table_with_units_in_its_columns(path, tmp_path):
    frame = read(path).frame()
    assert frame["heap_size_bytes"].tolist() == [1 << 20]
    assert frame["rate_bytes_per_s"].tolist() == [SAMPLE.rate]
    assert {"waits", "received_heaps", "case"} < set(frame.columns)
    empty = tmp_path / "empty.jsonl"
    Writer(empty, HEADER).close()
    assert list(read(empty).frame().columns) == list(frame.columns)


def test_a_series_says_all_that_makes_a_line_of_a_picture():
    one = replace(SAMPLE, random=True, variant="huge pages")
    assert one.series == records.Series("ours", "c", "tut_6_send_pktsize", "random, huge pages")
    assert str(SAMPLE.series) == "ours c tut_6_send_pktsize"


def test_a_sample_with_a_failure_has_no_rate():
    assert replace(SAMPLE, failure="it failed").rate is None
    assert replace(SAMPLE, elapsed_ns=None).rate is None


def test_what_is_not_known_is_not_written(path):
    text = path.read_text()
    assert "null" not in text.splitlines()[1]
    assert lines(path)[1]["record"] == "sent"


def test_a_failure_is_recorded_without_folders_and_host_name(tmp_path, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "vm-7")  # the real one may be any word
    path = tmp_path / "some.jsonl"
    text = f"{tmp_path}/tut_6: on vm-7: 192.168.31.1/24, 10 MB/s"
    with Writer(path, HEADER) as writer:
        writer.add(replace(SAMPLE, failure=text))
    failure = read(path).samples[0].failure
    assert failure == "tut_6: on this machine: 192.168.31.1/24, 10 MB/s"
    assert records.anonymous("'/home/someone/a b/c.py'") == "'a b/c.py'"


# ---- What is wrong is said ----


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"a,b\n1,2\n", "line 1 is not a JSON object"),
        (b"[1]\n", "line 1: Expected `object`, got `array`"),
        (b'{"a":' * 100_000 + b"\n", "line 1 is not a JSON object"),
        (b'{"record": "header", "tool": "another"}\n', "not a recording of spead_tutorial"),
        (b'{"record": "sample"}\n', "its first line is no header"),
        (b"\xff\xfe\n", "not text"),
    ],
)
def test_a_foreign_file_is_an_error(path, content, words):
    path.write_bytes(content)
    with pytest.raises(RecordError, match=words):
        read(path)


@pytest.mark.parametrize(
    ("line", "changed", "words"),
    [
        (0, {"schema": records.SCHEMA + 1}, f"has schema {records.SCHEMA + 1}, and this version"),
        (0, {"schema": records.SCHEMA - 1}, f"has schema {records.SCHEMA - 1}, and this version"),
        (0, {"schema": "4"}, "line 1: schema: Expected `int`, got `str`"),
        (0, {"more": 1}, "line 1: Object contains unknown field `more`"),
        (0, {"settings": {"rounds": "9"}}, "line 1: settings.rounds: Expected `int`, got `str`"),
        (0, {"settings": {"skipped": [1]}}, "line 1: settings.skipped: Expected `object`"),
        (0, {"machine": {"usable_cores": "two"}}, "line 1: machine.usable_cores: Expected `int"),
        (1, {"x" * 9999: 1}, "line 2: Object contains unknown field `x{150,200}$"),
        (0, {"settings": {"rounds": 10**7}}, "line 1: settings.rounds: Expected `int` <= 1000"),
        (1, {"\x1b[31m": 1}, r"line 2: Object contains unknown field `\\x1b\[31m`"),
        (1, {"heaps": ...}, "line 2: Object missing required field `heaps`"),
        (1, {"record": "another"}, "line 2: record: Invalid value 'another'"),
        (1, {"elapsed_ns": "12"}, "line 2: elapsed_ns: Expected `int . null`, got `str`"),
        (1, {"elapsed_ns": 1 << 63}, f"line 2: elapsed_ns: Expected `int` <= {2**63 - 1}"),
        (1, {"packets": -1}, "line 2: packets: Expected `int` >= 0"),
        (1, {"heaps": 0}, "line 2: heaps: Expected `int` >= 1"),
        (1, {"load": -0.5}, "line 2: load: Expected `float` >= 0"),
        (1, {"load": float("nan")}, "line 2 is not a JSON object"),
        (1, {"received_heaps": 9}, "line 2: Object contains unknown field `received_heaps`"),
    ],
)
def test_a_field_that_does_not_fit_is_an_error_with_its_line(path, line, changed, words):
    before = getattr(HEADER, next(iter(changed)), None)
    if isinstance(before, dict):
        changed = {name: before | value for name, value in changed.items()}
    change(path, line, **changed)
    with pytest.raises(RecordError, match=rf"^some\.jsonl {words}"):
        read(path)


@pytest.mark.parametrize(
    ("taken", "field", "value", "words"),
    [
        (TIMELINE, "queued_ns", [10], "of as many elements each, .*queued_ns has 1,"),
        (SPACING, "message_bytes", [1], "of as many elements each, .*message_bytes has 1"),
        (SPACING, "time_ns", [0.5] * 32, r"time_ns\[0\]: Expected `int`"),
        (SPLIT, "own", {"fill": "3"}, "own.*: Expected `int`"),
    ],
)
def test_other_lines_are_checked_as_samples_are(path, taken, field, value, words):
    add(path, taken)
    assert read(path)
    change(path, 2, **{field: value})
    with pytest.raises(RecordError, match=rf"^some\.jsonl line 3: {words}"):
        read(path)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"machines": []}, "counters are not those of 0 machines"),
        ({"switch": [{}, {}]}, "counters are not those of 1 machine"),
        ({"senders": [{"name": "", "machine": 0}] * 2}, "more programs ended than were asked for"),
        ({"receivers": [{"name": "", "machine": 1}]}, "a program ran on none of 1 machine"),
        ({"looks": None}, "measured.looks: Expected `array`, got `null`"),
        ({"asked": to_builtins(arrays.ASKED) | {"senders": 10**9}},
         "measured.asked.senders: Expected `int` <= 256"),
        ({"more": 1}, "measured: Object contains unknown field `more`"),
    ],
)  # fmt: skip
def test_a_corner_turn_that_cannot_have_been_is_an_error(path, changed, words):
    add(path, TURN)
    assert read(path).those(records.Turn) == (TURN,)
    change(path, 2, measured=lines(path)[2]["measured"] | changed)
    with pytest.raises(RecordError, match=rf"^some\.jsonl line 3: .*{re.escape(words)}"):
        read(path)


def test_a_corner_turn_is_recorded_without_folders_and_when_machines_were_booted():
    measured = arrays.account([arrays.sender(0, 9)], [arrays.receiver(0, 9, machine=1)]).measured
    measured.machines = [replace(one, clock="a-boot-id") for one in measured.machines]
    measured.senders[0].errors = "/home/someone/program: no memory"
    recorded = records.Turn.of(measured).measured
    assert [one.clock for one in recorded.machines] == ["0", "0"]
    assert recorded.senders[0].errors == "program: no memory"


# ---- What is there twice ----


@pytest.mark.parametrize(
    ("taken", "words"),
    [
        ([of_round(3)] * 2, "lines 3 and 4 of some.jsonl are both sent with .* round 3"),
        ([HEADER, SAMPLE], r"some\.jsonl line 3 is a second header"),
        ([TURN] * 2, "lines 3 and 4 of some.jsonl are both turn: two runs"),
        ([TIMELINE] * 2, "lines 3 and 4 .* are both timeline with case '5/timeline'"),
        (
            [of_round(1, failure="it failed"), of_round(1), of_round(1)],
            "lines 4 and 5 of some.jsonl are both .* round 1",
        ),
    ],
)
def test_what_is_there_twice_is_an_error_that_says_which_but_what_failed_before(path, taken, words):
    add(path, *taken)
    for unfinished in (False, True):
        with pytest.raises(RecordError, match=words):
            read(path, unfinished=unfinished)


def test_a_line_that_repeats_a_failed_one_takes_its_place_and_the_file_keeps_both(path):
    failed, good = of_round(1, failure="it failed"), of_round(1)
    spaced = make_spacing("p", False, 0)
    add(path, failed, replace(spaced, failure="it failed"), failed, good, spaced)
    assert read(path).samples == (SAMPLE, good)
    assert read(path).spacings == (spaced,)
    assert read(path).superseded == (failed, replace(spaced, failure="it failed"), failed)


# ---- One run at a time in a folder ----

HOLD = (
    "import sys; from spead_tutorial.measure.records import locked\n"
    "with locked(sys.argv[1]): print('held', flush=True); sys.stdin.read()"
)


def test_a_folder_is_one_processs_until_it_ends_however_it_does(tmp_path):
    folder = tmp_path / "made" / "for" / "it"
    argv = [sys.executable, "-P", "-c", HOLD, str(folder)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(argv, text=True, **pipes) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        words = re.escape(f"another run writes to {folder}")
        with pytest.raises(RecordError, match=words), locked(folder):
            pass
        holder.kill()
    with locked(folder):
        assert list(folder.iterdir()) == []
    with locked(folder):
        pass


def test_who_waits_for_a_folder_has_it_when_the_other_is_done(tmp_path):
    done: list[str] = []

    def second() -> None:
        with locked(tmp_path, wait=True):
            done.append("second")

    thread = threading.Thread(target=second)
    with locked(tmp_path):
        thread.start()
        thread.join(0.05)
        done.append("first")
    thread.join()
    assert done == ["first", "second"]


def test_where_folders_cannot_be_locked_one_goes_on_without(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.EBADF, "as NFS does")

    monkeypatch.setattr(records.fcntl, "flock", refuse)
    with locked(tmp_path), locked(tmp_path):
        pass

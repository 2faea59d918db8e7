# SPDX-License-Identifier: BSD-3-Clause
"""What notebooks share: the place, measuring, tables, pictures, packets, exercises."""

import base64
import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import IPython.display
import numpy as np
import pytest
from msgspec.structs import replace

from spead_tutorial import notebook, wire
from spead_tutorial.lab import LabError
from spead_tutorial.measure import case
from spead_tutorial.measure.case import WARM_UP
from spead_tutorial.measure.place import Device, Unread
from spead_tutorial.measure.records import Recording, Timeline
from spead_tutorial.notebook import Exercise, NotebookError, Run, measuring
from spead_tutorial.results import plots
from spead_tutorial.results.plots.facts import NO_DIFFERENCE
from spead_tutorial.send import PacketGenerator
from support import typed
from support.heaps import make_heap
from support.labs import needs_lab, probe
from support.records import HEADER, SAMPLE

OPENED = "The lab is open: packets go to dummy1 and nowhere else.\n"


@pytest.fixture(scope="module")
def place(lab):
    """What a notebook has where there is a lab."""
    return Device(lab)


@pytest.fixture(scope="module")
def loopback():
    """What a notebook has where there is no lab."""
    place = Unread()
    yield place
    place.close()


@pytest.fixture(autouse=True)
def unhurried(tmp_path, monkeypatch):
    """Wait for no notebook of whoever runs the tests, nor for other tests."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


everywhere = pytest.mark.parametrize("where", ["place", "loopback"])


@pytest.fixture
def shown(monkeypatch):
    """Collects what is displayed, and what is said of it."""
    found: list[tuple[object, dict[str, object]]] = []

    def display(what, *, raw=False, metadata=None):
        assert raw is isinstance(what, dict)
        found.append((what, metadata or {}))

    monkeypatch.setattr(IPython.display, "display", display)
    return found


# ---- The place ----


@pytest.fixture
def closed():
    """Have the place closed at last that a test opens."""
    yield
    notebook.close_place()


@needs_lab
def test_opening_a_lab_says_one_line_and_closes_the_first(closed, capsys):
    first = notebook.open_place(loopback=False)
    assert capsys.readouterr().out == OPENED
    assert first.is_lab
    assert (first.address, first.port, first.mtu) == ("192.168.31.2", 8888, 9216)
    lab = first.lab
    second = notebook.open_place(loopback=True)
    assert not second.is_lab
    assert repr(lab).endswith("closed>")


@everywhere
def test_programs_run_in_the_place_and_what_is_sent_is_counted_also_before_a_failure(
    where, request
):
    one = request.getfixturevalue(where)
    to = one.address, one.port
    with one.socket() as sock:
        sock.sendto(bytes(70), to)
        with contextlib.suppress(ZeroDivisionError), one.watching() as seen:
            sock.sendto(bytes(100), to)
            raise ZeroDivisionError
        assert (seen.packets, seen.bytes) == (1, 142)
    devices = one.run(["cat", "/proc/net/dev"], capture_output=True, text=True).stdout
    assert ("dummy1" in devices, "lo:" in devices) == (where == "place", True)


def test_where_there_can_be_no_lab_it_says_why_and_takes_loopback(monkeypatch, closed, capsys):
    def no_lab(*, receiver: bool) -> None:
        raise LabError("it is forbidden here: allow it")

    monkeypatch.setattr(measuring, "Lab", no_lab)
    place = notebook.open_place(loopback=False)
    said = capsys.readouterr().out
    assert "There is no lab here: it is forbidden here: allow it." in said
    assert "spead-tutorial doctor" in said
    assert "what they show is marked" in said
    assert (place.is_lab, place.lab, place.kind) == (False, None, "loopback, no lab")


@everywhere
def test_without_a_second_machine_it_receives_by_loopback_and_loses_nothing(where, request):
    one = request.getfixturevalue(where)
    assert not one.has_receiver
    with one.losing(1.0), one.receiving_socket(1 << 16) as receiver, one.socket() as sock:
        assert receiver.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 2 << 16
        receiver.settimeout(10)
        sock.sendto(b"here", receiver.getsockname())
        assert receiver.recv(10) == b"here"


@pytest.mark.skipif("veth" not in probe().kinds, reason="the kernel has no veth: modprobe veth")
def test_a_lab_may_have_a_second_machine_and_packets_may_be_lost_on_the_way(closed):
    place = notebook.open_place(loopback=False, receiver=True)
    assert place.has_receiver
    with place.receiving_socket(1 << 16) as receiver, place.socket() as sock:
        with place.losing(1.0):
            sock.sendto(b"lost", receiver.getsockname())
        sock.sendto(b"here", receiver.getsockname())
        receiver.settimeout(10)
        assert receiver.recv(10) == b"here"


# ---- Runs ----


@pytest.mark.parametrize(
    ("what", "how", "words"),
    [
        (["6"], {"heap_size": 1 << 20}, "no option -H"),
        (["7"], {}, "chapter 7 receives"),
        (["6", "rust"], {}, "no language"),
        (["6"], {"listener": "deaf"}, "no listener"),
    ],
)
def test_a_run_is_refused_at_once_where_its_program_does_not_take_it(what, how, words):
    with pytest.raises(ValueError, match=words):
        Run(*what, **how)


def test_quick_mode_sends_an_eighth_but_at_least_two_heaps(monkeypatch):
    monkeypatch.setattr(measuring, "QUICK", True)
    assert [notebook.heaps(n) for n in (800, 8, 1)] == [100, 2, 2]
    assert Run("8").case.heaps == 1250
    assert Run("8", heaps=50).case.heaps == 50
    monkeypatch.setattr(measuring, "QUICK", False)
    assert notebook.heaps(800) == 800
    assert Run("8").case.heaps == 10000


@pytest.mark.parametrize(("value", "said"), [("1", "True 2 False"), ("0", "False 3 False")])
def test_quick_mode_is_asked_for_in_the_environment_and_nothing_of_the_extras_is_taken(value, said):
    code = (
        "import sys, spead_tutorial.tools.cli, spead_tutorial.tools.notebooks;"
        "from spead_tutorial import notebook as n;"
        "print(n.QUICK, n.ROUNDS, n.LOOPBACK);"
        "print([n for n in ('IPython', 'pandas', 'matplotlib', 'jupytext') if n in sys.modules])"
    )
    done = typed.run(sys.executable, "-P", "-c", code, env={"SPEAD_TUTORIAL_QUICK": value})
    assert (done.stdout, done.stderr) == (f"{said}\n[]\n", "")


# ---- Measuring ----

BEFORE = Run("8", heaps=40, heap_size=8192)
AFTER = Run("8", "c", heaps=40, heap_size=8192)


@pytest.mark.parametrize("where", ["loopback", pytest.param("place", marks=pytest.mark.thorough)])
def test_measuring_takes_every_run_once_in_each_round_after_a_warm_up(where, request):
    place = request.getfixturevalue(where)
    recording = notebook.measure(place, [BEFORE, AFTER], 2, timelines=[IN_TURNS])
    assert recording.timelines == (IN_TURNS,)
    warm_ups = [one for one in recording.samples if one.warm_up]
    assert [one.heaps for one in warm_ups] == [40 // WARM_UP] * 2
    for run in (BEFORE, AFTER):
        found = [(one.round, one.heaps, one.failure) for one in notebook.samples(recording, run)]
        assert found == [(0, 40, None), (1, 40, None)]
        assert notebook.rate(recording, run) > 0
    gain = notebook.gain(recording, BEFORE, AFTER)
    assert (gain.n, gain.low <= gain.median <= gain.high) == (2, True)
    assert notebook.gain(recording, AFTER, AFTER).median == 1
    assert recording.header.settings["drawn_by"] == "spead_tutorial.notebook"

    table = notebook.table(recording)
    assert list(table["language"]) == ["python", "c"]
    assert list(table["heap"]) == [8192, 8192]
    marked = where == "loopback"
    assert (table.columns.name == "measured over loopback") is marked


@pytest.mark.parametrize("where", ["place", pytest.param("loopback", marks=pytest.mark.thorough)])
def test_listeners_are_there_with_and_without_a_lab(where, request):
    # These are called what the picture of loopback calls them.
    runs = [Run("6", "c", heaps=2, listener=one) for one in ("none", "fast", "slow")]
    recording = notebook.measure(request.getfixturevalue(where), runs, 1)
    seen = {one.variant: one.received_packets is not None for one in recording.samples}
    assert seen == {"no listener": False, "listener": True, "slow listener": True}


def test_a_failing_send_raises_one_line_also_on_a_machine_called_python(place, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "python")
    with pytest.raises(NotebookError) as raised:
        notebook.measure(place, [Run("8", heaps=8, packet_size=70000)], 1)
    (line,) = raised.value._render_traceback_()
    assert line.startswith("NotebookError: tut_8_send_reuse_memory (python) -n 8 -p 70000: ")
    assert "\n" not in line


def test_an_interrupted_measurement_is_kept_and_goes_on_where_it_stopped(loopback, monkeypatch):
    taken = []

    def take(place: object, step: case.Step, timeout: float) -> object:
        taken.append(step.key)
        if len(taken) == 4:
            raise KeyboardInterrupt
        return replace(SAMPLE, case=step.case.name, round=step.number, warm_up=step.warm_up)

    monkeypatch.setattr(measuring, "take", take)
    with pytest.raises(notebook.StoppedError) as raised:
        notebook.measure(loopback, [BEFORE, AFTER], 2)
    (line,) = raised.value._render_traceback_()
    assert line.startswith("Stopped after 3 of 6; what was measured is kept: run the cell again")
    recording = notebook.measure(loopback, [BEFORE, AFTER], 2)
    assert taken[3] == taken[4]
    assert len(taken) == 7
    assert {(one.case, one.round, one.warm_up) for one in recording.samples} == {*taken}
    notebook.measure(loopback, [BEFORE, AFTER], 2)  # what has been measured whole is not kept
    assert len(taken) == 7 + 6


def test_another_measurement_goes_on_with_nothing_of_one_that_was_stopped(loopback, monkeypatch):
    def take(place: object, step: case.Step, timeout: float) -> object:
        if step.number == 1 and rounds == 2:
            raise KeyboardInterrupt
        return replace(SAMPLE, case=step.case.name, round=step.number, warm_up=step.warm_up)

    monkeypatch.setattr(measuring, "take", take)
    rounds = 2
    with pytest.raises(notebook.StoppedError, match="after 2 of 3"):
        notebook.measure(loopback, [BEFORE], rounds)
    rounds = 3
    assert len(notebook.measure(loopback, [BEFORE], rounds).samples) == 4


def test_a_watched_program_that_is_interrupted_says_so_in_a_line(loopback, monkeypatch):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(measuring, "record_timeline", interrupt)
    with pytest.raises(notebook.StoppedError, match=r"^Stopped: "):
        notebook.watch(loopback, pipelined=True, random=False)


# ---- Turns ----

MEASURES = """
import sys
from spead_tutorial.notebook.turns import turn
with turn():
    print("measures", flush=True)
    sys.stdin.readline()
"""


@contextlib.contextmanager
def kernel(name: str, folder: Path):
    """Run a process that measures as a notebook's kernel does, until it is told to end."""
    env = os.environ | {"JPY_SESSION_NAME": f"/there/{name}.ipynb", "XDG_RUNTIME_DIR": str(folder)}
    env.pop("PYTHONUNBUFFERED", None)  # what it says has to come at once all the same
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-P", "-c", MEASURES], env=env, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("end", ["is done", "is killed"])
def test_notebooks_take_turns_and_say_whom_they_wait_for(tmp_path, end):
    with kernel("04_one", tmp_path) as first:
        assert first.stdout.readline() == "measures\n"
        with kernel("05_two", tmp_path) as second:
            assert second.stdout.readline().startswith("Waiting for 04_one, which measures")
            assert not select.select([second.stdout], [], [], 0)[0]
            if end == "is done":
                first.communicate("\n")
            else:
                first.kill()
            assert second.stdout.readline() == "measures\n"


def test_a_notebook_that_waits_for_its_turn_can_be_interrupted(tmp_path):
    with kernel("04_one", tmp_path) as first:
        assert first.stdout.readline() == "measures\n"
        with kernel("05_two", tmp_path) as second:
            assert second.stdout.readline().startswith("Waiting")
            second.send_signal(signal.SIGINT)
            assert second.wait(60) == -signal.SIGINT


def test_where_nothing_can_be_locked_no_notebook_waits(tmp_path):
    (tmp_path / f"spead-tutorial-{os.getuid()}-measures").mkdir()
    with kernel("04_one", tmp_path) as first, kernel("05_two", tmp_path) as second:
        assert {one.stdout.readline() for one in (first, second)} == {"measures\n"}


def test_no_run_is_measured_twice_and_what_was_not_measured_has_no_rate(loopback):
    with pytest.raises(ValueError, match="is there twice: give them different variants"):
        notebook.measure(loopback, [Run("8"), Run("8", environment={"A": "1"})])
    with pytest.raises(NotebookError, match="was not measured"):
        notebook.rate(Recording(HEADER, (SAMPLE,)), Run("11"))


def test_counts_of_a_run_are_added_and_of_its_rounds_the_median_is_taken():
    run = Run("8", heaps=10)
    one = replace(SAMPLE, case=run.case.name, heaps=10, messages=5)
    faults = enumerate((70, 30, 40))
    rounds = [replace(one, round=i, page_faults=n) for i, n in faults]
    recording = Recording(HEADER, tuple(rounds))
    assert notebook.per_heap(recording, run, "page_faults") == 4
    assert notebook.per_heap(recording, run, "page_faults", "messages") == 4.5


def test_gains_are_a_table_with_what_a_heap_took_before_and_after():
    before, after = Run("8"), Run("10")
    slow, fast = (
        replace(SAMPLE, case=run.case.name, elapsed_ns=ns, heaps=2, messages=n)
        for run, ns, n in ((before, 2000, 4), (after, 1000, 1))
    )
    found = notebook.gains(
        Recording(HEADER, (slow, fast)), {"a step": (before, after)}, messages_a_heap="messages"
    )
    assert found.loc["a step", "times as fast"] == "2.00"
    assert found.loc["a step", "messages a heap"] == "2 → 0.5"


def test_a_stream_that_a_cell_opens_sends_to_the_place_and_is_closed(place):
    heap = notebook.make_heap(4096)
    with place.watching() as seen, notebook.open_stream(place, thread=False) as stream:
        stream.send_heap(heap)
    assert seen.packets == stream.stats.messages
    with pytest.raises(RuntimeError):
        stream.send_heap(heap)


def test_an_environment_reaches_the_program(place, monkeypatch):
    seen = []
    run_program = case.run

    def spy(*what, **how):
        seen.append(how["environment"])
        return run_program(*what, **how)

    monkeypatch.setattr(case, "run", spy)
    notebook.measure(place, [Run("8", "c", heaps=2, environment={"A": "1"}, variant="A")], 1)
    assert seen == [{"A": "1"}] * 2


def test_progress_is_shown_where_somebody_looks_and_leaves_nothing(loopback, monkeypatch, capsys):
    def take(place: object, step: case.Step, timeout: float) -> object:
        return replace(SAMPLE, case=step.case.name, round=step.number, warm_up=step.warm_up)

    monkeypatch.setattr(measuring, "take", take)
    notebook.measure(loopback, [Run("8")], 1)
    assert "measuring" not in capsys.readouterr().out
    monkeypatch.setattr(measuring, "live", lambda: True)
    notebook.measure(loopback, [Run("8")], 1)
    out = capsys.readouterr().out
    assert "\rmeasuring, 2 of 2: tut_8_send_reuse_memory (python)" in out
    assert "\n" not in out
    assert out.endswith(" \r")


def test_a_timeline_is_watched(place):
    one = notebook.watch(place, pipelined=True, random=False, heaps=4, heap_size=4096)
    assert len(one.prepare_ns) == 4


# ---- What came of it ----


ELSEWHERE = replace(HEADER, lab={"kind": "loopback, no lab", "mtu": 65536})


def test_a_picture_is_shown_in_two_kinds_with_words_and_marked_where_there_is_no_lab(shown):
    # Front ends show no SVG of a notebook that they have no reason to trust.
    recording = Recording(replace(HEADER, settings={"drawn_by": "somebody"}), (SAMPLE,))
    notebook.picture(plots.ladder, recording)
    notebook.picture(plots.ladder, Recording(ELSEWHERE, (SAMPLE,)))
    (kinds, said), (marked, _) = shown
    picture = plots.ladder(recording)
    svg, png = plots.render_both(picture, plots.LIGHT)
    assert kinds == {
        "image/svg+xml": svg.decode(),
        "image/png": base64.b64encode(png).decode(),
        "text/plain": picture.name,
    }
    assert said == {key: {"alt": picture.name} for key in ("image/svg+xml", "image/png")}
    assert "drawn by: somebody" in kinds["image/svg+xml"]
    assert "measured over loopback" in marked["image/svg+xml"]
    assert "measured over loopback" not in kinds["image/svg+xml"]
    assert marked["image/png"] != kinds["image/png"]


def test_a_picture_that_finds_no_difference_says_what_to_try(shown, capsys, monkeypatch):
    monkeypatch.setattr(plots, "render_both", lambda *_: (b"<svg/>", b""))
    for title in ("A: 2 times", f"A: {NO_DIFFERENCE}"):
        notebook.picture(
            notebook.draw_parts(title, {"one": {"send": 1.0}}), Recording(HEADER, (SAMPLE,))
        )
        said = capsys.readouterr().out
        assert ("rounds=9" in said) is (NO_DIFFERENCE in title)


def test_bars_of_parts_are_drawn_with_their_sums_and_told_in_words(shown):
    draw = notebook.draw_parts("A", {"one": {"wait": 1.5, "send": 2.0}, "two": {"send": 1.0}})
    notebook.picture(draw, Recording(HEADER, (SAMPLE,)))
    assert "one: wait 1.50, send 2.00. two: send 1.00." in shown[0][0]["image/svg+xml"]


def test_a_packet_is_a_table_that_says_without_colours_what_it_says_with_them(shown):
    (data,) = PacketGenerator(make_heap(40), 1, 1472)
    notebook.packet(data, names={0x3300: "<samples>"}, title="A & B")
    ((table, _),) = shown
    text, page = repr(table), table._repr_html_()
    fields = wire.dissect(data, names={0x3300: "<samples>"})
    assert text == f"A & B\n{wire.format_table(fields)}"
    assert "A &amp; B" in page
    assert "&lt;samples&gt;" in page
    assert "<samples>" not in page
    assert page.count("<tr>") - 1 == len(fields)
    for part in (">header</td>", ">pointer</td>", ">value</td>", "(40 bytes)"):
        assert part in page
    packets = list(PacketGenerator(make_heap(4000), 1, 1472))
    notebook.packet(wire.dissect_heap(packets)[1])
    assert repr(shown[1][0]).startswith(f"A packet of {len(packets[1])} bytes\n")
    notebook.packet(data + b"more")
    assert ">surplus</td>" in shown[2][0]._repr_html_()


# ---- Exercises ----


RIGHT, NOT_YET = "Right.\n", "Not yet: think of headers\n"


@pytest.mark.parametrize(
    ("right", "given", "said"),
    [
        (42, None, "Not answered yet: give check() your answer, or call reveal().\n"),
        *((42, one, RIGHT) for one in (42, 42.0, np.int64(42), "42,0")),
        *((42, one, NOT_YET) for one in (43, "forty-two")),
        *(("C", one, said) for one, said in ((" c", RIGHT), (1, NOT_YET))),
        *(((1, 2), one, said) for one, said in (([1, 2], RIGHT), ([1], NOT_YET))),
        *((1.5, one, said) for one, said in ((1.59, RIGHT), (1.61, NOT_YET))),
        (b"a", b"a", RIGHT),
        (True, True, RIGHT),
        (lambda: 42, 42, RIGHT),
    ],
)
def test_an_answer_is_checked(right, given, said, capsys):
    near = {"tolerance": 0.1} if right == 1.5 else {}
    Exercise("?", right, hint="think of headers", **near).check(given)
    assert capsys.readouterr().out == said


@pytest.mark.parametrize(
    ("right", "given", "is_right"),
    [
        ((32, 2), (32, 2), True),
        ((32, 2), (32, 3), False),
        ((32, 2), ((32, 2),), True),
        ([2, 3, 2], (2, 3, 2), True),
        (1638, (1, 638), True),
        (1638, ("1,638",), True),
        (1638.4, (1, 638.4), True),
        (8192, (8, 19), False),
        (1.25, (1, 25), True),
        (125, (1, 25), False),
    ],
)
def test_several_numbers_and_commas_are_understood(right, given, is_right, capsys):
    Exercise("?", right, explanation="So it is.").check(*given)
    assert capsys.readouterr().out == (
        "Right. So it is.\n" if is_right else "Not yet: think again\n"
    )


def test_the_answer_is_hidden_until_it_is_asked_for(capsys):
    exercise = Exercise("How many?", lambda: 42, explanation="One for each.")
    assert "42" not in repr(exercise) + exercise._repr_markdown_()
    exercise.reveal()
    assert capsys.readouterr().out == "The answer is 42. One for each.\n"
    Exercise("?", 1).check(2)
    assert capsys.readouterr().out == "Not yet: think again\n"


def test_a_program_is_checked_as_by_the_command(tmp_path, capsys):
    notebook.check(8, "--skeleton")
    skeleton = capsys.readouterr().out
    assert "# TODO" in skeleton
    program = tmp_path / "my_sender.py"
    program.write_text("print('hm')\n")
    notebook.check(8, str(program), "--no-measure")
    said = capsys.readouterr().out
    assert said.startswith(
        "spead-tutorial: heap 1 is missing" if probe().reason is None else "spead-tutorial: "
    )
    assert said.count("\n") == 1


# ---- Overlap ----


def ran(prepare: tuple[int, ...], sent: tuple[int, ...]) -> Timeline:
    """A run whose heaps take 1 ms to prepare, and 3 ms to send."""
    at = {"prepare_ns": prepare, "queued_ns": tuple(one + 10**6 for one in prepare)}
    at |= {"first_packet_ns": tuple(one - 3 * 10**6 for one in sent), "last_packet_ns": sent}
    at |= {"completed_ns": sent, "resumed_ns": sent}
    return Timeline("", "tut_5_send_pipeline", "python", False, 1, 1472, **at)


IN_TURNS = ran((0, 4 * 10**6, 8 * 10**6), (4 * 10**6, 8 * 10**6, 12 * 10**6))
OVERLAPPED = ran((0, 10**6, 4 * 10**6), (4 * 10**6, 7 * 10**6, 10 * 10**6))


def test_the_model_says_what_overlapping_gains_and_the_runs_what_it_did(capsys):
    notebook.predict_overlap(IN_TURNS, OVERLAPPED)
    assert capsys.readouterr().out == (
        "Preparing takes 1.00 ms, and sending 3.00 ms.\n"
        "By the model, overlapped is 1.33 times as fast. It became 2.00 times as fast.\n"
    )
    # Heaps overlap that are sent while the next is begun.
    assert [notebook.overlapping(one) for one in (IN_TURNS, OVERLAPPED)] == [0, 2]
    table = notebook.time_shares(in_turns=IN_TURNS, overlapped=OVERLAPPED)
    assert list(table.index) == ["in turns", "overlapped"]
    assert list(table["from heap to heap, ms"]) == ["4.00", "2.00"]
    assert list(table["sending, ms"]) == ["3.00", "3.00"]


def test_two_programs_are_drawn_by_the_size_of_heaps_with_what_is_gained():
    drawn = notebook.by_heap_size("A", "heap-sizes", batches="11", a_call_for_each="10")
    assert (drawn.finding, drawn.names) == ("A make", ("a call for each", "batches"))
    programs = [(one.before.program, one.after.program) for one in drawn.pairs]
    assert programs == [("tut_10_send_reuse_heaps", "tut_11_send_batch_heaps")] * 2

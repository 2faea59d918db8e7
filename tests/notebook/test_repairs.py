# SPDX-License-Identifier: BSD-3-Clause
"""Senders that readers repair: what is said of those with a fault, of repaired ones, of cheats."""

import ast
import signal
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest

from spead_tutorial import notebook, notebook_run
from spead_tutorial.notebook import NotebookError, Repair, trials
from support import ROOT

FOLDER = ROOT / "notebooks"
HEADING = "### Repair a sender"
SENDER = """
import asyncio, os, time
import numpy as np
from spead_tutorial import notebook

async def send(stream, heap_size, n_heaps):
    group = notebook.make_group(heap_size)
    futures = []
    for i in range(n_heaps):
        group["timestamp"].value = i
        group["adc_samples"].value = np.full(heap_size, i, np.int8)
        futures.append(stream.async_send_heap(group.get_heap()))
        if i > 0:
            await futures[i - 1]
    await futures[-1]
"""


@pytest.fixture
def place(make_lab, capsys):
    """A lab that a notebook has opened."""
    make_lab().close()  # skips where there can be none
    yield notebook.open_place(loopback=False)
    notebook.close_place()


@pytest.fixture
def repair(place) -> Repair:
    """An exercise."""
    return Repair(place, "?", "pass")


def define(code: str, names: dict[str, Any] | None = None) -> Any:
    """Return the sender that code defines, as a cell of a notebook does."""
    names = {"__name__": "__main__"} if names is None else names
    exec(compile(textwrap.dedent(code), "<cell>", "exec"), names)
    return names["send"]


def said(repair: Repair, send: Any, capsys: Any) -> str:
    """Return what is said of a sender."""
    capsys.readouterr()
    repair.check(send)
    text: str = capsys.readouterr().out
    return text


# ---- Those of the notebooks ----


def defines(source: str) -> bool:
    """Say whether a cell only imports and defines something."""
    kinds = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return all(isinstance(one, kinds) for one in ast.parse(source).body)


def exercises(name: str, place: Any) -> Iterator[tuple[Repair, Any, dict[str, Any]]]:
    """Yield each exercise of a notebook, the sender that is there, and what else there is."""
    names: dict[str, Any] = {"__name__": "__main__", "place": place}
    begun = False
    for cell in notebook_run.read(FOLDER / f"{name}.md").cells:
        if cell.cell_type == "markdown":
            begun = begun or HEADING in cell.source
        elif ".check(send)" in cell.source:
            code = cell.source.partition("\n\n\n")[0]
            repair = [one for one in names.values() if isinstance(one, Repair)][-1]
            yield repair, define(code, names), names
        elif begun:
            exec(cell.source, names)
        else:
            source = cell.source.replace("place = notebook.open_place()", "")
            exec(source if defines(source) else "", names)


FAULTS = {
    "05_send_while_preparing": [
        "WRONG  heaps in flight: 1;",
        "WRONG  samples: heaps are spoilt, such as heap",
    ],
    "08_reuse_memory": ["WRONG  memory: for 10 heaps of 64 MiB, that of 10"],
    "11_batches_of_heaps": ["WRONG  calls: 100 for 100 heaps; 8 are enough"],
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_notebooks_sender_is_found_faulty_and_its_solution_right(name, place, capsys):
    faults = []
    for repair, faulty, names in exercises(name, place):
        text = said(repair, faulty, capsys)
        faults += [line for line in text.splitlines() if line.startswith("WRONG")]
        assert text.endswith("wrong.\n")
        repair.reveal()
        solution = capsys.readouterr().out.removesuffix(f"\n{repair.explanation}\n")
        text = said(repair, define(solution, names), capsys)
        assert "WRONG" not in text
        assert text.endswith("Repaired.\n")
    assert len(faults) == len(FAULTS[name])
    for line, begins in zip(faults, FAULTS[name], strict=True):
        assert line.startswith(begins)


# ---- Any others ----


def test_no_answer_is_no_failure(repair, capsys):
    assert said(repair, None, capsys) == "Not answered yet.\n"


def test_a_sender_without_fault_is_right_and_is_told_so(repair, capsys):
    assert said(repair, define(SENDER), capsys) == (
        "right  samples: all 20 heaps arrived, and are what they should be\n"
        "right  heaps in flight: at least 2, one on its way and one that is ready\n"
        "Repaired.\n"
    )


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("    futures = []", "    return"), "samples: 0 of 20 heaps arrived"),
        (
            ("range(n_heaps)", "range(n_heaps - 1)"),
            "samples: 19 of 20 heaps arrived; the first that is missing is heap 19",
        ),
        (("range(n_heaps)", "range(n_heaps + 1)"), "samples: 21 heaps arrived: each of 20"),
        (("value = i", "value = n_heaps - 1 - i"), "20 heaps arrived: each of 20 is to come once"),
        (("(heap_size, i,", "(heap_size, 7,"), "such as heap 1, which has samples 7"),
        (
            ("for i", "heap_size -= 8\n    group = notebook.make_group(heap_size)\n    for i"),
            "0 of",
        ),
        (("    await futures[-1]", ""), "futures: 1 not done at the end; await them"),
        (("if i > 0", "if i > n_heaps"), "sender: BlockingIOError: [Errno 11] the queue is full"),
        (
            ("        if i > 0", "        if i == 3:\n            1 / 0\n        if i > 0"),
            "sender: ZeroDivisionError: division by zero (line 14 of its cell)",
        ),
        (("    futures = []", "    stream.no()"), "AttributeError: 'UdpStream' object has no"),
        (("    futures = []", "    await asyncio.Event().wait()"), "sender: it did not end within"),
        (("    futures = []", "    while True: pass"), "sender: it did not end within"),
        (("    futures = []", "    time.sleep(1000)"), "sender: it did not end within"),
        (("    futures = []", "    os._exit(3)"), "sender: its process ended with status 3"),
        (("    futures = []", "    os.abort()"), "sender: its process was ended by SIGABRT"),
    ],
)
def test_what_is_wrong_with_a_sender_is_said(change, fault, repair, capsys, monkeypatch):
    monkeypatch.setattr(trials, "_LIMIT_S", 3)
    assert change[0] in SENDER
    text = said(repair, define(SENDER.replace(*change)), capsys)
    assert any(line.startswith("WRONG") and fault in line for line in text.splitlines()), text
    assert "Repaired." not in text
    assert text.count("\n") <= 4


def test_too_few_large_heaps_are_no_way_to_save_memory(place, capsys):
    few = SENDER.replace("range(n_heaps)", "range(min(n_heaps, 20) if heap_size < 1 << 20 else 2)")
    text = said(Repair(place, "?", "pass", new_memory=3), define(few), capsys)
    assert "WRONG  large heaps: 2 were sent, not 10\n" in text


def test_a_plain_function_can_send_too_and_what_it_prints_is_shown(repair, capsys):
    text = said(repair, define("def send(stream, heap_size, n_heaps):\n    print('hm')"), capsys)
    assert text.startswith("hm\nWRONG  samples: 0 of 20")


def test_after_a_sender_that_was_ended_the_lab_is_as_it_was(place, capsys, monkeypatch):
    monkeypatch.setattr(trials, "_LIMIT_S", 1)
    lab = place.lab
    said(Repair(place, "?", "pass"), define("def send(*_):\n    while True: pass"), capsys)
    assert place.lab is lab
    trial = notebook.try_sender(place, define(SENDER), heap_size=8192, n_heaps=4)
    assert (trial.failure, trial.heaps, trial.calls, trial.arrived) == (None, 4, 4, None)


def test_ctrl_c_ends_a_sender_and_leaves_the_lab(place, monkeypatch, capsys):
    run = place.run

    def run_and_interrupt(*what: Any, **how: Any) -> Any:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        return run(*what, **how)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(place, "run", run_and_interrupt)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            said(Repair(place, "?", "pass"), define("def send(*_):\n    while True: pass"), capsys)
    finally:
        signal.signal(signal.SIGALRM, before)
    monkeypatch.undo()
    trial = notebook.try_sender(place, define(SENDER), heap_size=8192, n_heaps=4)
    assert trial.heaps == 4


def test_a_sender_that_cannot_go_into_a_process_is_refused_with_one_line(place):
    code = "import threading\nlock = threading.Lock()\ndef send(*_):\n    return lock"
    with pytest.raises(NotebookError, match="make it inside of the function"):
        notebook.try_sender(place, define(code), heap_size=8192, n_heaps=4)


def test_what_others_sent_meanwhile_is_noticed(place, monkeypatch):
    run = place.run

    def run_and_send(*what: Any, **how: Any) -> Any:
        with place.socket() as sock:
            sock.sendto(b"stray", (place.address, place.port))
        return run(*what, **how)

    monkeypatch.setattr(place, "run", run_and_send)
    with pytest.raises(NotebookError, match="the device counted 2 messages, and the stream 1"):
        notebook.try_sender(place, define(SENDER), heap_size=1024, n_heaps=1)


def test_a_sender_can_be_tried_without_a_lab(capsys):
    place = notebook.open_place(loopback=True)
    repair = Repair(place, "?", "pass")
    assert said(repair, define(SENDER), capsys).endswith("Repaired.\n")
    notebook.close_place()

# SPDX-License-Identifier: BSD-3-Clause
"""Senders that readers repair: what is said of those with a fault, of repaired ones, of cheats."""

import ast
import asyncio
import base64
import json
import pickle
import subprocess
import textwrap
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from spead_tutorial import notebook
from spead_tutorial.measure.place import Place, Unread
from spead_tutorial.notebook import NotebookError, Repair, trials
from spead_tutorial.tools import notebooks
from support import ROOT
from support.labs import open_lab

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


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """A lab that a notebook has opened."""
    open_lab().close()  # skips where there can be none
    yield notebook.open_place(loopback=False)
    notebook.close_place()


@pytest.fixture(scope="module")
def loopback() -> Iterator[Place]:
    """What a notebook has where there is no lab."""
    place = Unread()
    yield place
    place.close()


@pytest.fixture
def tried_here(loopback, monkeypatch) -> Place:
    """A place where senders that end are tried in this process."""

    def run(argv: list[str], input: str, **how: Any) -> subprocess.CompletedProcess[str]:
        try:
            done = asyncio.run(trials._send(pickle.loads(base64.b64decode(input))))
        except Exception:
            return subprocess.CompletedProcess(argv, 1, "", traceback.format_exc())
        return subprocess.CompletedProcess(argv, 0, json.dumps(done), "")

    monkeypatch.setattr(loopback, "run", run)
    return loopback


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


def exercises(name: str, place: Any) -> Iterator[tuple[Repair, dict[str, Any]]]:
    """Yield each exercise of a notebook, and what else there is."""
    names: dict[str, Any] = {"__name__": "__main__", "place": place}
    begun = False
    for cell in notebooks.read(FOLDER / f"{name}.md").cells:
        if cell.cell_type == "markdown":
            begun = begun or HEADING in cell.source
        elif ".check(send)" in cell.source:
            exec(cell.source.partition("\n\n\n")[0], names)
            yield [one for one in names.values() if isinstance(one, Repair)][-1], names
        elif begun:
            exec(cell.source, names)
        else:
            source = cell.source.replace("place = notebook.open_place()", "")
            exec(source if defines(source) else "", names)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "number"),
    [("05_send_while_preparing", 2), ("08_reuse_memory", 1), ("11_batches_of_heaps", 1)],
)
def test_a_notebooks_solution_is_right(name, number, place, capsys):
    """What is said of its faulty sender is stored in the notebook, and compared when it is run."""
    for repair, names in exercises(name, place):
        number -= 1
        repair.reveal()
        solution = capsys.readouterr().out.removesuffix(f"\n{repair.explanation}\n")
        text = said(repair, define(solution, names), capsys)
        assert "WRONG" not in text
        assert text.endswith("Repaired.\n")
    assert number == 0


# ---- Any others ----


def test_no_answer_is_no_failure(loopback, capsys):
    said_of_none = said(Repair(loopback, "?", "pass"), None, capsys)
    assert said_of_none.startswith("Not answered yet: ")


def test_a_sender_without_fault_is_right_and_is_told_so(place, capsys):
    assert said(Repair(place, "?", "pass"), define(SENDER), capsys) == (
        "right  samples: all 20 heaps arrived, and are what they should be\n"
        "right  heaps in flight: at least 2, one on its way and one that is ready\n"
        "Repaired.\n"
    )


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("    futures = []", "    return"), "samples: heap 1 is missing: expected 20 heaps"),
        (("(heap_size, i,", "(heap_size, 7,"), "heap 1, packet 1, sample 0: expected 0, found 7"),
        (("    await futures[-1]", ""), "futures: 1 not done at the end; await them"),
        (("futures[i - 1]", "futures[i]"), "heaps in flight: 1; there should be 2"),
        (("if i > 0", "if i > n_heaps"), "sender: BlockingIOError: [Errno 11] the queue is full"),
        (
            ("        if i > 0", "        1 / (i - 3)\n        if i > 0"),
            "sender: ZeroDivisionError: division by zero (line 13)",
        ),
        (("    futures = []", "    stream.no()"), "AttributeError: 'UdpStream' object has no"),
    ],
)
def test_what_is_wrong_with_a_sender_is_said(change, fault, tried_here, capsys):
    finds(tried_here, change, fault, capsys)


def finds(place, change, fault, capsys) -> None:
    assert change[0] in SENDER
    send = define(SENDER.replace(*change))
    text = said(Repair(place, "?", "pass", calls_per_heap=1), send, capsys)
    assert any(line.startswith("WRONG") and fault in line for line in text.splitlines()), text
    assert "Repaired." not in text
    assert text.count("\n") <= 5


@pytest.mark.parametrize(
    ("does", "fault"),
    [
        ("while True: pass", "sender: it did not end within"),
        ("os._exit(3)", "sender: it ended with status 3"),
    ],
)
def test_a_sender_that_never_ends_or_ends_its_process_is_found(
    does, fault, loopback, capsys, monkeypatch
):
    monkeypatch.setattr(trials, "_LIMIT_S", 1)
    finds(loopback, ("    futures = []", f"    {does}"), fault, capsys)


TOUCHED = "memory: for 10 heaps of 64 MiB, that of 3 was touched for the first time"


@pytest.mark.parametrize(
    ("limits", "line"),
    [
        ({"calls_per_heap": 1 / 20}, "WRONG  calls: 20 for 20 heaps; 1 are enough\n"),
        ({"calls_per_heap": 1}, "right  calls: 20 for 20 heaps\n"),
        ({"new_memory": 3}, f"right  {TOUCHED}\n"),
        ({"new_memory": 2}, f"WRONG  {TOUCHED}; that of 2 is enough\n"),
        ({"new_memory": 3, "n_heaps": 9}, "WRONG  large heaps: 9 were sent, not 10\n"),
    ],
)
def test_calls_and_memory_may_be_as_much_as_the_exercise_says(
    tried_here, capsys, monkeypatch, limits, line
):
    large = limits.pop("n_heaps", 10)
    try_sender = trials.try_sender

    def try_with_faults(*what: Any, **how: Any) -> trials.Trial:
        if how["heap_size"] < 1 << 20:
            return try_sender(*what, **how)
        counts = dict.fromkeys(("calls", "in_flight", "unfinished", "elapsed_ns"), 0)
        counts |= {"page_faults": 3 * (64 << 20) // 4096, "page_size": 4096, "heaps": large}
        return trials.Trial(None, **counts, packets=0, messages=0, send_calls=0)

    monkeypatch.setattr("spead_tutorial.notebook.exercises.try_sender", try_with_faults)
    assert line in said(Repair(tried_here, "?", "pass", **limits), define(SENDER), capsys)


def test_a_plain_function_can_send_too_and_what_it_prints_is_shown(loopback, capsys):
    send = define("def send(stream, heap_size, n_heaps):\n    print('hm')")
    text = said(Repair(loopback, "?", "pass"), send, capsys)
    assert text.startswith("hm\nWRONG  samples: heap 1 is missing")


def test_a_sender_that_cannot_go_into_a_process_is_refused_with_one_line(loopback):
    code = "import threading\nlock = threading.Lock()\ndef send(*_):\n    return lock"
    with pytest.raises(NotebookError, match="make it inside of the function"):
        notebook.try_sender(loopback, define(code), heap_size=8192, n_heaps=4)


def test_what_others_sent_meanwhile_is_noticed(place, monkeypatch):
    run = place.run

    def run_and_send(*what: Any, **how: Any) -> Any:
        with place.socket() as sock:
            sock.sendto(b"stray", (place.address, place.port))
        return run(*what, **how)

    monkeypatch.setattr(place, "run", run_and_send)
    with pytest.raises(NotebookError, match="of 1 message 1 is too many between the stream"):
        notebook.try_sender(place, define(SENDER), heap_size=1024, n_heaps=1)

# SPDX-License-Identifier: BSD-3-Clause
"""The command line: what every command does; what it refuses is in `test_refused`."""

import importlib.util
import json
import os
import re
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from spead_tutorial.chapters.catalogue import ARRAY, CHAPTERS, RECEIVERS, STEPS
from spead_tutorial.results import tables
from spead_tutorial.tools.cli import _SECTIONS, cli
from spead_tutorial.tools.run import _show_line
from support import ROOT
from support.bench import write
from support.labs import needs_lab, probe
from support.tours import recorded
from support.typed import COMMAND, check_refused, run, typed

REASON = probe().reason
SMALL = ("-n", "3", "-H", "8192")

pytestmark = pytest.mark.usefixtures("elsewhere")


@pytest.mark.parametrize("name", cli.commands)
def test_every_command_has_help_with_an_example(here, name):
    done = here(name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Example: spead-tutorial {name}" in done.stdout


def test_without_a_command_it_shows_its_help_and_the_version_is_the_packages(here):
    assert here().stdout == here("--help").stdout != ""
    done = typed("--version")
    assert done.stdout == f"spead-tutorial, version {version('spead-tutorial')}\n"


def test_chapters_lists_every_chapter(here):
    done = here("chapters")
    assert done.returncode == 0
    every = (*CHAPTERS, *STEPS, *RECEIVERS, *ARRAY)
    lines = done.stdout.splitlines()
    for one in every:
        (line,) = (line for line in lines if f" {one.name} " in line)
        assert line.startswith(f"{one.number:>2} {one.title} ")
        assert line.index(one.name) == lines[0].index("program")
    assert lines[0].endswith("minutes")


def test_chapters_say_what_each_gained_in_the_tour_that_is_here(here):
    Path("results", "tour").mkdir(parents=True)
    write(Path("results", "tour", "tour.jsonl"), recorded())
    lines = here("chapters").stdout.splitlines()
    assert lines[0].endswith("minutes  Python  C")
    (chapter,) = (line for line in lines if "tut_6_send_pktsize" in line)
    assert chapter.endswith("28       ?  ?")


@pytest.mark.parametrize("toured", [False, True])
def test_chapters_have_a_line_each_in_a_terminal_of_80_columns(here, monkeypatch, toured):
    if toured:
        Path("results", "tour").mkdir(parents=True)
        made = recorded(lambda case, _: 1e9 if case.program == "tut_10_send_reuse_heaps" else 1e7)
        write(Path("results", "tour", "tour.jsonl"), made)
    monkeypatch.setattr(tables, "_terminal", lambda: 80)
    lines = re.sub(r"\x1b\[\d+m", "", here("chapters").stdout).splitlines()
    heads, *table = lines[: -lines[::-1].index("")]
    assert heads.split() == ["chapter", "program", *(["Python", "C"] if toured else ["minutes"])]
    assert [line for line in table if line and " tut_" not in line] == [*_SECTIONS]
    assert max(map(len, table)) <= 80
    assert any("\N{MULTIPLICATION SIGN}100" in line for line in table) is toured


def test_chapters_wait_for_no_pipe_in_place_of_a_tour(here):
    Path("results", "tour").mkdir(parents=True)
    os.mkfifo(Path("results", "tour", "tour.jsonl"))
    assert here("chapters").stdout.splitlines()[0].endswith("minutes")


@pytest.mark.parametrize(
    ("words", "end"),
    [
        (["2"], "chapters/tut_2_send.py"),
        (["3", "--lang", "c"], "chapters/tut_3_recv"),
        (["tut_13_send_no_thread", "--lang", "c"], "chapters/tut_13_send_no_thread"),
        (["ceiling"], "bin/ceiling"),
        (["sink"], "bin/sink"),
    ],
    ids=str,
)
def test_path_is_that_of_a_program_which_can_be_started(here, words, end):
    printed = here("path", *words).stdout
    assert printed.endswith(f"/{end}\n")
    python = [sys.executable] if end.endswith(".py") else []
    done = run(*python, printed.strip(), "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert Path(end).stem in done.stdout


def test_doctor_says_whether_the_lab_works(here):
    done = here("doctor")
    assert done.returncode == (1 if REASON else 0)
    assert re.search(r"^( *ok|FAIL)  lab ", done.stdout)


@needs_lab
def test_run_prints_the_rate_and_the_proof():
    done = typed("run", "10", "--lang", "c", "-n", "300", "-H", "8192")
    assert (done.returncode, done.stderr) == (0, "")
    rate, proof = done.stdout.splitlines()
    assert re.fullmatch(r"\d+\.\d\d MB/s", rate)
    assert "301 packets claimed" in proof
    assert "exactly what 301 SPEAD packets" in proof


@needs_lab
@pytest.mark.parametrize("kind", probe().kinds)
@pytest.mark.parametrize(
    ("name", "chapter", "options"),
    [("5", 5, ["-r"]), ("tut_10_send_more_heaps", 10, ["-H", "8192"])],
)
def test_run_prints_one_json_object_for_every_kind_of_device(here, name, chapter, options, kind):
    done = here("run", name, "--lang", "c", "-n", "3", *options, "--kind", kind, "--json")
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    found = json.loads(done.stdout)
    assert (found["chapter"], found["heaps"], found["random"]) == (chapter, 3, "-r" in options)
    assert (found["accounted"], found["failure"], found["kind"]) == (True, None, kind)
    assert found["counted_packets"] > 0
    expected = found["payload_bytes"] / found["elapsed_ns"] * 1e9
    assert found["rate_bytes_per_s"] == pytest.approx(expected)


@needs_lab
def test_run_of_a_sender_waits_for_a_link_that_has_a_rate(here):
    found = json.loads(
        here("run", "6", "--lang", "c", "-n", "20", "--rate", "100", "--json").stdout
    )
    assert found["failure"] is None
    assert found["rate_bytes_per_s"] < 2e8  # its first packets wait in buffers


@needs_lab
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_run_passes_on_that_packets_travel_in_fragments(here, more):
    done = here("run", "6", "--lang", "c", "-n", "3", "-p", "16384", *more)
    assert done.returncode == 0
    assert re.fullmatch(r"tut_6_send_pktsize: [^\n]*16384[^\n]*fragments[^\n]*\n", done.stderr)
    assert "fragments" not in done.stdout


@needs_lab
def test_run_of_a_receiver_shows_what_it_and_its_sender_print_told_apart(here):
    arguments = ["3", "--lang", "c", "--from", "10", "--from-lang", "python", "--rate=50"]
    done = here("run", *arguments, *SMALL)
    assert done.returncode == 0, done.stderr
    assert "tut_3_recv: Timestamp: 16384      Power: 4.00\n" in done.stdout
    assert "tut_3_recv: packets: 4 received = 4 placed\n" in done.stdout
    assert re.search(r"^tut_10_send_reuse_heaps: \d+\.\d\d MB/s$", done.stdout, re.M)
    assert "tut_3_recv: listening on port 8888\n" in done.stderr
    proof = "4 packets sent: 4 received, 0 lost on the way, 0 without room in the socket"
    assert done.stdout.endswith(f"\nproof: {proof}\n")


def test_a_line_of_a_programs_is_no_more_than_letters_to_a_terminal(capsys):
    for is_trouble in (False, True):
        _show_line("a", "red \x1b[31mand bell \x07.", is_trouble)
    shown = capsys.readouterr()
    told = r"red \x1b[31mand bell \x07."
    assert (shown.out, shown.err) == (f"a: {told}\n", f"{told}\n")


@needs_lab
def test_run_of_a_receiver_that_loses_packets_says_of_each_where_it_was_lost(here):
    done = here("run", "3", "--from", "10", "--from-lang", "c", "-n", "300", "--json")
    assert done.returncode == 1
    assert done.stderr == "spead-tutorial: tut_3_recv has failed, with status 1\n"
    found = json.loads(done.stdout)
    assert (found["accounted"], found["statuses"]) == (True, [1, 0])
    numbers = r"(\d+) packets sent: (\d+) received, (\d+) lost on the way, (\d+) without room"
    sent, *parts = map(int, re.match(numbers, found["account"]).groups())
    assert sent == sum(parts) == found["sender"]["packets"]
    assert parts[0] == found["receiver"]["socket_datagrams"]
    assert parts[2] > 0


@needs_lab
def test_run_tells_a_receiver_how_large_heaps_are_and_how_many_it_has_memory_for(here):
    arguments = ["run", "9", "--lang", "c", "-b", "5"]
    found = json.loads(here(*arguments, "--json").stdout)
    assert (found["statuses"], found["receiver"]["pool_too_large"]) == ([0, 0], 0)
    done = here(*arguments, "--from", "8", *SMALL)
    assert done.returncode == 0, done.stderr
    pool = r"^tut_9_recv_memory_pool: pool of 5: \d+ requests, 0 .*, 0 too large"
    assert re.search(pool, done.stdout, re.M)


@needs_lab
def test_run_of_a_receiver_ends_with_a_sender_that_fails(here):
    done = here("run", "3", "--lang", "c", "--from", "10", "-p", "70000")
    assert done.returncode == 1
    *_, reason, last = done.stderr.splitlines()
    assert reason.startswith("tut_10_send_reuse_heaps: cannot send packets of 70000 bytes")
    assert last == "spead-tutorial: tut_10_send_reuse_heaps has failed, with status 1"


@needs_lab
def test_run_to_a_host_says_that_nothing_counted():
    # Loopback of a lab: nothing leaves it.
    to = ["--host", "127.0.0.1", "--port", "9"]
    done = typed("lab", "--", COMMAND, "run", "6", "--lang", "c", "-n", "2", *to)
    assert done.returncode == 0
    assert "outside a lab of its own, where nothing is counted for it alone" in done.stdout


# ---- The notebooks ----


@needs_lab
@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        (["sh", "-c", "exit 3"], 3, ""),
        (["--", "sh", "-c", "kill -TERM $$"], 143, ""),
        (["no-such-program"], 127, "spead-tutorial: no-such-program: No such file or directory\n"),
        (["--kind", probe().kinds[-1], "/"], 126, "spead-tutorial: /: Permission denied\n"),
    ],
)
def test_the_status_of_a_lab_is_the_commands_or_says_why_there_was_none(command, status, words):
    done = typed("lab", *command)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", words)


@needs_lab
def test_in_a_lab_with_a_receiver_what_is_sent_arrives():
    code = (
        "import socket; to = ('192.168.31.2', 8888); a, b = (socket.socket(type=2) for _ in 'ab');"
        "a.bind(to); b.sendto(b'arrived', to); print(a.recv(100).decode())"
    )
    done = typed("lab", "--receiver", sys.executable, "-S", "-c", code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "arrived\n", "")


def test_without_jupyterlab_the_command_says_what_to_install(elsewhere, monkeypatch, here):
    (elsewhere / "00_start_here.ipynb").touch()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    check_refused(here("notebook", "--folder", "."), 1, "pip install 'spead-tutorial[notebook]'")


def test_jupyterlab_takes_the_commands_place_at_the_copy_of_the_first_notebook(
    elsewhere, monkeypatch, here
):
    (elsewhere / "some").mkdir()
    shutil.copy(ROOT / "notebooks/00_start_here.ipynb", elsewhere / "some")
    ran: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _, command: ran.append(command))
    here("notebook", "--folder", "some", "--", "--no-browser")
    ((*command, root, place, settings, last),) = ran
    assert command == [sys.executable, "-m", "jupyterlab"]
    assert root == f"--ServerApp.root_dir={elsewhere}"
    assert place == "--LabApp.default_url=/lab/tree/my-notebooks/00_start_here.ipynb"
    assert Path(settings.partition("=")[2], "overrides.json").is_file()
    assert last == "--no-browser"
    assert (elsewhere / "my-notebooks/00_start_here.ipynb").is_file()

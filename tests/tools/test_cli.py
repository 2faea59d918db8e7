# SPDX-License-Identifier: BSD-3-Clause
"""The command line: what every command does, and what it says when asked for wrongly."""

import importlib.util
import json
import os
import re
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from spead_tutorial.chapters.catalogue import CHAPTERS, RECEIVERS, STEPS
from spead_tutorial.lab import LabError, root_commands
from spead_tutorial.measure import place
from spead_tutorial.measure.programs import built
from spead_tutorial.tools.cli import cli
from support.labs import needs_lab, probe
from support.typed import COMMAND, check_refused, run, typed

REASON = probe().reason
SMALL = ("-n", "3", "-H", "8192")

pytestmark = pytest.mark.usefixtures("elsewhere")


# ---- Asked for rightly ----


@pytest.mark.parametrize("name", [*cli.commands, "lab up", "lab down", "lab status"])
def test_every_command_has_help_with_an_example(here, name):
    done = here(*name.split(), "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Example: spead-tutorial {name}" in done.stdout


def test_without_a_command_it_shows_its_help_and_the_version_is_the_packages(here):
    assert here().stdout == here("--help").stdout != ""
    done = typed("--version")
    assert done.stdout == f"spead-tutorial, version {version('spead-tutorial')}\n"


def test_chapters_lists_every_chapter(here):
    done = here("chapters")
    assert done.returncode == 0
    assert all(chapter.name in done.stdout for chapter in (*CHAPTERS, *STEPS, *RECEIVERS))
    rows = json.loads(here("chapters", "--json").stdout)
    assert [row["number"] for row in rows] == [one.number for one in (*CHAPTERS, *RECEIVERS)]


def test_chapters_stops_quietly_where_nobody_reads():
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as nobody:
        assert "Traceback" not in typed("chapters", stdout=nobody).stderr


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
    found = json.loads(here("doctor", "--json").stdout)
    assert found["works"] == (REASON is None)
    assert {finding["state"] for finding in found["findings"]} <= {"ok", "warn", "fail"}
    assert found["machine"]["kernel"]


def test_doctor_fails_and_names_the_commands_for_root_where_there_can_be_no_lab():
    # A user namespace in which no further namespace can be made.
    limits = ("user/max_user_namespaces", "user/max_net_namespaces")
    forbid = " && ".join(f"echo 0 > /proc/sys/{limit}" for limit in limits)
    start = ["unshare", "--user", "--map-root-user", "sh", "-c"]
    if run(*start, forbid).returncode != 0:
        pytest.skip("the kernel forbids user namespaces")
    done = run(*start, f'{forbid} && exec "$@"', "sh", COMMAND, "doctor")
    assert done.returncode == 1
    assert "FAIL  lab" in done.stdout
    assert "sysctl -w user.max_user_namespaces" in done.stdout
    assert " && ".join(root_commands()) in done.stdout
    assert "Traceback" not in done.stderr


@needs_lab
@pytest.mark.parametrize(
    "language",
    [pytest.param(one, marks=[] if one == "c" else pytest.mark.thorough) for one in built()],
)
def test_run_prints_the_rate_and_the_proof(language):
    done = typed("run", "10", "--lang", language, "-n", "300", "-H", "8192")
    assert (done.returncode, done.stderr) == (0, "")
    rate, proof = done.stdout.splitlines()
    assert re.fullmatch(r"\d+\.\d\d MB/s", rate)
    assert "301 packets claimed" in proof
    assert "exactly what 301 SPEAD packets" in proof


@needs_lab
@pytest.mark.parametrize("kind", probe().kinds)
@pytest.mark.parametrize(
    ("name", "chapter", "options"),
    [("tut_send_2", 5, ["-r"]), ("tut_10_send_more_heaps", 10, ["-H", "8192"])],
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
    arguments, small = ["run", "9", "--lang", "c", "-b", "5"], ["--from", "8", *SMALL]
    for sender in ([], small):
        done = here(*arguments, *sender, "--json")
        found = json.loads(done.stdout)
        assert found["statuses"] == [0, 0], done.stderr
        assert found["receiver"]["pool_too_large"] == 0
    said = here(*arguments, *small).stdout
    assert re.search(r"^tut_9_recv_memory_pool: pool of 5: \d+ requests, 0 ", said, re.M)


@needs_lab
def test_run_of_a_receiver_takes_chapter_2_as_its_sender_and_prints_one_json_object(here):
    done = here("run", "3", "--json")
    found = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert found["statuses"] == [0, 0]
    assert found["receiver"]["packets_placed"] == found["sender"]["packets"] == 7331
    names = (found["receiver"]["program"], found["sender"]["program"])
    assert names == ("tut_3_recv", "tut_2_send")


@needs_lab
def test_run_of_a_receiver_can_be_in_a_lab_that_stays_if_it_has_a_machine_for_it(here):
    name = f"chapter-3-{os.getpid()}"
    for receiver, status in ((["--receiver"], 0), ([], 1)):
        assert typed("lab", "up", name, *receiver).returncode == 0
        try:
            done = here("run", "3", "--in", name, "--lang", "c", "--from", "10", "-n", "3")
        finally:
            assert here("lab", "down", name).returncode == 0
        assert done.returncode == status, done.stderr
    assert "in this lab no machine receives" in done.stderr


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


# ---- Asked for wrongly ----


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("nothing", "No such command 'nothing'"),
        ("path 99", "there is no program '99': say ceiling, sink, blast, or a chapter"),
        ("--nothing", "No such option"),
        ("run", "Missing argument 'CHAPTER'"),
        ("run 99", "there is no chapter '99'"),
        ("run 1", "there is no chapter '1' that sends"),
        ("run 3 --from 3", "there is no chapter '3' that sends"),
        ("run 3 -n 5", "chapter 2 has no option -n"),
        ("run 3 --host 127.0.0.1 --port 9", "chapter 3 is receiving in a lab, without --host"),
        ("run 3 --kind ifb", "chapter 3 is receiving in a lab, without --kind"),
        ("run 10 --from 2", "without --from: that is for receiving in a lab"),
        ("run 10 -b 2", "without -b: that is for receiving"),
        ("run 3 -b 2", "chapter 3 has no option -b"),
        ("run 9 -b 1001", "-b"),
        ("run 7 --from 6 --rate nan", "nan is no number"),
        ("run 3 --rate 100", "chapter 2 sends over loopback, without --rate"),
        ("run 2 --rate 100", "chapter 2 sends over loopback, without --rate"),
        ("run 6 --rate 100 --host 127.0.0.1 --port 9", "sending to --host, without --rate"),
        ("run 10 11", "extra argument"),
        ("run 10 --lang rust", "'rust'"),
        ("run 10 --kind eth", "'eth'"),
        ("run 10 -n 0", "-n"),
        (f"run 10 -n {1 << 63}", "-n"),
        ("run 10 -r", "chapter 10 has no option -r: it takes -n, -H, -p"),
        ("run 4 -p 9000", "chapter 4 has no option -p"),
        ("run 6 -H 8192", "chapter 6 has no option -H"),
        ("run 2 -n 3", "chapter 2 has no option -n: it takes none"),
        ("run 2 --host 127.0.0.1 --port 9", "takes no destination"),
        ("run 10 --host 127.0.0.1", "--host and --port go together"),
        ("run 10 --host 127.0.0.1 --port 0", "--port"),
        ("run 10 --allow-real-network", "that is for sending to --host"),
        ("run 10 --kind ifb --host 127.0.0.1 --port 9", "sending to --host, without --kind"),
        ("run 10 --in a --host 127.0.0.1 --port 9", "without --in (SPEAD_TUTORIAL_LAB)"),
        ("sink 127.0.0.1", "Missing argument 'PORT' (see spead-tutorial sink"),
        ("lab", "Missing command"),
        ("tour --output /proc/self/status", "--output"),
        ("why", "say what to look at: -- COMMAND, or --pid PID"),
        ("why --pid 1 -- true", "say what to look at"),
        ("why --pid 1 --kind ifb", "--kind and --mtu are a lab's"),
        ("why --interface lo --mtu 1500 -- true", "--kind and --mtu"),
        ("why --interface lo --pid 1", "with --pid it is found"),
        ("why --allow-real-network -- true", "a lab has no real network"),
        ("why --interface eth9 -- true", "there is no interface 'eth9' here: there are "),
        ("why --interface nosuch0 --allow-real-network -- true", "no interface"),
        ("why --picture time.png -- true", "draws an SVG"),
        ("why --seconds 0 -- true", "--seconds"),
    ],
)
def test_what_is_asked_for_wrongly_is_one_line_and_status_2(here, arguments, words):
    check_refused(here(*arguments.split()), 2, words)


def test_a_process_that_is_asked_for_wrongly_ends_so():
    check_refused(typed("run", "10", "-r"), 2, "chapter 10 has no option -r")


@needs_lab
@pytest.mark.parametrize("language", built())
def test_a_heap_that_no_memory_holds_is_one_line_and_status_1(here, language):
    done = here("run", "8", "--lang", language, "-H", str(1 << 62))
    check_refused(done, 1, "tut_8_send_reuse_memory: ")


@pytest.mark.parametrize("more", [[], ["--allow-real-network"]])
def test_where_packets_may_not_go_is_one_line_and_status_1(here, monkeypatch, more):
    def refuse(host: str, *, allow_real_network: bool) -> None:
        raise LabError(f"{host} {allow_real_network}")

    monkeypatch.setattr(place, "check_destination", refuse)
    done = here("run", "10", "--host", "192.0.2.1", "--port", "9", *more)
    check_refused(done, 1, f"192.0.2.1 {bool(more)}\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_made_is_one_line_and_status_1(elsewhere, here):
    elsewhere.chmod(0o500)
    check_refused(here("tour", "--output", elsewhere / "a"), 1, "Permission denied")


# ---- The notebooks ----


def test_without_notebooks_the_command_says_where_they_are(here):
    check_refused(here("notebook"), 1, "there are no notebooks in notebooks: say it in the rep")


def test_without_jupyterlab_the_command_says_what_to_install(elsewhere, monkeypatch, here):
    (elsewhere / "00_start_here.ipynb").touch()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    check_refused(here("notebook", "--folder", "."), 1, "pip install 'spead-tutorial[notebook]'")


def test_jupyterlab_takes_the_commands_place_at_the_first_notebook(elsewhere, monkeypatch, here):
    (elsewhere / "some").mkdir()
    (elsewhere / "some" / "00_start_here.ipynb").touch()
    ran: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _, command: ran.append(command))
    here("notebook", "--folder", "some", "--", "--no-browser")
    root = f"--ServerApp.root_dir={elsewhere}"
    place = "--LabApp.default_url=/lab/tree/some/00_start_here.ipynb"
    assert ran == [[sys.executable, "-m", "jupyterlab", root, place, "--no-browser"]]

# SPDX-License-Identifier: BSD-3-Clause
"""An array in a lab, and on workers of Dask's: each packet accounted for, and nothing left."""

import contextlib
import ctypes
import itertools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import dask
import msgspec
import psutil
import pytest

from spead_tutorial.chapters.catalogue import ARRAY
from spead_tutorial.lab.counters import protocols
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.measure.records import read
from spead_tutorial.results.account import Account
from support.arrays import ASKED
from support.labs import needs_lab
from support.processes import python_for_anyone
from support.schedulers import two_workers
from support.typed import run

PATIENCE_S = 110
SENDER, RECEIVER = (one.name for one in ARRAY)
TOOL = [sys.executable, "-P", "-m", "spead_tutorial.tools.cli", "array"]
SMALL = ["--local", "2", "--senders", "2", "--receivers", "2", "--rate", "4"]


# -- what programs say --


@pytest.mark.parametrize("said", ["[1]", "9", "{", "[" * 100_000], ids=lambda said: said[:3])
def test_of_what_a_program_prints_the_end_is_kept_and_no_json_but_an_object(monkeypatch, said):
    from spead_tutorial.tools.array import agent

    words = "sys.stderr.write('x' * 10**6 + ' the end'); sys.stdout.write(sys.argv[1])"
    worker = mock.MagicMock(plugins={agent._PLUGIN: agent.Programs()})
    monkeypatch.setattr(agent, "get_worker", lambda: worker)
    monkeypatch.setattr(agent, "secede", lambda: None)
    monkeypatch.setattr(agent, "program", lambda *argv: argv)
    argv = (sys.executable, "-c")
    ended = agent.run_program("run", 0, "sender 0", argv, f"import sys; {words}", said)
    assert (ended.status, ended.said) == (0, None)
    assert ended.errors == "x" * (4096 - len(" the end")) + " the end"


# -- what is asked for wrongly --


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--receivers", "257"], "must be a whole number from 1 to 256"),
        (["--multicast", "239.1.0.0/30", "--receivers", "5"], "has 4 groups, not one for each"),
        (["--multicast", "10.0.0.0/8"], "has no groups"),
        (["--multicast", "239.1.0.1/28"], "--multicast: 239.1.0.1/28 has host bits set"),
        (["--scheduler", "tcp://x:1", "--local", "2"], "are for a lab, without --scheduler"),
        (["--workers", "2"], "are for a cluster, with --scheduler"),
        (["--plot", "no-such/matrix.svg"], "there is no such folder"),
        (["--record", "no-such/array.jsonl"], "--record no-such/array.jsonl: there is no such"),
        (["--slow", "4", "1"], "there is no machine 4"),
        (["--lose", "one", "1"], "it must be a whole number from 0 to 255, not 'one'"),
    ],
)
def test_what_does_not_go_together_is_refused_in_a_line(here, words, said):
    done = here("array", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"spead-tutorial: [^\n]*{re.escape(said)}[^\n]*\n", done.stderr)


def test_a_machine_with_too_few_ports_is_one_line():
    from spead_tutorial.tools.array import engine

    many = msgspec.structs.replace(ASKED, senders=256, receivers=256)
    assert engine._places(many, [f"10.10.0.{j}" for j in range(256)])[255] == ("10.10.0.255", 8888)
    with pytest.raises(ProgramError, match=r"^10.10.0.1 has too few ports for 256 senders"):
        engine._places(many, ["10.10.0.1"] * 256)


DASK, DRAWING = "array needs Dask: pip", "needs matplotlib: pip install 'spead-tutorial[lab]'"


@pytest.mark.parametrize(
    ("missing", "words", "said"),
    [
        ("spead_tutorial.tools.array.local", [], f"{DASK} install 'spead-tutorial[array]'"),
        ("matplotlib", ["--plot", "matrix"], DRAWING),
        ("matplotlib", ["--page", "matrix"], DRAWING),
    ],
)
def test_what_is_missing_is_said_before_anything_is_sent(here, monkeypatch, missing, words, said):
    monkeypatch.setitem(sys.modules, missing, None)
    assert refused(here, *words).endswith(said)


def refused(here, *words: str, **patience: float) -> str:
    """The one line that says why nothing was measured; how long is waited, in seconds."""
    from spead_tutorial.tools.array import workers

    with pytest.MonkeyPatch.context() as patch:
        for name, seconds in patience.items():
            patch.setattr(workers, name, seconds)
        done = here("array", *words)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    return line.removeprefix("spead-tutorial: ")


def test_where_no_scheduler_answers_one_line_says_so(here):
    said = refused(here, "--scheduler", "tcp://127.0.0.1:1", CONNECT_S=1)
    assert said.startswith("no scheduler of Dask's answers at tcp://127.0.0.1:1: ")


# -- in a lab --


@needs_lab
def test_every_packet_of_every_pair_arrives_in_a_lab(here):
    done = here("array", *SMALL, "--local", "3", "--seconds", "1", "--json")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["whole"]
    assert found["failures"] == []
    sent = {one["sent"] for row in found["pairs"] for one in row}
    assert len(sent) == 1  # each sender sends each receiver the same
    assert sent.pop() > 1e6 / 2 / 8192
    assert found["verdict"] == f"4 pairs, {4 * found['pairs'][0][0]['sent']} packets: all arrived."


@needs_lab
def test_what_links_lose_is_placed_exactly_and_kept(here, tmp_path, monkeypatch):
    lose = ["--lose", "1", "0.05"]
    try:
        ctypes.CDLL("libnftables.so.1")
    except OSError:
        lose = []
    given = ["--seconds", "2", "--slow", "0", "1", *lose, "--unicast"]
    monkeypatch.chdir(tmp_path)
    done = here("array", *SMALL, *given, "--record", "array.jsonl", "--page", "array.html",
                "--plot", "array.svg", "--json")  # fmt: skip
    assert done.returncode == 1
    kept = read("array.jsonl")
    account = Account.of(kept)
    assert json.loads(done.stdout)["pairs"] == account.as_dict()["pairs"]
    assert kept.header.lab == {"kind": "veth", "mtu": 9216}
    typed = shlex.split(kept.header.settings["drawn_by"])
    assert sorted(typed) == sorted(["spead-tutorial", "array", *SMALL, *given])
    for name in ("array.html", "array.svg"):
        assert account.verdict.removesuffix(".") in Path(name).read_text()
    said = "\n".join(account.lines())
    causes = ["whose port to it was full", *(["as was asked for"] if lose else [])]
    for machine, cause in enumerate(causes):
        pattern = rf"receiver {machine}\): (\d+) missing = (\d+) by the switch, {cause}"
        placed = re.search(pattern, said)
        assert placed
        assert placed[1] == placed[2]
    assert "add up" not in said


@needs_lab
@pytest.mark.skipif(os.getuid() != 0, reason="not root: every other test shows this")
def test_an_ordinary_user_has_an_array():
    python, how = python_for_anyone()
    done = run(python, *TOOL[1:], *SMALL, "--seconds", "1", timeout=PATIENCE_S, **how)
    assert done.returncode == 0
    assert done.stdout.startswith("4 pairs, ")


# -- what dies in the middle --


Scheduler = tuple[str, list["subprocess.Popen[str]"]]


@contextlib.contextmanager
def sending(
    *options: str, workers: Scheduler | None = None, tool: list[str] = TOOL
) -> Iterator[tuple[subprocess.Popen[str], list[psutil.Process]]]:
    """Start the tool; lend it, and all processes below it or workers, once all send and receive."""
    argv = [*tool, *options]
    if workers is not None:
        argv += ["--scheduler", workers[0], *ON_WORKERS, "--seconds", "6"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as begun:
        try:
            assert begun.stderr is not None
            assert "receivers have joined" in begun.stderr.readline()
            until = time.monotonic() + PATIENCE_S
            tops = [begun] if workers is None else workers[1]
            while not under_way(found := [*itertools.chain(*map(below, tops))]):
                assert time.monotonic() < until
                time.sleep(0.05)
            yield begun, found
        finally:
            begun.kill()


def below(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    return psutil.Process(process.pid).children(True)


def under_way(processes: list[psutil.Process]) -> bool:
    """Say whether packets leave each machine that sends, and are read on each that receives."""
    counted = {"OutDatagrams": named(SENDER, processes), "InDatagrams": named(RECEIVER, processes)}
    return all(
        len(ends) == 2 and all(udp(one.pid)[counter] for one in ends)
        for counter, ends in counted.items()
    )


def udp(pid: int) -> dict[str, int]:
    return protocols(Path("/proc", str(pid), "net/snmp").read_text())["Udp"]


def named(words: str, processes: list[psutil.Process]) -> list[psutil.Process]:
    found = []
    for process in processes:
        with contextlib.suppress(psutil.Error):
            if words in " ".join(process.cmdline()):
                found.append(process)
    return found


def all_end(processes: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(processes, timeout=30)
    assert [one.cmdline() for one in alive if one.status() != psutil.STATUS_ZOMBIE] == []


@needs_lab
@pytest.mark.parametrize(
    ("victim", "said"),
    [
        (SENDER, r"sender \d: killed by signal 9"),
        (RECEIVER, r"receiver \d: killed by signal 9"),
        ("dask_worker", r"(sender|receiver) \d(, sender \d)?: machine\d was lost"),
    ],
)
def test_what_is_killed_is_named_and_the_rest_is_kept(victim, said):
    with sending(*SMALL, "--seconds", "5") as (tool, processes):
        named(victim, processes)[0].kill()
        output, errors = tool.communicate(timeout=PATIENCE_S)
    assert tool.returncode == 1
    assert re.search(rf"^spead-tutorial: {said}$", errors, re.M)
    assert "Traceback" not in errors
    assert re.match(r"\d pairs?, [1-9]\d* packets: all arrived; of \d pairs? nothing", output)
    all_end(processes)


@needs_lab
def test_where_the_engine_is_killed_one_line_says_so():
    with sending(*SMALL, "--seconds", "60") as (tool, processes):
        named("tools.array.local", processes)[0].kill()
        output, errors = tool.communicate(timeout=PATIENCE_S)
    assert (tool.returncode, output) == (1, "")
    assert errors == "spead-tutorial: the engine in the lab ended with status -9\n"
    all_end(processes)


@needs_lab
def test_where_the_engine_does_not_start_its_line_says_why(here, monkeypatch):
    from spead_tutorial.tools.array import local

    monkeypatch.setattr(local, "_ENGINE", "print('only one of 2 workers arrived')")
    assert refused(here, *SMALL) == "only one of 2 workers arrived"


@needs_lab
@pytest.mark.parametrize(
    ("number", "status", "how"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "ended by SIGTERM")],
)
def test_ctrl_c_and_its_like_end_it_with_what_was_measured(number, status, how):
    with sending(*SMALL, "--seconds", "60") as (tool, processes):
        tool.send_signal(number)
        output, errors = tool.communicate(timeout=PATIENCE_S)
    assert (tool.returncode, errors.strip()) == (status, f"spead-tutorial: {how}")
    assert re.search(r"^received +[1-9]\d* +[1-9]\d*$", output, re.M)
    all_end(processes)


@needs_lab
def test_ctrl_c_while_the_engine_starts_is_one_line():
    argv = [*TOOL, *SMALL]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tool:
        until = time.monotonic() + PATIENCE_S
        while not named("tools.array.local", found := below(tool)):
            assert time.monotonic() < until
        tool.send_signal(signal.SIGINT)
        said = tool.communicate(timeout=PATIENCE_S)
    assert (tool.returncode, *said) == (130, "", "\nspead-tutorial: interrupted\n")
    all_end(found)


@needs_lab
def test_nothing_is_left_when_the_tool_is_killed(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with sending(*SMALL, "--seconds", "60") as (tool, processes):
        assert list(tmp_path.iterdir())
        tool.kill()
        all_end(processes)
    assert list(tmp_path.iterdir()) == []


# -- on workers that are there --


@pytest.fixture
def scheduler(tmp_path) -> Iterator[Scheduler]:
    with two_workers(tmp_path) as started:
        yield started


#: Ports of this process: tests beside it have the usual ones of loopback.
ON_WORKERS = ["--senders", "2", "--receivers", "2", "--rate", "2", "--unicast"]
ON_WORKERS += ["--port", str(30000 + os.getpid() % 2000 * 8)]


def test_workers_of_a_scheduler_are_machines(scheduler, here):
    address, processes = scheduler
    # So often a client forgets its workers, to look again who is there.
    with dask.config.set({"distributed.client.scheduler-info-interval": "1ms"}):
        done = here("array", "--scheduler", address, *ON_WORKERS, "--seconds", "1")
    assert done.returncode == 0
    assert re.match(r"4 pairs, \d+ packets: all arrived\.\n", done.stdout)
    assert [process.poll() for process in processes] == [None] * 3


@pytest.mark.parametrize(
    ("words", "patience", "said"),
    [
        (["--workers", "3"], {"CONNECT_S": 2}, r"the scheduler has 2 workers, not 3: .*"),
        (["--data-network", "10.9.0.0/16"], {},
         r"host0 \(.*has no address in 10\.9\.0\.0/16: say .*"),
    ],
)  # fmt: skip
def test_workers_that_will_not_do_are_one_line(scheduler, here, words, patience, said):
    found = refused(here, "--scheduler", scheduler[0], *ON_WORKERS, *words, **patience)
    assert re.fullmatch(said, found)


def test_of_workers_that_are_paused_one_line_says_what_they_lack(scheduler, here):
    from distributed import Client

    def pause(dask_worker):
        dask_worker.memory_manager.memory_pause_fraction = 1e-9

    with Client(scheduler[0], set_as_default=False) as client:
        address, *_ = known = client.scheduler_info(n_workers=-1)["workers"]
        client.run(pause, workers=[address])
        until = time.monotonic() + PATIENCE_S
        while known[address]["status"] != "paused":
            assert time.monotonic() < until
            known = client.scheduler_info(n_workers=-1)["workers"]
    words = ["--scheduler", scheduler[0], "--workers", "2"]
    said = r"the scheduler has 1 worker, not 2: .* --memory-limit 0, as some are paused"
    assert re.fullmatch(said, refused(here, *words, CONNECT_S=2))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_programs_end_with_the_tool_and_workers_stay(scheduler, number):
    _, workers = scheduler
    with sending(workers=scheduler) as (tool, programs):
        tool.send_signal(number)
        all_end(programs)
        tool.communicate(timeout=PATIENCE_S)
    assert [process.poll() for process in workers] == [None] * 3


def test_with_usual_settings_a_worker_that_is_killed_is_noticed_too(scheduler):
    with sending(workers=scheduler) as (tool, programs):
        scheduler[1][1].kill()
        _, errors = tool.communicate(timeout=PATIENCE_S)
    assert re.search(r"^spead-tutorial: receiver 0, sender 0: host0 was lost$", errors, re.M)
    assert tool.returncode == 1
    all_end(programs)


#: The tool, which gives up a worker soon.
HASTY = [sys.executable, "-P", "-c", """\
from spead_tutorial.tools import cli
from spead_tutorial.tools.array import workers
workers.STUCK_S = 8
cli.main()""", "array"]  # fmt: skip


def test_a_worker_that_is_stuck_is_named_and_the_rest_is_kept(scheduler):
    _, (_, stuck, _) = scheduler
    with sending(workers=scheduler, tool=HASTY) as (tool, programs):
        stuck.send_signal(signal.SIGSTOP)
        output, errors = tool.communicate(timeout=PATIENCE_S)
        stuck.send_signal(signal.SIGCONT)
        all_end(programs)
    assert re.search(r"^spead-tutorial: receiver 0, sender 0: host0 is stuck$", errors, re.M)
    assert re.match(r"1 pair, [1-9]\d* packets: all arrived; of 3 pairs nothing is known\n", output)
    assert tool.returncode == 1


def test_of_a_worker_that_is_stuck_before_the_run_there_is_one_line(scheduler, here):
    scheduler[1][1].send_signal(signal.SIGSTOP)
    words = ["--scheduler", scheduler[0], *ON_WORKERS]
    assert refused(here, *words, STUCK_S=1) == "host0 is stuck"

# SPDX-License-Identifier: BSD-3-Clause
"""An array in a lab, and on workers of Dask's: each packet accounted for, and nothing left."""

import contextlib
import ctypes
import json
import os
import re
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
from spead_tutorial.tools.array import command
from spead_tutorial.tools.array.account import Account
from spead_tutorial.tools.array.measured import Asked, Ended, Look, Lost, Machine, Measured
from support.labs import needs_lab
from support.processes import python_for_anyone
from support.schedulers import two_workers
from support.typed import run

PATIENCE_S = 110
SENDER, RECEIVER = (one.name for one in ARRAY)
TOOL = [sys.executable, "-P", "-m", "spead_tutorial.tools.cli", "array"]
SMALL = ["--local", "2", "--senders", "2", "--receivers", "2", "--rate", "4"]
ASKED = Asked(senders=1, receivers=1, language="c", rate=1, seconds=1, heap_size=1, packet_size=1,
              ttl=1, groups=None, data_network=None)  # fmt: skip


# -- the account --


def sender(i: int, *packets: int, machine: int = 0) -> Ended:
    to = [{"to": "", "heaps": 1, "packets": n, "bytes": n} for n in packets]
    said: dict[str, object] = {"destinations": to, "payload_bytes": 5000, "elapsed_ns": 1000}
    return Ended(f"sender {i}", machine, 0, said)


def receiver(j: int, *packets: int, dropped: int = 0, machine: int = 0) -> Ended:
    came = [{"packets": n, "dropped": dropped, "too_old": 0, "incomplete": 0} for n in packets]
    n = sum(packets)
    said: dict[str, object] = {"senders": came, "timed_bytes": 3000, "elapsed_ns": 1000}
    said |= {"socket_messages": n, "socket_datagrams": n}
    return Ended(f"receiver {j}", machine, 0, said, joined_s=0.5)


def account(senders: list[Ended], receivers: list[Ended], **more: object) -> Account:
    machines = 1 + max(one.machine for one in (*senders, *receivers))
    named = [Machine(f"host{m}", "", "") for m in range(machines)]
    quiet: list[Look | None] = [Look(0, 0, 0, 0, 0, 0)] * machines
    given = {"looks": quiet} | more
    asked = msgspec.structs.replace(ASKED, senders=len(senders), receivers=len(receivers))
    return Account(Measured(asked, named, senders, receivers, **given))  # type: ignore[arg-type]


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
        "           3000 MB/s   3000 MB/s",
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
    assert "  sender 0 to receiver 22: 10 packets" in lines
    assert sum("sender 0 to receiver" in line for line in lines) == 10
    whole = account([sender(0, *[10] * 30)], [receiver(j, 10) for j in range(30)])
    assert len(list(whole.lines())) == 3


def test_the_picture_says_what_came_out_and_which_pairs_lost(tmp_path):
    dead = Ended("sender 2", 0, -9)
    senders, receivers = [sender(0, 8, 8), sender(1, 8, 8), dead], [receiver(0, 8, 6, 0)]
    found = account(senders, [*receivers, receiver(1, 8, 8, 0)])
    command._draw(found, str(tmp_path / "matrix.svg"))
    svg = (tmp_path / "matrix.svg").read_text()
    assert f'<title id="picture-title">{found.verdict}</title>' in svg
    assert "sender 1: receiver 0 25 %." in svg
    assert "sender 2: receiver 0 ?, receiver 1 ?." in svg
    assert "sender 0" not in svg
    assert "1 MB/s of each sender for 1 s" in svg


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


def test_without_dask_one_line_says_what_to_install(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "spead_tutorial.tools.array.local", None)
    done = here("array")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("array needs Dask: pip install 'spead-tutorial[array]'\n")
    assert done.stderr.count("\n") == 1


def test_without_matplotlib_one_line_says_so_before_anything_is_sent(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = here("array", "--plot", "matrix.svg")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("needs matplotlib: pip install 'spead-tutorial[lab]'\n")


def test_where_too_few_workers_come_one_line_says_so(scheduler, here, monkeypatch):
    from spead_tutorial.tools.array import workers

    monkeypatch.setattr(workers, "CONNECT_S", 2)
    done = here("array", "--scheduler", scheduler[0], "--workers", "3")
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(
        r"spead-tutorial: the scheduler has 2 workers, not 3: [^\n]*\n", done.stderr
    )


def test_where_workers_are_paused_one_line_says_what_they_lack(here, monkeypatch):
    from spead_tutorial.tools.array import workers

    class Client(contextlib.nullcontext):
        def __init__(self, *_, **__):
            super().__init__()

        def wait_for_workers(self, workers, timeout):
            raise TimeoutError

        def sync(self, identity, n_workers):
            return {"workers": {i: {"status": ("running", "paused")[i]} for i in range(2)}}

        scheduler = mock.Mock()

    monkeypatch.setattr(workers, "Client", Client)
    done = here("array", "--scheduler", "tcp://x:1", "--workers", "2")
    said = (
        r"spead-tutorial: the scheduler has 1 worker, not 2: [^\n]* --memory-limit 0, as [^\n]*\n"
    )
    assert re.fullmatch(said, done.stderr)


def test_where_no_scheduler_answers_one_line_says_so(here, monkeypatch):
    from spead_tutorial.tools.array import workers

    monkeypatch.setattr(workers, "CONNECT_S", 1)
    done = here("array", "--scheduler", "tcp://127.0.0.1:1")
    assert (done.returncode, done.stdout) == (1, "")
    said = r"spead-tutorial: no scheduler [^\n]* at tcp://127.0.0.1:1: [^\n]*\n"
    assert re.fullmatch(said, done.stderr)


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
def test_what_links_lose_is_placed_exactly(here):
    lose = ["--lose", "1", "0.05"]
    try:
        ctypes.CDLL("libnftables.so.1")
    except OSError:
        lose = []
    done = here("array", *SMALL, "--seconds", "2", "--slow", "0", "1", *lose, "--unicast")
    assert done.returncode == 1
    causes = ["whose port to it was full", *(["as was asked for"] if lose else [])]
    for machine, cause in enumerate(causes):
        pattern = rf"receiver {machine}\): (\d+) missing = (\d+) by the switch, {cause}"
        placed = re.search(pattern, done.stdout)
        assert placed
        assert placed[1] == placed[2]
    assert "add up" not in done.stdout


@needs_lab
@pytest.mark.skipif(os.getuid() != 0, reason="not root: every other test shows this")
def test_an_ordinary_user_has_an_array():
    python, how = python_for_anyone()
    done = run(python, *TOOL[1:], *SMALL, "--seconds", "1", timeout=PATIENCE_S, **how)
    assert done.returncode == 0
    assert done.stdout.startswith("4 pairs, ")


# -- what dies in the middle --


@contextlib.contextmanager
def sending(*options: str) -> Iterator[tuple[subprocess.Popen[str], list[psutil.Process]]]:
    """Start the tool; lend it, and all processes of it, once all send and receive."""
    argv = [*TOOL, *options]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tool:
        try:
            assert tool.stderr is not None
            assert "receivers have joined" in tool.stderr.readline()
            until = time.monotonic() + PATIENCE_S
            while not under_way(found := psutil.Process(tool.pid).children(True)):
                assert time.monotonic() < until
                time.sleep(0.05)
            yield tool, found
        finally:
            tool.kill()


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
    done = here("array", *SMALL)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "spead-tutorial: only one of 2 workers arrived\n"


@needs_lab
def test_ctrl_c_ends_it_with_what_was_measured():
    with sending(*SMALL, "--seconds", "60") as (tool, processes):
        tool.send_signal(signal.SIGINT)
        output, errors = tool.communicate(timeout=PATIENCE_S)
    assert tool.returncode == 130
    assert errors == "\nspead-tutorial: interrupted\n"
    assert re.search(r"^received +[1-9]\d* +[1-9]\d*$", output, re.M)
    all_end(processes)


@needs_lab
def test_ctrl_c_while_the_engine_starts_is_one_line():
    argv = [*TOOL, *SMALL]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tool:
        below = psutil.Process(tool.pid)
        until = time.monotonic() + PATIENCE_S
        while not named("tools.array.local", found := below.children(True)):
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
def scheduler(tmp_path) -> Iterator[tuple[str, list[subprocess.Popen[str]]]]:
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


def test_a_network_that_no_machine_is_in_is_one_line(scheduler, here):
    done = here("array", "--scheduler", scheduler[0], *ON_WORKERS, "--data-network", "10.9.0.0/16")
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(
        r"spead-tutorial: host0 \([^\n]*has no address in 10.9.0.0/16: say [^\n]*\n", done.stderr
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_programs_end_with_the_tool_and_workers_stay(scheduler, number):
    _, workers = scheduler
    with sending_on(scheduler) as (tool, programs):
        tool.send_signal(number)
        all_end(programs)
        tool.communicate(timeout=PATIENCE_S)
    assert [process.poll() for process in workers] == [None] * 3


def test_with_usual_settings_a_worker_that_is_killed_is_noticed_too(scheduler):
    with sending_on(scheduler) as (tool, programs):
        scheduler[1][1].kill()
        _, errors = tool.communicate(timeout=PATIENCE_S)
    assert re.search(r"^spead-tutorial: receiver 0, sender 0: host0 was lost$", errors, re.M)
    assert tool.returncode == 1
    all_end(programs)


def test_a_worker_that_is_stuck_is_named_and_the_rest_is_kept(scheduler):
    _, (_, stuck, _) = scheduler
    with sending_on(scheduler, HASTY) as (tool, programs):
        stuck.send_signal(signal.SIGSTOP)
        output, errors = tool.communicate(timeout=PATIENCE_S)
        stuck.send_signal(signal.SIGCONT)
        all_end(programs)
    assert re.search(r"^spead-tutorial: receiver 0, sender 0: host0 is stuck$", errors, re.M)
    assert re.match(r"1 pair, [1-9]\d* packets: all arrived; of 3 pairs nothing is known\n", output)
    assert tool.returncode == 1


def test_of_a_worker_that_is_stuck_before_the_run_there_is_one_line(scheduler, here, monkeypatch):
    from spead_tutorial.tools.array import workers

    monkeypatch.setattr(workers, "STUCK_S", 1)
    scheduler[1][1].send_signal(signal.SIGSTOP)
    done = here("array", "--scheduler", scheduler[0], *ON_WORKERS)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "spead-tutorial: host0 is stuck\n"


#: The tool, which gives up a worker soon.
HASTY = [sys.executable, "-P", "-c", """\
from spead_tutorial.tools import cli
from spead_tutorial.tools.array import workers
workers.STUCK_S = 8
cli.main()"""]  # fmt: skip


@contextlib.contextmanager
def sending_on(
    scheduler, words: list[str] = TOOL[:-1]
) -> Iterator[tuple[subprocess.Popen[str], list[psutil.Process]]]:
    """Start the tool on workers; lend it, and the programs that they run."""
    address, workers = scheduler
    argv = [*words, "array", "--scheduler", address, *ON_WORKERS, "--seconds", "6"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tool:
        try:
            assert tool.stderr is not None
            assert "receivers have joined" in tool.stderr.readline()
            until = time.monotonic() + PATIENCE_S
            found: list[psutil.Process] = []
            while len(found) < 4:
                assert time.monotonic() < until
                time.sleep(0.05)
                below = [psutil.Process(one.pid).children(True) for one in workers]
                found = [one for some in below for one in named("corner_turn", some)]
            yield tool, found
        finally:
            tool.kill()

# SPDX-License-Identifier: BSD-3-Clause
"""The account of time: every second that was seen has a name, and they sum to what was seen."""

import dataclasses
import subprocess
import time
from typing import Any

import click
import pytest

from spead_tutorial.tools.why import watching
from spead_tutorial.tools.why.account import KINDS, Account
from spead_tutorial.tools.why.accounting import Prices, account
from spead_tutorial.tools.why.calls import EVENTS
from spead_tutorial.tools.why.facts import (
    GB,
    Beside,
    Call,
    Caller,
    Calls,
    Run,
    Sampled,
    Thread,
    Wait,
)
from spead_tutorial.tools.why.places import InLab
from spead_tutorial.tools.why.samples import parse
from spead_tutorial.tools.why.waits import Blocked, added, doing, look, numbered
from support.labs import needs_lab, open_lab

PRICES = Prices(fault_s=2e-7, cleared_s=5e-8)
SENDTO = Call("sendto", 1000, 2e-6, sends=True)
NUMBERS = {0: "read", 7: "poll", 202: "futex", 230: "clock_nanosleep", 270: "pselect6"}


def thread(tid: int = 1, name: str = "main", **facts: Any) -> Thread:
    """A thread that computes for 0.2 s, sends for 0.3 s, waits for a core for 0.1 s."""
    usual = {"user_s": 0.2, "system_s": 0.3, "runnable_s": 0.1, "voluntary": 1000}
    usual |= {"faults": 0, "cpus": (0, 1), "looks": 100}
    return Thread(**{"tid": tid, "name": name} | usual | facts)


def told(*threads: Thread, callers: tuple[Caller, ...] | None = None, **more: Any) -> Account:
    """The account of a run of a second."""
    run = Run(1.0, 1000, GB, threads, 100, **more.pop("run", {}))
    if callers is None:
        callers = (Caller("main", 0, 1000, (SENDTO, *more.pop("calls", ()))),)
    seen = Calls(1000, 1000, ("sendto",), 2.0, 0, callers)
    found = account(run, seen if callers else None, more.pop("sampled", ()), PRICES, **more)
    for one in found.threads:
        assert sum(part.seconds for part in one.parts) == pytest.approx(one.seconds)
        assert {part.kind for part in one.parts} <= set(KINDS)
    return found


def shares(found: Account) -> dict[str, float]:
    """What part of the time each kind has, of the threads that send."""
    return {kind: share for kind in KINDS if (share := round(found.share(kind), 3))}


def waits(*found: Wait) -> Thread:
    return thread(waits=found)


RUNNING = {"own": 0.2, "sends": 0.3, "core": 0.1}


@pytest.mark.parametrize(
    ("wait", "calls", "kinds"),
    [
        (Wait("clock_nanosleep", True, 9), (), {"sleep": 0.4}),
        # A wait with a limit is a sleep as far as the limit ends it.
        (Wait("futex", True, 9), (Call("futex", 1, 0.0, True, 1.0),), {"sleep": 0.4}),
        (Wait("futex", True, 9), (Call("futex", 1, 0.0, True, 0.25),),
         {"sleep": 0.1, "thread": 0.3}),
        (Wait("futex", False, 9), (Call("futex", 1, 0.0, True, 1.0),), {"sleep": 0.4}),
        # One without may be ended by a timer.
        (Wait("epoll_wait", False, 9), (Call("epoll_wait", 1, 0.0, False, 0.5),),
         {"sleep": 0.2, "input": 0.2}),
        (Wait("sendto", False, 9), (), {"room": 0.4}),
        (Wait("read", False, 9), (), {"input": 0.4}),
        (Wait("wait4", False, 9), (), {"process": 0.4}),
        (Wait("fsync", False, 9), (), {"calls": 0.4}),
        # Of a receiver the look itself tells.
        (Wait("futex", True, 9, (), "lock", "worker"), (), {"lock": 0.4}),
        (Wait("", False, 9), (), {"unexplained": 0.4}),
    ],
)  # fmt: skip
def test_a_wait_has_the_name_of_what_it_is_for(wait, calls, kinds):
    assert shares(told(waits(wait), calls=calls)) == RUNNING | kinds


def test_what_was_not_seen_is_unexplained():
    assert shares(told(thread())) == RUNNING | {"unexplained": 0.4}
    dark = told(waits(Wait("futex", True, 9)), callers=())
    assert shares(dark) == {"own": 0.2, "core": 0.1, "unexplained": 0.7}
    assert not dark.threads[0].sends
    assert dark.slowed is None
    assert account(Run(1.0, 1, 1, ()), None, None, PRICES) is None


def meanwhile(*looks: tuple[str, int], call: str = "futex") -> Wait:
    """A wait, and what another thread did in how many of the looks at it."""
    return Wait(call, False, 40, tuple(Beside(2, doing, n) for doing, n in looks))


@pytest.mark.parametrize(
    ("wait", "voluntary", "other", "sends", "kinds"),
    [
        (meanwhile(("running", 20)), 1000, {}, 1000, {"lock": 0.4}),
        (meanwhile(("running", 10)), 1000, {}, 1000, {"lock": 0.1, "thread": 0.3}),
        (meanwhile(("running", 20)), 1000, {}, 0, {"thread": 0.4}),
        # Who waits for long waits for work.
        (meanwhile(("running", 20)), 3, {}, 1000, {"thread": 0.4}),
        (meanwhile(("timed", 20)), 1000, {}, 0, {"sleep": 0.4}),
        (meanwhile(("timed", 10)), 1000, {}, 0, {"sleep": 0.1, "thread": 0.3}),
        # One that sleeps and works in turns is waited for in both.
        (meanwhile(("timed", 15), ("running", 5), call="pselect6"), 1000, {"user_s": 0.0}, 0,
         {"sleep": 0.3, "thread": 0.1}),
        # One that sleeps more seldom does not wake the sender.
        (meanwhile(("timed", 40)), 1000, {"user_s": 0.0, "voluntary": 20}, 0, {"thread": 0.4}),
        # What another process does is input.
        (meanwhile(("timed", 40), call="read"), 1000, {"pid": 2}, 0, {"input": 0.4}),
    ],
)  # fmt: skip
def test_who_works_meanwhile_tells_what_a_thread_waits_for(wait, voluntary, other, sends, kinds):
    futex = Call("futex", 100, 0.0, timed_out=0.0)
    callers = (
        Caller("main", 0, 1000, (SENDTO, futex)),
        Caller("other", 0, sends, (SENDTO,) if sends else ()),
    )
    beside = thread(2, "other", **{"user_s": 1.0} | other)
    found = told(thread(voluntary=voluntary, waits=(wait,)), beside, callers=callers)
    (first,) = (made for made in found.threads if made.tid == 1)
    assert {kind: round(first.of(kind), 3) for kind in kinds} == kinds
    assert [made.sends for made in found.threads] == [True, bool(sends)]


def test_time_in_the_kernel_is_divided_by_calls_and_faults():
    log = Call("write", 1000, 1e-6, on="/var/log/it")
    found = told(thread(faults=150_000), calls=(log,), per_message=2.0)
    assert found.of("faults") == pytest.approx(0.03)
    (part,) = (part for part in found.parts if part.kind == "calls")
    assert (part.what, part.calls) == ("write", 0.5)
    assert part.seconds == pytest.approx(0.27 / 3)
    assert found.slowed == pytest.approx(2.0)
    # What hands over between threads is no other call.
    found = told(thread(), calls=(Call("write", 1000, 1e-6, on=EVENTS),))
    assert (found.of("calls"), found.of("thread")) == (0, pytest.approx(0.1))
    # Memory in huge pages is priced by what clearing takes.
    callers = (Caller("main", 0, 1000, (SENDTO,), mapped_bytes=4096 * 10**6),)
    assert told(thread(), callers=callers).of("faults") == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("clock", "others", "kind"), [(0, 2, "lock"), (0, 1, "thread"), (90, 2, "spin"), (0, 0, "spin")]
)
def test_who_yields_its_core_waits_for_a_lock_for_a_thread_or_for_a_time(clock, others, kind):
    yields = (SENDTO, Call("sched_yield", 1000, 1e-6))
    callers = tuple(Caller(f"t{one}", 0, 1000, yields) for one in range(max(1, others)))
    threads = [thread(tid, f"t{tid}") for tid in range(1 + bool(others))]
    sampled = (Sampled("t0", 0, 100, clock, ()),)
    found = told(*threads, callers=callers, sampled=sampled)
    (first,) = (one for one in found.threads if one.tid == 0)
    assert {part.kind for part in first.parts if part.what == "sched_yield"} == {kind}


def test_threads_are_found_again_in_other_runs_by_name_and_order():
    first, second = thread(7, nth=0), thread(9, nth=1)
    found = told(first, second, callers=(Caller("main", 1, 1000, (SENDTO,)),))
    assert [(one.tid, one.sends) for one in found.threads] == [(9, True), (7, False)]
    names = {31: "java", 30: "java", 40: "worker"}
    assert numbered(names) == {30: ("java", 0), 31: ("java", 1), 40: ("worker", 0)}


def test_own_code_is_told_by_library_and_apart_from_reading_the_clock():
    code = (("main", "prog", 50), ("sin", "libm.so.6", 10))
    found = told(thread(), sampled=(Sampled("main", 0, 100, 40, code),))
    assert found.of("spin") == pytest.approx(0.08)
    own = {part.what: part.seconds for part in found.parts if part.kind == "own"}
    assert own == pytest.approx({"prog": 0.1, "libm.so.6": 0.02})


def test_of_a_receiver_all_that_read_count_or_the_busiest_where_that_was_not_seen():
    readers = (Caller("main", 0, 1000, (SENDTO,)), Caller("other", 0, 1, (SENDTO,)))
    busy = (thread(), thread(2, "other", user_s=0.5))
    assert all(one.sends for one in told(*busy, callers=readers, receives=True).threads)
    dark = told(*busy, callers=(), receives=True)
    assert [(one.tid, one.sends) for one in dark.threads] == [(2, True), (1, False)]


# ---- What the kernel and perf say ----


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("running\n", None),
        ("", None),
        ("-1 0x7ffe 0x7f00\n", ("", False)),
        ("202 0x5 0x189 0x0 0x0 0x0 0x0 0x7ffe 0x7f00", ("futex", False)),
        ("202 0x5 0x189 0x0 0x7ffe5 0x0 0x0 0x7ffe 0x7f00", ("futex", True)),
        ("7 0x5 0x1 0xffffffff 0x0 0x0 0x0 0x7ffe 0x7f00", ("poll", False)),
        ("7 0x5 0x1 0xffffffffffffffff 0x0 0x0 0x0 0x7ffe 0x7f00", ("poll", False)),
        ("7 0x5 0x1 0x64 0x0 0x0 0x0 0x7ffe 0x7f00", ("poll", True)),
        ("230 0x0 0x0 0x7ffc 0x7ffc 0x0 0x0 0x7ffc 0x7f03", ("clock_nanosleep", True)),
        ("270 0x1 0x0 0x0 0x0 0x0 0x0 0x7ffe 0x7f00", ("pselect6", False)),
        ("270 0x1 0x0 0x0 0x0 0x7ffe5 0x0 0x7ffe 0x7f00", ("pselect6", True)),
        ("9999 0x0 0x0 0x0 0x0 0x0 0x0 0x7ffc 0x7f03", ("call 9999", False)),
    ],
)
def test_what_a_thread_waits_in_is_read_from_its_call(text, what):
    assert doing(text, NUMBERS) == (what and Blocked(*what))


def test_a_program_that_sleeps_is_seen_in_its_call():
    with subprocess.Popen(["sleep", "100"]) as process:
        try:
            if look([process.pid]) is None:
                pytest.skip("this kernel or this user may not see what threads wait in")
            while "sleep" not in str(what := (look([process.pid]) or {}).get(process.pid)):
                time.sleep(0.01)
        finally:
            process.kill()
    assert what.timed
    assert look([process.pid]) is None


@needs_lab
def test_a_container_that_sends_nothing_here_is_refused_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(watching, "_IDLE_S", 0.1)
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\nexec sleep 100\n")
    docker.chmod(0o755)
    begun, sender = time.monotonic(), watching.Sender((str(docker),))
    with open_lab() as lab, pytest.raises(click.ClickException, match=r"network of its own.*--pid"):
        watching.watch(sender, InLab(lab), 0.1, lambda _: None)
    assert time.monotonic() < begun + watching._START_S


def test_a_pool_of_threads_waits_when_none_of_them_runs():
    """As Go's: idle ones park, one looks for input until the next time, one watches all others."""
    park, until, watch = (
        Blocked("futex", timed=False),
        Blocked("epoll_pwait", timed=True),
        Blocked("nanosleep", timed=True),
    )
    looks = [{1: None, 2: park, 3: watch}] * 6 + [{1: until, 2: park, 3: watch}] * 3
    looks += [{1: until, 2: park, 3: None}]
    pool = [thread(1, user_s=0.1), thread(2, user_s=0.1), thread(3, user_s=0.0, system_s=0.0)]
    run = added(Run(1.0, 1000, GB, tuple(pool)), looks, {}, pooled=True)
    (one,) = run.threads
    assert (one.looks, one.waits) == (10, (Wait("epoll_pwait", True, 4),))
    one = dataclasses.replace(one, looks=100, waits=(Wait("epoll_pwait", True, 40),))
    found = told(one, run={"pooled": True}, calls=(Call("epoll_pwait", 9, 0.0, True, 1.0),))
    assert shares(found) == {"own": 0.167, "sends": 0.5, "sleep": 0.333}


@pytest.mark.parametrize(
    ("places", "spins"),
    [
        ({"__vdso_clock_gettime ([vdso])": 60, "main (/bin/spin)": 40}, 100),
        # What is interpreted takes several times as long around it.
        ({"__vdso_clock_gettime ([vdso])": 20, "eval (/lib/libpython3.11.so.1.0)": 80}, 100),
        # Other code is its own.
        ({"__vdso_clock_gettime ([vdso])": 20, "fill (/bin/sender)": 80}, 20),
        # Who asks for the time now and then uses it.
        ({"__vdso_clock_gettime ([vdso])": 9, "main (/bin/sender)": 91}, 0),
    ],
)
def test_a_loop_around_the_clock_is_told_from_other_code(places, spins):
    lines = [f"  42   7f12ab {place}" for place, count in places.items() for _ in range(count)]
    (found,) = parse([*lines, "", "# nothing"], {42: ("main", 0)})
    assert (found.name, found.samples, found.clock) == ("main", 100, spins)

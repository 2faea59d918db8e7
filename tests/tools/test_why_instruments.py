# SPDX-License-Identifier: BSD-3-Clause
"""What is read from the lines of strace, of perf and of py-spy."""

import os
import subprocess
import textwrap
import tomllib
from pathlib import Path

import pytest

from spead_tutorial.tools.why import instruments, looks, stacks
from spead_tutorial.tools.why.instruments import parse_calls
from spead_tutorial.tools.why.looks import Blocked, doing, together
from spead_tutorial.tools.why.stacks import Told, of_perf, of_py_spy, told
from support.needs import needs

SENDTO = '10 {} sendto({}, ""..., 9000, 0, 0x7f, 16) = {} <0.0001>'
SENDMMSG = "10 {} sendmmsg(3<socket:[7]>, 0x7f, 17, 0) = 17 <0.0001>"
DATA, OTHER = "3<socket:[7]>", "4<socket:[8]>"
SET = (
    "10 100.3 timerfd_settime(5<anon_inode:[timerfd]>, 0, {{it_interval={{tv_sec=0, tv_nsec=0}},"
    " it_value={{tv_sec={}, tv_nsec=434000}}}}, {{it_interval={{tv_sec=0, tv_nsec=0}},"
    " it_value={{tv_sec=299, tv_nsec=9}}}}) = 0 <0.000010>"
)
EPOLL = "10 {} epoll_wait(4<anon_inode:[eventpoll]>, {}, 128, {}) = {} <{}>"
POLLED = EPOLL.format("100.4", "[{events=EPOLLIN}]", -1, 1, 0.000424)


@pytest.mark.parametrize(
    ("lines", "counts", "timed_out"),
    [
        # Messages are what sendmmsg returns, and one for each other call.
        ([SENDMMSG.format(100.0), SENDMMSG.format(100.1).replace("= 17", "= 3"),
          "10 100.2 sendmsg(3<socket:[7]>, 0x7f, 0) = 9000 <0.0001>",
          SENDTO.format(100.3, DATA, 9000),
          '10 100.4 write(3<UDP:[1.2.3.4:5->1.2.3.4:6]>, ""..., 9000) = 9000 <0.0001>'],
         (5, 23), {}),
        # Calls that fail, and those to files, are none.
        ([SENDTO.format(100.0, DATA, 9000), SENDTO.format(100.1, DATA, "-1 EAGAIN (Resource ...)"),
          '10 100.2 write(1</dev/pts/0>, ""..., 10) = 10 <0.0001>'], (1, 1), {}),
        # A few messages through another socket are not the data.
        ([SENDTO.format(1.0, OTHER, 20), *[SENDTO.format(2.0, DATA, 9000)] * 100],
         (100, 100), {}),
        # A wait that its time has ended is a sleep, and a look is none.
        ([SENDMMSG.format(100.0), "10 100.01 clock_nanosleep(CLOCK_REALTIME, 0, {tv_sec=0,"
          " tv_nsec=1000000}, NULL) = 0 <0.4>", EPOLL.format(100.6, "[]", 3, 0, 0.003),
          EPOLL.format(100.7, "[]", 0, 0, "0.000007"), SENDMMSG.format(100.8)],
         (2, 34), {"clock_nanosleep": 1.0, "epoll_wait": 3000 / 3007}),
        # So is one that ends with a timer, and one that ends before it is none.
        ([SENDMMSG.format(100.0), SET.format(0), POLLED, SET.format(300), POLLED,
          SENDMMSG.format(100.9)], (2, 34), {"epoll_wait": 0.5}),
    ],
)  # fmt: skip
def test_what_was_sent_and_which_waits_a_time_ended_is_counted(lines, counts, timed_out):
    found = parse_calls(lines)
    assert (found.send_calls, found.messages) == counts
    calls = {one.name: one.timed_out for one in found.all}
    assert {name: calls[name] for name in timed_out} == pytest.approx(timed_out)


def test_of_a_message_it_is_known_of_how_many_pieces_it_is_and_whether_it_says_where_it_goes():
    sendmsg = (
        "10 100.0 sendmsg(3<socket:[7]>, {{msg_name={}, msg_namelen=16, msg_iov=[...],"
        " msg_iovlen=1024, msg_controllen=0, msg_flags=0}}, 0) = 8192 <0.000018>"
    )
    named, alone = (parse_calls([sendmsg.format(name)]) for name in ("{sa_family=2}", "NULL"))
    assert (named.pieces, named.unconnected) == (1024, True)
    assert (alone.pieces, alone.unconnected) == (1024, False)
    assert parse_calls([SENDTO.format(100.0, DATA, 9000)]).unconnected
    assert not parse_calls([SENDTO.format(1.0, DATA, 9).replace("0x7f, 16", "NULL, 0")]).unconnected


def test_where_nothing_was_sent_there_are_no_calls():
    assert parse_calls(["10 100.0 brk(NULL) = 0x1000 <0.000010>", "strace: hello"]) is None


def test_calls_are_counted_by_thread_and_name_with_what_they_take_beyond_being_looked_at():
    names = {10: "main", 11: "timer"}
    lines = """
        10 100.0 sendto(3<socket:[7]>, ""..., 9000, 0, NULL, 0) = 9000 <0.000030>
        10 100.1 getpid() = 10 <0.000010>
        10 100.2 openat(AT_FDCWD</home>, "/etc/hosts", O_RDONLY) = 5</etc/hosts> <0.000014>
        11 100.3 futex(0x7f, FUTEX_WAIT_PRIVATE, 2, NULL) = 0 <0.500000>
        11 100.4 futex(0x7f, FUTEX_WAIT_BITSET_PRIVATE, 0, {tv_sec=9, tv_nsec=1}, FUTEX_BITSET_MATCH_ANY) = -1 ETIMEDOUT (Connection timed out) <1.500000>
        10 100.6 sendto(4<socket:[8]>, ""..., 30, 0, NULL, 0) = -1 EAGAIN (Resource temporarily unavailable) <0.000012>
        10 101.0 sendto(3<socket:[7]>, ""..., 9000, 0, NULL, 0) = 9000 <0.000050>
    """  # noqa: E501
    found = parse_calls(textwrap.dedent(lines).strip().splitlines(), names)
    messages = {(one.tid, one.thread): one.messages for one in found.all if one.sends}
    assert messages == {(10, "main"): 2}
    calls = {(one.name, one.sends): one for one in found.all}
    assert calls["sendto", True].seconds == pytest.approx(4e-5)
    assert calls["sendto", False].count == 1  # it has sent nothing
    assert calls["openat", False].seconds == pytest.approx(4e-6)
    assert (calls["futex", False].timed_out, calls["futex", False].seconds) == (0.75, 0.0)


def test_who_wakes_whom_is_told_by_the_address_that_is_waited_at():
    lines = """
        10 100.0 sendto(3<socket:[7]>, ""..., 9000, 0, NULL, 0) = 9000 <0.000030>
        10 100.1 futex(0x7f, FUTEX_WAIT_PRIVATE, 2, NULL) = 0 <0.500000>
        12 100.2 futex(0x9f, FUTEX_WAKE_PRIVATE, 1) = 1 <0.000010>
        13 100.2 futex(0x7f, FUTEX_WAKE_PRIVATE, 1) = 0 <0.000010>
        11 100.6 futex(0x7f, FUTEX_WAKE_PRIVATE, 1) = 1 <0.000010>
    """
    assert parse_calls(textwrap.dedent(lines).strip().splitlines()).wakes == {11: (10,)}


# ---- What threads wait in ----


@pytest.mark.parametrize(
    ("call", "arguments", "timed"),
    [
        ("futex", "0x7f 0x80 0x1 0x0 0x0 0x0", False),
        ("futex", "0x7f 0x189 0x0 0x7ffc 0x0 0x0", True),
        ("epoll_wait", "0x4 0x7f 0x80 0xffffffff 0x0 0x8", False),
        ("epoll_wait", "0x4 0x7f 0x80 0xa 0x0 0x8", True),
        ("clock_nanosleep", "0x0 0x0 0x7f 0x0 0x0 0x0", True),
    ],
)
def test_the_kernel_says_what_a_thread_waits_in_and_if_a_time_ends_it(call, arguments, timed):
    assert doing(f"7 {arguments} 0x7ffc 0x7f01", {7: call}) == Blocked(call, timed)
    assert doing("running") is None


def test_every_call_that_is_waited_in_has_its_number():
    """Some have another name in stacks, or are no calls of newer machines."""
    known = {
        machine: {one.partition("=")[0] for one in numbers.split()}
        for machine, numbers in tomllib.loads(looks._FILE.read_text()).items()
    }
    of_stacks = {"mutex", "futex_wait", "packets", "fstatat"}
    older = """access chmod chown creat epoll_wait getdents link lstat mkdir open pause poll
        readlink rename rmdir select stat symlink unlink vfork"""
    assert set(stacks.WAITS) - known["x86_64"] == of_stacks
    assert set(stacks.WAITS) - known["aarch64"] == of_stacks | set(older.split())


def test_of_threads_that_stand_in_for_each_other_one_that_writes_tells_what_goes_on():
    """Go has one that sleeps meanwhile."""
    sleeps, writes, idle = (Blocked(name, False) for name in ("nanosleep", "write", "futex"))
    assert together({1: idle, 2: sleeps}) == sleeps
    assert together({1: writes, 2: sleeps, 3: idle}) == writes
    assert together({1: None, 2: sleeps}) is None


def test_a_wait_for_a_mutex_is_told_from_other_uses_of_a_futex():
    for arguments, call in (
        ("0x7f 0x80 0x2 0x0 0x0 0x0", "mutex"),
        ("0x7f 0x189 0x2 0x0 0x0 0xffffffff", "mutex"),  # Rust's
        ("0x7f 0x86 0x0 0x0 0x0 0x0", "mutex"),  # one that lends its priority
        ("0x7f 0x80 0x1 0x0 0x0 0x0", "futex"),
        ("0x7f 0x189 0x2 0x7ffc 0x0 0xffffffff", "futex"),  # until some time
        ("0x7f 0x81 0x2 0x0 0x0 0x0", "futex"),  # wakes others
    ):
        assert doing(f"7 {arguments} 0x7ffc 0x7f01", {7: "futex"}).call == call


# ---- What stacks are for ----

KERNEL, LIBC, PYTHON = "[kernel.kallsyms]", "/usr/lib/libc.so.6", "/usr/lib/libpython3.11.so"
LUA = "/usr/bin/lua5.4"
MAIN = ("main", "/home/my_sender")
ASYNCIO = "/usr/lib/python3.11/asyncio/base_events.py"


@pytest.mark.parametrize(
    ("frames", "kind"),
    [
        ([MAIN], "computes"),
        ([("__vfprintf_internal", LIBC), ("snprintf", LIBC), MAIN], "formats"),
        # What is printed is written; what is formatted to be printed, too.
        ([("__vfprintf_internal", LIBC), ("printf", LIBC), MAIN], "logs"),
        ([("__x64_sys_write", KERNEL), ("__write", LIBC), MAIN], "logs"),
        # Of a call that reads, what it converts and allocates is of reading.
        ([("____strtod_l_internal", LIBC), ("g_read", LUA), ("luaV_execute", LUA)], "logs"),
        ([("_int_malloc", LIBC), ("malloc", LIBC), ("g_read", LUA), ("luaV_execute", LUA)], "logs"),
        ([("__x64_sys_read", KERNEL), ("_IO_file_read", LIBC), ("g_read", LUA)], "logs"),
        # What the kernel does to send, it does for packets, but not for those of a resolver.
        ([("udp_sendmsg", KERNEL), ("__x64_sys_sendto", KERNEL), ("sendto", LIBC), MAIN], "sends"),
        ([("udp_sendmsg", KERNEL), ("__x64_sys_sendto", KERNEL), ("getaddrinfo", LIBC), MAIN],
         "looks-up"),
        # Page faults are of the code that has them, where that has a kind; else of new memory.
        ([("asm_exc_page_fault", KERNEL), ("deflate", "/usr/lib/libz.so"), MAIN], "formats"),
        ([("asm_exc_page_fault", KERNEL), ("memset", LIBC), MAIN], "fresh-memory"),
        ([("__memmove_avx", LIBC), MAIN], "copies"),
        ([("runtime.memmove", "/home/s"), ("fmt.Sprintf", "/home/s"), ("main.main", "/home/s")],
         "formats"),
        ([("runtime.futex", "/home/s"), ("runtime.chansend1", "/home/s")], "waits-for-thread"),
        ([("__x64_sys_epoll_wait", KERNEL), MAIN], "event-loop"),
        ([("__x64_sys_getsockopt", KERNEL), MAIN], "other-calls"),
        # An event loop has only what the program's own code has not.
        ([("task_step", "/usr/lib/_asyncio.so"), ("_PyEval_EvalFrame", PYTHON)], "event-loop"),
        ([("call_soon", ASYNCIO), ("main", "/home/sender.py"), ("run", ASYNCIO)], "event-loop"),
        ([("main", "/home/sender.py"), ("run", ASYNCIO)], "computes"),
        # What a program in Python calls its functions tells nothing: all of one that is traced
        # (sys.settrace) is slow, also that which sends.
        ([("trace", "/home/sender.py"), ("send", "/home/sender.py")], "computes"),
        ([("send", "/home/sender.py"), ("main", "/home/sender.py")], "computes"),
        ([("deepcopy", "/usr/lib/python3.11/copy.py"), ("main", "/home/sender.py")], "copies"),
        ([("sock_sendto", "socketmodule.c"), ("send", "/home/sender.py")], "sends"),
        ([("profiler_callback", "_lsprof.c"), ("main", "/home/sender.py")], "traced"),
        ([("[unknown]", "/lib/_lsprof.so"), ("main", "/home/sender.py")], "traced"),
        # A file of the kernel is a file, whatever makes what is read of it.
        ([("vsnprintf", KERNEL), ("seq_read", KERNEL), ("ksys_read", KERNEL), MAIN], "logs"),
        ([("do_syscall_64", KERNEL), ("__send", LIBC), ("std::fs::read", MAIN[1])], "sends"),
        ([("JSArray::SetLength", "/usr/bin/node"),
          ("processImmediate node:internal/timers:466:9", "/tmp/perf-2.map")], "event-loop"),
        # A callback that was compiled into the loop has no frame, but what it calls has.
        ([("v8::internal::JSArray::ArrayJoinConcatToSequentialString", "/usr/bin/node"),
          ("Builtins_ArrayPrototypeJoin", "/usr/bin/node"),
          ("processImmediate node:internal/timers:466:9", "/tmp/perf-2.map")], "computes"),
        ([("Builtins_RunMicrotasks", "/usr/bin/node"),
          ("processTicksAndRejections node:internal/process/task_queues:67:35", "/tmp/perf-2.map")],
         "event-loop"),
        # What it compiled may have the name of what was there before it; a loop has called it.
        ([("Builtins_RegExpMatchFast", "/usr/bin/node"), ("make node:streams", "/tmp/perf-2.map"),
          ("node::UDPWrap::OnRecv", "/usr/bin/node"), ("uv_run", "/usr/bin/node")], "computes"),
        ([("uv_run", "/usr/bin/node")], "event-loop"),
        ([("[unknown]", "/tmp/perf-26033.map")], "computes"),
    ],
)  # fmt: skip
def test_a_stack_is_for_its_innermost_frame_that_tells(frames: list[stacks.Frame], kind: str):
    assert told(frames).kind == kind


def test_code_that_is_made_while_it_runs_has_no_file_name():
    assert told([("[unknown]", "/tmp/perf-26033.map")]).what == "code made while it runs"


PERF = """\
my sender    10/11
\tffffffff81 udp_sendmsg+0x12 ([kernel.kallsyms])
\tffffffff82 __x64_sys_sendto ([kernel.kallsyms])
\t     10ac3 main+0x4 (/home/my_sender)

my sender    10/11
\t     10ac3 std::map<int, (anonymous namespace)::x>::find (/home/my_sender)

GC Thread#0    10/12
\t     10ac3 [unknown] (/usr/lib/libjvm.so)
"""


def test_samples_of_perf_are_counted_by_thread():
    found = of_perf(PERF.splitlines())
    assert {tid: its.name for tid, its in found.items()} == {11: "my sender", 12: "GC Thread#0"}
    assert dict(found[11].told) == {
        Told("sends", "sendto", "sendto"): 1,
        Told("computes", "std::map<int, "): 1,
    }
    assert [one.kind for one, _ in found[12].told] == ["garbage"]


SPY = """\
thread (26514): MainThread;<module> (/home/s.py:1);Queue.get (/usr/lib/python3.11/queue.py:154);lock_PyThread_acquire_lock (libpython3.11.so);PyThread_acquire_lock_timed (libpython3.11.so) 7
thread (26514): MainThread;<module> (/home/s.py:1);dumps (/usr/lib/python3.11/json/__init__.py:231) 5
thread (26514): MainThread;<module> (/home/s.py:1);sock_sendto (socketmodule.c:4381);sendto (libc.so.6) 3
thread (26559): Thread-1 (prod);run (/usr/lib/python3.11/threading.py:971);prod (/home/s.py:4) 2
no thread at all
"""  # noqa: E501


def test_samples_of_py_spy_are_counted_by_thread_with_lines_and_calls():
    found = of_py_spy(SPY.splitlines())
    main = {(one.kind, one.call): n for one, n in found[26514].told}
    assert main == {("waits-for-thread", ""): 7, ("formats", ""): 5, ("sends", "sendto"): 3}
    assert found[26514].sees == "calls"
    assert [(one.kind, one.what) for one, _ in found[26559].told] == [("computes", "prod (s.py)")]


@needs("node")
def test_node_that_names_what_it_compiles_leaves_nothing_behind(tmp_path: Path):
    with subprocess.Popen(["node", "-e", "0"], cwd=tmp_path, env={**os.environ,
                          **instruments.naming()}) as node:  # fmt: skip
        assert node.wait() == 0
    names = Path(f"/tmp/perf-{node.pid}.map")
    assert names.exists()
    instruments.forget_names([node.pid])
    assert not names.exists()
    assert list(tmp_path.iterdir()) == []


def test_of_code_that_was_made_at_one_place_the_latest_name_counts_if_it_is_ours(
    tmp_path: Path, monkeypatch
):
    names, theirs = Path(f"/tmp/perf-{2**31 - 1}.map"), tmp_path / "theirs"
    made = [f"\t 10{i} old+0x1 ({names})" for i in (0, 5)] + ["\t 108 main (/home/s)"]
    latest = [made[0], f"\t 105 new ({names})", made[2]]
    try:
        names.write_text("100 20 old\n105 8 new\nno line\nf0 10 before\n")
        assert instruments.latest_names([*made])[1:] == latest[1:]
        monkeypatch.setattr(instruments, "_MOST_NAMES", 8)
        assert instruments.latest_names([*made]) == made
        monkeypatch.undo()
        monkeypatch.setattr(os, "geteuid", lambda: names.stat().st_uid + 1)
        assert instruments.latest_names([*made]) == made
        monkeypatch.undo()
        names.rename(theirs)
        names.symlink_to(theirs)
        assert instruments.latest_names([*made]) == made
    finally:
        names.unlink()

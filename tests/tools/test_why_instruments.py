# SPDX-License-Identifier: BSD-3-Clause
"""What is read from the lines of strace, and which threads are taken for one."""

import itertools
import os
import textwrap

import pytest

from spead_tutorial.lab import Counters
from spead_tutorial.tools.why import following
from spead_tutorial.tools.why.calls import EVENTS, parse_calls

NOTHING = Counters("dummy", 0, 0, 0, 0, 0, 0)


def test_threads_that_come_and_go_stand_in_for_each_other(monkeypatch):
    numbers = itertools.count()
    monkeypatch.setattr(following.instruments, "threads", lambda pids: {next(numbers): None})
    short, long = (following.Follower(os.getpid(), 1.0) for _ in range(2))
    for _ in range(50):
        short.look(NOTHING)
    assert short.pooled
    monkeypatch.setattr(following.instruments, "threads", lambda pids: dict.fromkeys(range(50)))
    for _ in range(50):
        long.look(NOTHING)
    assert not long.pooled


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
         (5, 23, 0.4), {}),
        # Calls that fail, and those to files, are none.
        ([SENDTO.format(100.0, DATA, 9000), SENDTO.format(100.1, DATA, "-1 EAGAIN (Resource ...)"),
          '10 100.2 write(1</dev/pts/0>, ""..., 10) = 10 <0.0001>'], (1, 1, 0.0), {}),
        # A few messages through another socket are not the data.
        ([SENDTO.format(1.0, OTHER, 20), *[SENDTO.format(2.0, DATA, 9000)] * 100],
         (100, 100, 0.0), {}),
        # A call that another thread's cuts in two is one.
        (["10 100.00 sendmmsg(3<socket:[7]>, 0x7f, 17, 0 <unfinished ...>",
          "11 100.01 nanosleep({tv_sec=0, tv_nsec=5000000}, 0x7f <unfinished ...>",
          "10 100.02 <... sendmmsg resumed>) = 17 <0.02>",
          "11 100.03 <... nanosleep resumed>) = 0 <0.02>", SENDMMSG.format(100.04)],
         (2, 34, 0.04), {"nanosleep": 1.0}),
        # A wait that its time has ended is a sleep, and a look is none.
        ([SENDMMSG.format(100.0), "10 100.01 clock_nanosleep(CLOCK_REALTIME, 0, {tv_sec=0,"
          " tv_nsec=1000000}, NULL) = 0 <0.4>", EPOLL.format(100.6, "[]", 3, 0, 0.003),
          EPOLL.format(100.7, "[]", 0, 0, "0.000007"), SENDMMSG.format(100.8)],
         (2, 34, 0.8), {"clock_nanosleep": 1.0, "epoll_wait": 3000 / 3007}),
        # So is one that ends with a timer, and one that ends before it is none.
        ([SENDMMSG.format(100.0), SET.format(0), POLLED, SET.format(300), POLLED,
          SENDMMSG.format(100.9)], (2, 34, 0.9), {"epoll_wait": 0.5}),
        # Submissions to an io_uring are messages.
        (["10 100.0 io_uring_enter(4<anon_inode:[io_uring]>, 8, 0, 0, NULL, 8) = 8 <0.00001>",
          "10 100.1 io_uring_enter(4<anon_inode:[io_uring]>, 0, 1, IORING_ENTER_GETEVENTS, NULL, 8)"
          " = 0 <0.00001>"], (1, 8, 0.0), {}),
    ],
)  # fmt: skip
def test_what_was_sent_and_which_waits_a_time_ended_is_counted(lines, counts, timed_out):
    found = parse_calls(lines)
    assert (found.send_calls, found.messages, pytest.approx(found.seconds)) == counts
    calls = {one.name: one.timed_out for caller in found.callers for one in caller.calls}
    assert {name: calls[name] for name in timed_out} == pytest.approx(timed_out)


def test_new_memory_is_what_is_mapped_for_nobody_or_added_to_the_heap():
    mmap = "10 {} mmap(NULL, {}, PROT_READ|PROT_WRITE, MAP_PRIVATE{}, 0) = 0x7f00 <0.00001>"
    found = parse_calls([
        "10 99.0 brk(NULL) = 0x1000 <0.000010>", mmap.format(99.5, 999999, "|MAP_ANONYMOUS, -1"),
        SENDMMSG.format(100.0), mmap.format(100.1, 4096, "|MAP_ANONYMOUS, -1"),
        mmap.format(100.2, 8192, ", 5</etc/hosts>"), "10 100.3 brk(0x3000) = 0x3000 <0.000010>",
        "10 100.4 brk(0x1000) = 0x1000 <0.000010>", "10 100.4 brk(0x2000) = 0x2000 <0.000010>",
        SENDMMSG.format(100.5),
    ])  # fmt: skip
    assert found.mapped_bytes == 4096 + 0x2000 + 0x1000


def test_where_nothing_was_sent_there_are_no_calls():
    assert parse_calls(["10 100.0 brk(NULL) = 0x1000 <0.000010>", "strace: hello"]) is None


def test_calls_are_counted_by_thread_and_name_with_what_they_take_beyond_being_looked_at():
    names = {10: ("main", 0), 11: ("timer", 0)}
    lines = """
        10 100.0 sendto(3<socket:[7]>, ""..., 9000, 0, NULL, 0) = 9000 <0.000030>
        10 100.1 getpid() = 10 <0.000010>
        10 100.15 umask(022) = 022 <0.000010>
        10 100.2 openat(AT_FDCWD</home>, "/etc/hosts", O_RDONLY) = 5</etc/hosts> <0.000014>
        11 100.3 futex(0x7f, FUTEX_WAIT_PRIVATE, 2, NULL) = 0 <0.500000>
        11 100.3 write(6<anon_inode:[eventfd]>, ""..., 8) = 8 <0.000020>
        11 100.4 futex(0x7f, FUTEX_WAIT_BITSET_PRIVATE, 0, {tv_sec=9, tv_nsec=1}, FUTEX_BITSET_MATCH_ANY) = -1 ETIMEDOUT (Connection timed out) <0.003000>
        11 100.5 futex(0x7f, FUTEX_WAIT_PRIVATE, 2, {tv_sec=0, tv_nsec=1}) = 0 <0.001000>
        10 100.6 sendto(4<socket:[8]>, ""..., 30, 0, NULL, 0) = -1 EAGAIN (Resource temporarily unavailable) <0.000012>
        10 101.0 sendto(3<socket:[7]>, ""..., 9000, 0, NULL, 0) = 9000 <0.000050>
    """  # noqa: E501
    found = parse_calls(textwrap.dedent(lines).strip().splitlines(), names)
    main, timer = found.callers
    assert (main.name, main.messages, timer.name, timer.messages) == ("main", 2, "timer", 0)
    told = {
        (one.name, one.timed, one.sends): one for caller in found.callers for one in caller.calls
    }
    assert told["sendto", False, True].each_s == pytest.approx(2e-5)
    assert told["sendto", False, False].count == 1  # it has sent nothing
    assert told["openat", False, False].on == "/home"
    assert told["openat", False, False].each_s == pytest.approx(4e-6)
    assert told["write", False, False].on == EVENTS
    assert told["futex", True, False].timed_out == pytest.approx(0.75)
    assert told["futex", False, False].timed_out == 0.0
    together = parse_calls(textwrap.dedent(lines).strip().splitlines(), names, pooled=True)
    assert [one.messages for one in together.callers] == [2]

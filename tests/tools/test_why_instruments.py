# SPDX-License-Identifier: BSD-3-Clause
"""What is read from the lines of strace."""

import textwrap

import pytest

from spead_tutorial.tools.why.calls import EVENTS, parse_calls


def counted(lines: str):
    found = parse_calls(textwrap.dedent(lines).strip().splitlines())
    assert found is not None
    return found


def timed_out(found, name: str) -> float:
    """The part of the waits in a call that a time has ended."""
    (call,) = (one for caller in found.callers for one in caller.calls if one.name == name)
    return call.timed_out


def test_messages_are_what_sendmmsg_returns_and_one_for_each_other_call():
    found = counted("""
        10 100.000 sendmmsg(3<socket:[7]>, 0x7f, 17, 0) = 17 <0.000100>
        10 100.100 sendmmsg(3<socket:[7]>, 0x7f, 17, 0) = 3 <0.000100>
        10 100.200 sendmsg(3<socket:[7]>, 0x7f, 0) = 9000 <0.000100>
        10 100.300 sendto(3<socket:[7]>, ""..., 9000, 0, 0x7f, 16) = 9000 <0.000100>
        10 100.400 write(3<UDP:[1.2.3.4:5->1.2.3.4:6]>, ""..., 9000) = 9000 <0.000100>
    """)
    assert (found.send_calls, found.messages) == (5, 23)
    assert found.names[0] == "sendmmsg"
    assert found.seconds == pytest.approx(0.4)


def test_calls_that_fail_and_those_to_files_are_none():
    found = counted("""
        10 100.000 sendto(3<socket:[7]>, ""..., 9000, 0, 0x7f, 16) = 9000 <0.000100>
        10 100.100 sendto(3<socket:[7]>, ""..., 9000, 0, 0x7f, 16) = -1 EAGAIN (Resource temporarily unavailable) <0.000100>
        10 100.200 write(1</dev/pts/0>, ""..., 10) = 10 <0.000100>
    """)  # fmt: skip  # noqa: E501
    assert (found.send_calls, found.messages) == (1, 1)


def test_a_few_messages_through_another_socket_are_not_the_data():
    lines = ['10 1.0 sendto(4<socket:[8]>, ""..., 20, 0, NULL, 0) = 20 <0.000100>']
    lines += ['10 2.0 sendto(3<socket:[7]>, ""..., 9000, 0, NULL, 0) = 9000 <0.000100>'] * 100
    found = parse_calls(lines)
    assert found is not None
    assert (found.send_calls, found.seconds) == (100, 0.0)


def test_a_call_that_another_threads_cuts_in_two_is_one():
    found = counted("""
        10 100.000 sendmmsg(3<socket:[7]>, 0x7f, 17, 0 <unfinished ...>
        11 100.010 nanosleep({tv_sec=0, tv_nsec=5000000}, 0x7f <unfinished ...>
        10 100.020 <... sendmmsg resumed>) = 17 <0.020000>
        11 100.030 <... nanosleep resumed>) = 0 <0.020000>
        10 100.040 sendmmsg(3<socket:[7]>, 0x7f, 17, 0) = 17 <0.000100>
    """)
    assert (found.send_calls, found.messages) == (2, 34)
    assert timed_out(found, "nanosleep") == 1.0


def test_a_wait_that_its_time_has_ended_is_a_sleep_and_a_look_is_none():
    found = counted("""
        10 100.000 sendmmsg(3<socket:[7]>, 0x7f, 17, 0) = 17 <0.000100>
        10 100.010 clock_nanosleep(CLOCK_REALTIME, 0, {tv_sec=0, tv_nsec=1000000}, NULL) = 0 <0.400000>
        10 100.600 epoll_wait(4<anon_inode:[eventpoll]>, [], 128, 3) = 0 <0.003000>
        10 100.700 epoll_wait(4<anon_inode:[eventpoll]>, [], 128, 0) = 0 <0.000007>
        10 100.800 sendmmsg(3<socket:[7]>, 0x7f, 17, 0) = 17 <0.000100>
    """)  # fmt: skip  # noqa: E501
    assert timed_out(found, "clock_nanosleep") == 1.0
    assert timed_out(found, "epoll_wait") == pytest.approx(3000 / 3007)


def test_a_wait_that_ends_with_a_timer_is_a_sleep_and_one_that_ends_before_it_is_none():
    setting = "timerfd_settime(5<anon_inode:[timerfd]>, 0, {it_interval={tv_sec=0, tv_nsec=0},"
    setting += " it_value={tv_sec=%d, tv_nsec=%d}}, {it_interval={tv_sec=0, tv_nsec=0},"
    setting += " it_value={tv_sec=299, tv_nsec=9}}) = 0 <0.000010>"
    waiting = "epoll_wait(4<anon_inode:[eventpoll]>, [{events=EPOLLIN}], 128, -1) = 1 <0.000424>"
    sending = "sendmmsg(3<socket:[7]>, 0x7f, 17, 0) = 17 <0.000100>"
    lines = [sending, setting % (0, 434000), waiting, setting % (300, 0), waiting, sending]
    found = parse_calls(f"10 100.{i} {line}" for i, line in enumerate(lines))
    assert found is not None
    assert timed_out(found, "epoll_wait") == pytest.approx(0.5)


def test_new_memory_is_what_is_mapped_for_nobody_or_added_to_the_heap():
    found = counted("""
        10 99.0 brk(NULL) = 0x1000 <0.000010>
        10 99.5 mmap(NULL, 999999, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f00 <0.00001>
        10 100.000 sendmmsg(3<socket:[7]>, 0x7f, 17, 0) = 17 <0.000100>
        10 100.1 mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f00 <0.00001>
        10 100.2 mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, 5</etc/hosts>, 0) = 0x7f00 <0.00001>
        10 100.3 brk(0x3000) = 0x3000 <0.000010>
        10 100.4 brk(0x1000) = 0x1000 <0.000010>
        10 100.500 sendmmsg(3<socket:[7]>, 0x7f, 17, 0) = 17 <0.000100>
    """)  # fmt: skip  # noqa: E501
    assert found.mapped_bytes == 4096 + 0x2000


def test_submissions_to_an_io_uring_are_messages():
    found = counted("""
        10 100.0 io_uring_enter(4<anon_inode:[io_uring]>, 8, 0, 0, NULL, 8) = 8 <0.000010>
        10 100.1 io_uring_enter(4<anon_inode:[io_uring]>, 0, 1, IORING_ENTER_GETEVENTS, NULL, 8) = 0 <0.000010>
    """)  # fmt: skip  # noqa: E501
    assert (found.send_calls, found.messages) == (1, 8)


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
    assert found is not None
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
    assert together is not None
    assert [one.messages for one in together.callers] == [2]

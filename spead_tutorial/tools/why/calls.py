# SPDX-License-Identifier: BSD-3-Clause
"""Which system calls a program makes, from the lines of strace. No I/O, no clock."""

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from spead_tutorial.tools.why.facts import Call, Calls
from spead_tutorial.tools.why.stacks import WAITS

#: Calls that send, that read, and that end when a time has come, or sooner.
SENDS = ("sendmsg", "sendmmsg", "sendto", "write", "writev")
READS = ("recvfrom", "recvmsg", "recvmmsg", "read", "readv")
POLLS = ("select", "pselect6", "poll", "ppoll", "epoll_wait", "epoll_pwait", "epoll_pwait2")
SLEEPS = ("nanosleep", "clock_nanosleep", *POLLS)
FUTEX, TIMER = "futex", "timerfd_settime"
#: What is said of a call's arguments: of those that sleep how long, of those that send what of, of
#: the others addresses alone. Some machines lack some of them: a question mark lets strace pass
#: over those.
SHOWN = ",".join(f"?{name}" for name in (*SLEEPS, TIMER, "sendmsg", "writev"))

_LINE = re.compile(
    r"(?P<who>\d+) (?P<at>\d+\.\d+) (?P<name>\w+)\((?P<arguments>.*)"
    r" = (?P<value>-?\d+|0x[0-9a-f]+|\?)(?P<more>[ <].*?)??(?:<(?P<took>\d+\.\d+)>)?$"
)
_INTERVAL = re.compile(r"tv_sec=(\d+), tv_nsec=(\d+)")
_PIECES = re.compile(r"msg_iovlen=(\d+)|, (\d+)\)?$")
#: A wait that is shorter is a look whether there is something to do.
_LOOK_S = 1e-5
#: A wait that takes this part of what a timer was set to ends with that timer.
_ABOUT = 0.8
#: Of the times of a call the tenth part is shorter: what others on the machine add is left out.
_TENTH = 10


class Ended(msgspec.Struct):
    """A call that has ended."""

    who: int  # the thread
    at: float  # when it began
    name: str
    arguments: str
    value: int
    took: float
    timed_out: bool = False  # whether a time has ended it

    @property
    def socket(self) -> str:
        """What it is called for, if that is a socket or a file."""
        return self.arguments.partition(",")[0]

    @property
    def messages(self) -> int:
        """How many messages it was for."""
        if self.value < 0:
            return 0
        return self.value if self.name in ("sendmmsg", "recvmmsg") else 1


def parse_calls(lines: Iterable[str], names: Mapping[int, str] | None = None) -> Calls | None:
    """Count what strace wrote down of a sender; None where nothing was sent."""
    seen = read(lines)
    sent = [one for one in seen if _is_send(one)]
    through = Counter(one.socket for one in sent)
    # Those of one or two messages are for names, or for the kernel: no data goes through them.
    few = max(through.values(), default=0) / 20
    return counted(seen, [one for one in sent if through[one.socket] >= few], names)


def reads(seen: Iterable[Ended], inodes: Collection[int]) -> list[Ended]:
    """Return those calls that have read something from sockets, by the numbers of these."""
    marks = tuple(f":[{inode}]>" for inode in inodes)
    ours = (one for one in seen if one.name in READS and one.value > 0)
    return [one for one in ours if one.socket.endswith(marks)]


def counted(
    seen: Sequence[Ended], sent: Sequence[Ended], names: Mapping[int, str] | None = None
) -> Calls | None:
    """Count calls from the first to the last of those that send, or of a receiver's reads."""
    if not any(one.messages for one in sent):
        return None
    floor = min((one.took for one in seen if one.took > 0), default=0.0)
    first, last = min(one.at for one in sent), max(one.at for one in sent)
    ids = set(map(id, sent))
    # A read that finds nothing is one all the same.
    by_reads = {(one.name, one.socket) for one in sent if one.name in READS}
    groups: dict[tuple[int, str, bool], list[Ended]] = defaultdict(list)
    for one in seen:
        if first <= one.at <= last:
            sends = id(one) in ids or (one.name, one.socket) in by_reads
            groups[one.who, one.name, sends].append(one)
    return Calls(
        send_calls=len(sent),
        messages=sum(one.messages for one in sent),
        names=tuple(name for name, _ in Counter(one.name for one in sent).most_common()),
        pieces=round(statistics.median(map(_pieces, sent))),
        unconnected=2 * sum(map(_says_where, sent)) > len(sent),
        all=tuple(
            _call(who, (names or {}).get(who, ""), name, its, floor, sends=sends)
            for (who, name, sends), its in groups.items()
        ),
    )


def read(lines: Iterable[str]) -> list[Ended]:
    """Read what strace wrote down: each call of a thread, behind the thread's number."""
    timers: dict[int, float] = {}
    found = []
    for line in lines:
        if (match := _LINE.match(line)) is None:
            continue
        said, took = match["value"], float(match["took"] or 0.0)
        # Modes have a zero before them, and addresses that and an x.
        value = 0 if said == "?" else int(said, 16 if said.startswith("0x") else 10)
        who, name, arguments = int(match["who"]), match["name"], match["arguments"]
        one = Ended(who, float(match["at"]), name, arguments, value, took)
        if name == TIMER:
            timers[who] = _set_to(arguments)
        elif name in SLEEPS:
            one.timed_out = _timed_out(one, timers.get(who, 0.0))
        elif name == FUTEX:
            one.timed_out = "ETIMEDOUT" in (match["more"] or "")
        found.append(one)
    return found


def _call(
    tid: int, thread: str, name: str, group: Sequence[Ended], floor: float, *, sends: bool
) -> Call:
    took = sorted(one.took for one in group)
    by_time = sum(one.took for one in group if one.timed_out)
    is_wait = WAITS.get(name, "logs") != "logs" and not sends  # files are waited for seldom
    each_s = 0.0 if is_wait else max(0.0, took[len(took) // _TENTH] - floor)
    messages = sum(one.messages for one in group) if sends else 0
    timed_out = by_time / (sum(took) or 1.0)
    return Call(tid, thread, name, len(took), each_s * len(took), timed_out, messages, sends)


def _pieces(one: Ended) -> int:
    """Return of how many pieces of memory a message is gathered."""
    found = _PIECES.search(one.arguments) if one.name in ("sendmsg", "writev") else None
    return int(found[1] or found[2]) if found else 1


def _says_where(one: Ended) -> bool:
    if one.name == "sendto":
        return not re.search(r", NULL, 0\)?$", one.arguments)
    return bool(re.search(r"msg_name=[^N]", one.arguments))


def _is_send(one: Ended) -> bool:
    if one.name not in SENDS or one.value < 0:
        return False
    # A connected socket's, not a file's.
    to_socket = "<UDP" in one.socket or "<socket:" in one.socket
    return to_socket or one.name not in ("write", "writev")


def _timed_out(one: Ended, timer: float) -> bool:
    """Whether a time has ended a call: its own, or that of a timer."""
    if "nanosleep" in one.name:
        return True
    if one.took < _LOOK_S:
        return False
    return one.value == 0 or 0 < _ABOUT * timer <= one.took


def _set_to(arguments: str) -> float:
    """Return the seconds after which a timer ends, the second time among a call's arguments."""
    times = _INTERVAL.findall(arguments)[1:2]
    return int(times[0][0]) + int(times[0][1]) / 1e9 if times else 0.0

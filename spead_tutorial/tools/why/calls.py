# SPDX-License-Identifier: BSD-3-Clause
"""Which system calls a program makes, from the lines of strace. No I/O, no clock."""

import dataclasses
import itertools
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from spead_tutorial.tools.why.facts import Call, Caller, Calls
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

_WHO = r"(?:(?:\[pid +)?(?P<who>\d+)\]? +)?"
_LINE = re.compile(
    _WHO + r"(?P<at>\d+\.\d+) (?:<\.\.\. )?(?P<name>\w+)(?P<arguments>.*)"
    r" = (?P<value>-?\d+|0x[0-9a-f]+|\?)(?P<more>[ <].*?)??(?:<(?P<took>\d+\.\d+)>)?$"
)
_UNFINISHED = re.compile(
    _WHO + r"(?P<at>\d+\.\d+) (?P<name>\w+)\((?P<arguments>.*) <unfinished \.\.\.>$"
)
_RESUMED = re.compile(_WHO + r"\d+\.\d+ <\.\.\. (?P<name>\w+) resumed")
_INTERVAL = re.compile(r"tv_sec=(\d+), tv_nsec=(\d+)")
_PIECES = re.compile(r"msg_iovlen=(\d+)|, (\d+)\)?$")
_MOST_LINES = 500_000
#: A wait that is shorter is a look whether there is something to do.
_LOOK_S = 1e-5
#: A wait that takes this part of what a timer was set to ends with that timer.
_ABOUT = 0.8
#: Of the times of a call the tenth part is shorter: what others on the machine add is left out.
_TENTH = 10


@dataclasses.dataclass(slots=True)
class Ended:
    """A call that has ended."""

    who: str | None  # the thread, as strace names it
    at: float  # when it began
    name: str
    arguments: str
    value: int
    took: float
    timed_out: bool = False  # whether a time has ended it


def parse_calls(lines: Iterable[str], names: Mapping[int, str] | None = None) -> Calls | None:
    """Count what strace wrote down of a sender; None where nothing was sent."""
    seen = read(lines)
    sent = [one for one in seen if _is_send(one)]
    through = Counter(_socket_of(one) for one in sent)
    # Those of one or two messages are for names, or for the kernel: no data goes through them.
    few = max(through.values(), default=0) / 20
    return counted(seen, [one for one in sent if through[_socket_of(one)] >= few], names)


def reads(seen: Iterable[Ended], inodes: Collection[int]) -> list[Ended]:
    """Return those calls that have read something from sockets, by the numbers of these."""
    marks = tuple(f":[{inode}]>" for inode in inodes)
    return [
        one for one in seen
        if one.name in READS and one.value > 0 and _socket_of(one).endswith(marks)
    ]  # fmt: skip


def counted(
    seen: Sequence[Ended], sent: Sequence[Ended], names: Mapping[int, str] | None = None
) -> Calls | None:
    """Count calls from the first to the last of those that send, or of a receiver's reads."""
    if not sum(map(_messages, sent)):
        return None
    floor = min((one.took for one in seen if one.took > 0), default=0.0)
    first, last = min(one.at for one in sent), max(one.at for one in sent)
    ids = set(map(id, sent))
    # A read that finds nothing is one all the same.
    by_reads = {(one.name, _socket_of(one)) for one in sent if one.name in READS}
    ids |= {id(one) for one in seen if (one.name, _socket_of(one)) in by_reads}
    by_thread: dict[int, dict[tuple[str, bool], list[Ended]]] = defaultdict(dict)
    for one in seen:
        if first <= one.at <= last:
            its = by_thread[int(one.who or 0)]
            its.setdefault((one.name, id(one) in ids), []).append(one)
    callers = [
        Caller(
            tid=who,
            name=(names or {}).get(who, ""),
            messages=sum(_messages(one) for (_, sends), its in groups.items() if sends
                         for one in its),
            calls=tuple(_call(*key, its, floor) for key, its in groups.items()),
        )
        for who, groups in by_thread.items()
    ]  # fmt: skip
    found = Counter(one.name for one in sent)
    return Calls(
        send_calls=found.total(),
        messages=sum(map(_messages, sent)),
        names=tuple(name for name, _ in found.most_common()),
        pieces=round(statistics.median(map(_pieces, sent))),
        unconnected=2 * sum(map(_says_where, sent)) > len(sent),
        callers=tuple(sorted(callers, key=lambda caller: -caller.messages)),
    )


def read(lines: Iterable[str]) -> list[Ended]:
    """Read what strace wrote down: each call, when it has ended."""
    begun: dict[tuple[str | None, str], tuple[str, float]] = {}
    timers: dict[str | None, float] = {}
    found = []
    for line in itertools.islice(lines, _MOST_LINES):
        if (cut := _UNFINISHED.match(line)) is not None:
            begun[cut["who"], cut["name"]] = cut["arguments"], float(cut["at"])
            continue
        match = _LINE.match(line)
        if match is None:
            continue
        arguments, at = match["arguments"].removeprefix("("), float(match["at"])
        if (rest := _RESUMED.match(line)) is not None:
            first, at = begun.pop((rest["who"], rest["name"]), ("", at))
            arguments = first + arguments
        said, took = match["value"], float(match["took"] or 0.0)
        # Modes have a zero before them, and addresses that and an x.
        value = 0 if said == "?" else int(said, 16 if said.startswith("0x") else 10)
        one = Ended(match["who"], at, match["name"], arguments, value, took)
        if one.name == TIMER:
            timers[one.who] = _set_to(arguments)
        elif one.name in SLEEPS:
            one.timed_out = _timed_out(one, timers.get(one.who, 0.0))
        elif one.name == FUTEX:
            one.timed_out = "ETIMEDOUT" in (match["more"] or "")
        found.append(one)
    return found


def _call(name: str, sends: bool, group: Sequence[Ended], floor: float) -> Call:
    took = sorted(one.took for one in group)
    by_time = sum(one.took for one in group if one.timed_out)
    is_wait = WAITS.get(name, "logs") != "logs" and not sends  # files are waited for seldom
    each_s = 0.0 if is_wait else max(0.0, took[len(took) // _TENTH] - floor)
    return Call(name, len(took), each_s * len(took), by_time / (sum(took) or 1.0), sends)


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
    to_socket = "<UDP" in _socket_of(one) or "<socket:" in _socket_of(one)
    return to_socket or one.name not in ("write", "writev")


def _socket_of(one: Ended) -> str:
    return one.arguments.partition(",")[0]


def _messages(one: Ended) -> int:
    """Return how many messages a call was for."""
    if one.value < 0:
        return 0
    return one.value if one.name in ("sendmmsg", "recvmmsg") else 1


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

# SPDX-License-Identifier: BSD-3-Clause
"""Which system calls a sender makes: strace, and what its lines say."""

import re
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence

from spead_tutorial.tools.why.facts import Calls

__all__ = ["MISSING", "attached", "calls", "found", "started"]

#: What to say where there is no strace.
MISSING = "Its calls were not seen, as there is no strace: apt install strace."

_SEND = ("sendmsg", "sendmmsg", "sendto", "write", "writev", "io_uring_enter")
_SLEEP = ("nanosleep", "clock_nanosleep", "select", "pselect6", "poll", "ppoll", "epoll_wait",
          "epoll_pwait", "epoll_pwait2")  # fmt: skip
_TIMER = "timerfd_settime"
_MEMORY = ("mmap", "brk")
#: Some machines lack some of them: a question mark lets strace pass over those.
_WATCHED = ",".join(f"?{name}" for name in (*_SEND, *_SLEEP, _TIMER, *_MEMORY))
#: What is said of a call's arguments: of those that sleep how long, of the others addresses alone,
#: as thousands of packets would have to be written out.
_SHOWN = ",".join(f"?{name}" for name in (*_SLEEP, _TIMER))
_OPTIONS = ("-f", "-qq", "-ttt", "-T", "-y", "-s", "0", "-e", f"trace={_WATCHED}", "-e",
            f"verbose={_SHOWN}", "-e", "signal=none", "--seccomp-bpf")  # fmt: skip

_LINE = re.compile(
    r"(?:\[pid +(?P<a>\d+)\] |(?P<b>\d+) +)?(?P<at>\d+\.\d+) (?:<\.\.\. )?(?P<name>\w+)"
    r"(?P<arguments>.*)"
    r" = (?P<value>-?\d+|0x[0-9a-f]+|\?)(?: .*?)?(?:<(?P<took>\d+\.\d+)>)?$"
)
_UNFINISHED = re.compile(
    r"(?:\[pid +(?P<a>\d+)\] |(?P<b>\d+) +)?\d+\.\d+ (?P<name>\w+)\((?P<arguments>.*)"
    r" <unfinished \.\.\.>$"
)
_RESUMED = re.compile(
    r"(?:\[pid +(?P<a>\d+)\] |(?P<b>\d+) +)?\d+\.\d+ <\.\.\. (?P<name>\w+) resumed"
)
#: A wait that is shorter is a look whether there is something to do.
_LOOK_S = 1e-5
#: A wait that takes this part of what a timer was set to ends with that timer.
_ABOUT = 0.8
_INTERVAL = re.compile(r"tv_sec=(\d+), tv_nsec=(\d+)")


def found() -> str | None:
    """Return where strace is; None where there is none."""
    return shutil.which("strace")


def started(output: str, argv: Sequence[str]) -> list[str]:
    """Return how a program is started so that its calls are written down."""
    return [found() or "strace", *_OPTIONS, "-o", output, "--", *argv]


def attached(output: str, pids: Sequence[int]) -> list[str]:
    """Return the command that writes down the calls of processes that run already."""
    options = [option for option in _OPTIONS if option != "--seccomp-bpf"]
    ids = [word for pid in pids for word in ("-p", str(pid))]
    return [found() or "strace", *options, "-o", output, *ids]


def calls(lines: Iterable[str]) -> Calls | None:
    """Count what strace wrote down."""
    begun: dict[tuple[str | None, str], str] = {}
    seen: list[tuple[float, str, str, int, float]] = []
    timers: dict[str | None, float] = {}
    for line in lines:
        if (cut := _UNFINISHED.match(line)) is not None:
            begun[cut["a"] or cut["b"], cut["name"]] = cut["arguments"]
            continue
        match = _LINE.match(line)
        if match is None:
            continue
        arguments = match["arguments"]
        if (rest := _RESUMED.match(line)) is not None:
            arguments = begun.pop((rest["a"] or rest["b"], rest["name"]), "") + arguments
        value = 0 if match["value"] == "?" else int(match["value"], 0)
        name, took = match["name"], float(match["took"] or 0.0)
        slept = 0.0
        if name == _TIMER:
            timers[match["a"] or match["b"]] = _asked(arguments, 1)
        elif name in _SLEEP:
            slept = _slept(name, arguments, value, took, timers.get(match["a"] or match["b"], 0.0))
        seen.append((float(match["at"]), name, arguments, value, slept))
    seen = [one for one in seen if one[1] not in _SEND or _is_send(*one[1:4])]
    through = Counter(_socket_of(one[2]) for one in seen if one[1] in _SEND)
    # Those of one or two messages are for names, or for the kernel: no data goes through them.
    few = max(through.values(), default=0) / 20
    seen = [one for one in seen if one[1] not in _SEND or through[_socket_of(one[2])] >= few]
    times = [at for at, name, _, _, _ in seen if name in _SEND]
    if not times:
        return None
    names: Counter[str] = Counter()
    messages = sleeps = mapped = 0
    asked, end_of_memory = 0.0, 0
    for at, name, arguments, value, slept in seen:
        if name == "brk":
            if end_of_memory and times[0] <= at <= times[-1]:
                mapped += max(0, value - end_of_memory)
            end_of_memory = value
        if not times[0] <= at <= times[-1]:
            continue
        if name in _SEND:
            names[name] += 1
            messages += value if name == "sendmmsg" else _submitted(name, arguments)
        elif name in _SLEEP:
            sleeps, asked = sleeps + (slept > 0), asked + slept
        elif name == "mmap" and value > 0:
            mapped += _length(arguments)
    common = tuple(name for name, _ in names.most_common())
    span = times[-1] - times[0]
    return Calls(names.total(), messages, common, sleeps, asked, span, mapped)


def _is_send(name: str, arguments: str, value: int) -> bool:
    if name not in _SEND or value < 0:
        return False
    if name in ("write", "writev"):  # a connected socket's, not a file's
        return "<UDP" in arguments or "<socket:" in arguments
    return name != "io_uring_enter" or _submitted(name, arguments) > 0


def _socket_of(arguments: str) -> str:
    return arguments.partition(",")[0]


def _submitted(name: str, arguments: str) -> int:
    """Return how many messages a call was for."""
    if name != "io_uring_enter":
        return 1
    words = arguments.split(", ")
    return int(words[1]) if len(words) > 1 and words[1].isdecimal() else 0


def _slept(name: str, arguments: str, value: int, took: float, timer: float) -> float:
    """Return for how long a call asked to sleep, by itself or by a timer; else nothing."""
    if "nanosleep" in name:
        # Until a time, where it says so, and not for so long.
        return took if "TIMER_ABSTIME" in arguments else _asked(arguments, 0)
    if took < _LOOK_S:
        return 0.0
    if value == 0:  # its own time was up
        return took
    return timer if 0 < _ABOUT * timer <= took else 0.0


def _asked(arguments: str, place: int) -> float:
    """Return one of the times among a call's arguments, in seconds."""
    times = _INTERVAL.findall(arguments)[place : place + 1]
    return int(times[0][0]) + int(times[0][1]) / 1e9 if times else 0.0


def _length(arguments: str) -> int:
    """Return how much memory a call maps that is nobody's: no file, and no shared ring."""
    words = arguments.lstrip("(").split(", ")
    if "MAP_ANONYMOUS" not in arguments or "PROT_WRITE" not in arguments:
        return 0
    return int(words[1]) if words[1].isdecimal() else 0

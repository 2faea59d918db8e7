# SPDX-License-Identifier: BSD-3-Clause
"""What a sender is watched with: ``/proc``, strace and perf, and what they say."""

import contextlib
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from spead_tutorial.tools.why.facts import Calls, Thread, Traffic

# ---- /proc: a process, those that it started, and their threads ----

_TICKS = os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[int]:
    """Return a process and all that it started, directly or not, as far as they still run."""
    found, unseen = [], [pid]
    while unseen:
        one = unseen.pop()
        found.append(one)
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{one}/task"):
                text = Path(f"/proc/{one}/task/{thread}/children").read_text()
                unseen += [int(child) for child in text.split()]
    return found


def threads(pids: list[int]) -> dict[int, Thread]:
    """Read what all threads of some processes did since they began, if they still run."""
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(OSError, IndexError, ValueError):
                    found[int(name)] = _thread(int(name), f"/proc/{pid}/task/{name}")
    return found


def _thread(tid: int, path: str) -> Thread:
    stat = _read(f"{path}/stat")
    name = stat[stat.index("(") + 1 : stat.rindex(")")]
    fields = stat[stat.rindex(")") + 2 :].split()
    user, system = int(fields[11]) / _TICKS, int(fields[12]) / _TICKS
    status = dict(line.split(":\t", 1) for line in _read(f"{path}/status").splitlines())
    runnable = None
    with contextlib.suppress(OSError, ValueError):
        ran_ns, waited_ns, _ = map(int, _read(f"{path}/schedstat").split())
        runnable = waited_ns / 1e9
        # Exact, where the two others are whole ticks: they say how it is divided.
        share = user / (user + system) if user + system else 0.5
        user, system = ran_ns / 1e9 * share, ran_ns / 1e9 * (1 - share)
    return Thread(
        tid,
        name,
        user,
        system,
        runnable,
        int(status["voluntary_ctxt_switches"]),
        int(status["nonvoluntary_ctxt_switches"]),
        int(fields[7]),
        _cores(status["Cpus_allowed_list"].strip()),
    )


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _cores(text: str) -> tuple[int, ...]:
    cores: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        cores += range(int(first), int(last or first) + 1)
    return tuple(cores)


def between(before: dict[int, Thread], after: dict[int, Thread]) -> tuple[Thread, ...]:
    """Return what threads did between two looks; one that was not there before began at nothing."""
    done = [_since(before[tid], now) if tid in before else now for tid, now in after.items()]
    return tuple(sorted(done, key=lambda thread: -thread.cpu_s))


def _since(then: Thread, now: Thread) -> Thread:
    runnable = None
    if now.runnable_s is not None and then.runnable_s is not None:
        runnable = now.runnable_s - then.runnable_s
    return dataclasses.replace(
        now,
        user_s=max(0.0, now.user_s - then.user_s),
        system_s=max(0.0, now.system_s - then.system_s),
        runnable_s=runnable,
        voluntary=now.voluntary - then.voluntary,
        involuntary=now.involuntary - then.involuntary,
        faults=now.faults - then.faults,
    )


# ---- strace: which system calls a sender makes ----

#: What to say where there is no strace.
NO_STRACE = "Its calls were not seen, as there is no strace: apt install strace."

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
_STRACE = ("-f", "-qq", "-ttt", "-T", "-y", "-s", "0", "-e", f"trace={_WATCHED}", "-e",
            f"verbose={_SHOWN}", "-e", "signal=none")  # fmt: skip

_WHO = r"(?:(?:\[pid +)?(?P<who>\d+)\]? +)?"
_LINE = re.compile(
    _WHO + r"(?P<at>\d+\.\d+) (?:<\.\.\. )?(?P<name>\w+)(?P<arguments>.*)"
    r" = (?P<value>-?\d+|0x[0-9a-f]+|\?)(?: .*?)?(?:<(?P<took>\d+\.\d+)>)?$"
)
_UNFINISHED = re.compile(_WHO + r"\d+\.\d+ (?P<name>\w+)\((?P<arguments>.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(_WHO + r"\d+\.\d+ <\.\.\. (?P<name>\w+) resumed")
#: A wait that is shorter is a look whether there is something to do.
_LOOK_S = 1e-5
#: A wait that takes this part of what a timer was set to ends with that timer.
_ABOUT = 0.8
_INTERVAL = re.compile(r"tv_sec=(\d+), tv_nsec=(\d+)")


def strace(output: str, argv: Sequence[str], pid: int | None) -> list[str] | None:
    """Return what writes down the calls of a program that it starts, or of one that runs already.

    None where there is no strace.
    """
    path = shutil.which("strace")
    if path is None:
        return None
    what = ["--seccomp-bpf", "--", *argv] if pid is None else ["-p", str(pid)]
    return [path, *_STRACE, "-o", output, *what]


def parse_calls(lines: Iterable[str]) -> Calls | None:
    """Count what strace wrote down."""
    begun: dict[tuple[str | None, str], str] = {}
    seen: list[tuple[float, str, str, int, float]] = []
    timers: dict[str | None, float] = {}
    for line in lines:
        if (cut := _UNFINISHED.match(line)) is not None:
            begun[cut["who"], cut["name"]] = cut["arguments"]
            continue
        match = _LINE.match(line)
        if match is None:
            continue
        arguments = match["arguments"]
        if (rest := _RESUMED.match(line)) is not None:
            arguments = begun.pop((rest["who"], rest["name"]), "") + arguments
        value = 0 if match["value"] == "?" else int(match["value"], 0)
        name, took = match["name"], float(match["took"] or 0.0)
        slept = 0.0
        if name == _TIMER:
            timers[match["who"]] = _asked(arguments, 1)
        elif name in _SLEEP:
            slept = _slept(name, arguments, value, took, timers.get(match["who"], 0.0))
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
            mapped += _mapped(arguments)
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


def _mapped(arguments: str) -> int:
    """Return how much memory a call maps that is nobody's: no file, and no shared ring."""
    words = arguments.lstrip("(").split(", ")
    if "MAP_ANONYMOUS" not in arguments or "PROT_WRITE" not in arguments:
        return 0
    return int(words[1]) if words[1].isdecimal() else 0


# ---- perf: how much a sender gets from memory, by counters of the processor ----

_EVENT = "cache-misses"  # of the last cache, as perf names it for every processor
_LINE_BYTES = 64
_PATIENCE_S = 5.0
_NO_PERF = "there is no perf: apt install linux-perf"
_UNSUPPORTED = "this machine shows no hardware counters, as most virtual ones"
_NOTHING = "perf counted nothing, for want of time or of permission (kernel.perf_event_paranoid)"


def parse_traffic(text: str) -> Traffic:
    """Read what ``perf stat -x,`` wrote."""
    found = re.search(rf"^([^,\n]*),[^,\n]*,{_EVENT}(:u)?,", text, re.M)
    if found is None:
        return Traffic(None, False, _NOTHING)
    if not found[1].isdigit():
        return Traffic(None, False, _UNSUPPORTED)
    return Traffic(int(found[1]) * _LINE_BYTES, found[2] is not None, "")


@contextlib.contextmanager
def traffic(pid: int) -> Iterator[list[Traffic]]:
    """Count what a process and what it starts get from memory, for the time of a block."""
    made: list[Traffic] = []
    perf = shutil.which("perf")
    if perf is None:
        made.append(Traffic(None, False, _NO_PERF))
        yield made
        return
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "counts")
        command = [perf, "stat", "-x", ",", "-e", _EVENT, "-o", str(output), "-p", str(pid)]
        nothing = subprocess.DEVNULL
        with subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing) as process:
            try:
                yield made
            finally:
                process.send_signal(signal.SIGINT)  # it writes what it has counted
                try:
                    process.wait(_PATIENCE_S)
                except subprocess.TimeoutExpired:
                    process.kill()
        made.append(parse_traffic(output.read_text() if output.exists() else ""))

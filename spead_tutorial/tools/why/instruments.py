# SPDX-License-Identifier: BSD-3-Clause
"""The tools that look at a program: strace, perf and py-spy, and what they say."""

import bisect
import contextlib
import itertools
import os
import re
import shutil
import stat
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from spead_tutorial.tools.why import stacks
from spead_tutorial.tools.why.facts import Call, Calls
from spead_tutorial.tools.why.stacks import FUTEX, WAITS, Sampled

# ---- strace ----

#: Calls that send, that read, and that end when a time has come, or sooner.
SENDS = ("sendmsg", "sendmmsg", "sendto", "write", "writev")
READS = ("recvfrom", "recvmsg", "recvmmsg", "read", "readv")
POLLS = ("select", "pselect6", "poll", "ppoll", "epoll_wait", "epoll_pwait", "epoll_pwait2")
SLEEPS = ("nanosleep", "clock_nanosleep", *POLLS)
TIMER = "timerfd_settime"
#: What is said of a call's arguments: of those that sleep how long, of those that send what of, of
#: the others addresses alone. Some machines lack some of them: a question mark lets strace pass
#: over those.
_SHOWN = ",".join(f"?{name}" for name in (*SLEEPS, TIMER, "sendmsg", "writev"))
_STRACE = ("-ff", "-qq", "-ttt", "--syscall-times=ns", "-y", "-s", "0", "-e", f"verbose={_SHOWN}",
           "-e", "abbrev=all", "-e", "signal=none")  # fmt: skip
_LINE = re.compile(
    r"(?P<who>\d+) (?P<at>\d+\.\d+) (?P<name>\w+)\((?P<arguments>.*)"
    r" = (?P<value>-?\d+|0x[0-9a-f]+|\?)(?P<more>[ <].*?)??(?:<(?P<took>\d+\.\d+)>)?$"
)
_INTERVAL = re.compile(r"it_value=\{tv_sec=(\d+), tv_nsec=(\d+)")
_PIECES = re.compile(r"msg_iovlen=(\d+)|, (\d+)\)?$")
_TO_SOMEWHERE = re.compile(r"msg_name=[^N]|, 0x[0-9a-f]+, (?:16|28)\)?$")
#: A wait that is shorter is a look whether there is something to do. One that takes that part of
#: what a timer was set to ends with it. Of the times of a call the tenth part is shorter: what
#: others on the machine add is left out.
_LOOK_S, _ABOUT, _TENTH = 1e-5, 0.8, 10
_MOST_LINES = 500_000


def strace(folder: Path, pids: Sequence[int] = ()) -> list[str] | None:
    """Return what writes down the calls of a program, or of some that run; None without strace."""
    path = shutil.which("strace")
    what = [word for pid in pids for word in ("-p", str(pid))] or ["--"]
    return None if path is None else [path, *_STRACE, "-o", str(folder / "strace"), *what]


def strace_lines(folder: Path) -> Iterator[str]:
    """Yield what it wrote, which has a file for each thread, behind the number of the thread."""
    for path in folder.glob("strace.*"):
        with path.open(errors="replace") as lines:
            for line in itertools.islice(lines, _MOST_LINES):
                yield f"{path.suffix[1:]} {line}"


class Ended(msgspec.Struct):
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
        is_many = self.name in ("sendmmsg", "recvmmsg")
        return 0 if self.value < 0 else self.value if is_many else 1

    @property
    def sends(self) -> bool:
        # A connected socket's, not a file's.
        to_socket = "<UDP" in self.socket or "<socket:" in self.socket
        is_write = self.name in ("write", "writev")
        return self.name in SENDS and self.value >= 0 and (to_socket or not is_write)


def read(lines: Iterable[str]) -> list[Ended]:
    """Read what strace wrote down: each call of a thread, behind the thread's number."""
    timers: dict[int, float] = defaultdict(float)
    found = []
    for line in lines:
        if (match := _LINE.match(line)) is None:
            continue
        said, took = match["value"], float(match["took"] or 0.0)
        # Modes have a zero before them, and addresses that and an x.
        value = 0 if said == "?" else int(said, 16 if said.startswith("0x") else 10)
        who, name, arguments = int(match["who"]), match["name"], match["arguments"]
        one = Ended(who, float(match["at"]), name, arguments, value, took)
        if name == TIMER and (times := _INTERVAL.search(arguments)):
            timers[who] = int(times[1]) + int(times[2]) / 1e9
        elif name in SLEEPS:
            by_timer = value == 0 or 0 < _ABOUT * timers[who] <= took
            one.timed_out = "nanosleep" in name or (took >= _LOOK_S and by_timer)
        elif name == FUTEX:
            one.timed_out = "ETIMEDOUT" in (match["more"] or "")
        found.append(one)
    return found


def parse_calls(lines: Iterable[str], names: Mapping[int, str] | None = None) -> Calls | None:
    seen = read(lines)
    sent = [one for one in seen if one.sends]
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

    waiting, wakes = defaultdict[str, set[int]](set), defaultdict[int, set[int]](set)
    for one in seen:  # the socket is an address here
        if one.name == FUTEX and "WAIT" in one.arguments:
            waiting[one.socket].add(one.who)
        elif one.name == FUTEX and one.value > 0:
            wakes[one.who] |= waiting[one.socket]

    def call(who: int, name: str, sends: bool, its: Sequence[Ended]) -> Call:
        took = sorted(one.took for one in its)
        is_wait = WAITS.get(name, "logs") != "logs" and not sends  # files are waited for seldom
        each_s = 0.0 if is_wait else max(0.0, took[len(took) // _TENTH] - floor)
        timed_out = sum(one.took for one in its if one.timed_out) / (sum(took) or 1.0)
        messages, thread = sum(one.messages for one in its) * sends, (names or {}).get(who, "")
        return Call(who, thread, name, len(took), each_s * len(took), timed_out, messages, sends)

    return Calls(
        send_calls=len(sent),
        messages=sum(one.messages for one in sent),
        names=tuple(name for name, _ in Counter(one.name for one in sent).most_common()),
        pieces=round(statistics.median(map(_pieces, sent))),
        unconnected=2 * sum(bool(_TO_SOMEWHERE.search(one.arguments)) for one in sent) > len(sent),
        all=tuple(call(*key, its) for key, its in groups.items()),
        wakes={who: tuple(sorted(woken)) for who, woken in wakes.items() if woken},
    )


def _pieces(one: Ended) -> int:
    found = _PIECES.search(one.arguments) if one.name in ("sendmsg", "writev") else None
    return int(found[1] or found[2]) if found else 1


# ---- Profiles ----

#: Samples a second, at no multiple of what programs wait for, and bytes of each stack.
_RATE, _PYTHON_RATE, _STACK = "997", "397", "8192"
_PATIENCE_S, _READING_S = 15.0, 20.0
_MOST_NAMES = 1 << 22  # bytes of names of compiled code that are read
#: What programs are run by, by the name of the file: in the words of the report.
LANGUAGES = {
    "python": "Python", "pypy": "Python", "node": "JavaScript", "java": "Java", "php": "PHP",
    "ruby": "Ruby", "perl": "Perl", "lua": "Lua", "tclsh": "Tcl", "bash": "shell", "dash": "shell",
    "sh": "shell", "zsh": "shell", "dotnet": "C#",
}  # fmt: skip
#: Those whose compiled code keeps frame pointers, where an unwinder by tables finds nothing.
_BY_POINTERS = ("Java", "JavaScript", "Go")
#: What has an interpreter tell perf the names of what it compiles, and keep frame pointers.
NAMING = {
    "NODE_OPTIONS": "--perf-basic-prof-only-functions --interpreted-frames-native-stack",
    "JAVA_TOOL_OPTIONS": "-XX:+IgnoreUnrecognizedVMOptions -XX:+PreserveFramePointer"
    " -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit",
}
_NAME = re.compile(r"^([0-9a-f]+) ([0-9a-f]+) (.*)$", re.M)
_NAMED = re.compile(r"^(\s+)([0-9a-f]+) .* \((/tmp/perf-\d+\.map)\)$")


def language(pid: int) -> str:
    """Return what a process is written in, as far as its program tells; or nothing."""
    path, name = Path(f"/proc/{pid}/exe"), ""
    with contextlib.suppress(OSError):
        name = LANGUAGES.get(re.sub(r"[\d.-].*$", "", os.path.basename(os.readlink(path))), "")
        with path.open("rb") as program:
            name = name or "Go" * (b"Go\0\0" in program.read(1 << 13))
    return name


def naming() -> dict[str, str]:
    return {key: f"{os.environ.get(key, '')} {value}".strip() for key, value in NAMING.items()}


def forget_names(pids: Sequence[int]) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            Path(f"/tmp/perf-{pid}.map").unlink()


def py_spy() -> str | None:
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if beside.exists() else shutil.which("py-spy")


def profile(
    pids: Sequence[int], folder: Path, seconds: float, names: Mapping[int, str]
) -> tuple[dict[int, Sampled] | None, list[str]]:
    """Sample processes for some time; return the samples of each thread, and what was not seen.

    Threads have the names that are given: py-spy has others.
    """
    commands, spied, data = list[list[str]](), folder / "python", folder / "perf.data"
    languages = {pid: language(pid) for pid in pids}
    if (spy := py_spy()) is not None and "Python" in languages.values():
        python = max(pid for pid in pids if languages.pop(pid, "") == "Python")
        words = ["--native", "-f", "raw", "-t", "-F", "--full-filenames", "-r", _PYTHON_RATE]
        words += ["-d", str(max(1, round(seconds))), "-o", str(spied)]
        commands.append([spy, "record", *words, "-p", str(python)])
    if languages and (perf := shutil.which("perf")) is not None:
        graph = "fp" if {*_BY_POINTERS} & {*languages.values()} else f"dwarf,{_STACK}"
        words = ["-q", "-e", "cpu-clock", "-F", _RATE, "--call-graph", graph, "-o", str(data)]
        # A program of its own, which begins when perf looks, and with which perf ends.
        words += ["-p", ",".join(map(str, languages)), "--", "sleep", str(seconds)]
        commands.append([perf, "record", *words])
    said, none = "", subprocess.DEVNULL
    with contextlib.ExitStack() as stack, contextlib.suppress(subprocess.TimeoutExpired):
        running = list[subprocess.Popen[str]]()
        for words in commands:
            one = subprocess.Popen(
                words, stdin=none, stdout=none, stderr=subprocess.PIPE, errors="replace"
            )
            running.append(stack.enter_context(one))
            stack.callback(one.kill)
        time.sleep(seconds)
        for one in running:
            said += one.communicate(timeout=_PATIENCE_S)[1]
    found = stacks.of_perf(latest_names(_script(data))) if data.exists() else {}
    if spied.exists():
        its = stacks.of_py_spy(spied.read_text(errors="replace").splitlines())
        for tid, samples in its.items():
            found[tid] = replace(samples, name=names.get(tid, samples.name))
    return found or None, [] if found else [_reason(said)]


def latest_names(lines: list[str]) -> list[str]:
    """Give code that was compiled the name that it had last: perf takes any that was there."""
    found = {i: one for i, line in enumerate(lines) if (one := _NAMED.match(line))}
    names = dict[tuple[str, int], str]()
    for path in {one[3] for one in found.values()}:
        asked = sorted({int(one[2], 16) for one in found.values() if one[3] == path})
        for begin, size, name in _NAME.findall(_text(Path(path))):
            first, end = int(begin, 16), int(begin, 16) + int(size, 16)
            within = slice(*(bisect.bisect_left(asked, at) for at in (first, end)))
            names.update({(path, at): name for at in asked[within]})
    for i, one in found.items():
        name = names.get((one[3], int(one[2], 16)))
        lines[i] = lines[i] if name is None else f"{one[1]}{one[2]} {name} ({one[3]})"
    return lines


def _text(path: Path) -> str:
    """Read what lies where everybody may write, if this user has put it there."""
    with contextlib.suppress(OSError):
        it = path.lstat()
        is_ours = stat.S_ISREG(it.st_mode) and it.st_uid == os.geteuid()
        if is_ours and it.st_size <= _MOST_NAMES:
            return path.read_text(errors="replace")
    return ""


def _script(path: Path) -> list[str]:
    command = ["perf", "script", "-i", str(path), "--no-inline", "-F", "comm,pid,tid,ip,sym,dso"]
    with contextlib.suppress(subprocess.TimeoutExpired, OSError):
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False,
            timeout=_READING_S, env=os.environ | {"DEBUGINFOD_URLS": ""},
        )  # fmt: skip
        return done.stdout.decode(errors="replace").splitlines()
    return []


def _reason(said: str) -> str:
    why = "there is no perf: apt install linux-perf"
    if shutil.which("perf") is not None:
        lines = filter(None, (line.strip(" .:") for line in said.splitlines()))
        why = f"perf or py-spy saw none: {next(lines, 'it was over too soon')}"
    if "aranoid" in said:
        why = "perf may not look: sysctl kernel.perf_event_paranoid is above 2"
    return f"What its own code does was not seen, as {why}."

# SPDX-License-Identifier: BSD-3-Clause
"""What a sample of a thread's stack was for: its kind, and where. No I/O, no clock."""

import functools
import importlib.resources
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a program can be slow for: `kinds.toml` has them all, and says what is in them."""

    words: str
    check: str = ""
    chapters: tuple[int, int] = (4, 7)
    of_receivers: str = ""
    in_: dict[str, str] = msgspec.field(name="in", default_factory=dict)
    calls: str = ""
    waits: str = ""
    frames: str = ""
    anywhere: str = ""
    loops: str = ""
    weak: str = ""
    lines: str = ""
    threads: str = ""


_FILE = importlib.resources.files(__package__).joinpath("kinds.toml")
#: In the order of the bar.
KINDS = msgspec.toml.decode(_FILE.read_bytes(), type=dict[str, Kind])
OWN, LOCK, OTHER, INPUT = "computes", "waits-for-thread", "other-calls", "waits-for-input"
SENDS, READS, IDLE, LOOP = "sends", "reads", "waits-for-packets", "event-loop"
ROOM, TRACED, SPINS = "waits-for-room", "traced", "spins"
#: What a thread waits in for another; that which wants a mutex is no call of its own.
FUTEX, MUTEX = "futex", "mutex"
#: The kind of each system call, and of each that is waited in.
CALLS = {call: kind for kind, one in KINDS.items() for call in one.calls.split()}
WAITS = {call: kind for kind, one in KINDS.items() for call in one.waits.split()}

#: A frame: its symbol, and the library or file that it is of.
Frame = tuple[str, str]
#: How the kernel's symbols, and those of the C library, name a system call.
_CALL = re.compile(r"^(?:__(?:x64|arm64|riscv|s390x)_|__do_|__se_|_{0,3}|k)sys_(\w+)$")
_ENTERS = re.compile(r"^(?:__GI_+)?(?:libc_|__libc_|__)?(\w+?)(?:64)?(?:@.*)?$")
#: Functions of it that are another call for the kernel.
_OTHERWISE = {"send": "sendto", "recv": "recvfrom"}
_KERNEL, _UNKNOWN = "[kernel", "[unknown]"
#: Interpreters, within which the program's own code is run, and builtins of Node's, which it calls
#: where it has no frame of its own; and code that is made while it runs.
_EVALUATES = re.compile(
    r"_PyEval_EvalFrame|^execute_ex|^vm_exec|^rb_vm_exec|^Perl_runops|^luaV_execute|^TEBCresume"
    r"|^caml_interprete|^Interpreter|^execute_command|^Builtins_(?!CEntry)"
)
_MADE = re.compile(r"perf-\d+\.map|^//anon|\[anon|jitted")
_MARKS = re.compile(r"^(?:LazyCompile|JS|Function|Script|Eval|Builtin|BytecodeHandler):[*^~]?")
_LIBRARY = re.compile(
    r"\.so\b|^\[|^/usr/lib|^/lib|/(?:node|java|ruby|perl|php|lua|tclsh|python|ocamlrun)[\d.]*$"
)
_PYTHONS = re.compile(r"/lib/python[\d.]+t?/(?!site-packages|dist-packages)(.*)$")


class Told(msgspec.Struct, frozen=True):
    kind: str
    what: str  # the call, function or line
    call: str = ""  # the system call that it was in, if it was in one

    @property
    def is_in_kernel(self) -> bool:
        return bool(self.call) and self.kind != SPINS  # the clock is read without it


class Sampled(msgspec.Struct, frozen=True):
    """The samples of one thread, of times with a core."""

    name: str
    pid: int = 0
    told: tuple[tuple[Told, int], ...] = ()
    sees: str = ""  # of what is done in the kernel: "all", or "calls", or nothing

    @property
    def total(self) -> int:
        return sum(n for _, n in self.told)

    def of(self, kind: str) -> int:
        return sum(n for one, n in self.told if one.kind == kind)

    def within(self, call: str) -> str:
        """Return what most samples in a call are for; nothing where none were."""
        found = Counter({one.kind: n for one, n in self.told if one.call == call})
        return found.most_common(1)[0][0] if found else ""


@functools.cache
def _matching(text: str, field: str) -> str | None:
    for kind, pattern in _patterns(field).items():
        if pattern.search(text):
            return kind
    return None


@functools.cache
def _patterns(field: str) -> dict[str, re.Pattern[str]]:
    return {kind: re.compile(its) for kind, one in KINDS.items() if (its := getattr(one, field))}


def _of_line(file: str, symbol: str) -> str | None:
    """Return the kind of a line of Python's library; none of a line of the program's."""
    found = _PYTHONS.search(file)
    return None if found is None else _matching(f"{found[1]}:{symbol.rpartition('.')[2]}", "lines")


def _is_own(symbol: str, library: str) -> bool:
    if library.endswith(".py"):
        return _PYTHONS.search(library) is None
    return bool(_MADE.search(library) or _EVALUATES.search(symbol)) or not _LIBRARY.search(library)


def told(frames: Sequence[Frame]) -> Told:
    call = next((found[1] for symbol, _ in frames if (found := _CALL.match(symbol))), "")
    if not call:  # where the kernel is not seen, what enters it tells
        name, library = next((one for one in frames if _KERNEL not in one[1]), ("", ""))
        entered = _ENTERS.match(name) if _LIBRARY.search(library) else None
        name = _OTHERWISE.get(entered[1], entered[1]) if entered else ""
        call = name if name in CALLS or name in WAITS else ""
    kind = _kind(frames, call)
    return Told(kind, _where(frames, kind, call), call)


def _kind(frames: Sequence[Frame], call: str) -> str:
    names = [_name(symbol, library) for symbol, library in frames]
    every = [_matching(name, "anywhere") for name in names]
    if "looks-up" in every:
        return "looks-up"
    for kind in (SENDS, READS):  # whatever the kernel does to send or read a packet
        at, pairs = _patterns("frames")[kind], zip(names, frames, strict=True)
        if any(at.search(name) for name, (_, of) in pairs if _KERNEL in of):
            return kind
    if (kind := CALLS.get(call, "")) in (SENDS, READS):
        return kind
    found = next(filter(None, every), None)
    if found is not None:
        return found
    weak, is_own = None, False
    for name, (symbol, library) in zip(names, frames, strict=True):
        found = _matching(name, "frames") or _of_line(library, symbol)
        if found is None and not is_own:
            found = _matching(name, "loops")
        if found is not None and not (is_own and found in (LOOP, READS)):
            return found
        weak = weak or _matching(name, "weak")
        if _is_own(symbol, library):
            is_own = True
            if library.endswith(".py"):
                break
    if call:
        return CALLS.get(call, OTHER)
    return weak or OWN


def _name(symbol: str, library: str) -> str:
    """Return what tells of a frame: not what a program in Python calls its own functions."""
    if library.endswith(".py") and _is_own(symbol, library):
        return ""
    name = symbol if symbol != _UNKNOWN else library
    return f"{name} {library}" if "ld-" in library else name


def _where(frames: Sequence[Frame], kind: str, call: str) -> str:
    """Name the place of a stack: its call, or the function of the program, or of a library."""
    if call:
        return call
    for symbol, library in frames:
        if library.endswith(".py"):
            if kind != OWN or not _PYTHONS.search(library):
                return f"{symbol} ({library.rpartition('/')[2]})"
        elif kind == OWN and _MADE.search(library) and symbol == _UNKNOWN:
            break
        elif symbol != _UNKNOWN and not symbol.startswith("0x"):
            return symbol.partition("(")[0] or symbol
    library = frames[0][1].rpartition("/")[2] if frames else ""
    return "code made while it runs" if _MADE.search(library) else library


# ---- What profilers wrote ----

#: A sample: the numbers of its thread and process, the thread's name, its stack, and how often.
_Sample = tuple[int, int, str, list[Frame], int]
_HEAD = re.compile(r"^\s*(.*?)\s+(\d+)/(\d+)\s*:?\s*$")
_FRAME = re.compile(r"^\s+[0-9a-f]+ (.*) \(([^()]*(?:\([^()]*\))?)\)$")
_MOST_LINES, _MOST_FRAMES = 1_000_000, 127
_THREAD = re.compile(r"^thread \((?:0x)?(\w+)\)(?:: (.*))?$")
_LINE = re.compile(r"^(?P<symbol>.*) \((?P<file>.*?)(?::\d+)?\)$")


def of_perf(lines: Iterable[str]) -> dict[int, Sampled]:
    """Count the samples of each thread that ``perf script`` wrote."""
    samples = list(_of_perf(itertools.islice(lines, _MOST_LINES)))
    has_kernel = any(_KERNEL in library for *_, frames, _ in samples for _, library in frames)
    return _counted(samples, "all" if has_kernel else "")


def of_py_spy(lines: Iterable[str]) -> dict[int, Sampled]:
    """Count the samples of each thread that py-spy wrote, which end where the kernel is entered."""
    return _counted(_of_py_spy(lines), "calls")


def _counted(samples: Iterable[_Sample], sees: str) -> dict[int, Sampled]:
    counts: dict[int, Counter[Told]] = defaultdict(Counter)
    names: dict[int, tuple[str, int]] = {}
    for tid, pid, name, frames, n in samples:
        names[tid] = name, pid
        one = told(frames)
        if (group := _matching(name, "threads")) is not None:
            one = replace(one, kind=group)
        counts[tid][one] += n
    return {tid: Sampled(*names[tid], tuple(found.items()), sees) for tid, found in counts.items()}


def _of_perf(lines: Iterable[str]) -> Iterator[_Sample]:
    tid, pid, name, frames = 0, 0, "", list[Frame]()
    for line in lines:
        if (frame := _FRAME.match(line)) is not None:
            if len(frames) < _MOST_FRAMES:
                frames.append((_MARKS.sub("", frame[1].partition("+0x")[0]), frame[2]))
        elif (head := _HEAD.match(line)) is not None:
            if frames:
                yield tid, pid, name, frames, 1
            tid, pid, name, frames = int(head[3]), int(head[2]), head[1], []
    if frames:
        yield tid, pid, name, frames, 1


def _of_py_spy(lines: Iterable[str]) -> Iterator[_Sample]:
    for line in lines:
        stack, _, count = line.rpartition(" ")
        first, *words = stack.split(";")
        thread = _THREAD.match(first)
        if thread is not None and count.isdigit():
            tid = int(thread[1], 10 if thread[1].isdigit() else 16)
            yield tid, 0, thread[2] or "", [_python(word) for word in reversed(words)], int(count)


def _python(word: str) -> Frame:
    found = _LINE.match(word)
    symbol, file = (found["symbol"], found["file"]) if found else (word, "")
    return _UNKNOWN if symbol.startswith("0x") else symbol, file

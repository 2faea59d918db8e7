# SPDX-License-Identifier: BSD-3-Clause
"""What a sender's own code does, and whether it only reads the clock: perf's samples."""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from spead_tutorial.tools.why import instruments
from spead_tutorial.tools.why.facts import UNSEEN, Sampled

_RATE = "997"  # samples a second, at no multiple of what programs wait for
_READING_S = 20.0
_LINE = re.compile(r"^\s*(?P<tid>\d+)\s+[0-9a-f]+ (?P<symbol>.*) \((?P<library>[^()]*)\)$")
_MOST_LINES = 1_000_000
_MOST_PLACES = 8
_KERNELS = "[vdso]"
#: What libraries call that by which programs read the clock.
_CLOCK = re.compile(
    r"clock_gettime|gettimeofday|nanotime|perf_counter|monotonic|steady_clock|system_clock"
    r"|Instant|_PyTime|hrtime|Stopwatch|currentTimeMillis|walltime|rdtsc",
    re.IGNORECASE,
)
#: From this part of a thread's samples in the kernel's code that reads the clock, it spins: nobody
#: asks for the time so often to use it.
_SPINS = 0.1
#: How many times as long as that code may what asks for the time take: compiled, and interpreted.
_COMPILED, _INTERPRETED = 3.0, 12.0
_INTERPRETERS = re.compile(
    r"/(?:lib)?(?:python|node|ruby|perl|lua|php|jvm|v8|julia)[\w.-]*$|^\[JIT\]|^//anon"
    r"|perf-\d+\.map$|_math\.|/time\.cpython|jitted"
)


def parse(
    lines: Iterable[str], names: Mapping[int, tuple[str, int]], *, pooled: bool = False
) -> tuple[Sampled, ...]:
    """Count the samples of each thread that ``perf script`` wrote, busiest first."""
    found: dict[int, Counter[tuple[str, str]]] = {}
    for number, line in enumerate(lines):
        match = _LINE.match(line)
        if number > _MOST_LINES:
            break
        if match is not None:
            place = match["symbol"].partition("+0x")[0], match["library"]
            found.setdefault(0 if pooled else int(match["tid"]), Counter())[place] += 1
    return tuple(
        Sampled(
            *names.get(tid, ("", 0)),
            samples=places.total(),
            clock=_spinning(places),
            places=tuple(
                (symbol, library.rpartition("/")[2], count)
                for (symbol, library), count in places.most_common(_MOST_PLACES)
            ),
        )
        for tid, places in sorted(found.items(), key=lambda item: -item[1].total())
    )


def _spinning(places: Counter[tuple[str, str]]) -> int:
    """Return how many samples are of a loop that reads the clock, the code around that included."""
    read = sum(count for (_, library), count in places.items() if library == _KERNELS)
    if read < _SPINS * places.total():
        return 0
    found = 0
    for (symbol, library), count in places.items():
        most = (_INTERPRETED if _INTERPRETERS.search(library) else _COMPILED) * read
        if library == _KERNELS or _CLOCK.search(symbol) or count <= most:
            found += count
    return found


class Profile:
    def __init__(self, process: "subprocess.Popen[bytes] | None") -> None:
        self._process = process
        self.lines: list[str] = []
        self.why = UNSEEN["no-perf"]  # what to say where there are none

    def is_over(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def sampled(
        self, names: Mapping[int, tuple[str, int]], *, pooled: bool = False
    ) -> tuple[Sampled, ...] | str:
        """Return the samples of each thread, or say why it could not look; there may be none."""
        looked = self._process is not None and self._process.returncode == 0
        return parse(self.lines, names, pooled=pooled) if looked or self.lines else self.why


@contextlib.contextmanager
def profile(pids: Sequence[int], seconds: float) -> Iterator[Profile]:
    """Sample the own code of processes for some time, for which they have to run."""
    perf = shutil.which("perf")
    if perf is None:
        yield Profile(None)
        return
    with tempfile.TemporaryDirectory() as folder:
        output = str(Path(folder, "perf.data"))
        words = ["-q", "-e", "cpu-clock:u", "-F", _RATE, "-o", output]
        words += ["-p", ",".join(map(str, pids))]
        # A program of its own, which begins when perf looks, and with which perf ends.
        process = instruments.begun(perf, "record", *words, "--", "sleep", str(seconds))
        made = Profile(process)
        try:
            yield made
        finally:
            said = instruments.ended(process)
        made.lines, made.why = _read(perf, output), _reason(said)


def _read(perf: str, output: str) -> list[str]:
    command = [perf, "script", "-i", output, "--no-inline", "-F", "tid,ip,sym,dso"]
    with contextlib.suppress(subprocess.TimeoutExpired, OSError):
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False,
            timeout=_READING_S, env=os.environ | {"DEBUGINFOD_URLS": ""},
        )  # fmt: skip
        return done.stdout.decode(errors="replace").splitlines()
    return []


def _reason(said: str) -> str:
    lines = [line.strip(" .:") for line in said.splitlines()]
    lines = [line for line in lines if line not in ("", "Error")]
    if not lines or "No such process" in said:
        return UNSEEN["perf-too-late"]
    why = lines[0]
    if any("aranoid" in line or "ermission" in line for line in lines):
        why = "sysctl kernel.perf_event_paranoid is above 2"
    return UNSEEN["perf-forbidden"].format(why=why)

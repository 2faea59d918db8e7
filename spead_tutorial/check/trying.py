# SPDX-License-Identifier: BSD-3-Clause
"""Trying a sender that a reader wrote: it runs once, slowly, and every packet is looked at."""

import contextlib
import functools
import importlib.resources
import linecache
import os
import re
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from spead_tutorial.chapters.catalogue import Chapter, SenderExercise
from spead_tutorial.check.packets import (
    RATE,
    RECEIVERS,
    SENDER,
    SENDERS,
    Arrived,
    Wanted,
    array_fault,
    first_fault,
)
from spead_tutorial.lab import PORT, Lab
from spead_tutorial.measure.baselines import started
from spead_tutorial.measure.programs import Done, Launch, ProgramError, ProgramOptions, finish

#: Slow enough for a receiver in Python, and for a heap to be in flight while the next is prepared.
_BITS_PER_S = 160_000_000
_LIMIT_S = 30.0
_ATTEMPTS = 5
_LOOK_S = 0.1
_BUFFER, _LARGEST = 1 << 22, 1 << 16
_MOST_PACKETS = 20000  # which are kept, of a sender that never ends: more than are wanted of any

#: What a packet is marked with, which the socket module does not know: its destination, its time.
_TO, _AT = (socket.IPPROTO_IP, 8), (socket.SOL_SOCKET, 35)
_MARKS = 256  # bytes of them, at most

#: What programs are told, of what they take: more heaps than there are in flight, no whole number
#: of batches, and more than a sample has values; few where they have their usual size.
_SHAPE = ProgramOptions(300, 8000, 1472, streams=3)
_FEW_HEAPS = 3


# ---- In C ----


def compiled(source: Path, folder: Path) -> Path:
    """Compile a sender in C, against the library that is installed, and the chapters' report."""
    compiler = shlex.split(os.environ.get("CC", "")) or ["cc"]
    if shutil.which(compiler[0]) is None:
        raise ProgramError(
            f"there is no C compiler {compiler[0]!r}: install one (apt install gcc), or name it in"
            " CC"
        )
    if shutil.which("pkg-config") is None:
        raise ProgramError(
            "there is no pkg-config, which knows where the library is: apt install pkg-config"
        )
    flags = _run("pkg-config", "--cflags", "--libs", "spead_tutorial")
    where = _run("pkg-config", "--variable=libdir", "spead_tutorial")
    if flags.returncode != 0 or where.returncode != 0:
        raise ProgramError(
            "pkg-config knows no library spead_tutorial: install it, see 'Use the core from C' in"
            " the documentation"
        )
    shared = importlib.resources.files("spead_tutorial").joinpath("chapters")
    program = folder / source.stem
    made = _run(
        *compiler,
        *("-std=c11", "-O2", "-D_GNU_SOURCE", f"-I{shared}"),
        *map(str, (source, shared.joinpath("report.c"), shared.joinpath("command_line.c"))),
        *("-o", str(program)),
        *shlex.split(flags.stdout),
        f"-Wl,-rpath,{where.stdout.strip()}",
        *("-lpthread", "-lm"),
    )
    if made.returncode != 0:
        lines = [line.strip() for line in made.stderr.splitlines() if line.strip()]
        wrong = [line for line in lines if "error:" in line or "undefined reference" in line]
        first = wrong[:1] or lines[-1:] or [f"{source.name}: it cannot be compiled"]
        raise ProgramError(first[0])
    return program


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, check=False, capture_output=True, text=True, errors="replace")


# ---- Running it ----


def started_as(program: Path, chapter: Chapter, options: ProgramOptions) -> Launch:
    """Return how a program of anyone's is started, with what the chapter's are told."""
    interpreter = [sys.executable] if program.suffix == ".py" else []
    arguments = options.arguments(chapter)
    if "a" in chapter.accepted:
        arguments += [f"--sender={SENDER}", f"--senders={SENDERS}", f"--rate={RATE}"]
        arguments += [f"{host}:{PORT}" for host in RECEIVERS]
    return started([*interpreter, str(program)], arguments)


def fault(exercise: SenderExercise, program: Path) -> str | None:
    """Run a sender in a lab of its own, and say what is wrong with what it sends, if anything."""
    chapter = exercise.chapter
    options = _options(chapter)
    wanted = Wanted(
        options.heaps or chapter.heaps,
        options.heap_size or chapter.heap_size,
        options.packet_size or chapter.packet_size,
        exercise.is_random,
    )
    with Lab("loopback", receiver=True) as lab:
        of_array = "a" in chapter.accepted
        v6 = lab.address6 is not None and not of_array
        make_socket = functools.partial(lab.socket, socket.AF_INET6 if v6 else socket.AF_INET)
        any_address = "::" if v6 else "0.0.0.0", lab.port + of_array * SENDER
        for _ in range(_ATTEMPTS):
            destination = (lab.address, lab.port) if "d" in chapter.accepted else None
            argv = started_as(program, chapter, options)(destination)
            before = lab.receiver.arrivals()
            # Chapter 2's goes to an address of loopback, of which localhost may be another.
            anywhere = collecting(make_socket, any_address, marked=of_array)
            with anywhere as arrived, lab.limited(_BITS_PER_S):
                done = finish(lab.run, program.stem, argv, _LIMIT_S)
            dropped = (lab.receiver.arrivals() - before).no_room
            if done.status != 0:
                return with_line(done, str(program))
            if not dropped:
                if of_array:
                    return array_fault(arrived, wanted)
                return first_fault((one.datagram for one in arrived), wanted)
    return (
        f"the receiver had no room for {dropped} packets, {_ATTEMPTS} times: this machine is"
        " busy, try again"
    )


def _options(chapter: Chapter) -> ProgramOptions:
    """Return as much of what to tell a program as it lets itself be told."""
    takes = chapter.accepted
    sizes = "H" in takes
    return ProgramOptions(
        heaps=(_SHAPE.heaps if sizes else _FEW_HEAPS) if "n" in takes else None,
        heap_size=_SHAPE.heap_size if sizes else None,
        packet_size=_SHAPE.packet_size if sizes and "p" in takes else None,
        streams=_SHAPE.streams if "s" in takes else None,
    )


@contextlib.contextmanager
def collecting(
    make_socket: Callable[..., socket.socket], address: tuple[str, int], *, marked: bool
) -> Iterator[list[Arrived]]:
    """Take all that is sent to an address meanwhile; yield the list that all goes into."""
    arrived: list[Arrived] = []
    with make_socket() as receiver, make_socket() as last:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        if marked:
            receiver.setsockopt(*_TO, 1)
            receiver.setsockopt(*_AT, 1)
        receiver.bind(address)
        here = "::1" if receiver.family == socket.AF_INET6 else "127.0.0.1"

        def receive() -> None:
            while (came := receiver.recvmsg(_LARGEST, _MARKS))[0]:
                if len(arrived) < _MOST_PACKETS:
                    arrived.append(_arrived(came[0], came[1]))

        thread = threading.Thread(target=receive, daemon=True)
        thread.start()
        try:
            yield arrived
        finally:
            while thread.is_alive():  # there may be no room for the first that says it is over
                last.sendto(b"", (here, address[1]))
                thread.join(_LOOK_S)


def _arrived(datagram: bytes, marks: Iterable[tuple[int, int, bytes]]) -> Arrived:
    found = {(level, kind): data for level, kind, data in marks}
    to, at = (found.get(mark) for mark in (_TO, _AT))
    if to is None or at is None:
        return Arrived(datagram)
    seconds, ns = struct.unpack("@ll", at)
    return Arrived(datagram, socket.inet_ntoa(to[-4:]), seconds * 10**9 + ns)


def with_line(done: Done, file: str) -> str:
    """Say how a program ended, and at which line of its file."""
    lines = re.findall(rf'^  File "{re.escape(file)}", line (\d+)', done.errors, re.M)
    if not lines:
        return done.complaint
    text = linecache.getline(file, int(lines[-1])).strip()
    return f"{done.complaint} (line {lines[-1]}{': ' * bool(text)}{text})"

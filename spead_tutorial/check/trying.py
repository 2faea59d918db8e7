# SPDX-License-Identifier: BSD-3-Clause
"""Trying a sender that a reader wrote: it runs once, slowly, and every packet is looked at."""

import contextlib
import dataclasses
import functools
import importlib.resources
import linecache
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from spead_tutorial import wire
from spead_tutorial.chapters.catalogue import Chapter, SenderExercise
from spead_tutorial.flavour import CTRL_STREAM_STOP, DESCRIPTOR_ID, STREAM_CTRL_ID
from spead_tutorial.lab import Lab
from spead_tutorial.measure.baselines import started
from spead_tutorial.measure.programs import Done, Launch, ProgramError, ProgramOptions, finish

_TIMESTAMP, _SAMPLES = 0x1600, 0x3300
_NAMES = {_TIMESTAMP: "timestamp", _SAMPLES: "adc_samples"}
_ADDRESS_BITS = 40
_LOWEST, _HIGHEST = -100, 99  # of random samples

#: Slow enough for a receiver in Python, and for a heap to be in flight while the next is prepared.
_BITS_PER_S = 160_000_000
_LIMIT_S = 30.0
_ATTEMPTS = 5
_LOOK_S = 0.1
_BUFFER, _LARGEST = 1 << 22, 1 << 16
_MOST_PACKETS = 20000  # which are kept, of a sender that never ends: more than are wanted of any

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


# ---- What its packets say ----


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """What a sender was told."""

    heaps: int  # how many heaps, bytes of samples in each, and bytes in a packet at most
    heap_size: int
    packet_size: int
    # whether samples are random; otherwise they are the number of their heap, which wraps
    random: bool = False


class _FaultError(Exception):
    """What is wrong, in one line."""


def _fault(place: str, expected: object, found: object) -> _FaultError:
    return _FaultError(f"{place}: expected {expected}, found {found}")


def first_fault(datagrams: Iterable[bytes], wanted: Wanted) -> str | None:
    """Say what is wrong first with what arrived, in any order and cut; None where nothing is."""
    try:
        heaps = _sorted(datagrams, wanted.packet_size)
        for i in range(wanted.heaps):
            if i + 1 not in heaps:
                n = i + sum(not _is_end(packets) for packets in heaps.values())
                raise _fault(f"heap {i + 1} is missing", f"{wanted.heaps} heaps", n)
            _check_heap(i, heaps.pop(i + 1), wanted)
        # Nothing is left but the heap that ends the stream.
        for cnt in sorted(heaps):
            if not _is_end(heaps[cnt]):
                raise _fault(f"heap {cnt}", "the end of the stream", "one more heap")
        if len(heaps) != 1:
            return f"expected one heap that ends the stream (get_end), found {len(heaps) or 'none'}"
    except _FaultError as fault:
        return str(fault)
    return None


def _sorted(datagrams: Iterable[bytes], packet_size: int) -> dict[int, list[wire.Packet]]:
    """Return the packets of each heap, by its count, in the order of their payload."""
    heaps: dict[int, list[wire.Packet]] = defaultdict(list)
    for number, datagram in enumerate(datagrams, 1):
        try:
            packet = wire.parse(datagram)
        except wire.WireError as error:
            raise _FaultError(f"packet {number} of all is no SPEAD packet: {error}") from None
        if packet.faults:
            raise _FaultError(f"packet {number} of all is malformed: {packet.faults[0]}")
        assert packet.heap_cnt is not None  # as nothing is wrong with it
        if len(datagram) > packet_size:
            place = f"heap {packet.heap_cnt}, byte {packet.payload_offset} of its payload"
            most = f"packets of {packet_size} bytes at most"
            raise _fault(place, most, f"one of {len(datagram)}")
        heaps[packet.heap_cnt].append(packet)
    for packets in heaps.values():
        packets.sort(key=_offset)
    return heaps


def _offset(packet: wire.Packet) -> int:
    return packet.payload_offset or 0


def _pointers(packets: Sequence[wire.Packet], id: int) -> list[wire.Pointer]:
    """Return the pointers to an item, once each though packets may repeat them."""
    found = (item for packet in packets for item in packet.items if item.id == id)
    return list(dict.fromkeys(found))


def _is_end(packets: Sequence[wire.Packet]) -> bool:
    return wire.Pointer(STREAM_CTRL_ID, True, CTRL_STREAM_STOP) in _pointers(
        packets, STREAM_CTRL_ID
    )


def _check_heap(i: int, packets: Sequence[wire.Packet], wanted: Wanted) -> None:
    heap = f"heap {i + 1}"
    if _is_end(packets):
        raise _fault(f"{heap} ends the stream", f"{wanted.heaps} heaps before it", i)
    payload = _payload(heap, packets)
    if i == 0:
        _check_descriptors(packets, payload, wanted)
    timestamp = _the_only(heap, packets, _TIMESTAMP)
    if not timestamp.immediate:
        found = f'one in the payload: its format is [("u", {_ADDRESS_BITS})]'
        raise _fault(f"{heap}, timestamp", "a value in the header", found)
    expected = i * wanted.heap_size
    if timestamp.value != expected:
        raise _fault(f"{heap}, packet 1, timestamp", expected, timestamp.value)
    begin = _the_only(heap, packets, _SAMPLES).value
    value = payload[begin : _end(packets, begin, len(payload))]
    if len(value) != wanted.heap_size:
        raise _fault(f"{heap}, adc_samples", f"{wanted.heap_size} bytes", len(value))
    samples = np.frombuffer(value, np.int8)
    wrong = _wrong_sample(i, samples, wanted.random)
    if wrong is not None:
        at, value_wanted = wrong
        number = sum(_offset(packet) <= begin + at for packet in packets)
        raise _fault(f"{heap}, packet {number}, sample {at}", value_wanted, samples[at])


def _payload(heap: str, packets: Sequence[wire.Packet]) -> bytes:
    """Return a heap's payload; it is a fault where some of it came never, or twice."""
    at = 0
    for number, packet in enumerate(packets, 1):
        if packet.payload_offset != at:
            found = f"byte {packet.payload_offset}"
            raise _fault(f"{heap}, packet {number}", f"byte {at} of its payload", found)
        at += len(packet.payload)
        if packet.heap_length is None:
            raise _fault(f"{heap}, packet {number}", "a heap length", "none")
    if at != packets[0].heap_length:
        expected = f"{packets[0].heap_length} bytes of payload"
        raise _fault(heap, expected, f"{at}, in {len(packets)} packets")
    return b"".join(packet.payload for packet in packets)


def _the_only(heap: str, packets: Sequence[wire.Packet], id: int) -> wire.Pointer:
    found = _pointers(packets, id)
    if len(found) != 1:
        raise _fault(heap, f"one item {id:#x} ({_NAMES[id]})", len(found) or "none")
    return found[0]


def _end(packets: Sequence[wire.Packet], begin: int, length: int) -> int:
    """Return where an item ends: where the next one begins, or the payload ends."""
    addresses = (item.value for packet in packets for item in packet.items if not item.immediate)
    return min((address for address in addresses if address > begin), default=length)


def _check_descriptors(packets: Sequence[wire.Packet], payload: bytes, wanted: Wanted) -> None:
    """See that a receiver learns what the items are."""
    found = {}
    for pointer in _pointers(packets, DESCRIPTOR_ID):
        raw = payload[pointer.value : _end(packets, pointer.value, len(payload))]
        try:
            described = wire.parse_descriptor(raw)
        except wire.WireError as error:
            raise _FaultError(f"heap 1, a descriptor: {error}") from None
        found[described.id] = described
    for id, name in _NAMES.items():
        if id not in found:
            raise _fault("heap 1", f"a descriptor of item {id:#x} ({name})", "none")
        if found[id].name != name:
            place = f"heap 1, item {id:#x}"
            raise _fault(place, f"the name {name!r}", repr(found[id].name))
    shape, expected = found[_SAMPLES].shape, (wanted.heap_size,)
    if shape != expected:
        raise _fault("heap 1, adc_samples", f"the shape {expected}", shape)
    header, format = found[_SAMPLES].numpy_header, found[_SAMPLES].format
    if "i1" not in header and format != (("i", 8),):
        raise _fault("heap 1, adc_samples", "the type int8", header or format)


def _wrong_sample(i: int, samples: npt.NDArray[np.int8], random: bool) -> tuple[int, str] | None:
    """Find a sample that is wrong, and say what it should be."""
    if not random:
        expected = (i + 128) % 256 - 128
        wrong = np.flatnonzero(samples != expected)
        return (int(wrong[0]), str(expected)) if len(wrong) else None
    what = f"a random number from {_LOWEST} to {_HIGHEST}"
    wrong = np.flatnonzero((samples < _LOWEST) | (samples > _HIGHEST))
    if len(wrong):
        return int(wrong[0]), what
    if len(samples) > 1 and samples.min() == samples.max():
        return 1, f"{what}, and not always the same"
    return None


# ---- Running it ----


def started_as(program: Path, chapter: Chapter, options: ProgramOptions) -> Launch:
    """Return how a program of anyone's is started, with what the chapter's are told."""
    interpreter = [sys.executable] if program.suffix == ".py" else []
    return started([*interpreter, str(program)], options.arguments(chapter))


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
        v6 = lab.address6 is not None
        make_socket = functools.partial(lab.socket, socket.AF_INET6 if v6 else socket.AF_INET)
        any_address = "::" if v6 else "0.0.0.0", lab.port
        for _ in range(_ATTEMPTS):
            destination = (lab.address, lab.port) if chapter.takes_destination else None
            argv = started_as(program, chapter, options)(destination)
            before = lab.receiver.arrivals()
            # Chapter 2's goes to an address of loopback, of which localhost may be another.
            anywhere, rate = collecting(make_socket, any_address), lab.limited(_BITS_PER_S)
            with anywhere as datagrams, rate:
                done = finish(lab.run, program.stem, argv, _LIMIT_S)
            dropped = (lab.receiver.arrivals() - before).no_room
            if done.status != 0:
                return with_line(done, str(program))
            if not dropped:
                return first_fault(datagrams, wanted)
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
    make_socket: Callable[..., socket.socket], address: tuple[str, int]
) -> Iterator[list[bytes]]:
    """Take all that is sent to an address meanwhile; yield the list that all goes into."""
    datagrams: list[bytes] = []
    with make_socket() as receiver, make_socket() as last:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        receiver.bind(address)
        here = "::1" if receiver.family == socket.AF_INET6 else "127.0.0.1"

        def receive() -> None:
            while datagram := receiver.recv(_LARGEST):
                if len(datagrams) < _MOST_PACKETS:
                    datagrams.append(datagram)

        thread = threading.Thread(target=receive, daemon=True)
        thread.start()
        try:
            yield datagrams
        finally:
            while thread.is_alive():  # there may be no room for the first that says it is over
                last.sendto(b"", (here, address[1]))
                thread.join(_LOOK_S)


def with_line(done: Done, file: str) -> str:
    """Say how a program ended, and at which line of its file."""
    lines = re.findall(rf'^  File "{re.escape(file)}", line (\d+)', done.errors, re.M)
    if not lines:
        return done.complaint
    text = linecache.getline(file, int(lines[-1])).strip()
    return f"{done.complaint} (line {lines[-1]}{': ' * bool(text)}{text})"

# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial recv``: what arrives at a port, or is in a capture, and the account of it."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import logging
import re
import select
import shutil
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from spead_tutorial import BUG_COMPAT_PYSPEAD_0_5_2, Empty, Stopped, ThreadPool
from spead_tutorial._shown import shown
from spead_tutorial.recv import Account, HeapBase, RingStreamConfig, Stream, StreamConfig
from spead_tutorial.recv._stats import losses
from spead_tutorial.tools.command_line import Number, Whole, parsed
from spead_tutorial.tools.recv_items import Items

_WINDOW_S = 1.0
_LOOK_S = 0.1  # the longest wait before the time is looked at
_RING_HEAPS = 64
DESCRIBED = 512  # lines about descriptors: as many as a stream may have items
_MOST_WARNINGS, _LONGEST_WARNING = 100, 300
_SHORTEST_S = 1.0  # from which on there is an average
#: What the account advises, in the words of the command.
_OPTIONS = {
    "without stop_on_stop_item": "with --keep-going",
    "allow_out_of_order takes": "--any-order (the default) takes",
    "allow_out_of_order=False": "--in-order",
    "by_sender=False": "--all-senders",
    "max_heap_size": "--max-heap-size",
    "max_heaps": "--max-heaps",
    "max_size": "--max-size",
    "filter": "--filter",
}


# ---- What is shown while it comes ----


class Screen:
    """Lines on the standard output, below which a terminal has one that is renewed."""

    def __init__(self, is_quiet: bool) -> None:
        self._is_quiet = is_quiet
        self._is_terminal = sys.stdout.isatty()
        self._has_last = False

    def line(self, line: str) -> None:
        if not self._is_quiet:
            self.clear()
            click.echo(shown(line))

    def last(self, line: str) -> None:
        """Show a line in the place of the last one that was shown so, where that can be."""
        if not self._is_terminal:
            self.line(line)
        elif not self._is_quiet:
            columns = shutil.get_terminal_size().columns
            click.echo(f"\r{shown(line)[: columns - 1]}\x1b[K", nl=False)
            self._has_last = True

    def warn(self, message: str) -> None:
        """Say on the standard error what is not as it should be."""
        self.clear()
        click.echo(f"spead-tutorial: {shown(message)}", err=True)

    def clear(self) -> None:
        """Have nothing below the lines."""
        if self._has_last:
            click.echo("\r\x1b[K", nl=False)
            self._has_last = False


class Pace:
    """Whether heaps come so slowly, in each window of time, that one can look at each of them."""

    #: How many can be looked at, and lines about them.
    FEW, MANY = 10, 100

    def __init__(self) -> None:
        self.is_fast = False
        self._n = self._n_lines = 0

    def shows(self) -> bool:
        """Count a heap, and return whether it is shown."""
        self._n += 1
        self.is_fast = self.is_fast or self._is_much()
        return not self.is_fast

    def has_shown(self, n_lines: int) -> None:
        self._n_lines += n_lines

    def end_window(self) -> bool:
        """Begin the next window, and return whether some of this one's heaps were not shown."""
        was_fast = self.is_fast
        self.is_fast = self._is_much()
        self._n = self._n_lines = 0
        return was_fast

    def _is_much(self) -> bool:
        return self._n > self.FEW or self._n_lines > self.MANY


class HeapWatcher:
    """Takes the heaps of a stream, and says what they are."""

    def __init__(self, stream: Stream, screen: Screen, *, values: bool) -> None:
        self.items = Items()
        self.seconds = 0.0
        self._stream = stream
        self._screen = screen
        self._values = values
        self._pace = Pace()
        self._n_described = 0
        self._n = 0
        self._before = stream.stats
        self._window_s = time.monotonic()
        self._first_s: float | None = None
        self._first_bytes = 0

    @property
    def payload_bytes(self) -> int:
        """Bytes of payload that have arrived since the first heap was taken."""
        return self._stream.stats.payload_bytes - self._first_bytes

    def run(self, heaps: int | None = None, silence_s: float | None = None) -> str:
        """Take heaps until the stream ends, or some have come, or silence; return which."""
        try:
            return self._run(heaps, silence_s)
        finally:
            if (more := self._n_described - DESCRIBED) > 0:
                self._screen.line(f"… and {more} more line{'s' * (more > 1)} about descriptors")

    def _run(self, heaps: int | None, silence_s: float | None) -> str:
        look_s = _LOOK_S if silence_s is None else min(_LOOK_S, silence_s)
        ready = select.poll()
        ready.register(self._stream.fd, select.POLLIN)
        heard, heard_s = 0, time.monotonic()
        while True:
            is_quiet = False
            try:
                self._show(self._stream.get_nowait())
            except Stopped:
                return "stream"
            except Empty:
                is_quiet = not ready.poll(1000 * look_s)
            now_s = time.monotonic()
            if now_s >= self._window_s + _WINDOW_S:
                before, stats = self._before, self._stream.stats
                if self._pace.end_window() or (not self._values and stats.heaps > before.heaps):
                    self._screen.last(pace_line(before, stats, now_s - self._window_s))
                self._before, self._window_s = stats, now_s
            if self._n == heaps:
                return "heaps"
            if is_quiet and silence_s is not None:
                packets = self._stream.stats.packets_received  # of a heap that is not whole, too
                if packets != heard:
                    heard, heard_s = packets, now_s
                elif now_s >= heard_s + silence_s:
                    return "silence"

    def _show(self, heap: HeapBase) -> None:
        self._n += 1
        now_s = time.monotonic()
        if self._first_s is None:
            self._first_s, self._first_bytes = now_s, self._stream.stats.payload_bytes
        self.seconds = now_s - self._first_s
        is_shown = self._pace.shows()
        if not self._values:
            return
        for line in self.items.read_descriptors(heap):
            self._n_described += 1
            if self._n_described <= DESCRIBED:
                self._screen.line(line)
        if is_shown:
            lines = self.items.lines(heap)
            self._pace.has_shown(len(lines))
            for line in lines:
                self._screen.line(line)


def pace_line(before: Mapping[str, int], now: Mapping[str, int], seconds: float) -> str:
    """Write how fast it came, and what is missing."""
    rate = (now["payload_bytes"] - before["payload_bytes"]) / seconds / 1e6
    heaps = (now["heaps"] - before["heaps"]) / seconds
    return f"{rate:.1f} MB/s, {heaps:.0f} heaps/s, {now['heaps']} heaps in all; {losses(now)}"


# ---- The command ----


class Address(NamedTuple):
    host: str  # an address or name of this machine, or a multicast group; empty for any address
    port: int  # the UDP port

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}" if host else f"port {self.port} of any address"


def _source(text: str) -> Address | Path:
    """Read where to listen, or the name of a capture: a file that is not named as an address."""
    found = re.fullmatch(r"(?:(?:\[([^\]]+)\]|([^:]+)):)?([0-9]{1,5})", text)
    if found is None and text and Path(text).exists():
        return Path(text)
    if found is None or not 1 <= int(found[3]) <= 65535:
        raise ValueError(
            f"{text!r} is no place to listen, and no file: say a port from 1 to 65535, or"
            " HOST:PORT, with an IPv6 address in brackets, as [::1]:8888, or a capture"
        )
    return Address(found[1] or found[2] or "", int(found[3]))


_COUNT = Whole(1, 2**31 - 1)


@click.command()
@click.argument("place", type=parsed(_source), metavar="[HOST:]PORT|CAPTURE")
@click.option("--count", type=_COUNT, metavar="HEAPS", help="End after this number of heaps.")
@click.option("--silence", type=Number(0, min_open=True), metavar="SECONDS",
              help="End after so long without a packet.")  # fmt: skip
@click.option("--keep-going", "stop_on_stop_item", flag_value=False, default=True,
              help="Go on when a sender says that its stream ends.")  # fmt: skip
@click.option("--stats", "only_stats", is_flag=True, help="Count only: do not look into heaps.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, at the end.")
@click.option("--max-heaps", type=_COUNT, default=StreamConfig.DEFAULT_MAX_HEAPS, metavar="HEAPS",
              show_default=True, help="Heaps of a substream that may arrive at once.")  # fmt: skip
@click.option("--substreams", type=Whole(1, 1 << 16), default=1, show_default=True,
              metavar="COUNT", help="Sequences of heaps, which take turns.")  # fmt: skip
@click.option("--any-order/--in-order", "allow_out_of_order", default=True, show_default=True,
              help="Whether a heap's packets may come in any order.")  # fmt: skip
@click.option("--all-senders", "by_sender", flag_value=False, default=True,
              help="Take a heap's packets from whatever senders.")  # fmt: skip
@click.option("--max-heap-size", type=Whole(1, 2**47, in_bytes=True), metavar="BYTES",
              default=StreamConfig.DEFAULT_MAX_HEAP_SIZE, show_default=True,
              help="Bytes in a heap at most.")  # fmt: skip
@click.option("--max-size", type=Whole(1, 65535, in_bytes=True), metavar="BYTES",
              default=65535, show_default=True,
              help="Bytes in a packet at most, UDP and IP not counted.")  # fmt: skip
@click.option("--buffer", "buffer_size", type=Whole(0, 2**31 - 1, in_bytes=True), metavar="BYTES",
              default=Stream.DEFAULT_UDP_BUFFER_SIZE, show_default=True,
              help="The socket's buffer; 0 leaves the system's.")  # fmt: skip
@click.option("--filter", metavar="CONDITIONS",
              help="Of a capture, only these datagrams, as"
                   " 'dst port 8888 and host 10.0.0.2'.")  # fmt: skip
@click.option("--interface", metavar="WHICH",
              help="Where to join a multicast group: an interface's IPv4 address, or for IPv6 its"
                   " name.")  # fmt: skip
@click.option("--no-gro", "gro", flag_value=False, default=True,
              help="Have the kernel hand over each packet by itself.")  # fmt: skip
@click.option("--bug-compat", flag_value=BUG_COMPAT_PYSPEAD_0_5_2, default=0,
              help="Read descriptors as PySPEAD 0.5.2 has them.")  # fmt: skip
def recv(
    place: Address | Path,
    count: int | None,
    silence: float | None,
    only_stats: bool,
    as_json: bool,
    filter: str | None,
    interface: str | None,
    **settings: Any,
) -> int:
    """Receive heaps, say what is in them, and account for every packet.

    HOST is an address of this machine, or a multicast group; without it, any address.
    Descriptors are shown as they arrive, and heaps with their values as long as they come slowly;
    then it is a line each second. What goes on without end is counted instead. It ends with the
    stream, or with Ctrl-C. The exit status is 1 where something is missing.

    CAPTURE is a file of pcap or pcapng, as tcpdump -s 0 -w CAPTURE writes: what it holds is
    received as if it came now.

    \b
    Example: spead-tutorial recv 127.0.0.1:8888
    Example: spead-tutorial recv night.pcap --filter 'dst port 8888'
    """
    of_socket = {name: settings.pop(name) for name in ("max_size", "buffer_size", "gro")}
    if isinstance(place, Address):
        of_socket |= _joining(place.host, interface)
        if filter is not None:
            raise click.UsageError(f"--filter is for captures, which {place} is not")
    elif interface is not None:
        raise click.UsageError(f"--interface is for sockets, which {place} is not")
    config = StreamConfig(**settings)
    ring = RingStreamConfig(heaps=_RING_HEAPS, contiguous_only=False)
    screen = Screen(is_quiet=as_json)
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings_shown(screen))
        try:
            stream = stack.enter_context(Stream(stack.enter_context(ThreadPool()), config, ring))
            if isinstance(place, Path):
                stream.add_udp_pcap_file_reader(place, filter or "")
            else:
                at = (place.host, place.port) if place.host else (place.port,)
                stream.add_udp_reader(*at, **of_socket)
        except (ValueError, MemoryError) as error:  # it is found out only by trying
            raise click.ClickException(str(error)) from None
        watcher = HeapWatcher(stream, screen, values=not only_stats)
        try:
            doing = "listening on" if isinstance(place, Address) else "reading"
            click.echo(shown(f"{doing} {place}"), err=as_json)
            end = watcher.run(count, silence)
        except BaseException as error:  # the account of what has arrived is due in any case
            end = "interrupted" if isinstance(error, KeyboardInterrupt) else "failure"
            _account_for(stream, watcher, end, screen, as_json)
            raise
        if end != "heaps":
            stream.stop()  # what is still awaited is lost
        if failed := stream._counts()["sys_errno"]:
            stream._ended()  # which says so, unless it has been said
        is_whole = _account_for(stream, watcher, end, screen, as_json)
        return 0 if is_whole and not failed else 1


def _joining(host: str, interface: str | None) -> dict[str, Any]:
    """How the multicast group is joined, if it is one."""
    if interface is None:
        return {}
    try:
        group = ipaddress.ip_address(host)
    except ValueError:
        group = None
    if group is None or not group.is_multicast:
        raise click.UsageError("--interface is for a multicast group: to listen at one address of"
                               " this machine, say that: HOST:PORT")  # fmt: skip
    if group.version == 4:
        return {"interface_address": interface}
    try:
        return {"interface_index": socket.if_nametoindex(interface)}
    except OSError:
        raise click.UsageError(f"there is no interface {interface!r} (see ip link)") from None


class _ToScreen(logging.Handler):
    """Shows what the package warns of, once: each heap of a fast stream may have the same fault."""

    def __init__(self, screen: Screen) -> None:
        super().__init__(logging.WARNING)
        self._screen = screen
        self._said: set[str] = set()
        self.more = 0

    def emit(self, record: logging.LogRecord) -> None:
        message = shown(record.getMessage(), _LONGEST_WARNING)
        if message in self._said or len(self._said) == _MOST_WARNINGS:
            self.more += 1
        else:
            self._said.add(message)
            self._screen.warn(message)


@contextlib.contextmanager
def warnings_shown(screen: Screen) -> Iterator[None]:
    """Show what the package warns of, and at last how many more warnings there were."""
    logger, handler = logging.getLogger("spead_tutorial"), _ToScreen(screen)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        if handler.more:
            screen.warn(f"… and {handler.more} more warning{'s' * (handler.more > 1)}")


# ---- The account ----


def _account_for(
    stream: Stream, watcher: HeapWatcher, end: str, screen: Screen, as_json: bool
) -> bool:
    account = Account(stats := stream.stats)
    troubles = [_in_options(trouble) for trouble in account.troubles]
    is_timed = watcher.seconds >= _SHORTEST_S and not stats.capture_frames  # which is read at once
    rate = watcher.payload_bytes / watcher.seconds if is_timed else None
    if as_json:
        row = {
            "ended_by": end,
            "is_whole": account.is_whole,
            "troubles": troubles,
            "notes": account.notes,
            "seconds": watcher.seconds,
            "payload_bytes_per_s": rate,
            "heaps_without_descriptors": watcher.items.heaps_without_descriptors,
            "items": watcher.items.as_rows(),
            "stats": dict(stats),
        }
        click.echo(json.dumps(row))
        return account.is_whole
    if rate is not None:
        screen.line(f"{rate / 1e6:.1f} MB/s on average, for {watcher.seconds:.0f} s")
    if n := watcher.items.heaps_without_descriptors:
        screen.line(f"{n} heap{'' if n == 1 else 's'} had values that no descriptor had come for:"
                    " let the sender repeat them, or start before it")  # fmt: skip
    for line in account.lines:
        screen.line(_in_options(line))
    return account.is_whole


def _in_options(advice: str) -> str:
    """Put advice on settings in the words of the command's options."""
    for setting, option in _OPTIONS.items():
        advice = re.sub(rf"(?<![\w-]){re.escape(setting)}", option, advice)
    return advice

# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial recv``: how it is asked for, and the account that it ends with."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import logging
import re
import socket
from collections.abc import Iterator
from typing import Any, NamedTuple

import click

from spead_tutorial import BUG_COMPAT_PYSPEAD_0_5_2, ThreadPool
from spead_tutorial.recv import Account, RingStreamConfig, Stream, StreamConfig, StreamStats
from spead_tutorial.tools.options import Number, parsed
from spead_tutorial.tools.recv.items import plain
from spead_tutorial.tools.recv.watch import Screen, Watch

__all__ = ["recv"]

_RING_HEAPS = 64
_MOST_WARNINGS, _LONGEST_WARNING = 100, 300
_SHORTEST_S = 1.0  # from which on there is an average
#: What the account advises, in the words of the command.
_OPTIONS = {
    "without stop_on_stop_item": "with --keep-going",
    "allow_out_of_order takes": "--any-order (the default) takes",
    "max_heap_size": "--max-heap-size",
    "max_heaps": "--max-heaps",
    "max_size": "--max-size",
}


class Address(NamedTuple):
    """Where to listen."""

    host: str  # an address or name of this machine, or a multicast group; empty for any address
    port: int  # the UDP port

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}" if host else f"port {self.port} of any address"


def _address(text: str) -> Address:
    found = re.fullmatch(r"(?:(?:\[([^\]]+)\]|([^:]+)):)?([0-9]{1,5})", text)
    if found is None or not 1 <= int(found[3]) <= 65535:
        raise ValueError(
            f"{text!r} is no place to listen: say a port from 1 to 65535, or HOST:PORT, with an"
            " IPv6 address in brackets, as [::1]:8888"
        )
    return Address(found[1] or found[2] or "", int(found[3]))


_COUNT = click.IntRange(1, 2**31 - 1)


@click.command()
@click.argument("address", type=parsed(_address), metavar="[HOST:]PORT")
@click.option("--count", type=_COUNT, metavar="HEAPS", help="End after so many heaps.")
@click.option("--silence", type=Number(0, min_open=True), metavar="SECONDS",
              help="End after so long without a packet.")  # fmt: skip
@click.option("--keep-going", "stop_on_stop_item", flag_value=False, default=True,
              help="Go on when a sender says that its stream ends.")  # fmt: skip
@click.option("--stats", "only_stats", is_flag=True, help="Count only: do not look into heaps.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, at the end.")
@click.option("--max-heaps", type=_COUNT, default=StreamConfig.DEFAULT_MAX_HEAPS, metavar="HEAPS",
              show_default=True, help="Heaps of a substream that may arrive at once.")  # fmt: skip
@click.option("--substreams", type=_COUNT, default=1, show_default=True, metavar="COUNT",
              help="Sequences of heaps, by which heap counts take turns.")  # fmt: skip
@click.option("--any-order/--in-order", "allow_out_of_order", default=True, show_default=True,
              help="Whether a heap's packets may come in any order.")  # fmt: skip
@click.option("--max-heap-size", type=click.IntRange(1, 2**47), metavar="BYTES",
              default=StreamConfig.DEFAULT_MAX_HEAP_SIZE, show_default=True,
              help="Bytes in a heap at most.")  # fmt: skip
@click.option("--max-size", type=click.IntRange(1, 65535), metavar="BYTES",
              default=65535, show_default=True,
              help="Bytes in a packet at most, UDP and IP not counted.")  # fmt: skip
@click.option("--buffer", "buffer_size", type=click.IntRange(0, 2**31 - 1), metavar="BYTES",
              default=Stream.DEFAULT_UDP_BUFFER_SIZE, show_default=True,
              help="The socket's buffer; 0 leaves the system's.")  # fmt: skip
@click.option("--interface", metavar="WHICH",
              help="Where to join a multicast group: an interface's IPv4 address, or for IPv6 its"
                   " name.")  # fmt: skip
@click.option("--no-gro", "gro", flag_value=False, default=True,
              help="Have the kernel hand over each packet by itself.")  # fmt: skip
@click.option("--bug-compat", flag_value=BUG_COMPAT_PYSPEAD_0_5_2, default=0,
              help="Read descriptors as PySPEAD 0.5.2 has them.")  # fmt: skip
def recv(
    address: Address,
    count: int | None,
    silence: float | None,
    only_stats: bool,
    as_json: bool,
    interface: str | None,
    **settings: Any,
) -> int:
    """Receive heaps, say what is in them, and account for every packet.

    HOST is an address of this machine, or a multicast group; without it, any IPv4 address.
    Descriptors are shown as they arrive, and heaps with their values as long as they come slowly;
    then it is a line each second. It ends with the stream, or with Ctrl-C. The exit status is 1
    where something is missing.

    Example: spead-tutorial recv 127.0.0.1:8888
    """
    of_reader = {name: settings.pop(name) for name in ("max_size", "buffer_size", "gro")}
    of_reader |= _joining(address.host, interface)
    config = StreamConfig(**settings)
    ring = RingStreamConfig(heaps=_RING_HEAPS, contiguous_only=False)
    screen = Screen(is_quiet=as_json)
    with contextlib.ExitStack() as stack:
        with _refused():
            stack.enter_context(_warnings(screen))
            stream = stack.enter_context(Stream(stack.enter_context(ThreadPool()), config, ring))
            stream.add_udp_reader(address.host or "0.0.0.0", address.port, **of_reader)
        watch = Watch(stream, screen, values=not only_stats)
        try:
            click.echo(f"listening on {address}", err=as_json)
            end = watch.run(count, silence)
        except BaseException as error:  # the account of what has arrived is due in any case
            end = "interrupted" if isinstance(error, KeyboardInterrupt) else "failure"
            _print(stream.stats, watch, end, screen, as_json)
            raise
        return _finish(stream, watch, end, screen, as_json)


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


@contextlib.contextmanager
def _refused() -> Iterator[None]:
    """What cannot be is found out only by trying it."""
    try:
        yield
    except (ValueError, MemoryError) as error:
        raise click.ClickException(str(error)) from None


class _ToScreen(logging.Handler):
    """Shows what the package warns of, once: each heap of a fast stream may have the same fault."""

    def __init__(self, screen: Screen) -> None:
        super().__init__(logging.WARNING)
        self._screen = screen
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        message = plain(record.getMessage(), _LONGEST_WARNING)
        if message not in self._said and len(self._said) < _MOST_WARNINGS:
            self._said.add(message)
            self._screen.warn(message)


@contextlib.contextmanager
def _warnings(screen: Screen) -> Iterator[None]:
    """Show warnings for as long as there is a screen."""
    logger, handler = logging.getLogger("spead_tutorial"), _ToScreen(screen)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


# ---- The account ----


def _finish(stream: Stream, watch: Watch, end: str, screen: Screen, as_json: bool) -> int:
    """Print the account of what has ended, and return the exit status."""
    if end != "heaps":
        stream.stop()  # what is still awaited is lost
    stats = stream.stats
    if failed := stream._counts()["sys_errno"]:
        stream._ended()  # which says so, unless it has been said
    _print(stats, watch, end, screen, as_json)
    return 0 if Account(stats).is_whole and not failed else 1


def _print(stats: StreamStats, watch: Watch, end: str, screen: Screen, as_json: bool) -> None:
    account = Account(stats)
    troubles = [_in_options(trouble) for trouble in account.troubles]
    rate = watch.payload_bytes / watch.seconds if watch.seconds >= _SHORTEST_S else None
    if as_json:
        row = {
            "ended_by": end,
            "is_whole": account.is_whole,
            "troubles": troubles,
            "seconds": watch.seconds,
            "payload_bytes_per_s": rate,
            "heaps_without_descriptors": watch.items.heaps_without_descriptors,
            "items": watch.items.as_rows(),
            "stats": dict(stats),
        }
        click.echo(json.dumps(row))
        return
    if rate is not None:
        screen.line(f"{rate / 1e6:.1f} MB/s on average, for {watch.seconds:.0f} s")
    if n := watch.items.heaps_without_descriptors:
        screen.line(f"{n} heap{'' if n == 1 else 's'} had values that no descriptor had come for:"
                    " let the sender repeat them, or start before it")  # fmt: skip
    for line in account.lines:
        screen.line(_in_options(line))


def _in_options(advice: str) -> str:
    """Put advice on settings in the words of the command's options."""
    for setting, option in _OPTIONS.items():
        advice = re.sub(rf"(?<![\w-]){re.escape(setting)}", option, advice)
    return advice

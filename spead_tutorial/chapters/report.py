# SPDX-License-Identifier: BSD-3-Clause
"""What the chapters' programs share: their options, the last line they print, and how they fail.

Its twin in C is ``report.c``.
"""

import argparse
import json
import math
import os
import re
import resource
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from spead_tutorial.send import StreamStats, route_packet_size

PROGRAM = Path(sys.argv[0]).stem
_NUMBER = re.match(r"tut_(\d+)", PROGRAM)
#: What a JSON object says first.
ABOUT = {"chapter": int(_NUMBER[1]) if _NUMBER else 0, "program": PROGRAM, "language": "python"}
#: A packet size that stands for what the route to the destination takes in one piece.
ROUTE_SIZE = 0
_COUNTS = ("packets", "messages", "send_calls", "waits", "looking_ns", "waiting_looking_ns",
           "errors", "zero_copy_messages", "zero_copy_copied")  # fmt: skip
_UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "kb": 1000, "mb": 10**6,
          "gb": 10**9}  # fmt: skip
_MOST = 2**63 - 1
MOST_SENDERS = 256
_FAILING = threading.Lock()
_SWITCHES = {
    "--copy": "have the kernel copy the samples",
    "--small-pages": "ordinary pages for them, not huge ones",
    "--fill": "write the samples anew before they are sent",
}


@dataclass(frozen=True, slots=True)
class Options:
    """The command line; members that a program has no option for keep their defaults."""

    n_heaps: int = 10000
    heap_size: int = 1024 * 1024
    packet_size: int = 1472
    random: bool = False
    n_streams: int = 1
    cores: tuple[int, ...] = ()
    copy: bool = False
    small_pages: bool = False
    fill: bool = False
    json: bool = False
    host: str = "127.0.0.1"
    port: int = 8888
    rate: float = 0.0  # MB/s
    sender: int = 0  # which of the senders it is
    senders: int = 1
    interface: str = ""
    ttl: int | None = None
    destinations: tuple[tuple[str, int], ...] = ()  # with the ports of the first sender


def whole(
    text: str, least: int, most: int, what: str = "a whole number", *, in_bytes: bool = False
) -> int:
    """Read a number that has to be in a range, for argparse; of bytes it may have a unit."""
    found = re.fullmatch("0*([0-9]{1,20})" + " *([A-Za-z]*)" * in_bytes, text)
    unit = _UNITS.get(found[2].lower(), 0) if found and in_bytes else 1
    number = int(found[1]) * unit if found and unit else least - 1
    if not least <= number <= most:
        such_as = ", such as 8192, 8KiB or 1MiB" if in_bytes else ""
        raise argparse.ArgumentTypeError(
            f"must be {what} from {least} to {limit(most)}{such_as}, not {text!r}"
        )
    return number


def limit(most: int) -> str:
    """Write the highest number that something may be."""
    return "2^63-1" if most == _MOST else str(most)


positive = partial(whole, least=1, most=_MOST)
bytes_of = partial(positive, what="a number of bytes", in_bytes=True)
udp_port = partial(whole, least=1, most=65535, what="a number")
stream_count = partial(whole, least=1, most=1024, what="a number")
sender_count = partial(whole, least=1, most=MOST_SENDERS)


def place(text: str) -> tuple[str, int]:
    """A host, which may be missing, and a port, for argparse."""
    host, _, port = text.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), udp_port(port)


def destination(text: str) -> tuple[str, int]:
    """A host and a port, for argparse."""
    host, port = place(text)
    if not host:
        raise argparse.ArgumentTypeError(f"must be a host and a port, not {text!r}")
    return host, port


def megabytes_per_s(text: str) -> float:
    """A rate, for argparse."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1e6:
        raise argparse.ArgumentTypeError(f"must be a number of MB/s from 0 to 1e6, not {text!r}")
    return number


def two_cores(text: str) -> tuple[int, ...]:
    """The cores of the program's thread and of the stream's, for argparse."""
    if not re.fullmatch("[0-9]{1,4},[0-9]{1,4}", text):
        raise argparse.ArgumentTypeError(f"must be two cores, such as 0,1, not {text!r}")
    return tuple(map(int, text.split(",")))


def check_cores(cores: Sequence[int]) -> None:
    """Raise an OSError for a core that the program may not run on: the package would only warn."""
    usable = os.sched_getaffinity(0)
    for core in cores:
        try:
            os.sched_setaffinity(0, [core])
        except OSError as error:
            raise OSError(
                error.errno, f"could not run on core {core} (see nproc for how many there are)"
            ) from None
        finally:
            os.sched_setaffinity(0, usable)


def tell(message: object) -> None:
    """Say something of a run that goes on."""
    if sys.stderr is not None:  # else print() takes what the program's result goes to
        print(f"{PROGRAM}: {message}", file=sys.stderr)


def fail(message: object) -> NoReturn:
    """End the program with one line that says why."""
    _FAILING.acquire()  # and kept: another thread that fails says nothing more
    try:
        tell(message)
        sys.stdout.flush()
    finally:  # though nobody reads it any more
        os._exit(1)  # what is still in flight is of no interest any more


def _end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """End the program, whatever its other threads do; a mistake of ours is shown whole."""
    if isinstance(error, (OSError, ValueError, MemoryError)):
        fail(getattr(error, "strerror", None) or error)
    sys.__excepthook__(kind, error, trace)
    os._exit(1)


def end_as_in_c() -> None:
    """Have what goes wrong, in a thread, too, be one line, and Ctrl-C end all threads at once."""
    sys.excepthook = _end
    threading.excepthook = lambda args: _end(
        args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback
    )
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as it is under nohup
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def tell_of_copies(stats: StreamStats) -> None:
    """A rate with copies is not to be taken for one without; few of them make no difference."""
    copied = stats.messages - stats.zero_copy_messages + stats.zero_copy_copied
    if 10 * copied > stats.messages:
        tell(f"{copied} of {stats.messages} messages were copied, and not read in place")


def tell_of_fragments(options: Options) -> None:
    """Fragments are no error, but they are slow, and a receiver needs every one of a packet's."""
    size = options.packet_size // 8 * 8  # as a stream rounds it
    try:
        fits = route_packet_size(options.host, options.port)
    except (OSError, ValueError):
        return  # the stream says it all
    if fits < size <= 0xFFFF:
        tell(
            f"packets of {size} bytes travel to {options.host} in several fragments"
            f" each: {fits} is the most that goes in one piece"
        )


def parse_options(doc: str | None, accepted: str, defaults: Options) -> Options:
    """Read the command line: a letter for each option, z for switches, d for a destination, a for
    an array."""
    where = {"d": " 192.168.31.2 8888", "a": " --ttl 1 239.1.0.0:8888 239.1.0.1:8888"}
    example = f"{PROGRAM}.py{where.get(accepted[-1:], '')}"
    parser = argparse.ArgumentParser(description=doc, epilog=f"example: {example}")

    def takes(letter: str, dest: str, parse: Any, metavar: str, words: str) -> None:
        if letter in accepted:
            parser.add_argument(f"-{letter}", dest=dest, type=parse, metavar=metavar, help=words)

    usual = "the route's" if defaults.packet_size == ROUTE_SIZE else defaults.packet_size
    help_p = f"bytes in a packet at most, UDP and IP not counted ({usual})"
    help_s = f"streams, each with a thread of its own ({defaults.n_streams})"
    help_c = "cores to pin the program's thread and the stream's to (any)"
    takes("n", "n_heaps", positive, "HEAPS", f"heaps to send ({defaults.n_heaps})")
    takes("H", "heap_size", bytes_of, "BYTES", f"bytes of samples in a heap ({defaults.heap_size})")
    takes("p", "packet_size", bytes_of, "BYTES", help_p)
    if "r" in accepted:
        help_r = "random samples instead of a fill"
        parser.add_argument("-r", dest="random", action="store_true", default=None, help=help_r)
    takes("s", "n_streams", stream_count, "COUNT", help_s)
    takes("c", "cores", two_cores, "A,B", help_c)
    if "z" in accepted:
        for flag, help_z in _SWITCHES.items():
            parser.add_argument(flag, action="store_true", default=None, help=help_z)
    parser.add_argument("--json", action="store_true", help="print a JSON object, not the rate")
    if "d" in accepted:
        parser.add_argument("host", help="name or address to send to")
        parser.add_argument("port", type=udp_port, help="UDP port to send to, 1 to 65535")
    if "a" in accepted:
        _add_array(parser)
    given = {name: value for name, value in vars(parser.parse_args()).items() if value is not None}
    end_as_in_c()
    options = replace(defaults, **given)
    check_cores(options.cores)
    if "a" in accepted:
        options = _in_array(parser, options)
    # One that is sized by the route asks it, and says what it used; another card has its own.
    if defaults.packet_size != ROUTE_SIZE and not options.interface:
        tell_of_fragments(options)
    return options


def _add_array(parser: argparse.ArgumentParser) -> None:
    """Take a place among the senders of an array, and all destinations."""
    index, hops = (partial(whole, least=0, most=most) for most in (MOST_SENDERS - 1, 255))
    add = parser.add_argument
    add("--rate", type=megabytes_per_s, metavar="MB/S",
        help="of all packets together (0: as fast as possible)")  # fmt: skip
    add("--sender", type=index, metavar="INDEX", help="which of the senders this is, from 0 on (0)")
    add("--senders", type=sender_count, metavar="COUNT", help="how many there are (1)")
    add("--interface", metavar="ADDRESS", help="address of the card to send from (the route's)")
    add("--ttl", type=hops, metavar="COUNT",
        help="networks that multicast may cross (the system's, mostly 1)")  # fmt: skip
    add("destinations", type=destination, nargs="+", metavar="HOST:PORT",
        help="a receiver, and its port for the first sender")  # fmt: skip


def _in_array(parser: argparse.ArgumentParser, options: Options) -> Options:
    """Refuse what does not go together; the first destination stands for all routes."""
    if options.sender >= options.senders:
        parser.error(f"--sender must be less than {options.senders}, as many as there are:"
                     f" not {options.sender}")  # fmt: skip
    (host, port), *_ = options.destinations
    check_last_port(parser, max(port for _, port in options.destinations), options.senders)
    return replace(options, host=host, port=port, destinations=tuple(options.destinations))


def check_last_port(parser: argparse.ArgumentParser, port: int, senders: int) -> None:
    """Each sender has a port."""
    if port + senders - 1 > 65535:
        parser.error(f"port must be at most {65536 - senders}, as {senders} senders have one each:"
                     f" not {port}")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Usage:
    """What the process has used, and of it the thread that asks: ns, and counts; two subtract."""

    elapsed_ns: int
    cpu_user_ns: int
    cpu_system_ns: int
    program_cpu_ns: int
    page_faults: int
    context_switches: int

    @classmethod
    def now(cls) -> "Usage":
        """Since the clock's zero."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        return cls(
            time.monotonic_ns(),
            round(used.ru_utime * 1e9),
            round(used.ru_stime * 1e9),
            time.thread_time_ns(),
            used.ru_minflt + used.ru_majflt,
            used.ru_nvcsw + used.ru_nivcsw,
        )

    @classmethod
    def process_start(cls) -> "Usage":
        """When the program was started, with nothing used."""
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        since_boot_ns = round(ticks * 1e9 / os.sysconf("SC_CLK_TCK"))
        offset_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()
        return cls(since_boot_ns - offset_ns, 0, 0, 0, 0, 0)

    def __sub__(self, start: "Usage") -> "Usage":
        return Usage(*(getattr(self, name) - getattr(start, name) for name in self.__slots__))


def report(options: Options, stats: Sequence[StreamStats], used: Usage | None = None) -> None:
    """Print the last line, of all streams together, over what was used or else the whole run."""
    used = used or Usage.now() - Usage.process_start()
    counts = {name: sum(getattr(each, name) for each in stats) for name in _COUNTS}
    spead_bytes = sum(each.bytes for each in stats)
    print_report(options, used, len(stats), {"spead_bytes": spead_bytes, **counts})


def print_report(options: Options, used: Usage, n_streams: int, counts: Mapping[str, int]) -> None:
    """Print the rate, or a JSON object, which also has what was counted."""
    n_heaps = options.n_heaps * max(1, len(options.destinations))
    payload_bytes = n_heaps * options.heap_size
    if not options.json:
        print(f"{payload_bytes / used.elapsed_ns * 1e3:.2f} MB/s", flush=True)
        return
    record = {
        **ABOUT,
        "random": options.random,
        "streams": n_streams,
        "heaps": n_heaps,
        "heap_size": options.heap_size,
        "packet_size": options.packet_size,
        "payload_bytes": payload_bytes,
        **counts,
    }
    record |= {name: getattr(used, name) for name in used.__slots__}
    if options.destinations:
        record["destinations"] = _destinations(options, counts)
    print(json.dumps(record), flush=True)


def _in_brackets(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _destinations(options: Options, counts: Mapping[str, int]) -> list[dict[str, Any]]:
    """What went to each: all got heaps of the same sizes, or the program had failed."""
    n = len(options.destinations)
    each = {
        "heaps": options.n_heaps,
        "packets": counts["packets"] // n,
        "bytes": counts["spead_bytes"] // n,
    }
    return [{"to": f"{_in_brackets(host)}:{port}", **each} for host, port in options.destinations]

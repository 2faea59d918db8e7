# SPDX-License-Identifier: BSD-3-Clause
"""How programs run and fail: what goes wrong is one line, Ctrl-C too, from the first import on.

Programs import it before all else. To import NumPy and the package takes a fifth of a second, in
which nothing of theirs could catch Ctrl-C; so this is no part of the package, and imports next to
nothing. It takes SIGINT for itself: it is for programs, not for what they import.

The chapters' programs are ended by SIGTERM and SIGHUP as any program is. A command line has
something to clean up: to it they are what Ctrl-C is.
"""

import _thread
import os
import select
import signal
import sys
from _weakref import ref

TYPE_CHECKING = False  # that of typing takes longer than all of this
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Coroutine, Iterable
    from types import FrameType
    from typing import Any, NoReturn

PROGRAM = os.path.splitext(os.path.basename(sys.argv[0]))[0]
_FAILING = _thread.allocate_lock()


class Ended(KeyboardInterrupt):
    """SIGTERM or SIGHUP: whoever cleans up after Ctrl-C cleans up after it, too."""

    latest: "Callable[[], Ended | None]" = staticmethod(lambda: None)

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
        Ended.latest = staticmethod(ref(self))


def how_it_ended(error: "BaseException | None") -> "tuple[str, int]":
    """Return what to say of Ctrl-C or a signal like it, and the exit status."""
    number = error.number if isinstance(error, Ended) else signal.SIGINT
    how = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
    return how, 128 + number


def _end(name: str, error: "BaseException | None" = None) -> "NoReturn":
    how, status = how_it_ended(error)
    try:
        os.write(2, f"{name}: {how}\n".encode())
    finally:
        os._exit(status)  # what is still in flight is of no interest any more


def _take(numbers: "Iterable[int]", handler: "Callable[[int, FrameType | None], object]") -> None:
    """Have signals handled, unless they are ignored, as under nohup."""
    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _take_interrupts(name: str, *others: int) -> None:
    """Let Ctrl-C, and signals like it, end the process with one line."""

    def end(number: int, frame: "FrameType | None") -> None:
        _end(name, None if number == signal.SIGINT else Ended(number))

    _take((signal.SIGINT, *others), end)


def _raise(number: int, frame: "FrameType | None") -> None:
    """Raise what a signal is to a command line, unless one is being cleaned up after already."""
    # They come in twos: from timeout(1) both to the process and to its group.
    if Ended.latest() is None:
        _leave_terminal()
        raise Ended(number)


def _leave_terminal() -> None:
    """Write into /dev/null where a terminal was: to clean up must not fail for want of a reader."""
    streams = select.poll()
    for fd in (1, 2):
        streams.register(fd, 0)
    gone = [fd for fd, event in streams.poll(0) if event & select.POLLHUP]
    if gone:
        null = os.open(os.devnull, os.O_WRONLY)
        for fd in gone:
            os.dup2(null, fd)
        os.close(null)


# NumPy's linear algebra would start threads, which look for work for a tenth of a second: on a core
# that is to send or to receive.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

if PROGRAM.startswith("tut_"):  # not where a program is imported only to be looked at
    _take_interrupts(PROGRAM)


def take_interrupts(handler: "Callable[[], None]") -> None:
    """Have Ctrl-C call a function of a program's, which then comes to its end by `interrupted`."""
    _take([signal.SIGINT], lambda number, frame: handler())


def interrupted() -> "NoReturn":
    """End the program as Ctrl-C does."""
    try:
        sys.stdout.flush()
    finally:  # though nobody reads it any more
        _end(PROGRAM)


def fail(message: object) -> "NoReturn":
    """End the program with one line that says why."""
    _FAILING.acquire()  # and kept: another thread that fails says nothing more
    try:
        print(f"{PROGRAM}: {message}", file=sys.stderr)
        sys.stdout.flush()
    finally:  # though nobody reads it any more
        os._exit(1)  # as above


def run(main: "Callable[[], None] | Callable[[], Coroutine[Any, Any, None]]") -> None:
    """Run a chapter's program; what goes wrong, in a thread, too, becomes a line and status 1."""
    import asyncio
    import inspect
    import logging
    import threading

    _take_interrupts(PROGRAM)
    # The first send that fails ends the program: nobody reads the futures after it.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    threading.excepthook = _fail_in_thread
    try:
        if inspect.iscoroutinefunction(main):
            asyncio.run(main())
        else:
            main()
        if sys.stdout is not None:
            sys.stdout.flush()
    except _EXPECTED as error:
        fail(_line(error))


_EXPECTED = (OSError, ValueError, MemoryError)


def _line(error: "BaseException | None") -> object:
    return getattr(error, "strerror", None) or error


def _fail_in_thread(args: "threading.ExceptHookArgs") -> None:
    """What else goes wrong in a thread is a mistake of ours: it is shown whole."""
    import threading

    if isinstance(args.exc_value, _EXPECTED):
        fail(_line(args.exc_value))
    threading.__excepthook__(args)
    os._exit(1)


def start(name: str, module: str) -> None:
    """Run a module's ``main``; it gets a `KeyboardInterrupt` for SIGTERM and SIGHUP, too."""
    import importlib

    like_interrupts = (signal.SIGTERM, signal.SIGHUP)
    _take_interrupts(name, *like_interrupts)
    main = importlib.import_module(module).main
    try:
        _take([signal.SIGINT], signal.default_int_handler)
        _take(like_interrupts, _raise)
        main()
    except KeyboardInterrupt as error:
        _end(name, error)
    finally:
        _take_interrupts(name, *like_interrupts)  # nothing is left to clean up


def command() -> None:
    """Run ``spead-tutorial``."""
    start("spead-tutorial", "spead_tutorial.tools.cli")

# SPDX-License-Identifier: BSD-3-Clause
"""How programs run and fail: what goes wrong is one line, Ctrl-C too, from the first import on.

Programs import it before all else. To import NumPy and the package takes a fifth of a second, in
which nothing of theirs could catch Ctrl-C; so this is no part of the package, and imports next to
nothing. It takes SIGINT for itself: it is for programs, not for what they import.
"""

import _thread
import os
import signal
import sys

TYPE_CHECKING = False  # that of typing takes longer than all of this
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Coroutine
    from types import FrameType
    from typing import Any, NoReturn

PROGRAM = os.path.splitext(os.path.basename(sys.argv[0]))[0]
_FAILING = _thread.allocate_lock()


def _end(name: str) -> "NoReturn":
    try:
        os.write(2, f"{name}: interrupted\n".encode())
    finally:
        os._exit(130)  # what is still in flight is of no interest any more


def _take_interrupts(name: str) -> None:
    """Let Ctrl-C end the process with one line, unless it is ignored, as under nohup."""

    def end(number: int, frame: "FrameType | None") -> None:
        _end(name)

    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, end)


if PROGRAM.startswith("tut_"):  # not where a program is imported only to be looked at
    _take_interrupts(PROGRAM)


def fail(message: object) -> "NoReturn":
    """End the program with one line that says why."""
    _FAILING.acquire()  # and kept: another thread that fails says nothing more
    print(f"{PROGRAM}: {message}", file=sys.stderr)
    sys.stdout.flush()
    os._exit(1)  # as above


def run(main: "Callable[[], None] | Callable[[], Coroutine[Any, Any, None]]") -> None:
    """Run a chapter's program; what goes wrong in sending becomes one line, and status 1.

    So it does in its threads, and ends the program at once.
    """
    import asyncio
    import inspect
    import logging
    import threading

    _take_interrupts(PROGRAM)
    # The first send that fails ends the program: the futures of those after it have no readers.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    threading.excepthook = _fail_in_thread
    try:
        if inspect.iscoroutinefunction(main):
            asyncio.run(main())
        else:
            main()
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
    """Run a command line: a module's ``main``, which deals with Ctrl-C itself once it is there."""
    import importlib

    _take_interrupts(name)
    main = importlib.import_module(module).main
    try:
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        main()
    except KeyboardInterrupt:
        _end(name)


def command() -> None:
    """Run ``spead-tutorial``."""
    start("spead-tutorial", "spead_tutorial.cli")

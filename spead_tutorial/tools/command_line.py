# SPDX-License-Identifier: BSD-3-Clause
"""What command lines have in common: words as values, sentences, and how they end.

What goes wrong is one line on stderr. Exit status: 1 where it could not be done, 2 where it
was asked for wrongly, 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP.
"""

import argparse
import contextlib
import functools
import math
import os
import re
import select
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeVar

import click

from spead_tutorial.chapters.catalogue import LANGUAGES, find_language
from spead_tutorial.chapters.report import limit, whole
from spead_tutorial.lab import LabError
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.measure.records import RecordError
from spead_tutorial.results.tables import plain

_COMMAND = "spead-tutorial"
_FAILED, _WRONG = 1, 2
_ENDING = signal.SIGTERM, signal.SIGHUP
#: Where a command of ours begins, or a Python that has to have the package.
_COMMANDS = re.compile(r"(?<![\w./-])(?=spead-tutorial [a-z-]|python (?:-m bench|\$\(|\S+\.py))")
_T = TypeVar("_T")


# ---- Words as values ----


class Number(click.FloatRange):
    """A number in a range, which neither nan nor inf is."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        number = math.nan
        with contextlib.suppress(click.BadParameter):
            number = float(super().convert(value, param, ctx))
        if math.isfinite(number):
            return number
        self.fail(f"it must be a number {self._describe_range()}, not {value!r}", param, ctx)

    def _describe_range(self) -> str:
        """Say it in words, also in the help."""
        if self.max is not None:
            return f"from {self.min} to {self.max}"
        return f"{'above' if self.min_open else 'from'} {self.min}"


class Whole(click.IntRange):
    """A whole number in a range; one of bytes may have a unit, as in the chapters' programs."""

    def __init__(self, least: int, most: int = 2**63 - 1, *, in_bytes: bool = False) -> None:
        super().__init__(least, most)
        self._range = f"from {least} to {limit(most)}"
        what = "a number of bytes" if in_bytes else "a whole number"
        self._read = functools.partial(whole, least=least, most=most, what=what, in_bytes=in_bytes)

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        try:
            return self._read(str(value))
        except argparse.ArgumentTypeError as error:
            self.fail(f"it {error}", param, ctx)

    def _describe_range(self) -> str:
        return self._range


#: Of the options that take a language.
OF_LANGUAGES = f"[{'|'.join(LANGUAGES)}]"


def parsed(parse: Callable[[str], _T]) -> Callable[[str], _T]:
    """Return a type for click, which refuses a word with what a ValueError says."""

    def convert(word: str) -> _T:
        try:
            return parse(word)
        except ValueError as error:
            raise click.UsageError(str(error)) from None

    return convert


LANGUAGE = parsed(find_language)


# ---- Sentences, and what is to be typed ----


def as_typed(text: str) -> str:
    """Write commands in a text as they have to be typed: with the folder that the shell needs."""
    folder = _folder()
    if not folder:
        return text
    before = f"{shlex.quote(folder)}/"
    return _COMMANDS.sub(before, text)


def _folder() -> str:
    """Return the folder that was typed for this command, or none where its name alone was."""
    program = sys.argv[0]
    if os.path.basename(program) == "__main__.py":  # python -m bench
        program = sys.orig_argv[0]
    elif os.path.basename(program) != _COMMAND:
        return ""
    folder, found = os.path.dirname(program), shutil.which(os.path.basename(program))
    with contextlib.suppress(OSError):
        if found is not None and os.path.samefile(os.path.dirname(found), folder):
            return ""
    return folder


class _Help(click.HelpFormatter):
    """Help, whose examples and usage can be typed."""

    def getvalue(self) -> str:
        return as_typed(super().getvalue())


def worded(template: Path, **names: Any) -> Any:
    """Return what a template for sentences comes to: its text, and its macros by their names."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # most commands do without

    environment = Environment(
        loader=FileSystemLoader(template.parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template.name).make_module(names)


# ---- From beginning to end ----


_came: list[int] = []  # the signal that ends this process, if one does


class Ended(KeyboardInterrupt):
    """SIGTERM or SIGHUP: what cleans up after Ctrl-C cleans up after it, too."""


def how_it_ended() -> tuple[str, int]:
    """Return what to say after Ctrl-C or a signal like it, and the exit status.

    It does not matter who raised it again, having said what there was until then.
    """
    number = next(iter(_came), signal.SIGINT)
    how = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
    return how, 128 + number


def _raise(number: int, frame: FrameType | None) -> NoReturn:
    # They come in twos: from timeout(1) both to the process and to its group.
    for ending in _ENDING:
        signal.signal(ending, signal.SIG_IGN)
    _leave_terminal()
    _came.append(number)
    raise Ended


def _leave_terminal() -> None:
    """Write into /dev/null where a terminal was: to clean up must not fail for want of a reader."""
    streams = select.poll()
    for fd in (1, 2):
        streams.register(fd, 0)
    null = os.open(os.devnull, os.O_WRONLY)
    for fd, event in streams.poll(0):
        if event & select.POLLHUP:
            os.dup2(null, fd)
    os.close(null)


def as_process(command: click.Command, name: str) -> NoReturn:
    """Be a command line, to which SIGTERM and SIGHUP are what Ctrl-C is."""
    for stream in ("stdout", "stderr"):
        if getattr(sys, stream) is None:  # it was closed before, which nothing else need know
            setattr(sys, stream, open(os.devnull, "w"))  # noqa: SIM115 (as long as the process)
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as it is under nohup
            signal.signal(number, _raise)
    sys.exit(finish(command, name, None))


def _say(name: str, message: str, *ways: str) -> None:
    """Say what went wrong in a line, and in others what can be done."""
    words = plain(" ".join(message.split()))
    click.echo(as_typed(f"{name}: {words}{':' * bool(ways)}"), err=True)
    for way in ways:
        click.echo(as_typed(f"    {plain(way)}"), err=True)


def _path(command: click.Command, name: str, arguments: Sequence[str] | None) -> str:
    """Return the words of a command, which click knows no more where an option lacks its value."""
    words = [name]
    for word in sys.argv[1:] if arguments is None else arguments:
        if not isinstance(command, click.Group) or word not in command.commands:
            break
        words.append(word)
        command = command.commands[word]
    return " ".join(words)


def _forget_what_cannot_be_written() -> None:
    """Have Python not try again at its end, and say so in its own words."""
    try:
        sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def finish(command: click.Command, name: str, arguments: Sequence[str] | None) -> int:
    """Run a command line and return the exit status; what goes wrong is one line on stderr."""
    click.Context.formatter_class = _Help
    try:
        status = command.main(arguments, prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx is not None else _path(command, name, arguments)
        _say(name, f"{error.format_message().rstrip('.')} (see {path} --help)")
        return _WRONG
    except click.ClickException as error:
        _say(name, error.format_message())
        return _FAILED
    except LabError as error:
        _say(name, *str(error).split("\n"))
        return _FAILED
    except (ProgramError, RecordError) as error:
        _say(name, str(error))
        return _FAILED
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _say(name, f"{place}{error.strerror or error}")
        _forget_what_cannot_be_written()
        return _FAILED
    except (click.Abort, KeyboardInterrupt):
        how, ended = how_it_ended()
        _say(name, how)
        return ended
    return status if isinstance(status, int) else 0

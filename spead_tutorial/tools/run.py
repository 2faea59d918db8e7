# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial run``: a chapter that sends, or two that send and receive, and the proof."""

import contextlib
import json
import shlex
import types
from typing import Any

import click

from spead_tutorial._shown import shown_lines
from spead_tutorial.chapters.catalogue import (
    ARRAY,
    STEPS,
    SWITCHES,
    Chapter,
    Receiver,
    find_program,
    find_sender,
)
from spead_tutorial.lab import KINDS, Lab, LabError
from spead_tutorial.lab.device import instead
from spead_tutorial.measure import delivery, programs
from spead_tutorial.measure.place import Device, Host
from spead_tutorial.measure.programs import ProgramError, ProgramOptions
from spead_tutorial.measure.verify import Report
from spead_tutorial.results.tables import plain
from spead_tutorial.tools import progress
from spead_tutorial.tools.command_line import LANGUAGE, OF_LANGUAGES, Number, Whole, parsed

_BYTES = Whole(1, in_bytes=True)  # as the programs have it
_DEFAULT = click.core.ParameterSource.DEFAULT
_Asked = types.SimpleNamespace  # what was asked for, by the names of the options
#: The kinds of runs, the options that each of them needs, and those that only some of them take.
_RUNS = {
    "sending in a lab": ((), ("--kind", "--rate")),
    "sending to --host": (("--host", "--port"), ("--allow-real-network",)),
    "receiving in a lab": ((), ("--from", "--from-lang", "--rate", "-b")),
}


def _check_options(context: click.Context, chapter: Chapter | Receiver) -> None:
    """Refuse options that are for other kinds of runs, and what is only half said."""
    origins = {option.opts[0]: context.get_parameter_source(str(option.name))
               for option in context.command.params}  # fmt: skip
    given = [option for option, origin in origins.items() if origin is not _DEFAULT]
    word = "sending" if isinstance(chapter, Chapter) else "receiving"
    kinds = [kind for kind in _RUNS if kind.startswith(word)]
    kind = next((kind for kind in kinds if {*_RUNS[kind][0]} & {*given}), kinds[0])
    needed, _ = _RUNS[kind]
    for option in given:
        others = [kind for kind, options in _RUNS.items() if option in sum(options, ())]
        if others and kind not in others:
            raise click.UsageError(
                f"chapter {chapter.number} is {kind}, without {option}: that is for"
                f" {' and '.join(others)}"
            )
    if not {*needed} <= {*given}:
        raise click.UsageError(f"{', '.join(needed[:-1])} and {needed[-1]} go together")


@click.command()
@click.argument("chapter", type=parsed(find_program))
@click.option("--lang", type=LANGUAGE, default="python", show_default=True, metavar=OF_LANGUAGES,
              help="Which of its programs.")  # fmt: skip
@click.option("--from", "sender", type=parsed(find_sender), metavar="CHAPTER",
              help="Whose program sends to a chapter that receives: 2 by default, and 19 to"
              " chapter 12.")  # fmt: skip
@click.option("--from-lang", type=LANGUAGE, metavar=OF_LANGUAGES,
              help="Which of its programs: that of --lang by default.")  # fmt: skip
@click.option("--rate", type=Number(0.125, 4000), metavar="MB/S",
              help="Rate of the lab's link, headers included; senders wait.")  # fmt: skip
@click.option("-n", "heaps", type=Whole(1), metavar="HEAPS", help="Heaps to send.")
@click.option("-H", "heap_size", type=_BYTES, metavar="BYTES", help="Bytes of samples in a heap.")
@click.option("-p", "packet_size", type=_BYTES, metavar="BYTES",
              help="Bytes in a packet at most, UDP and IP not counted.")  # fmt: skip
@click.option("-r", "random", is_flag=True, help="Random samples instead of a fill.")
@click.option("-s", "streams", type=Whole(1, 1024), metavar="COUNT",
              help="Streams, each with a thread of its own.")  # fmt: skip
@click.option("-b", "buffers", type=Whole(0, 1000), metavar="COUNT",
              help="Heaps that a receiver's pool has memory for.")  # fmt: skip
@click.option("-c", "cores", metavar="A,B",
              help="Cores to pin the program's thread and the stream's to.")  # fmt: skip
@click.option("--copy", is_flag=True, help="Have the kernel copy the samples.")
@click.option("--small-pages", is_flag=True, help="Ordinary pages for them, not huge ones.")
@click.option("--fill", is_flag=True, help="Write the samples anew before they are sent.")
@click.option(
    "--kind", type=click.Choice(KINDS, case_sensitive=False), help="Kind of the lab's device."
)
@click.option("--host", help="Send there, outside a lab.")
@click.option("--port", type=Whole(1, 65535), help="UDP port of that host.")
@click.option("--allow-real-network", is_flag=True,
              help="Let packets leave this machine.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def run(**given: Any) -> int:
    """Run a chapter's program in a fresh lab.

    CHAPTER is a number or the name of a program. It prints the rate, payload bytes over
    time, and what proves it: the packets that the program claims, and what the device
    counted. A chapter takes only the options that it introduced or inherited: see spead-tutorial
    chapters. A number of BYTES may have a unit, as in 8KiB, 1MiB or 9kB.

    A chapter that receives is run with one that sends to it, on the two machines of a lab, and
    the options of that one are passed on to it. What both print is shown, and then what became of
    all packets. The exit status is 1 where one of them failed, or something is missing.

    \b
    Example: spead-tutorial run 10 --lang c -n 524288 -H 8192
    Example: spead-tutorial run 7 --from 6 --rate 500 -n 200
    """
    asked = _Asked(**given)
    switches = zip(SWITCHES, (asked.copy, asked.small_pages, asked.fill), strict=True)
    asked.options = ProgramOptions(
        asked.heaps, asked.heap_size, asked.packet_size, asked.random, asked.streams, asked.cores,
        tuple(word for word, is_given in switches if is_given),
    )  # fmt: skip
    _check_options(click.get_current_context(), asked.chapter)
    if isinstance(asked.chapter, Chapter):
        failure = _send(asked, asked.chapter)
    else:
        failure = _receive(asked, asked.chapter)
    if failure is not None:
        raise ProgramError(failure)
    return 0


def _check(
    asked: _Asked, sender: Chapter, language: str, destination: tuple[str, int] | None = None
) -> None:
    try:
        programs.command(sender, language, asked.options, destination)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


# ---- One that sends ----


def _send(asked: _Asked, chapter: Chapter) -> str | None:
    """Run a chapter that sends, and return why it is no success."""
    to = None if asked.host is None or asked.port is None else (asked.host, asked.port)
    link = _link(asked, chapter)
    _check(asked, chapter, asked.lang, to)
    with contextlib.ExitStack() as stack:
        place: Device | Host
        if to is None:
            place = Device(stack.enter_context(_lab(asked, chapter)), link)
        else:
            place = Host(*to, allow_real_network=asked.allow_real_network)
        with progress.shown("Sending"):
            result = programs.run(place, chapter, asked.lang, asked.options)
    if asked.as_json:
        click.echo(json.dumps(result.as_dict()))
    if result.failure is not None or result.rate is None:
        return result.failure or "it has no rate"
    click.echo(shown_lines(result.said), err=True, nl=False)
    if not asked.as_json:
        click.echo(f"{result.rate / 1e6:.2f} MB/s")
        click.echo(f"proof: {result.proof}")
    return None


def _link(asked: _Asked, sender: Chapter) -> int | None:
    """Return how many bits a second the lab's link takes; None where it takes all."""
    if asked.rate is None:
        return None
    if not sender.takes_destination:
        other = "6" if sender is asked.chapter else "--from 6"
        raise click.UsageError(
            f"chapter {sender.number} sends over loopback, without --rate: take {other}"
        )
    return round(8e6 * float(asked.rate))


def _lab(asked: _Asked, chapter: Chapter) -> Lab:
    """Make a lab; where there can be none, say what works without."""
    try:
        return Lab(asked.kind)
    except LabError as error:
        send = _over_loopback(asked, chapter, asked.lang)
        raise instead(error, f"without root, over loopback: {send}") from None


def _over_loopback(asked: _Asked, sender: Chapter, language: str) -> str:
    """Return what sends the same without a lab."""
    if not sender.takes_destination:
        return _started(sender, language)
    if sender in ARRAY:
        options = shlex.join(asked.options.arguments(sender))
        return f"{_started(sender, language)} {options} 127.0.0.1:8888"
    words = [_typed(sender), *_in(language), *asked.options.arguments(sender)]
    return f"spead-tutorial run {shlex.join(words)} --host 127.0.0.1 --port 8888"


def _started(program: Chapter | Receiver, language: str) -> str:
    """Return what starts a program by itself."""
    path = f"$(spead-tutorial path {shlex.join([_typed(program), *_in(language)])})"
    return f"python {path}" if language == "python" else path


def _typed(program: Chapter | Receiver) -> str:
    return program.name if program in (*STEPS, *ARRAY) else str(program.number)


def _in(language: str) -> list[str]:
    return [] if language == "python" else ["--lang", language]


# ---- One that receives, and one that sends to it ----


def _receive(asked: _Asked, receiver: Receiver) -> str | None:
    """Run a pair in a lab, and return why it is no success."""
    sender = asked.sender or find_sender(receiver.sender)
    languages = asked.lang, asked.from_lang or asked.lang
    to_receiver = _to_receiver(asked, receiver, sender, languages[1])
    link = _link(asked, sender)
    with _lab_of_both(asked, receiver, sender, languages) as here:
        done = delivery.deliver(
            here, receiver, sender, languages, asked.options, to_receiver=to_receiver,
            as_json=asked.as_json, show=None if asked.as_json else _show_line,
            bits_per_s=link,
        )  # fmt: skip
    if asked.as_json:
        said = {
            "receiver": done.received.said or None,
            "sender": done.sent.said or None,
            "statuses": [done.received.status, done.sent.status],
            "accounted": done.accounting and done.accounting.ok,
            "account": done.accounting and done.accounting.text,
        }
        click.echo(json.dumps(said))
    elif done.accounting is not None:
        click.echo(f"proof: {done.accounting.text}")
    return done.failure


def _lab_of_both(
    asked: _Asked, receiver: Receiver, sender: Chapter, languages: tuple[str, str]
) -> Lab:
    """Make a lab for a pair; or say what works without, as above."""
    try:
        return Lab(receiver=sender.takes_destination)  # else it sends to its own
    except LabError as error:
        first, second = (
            _started(receiver, languages[0]),
            _over_loopback(asked, sender, languages[1]),
        )
        raise instead(
            error,
            f"without root, over loopback, in one terminal: {first} 127.0.0.1:8888",
            f"and then in another: {second}",
        ) from None


def _to_receiver(asked: _Asked, receiver: Receiver, sender: Chapter, language: str) -> list[str]:
    """Return what a receiver is told besides, or refuse what one of the two does not take."""
    _check(asked, sender, language)
    if asked.buffers is not None and "b" not in receiver.accepted:
        raise click.UsageError(f"chapter {receiver.number} has no option -b")
    return [] if asked.buffers is None else ["-b", str(asked.buffers)]


def _show_line(name: str, line: str, is_trouble: bool) -> None:
    report = None if is_trouble else Report.parse(line)
    if report is not None:
        line = f"{report.payload_bytes / report.elapsed_ns * 1e3:.2f} MB/s"
    elif line.startswith("{"):
        return  # a receiver's, which has said it in words, too
    click.echo(plain(line if is_trouble else f"{name}: {line}"), err=is_trouble)

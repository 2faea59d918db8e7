# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial why``: what makes a sender slow."""

import contextlib
import json
import shlex

import click

from spead_tutorial._shown import shown
from spead_tutorial.lab import PORT, Lab, LabError
from spead_tutorial.lab.device import instead
from spead_tutorial.tools.command_line import Number, Whole
from spead_tutorial.tools.why import receiver as receivers
from spead_tutorial.tools.why.facts import Seen
from spead_tutorial.tools.why.findings import diagnose
from spead_tutorial.tools.why.places import at_process, in_lab
from spead_tutorial.tools.why.report import as_object, text
from spead_tutorial.tools.why.watching import watch


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--seconds", type=Number(0.1, 600), default=2.0, show_default=True,
              help="How long it is looked at undisturbed.")  # fmt: skip
@click.option("--mtu", type=Whole(1280, 65535, in_bytes=True),
              help="The lab's MTU in bytes (9216).")  # fmt: skip
@click.option("--pid", type=Whole(1, 2**31 - 1), help="A sender that runs already.")
@click.option("--receiver", is_flag=True,
              help="COMMAND receives: say why it loses packets.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def why(
    command: tuple[str, ...],
    seconds: float,
    mtu: int | None,
    pid: int | None,
    receiver: bool,
    as_json: bool,
) -> int:
    """Say what makes a sender slow: any that sends UDP, in any language.

    COMMAND starts it, after --. It runs in a lab, and is looked at for some seconds: its rate, its
    packets, its code and its calls; then a bare loop sends as it does, and otherwise.
    {host} and {port} in its words stand for where to send to, which is 192.168.31.2 and 8888;
    SPEAD_TUTORIAL_HOST and SPEAD_TUTORIAL_PORT are the same in its environment. It says what to
    mend first and what that gains, where the time of a packet goes, and what else gains something,
    each with the chapter that mends it. The exit status is 1 where the sender fails, or sends
    nothing.

    With --receiver, COMMAND is a program that receives at {host} and {port}: packets are sent to
    it at rates that find where it loses some, and what is said is where and why.

    \b
    Example: spead-tutorial why -- ./my_sender {host} {port}
    Example: spead-tutorial why --pid 4711
    Example: spead-tutorial why --receiver -- ./my_receiver {host} {port}
    """
    if bool(command) == (pid is not None):
        raise click.UsageError("say what to look at: -- COMMAND, or --pid PID")
    if pid is not None and (mtu or receiver):
        raise click.UsageError("--mtu and --receiver are for a COMMAND in a lab: not with --pid")

    def say(words: str) -> None:
        if not as_json:
            click.echo(shown(f"{words} …"), err=True)

    with contextlib.ExitStack() as stack:
        seen: Seen | str
        if pid is not None:
            seen = watch((), at_process(pid, stack), seconds, say)
        else:
            spot = in_lab(stack.enter_context(_lab(mtu or 9216, receiver, command)))
            words = _told(command, *spot.destination)
            seen = (receivers.watch if receiver else watch)(words, spot, seconds, say)
    if isinstance(seen, str):
        click.echo(
            json.dumps({"lost": 0, "text": seen, "findings": []}) if as_json else shown(seen)
        )
        return 0
    findings = diagnose(seen)
    click.echo(json.dumps(as_object(seen, findings)) if as_json else text(seen, findings))
    return 0


def _lab(mtu: int, receiver: bool, command: tuple[str, ...]) -> Lab:
    """Make a lab; where there can be none, say what is looked at without."""
    try:
        return Lab(mtu=mtu, receiver=receiver)
    except LabError as error:
        if receiver:
            raise
        words = shlex.join(_told(command, "127.0.0.1", PORT))
        raise instead(
            error, f"without root, over loopback: {words} & spead-tutorial why --pid $!; kill $!"
        ) from None


def _told(command: tuple[str, ...], host: str, port: object) -> list[str]:
    """Return the words of a sender that is told where to send to."""
    return [word.replace("{host}", host).replace("{port}", str(port)) for word in command]

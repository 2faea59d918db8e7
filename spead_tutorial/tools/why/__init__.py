# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial why``: what makes a sender slow."""

import contextlib
import json
import shlex
import socket

import click

from spead_tutorial._shown import shown
from spead_tutorial.lab import PORT, Lab, LabError
from spead_tutorial.lab.device import instead
from spead_tutorial.tools.command_line import Number, Whole
from spead_tutorial.tools.why import receiver as receivers
from spead_tutorial.tools.why.findings import diagnose
from spead_tutorial.tools.why.places import AtProcess, InLab, Spot
from spead_tutorial.tools.why.report import as_object, text
from spead_tutorial.tools.why.watching import watch


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--seconds", type=Number(0.1, 600), default=2.0, show_default=True,
              help="How long it is looked at undisturbed.")  # fmt: skip
@click.option("--mtu", type=Whole(1280, 65535, in_bytes=True),
              help="The lab's MTU in bytes (9216).")  # fmt: skip
@click.option("--pid", type=Whole(1, 2**31 - 1), help="A sender that runs already.")
@click.option("--interface", metavar="NAME",
              help="An interface of this machine, in place of a lab.")  # fmt: skip
@click.option("--allow-real-network", is_flag=True,
              help="With --interface: packets may leave this machine.")  # fmt: skip
@click.option("--no-strace", is_flag=True, help="Do not look at its system calls.")
@click.option("--receiver", is_flag=True,
              help="COMMAND receives: say why it loses packets.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def why(
    command: tuple[str, ...],
    seconds: float,
    mtu: int | None,
    pid: int | None,
    interface: str | None,
    allow_real_network: bool,
    no_strace: bool,
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
    there = [device for _, device in socket.if_nameindex()]
    is_for_lab = any("{host}" in word or "{port}" in word for word in command)
    refusals = {
        "say what to look at: -- COMMAND, or --pid PID": bool(command) == (pid is not None),
        "--mtu is a lab's: neither --interface nor --pid has one":
            (interface or pid) is not None and mtu is not None,
        "--interface is for a COMMAND: with --pid it is found": None not in (interface, pid),
        "--allow-real-network goes with --interface: a lab has no real network":
            allow_real_network and interface is None,
        f"there is no interface {interface!r} here: there are {', '.join(there)}":
            interface not in (None, *there),
        f"{interface} may lead out of this machine: say --allow-real-network, too":
            interface not in (None, "lo") and not allow_real_network,
        "--receiver is for a COMMAND in a lab: without --pid and --interface":
            receiver and (pid or interface) is not None,
        "{host} and {port} are a lab's: with --interface, say where the sender sends to":
            interface is not None and is_for_lab,
    }  # fmt: skip
    for refusal, is_wrong in refusals.items():
        if is_wrong:
            raise click.UsageError(refusal)

    def say(words: str) -> None:
        if not as_json:
            click.echo(shown(f"{words} …"), err=True)

    with contextlib.ExitStack() as stack:
        spot: Spot
        if pid is not None:
            spot = AtProcess(pid)
        elif interface is not None:
            spot = Spot(interface)
        else:
            spot = InLab(stack.enter_context(_lab(mtu or 9216, receiver, command)))
        host, port = spot.destination or ("{host}", "{port}")
        words = _told(command, host, port)
        if receiver:
            assert isinstance(spot, InLab)
            seen = receivers.watch(words, spot, seconds, say, trace=not no_strace)
        else:
            seen = watch(words, spot, seconds, say, trace=not no_strace)
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
            error, f"without root, over loopback: spead-tutorial why --interface lo -- {words}"
        ) from None


def _told(command: tuple[str, ...], host: str, port: object) -> list[str]:
    """Return the words of a sender that is told where to send to."""
    return [word.replace("{host}", host).replace("{port}", str(port)) for word in command]

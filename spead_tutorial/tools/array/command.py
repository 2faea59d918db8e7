# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial array``: every sender to every receiver, on a lab's machines or a cluster's."""

import contextlib
import functools
import ipaddress
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from click.core import ParameterSource

from spead_tutorial.ledger import some
from spead_tutorial.measure.corner_turn import MOST, Asked
from spead_tutorial.measure.machine import header
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.measure.records import Recording, Turn, Writer
from spead_tutorial.results import plots
from spead_tutorial.results.account import Account
from spead_tutorial.results.tables import plain
from spead_tutorial.tools.array.highest import search
from spead_tutorial.tools.command_line import LANGUAGE, OF_LANGUAGES, Number, Whole

if TYPE_CHECKING:
    from spead_tutorial.tools.array import local

_LOCAL = 4  # machines of a lab, where nobody says how many
_MACHINE = Whole(0, MOST - 1)
_FILES = ("page", "plot", "record")  # that it leaves
_PATH = click.Path(dir_okay=False, writable=True, path_type=Path)
_file = functools.partial(click.option, type=_PATH, metavar="FILE")
_count = functools.partial(click.option, metavar="COUNT", show_default=True)
_bytes = functools.partial(
    click.option, type=Whole(1, in_bytes=True), metavar="BYTES", show_default=True
)


def _network(context: click.Context, option: click.Parameter, word: str | None) -> str | None:
    try:
        return None if word is None else str(ipaddress.IPv4Network(word))
    except ValueError as error:
        raise click.UsageError(f"{option.opts[0]}: {error}") from None


@click.command()
@_count("--senders", type=Whole(1, MOST), default=4)
@_count("--receivers", type=Whole(1, MOST), default=4)
@_count("--local", type=Whole(1, MOST), help="Make a lab with so many machines: 4 by default.")
@click.option("--scheduler", envvar="DASK_SCHEDULER_ADDRESS", metavar="ADDRESS",
              help="Use the workers of a scheduler of Dask's.")  # fmt: skip
@_count("--workers", type=Whole(1), help="Wait until the scheduler has so many: 1 by default.")
@click.option("--rate", type=Number(0.001, 1e6), default=10.0, show_default=True, metavar="MB/S",
              help="What each sender sends, to all receivers together.")  # fmt: skip
@click.option("--seconds", type=Number(0.1, 1e6), default=5.0, show_default=True,
              metavar="SECONDS", help="For how long.")  # fmt: skip
@_bytes("-H", "--heap-size", default=1 << 16, help="Bytes of samples in a heap.")
@_bytes("-p", "--packet-size", default=8192,
        help="Bytes in a packet at most, UDP and IP not counted.")  # fmt: skip
@click.option("--multicast", "groups", default="239.1.0.0/24", show_default=True, metavar="NETWORK",
              callback=_network, help="Groups: each receiver has one.")  # fmt: skip
@click.option("--unicast", is_flag=True, help="Send to the receivers' own addresses.")
@_count("--ttl", type=Whole(1, 255), default=1, help="Networks that multicast may cross.")
@click.option("--port", type=Whole(1, 65535), default=8888, show_default=True, metavar="PORT",
              help="The first that a receiver has: it has one for each sender.")  # fmt: skip
@click.option("--lang", "language", type=LANGUAGE, default="c", show_default=True,
              metavar=OF_LANGUAGES, help="Which of chapter 19's programs.")  # fmt: skip
@click.option("--data-network", metavar="NETWORK", callback=_network,
              help="Data goes by each machine's card that has an address in it.")  # fmt: skip
@click.option("--search", is_flag=True,
              help="Find the highest rate without a loss, in runs from --rate on.")  # fmt: skip
@click.option("--slow", type=(_MACHINE, Number(0.125, 4000)), multiple=True,
              metavar="MACHINE MB/S", help="In the lab: limit a machine's link.")  # fmt: skip
@click.option("--lose", type=(_MACHINE, Number(0.000001, 1)), multiple=True,
              metavar="MACHINE SHARE",
              help="In the lab: lose a share of the packets for a machine.")  # fmt: skip
@click.option("--allow-real-network", is_flag=True, help="Let packets leave the lab.")
@_file("--page", help="Write a page with all of it, to look at and to pass on.")
@_file("--plot", help="Draw the matrix, as an SVG.")
@_file("--record", help="Write what was measured, as `python -m bench status` reads it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with everything.")
def array(**given: Any) -> int:
    """Send from every sender to every receiver, and account for every packet of every pair.

    It runs the programs of chapter 19. Without --scheduler, they run in a lab on this machine, and
    nothing leaves it. With it, each worker of Dask's is a machine, and senders and receivers take
    turns on them. Receivers are started first; once all have joined, the senders are. The exit
    status is 1 where a packet is missing, or a program failed.

    With --search, the rate is doubled until a packet is missing, or halved until none is, and then
    what is between the two is halved, down to 9 percent. Three runs in a row have to lose nothing
    at the rate that is found. Each takes --seconds and a few more, and standard error says what
    came of it. The account is of that rate; after Ctrl-C, of the best so far.

    \b
    Example: spead-tutorial array
    Example: spead-tutorial array --search --senders 2 --receivers 2 --rate 5 --slow 1 20
    Example: spead-tutorial array --local 3 --senders 2 --receivers 3 --slow 1 4
    Example: spead-tutorial array --lose 0 0.01 --page array.html
    Example: spead-tutorial array --scheduler tcp://10.0.0.1:8786 --allow-real-network
    """
    given["groups"] = None if given["unicast"] else given["groups"]
    for wrong in _wrong(given):
        raise click.UsageError(wrong)
    asked = Asked(**{name: given[name] for name in Asked.__struct_fields__})
    with _machines(given) as measure:
        about = header("array", {}, {"drawn_by": _typed()})
        found, measured = search(measure, asked) if given["search"] else (None, measure(asked))
    account = Account(measured)
    if given["as_json"]:
        more: dict[str, object] = {"search": found.as_dict()} if found else {}
        more["measured"] = msgspec.to_builtins(measured)
        click.echo(json.dumps(account.as_dict() | more))
    else:
        for line in (*([found.answer, ""] if found else []), *account.lines()):
            click.echo(plain(line))
    mtu = min((one.mtu for one in measured.machines if one.mtu), default=None)
    lab = {"kind": "veth" if measured.switch else "network", "mtu": mtu}
    recording = Recording.of(msgspec.structs.replace(about, lab=lab), [Turn.of(measured)])
    _write(given, recording, found.answer if found else "")
    return _status(account)


def _write(given: dict[str, Any], recording: Recording, answer: str) -> None:
    """Write the files that were asked for."""
    if given["record"]:
        with Writer(given["record"], recording.header) as writer:
            for one in recording.taken:
                writer.add(one)
    if given["page"]:
        from spead_tutorial.tools.array.page import page  # no other command should wait for it

        given["page"].write_text(page(recording, answer), encoding="utf-8")
    if given["plot"]:
        given["plot"].write_bytes(plots.render(plots.matrix(recording), plots.LIGHT))


def _typed() -> str:
    """Return the command that was typed, without the files that it leaves."""
    context = click.get_current_context()
    words = ["spead-tutorial", "array"]
    for option in context.command.params:
        value, typed = context.params[option.name], context.get_parameter_source(option.name)
        if typed is ParameterSource.DEFAULT or option.name in (*_FILES, "as_json"):
            continue
        for one in value if option.multiple else [value]:
            each = () if one is True else one if isinstance(one, tuple) else (one,)
            texts = (f"{x:.12g}" if isinstance(x, float) else str(x) for x in each)
            words += [option.opts[0], *texts]
    return shlex.join(words)


def _wrong(given: dict[str, Any]) -> Iterator[str]:
    """Say what does not go together."""
    if given["scheduler"] and (given["local"] or given["slow"] or given["lose"]):
        yield "--local, --slow and --lose are for a lab, without --scheduler"
    if not given["scheduler"] and (given["workers"] or given["data_network"]):
        yield "--workers and --data-network are for a cluster, with --scheduler"
    for name in _FILES:
        if given[name] and not given[name].parent.is_dir():
            yield f"--{name} {given[name]}: there is no such folder"
    for machine, _ in (*given["slow"], *given["lose"]):
        if machine >= (given["local"] or _LOCAL):
            yield f"there is no machine {machine}: they are counted from 0"
    groups = ipaddress.IPv4Network(given["groups"] or "224.0.0.0/4")
    if not groups.is_multicast:
        yield f"--multicast {groups} has no groups: those begin at 224.0.0.0"
    if (n := groups.num_addresses) < given["receivers"]:
        yield f"--multicast {groups} has {some(n, 'group')}, not one for each receiver"


def _machines(given: dict[str, Any]) -> "contextlib.AbstractContextManager[local.Measure]":
    """Return what lends that which measures, in a lab or on workers."""
    try:
        if given["plot"] or given["page"]:
            plots.require()  # before anything is measured
        from spead_tutorial.tools.array import local
    except plots.MissingError as error:
        raise ProgramError(str(error)) from None
    except ImportError as error:
        needs = "array needs Dask: pip install 'spead-tutorial[array]'"
        raise ProgramError(f"{error}: {needs}") from None
    if given["scheduler"]:
        return local.workers_of(given["scheduler"], given["workers"] or 1)
    return local.lab_of(given["local"] or _LOCAL, dict(given["slow"]), dict(given["lose"]))


def _status(account: Account) -> int:
    """Say on the standard error what is not as it should be; what was measured is said already."""
    for line in account.failures:
        click.echo(f"spead-tutorial: {plain(line)}", err=True)
    if account.measured.interrupted:
        raise KeyboardInterrupt
    return 0 if account.is_whole else 1

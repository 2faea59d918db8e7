# SPDX-License-Identifier: BSD-3-Clause
"""What every command says when it is asked for what cannot be: one line, and status 2 or 1."""

import os
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from bench.cli import cli as bench
from spead_tutorial.lab import LabError
from spead_tutorial.measure import place
from spead_tutorial.measure.programs import built
from spead_tutorial.tools.cli import cli
from support import ROOT
from support.bench import write
from support.labs import needs_lab
from support.tours import recorded
from support.typed import check_refused

EIGHT_IN_C = ROOT / "csrc" / "chapters" / "tut_8_send_reuse_memory.c"


def options_of(command: click.Command) -> Iterator[click.Option]:
    """All options of a command, and of those below it."""
    yield from (one for one in command.params if isinstance(one, click.Option))
    for below in getattr(command, "commands", {}).values():
        yield from options_of(below)


pytestmark = pytest.mark.usefixtures("elsewhere")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("nothing", "No such command 'nothing'"),
        ("path 99", "there is no program '99': say ceiling, sink, blast, or a chapter"),
        ("--nothing", "No such option"),
        ("run", "Missing argument 'CHAPTER'"),
        ("run 99", "there is no chapter '99': those that send are 2, 4, 5,"),
        ("run 99", "16, and those that receive 3, 7, 9, 12, 17, 18"),
        ("run 1", "chapter 1 has no program: those that send are 2, 4, 5,"),
        ("run 3 --from 20", "there is no chapter '20': those that send are"),
        ("run 19", "the programs of chapter 19, tut_19_send_corner_turn and"),
        ("run 3 --from 3", "chapter 3 receives: those that send are 2, 4, 5,"),
        ("run 3 -n 5", "chapter 2 has no option -n"),
        ("run 3 --host 127.0.0.1 --port 9", "chapter 3 is receiving in a lab, without --host"),
        ("run 3 --kind ifb", "chapter 3 is receiving in a lab, without --kind"),
        ("run 10 --from 2", "without --from: that is for receiving in a lab"),
        ("run 10 -b 2", "without -b: that is for receiving"),
        ("run 3 -b 2", "chapter 3 has no option -b"),
        ("run 9 -b 1001", "'-b': it must be a whole number from 0 to 1000, not '1001'"),
        ("run 7 --from 6 --rate nan", "it must be a number from 0.125 to 4000, not 'nan'"),
        ("run 3 --rate 100", "chapter 2 sends over loopback, without --rate: take --from 6"),
        ("run 2 --rate 100", "chapter 2 sends over loopback, without --rate: take 6"),
        ("run 6 --rate 100 --host 127.0.0.1 --port 9", "sending to --host, without --rate"),
        ("run 10 11", "extra argument"),
        ("lab", "Missing argument 'COMMAND...'"),
        ("lab --receiver --kind ifb -- true", "--receiver is by loopback, without --kind"),
        ("run 10 --lang rust", "there is no program in 'rust': say python, c, cpp (or c++)"),
        ("run 3 --from-lang ''", "there is no program in ''"),
        ("run 10 --lang", "(see spead-tutorial run --help)"),
        ("run 10 --kind eth", "'eth'"),
        ("run 10 -n 0", "'-n': it must be a whole number from 1 to 2^63-1, not '0'"),
        (f"run 10 -n {1 << 63}", "from 1 to 2^63-1"),
        ("run 10 -n 8KiB", "from 1 to 2^63-1, not '8KiB'"),
        ("run 10 -H 8K", "a number of bytes from 1 to 2^63-1, such as 8192, 8KiB or 1MiB, not"),
        ("run 10 -p zero", "'-p': it must be a number of bytes"),
        ("run 14 -s 1025", "from 1 to 1024"),
        ("check 8 --rounds 0 x", "from 1 to 100"),
        ("run 10 -r", "chapter 10 has no option -r: it takes -n, -H, -p"),
        ("run 4 -p 9000", "chapter 4 has no option -p"),
        ("run 6 -H 8192", "chapter 6 has no option -H"),
        ("run 2 -n 3", "chapter 2 has no option -n: it takes none"),
        ("run 2 --host 127.0.0.1 --port 9", "takes no destination"),
        ("run 10 --host 127.0.0.1", "--host and --port go together"),
        ("run 10 --host 127.0.0.1 --port 0", "--port"),
        ("run 10 --allow-real-network", "that is for sending to --host"),
        ("run 10 --kind ifb --host 127.0.0.1 --port 9", "sending to --host, without --kind"),
        ("tour --output /proc/self/status", "--output"),
        ("why", "say what to look at: -- COMMAND, or --pid PID"),
        ("why --pid 1 -- true", "say what to look at"),
        ("why --pid 1 --mtu 1500", "--mtu and --receiver are for a COMMAND"),
        ("why --seconds 0 -- true", "it must be a number from 0.1 to 600, not '0'"),
        ("why --pid x", "a whole number from 1 to"),
        ("check 1 x.py", "chapter 1 has no exercise: there are those of 2, 3, 4,"),
        ("check ten x.py", "'ten' is no chapter's number"),
        ("check 8", "say which program: my_sender.py; or --skeleton, to begin one"),
        ("check 8 no_such_file.py", "'no_such_file.py' does not exist"),
        ("check 8 --skeleton F", "--skeleton and --hint go without a program"),
        (f"check 7 {EIGHT_IN_C}", "a program that receives has to be in Python"),
        ("recv", "Missing argument '[HOST:]PORT|CAPTURE'"),
        ("recv 8888 --filter 'port 1'", "--filter is for captures, which port 8888"),
        ("recv / --interface lo", "--interface is for sockets, which / is not"),
        ("recv nowhere", "is no place to listen, and no file: say a port"),
        ("recv ''", "is no place to listen, and no file"),
        ("recv 127.0.0.1:0", "a port from 1 to 65535"),
        ("recv ::1:8888", "an IPv6 address in brackets, as [::1]:8888"),
        ("recv 8888 --interface 127.0.0.1", "--interface is for a multicast group"),
        ("recv '[ff02::1234]:8888' --interface none0", "there is no interface 'none0'"),
        ("recv 8888 --silence 0", "it must be a number above 0, not '0'"),
        ("recv 8888 --silence soon", "it must be a number above 0, not 'soon'"),
        ("recv 8888 --max-heap-size 1TB", "such as 8192, 8KiB or 1MiB"),
        ("recv 8888 --buffer 2GiB", "from 0 to 2147483647"),
        ("recv 8888 --max-size 64KiB", "from 1 to 65535"),
    ],
)
def test_what_is_asked_for_wrongly_is_one_line_and_status_2(here, monkeypatch, arguments, words):
    monkeypatch.setattr(socket, "if_nameindex", lambda: [(1, "lo"), (2, "eth7")])
    Path("F").touch()
    check_refused(here(*shlex.split(arguments)), 2, words)


@pytest.mark.parametrize(
    "arguments",
    [
        "path 10 --lang C++",
        "recv 8888 --max-heap-size 1GiB --count 1 --silence 0.01 --buffer 8MiB --max-size 9kB",
    ],
)
def test_words_are_taken_as_pages_write_them(here, arguments):
    done = here(*shlex.split(arguments))
    assert "Invalid value" not in done.stderr
    assert done.returncode != 2


@pytest.mark.parametrize("command", [cli, bench], ids=["spead-tutorial", "bench"])
def test_no_help_and_no_refusal_has_a_range_in_signs(command):
    for option in options_of(command):
        assert "<=x" not in option.get_help_extra(click.Context(command)).get("range", "")
        if isinstance(option.type, click.IntRange | click.FloatRange):
            with pytest.raises(click.BadParameter, match=r"it must be a .*number"):
                option.type.convert("none", option, None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("recv /", "/ is no file: captures are read from files"),
        ("recv 198.51.100.1:8888", "could not listen on '198.51.100.1', port 8888"),
        ("recv 'not a host:8888'", "check its spelling"),
        ("recv 8888 --max-heaps 2147483647", "no memory for a depacketizer"),
        ("notebook", "there are no notebooks in notebooks: say it in the rep"),
        ("tour --output out --from-record", "out has no record of a tour: "),
        pytest.param(
            "why --json -- ./no-such-sender",
            "it cannot be started: ./no-such-sender: No such file or directory\n",
            marks=needs_lab,
        ),
        *(
            pytest.param(
                f"run 8 --lang {language} -H {1 << 62}",
                "tut_8_send_reuse_memory: ",
                marks=needs_lab,
            )
            for language in built()
        ),
    ],
)
def test_what_cannot_be_done_is_one_line_and_status_1(elsewhere, here, arguments, words):
    check_refused(here(*shlex.split(arguments)), 1, words)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("more", [[], ["--allow-real-network"]])
def test_where_packets_may_not_go_is_one_line_and_status_1(here, monkeypatch, more):
    def refuse(host: str, *, allow_real_network: bool) -> None:
        raise LabError(f"{host} {allow_real_network}")

    monkeypatch.setattr(place, "check_destination", refuse)
    done = here("run", "10", "--host", "192.0.2.1", "--port", "9", *more)
    check_refused(done, 1, f"192.0.2.1 {bool(more)}\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--output", "F/tour"], "F/tour: Not a directory: say with --output a folder that can be"),
        (["--output", "/proc/none"], "/proc/none: No such file or directory: say with --output"),
        (["--from-record", "--output", "out"], "out/index.html: Is a directory: say with --output"),
    ],
)
def test_a_folder_that_a_tour_cannot_write_into_is_said_with_the_option(here, arguments, words):
    Path("F").write_text("")
    Path("out/index.html").mkdir(parents=True)
    write(Path("out/tour.jsonl"), recorded())
    done = here("tour", *arguments)
    *_, last = done.stderr.splitlines()
    assert (done.returncode, last.startswith(f"spead-tutorial: {words}")) == (1, True), last
    assert ("tour.jsonl of a tour in it" in last) is ("--from-record" in arguments)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_made_is_one_line_and_status_1(elsewhere, here):
    elsewhere.chmod(0o500)
    check_refused(here("tour", "--output", elsewhere / "a"), 1, "Permission denied")

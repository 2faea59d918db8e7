# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial recv``: what arrives is shown, and every packet accounted for."""

import errno
import itertools
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import spead_tutorial as st
from spead_tutorial import recv, send
from spead_tutorial.tools import recv as command
from support import captures
from support.labs import needs_lab
from support.receivers import flat, packets_of
from support.typed import COMMAND, PATIENCE_S, PIPES, Run

PORT = 8888
N_SAMPLES = 3000
WHOLE = re.compile(r"all (\d+) packets are accounted for, none is missing")

_addresses = itertools.count()


def own_address() -> str:
    """An address of loopback that no other test, or worker, has: its ports are free."""
    pid, n = os.getpid(), next(_addresses)
    return f"127.{1 + n % 250}.{pid >> 8 & 255}.{pid & 255}"


def send_to(host: str, packets: Iterable[bytes]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for packet in packets:
            sock.sendto(packet, (host, PORT))


@pytest.fixture
def running() -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """The command as a process that listens, and its address."""
    host = own_address()
    with subprocess.Popen([COMMAND, "recv", f"{host}:{PORT}"], **PIPES) as process:
        try:
            assert "listening" in process.stdout.readline()
            yield host, process
        finally:
            process.kill()


@pytest.fixture
def said(here: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """A function that runs the command in this process, sent some packets, until its end."""

    def receive(packets: Iterable[bytes], *options: str, status: int = 0) -> str:
        class Fed(recv.Stream):
            def add_udp_reader(self, host: str, port: int, *more: Any, **how: Any) -> None:
                super().add_udp_reader(host, port, *more, **how)
                send_to(host, packets)

        monkeypatch.setattr(command, "Stream", Fed)
        done = here("recv", f"{own_address()}:{PORT}", *options)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    return receive


def group(dtype: type = np.int16, name: str = "samples") -> send.ItemGroup:
    made = send.ItemGroup()
    made.add_item(0x1600, "timestamp", "in ticks", (), format=[("u", 40)])
    made.add_item(0x3300, name, "of the converter", (N_SAMPLES,), dtype)
    made["timestamp"].value = 7
    made[name].value = np.arange(N_SAMPLES).astype(dtype)
    return made


def packets(*heaps: send.Heap) -> list[list[bytes]]:
    """The packets of each heap, whose counts begin at 1."""
    return [packets_of(heap, cnt) for cnt, heap in enumerate(heaps, 1)]


def whole(n: int) -> list[list[bytes]]:
    """The packets of heaps with all that they can have, and of the end."""
    return packets(*[group().get_heap("all", "all") for _ in range(n)], group().get_end())


def rows(out: str) -> dict[str, int]:
    """The rows of the account by their first words."""
    found = re.findall(r"^[a-z]* +(\d+)  ([a-z ]+)", out, re.M)
    return {what: int(count) for count, what in found}


# ---- What arrives ----


def test_what_is_sent_is_described_shown_and_accounted_for(said):
    sent = flat(whole(3))
    out = said(sent)
    assert out.partition("\n")[2].startswith(
        "described: 0x1600 timestamp, uint40: in ticks\n"
        "described: 0x3300 samples, int16[3000]: of the converter\n"
        "heap 1: 2 items\n"
        "    samples  int16[3000] 0 1 2 3 … from 0 to 2999\n"
        "    timestamp  7\n"
        "heap 2: "
    )
    assert out.count("described:") == 2
    assert rows(out)["complete"] == 3
    assert WHOLE.fullmatch(out.splitlines()[-1])[1] == str(len(sent))


def test_descriptors_that_change_and_values_that_come_before_them_are_told(said):
    sent = packets(
        group().get_heap("none", "all"),
        group().get_heap("all", "all"),
        group(dtype=np.int32).get_heap("all", "all"),
        group(name="spectra").get_heap("all", "none"),
        group(dtype=np.int32).get_heap("all", "none"),
        group().get_end(),
        group().get_heap("none", "all"),
    )
    out = said(flat(sent), "--keep-going", "--count", "7")
    assert "heap 1: 2 items\n    0x3300  6000 bytes, not described\n    0x1600  7, not" in out
    assert "changed: 0x3300 samples, int32[3000]: of the converter" in out
    assert "changed: 0x3300 spectra, int16[3000]" in out
    assert "heap 6: says that the stream ends" in out
    assert "1 heap had values that no descriptor had come for" in out
    # The last heap has half of what its descriptor says by now.
    assert re.search(r"heap 7: .*\n    item 'samples' \(0x3300\): .*\n    timestamp  7\n", out)


@pytest.mark.parametrize("options", [(), ("--stats",)])
def test_heaps_that_come_fast_or_are_only_counted_are_a_line_for_each_window(
    said, monkeypatch, options
):
    monkeypatch.setattr(command.Pace, "FEW", 0)
    monkeypatch.setattr(command, "_WINDOW_S", 0.0)
    out = said(flat(whole(25)), *options)
    assert "heaps/s, 25 heaps in all; nothing missing" in out
    assert "heap 1" not in out
    assert ("described" in out) is (options == ())
    assert WHOLE.search(out)


def described_anew(n: int) -> list[list[bytes]]:
    """Packets of heaps each of which describes an item in another way."""
    heaps = []
    for i in range(n):
        made = send.ItemGroup()
        made.add_item(0x3300, "samples", f"{i}", (1,), np.int8, value=np.zeros(1, np.int8))
        heaps.append(made.get_heap("all", "none"))
    return packets(*heaps, group().get_end())


def test_of_descriptors_that_go_on_changing_some_are_shown_and_how_many_more_there_were(
    said, monkeypatch
):
    monkeypatch.setattr(command, "_WINDOW_S", 3600.0)
    monkeypatch.setattr(command, "DESCRIBED", 20)
    out = said(flat(described_anew(200)))
    about = [line for line in out.splitlines() if re.match("(described|changed): ", line)]
    assert len(about) == 20
    assert "\n… and 180 more lines about descriptors\n" in out


def test_heaps_of_very_many_values_come_fast_too(said, monkeypatch):
    monkeypatch.setattr(command, "_WINDOW_S", 3600.0)
    monkeypatch.setattr(command.Pace, "MANY", 5)
    out = said(flat(whole(4)))
    assert re.findall(r"(?m)^heap (\d+): 2 items$", out) == ["1", "2"]


def test_warnings_are_each_said_once_and_at_last_how_many_more_there_were(monkeypatch, capsys):
    monkeypatch.setattr(command, "_MOST_WARNINGS", 3)
    logger = logging.getLogger("spead_tutorial.recv")
    with command.warnings_shown(command.Screen(is_quiet=False)):
        for n in (1, 1, 2, 3, 4, 4, 5):
            logger.warning("fault %d", n)
    *said, more = capsys.readouterr().err.splitlines()
    assert said == [f"spead-tutorial: fault {n}" for n in (1, 2, 3)]
    assert more == "spead-tutorial: … and 4 more warnings"
    with command.warnings_shown(command.Screen(is_quiet=False)):
        logger.warning("fault 1")
    assert capsys.readouterr().err == "spead-tutorial: fault 1\n"


# ---- What does not ----


def test_what_cannot_be_read_or_written_of_a_strangers_items_ends_nothing(said):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s}"
    raws = [
        # NumPy divides by zero for it.
        st.RawDescriptor(0x1000, b"x", b"", (header % ("M8[D/0]", "()")).encode(), [], []),
        st.RawDescriptor(0x1001, b"wide", b"", b"", [("u", 16000)], []),
        st.RawDescriptor(0x1002, b"text", b"", (header % ("<U1", "(1,)")).encode(), [], []),
    ]
    heap, data = send.Heap(), b"\xab" * 2000
    for raw in raws:
        heap.add_descriptor(SimpleNamespace(to_raw=lambda flavour, raw=raw: raw))
        heap.add_item(st.Item(raw.id, "x", "", (len(data),), np.uint8, value=list(data)))
    out = said(flat(packets(heap, group().get_heap("all", "all"), group().get_end())))
    assert "a descriptor that cannot be read, of 0x1000: NumPy header" in out
    assert "described: 0x1001 wide, uint16000\n" in out
    assert re.search(r"\n    wide  0x(ab){28}a…\n    text  cannot be shown: ", out)
    assert "heap 2: 2 items" in out
    assert WHOLE.search(out)


def test_what_is_missing_is_said_and_the_option_that_mends_it(said):
    *three, end = whole(3)
    first = three[0]
    swapped = [first[0], first[2], first[1], *first[3:], *end]
    mixed = [*itertools.chain(*zip(*three, strict=True)), *end]
    for sent, wrong, words, right in (
        (swapped, ["--in-order"], "heap 1: incomplete, ", []),
        (mixed, ["--max-heaps", "1"], "raise --max-heaps", ["--max-heaps", "3"]),
        ([*first, *end], ["--max-size", "1000"], "raise --max-size", []),
    ):
        assert words in said(sent, *wrong, status=1)
        assert WHOLE.search(said(sent, *right))


def test_after_silence_what_is_missing_is_lost(said):
    first, _ = whole(1)
    ends = ["--silence", "0.2"]
    assert rows(said(first[:-1], *ends, status=1))["incomplete"] == 1
    found = json.loads(said(first[:-1], *ends, "--json", status=1))
    assert (found["ended_by"], found["is_whole"]) == ("silence", False)
    assert found["troubles"][0].startswith("1 heap lacks packets that never reached this socket")


def test_a_sender_that_is_started_again_is_another_one_and_one_that_repeats_itself_is_told(running):
    """Each `send_to` has a port of its own, and all count from 1."""
    host, process = running
    *heaps, end = whole(3)
    for _ in range(3):
        send_to(host, flat(heaps))
    send_to(host, flat([*heaps, heaps[1]]))  # the last one comes twice
    send_to(host, end)
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert rows(out)["complete"] == 4 * 3
    assert f"{len(heaps[1])} packets late" in out
    assert "--in-order takes as new heaps" in out


# ---- Captures ----


def test_what_was_captured_is_described_shown_and_accounted_for(here, tmp_path):
    frames = [captures.frame(packet) for packet in flat(whole(2))]
    path = captures.write(tmp_path / "night.pcap", [captures.frame(b"else", port=53), *frames])
    done = here("recv", path, "--filter", "udp dst port 8888")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(
        f"reading {path}\ndescribed: 0x1600 timestamp, uint40: in ticks\n"
    )
    assert rows(done.stdout) | {"captured": len(frames) + 1, "of no ": 1} == rows(done.stdout)
    assert WHOLE.search(done.stdout)
    assert "malformed" in here("recv", path).stdout.splitlines()[-1]
    found = json.loads(here("recv", path, "--filter", "dst port 1", "--json").stdout)
    assert found["troubles"][0].startswith(f"of {len(frames) + 1} frames in the capture none")


# ---- How it ends ----


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_prints_the_account_and_ends_as_all_commands_do(running, number):
    host, process = running
    send_to(host, whole(1)[0])
    assert any("heap 1" in line for line in iter(process.stdout.readline, ""))
    process.send_signal(number)
    out, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, "Traceback" in errors) == (128 + number, False)
    assert WHOLE.search(out)


def test_it_ends_after_so_many_heaps_and_what_still_arrives_is_not_lost(said):
    first, second, third, _ = whole(3)
    out = said([*first, *third[:1], *second], "--count", "2")
    assert rows(out)["still arriving"] == 1
    assert WHOLE.search(out)


def test_as_json_it_is_one_object_and_nothing_else(said):
    found = json.loads(said(flat(whole(2)), "--json"))
    assert (found["ended_by"], found["is_whole"], found["troubles"]) == ("stream", True, [])
    assert found["stats"]["heaps"] == 2
    assert found["heaps_without_descriptors"] == 0
    assert found["items"][1] == {
        "id": 0x3300, "name": "samples", "description": "of the converter",
        "shape": [N_SAMPLES], "dtype": "int16", "format": None,
    }  # fmt: skip


def test_it_ends_quietly_where_nobody_reads(running):
    host, process = running
    process.stdout.close()
    send_to(host, flat(whole(1)))
    errors = process.stderr.read()
    assert process.wait(PATIENCE_S) == 1
    assert "Traceback" not in errors


def test_a_socket_that_fails_is_said_once_and_is_no_success(monkeypatch, here):
    class Failing(recv.Stream):
        def add_udp_reader(self, *_: object, **__: object) -> None:
            self.stop()

        def _counts(self) -> dict[str, Any]:
            return super()._counts() | {"sys_errno": errno.EIO}

    monkeypatch.setattr(command, "Stream", Failing)
    done = here("recv", "8888")
    assert done.returncode == 1
    out = done.stdout + done.stderr
    assert out.count("a socket failed, which ended the stream: Input/output error") == 1
    assert out.count(os.strerror(errno.EIO)) == 1


def test_the_account_is_printed_and_says_what_to_look_at_even_if_the_command_fails(
    monkeypatch, here, capfd
):
    def fail(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(command.HeapWatcher, "run", fail)
    with pytest.raises(RuntimeError, match="a fault of ours"):
        here("recv", f"{own_address()}:{PORT}")
    assert "nothing has arrived: look at the sender's address" in capfd.readouterr().out


# ---- Elsewhere than on one address of loopback ----


INDEX = [sys.executable, "-S", "-c", "import socket; print(socket.if_nametoindex('dummy1'))"]


@needs_lab
@pytest.mark.parametrize(
    ("place", "host"),
    [
        (["127.0.0.1:8888"], "127.0.0.1"),
        (["8888"], "127.0.0.1"),
        (["8888"], "::1"),
        (["239.1.2.3:8888", "--interface", "192.168.31.1"], "239.1.2.3"),
        (["[ff12::8888%dummy1]:8888"], "ff12::8888"),
    ],
)
def test_it_receives_in_a_lab_and_multicast_too(lab, place, host):
    family, scope = socket.AF_INET, ()
    if host == "::1":
        family = socket.AF_INET6
    elif ":" in host:
        family, scope = socket.AF_INET6, (0, int(lab.run(INDEX, capture_output=True).stdout))
    argv = [COMMAND, "recv", *place, "--silence", "10"]
    with lab.popen(argv, stdout=subprocess.PIPE, text=True) as running, lab.socket(family) as sock:
        assert "listening" in running.stdout.readline()
        for packet in flat(whole(1)):
            sock.sendto(packet, (host, PORT, *scope))
        out = running.stdout.read()
        assert running.wait(PATIENCE_S) == 0
    assert "timestamp  7\n" in out
    assert WHOLE.search(out)

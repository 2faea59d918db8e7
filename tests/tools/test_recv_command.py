# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial recv`` as a process: what arrives is shown, and every packet accounted for."""

import errno
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import spead_tutorial as st
from spead_tutorial import recv, send
from spead_tutorial.catalogue import find_chapter
from spead_tutorial.measure import programs
from spead_tutorial.measure.programs import ProgramOptions, built
from spead_tutorial.receive import command
from support.labs import probe

COMMAND = [str(Path(sys.executable).parent / "spead-tutorial")]
PATIENCE_S = 60
PORT = 8888
N_SAMPLES = 3000
WHOLE = re.compile(r"all (\d+) packets are accounted for, none is missing")

_addresses = itertools.count()


def own_address() -> str:
    """An address of loopback that no other test, or worker, has: its ports are free."""
    pid, n = os.getpid(), next(_addresses)
    return f"127.{1 + n % 250}.{pid >> 8 & 255}.{pid & 255}"


class Receiver:
    """A running command that listens."""

    def __init__(self, folder: Path, *options: str, place: str | None = None) -> None:
        self.host = own_address()
        self.process = subprocess.Popen(
            [*COMMAND, "recv", place or f"{self.host}:{PORT}", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
        )
        said = self.process.stderr if "--json" in options else self.process.stdout
        self.wait_for("listening", said)

    def wait_for(self, words: str, said: object = None) -> str:
        """Return the first line that has these words."""
        for line in said or self.process.stdout:
            if words in line:
                return line
        raise AssertionError(f"{words!r} was not said, but {self.process.communicate()}")

    def end(self, status: int = 0) -> str:
        """Wait for its end, and return what it said since it was last asked."""
        out, errors = self.process.communicate(timeout=PATIENCE_S)
        assert (self.process.returncode, "Traceback" in errors) == (status, False), out + errors
        return out

    def send(self, *packets: bytes) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            for packet in packets:
                sock.sendto(packet, (self.host, PORT))


@pytest.fixture
def receiver(tmp_path) -> Iterator[Callable[..., Receiver]]:
    """A function that starts the command with options."""
    started: list[Receiver] = []

    def start(*options: str, **how: str) -> Receiver:
        started.append(Receiver(tmp_path, *options, **how))
        return started[-1]

    yield start
    for running in started:
        running.process.kill()
        running.process.communicate()


def group(package=send, dtype: type = np.int16):
    made = package.ItemGroup()
    made.add_item(0x1600, "timestamp", "in ticks", (), format=[("u", 40)])
    made.add_item(0x3300, "samples", "of the converter", (N_SAMPLES,), dtype)
    made["timestamp"].value = 7
    made["samples"].value = np.arange(N_SAMPLES).astype(dtype)
    return made


def packets(*heaps: send.Heap) -> list[list[bytes]]:
    """The packets of each heap, whose counts begin at 1."""
    return [
        [bytes(packet) for packet in send.PacketGenerator(heap, i + 1, 1472)]
        for i, heap in enumerate(heaps)
    ]


def heaps(n: int) -> list[send.Heap]:
    """Heaps with all that they can have, and the end."""
    return [group().get_heap("all", "all") for _ in range(n)] + [group().get_end()]


def rows(out: str) -> dict[str, int]:
    """The rows of the account by their first words."""
    found = re.findall(r"^[a-z]* +(\d+)  ([a-z ]+)", out, re.M)
    return {what: int(count) for count, what in found}


# ---- What arrives ----


def test_what_our_sender_sends_is_described_shown_and_accounted_for(receiver):
    running = receiver()
    items = group()
    with st.ThreadPool() as pool, send.UdpStream(pool, [(running.host, PORT)]) as stream:
        for i in range(3):
            items["timestamp"].value = i
            stream.send_heap(items.get_heap("stale", "all"))
        stream.send_heap(items.get_end())
        sent = stream.stats.packets
    out = running.end()
    assert out.startswith(
        "described: 0x1600 timestamp, u40: in ticks\n"
        "described: 0x3300 samples, int16[3000]: of the converter\n"
        "heap 1: 2 items\n"
        "    samples  int16[3000] 0 1 2 3 … from 0 to 2999\n"
        "    timestamp  0\n"
        "heap 2: "
    )
    assert out.count("described:") == 2
    assert "    timestamp  2\n" in out
    assert rows(out)["complete"] == 3
    assert WHOLE.fullmatch(out.splitlines()[-1])[1] == str(sent)


def test_what_the_sender_of_spead2_sends_is_shown_in_the_same_words(receiver):
    import spead2
    import spead2.send as theirs

    running = receiver()
    stream = theirs.UdpStream(spead2.ThreadPool(), [(running.host, PORT)])
    items = group(theirs)
    stream.send_heap(items.get_heap())
    stream.send_heap(items.get_end())
    out = running.end()
    assert "described: 0x1600 timestamp, u40: in ticks\n" in out
    assert "    samples  int16[3000] 0 1 2 3 … from 0 to 2999\n    timestamp  7\n" in out
    assert WHOLE.fullmatch(out.splitlines()[-1])


@pytest.mark.parametrize("language", built())
@pytest.mark.parametrize("name", ["tut_8_send_reuse_memory", "tut_11_send_batch_heaps"])
def test_what_a_chapters_program_claims_arrives(receiver, name, language):
    options = ProgramOptions(heaps=3, heap_size=20000)  # which any buffer has room for
    running = receiver("--json")
    destination = (running.host, PORT)
    argv = programs.command(find_chapter(name), language, options, destination)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    claimed = json.loads(done.stdout.splitlines()[-1])
    found = json.loads(running.end())
    assert found["stats"]["packets_received"] == claimed["packets"]
    assert found["stats"]["heaps_complete"] == options.heaps
    assert [item["name"] for item in found["items"]] == ["timestamp", "adc_samples"]


def test_descriptors_that_change_and_values_that_come_before_them_are_told(receiver):
    running = receiver("--keep-going", "--count", "5")
    first, second, third, stop, fourth = packets(
        group().get_heap("none", "all"),
        group().get_heap("all", "all"),
        group(dtype=np.int32).get_heap("all", "all"),
        group().get_end(),
        group().get_heap("none", "all"),
    )
    running.send(*first, *second, *third, *stop, *fourth)
    out = running.end()
    assert "heap 1: 2 items\n    0x3300  6000 bytes, not described\n" in out
    assert "changed: 0x3300 samples, int32[3000]: of the converter" in out
    assert "heap 4: says that the stream ends" in out
    assert "1 heap had values that no descriptor had come for" in out
    # The last heap has half of what its descriptor says by now.
    assert re.search(r"heap 5: .*\n    item 'samples' \(0x3300\): ", out)


def test_heaps_that_come_fast_are_a_line_each_second(receiver):
    running = receiver()
    *many, end = packets(*heaps(25))
    running.send(*itertools.chain(*many))
    assert "heaps/s, 25 heaps in all; nothing missing" in running.wait_for("MB/s")
    running.send(*end)
    assert WHOLE.search(running.end())


def test_with_stats_heaps_are_counted_and_not_shown(receiver):
    running = receiver("--stats")
    running.send(*itertools.chain(*packets(*heaps(3))))
    out = running.end()
    assert "described" not in out
    assert "heap 1" not in out
    assert rows(out)["complete"] == 3


# ---- What does not ----


def test_a_packet_that_is_left_out_is_missed(receiver):
    running = receiver()
    first, second, end = packets(*heaps(2))
    running.send(*first[:1], *first[2:], *second, *end)
    out = running.end(status=1)
    assert re.search(r"heap 1: incomplete, \d+ of \d+ bytes arrived", out)
    assert (rows(out)["incomplete"], rows(out)["complete"]) == (1, 1)
    assert out.splitlines()[-1].startswith("1 heap lacks packets that never reached this socket")


def test_what_the_socket_had_no_room_for_is_counted_with_a_way_out(receiver):
    running = receiver("--buffer", "4096", "--json")
    running.process.send_signal(signal.SIGSTOP)
    os.waitpid(running.process.pid, os.WUNTRACED)  # until it has really stopped
    *many, _ = packets(*heaps(20))
    running.send(*itertools.chain(*many))
    running.process.send_signal(signal.SIGINT)
    running.process.send_signal(signal.SIGCONT)
    found = json.loads(running.end(status=130))
    assert found["stats"]["socket_dropped"] > 0
    assert not found["is_whole"]
    assert "sysctl -w net.core.rmem_max=" in found["troubles"][0]


def test_malformed_packets_are_told_from_lost_ones(receiver):
    running = receiver("--max-size", "2000")
    first, end = packets(*heaps(1))
    running.send(b"GET / HTTP/1.1", *first, bytes(3000), first[0][:-1], *end)
    out = running.end(status=1)
    assert " 3  malformed: 1 no packet of SPEAD, 1 too short for its payload, 1 longer" in out
    assert "than --max-size" in out
    assert out.splitlines()[-1].startswith("3 packets malformed (")


def strange(*raws: st.RawDescriptor, data: bytes) -> send.Heap:
    """A heap of a stranger: items as they are described, and the bytes of each."""
    heap = send.Heap()
    for raw in raws:
        heap.add_descriptor(SimpleNamespace(to_raw=lambda flavour, raw=raw: raw))
        heap.add_item(st.Item(raw.id, "x", "", (len(data),), np.uint8, value=list(data)))
    return heap


def test_a_type_that_numpy_divides_by_zero_for_ends_nothing(receiver):
    header = b"{'descr': 'M8[D/0]', 'fortran_order': False, 'shape': ()}"
    running = receiver()
    for packet in itertools.chain(
        *packets(strange(st.RawDescriptor(0x1000, b"x", b"", header, [], []), data=b""), *heaps(1))
    ):
        running.send(packet)
    out = running.end()
    assert "a descriptor that cannot be read, of 0x1000: NumPy header" in out
    assert "heap 2: 2 items" in out
    assert WHOLE.search(out)


def test_values_that_cannot_be_written_end_nothing(receiver):
    wide = st.RawDescriptor(0x1000, b"wide", b"", b"", [("u", 16000)], [])
    header = b"{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}"
    text = st.RawDescriptor(0x1001, b"text", b"", header, [], [])
    running = receiver()
    running.send(*itertools.chain(*packets(strange(wide, text, data=b"\xab" * 2000), *heaps(1))))
    out = running.end()
    assert re.search(r"\n    wide  0x(ab){28}a…\n    text  cannot be shown: ", out)
    assert WHOLE.search(out)


def test_in_order_a_swapped_packet_is_lost_and_the_way_out_is_an_option(receiver):
    for options, status in ((["--in-order"], 1), ([], 0)):
        running = receiver(*options)
        first, end = packets(*heaps(1))
        running.send(first[0], first[2], first[1], *first[3:], *end)
        out = running.end(status)
    assert WHOLE.search(out)


def test_heaps_that_arrive_at_once_need_their_number_of_heaps(receiver):
    for options, status in ((["--max-heaps", "1"], 1), (["--max-heaps", "3"], 0)):
        running = receiver(*options)
        *mixed, end = packets(*heaps(3))
        running.send(*itertools.chain(*zip(*mixed, strict=True)), *end)
        out = running.end(status)
        assert ("raise --max-heaps" in out) == (status == 1)


# ---- How it ends ----


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_prints_the_account_and_ends_as_all_commands_do(receiver, number):
    running = receiver()
    (first, _) = packets(*heaps(1))
    running.send(*first)
    running.wait_for("heap 1")
    running.process.send_signal(number)
    out = running.end(status=128 + number)
    assert WHOLE.search(out)


def test_it_ends_after_so_many_heaps_and_what_still_arrives_is_not_lost(receiver):
    running = receiver("--count", "2")
    first, second, third, _ = packets(*heaps(3))
    running.send(*first, *third[:1], *second)
    out = running.end()
    assert rows(out)["still arriving"] == 1
    assert WHOLE.search(out)


def test_after_silence_what_is_missing_is_lost(receiver):
    running = receiver("--silence", "0.2")
    first, _ = packets(*heaps(1))
    running.send(*first[:-1])
    out = running.end(status=1)
    assert rows(out)["incomplete"] == 1


def test_where_nothing_arrives_it_says_what_to_look_at(receiver):
    out = receiver("--silence", "0.1").end(status=1)
    assert out.splitlines()[-1].startswith("nothing has arrived: look at the sender's address")


def test_as_json_it_is_one_object_and_nothing_else(receiver):
    running = receiver("--json")
    running.send(*itertools.chain(*packets(*heaps(2))))
    found = json.loads(running.end())
    assert (found["ended_by"], found["is_whole"], found["troubles"]) == ("stream", True, [])
    assert found["stats"]["heaps"] == 2
    assert found["heaps_without_descriptors"] == 0
    assert found["items"][1] == {
        "id": 0x3300,
        "name": "samples",
        "description": "of the converter",
        "shape": [N_SAMPLES],
        "dtype": "int16",
        "format": None,
    }


def test_it_ends_quietly_where_nobody_reads(receiver):
    running = receiver()
    running.process.stdout.close()
    running.send(*itertools.chain(*packets(*heaps(1))))
    errors = running.process.stderr.read()
    assert running.process.wait(PATIENCE_S) == 1
    assert "Traceback" not in errors


# ---- Asked for wrongly ----


def test_a_socket_that_fails_is_said_once_and_is_no_success(monkeypatch):
    class Failing(recv.Stream):
        def add_udp_reader(self, *_: object, **__: object) -> None:
            self.stop()

        def _counts(self) -> dict[str, Any]:
            return super()._counts() | {"sys_errno": errno.EIO}

    monkeypatch.setattr(command, "Stream", Failing)
    done = CliRunner().invoke(command.recv, ["8888"], standalone_mode=False)
    assert done.return_value == 1
    assert done.output.count("a socket failed, which ended the stream: Input/output error") == 1
    assert done.output.count(os.strerror(errno.EIO)) == 1


def test_the_account_is_printed_even_if_the_command_fails(monkeypatch):
    def fail(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(command.Watch, "run", fail)
    done = CliRunner().invoke(command.recv, [f"{own_address()}:{PORT}"], standalone_mode=False)
    assert str(done.exception) == "a fault of ours"
    assert "nothing has arrived" in done.output


def refused(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [*COMMAND, "recv", *arguments], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.stdout == ""
    assert re.fullmatch(r"spead-tutorial: [^\n]+\n", done.stderr)
    return done.returncode, done.stderr


def test_a_port_in_use_is_one_line_that_says_what_to_do(receiver):
    status, said = refused(f"{receiver().host}:{PORT}", "--buffer", "0")
    assert status == 1
    assert f"port {PORT} is in use: end what listens there (ss -ulpn says what)" in said


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([], 2, "Missing argument '[HOST:]PORT'"),
        (["nowhere"], 2, "is no place to listen: say a port"),
        (["127.0.0.1:0"], 2, "a port from 1 to 65535"),
        (["::1:8888"], 2, "an IPv6 address in brackets, as [::1]:8888"),
        (["198.51.100.1:8888"], 1, "could not listen on '198.51.100.1', port 8888"),
        (["not a host:8888"], 1, "check its spelling"),
        (["8888", "--max-heaps", "2147483647"], 1, "no memory for a depacketizer"),
        (["8888", "--interface", "127.0.0.1"], 2, "--interface is for a multicast group"),
        (["[ff02::1234]:8888", "--interface", "none0"], 2, "there is no interface 'none0'"),
        (["8888", "--silence", "0"], 2, "--silence"),
    ],
)
def test_what_cannot_be_is_one_line(arguments, status, words):
    ended, said = refused(*arguments)
    assert ended == status
    assert words in said


# ---- Elsewhere than on one address of loopback ----


def test_it_listens_on_ipv6(receiver):
    port = 20000 + os.getpid() % 10000
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind(("::1", port))
    except OSError:
        pytest.skip("the kernel has no IPv6, or the port is taken")
    running = receiver(place=f"[::1]:{port}")
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
        for packet in itertools.chain(*packets(*heaps(1))):
            sock.sendto(packet, ("::1", port))
    assert WHOLE.search(running.end())


@pytest.mark.skipif(probe().reason is not None, reason=f"no lab here: {probe().reason}")
def test_it_receives_in_a_lab_and_multicast_too(tmp_path):
    script = """
        : >said
        spead-tutorial recv "$@" --silence 10 >said &
        while kill -0 $! && ! grep -q listening said; do sleep 0.05; done
        python sender.py ${1%:*}
        wait $! || { cat said; false; }
        cat said
    """
    (tmp_path / "sender.py").write_text(
        "import sys\n"
        "from spead_tutorial import ThreadPool, send\n"
        "group = send.ItemGroup()\n"
        "group.add_item(0x1600, 'timestamp', '', (), format=[('u', 40)], value=7)\n"
        "with ThreadPool() as pool:\n"
        "    how = {} if sys.argv[1] == '127.0.0.1' else {'interface_address': '192.168.31.1'}\n"
        "    if how: how['ttl'] = 1\n"
        "    with send.UdpStream(pool, [(sys.argv[1], 8888)], **how) as stream:\n"
        "        stream.send_heap(group.get_heap())\n"
        "        stream.send_heap(group.get_end())\n"
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for place in (["127.0.0.1:8888"], ["239.1.2.3:8888", "--interface", "192.168.31.1"]):
        done = subprocess.run(
            [*COMMAND, "lab", "--", "sh", "-ec", script, "sh", *place],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "timestamp  7\n" in done.stdout
        assert WHOLE.search(done.stdout)

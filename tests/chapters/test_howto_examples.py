# SPDX-License-Identifier: BSD-3-Clause
"""The whole programs of the how-to guides do what the guides say, on this machine alone."""

import contextlib
import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from spead_tutorial.lab import Lab, LabError
from support import ROOT, ref_decode
from support.c_library import PATIENCE_S, build
from support.needs import need
from support.sockets import free_port, messages

EXAMPLES = ROOT / "docs" / "examples"
HEAP = 3000  # bytes; a few dozen packets in all, which any socket has room for
PYTHON = [sys.executable, str(EXAMPLES / "my_sender.py")]
PORTS = (8888, 8889)
PEER = ROOT / "build" / "peer" / "cpp"
NAMES = ROOT / "docs" / "how-to" / "cpp-from-spead2.md"

# ---- Programs, built as the guide says ----


def pkg_config(installed: Path, *what: str) -> list[str]:
    (pc,) = installed.glob("prefix/**/spead_tutorial.pc")
    command = ("pkg-config", *what, "spead_tutorial")
    return shlex.split(build(*command, cwd=installed, PKG_CONFIG_PATH=str(pc.parent)))


def compiled(installed: Path, program: Path, *libraries: str, source: str = "my_sender.c") -> Path:
    compiler = ["c++", "-std=c++20"] if source.endswith(".cpp") else ["cc"]
    command = [*compiler, "-O2", "-Wall", "-Wextra", "-Werror", str(EXAMPLES / source)]
    flags = pkg_config(installed, "--cflags")
    build(*command, "-o", program, *flags, *libraries, cwd=installed)
    return program


def linked(installed: Path, folder: Path, source: str) -> Path:
    """A program, as pkg-config has it linked."""
    if source.endswith(".cpp"):
        need("c++")
    (libdir,) = pkg_config(installed, "--variable=libdir")
    libraries = [*pkg_config(installed, "--libs"), f"-Wl,-rpath,{libdir}"]
    return compiled(installed, folder / Path(source).stem, *libraries, source=source)


@pytest.fixture(scope="module")
def c_sender(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return linked(installed, tmp_path_factory.mktemp("shared"), "my_sender.c")


def with_the_peer(source: Path, folder: Path, *more: str) -> Path:
    """Compile a program with spead2's library, as make peer has built it."""
    need("c++", "pkg-config")
    if not (PEER / "lib" / "pkgconfig").is_dir():
        pytest.skip("spead2's library is not built: make peer")
    where = {"PKG_CONFIG_PATH": str(PEER / "lib" / "pkgconfig")}
    flags = build("pkg-config", "--static", "--cflags", "--libs", "spead2", cwd=folder, **where)
    program = folder / source.stem
    build("c++", "-std=c++17", source, *more, "-o", program, *shlex.split(flags), cwd=folder)
    return program


# ---- What they send ----


def samples(n_heaps: int, more: int = 0) -> bytes:
    """Samples that are different in every heap."""
    rng = np.random.default_rng(seed=1)
    return rng.integers(0, 256, n_heaps * HEAP + more, np.uint8).tobytes()


def listen(lab: Lab, port: int) -> socket.socket:
    sock = lab.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    sock.bind(("127.0.0.1", port))
    return sock


def run(lab: Lab, argv: list[str], data: bytes) -> subprocess.CompletedProcess[str]:
    # As bytes, since they are no text; what comes back is.
    done = lab.run(argv, input=data, capture_output=True, timeout=PATIENCE_S)
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    return done


def sent(lab: Lab, argv: list[str], data: bytes, ports: tuple[int, ...]) -> list[list[bytes]]:
    """The packets that a program sends to each port of loopback."""
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(listen(lab, port)) for port in ports]
        done = run(lab, argv, data)
        assert (done.returncode, done.stderr) == (0, "")
        return [messages(sock) for sock in socks]


def heaps(found: list[bytes]) -> dict[int, tuple[int | None, bytes]]:
    """Timestamp and samples of each heap, by its count; of the stop heap there are none."""
    parts: dict[int, list[ref_decode.Packet]] = {}
    for one in map(ref_decode.parse, found):
        parts.setdefault(one.cnt, []).append(one)
    values = {}
    for cnt, packets in parts.items():
        items = {one.id: one.value for one in ref_decode.Heap(cnt, 40, packets=packets).items()}
        values[cnt] = items.get(0x1600), items.get(0x3300, b"")
    return values


def described(found: list[bytes]) -> int:
    """How many descriptors were sent."""
    return sum(one.id == 5 for packet in map(ref_decode.parse, found) for one in packet.items)


def cut(data: bytes) -> list[bytes]:
    return [data[at : at + HEAP] for at in range(0, len(data), HEAP)]


def test_the_senders_send_all_samples_in_memory_that_goes_round_in_the_same_packets(lab, c_sender):
    data = samples(11)  # many more heaps than there are blocks
    python = sent(lab, [*PYTHON, "127.0.0.1:8888", f"--heap-size={HEAP}"], data, PORTS[:1])
    check_all_samples(python[0], data)
    assert sent(lab, [str(c_sender), "127.0.0.1", "8888", str(HEAP)], data, PORTS[:1]) == python


@pytest.mark.thorough
def test_the_cpp_sender_sends_all_samples(lab, installed, tmp_path):
    program, data = linked(installed, tmp_path, "my_sender.cpp"), samples(11)
    (found,) = sent(lab, [str(program), "127.0.0.1", "8888", str(HEAP)], data, PORTS[:1])
    check_all_samples(found, data)


def check_all_samples(found: list[bytes], data: bytes) -> None:
    """Every sample came once, in heaps with their timestamps, and then the stop heap."""
    got = heaps(found)
    assert got.pop(12) == (None, b"")
    assert got == {i + 1: (i * HEAP, part) for i, part in enumerate(cut(data))}


def test_substreams_take_turns_and_each_is_described_and_ended(lab):
    data = samples(6)
    places = [f"127.0.0.1:{port}" for port in PORTS]
    both = sent(lab, [*PYTHON, *places, f"--heap-size={HEAP}"], data, PORTS)
    for i, found in enumerate(both):
        got = heaps(found)
        assert got.pop(7 + i) == (None, b"")
        assert [part for _, part in got.values()] == cut(data)[i::2]
        assert described(found) == 2


def test_samples_that_fill_no_heap_are_not_dropped_in_silence(lab, c_sender):
    data = samples(2, more=7)
    for argv in (
        [*PYTHON, "192.168.31.2:8888", f"--heap-size={HEAP}"],
        [str(c_sender), "192.168.31.2", "8888", str(HEAP)],
    ):
        done = run(lab, argv, data)
        assert done.returncode == 0
        assert done.stderr == "7 samples at the end fill no heap: not sent\n"


def test_the_python_sender_counts_what_fails_and_goes_on(lab):
    done = run(lab, [*PYTHON, "10.0.0.1:8888", f"--heap-size={HEAP}"], samples(5))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "there is no way to the destination" in line
    assert "heaps sent: 0, that failed: 6" in done.stdout


def test_the_c_sender_ends_at_the_first_failure_with_one_line(lab, c_sender):
    for host, port, words in (
        ("10.0.0.1", "8888", "heap 1: a packet of 1472 bytes could not be sent"),
        ("127.0.0.1", "88888", "ports are 1 to 65535"),
    ):
        done = run(lab, [str(c_sender), host, port, str(HEAP)], samples(5))
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert words in line


def test_the_python_sender_sends_multicast_out_of_the_interface_that_was_named(lab):
    before = lab.counters().packets
    argv = [*PYTHON, "239.1.2.3:8888", "--ttl=4", "--interface=192.168.31.1"]
    done = run(lab, [*argv, f"--heap-size={HEAP}"], samples(3))
    assert (done.returncode, done.stderr) == (0, "")
    assert lab.counters().packets > before


# ---- Coming from spead2 ----

TEN = {i + 1: (8000 * i, bytes([i]) * 8000) for i in range(10)} | {11: (None, b"")}


def made(installed: Path, folder: Path, name: str) -> Path:
    """A program with spead2, or what takes its place."""
    if name.endswith("without_spead2.cpp"):
        return linked(installed, folder, name)
    return with_the_peer(EXAMPLES / name, folder)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["with_spead2.cpp", "without_spead2.cpp"])
def test_a_program_with_spead2_and_what_takes_its_place_send_the_same_items(
    lab, installed, tmp_path, name
):
    argv = [str(made(installed, tmp_path, name)), "127.0.0.1", "8888"]
    (found,) = sent(lab, argv, b"", PORTS[:1])
    assert heaps(found) == TEN
    assert described(found) == 2


def printed(receiver: Path, sender: Path) -> list[str]:
    """What a receiver says of what a sender sends, over loopback."""
    where = ("127.0.0.1", str(free_port()))
    with subprocess.Popen([receiver, *where], stdout=subprocess.PIPE, text=True) as process:
        try:
            first = process.stdout.readline()
            build(sender, *where, cwd=sender.parent)
            return [first.strip(), *process.communicate(timeout=PATIENCE_S)[0].splitlines()]
        finally:
            process.kill()


SUMS = ["ready", *(f"{8000 * i} {8000 * i}" for i in range(10))]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["receive_with_spead2.cpp", "receive_without_spead2.cpp"])
def test_a_receiver_with_spead2_and_what_takes_its_place_print_what_was_sent(
    installed, tmp_path, name
):
    receiver = made(installed, tmp_path, name)
    assert printed(receiver, linked(installed, tmp_path, "without_spead2.cpp")) == SUMS


def named(column: int) -> list[str]:
    """The names in a column of the page's first table."""
    table = NAMES.read_text().split("## Names")[1].split("Members of streams")[0]
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| `")]
    found = [name for row in rows for name in re.findall(r"`(\w+(?:::\w+)+)`", row[column])]
    assert len(found) == len(rows) > 15
    return found


def using(names: list[str]) -> str:
    return "".join(f"namespace use{n} {{ using {name}; }}\n" for n, name in enumerate(names))


@pytest.mark.thorough
def test_all_names_that_take_the_place_of_spead2s_are_there(installed, tmp_path):
    source = tmp_path / "names.cpp"
    headers = "#include <spead_tutorial/spt_recv.hpp>\n"
    source.write_text(f"{headers}{using(named(1))}int main() {{}}\n")
    linked(installed, tmp_path, str(source))


@pytest.mark.thorough
def test_all_names_of_spead2_are_its_own(tmp_path):
    source = tmp_path / "names.cpp"
    headers = ("common_thread_pool", "common_memory_pool", "recv_chunk_stream", "recv_ring_stream")
    headers += ("recv_heap", "send_packet", "send_streambuf", "send_udp", "send_tcp")
    headers += ("common_inproc", "send_inproc")
    lines = "".join(f"#include <spead2/{name}.h>\n" for name in headers)
    source.write_text(f"{lines}{using(named(0))}")
    with_the_peer(source, tmp_path, "-fsyntax-only")


# ---- How the library gets into a program ----


def check_it_sends(lab: Lab, program: Path) -> None:
    argv = [str(program), "192.168.31.2", "8888", str(HEAP)]
    assert run(lab, argv, samples(2)).returncode == 0


def test_a_program_can_be_linked_with_the_static_library_alone(lab, installed, tmp_path):
    (libdir,) = pkg_config(installed, "--variable=libdir")
    program = compiled(installed, tmp_path / "my_sender", f"{libdir}/libspt.a", "-lpthread", "-lm")
    assert "libspt" not in build("ldd", program, cwd=installed)
    check_it_sends(lab, program)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("folder", "source"), [(EXAMPLES, "my_sender.c"), (EXAMPLES / "cpp", "my_sender.cpp")]
)
def test_the_core_is_built_along_as_a_subproject_of_meson(lab, tmp_path, folder, source):
    need("c++")
    shutil.copy(folder / "meson.build", tmp_path)
    shutil.copy(EXAMPLES / source, tmp_path)
    (tmp_path / "subprojects").mkdir()
    (tmp_path / "subprojects" / "spead_tutorial").symlink_to(ROOT)
    build("meson", "setup", "build", cwd=tmp_path, PKG_CONFIG_PATH="", PKG_CONFIG_LIBDIR="")
    build("meson", "compile", "-C", "build", cwd=tmp_path)
    assert not [*tmp_path.glob("build/**/tut_*")]  # the core alone
    words = ("--skip-subprojects", "--destdir", tmp_path / "image")
    build("meson", "install", "-C", "build", *words, cwd=tmp_path)
    (program,) = tmp_path.glob("image/**/my_sender")
    check_it_sends(lab, program)


@pytest.mark.thorough
def test_a_program_in_cpp_is_built_with_cmake(lab, installed, tmp_path):
    need("cmake", "c++")
    shutil.copy(EXAMPLES / "cpp" / "CMakeLists.txt", tmp_path)
    shutil.copy(EXAMPLES / "my_sender.cpp", tmp_path)
    (pc,) = installed.glob("prefix/**/spead_tutorial.pc")
    build("cmake", "-B", "build", cwd=tmp_path, PKG_CONFIG_PATH=str(pc.parent))
    build("cmake", "--build", "build", cwd=tmp_path)
    check_it_sends(lab, tmp_path / "build" / "my_sender")  # the library's folder is a run path


# ---- A way that is disturbed ----


@pytest.mark.thorough
def test_the_program_on_a_disturbed_way_accounts_for_every_packet(lab: Lab) -> None:
    try:
        with Lab(receiver=True):
            pass
    except LabError as error:
        pytest.skip(str(error))
    said = build(sys.executable, EXAMPLES / "disturbed_way.py", cwd=ROOT)
    heaps, packets = said.splitlines()
    whole, of = map(int, re.findall(r"\d+", heaps))
    assert 0 < whole < of
    sent, doubled, received, lost, dropped = map(int, re.findall(r"\d+", packets))
    assert sent + doubled == received + lost + dropped
    assert min(doubled, lost) > 0

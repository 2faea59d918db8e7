# SPDX-License-Identifier: BSD-3-Clause
"""The chapters' programs that send: that twins agree, and what each does besides sending.

That each leaves to `report` what all share is in test_catalogue.py. So what is shared is tested of
one program in each language; the thorough run asks all of them.
"""

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from spead_tutorial.chapters.catalogue import LANGUAGES, PROGRAMS, Chapter, find_chapter
from spead_tutorial.lab import LabError
from spead_tutorial.measure import machine, programs, verify
from spead_tutorial.measure.case import Begun, Case, Step
from spead_tutorial.measure.machine import memory_fact
from spead_tutorial.measure.place import Device, Loopback, Place
from spead_tutorial.measure.programs import (
    ProgramError,
    ProgramOptions,
    Result,
    built,
    command,
    run,
)
from support.programs import (
    PATIENCE_S,
    cases,
    each_language,
    ended,
    in_c,
    languages,
    name_of,
)

USUAL = find_chapter("10")
SMALL = {
    2: ProgramOptions(),
    4: ProgramOptions(heaps=3),
    # A few messages have so many bytes that no device takes them whole.
    5: ProgramOptions(heaps=100),
    6: ProgramOptions(heaps=3),
}
SMALL_HEAPS = ProgramOptions(heaps=300, heap_size=8192)
PINNED = [program for program in PROGRAMS if "c" in program.accepted]
SIZED = [program for program in PROGRAMS if "p" in program.accepted]


# ---- Cores ----


@pytest.mark.parametrize(
    ("program", "language", "cores"),
    cases(
        product(PINNED, built(), ["0,1023", "1023,0", "0,9999", "9999,0"]),
        lambda program, language, cores: (
            program is PINNED[0] and (language != "python" or cores == "0,1023")
        ),
    ),
    ids=name_of,
)
def test_a_core_that_is_not_there_ends_a_program_with_one_line(program, language, cores):
    done = ended([*command(program, language), "-c", cores, "127.0.0.1", "9"])
    assert (done.returncode, done.stdout) == (1, "")
    core = max(cores.split(","), key=int)
    assert re.fullmatch(rf"{program.name}: [^\n]* core {core}\b[^\n]*\n", done.stderr)


@pytest.mark.parametrize(
    ("program", "language", "order"),
    cases(
        product(PINNED, built(), [(0, -1), (-1, 0), None]),
        lambda program, language, order: (
            order == (0, -1) and (language == "c" or program is PINNED[0])
        ),
    ),
    ids=name_of,
)
def test_the_programs_thread_and_the_streams_are_pinned_if_it_is_told_to(
    receiver, program, language, order
):
    usable = sorted(os.sched_getaffinity(0))
    cores = [usable[place] for place in order] if order else []
    endless = ProgramOptions(heaps=1 << 40, cores=",".join(map(str, cores)) or None)
    argv = command(program, language, endless, receiver.getsockname())
    with subprocess.Popen(argv) as process:
        try:
            receiver.settimeout(PATIENCE_S)
            receiver.recv(65536)  # it is at work, and so is its stream
            threads = {int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()}
            first = process.pid  # whose number may be the higher one: they begin anew at the end
            found = [os.sched_getaffinity(one) for one in (first, *(threads - {first}))]
        finally:
            process.kill()
    assert found == ([{core} for core in cores] or [set(usable)] * 2)


# ---- Commands ----


@pytest.mark.parametrize(
    ("number", "language", "how", "words"),
    [
        ("4", "c", {"options": ProgramOptions(packet_size=9000)}, "no option -p: it takes -n"),
        ("13", "c", {"options": ProgramOptions(switches=("copy",))}, "no option --copy: it takes"),
        ("2", "c", {"destination": ("127.0.0.1", 1)}, "chapter 2 takes no destination"),
        ("4", "rust", {}, "no language 'rust'"),
    ],
)
def test_what_a_chapter_does_not_take_is_an_error(number, language, how, words):
    with pytest.raises(ValueError, match=words):
        command(find_chapter(number), language, **how)


def test_a_program_that_is_not_built_is_an_error_that_says_what_to_do(monkeypatch, tmp_path):
    assert built() == LANGUAGES or shutil.which("c++") is None
    missing = dataclasses.replace(USUAL, name="tut_0_missing")
    for language in built():
        with pytest.raises(ProgramError, match=r"tut_0_missing.*install it"):
            command(missing, language)
    (tmp_path / "chapters").mkdir()
    monkeypatch.setattr(programs.importlib.resources, "files", lambda _: tmp_path)
    assert built() == ("python", "c")
    with pytest.raises(ProgramError, match=r"in cpp: get a C\+\+ compiler [^\n]*$"):
        command(USUAL, "cpp")


def test_a_program_is_not_shadowed_by_the_folder_it_is_started_in(lab, tmp_path, monkeypatch):
    for name in ("spead_tutorial", "numpy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('shadowed')")
    monkeypatch.chdir(tmp_path)
    result = run(Device(lab), find_chapter("6"), "python", SMALL[6])
    assert result.failure is None


def test_a_mistake_in_a_python_thread_is_shown_whole_and_ends_the_program(tmp_path):
    script = tmp_path / "threaded.py"
    script.write_text(
        "import threading\n"
        "from spead_tutorial.chapters.report import Options, parse_options\n"
        "parse_options(None, '', Options())\n"
        "thread = threading.Thread(target=lambda: 1 / 0)\n"
        "thread.start()\n"
        "thread.join()\n"
        "print('went on')\n"
    )
    done = ended([sys.executable, str(script)])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


# ---- Running ----


def believed(place: Place, program: Chapter, language: str, *options: ProgramOptions) -> Result:
    """Run a program that has to be believed."""
    result = run(place, program, language, *options)
    assert result.failure is None
    assert result.report is not None
    return result


@pytest.mark.parametrize(
    ("program", "language"),
    cases(
        product(PROGRAMS, built()),
        lambda one, language: one is USUAL or (one.number, language) == (5, "c"),
    ),
    ids=name_of,
)
def test_a_program_runs_in_a_lab_and_is_borne_out_by_its_counters(lab, program, language):
    options = SMALL.get(program.number, SMALL_HEAPS)
    result = believed(Device(lab), program, language, options)
    assert result.rate > 0
    report = result.report
    assert (report.chapter, report.language) == (program.number, language)
    assert result.accounting.ok
    assert f"{report.packets} packets claimed" in result.proof
    assert None not in (report.looking_ns, report.waiting_looking_ns)
    # Its own thread's time is a part of all; they are read one after the other, in microseconds.
    assert 0 < report.program_cpu_ns < report.cpu_user_ns + report.cpu_system_ns + 10**6


@in_c
def test_what_waits_for_a_limited_link_when_a_program_ends_is_counted(lab, language):
    try:
        place = Device(lab).limited(10**9)
        result = believed(place, find_chapter("5"), language, ProgramOptions(heaps=8))
    except LabError as error:
        pytest.skip(str(error))
    assert lab.facts()["qdisc"] == "noqueue"
    assert result.accounting.ok
    assert result.report.waits > 0  # it was the sender that waited for the link


def most_memory(argv: list[str]) -> int:
    """Bytes of memory that a program had at most."""
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_maxrss * 1024


@in_c
@pytest.mark.parametrize("chapter", [one for one in PROGRAMS if one.number > 8], ids=name_of)
def test_no_memory_is_taken_for_heaps_that_are_not_sent(receiver, chapter, language):
    small, usual = (
        most_memory(
            command(chapter, language, ProgramOptions(10, heap_size), receiver.getsockname())
        )
        for heap_size in (1, 8192)
    )
    assert small < usual + (1 << 24)


@pytest.mark.parametrize(
    ("chapter", "language"),
    cases(
        product((c for c in SIZED if c.number >= 8 and c.name != "tut_8_send_heap_size"), built()),
        lambda chapter, language: chapter is USUAL and language == "c",
    ),
    ids=name_of,
)
def test_memory_that_is_used_again_is_paid_for_before_the_clock_starts(lab, chapter, language):
    result = believed(Device(lab), chapter, language, ProgramOptions(4, 1 << 24))
    assert result.report.page_faults < 100  # of 4096 pages in each array


@in_c
@pytest.mark.parametrize(("streams", "heaps", "sent_by"), [(1, 300, 1), (3, 300, 3), (3, 2, 2)])
def test_many_streams_are_reported_as_one_and_none_is_there_that_has_no_heap(
    lab, language, streams, heaps, sent_by
):
    options = ProgramOptions(heaps, 8192, streams=streams)
    result = believed(Device(lab), find_chapter("14"), language, options)
    assert result.report.streams == sent_by
    assert result.report.packets == heaps + 1
    case = Case("ours", language, result.chapter.name, 8192, streams=streams)
    record = Begun(Step(0, False, case)).sent(result)
    assert (record.streams, record.series) == (sent_by, case.series)
    assert case.series.variant == ("1 stream" if streams == 1 else f"{streams} streams")


@each_language
def test_threads_that_fail_at_once_end_the_program_with_one_line(make_lab, language):
    with make_lab() as lab:
        endless = ProgramOptions(1 << 62, 8192, streams=2)
        argv = command(find_chapter("14"), language, endless, (lab.address, lab.port))
        pipe = subprocess.PIPE
        with lab.popen(argv, stdout=pipe, stderr=pipe, text=True) as process:
            while lab.counters().packets < 1000 and process.poll() is None:
                pass
            lab.set_link(False)
            assert process.wait(timeout=PATIENCE_S) == 1
            assert process.stdout.read() == ""
            line = process.stderr.read()
    assert re.fullmatch(r"tut_14_send_many_streams: heap \d+: .*Network is unreachable.*\n", line)


# ---- Zero-copy ----

ZERO_COPY = find_chapter("15")
COPIED = r"tut_15_send_zero_copy: (\d+) of \1 messages were copied, and not read in place\n"
SMALL_PAGES = "tut_15_send_zero_copy: the recording is not in huge pages: [^\n]+\n"


@in_c
@pytest.mark.parametrize("switches", [(), ("small pages",), ("fill",), ("copy",), ("copy", "fill")])
def test_what_the_kernel_reads_in_place_is_reported(lab, language, switches):
    options = ProgramOptions(60, 1 << 20, switches=switches)
    result = believed(Device(lab), ZERO_COPY, language, options)
    report = result.report
    if "copy" in switches:
        assert (report.zero_copy_messages, report.zero_copy_copied) == (0, 0)
    else:
        assert 0 <= report.zero_copy_copied <= report.zero_copy_messages <= report.messages
    if "copy" in switches or 10 * report.zero_copy_copied < report.messages:
        assert re.fullmatch(f"(?:{SMALL_PAGES})?", result.said)
    variant = ", ".join(switches)
    case = Case("ours", language, ZERO_COPY.name, variant=variant)
    assert case.options(300).switches == switches
    record = Begun(Step(0, False, case)).sent(result)
    assert (record.variant, record.zero_copy_messages) == (variant, report.zero_copy_messages)


@languages("python", "c")
def test_a_kernel_that_copies_after_all_does_not_go_unnoticed(lab, language):
    result, told_to = (
        believed(
            Loopback("fast", lab), ZERO_COPY, language, ProgramOptions(300, 8192, switches=switches)
        )
        for switches in ((), ("copy",))
    )
    assert re.fullmatch(f"(?:{SMALL_PAGES})?{COPIED}", result.said)
    assert result.report.zero_copy_copied == result.report.zero_copy_messages
    assert re.fullmatch(f"(?:{SMALL_PAGES})?", told_to.said)


@in_c
def test_a_recording_is_sent_again_and_again_but_its_descriptors_once(lab, language):
    options = ProgramOptions(66000, 1)  # more than the 65536 that a recording has
    made, recorded = (
        believed(Device(lab), chapter, language, options)
        for chapter in (find_chapter("13"), ZERO_COPY)
    )
    assert made.report.packets == recorded.report.packets
    assert made.report.spead_bytes == recorded.report.spead_bytes


@in_c
def test_why_there_are_no_huge_pages_is_told_unless_nobody_asked_for_them(receiver, language):
    """A process may be denied those that are not reserved (prctl(2), PR_SET_THP_DISABLE)."""
    if memory_fact("HugePages_Free"):
        pytest.skip("huge pages are reserved: sysctl -w vm.nr_hugepages=0")
    forbid = (
        "import ctypes, os, sys; assert ctypes.CDLL(None).prctl(41, 1, 0, 0, 0) == 0;"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    for switches, words in (("copy",), SMALL_PAGES), (("copy", "small pages"), ""):
        options = ProgramOptions(3, 1 << 20, switches=switches)
        argv = command(ZERO_COPY, language, options, receiver.getsockname())
        done = ended([sys.executable, "-c", forbid, *argv])
        assert done.returncode == 0
        assert re.fullmatch(words, done.stderr)


def test_a_processor_of_which_the_kernel_says_numbers_has_the_name_that_lscpu_knows(
    monkeypatch, tmp_path
):
    lscpu = tmp_path / "lscpu"
    lscpu.write_text(
        "#!/bin/sh\necho 'Architecture:  aarch64'\necho 'Model name:    Neoverse-N1'\n"
    )
    lscpu.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    kernel = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"
    monkeypatch.setattr(
        machine, "read_text", lambda path: kernel if path.name == "cpuinfo" else None
    )
    assert machine.machine_facts()["cpu"] == "Neoverse-N1"
    lscpu.unlink()
    assert machine.machine_facts()["cpu"] is None


# ---- Packets too large ----


def only_usual(program: Chapter, language: str) -> bool:
    return program is USUAL


@pytest.mark.parametrize(
    ("program", "language"), cases(product(SIZED, built()), only_usual), ids=name_of
)
def test_a_program_whose_packets_are_too_large_has_no_rate(lab, program, language):
    before = lab.counters().packets
    result = run(Device(lab), program, language, ProgramOptions(heaps=10, packet_size=70000))
    assert lab.counters().packets == before
    assert (result.status, result.rate) == (1, None)
    assert re.fullmatch(rf"{program.name}: .*70000.*", result.failure)


@pytest.mark.parametrize(
    ("program", "language"),
    cases(product((c for c in SIZED if c.packet_size), built()), only_usual),
    ids=name_of,
)
def test_a_program_says_that_its_packets_travel_in_fragments(lab, program, language):
    switches = program.switches("copy, small pages")
    fits = (lab.mtu - 28) // 8 * 8
    at_the_limit, above = (  # the first of which is rounded down
        believed(Device(lab), program, language, ProgramOptions(3, None, n, switches=switches))
        for n in (fits + 7, fits + 8)
    )
    assert at_the_limit.said == ""
    assert above.said == (
        f"{program.name}: packets of {fits + 8} bytes travel to {lab.address} in several fragments"
        f" each: {fits} is the most that goes in one piece\n"
    )


EQUAL = find_chapter("16")


@in_c
def test_packets_are_as_large_as_the_route_takes_them_whole(lab, language):
    before = lab.snmp()["Ip"]
    result = believed(Device(lab), EQUAL, language, ProgramOptions(2, 1 << 16))
    after = lab.snmp()["Ip"]
    fits = (lab.mtu - 28) // 8 * 8
    assert result.said == ""
    assert result.report.packet_size == fits
    packets = verify.packet_sizes(1 << 16, fits)  # with what 64 KiB are cut into unequally
    assert result.report.packets == sum(map(len, packets))
    assert result.report.spead_bytes == sum(map(sum, packets))
    assert (after["FragOKs"], after["FragCreates"]) == (before["FragOKs"], before["FragCreates"])


@in_c
def test_a_packet_that_the_route_does_not_take_whole_fails_and_says_what_fits(lab, language):
    fits = (lab.mtu - 28) // 8 * 8
    result = run(Device(lab), EQUAL, language, ProgramOptions(3, 1 << 16, fits + 8))
    assert (result.status, result.rate) == (1, None)
    assert result.said.count("\n") == 1  # no word of fragments, which there are none of
    assert f"a packet of {fits + 8} bytes" in result.failure
    assert result.failure.endswith(f"lower max_packet_size to {fits}")


@languages("python", "c")
def test_heaps_of_16_kib_arrive_in_equal_packets(receiver, language):
    options, destination = ProgramOptions(3, 1 << 14, 9000), receiver.getsockname()
    assert ended(command(EQUAL, language, options, destination)).returncode == 0
    first, second, *others = (len(receiver.recv(65536)) for _ in range(6))
    assert others == [8240] * 4
    assert first + second > 2 * 8240  # with descriptors

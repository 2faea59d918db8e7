# SPDX-License-Identifier: BSD-3-Clause
"""The chapters' programs: that the twins agree, and that only a proven run has a rate."""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spead_tutorial.catalogue import CHAPTERS, LANGUAGES, RECEIVERS, STEPS, Chapter, find_chapter
from spead_tutorial.lab import Counters, LabError
from spead_tutorial.measure import believe, machine, programs
from spead_tutorial.measure import place as place_module
from spead_tutorial.measure.believe import contradiction, hold
from spead_tutorial.measure.case import Case, Step, sample
from spead_tutorial.measure.machine import memory_fact
from spead_tutorial.measure.place import LISTENERS, Device, Evidence, Host, Loopback, Place
from spead_tutorial.measure.programs import (
    ProgramError,
    ProgramOptions,
    Result,
    built,
    command,
    run,
)
from spead_tutorial.measure.report import Report
from support import ROOT

PATIENCE_S = 60
PROGRAMS = (*CHAPTERS, *STEPS)
SMALL = {
    2: ProgramOptions(),
    4: ProgramOptions(heaps=3),
    5: ProgramOptions(heaps=3),
    6: ProgramOptions(heaps=3),
}
SMALL_HEAPS = ProgramOptions(heaps=300, heap_size=8192)

PINNED = [program for program in PROGRAMS if "c" in program.accepted]

each_program = pytest.mark.parametrize("chapter", PROGRAMS, ids=lambda chapter: chapter.name)
each_language = pytest.mark.parametrize("language", built())


def help_of(chapter: Chapter, language: str) -> str:
    """What a program prints for ``--help``."""
    argv = [word for word in command(chapter, language) if word != "--json"]
    done = subprocess.run([*argv, "--help"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def options_of(text: str) -> dict[str, str]:
    """Options in a help text: each with what it says of it, the default included."""
    pattern = r"^ +(-[a-zA-Z]|--[a-z-]+|host|port)(?: [A-Z,]+)? +(\S.*(?:\n {20,}\S.*)*)"
    found = {name: " ".join(text.split()) for name, text in re.findall(pattern, text, re.MULTILINE)}
    found.pop("-h", None)
    return found


@each_program
def test_a_program_in_c_or_cpp_fits_on_a_page_and_is_not_much_longer_than_its_twin(
    chapter: Chapter,
):
    lengths = {
        language: len((ROOT / folder / f"{chapter.name}.{ending}").read_text().splitlines())
        for language, folder, ending in (
            ("c", "csrc/chapters", "c"),
            ("cpp", "csrc/chapters/cpp", "cpp"),
            ("python", "spead_tutorial/chapters", "py"),
        )
    }
    assert max(lengths["c"], lengths["cpp"]) <= 95
    assert lengths["c"] <= 1.4 * lengths["python"]
    assert lengths["cpp"] <= 1.3 * lengths["python"]


REPORT = Report(
    chapter=6,
    program="tut_6_send_pktsize",
    language="c",
    random=False,
    heaps=1,
    heap_size=3000,
    packet_size=1472,
    payload_bytes=3000,
    spead_bytes=3200,
    packets=4,
    messages=2,
    send_calls=2,
    waits=0,
    errors=0,
    elapsed_ns=1000,
    cpu_user_ns=1,
    cpu_system_ns=1,
    page_faults=0,
    context_switches=0,
)


def pretend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str) -> None:
    """Put a script in the place of every chapter's program."""
    script = tmp_path / "tut_6_send_pktsize.py"
    script.write_text(source)
    monkeypatch.setattr(programs, "program", lambda *_: [sys.executable, str(script)])


# ---- The list of chapters ----


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("10", 10),
        ("tut_10_send_reuse_heaps", 10),
        ("tut_10_send_reuse_heaps.py", 10),
        ("tut_send_2", 5),
        ("tut_send_3", 6),
    ],
)
def test_a_chapter_is_found_by_number_name_and_older_name(text, number):
    assert find_chapter(text).number == number


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_step_is_found_by_its_name_and_its_number_finds_the_chapter(step):
    assert find_chapter(step.name) is find_chapter(f"{step.name}.py") is step
    assert find_chapter(str(step.number)) in CHAPTERS


@pytest.mark.parametrize("text", ["", "1", "3", "tut_3", "99", "-2", "tut_send_1", "None"])
def test_an_unknown_chapter_is_an_error_that_lists_those_there_are(text):
    with pytest.raises(ValueError, match="there are 2, 4, 5, 6, 8, 10, 11, 13, 14, 15, 16"):
        find_chapter(text)


@each_program
def test_all_twins_of_a_chapter_accept_the_same_options_with_the_same_defaults(chapter):
    python, *others = (options_of(help_of(chapter, language)) for language in built())
    assert others == [python] * len(others)
    flags = {name for name in python if name.startswith("-")}
    assert flags == {*chapter.flags, "--json"}
    assert ("host" in python) == chapter.takes_destination


@each_program
def test_the_list_of_chapters_has_the_programs_defaults(chapter):
    found = options_of(help_of(chapter, "c"))
    for flag, default in (
        ("-n", chapter.heaps),
        ("-H", chapter.heap_size),
        ("-p", chapter.packet_size or "the route's"),
    ):
        if flag in found:
            assert f"({default})" in found[flag]


def test_every_program_is_a_chapters_or_a_step_or_receives():
    folder = Path(command(CHAPTERS[0], "python")[1]).parent
    assert sorted(path.stem for path in folder.glob("tut_*.py")) == sorted(
        chapter.name for chapter in (*PROGRAMS, *RECEIVERS)
    )


def test_an_option_that_a_chapter_has_not_is_an_error():
    with pytest.raises(ValueError, match="chapter 4 has no option -p: it takes -n"):
        command(find_chapter("4"), "c", ProgramOptions(packet_size=9000))
    with pytest.raises(ValueError, match="chapter 13 has no option --copy: it takes -n, -H, -p"):
        command(find_chapter("13"), "c", ProgramOptions(switches=("copy",)))
    with pytest.raises(ValueError, match="chapter 2 takes no destination"):
        command(find_chapter("2"), "c", destination=("127.0.0.1", 1))
    with pytest.raises(ValueError, match="no language 'rust'"):
        command(find_chapter("4"), "rust")


def test_where_there_is_a_compiler_for_it_programs_in_cpp_are_built():
    assert built() == LANGUAGES or shutil.which("c++") is None


def test_without_a_compiler_for_cpp_the_package_says_what_to_do(monkeypatch, tmp_path):
    (tmp_path / "chapters").mkdir()
    monkeypatch.setattr(programs.importlib.resources, "files", lambda _: tmp_path)
    assert built() == ("python", "c")
    with pytest.raises(ProgramError, match=r"in cpp: get a C\+\+ compiler [^\n]*$"):
        command(CHAPTERS[0], "cpp")


def test_a_missing_program_is_an_error_that_says_what_to_do():
    missing = dataclasses.replace(CHAPTERS[0], name="tut_0_missing")
    for language in built():
        with pytest.raises(ProgramError, match=r"tut_0_missing.*install it"):
            command(missing, language)


def test_a_program_is_not_shadowed_by_the_folder_it_is_started_in(lend_lab, tmp_path, monkeypatch):
    for name in ("spead_tutorial", "numpy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('shadowed')")
    monkeypatch.chdir(tmp_path)
    with lend_lab() as lab:
        result = run(Device(lab), find_chapter("6"), "python", SMALL[6])
    assert result.failure is None


@each_language
@pytest.mark.parametrize("flag", ["-n", "-H", "-p"])
def test_a_number_that_no_size_can_be_is_refused_by_all_twins(language, flag):
    argv = [*command(find_chapter("10"), language), flag]
    for number in ("0", str(1 << 63), "9" * 30):
        done = subprocess.run(
            [*argv, number, "127.0.0.1", "9"], capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert (done.returncode, done.stdout) == (2, "")
        words = f"must be a whole number from 1 to {(1 << 63) - 1}, not '{number}'"
        assert done.stderr.splitlines()[-1].endswith(words)


@each_language
@pytest.mark.parametrize("program", PINNED, ids=lambda program: program.name)
@pytest.mark.parametrize("cores", ["0", "a,b", "0,", ",1", "0,1,2", "0, 1", "+1,0", "0,12345", ""])
def test_what_are_not_two_cores_is_refused(language, program, cores):
    argv = [*command(program, language), "-c", cores, "127.0.0.1", "9"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (2, "")
    words = f"must be two cores, such as 0,1, not '{cores}'"
    assert done.stderr.splitlines()[-1].endswith(words)


@each_language
@pytest.mark.parametrize("program", PINNED, ids=lambda program: program.name)
@pytest.mark.parametrize("cores", ["0,9999", "9999,0", "0,1023", "1023,0"])
def test_a_core_that_is_not_there_ends_a_program_with_one_line(language, program, cores):
    argv = [*command(program, language), "-c", cores, "127.0.0.1", "9"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (1, "")
    core = max(cores.split(","), key=int)
    assert re.fullmatch(rf"{program.name}: [^\n]* core {core}\b[^\n]*\n", done.stderr)


@each_language
@pytest.mark.parametrize("program", PINNED, ids=lambda program: program.name)
@pytest.mark.parametrize("order", [(0, -1), (-1, 0), None], ids=str)
def test_the_programs_thread_and_the_streams_are_pinned_if_it_is_told_to(
    receiver, language, program, order
):
    usable = sorted(os.sched_getaffinity(0))
    cores = [usable[place] for place in order] if order else []
    endless = ProgramOptions(heaps=1 << 40, cores=",".join(map(str, cores)) or None)
    argv = command(program, language, endless, receiver.getsockname())
    one_thread = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # which NumPy would have many of
    with subprocess.Popen(argv, env=one_thread) as process:
        try:
            receiver.settimeout(PATIENCE_S)
            receiver.recv(65536)  # it is at work, and so is its stream
            threads = sorted(int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir())
            found = [os.sched_getaffinity(thread) for thread in threads]
        finally:
            process.kill()
    assert found == ([{core} for core in cores] or [set(usable)] * 2)


# ---- Running ----


@each_language
def test_what_waits_for_a_limited_link_when_a_program_ends_is_counted(lend_lab, language):
    with lend_lab() as lab:
        try:
            place = Device(lab).limited(10**9)
            result = run(place, find_chapter("5"), language, ProgramOptions(heaps=8))
        except LabError as error:
            pytest.skip(str(error))
        assert lab.facts()["qdisc"] == "noqueue"
    assert result.failure is None
    assert result.report is not None
    assert result.accounting.ok
    assert result.report.waits > 0  # it was the sender that waited for the link


def test_a_place_without_a_lab_has_no_link():
    with pytest.raises(ValueError, match="no link of ours: take a lab"):
        Host("127.0.0.1", 9).limited(10**9)


@each_language
def test_a_program_under_another_name_is_of_no_chapter(receiver, tmp_path, language):
    host, port = receiver.getsockname()
    program = Path(command(find_chapter("6"), language)[-2])
    for name in ("x", "tut_4", "tut_x_send"):
        copy = tmp_path / f"{name}{program.suffix}"
        shutil.copy(program, copy)
        argv = [sys.executable, str(copy)] if language == "python" else [str(copy)]
        done = subprocess.run(
            [*argv, "-n7", "--json", host, str(port)],  # whose 7 is where x's 5th letter would be
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert (done.returncode, done.stderr) == (0, "")
        found = json.loads(done.stdout)
        assert (found["program"], found["chapter"]) == (name, 4 if name == "tut_4" else 0)
        assert found["streams"] == 1


def most_memory(argv: list[str]) -> int:
    """Bytes of memory that a program had at most."""
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_maxrss * 1024


@each_language
@pytest.mark.parametrize(
    "chapter", [c for c in PROGRAMS if c.number > 8], ids=lambda chapter: chapter.name
)
def test_no_memory_is_taken_for_heaps_that_are_not_sent(receiver, chapter, language):
    destination = receiver.getsockname()
    small, usual = (
        most_memory(
            command(chapter, language, ProgramOptions(heaps=10, heap_size=size), destination)
        )
        for size in (1, 8192)
    )
    assert small < usual + (1 << 24)


@each_language
@pytest.mark.parametrize(
    "chapter",
    [c for c in PROGRAMS if c.number >= 8 and c.name != "tut_8_send_heap_size"],
    ids=lambda chapter: chapter.name,
)
def test_memory_that_is_used_again_is_paid_for_before_the_clock_starts(lend_lab, chapter, language):
    with lend_lab() as lab:
        result = run(Device(lab), chapter, language, ProgramOptions(heaps=4, heap_size=1 << 24))
    assert result.failure is None
    assert result.report is not None
    assert result.report.page_faults < 100  # of 4096 pages in each array


@each_language
@each_program
def test_a_program_runs_in_a_lab_and_is_borne_out_by_its_counters(lend_lab, chapter, language):
    with lend_lab() as lab:
        result = run(Device(lab), chapter, language, SMALL.get(chapter.number, SMALL_HEAPS))
    assert result.failure is None
    assert result.rate is not None
    assert result.rate > 0
    assert result.report is not None
    assert (result.report.chapter, result.report.language) == (chapter.number, language)
    assert result.accounting is not None
    assert result.accounting.ok
    assert f"{result.report.packets} packets claimed" in result.proof
    assert None not in (result.report.looking_ns, result.report.waiting_looking_ns)
    # Its own thread's time is a part of all; they are read one after the other, in microseconds.
    everybody_ns = result.report.cpu_user_ns + result.report.cpu_system_ns
    assert 0 < result.report.program_cpu_ns < everybody_ns + 10**6


@each_language
@pytest.mark.parametrize(("streams", "heaps", "sent_by"), [(1, 300, 1), (3, 300, 3), (3, 2, 2)])
def test_many_streams_are_reported_as_one_and_none_is_there_that_has_no_heap(
    lend_lab, language, streams, heaps, sent_by
):
    options = ProgramOptions(heaps, 8192, streams=streams)
    with lend_lab() as lab:
        result = run(Device(lab), find_chapter("14"), language, options)
    assert result.failure is None
    assert result.report.streams == sent_by
    assert result.report.packets == heaps + 1
    case = Case("ours", language, result.chapter.name, 8192, streams=streams)
    record = sample(result, Step(0, False, case))
    assert (record.streams, record.series) == (sent_by, case.series)
    assert case.series.variant == ("1 stream" if streams == 1 else f"{streams} streams")


@each_language
@pytest.mark.parametrize("streams", ["0", "1025", "x"])
def test_a_number_of_streams_that_there_cannot_be_is_refused(language, streams):
    argv = [*command(find_chapter("14"), language), "-s", streams, "127.0.0.1", "9"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (2, "")
    words = f"must be a number from 1 to 1024, not '{streams}'"
    assert done.stderr.splitlines()[-1].endswith(words)


@each_language
def test_threads_that_fail_at_once_end_the_program_with_one_line(make_lab, language):
    with make_lab() as lab:
        destination = (lab.address, lab.port)
        endless = ProgramOptions(1 << 62, 8192, streams=2)
        argv = command(find_chapter("14"), language, endless, destination)
        pipe = subprocess.PIPE
        with lab.popen(argv, stdout=pipe, stderr=pipe, text=True) as process:
            while lab.counters().packets < 1000 and process.poll() is None:
                pass
            lab.set_link(False)
            assert process.wait(timeout=PATIENCE_S) == 1
            assert process.stdout.read() == ""
            line = process.stderr.read()
    assert re.fullmatch(r"tut_14_send_many_streams: heap \d+: .*Network is unreachable.*\n", line)


ZERO_COPY = find_chapter("15")
COPIED = r"tut_15_send_zero_copy: (\d+) of \1 messages were copied, and not read in place\n"
SMALL_PAGES = "tut_15_send_zero_copy: the recording is not in huge pages: [^\n]+\n"


def zero_copy(place: Place, language: str, *switches: str, heap_size: int = 1 << 20) -> Result:
    """Run chapter 15's program, which has to be believed."""
    result = run(place, ZERO_COPY, language, ProgramOptions(300, heap_size, switches=switches))
    assert result.failure is None
    return result


@each_language
@pytest.mark.parametrize("switches", [(), ("small pages",), ("fill",), ("copy",), ("copy", "fill")])
def test_what_the_kernel_reads_in_place_is_reported(lend_lab, language, switches):
    with lend_lab() as lab:
        result = zero_copy(Device(lab), language, *switches)
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
    record = sample(result, Step(0, False, case))
    assert (record.variant, record.zero_copy_messages) == (variant, report.zero_copy_messages)


@each_language
def test_a_kernel_that_copies_after_all_does_not_go_unnoticed(lend_lab, language):
    with lend_lab() as lab:
        result = zero_copy(Loopback("fast", lab), language, heap_size=8192)
        told_to = zero_copy(Loopback("fast", lab), language, "copy", heap_size=8192)
    assert re.fullmatch(f"(?:{SMALL_PAGES})?{COPIED}", result.said)
    assert result.report.zero_copy_copied == result.report.zero_copy_messages
    assert re.fullmatch(f"(?:{SMALL_PAGES})?", told_to.said)


@each_language
def test_a_recording_is_sent_again_and_again_but_its_descriptors_once(lend_lab, language):
    options = ProgramOptions(20, 1 << 26)  # more than it has
    with lend_lab() as lab:
        made, recorded = (
            run(Device(lab), chapter, language, options)
            for chapter in (find_chapter("13"), ZERO_COPY)
        )
    assert (made.failure, recorded.failure) == (None, None)
    assert made.report.packets == recorded.report.packets
    assert made.report.spead_bytes == recorded.report.spead_bytes


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


@each_language
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
        done = subprocess.run(
            [sys.executable, "-c", forbid, *argv],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0
        assert re.fullmatch(words, done.stderr)


def test_a_mistake_in_a_python_thread_is_shown_whole_and_ends_the_program(tmp_path):
    script = tmp_path / "mistaken.py"
    script.write_text(
        "from spead_tutorial_run import run\n"
        "import threading\n"
        "def main():\n"
        "    thread = threading.Thread(target=lambda: 1 / 0)\n"
        "    thread.start()\n"
        "    thread.join()\n"
        "    print('went on')\n"
        "run(main)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


@each_language
def test_messages_that_the_kernel_cuts_are_accounted_for(lend_lab, language):
    # At 1472 bytes a few messages have so many bytes that no device takes them whole.
    with lend_lab() as lab:
        result = run(Device(lab), find_chapter("5"), language, ProgramOptions(heaps=100))
    assert result.failure is None


@each_language
def test_chapter_2_is_also_received_whole_by_a_sink(lend_lab, language):
    with lend_lab() as lab:
        result = run(Device(lab), find_chapter("2"), language)
    assert result.failure is None
    assert result.report is not None
    assert result.evidence.received is not None
    assert (
        result.evidence.received["packets"] + result.evidence.received["dropped"]
        == result.report.packets
    )
    assert "the sink received" in result.proof


@each_language
@pytest.mark.parametrize(
    "chapter", [c for c in PROGRAMS if "-p" in c.flags], ids=lambda chapter: chapter.name
)
def test_a_program_whose_packets_are_too_large_has_no_rate(make_lab, chapter, language):
    with make_lab() as lab:
        result = run(Device(lab), chapter, language, ProgramOptions(heaps=10, packet_size=70000))
        assert lab.counters().packets == 0
    assert result.status == 1
    assert result.rate is None
    assert result.failure is not None
    assert re.fullmatch(rf"{chapter.name}: .*70000.*", result.failure)


@each_language
@pytest.mark.parametrize(
    "chapter",
    [c for c in PROGRAMS if "-p" in c.flags and c.packet_size],
    ids=lambda chapter: chapter.name,
)
def test_a_program_says_that_its_packets_travel_in_fragments(lend_lab, chapter, language):
    with lend_lab() as lab:
        fits = (lab.mtu - 28) // 8 * 8
        at_the_limit, above = (
            run(
                Device(lab),
                chapter,
                language,
                ProgramOptions(3, packet_size=size, switches=chapter.switches("copy, small pages")),
            )
            for size in (fits + 7, fits + 8)  # the first of which is rounded down
        )
    assert (at_the_limit.failure, at_the_limit.said) == (None, "")
    assert above.failure is None
    assert above.said == (
        f"{chapter.name}: packets of {fits + 8} bytes travel to {lab.address} in several fragments"
        f" each: {fits} is the most that goes in one piece\n"
    )


@each_language
def test_packets_are_as_large_as_the_route_takes_them_whole(lend_lab, language):
    with lend_lab() as lab:
        before = lab.snmp()["Ip"]
        result = run(Device(lab), find_chapter("16"), language, ProgramOptions(2, 1 << 16))
        after = lab.snmp()["Ip"]
        fits = (lab.mtu - 28) // 8 * 8
    assert (result.failure, result.said) == (None, "")
    assert result.report.packet_size == fits
    packets = believe.packet_sizes(1 << 16, fits)  # with what 64 KiB are cut into unequally
    assert result.report.packets == sum(map(len, packets))
    assert result.report.spead_bytes == sum(map(sum, packets))
    assert (after["FragOKs"], after["FragCreates"]) == (before["FragOKs"], before["FragCreates"])


@each_language
def test_a_packet_that_the_route_does_not_take_whole_fails_and_says_what_fits(lend_lab, language):
    with lend_lab() as lab:
        fits = (lab.mtu - 28) // 8 * 8
        options = ProgramOptions(3, 1 << 16, fits + 8)
        result = run(Device(lab), find_chapter("16"), language, options)
    assert (result.status, result.rate) == (1, None)
    assert result.said.count("\n") == 1  # no word of fragments, which there are none of
    assert f"a packet of {fits + 8} bytes" in result.failure
    assert result.failure.endswith(f"lower max_packet_size to {fits}")


@each_language
@pytest.mark.parametrize("packet_size", [None, 9000])
def test_heaps_of_16_kib_share_messages(lend_lab, language, packet_size):
    options = ProgramOptions(32, 1 << 14, packet_size)
    with lend_lab() as lab:
        unequal, equal = (
            run(Device(lab), find_chapter(number), language, options) for number in ("13", "16")
        )
    assert (unequal.failure, equal.failure) == (None, None)
    assert equal.report.packets == unequal.report.packets
    assert equal.report.spead_bytes == unequal.report.spead_bytes
    assert equal.report.messages < unequal.report.messages / 2


@each_language
def test_heaps_of_16_kib_arrive_in_equal_packets(receiver, language):
    options, destination = ProgramOptions(3, 1 << 14, 9000), receiver.getsockname()
    argv = command(find_chapter("16"), language, options, destination)
    subprocess.run(argv, check=True, capture_output=True, timeout=PATIENCE_S)
    first, second, *others = (len(receiver.recv(65536)) for _ in range(6))
    assert others == [8240] * 4
    assert first + second > 2 * 8240  # with descriptors


def test_a_real_interface_is_refused(monkeypatch):
    def refuse(host: str, *, allow_real_network: bool) -> None:
        raise LabError(f"{host} {allow_real_network}")

    monkeypatch.setattr(place_module, "check_destination", refuse)
    with pytest.raises(LabError, match=r"192\.0\.2\.1 False"):
        run(Host("192.0.2.1", 9), find_chapter("6"), "c")


# ---- Programs that lie or fail have no rate ----


def test_a_program_that_claims_what_it_did_not_send_has_no_rate(lend_lab, tmp_path, monkeypatch):
    claim = json.dumps(dataclasses.asdict(REPORT))
    pretend(monkeypatch, tmp_path, f"print({claim!r})")
    with lend_lab() as lab:
        result = run(Device(lab), find_chapter("6"), "c")
    assert result.rate is None
    assert result.failure is not None
    assert "the device counted 0 packets" in result.failure
    assert "4 SPEAD packets of 3200 bytes" in result.failure


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import sys; sys.exit('tut_6_send_pktsize: no luck')", "tut_6_send_pktsize: no luck"),
        ("import sys; sys.exit(3)", "ended with status 3 and said nothing"),
        ("import os; os.kill(os.getpid(), 9)", "ended by SIGKILL"),
        ("print('100.00 MB/s')", "printed no report, but '100.00 MB/s'"),
        ("print('{}')", "printed no report"),
        ("print('[1, 2]')", "printed no report"),
        ("", "printed no report"),
        ("import time; time.sleep(60)", "did not end within 0.5 s"),
    ],
)
def test_a_program_that_fails_has_no_rate(lend_lab, tmp_path, monkeypatch, source, words):
    pretend(monkeypatch, tmp_path, source)
    timeout = 0.5 if "sleep" in source else PATIENCE_S
    with lend_lab() as lab:
        result = run(Device(lab), find_chapter("6"), "c", timeout=timeout)
    assert result.rate is None
    assert result.failure is not None
    assert words in result.failure
    assert "\n" not in result.failure


@pytest.mark.parametrize(
    "changed",
    [
        {"errors": 1},
        {"payload_bytes": 4000},
        {"elapsed_ns": 0},
        {"spead_bytes": 2999},
        {"packets": 5},
        {"messages": 3},
    ],
)
def test_a_report_with_something_wrong_has_no_rate(changed):
    # What the device counts for two messages: a header of 42 bytes for each.
    counted = Counters("dummy", 0, 0, 0, 2, REPORT.spead_bytes + 2 * 42, 0)

    def failure(report: Report) -> str | None:
        evidence = Evidence(counted)
        return contradiction(report, evidence, hold(report, evidence))

    assert failure(REPORT) is None
    wrong = dataclasses.replace(REPORT, **changed)
    if changed == {"packets": 5}:  # merged packets are one to the device
        assert failure(wrong) is None
    else:
        assert failure(wrong) is not None


# ---- Records of them ----


def test_a_failed_run_is_recorded_with_what_it_was_told_and_without_a_rate(
    lend_lab, tmp_path, monkeypatch
):
    pretend(monkeypatch, tmp_path, "raise SystemExit('no luck')")
    with lend_lab() as lab:
        result = run(Device(lab), find_chapter("6"), "c", ProgramOptions(heaps=7))
    record = sample(result, Step(0, False, Case("ours", "c", "tut_6_send_pktsize")))
    assert (record.heaps, record.heap_size, record.packet_size) == (7, 1 << 20, 9000)
    assert record.rate is None
    assert record.elapsed_ns is None
    assert record.failure == "tut_6_send_pktsize: no luck"


# ---- Over loopback in a lab ----

each_listener = pytest.mark.parametrize("listener", LISTENERS)
#: Last packets of 408 bytes, which ICMP quotes whole where they are messages of their own.
SMALL_LAST = ProgramOptions(heaps=60, packet_size=1472)


@each_language
@each_listener
@pytest.mark.parametrize("options", [SMALL[6], SMALL_LAST], ids=["9000", "1472"])
def test_chapter_6_is_borne_out_whoever_listens_on_loopback(lend_lab, language, listener, options):
    with lend_lab() as lab:
        result = run(Loopback(listener, lab), find_chapter("6"), language, options)
    assert result.failure is None
    assert result.report is not None
    assert result.rate is not None
    assert (result.device, result.kind) == ("lo", "loopback")
    record = sample(
        result, Step(0, False, Case("ours", language, "tut_6_send_pktsize", variant=listener))
    )
    assert record.variant == listener
    if listener == "none":
        assert record.icmp_errors == result.report.messages
        assert record.counted_packets == 2 * result.report.messages
        assert (record.received_packets, record.received_dropped) == (None, None)
        assert "messages came back, as nobody listened" in result.proof
    else:
        assert record.icmp_errors == 0
        assert record.counted_packets == result.report.messages
        assert record.received_packets + record.received_dropped == result.report.packets


@each_program
def test_every_program_can_be_run_without_a_listener(lend_lab, chapter):
    options = SMALL.get(chapter.number, SMALL_HEAPS)
    with lend_lab() as lab:
        result = run(Loopback("none", lab), chapter, "c", options)
    assert result.failure is None
    assert result.evidence.icmp_errors == result.report.messages


def test_a_slow_listener_loses_what_a_fast_sender_sends(lend_lab):
    with lend_lab() as lab:
        result = run(
            Loopback("slow", lab),
            find_chapter("6"),
            "c",
            ProgramOptions(heaps=200),
            timeout=PATIENCE_S,
        )
    assert result.failure is None
    assert result.evidence.received["dropped"] > 0
    assert result.as_dict()["icmp_errors"] == 0


def test_without_a_listener_a_message_that_was_not_sent_is_missed(lend_lab, tmp_path, monkeypatch):
    claim = json.dumps(dataclasses.asdict(REPORT))
    pretend(monkeypatch, tmp_path, f"print({claim!r})")
    with lend_lab() as lab:
        result = run(Loopback("none", lab), find_chapter("6"), "c")
    assert result.rate is None
    assert "the device counted 0 packets" in result.failure


def test_where_nobody_is_to_listen_somebody_is_noticed(lend_lab):
    with lend_lab() as lab, lab.socket() as somebody:
        somebody.bind(("127.0.0.1", lab.port))
        result = run(Loopback("none", lab), find_chapter("6"), "c", SMALL[6])
    assert result.rate is None
    assert "no message came back: somebody did" in result.failure


def test_a_packet_that_a_listener_never_got_is_missed(lend_lab, monkeypatch):
    summary = place_module._Sink.summary
    less = {"packets": -1}

    def forgetful(sink, expect_the_end):
        seen = summary(sink, expect_the_end)
        return seen | {name: seen[name] + value for name, value in less.items()}

    monkeypatch.setattr(place_module._Sink, "summary", forgetful)
    with lend_lab() as lab:
        result = run(Loopback("fast", lab), find_chapter("6"), "c", SMALL[6])
        again = run(Device(lab), find_chapter("2"), "c")
    for one in (result, again):
        assert one.rate is None
        assert "the sink received" in one.failure
        assert "but the program claims" in one.failure


def icmp_failure(report: Report, icmp_bytes: int, icmp_errors: int = 2) -> bool:
    """Whether so many bytes of errors beside the messages of a report are refused."""
    lo_bytes = report.spead_bytes + 2 * 28 + icmp_bytes
    counted = Counters("loopback", 0, 0, 0, 2 + icmp_errors, lo_bytes, 0)
    return not believe._accounted(report, counted, icmp_errors).ok


def test_errors_that_return_messages_are_accounted_for_to_the_byte():
    # The stop heap has 57 bytes: its error has 56 more. A heap's last packet has 408.
    report = dataclasses.replace(REPORT, heaps=1, heap_size=1 << 20, payload_bytes=1 << 20)
    assert believe._last_packets(1 << 20, 1472) == (732, 408, 57)
    assert not icmp_failure(report, 576 + 57 + 56)
    assert icmp_failure(report, 576 + 57 + 57)
    assert icmp_failure(report, 576 + 576)
    assert icmp_failure(report, 576 + 57 + 56, icmp_errors=1)
    # So many heaps, so many last packets that may have been messages of their own at most.
    assert icmp_failure(report, 408 + 56 + 57 + 56)
    report = dataclasses.replace(report, heaps=2, payload_bytes=2 << 20)
    assert not icmp_failure(report, 408 + 56 + 57 + 56)


def test_what_cannot_be_proven_or_is_not_known_is_refused_before_it_runs(lend_lab):
    with lend_lab() as lab:
        for options in (ProgramOptions(heap_size=500), ProgramOptions(packet_size=500)):
            with pytest.raises(ValueError, match="500 bytes cannot be accounted for"):
                run(Loopback("none", lab), find_chapter("8"), "c", options)
        with pytest.raises(ValueError, match="none, fast, slow"):
            run(Loopback("deaf", lab), find_chapter("8"), "c")


def test_a_measured_program_has_no_threads_for_linear_algebra(monkeypatch):
    source = "import numpy, os; print(len(os.listdir('/proc/self/task')))"
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")  # the tests have it, too
    done = programs.finish(subprocess.run, "program", [sys.executable, "-c", source])
    assert done.output == "1\n"


@pytest.mark.parametrize("number", ["6", "2"])
def test_a_program_gets_what_it_is_to_have_in_its_environment(
    lend_lab, tmp_path, monkeypatch, number
):
    source = "import os, sys; sys.exit(os.environ['COLOUR'] + str(len(os.environ['PATH'])))"
    pretend(monkeypatch, tmp_path, source)
    environment = {"COLOUR": "blue"}
    chapter = find_chapter(number)
    with lend_lab() as lab:
        result = run(Device(lab), chapter, "c", environment=environment)
    assert f"blue{len(os.environ['PATH'])}" in result.failure
    if chapter.takes_destination:
        for result in (
            run(Loopback(), chapter, "c", environment=environment),
            run(Host("127.0.0.1", 9), chapter, "c", environment=environment),
        ):
            assert "blue" in result.failure

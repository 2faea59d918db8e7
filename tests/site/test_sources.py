# SPDX-License-Identifier: BSD-3-Clause
"""Pages cannot drift from the programs and the records: what they show and say is taken from those.

The site itself is tested, in a browser, by tests/site/browser.
"""

import functools
import itertools
import json
import re
import statistics
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from msgspec.structs import replace

from spead_tutorial.chapters import catalogue
from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.measure import records
from spead_tutorial.measure.place import Loopback
from spead_tutorial.measure.records import OURS, Sample, Sent, Timeline
from support import ROOT
from support.programs import PROGRAMS
from support.recordings import example, make_bounds, make_sample
from support.records import make_spacing, receiving
from support.site import Block, extension, fences, typed_rates

DOCS = ROOT / "docs"
RESULTS = ROOT / "bench" / "results"
HEADER = records.read(RESULTS / "ladder.jsonl").header
PAGES = sorted(
    path
    for path in DOCS.rglob("*.md")
    if path.relative_to(DOCS).parts[0] not in ("notebooks", "tests")
)
#: Programs on the way from one chapter's to the next.
_STEPS = {step.name for step in catalogue.STEPS}

#: What makes of a whole listing a part of it.
_PARTS = ("diff", "end-at", "end-before", "lines", "pyobject", "start-after", "start-at")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# ---- Commands ----

_OURS = re.compile(
    r"(?<![\w./-])(spead-tutorial [a-z]|python (-m bench|docs/|spead_tutorial/|\$\())"
)
_ACTIVATES = "/bin/activate"


def shells(path: Path) -> Iterator[list[str]]:
    """The lines of each block of commands on a page."""
    for block in re.findall(r"(?ms)^ *```sh\n(.*?)^ *```$", path.read_text()):
        yield block.splitlines()


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_commands_work_as_they_are_typed_by_a_reader_who_begins_at_their_page(path):
    lines = list(itertools.chain.from_iterable(shells(path)))
    first = next((i for i, line in enumerate(lines) if _OURS.search(line)), None)
    if first is None:
        return
    is_elsewhere = "tutorial" not in path.parts and "pip install" in path.read_text()
    assert is_elsewhere or any(_ACTIVATES in line for line in lines[:first])


# ---- Listings ----


@functools.cache
def blocks(path: Path) -> list[Block]:
    return list(fences(path.read_text()))


def whole_listings(path: Path) -> set[Path]:
    """Find the files that a page shows from their first line to their last."""
    return {
        (path.parent / one.info.split()[1]).resolve()
        for one in blocks(path)
        if one.info.startswith("{literalinclude} ") and not one.options.intersection(_PARTS)
    }


def named_by(page: Path, directive: str) -> set[str]:
    """Return what a directive of a page names, wherever it is used."""
    found = [one.info.split() for one in blocks(page)]
    return {word for first, *words in found if first == f"{{{directive}}}" for word in words}


def test_every_program_of_a_chapter_is_shown_whole_on_a_page():
    shown = {path for page in PAGES for path in whole_listings(page)}
    assert [name(one) for one in PROGRAMS if one.stem not in _STEPS and one not in shown] == []


def test_every_step_is_shown_by_what_it_changed_and_can_be_saved():
    for directive in ("stage-diff", "programs"):
        assert {step for page in PAGES for step in named_by(page, directive)} >= _STEPS, directive


# ---- Numbers in prose ----


def test_no_measured_rate_is_typed_into_a_page():
    found = [
        f"{name(page)}: {rate}"
        for page in PAGES
        if page.parent.name != "design"
        for rate in typed_rates(page.read_text())
    ]
    assert found == [], "use a role; what is chosen goes into CHOSEN, with a reason"


def test_typed_rates_are_told_from_measured_and_chosen_ones():
    text = "It asks for 100 MB/s and got {rate}`tut-8 c`, not 7 390 MB/s or `6 GB/s` or 3,1 Gb/s.\n"
    assert typed_rates(text) == ["7 390 MB/s", "3,1 Gb/s"]
    assert typed_rates("```sh\nrate 12 MB/s\n```\n") == []


# ---- The extensions ----


def test_a_line_of_a_record_is_cut_with_an_ellipsis():
    shown = extension("tables").shown({"record": "spacing", "time_ns": [1, 2, 3]}, 2)
    assert shown == '{\n  "record": "spacing",\n  "time_ns": [1, 2, …]\n}'


def test_a_stage_diff_has_what_changed_and_two_lines_around_it(tmp_path):
    before, after = tmp_path / "before.c", tmp_path / "after.c"
    before.write_text("a\nb\n\nc\nprepare();\nd\n\ne\nf\ng\nh\nend();\n")
    after.write_text("a\nb\n\nc\nfill();\nwrap();\nd\n\ne\nf\ng\nh\n")
    assert extension("listings").changes(before, after) == [
        "--- before.c",
        "+++ after.c",
        "@@ -3,5 +3,6 @@",
        " ",
        " c",
        "-prepare();",
        "+fill();",
        "+wrap();",
        " d",
        " ",
        "@@ -10,3 +11,2 @@",
        " g",
        " h",
        "-end();",
    ]


def test_the_programs_of_a_listing_are_found_by_name_and_language():
    languages = {".py": "python", ".c": "c", ".cpp": "cpp"}
    find = extension("listings").program_file
    assert [find(one.stem, languages[one.suffix]) for one in PROGRAMS] == PROGRAMS


def test_diagrams_need_no_page_for_their_colours_and_take_those_of_a_page():
    pictures = extension("pictures")
    for path in sorted(pictures.DIAGRAMS.glob("*.svg")):
        svg = path.read_text()
        assert pictures.PAPER in svg, path.name
        assert "var(" not in svg, path.name
        colours = set(re.findall(r"#[0-9a-f]{3,6}", svg))
        assert colours <= pictures.IN_PAGES.keys(), path.name


def test_what_a_class_has_of_another_is_linked_by_its_own_name():
    lines = "".join(extension("public_names")._inherited(Loopback))  # which has some of its own
    links = re.findall(r"`(\w+) <[\w.]+\.(\w+)>`", lines)
    assert links
    assert all(name == target for name, target in links)


# ---- Measured values ----

_POINT = {
    "warm_up": False,
    "chapter": 8,
    "random": False,
    "heaps": 10,
    "packet_size": 9000,
    "device": "ifb0",
    "kind": "ifb",
}
_BEFORE, _AFTER = "tut_8_send_heap_size", "tut_8_send_reuse_memory"
_SIZES = {"8KiB": 8 << 10, "64MiB": 64 << 20}


def _samples() -> Iterator[Sample]:
    """Nine rounds and one to warm up, of two programs in both languages with two sizes."""
    points = itertools.product(("python", "c"), (_BEFORE, _AFTER), _SIZES.values())
    for index, (language, program, size) in enumerate(points):
        for number in range(10):
            point = _POINT | {"warm_up": number == 0, "program": program, "language": language}
            yield Sent(
                case=f"{language} {program} {size}",
                implementation=OURS,
                round=number,
                heap_size=size,
                elapsed_ns=10**6 * (7 + index) + 10**4 * (number * 7 % 10),
                payload_bytes=10 * size,
                page_faults=1000 * index + number * number,
                cpu_user_ns=10**9 + 10**7 * number,
                cpu_system_ns=10**8 * (1 + index),
                **point,
            )


def _loops() -> Iterator[Sample]:
    """The same, and bare loops that need three quarters of the time of one of them."""
    for one in _samples():
        yield one
        if (one.language, one.program, one.heap_size) == ("c", _AFTER, _SIZES["8KiB"]):
            loop = {"implementation": "ceiling", "program": "ceiling", "variant": "two threads"}
            took = {"case": f"bare {one.case}", "elapsed_ns": one.elapsed_ns * 3 // 4}
            yield replace(one, **loop, **took)


def _cold() -> Timeline:
    """Heaps of which the first is a cold start; 40 and 60 to prepare others, 10 and 30 to send."""
    moments = [(0, 900, 1000), (800, 940, 1060), (810, 945, 1065), (890, 955, 1095)]
    steps = [tuple(1000 * moment for moment in one) for one in (*moments, *moments[-1:] * 2)]
    return Timeline("5", _AFTER, "python", False, 1, 1, *steps)


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    """Records of a made-up machine."""
    folder = tmp_path_factory.mktemp("records")
    # Two heaps in 110: each is prepared in 30, sent in 15, and waited for in 20; 10 are between.
    steps = ((0, 60), (30, 90), (33, 93), (48, 108), (49, 109), (50, 110))
    timeline = Timeline("4/python", _BEFORE, "python", False, 1, 1, *steps)
    even = (make_spacing("tut_4_send_perf", True, 3000 + n, number=n) for n in range(9))
    made = [*_samples(), timeline, *even]
    write(folder, small=made, ladder=made, bare=_loops(), cold=[_cold()])
    write(folder, **{"receive-lossless": make_bounds().samples})
    return folder


@pytest.fixture
def measured(made_up, monkeypatch):
    """The roles, of those records."""
    module = extension("measured")
    monkeypatch.setattr(module, "RESULTS", made_up)
    module.recording.cache_clear()
    module._points.cache_clear()
    yield module
    module.recording.cache_clear()
    module._points.cache_clear()


def write(folder: Path, **lines: Iterable[Any]) -> None:
    """Make records of the machine that the others are of, by their names."""
    for name, its in lines.items():
        with mock.patch("os.fsync"), records.Writer(folder / f"{name}.jsonl", HEADER) as writer:
            for one in its:
                writer.add(one)


def chosen(language: str, program: str, size: str) -> list[Sample]:
    return [
        one
        for one in _samples()
        if (one.language, one.program, one.heap_size) == (language, program, _SIZES[size])
        and not one.warm_up
    ]


_ROUNDS = "median of 9 rounds, 95 % interval "
#: What roles say: a median of rounds, or what is beside it here.
SAID = [
    ("rate", f"small c {_AFTER} 64MiB", "47 800 MB/s", _ROUNDS),
    ("rate", f"small python {_BEFORE} 8KiB", "11.6 MB/s", _ROUNDS),
    (
        "rate",
        "receive-lossless c tut_3_recv 1MiB",
        "1 500 MB/s",
        "median of 7 rounds, 95 % interval",
    ),
    ("per_heap", f"page_faults small c {_AFTER} 8KiB", "602", _ROUNDS),
    ("per_gb", f"cpu small c {_AFTER} 64MiB", "2.76 s", _ROUNDS),
    ("time_per_heap", f"small python {_BEFORE} 8KiB", "705 µs", _ROUNDS),
    ("gain", f"small c 64MiB {_BEFORE} -> {_AFTER}", "0.858", _ROUNDS),
    ("gain", f"small c {_AFTER} 64MiB -> {_BEFORE}", "1.17", _ROUNDS),
    # Near to one the ends have three digits.
    ("gain", f"small c {_BEFORE} 8KiB -> {_AFTER}", "0.847", r"interval 0\.\d\d\d to 0\.\d\d\d"),
    ("gain", "receive-lossless c 1MiB tut_3_recv -> tut_7_recv_power", "2.00", ""),
    ("lossless", "c tut_3_recv 1MiB", "1 500 MB/s (1 4", "median of 7 rounds, 95 % interval"),
    ("lossless", "spead2-source c receive 64KiB", "2 000 MB/s (", ""),
    ("lossless", "c tut_7_recv_power 1MiB", "at least 3 000 MB/s (", ""),
    ("width", f"small c {_BEFORE} 64MiB", "0.5 %", _ROUNDS),
    ("of_ceiling", f'bare 8KiB "two threads" -> c {_AFTER}', "75 %", "median of 9 rounds"),
    ("share", f"preparing small {_BEFORE}", "55 %", ""),
    ("share", f"waiting small {_BEFORE}", "36 %", ""),
    ("share", f"rest small {_BEFORE}", "9 %", ""),
    ("share", f"sending small {_BEFORE}", "27 %", ""),
    # Four messages of 64 KiB in 30 us, and then nothing for 3004.
    ("spacing", "silence small tut_4_send_perf random", "3 000 µs", "median of 9 rounds"),
    ("spacing", "burst small tut_4_send_perf random", "253 KiB", "median of 9 rounds"),
    ("took", f"preparing cold {_AFTER}", "50 µs", "median of 2 heaps"),
    ("took", f"sending cold {_AFTER}", "20 µs", "median of 2 heaps"),
    ("at_best", f"cold {_AFTER}", "1.40", ""),
    ("total", f"heaps small c {_AFTER} 8KiB", "90", "of 9 rounds together"),
    ("fact", "cpu", str(HEADER.machine["cpu"]), ""),
    ("fact", "cpu small", str(HEADER.machine["cpu"]), "the machine of small"),
    ("fact", "mtu", str(HEADER.lab["mtu"]), ""),
    ("fact", "L2", f"{HEADER.machine['caches_bytes']['L2'] >> 20} MiB", ""),
    ("fact", "rounds", "9", ""),
]


@pytest.mark.parametrize(("role", "text", "said", "detail"), SAID)
def test_a_role_says_what_was_measured(measured, role, text, said, detail):
    found = getattr(measured, role)(text)
    words = re.sub(r"\s", " ", found.text)
    assert words.startswith(said) if said.endswith(("(", "(1 4")) else words == said
    assert re.search(detail, found.detail)


def test_the_best_is_what_was_fastest_at_a_size(measured):
    names = {_BEFORE: "chapter 8, heaps of any size", _AFTER: "chapter 8"}
    _, *rows = extension("measured_tables").best_of("small", "c | python").rows
    assert [row[0] for row in rows] == [
        size.replace("M", " M").replace("K", " K") for size in _SIZES
    ]
    for size, row in zip(_SIZES, rows, strict=True):
        rates = {}
        for language in ("c", "python"):
            for program in (_BEFORE, _AFTER):
                took = [one.elapsed_ns for one in chosen(language, program, size)]
                rates[language, program] = 10 * _SIZES[size] / statistics.median(took)
        ours, theirs = (
            max((_BEFORE, _AFTER), key=lambda program: rates[language, program])
            for language in ("c", "python")
        )
        assert (row[1], row[3]) == (names[ours], names[theirs])
        gained = rates["c", ours] / rates["python", theirs]
        assert float(row[5].split()[0]) == pytest.approx(gained, rel=0.02)
    with pytest.raises(measured.UnknownError, match="no sample of spead2"):
        extension("measured_tables").best_of("small", "c | spead2")


def test_a_goal_stands_beside_the_same_ratio_as_in_the_table_of_the_best(measured):
    tables = extension("measured_tables")
    _, *rows = tables.best_of("small", "c | python").rows
    _, goals, costs = tables.goals(
        "small", "C | 1.3 | c | python", "CPU | 0.5 | cpu c | python"
    ).rows
    assert goals == ("C", "1.3", *(row[5].split()[0] for row in rows))
    assert float(costs[2]) == pytest.approx(float(rows[0][6].split()[0]), abs=0.01)


def test_a_table_has_a_dash_where_something_was_not_measured_and_has_to_have_one_number(measured):
    tables = extension("measured_tables")
    few = [one for one in _samples() if one.language == "c" or one.heap_size == _SIZES["8KiB"]]
    write(measured.RESULTS, few=few)
    _, goal = tables.goals("few", "C | 1.3 | c | python").rows
    assert (goal[2] != "-", goal[3]) == (True, "-")
    words = f"{_AFTER} python -> c"
    estimate = measured.gain_estimate(f"few 8KiB {words}")
    head, (size, cell) = tables.sizes("few", f"Both | {words}").rows
    assert (*head, size) == ("Heaps of", "Both", "8 KiB")
    assert cell.startswith(f"{{gain}}`few 8KiB {words}` [{estimate.low:.3g},")
    with pytest.raises(measured.UnknownError, match="no sample of 'c' and of 'spead2'"):
        tables.goals("few", "C | 1.3 | c | spead2")
    with pytest.raises(measured.UnknownError, match="no sample of what"):
        tables.sizes("few", "Both | tut_13_send_hot python -> c")


def test_the_table_of_gains_chains_the_ladder_and_has_a_row_for_each_step():
    steps = extension("measured_tables").steps()
    assert all(after == before for (_, after), (before, _) in itertools.pairwise(steps))
    assert find_chapter(steps[0][0]).number == catalogue.CHAPTERS[0].number
    assert steps[-1][1] == catalogue.LADDER[-1].program


def test_a_step_has_a_gain_at_each_size_of_heaps_at_which_both_its_programs_are_chained():
    module = extension("measured_tables")
    (large, small), step = module.SIZES, ("tut_5_send_pipeline", "tut_6_send_pktsize")
    assert module.gain_cell(step, large, "c").startswith("{gain}`ladder c 1MiB tut_5_")
    assert module.gain_cell(step, small, "c") == "-"
    step = ("tut_8_send_reuse_memory", "tut_10_send_reuse_heaps")
    assert module.gain_cell(step, small, "python").startswith("{gain}`ladder python 8KiB tut_8_")


@pytest.mark.parametrize(
    ("role", "text", "why"),
    [
        ("rate", "tut-99 c", "there is no record 'tut-99'"),
        ("rate", f"small spead2 c {_BEFORE} 4KiB 'huge pages'", "no sample"),
        ("rate", f"small c {_BEFORE}", "several points"),
        ("lossless", "c 1MiB", "several points"),
        ("rate", f"small c 8KiB {_BEFORE} -> {_AFTER}", "compares"),
        ("gain", f"small c {_BEFORE} 8KiB", "compares nothing"),
        ("gain", f"small c 8KiB {_BEFORE} -> tut_99", "no sample"),
        ("gain", f"small c 8KiB {_BEFORE} -> fill", "compares a thing with itself"),
        ("of_ceiling", f"small 8KiB -> c {_BEFORE}", "no sample"),
        ("per_heap", f"program small c {_BEFORE} 8KiB", "no count 'program'"),
        ("per_heap", f"waits small c {_BEFORE} 8KiB", "no sample has that"),
        ("total", f"wishes small c {_BEFORE} 8KiB", "no count 'wishes'"),
        ("total", f"waits small c {_BEFORE} 8KiB", "not every sample has a count 'waits'"),
        ("per_gb", f"wishes small c {_BEFORE} 8KiB", "there is no 'wishes'"),
        ("took", f"waiting small {_BEFORE}", "there is no 'waiting': there are preparing, sending"),
        ("at_best", f"small {_BEFORE} pinned", "no sample of small"),
        ("share", f"wishing small {_BEFORE}", "there is no 'wishing'"),
        ("busy", f"kernel small c {_BEFORE} 8KiB", "there is no 'kernel'"),
        ("busy", f"program small c {_BEFORE} 8KiB", "no sample has that"),
        ("spacing", "colour small tut_4_send_perf random", "there is no 'colour'"),
        ("fact", "colour", "there is no fact 'colour'"),
    ],
)
def test_a_role_refuses_what_was_not_measured(measured, role, text, why):
    with pytest.raises(measured.UnknownError, match=re.escape(why)):
        getattr(measured, role)(text)


def test_a_role_that_refuses_is_an_error_of_the_page(measured):
    from docutils.frontend import get_default_settings
    from docutils.utils import new_reporter

    settings = get_default_settings()
    settings.report_level = settings.halt_level = 5
    reporter = new_reporter("page", settings)
    role = measured.Measured(measured.rate)
    _, (message,) = role("rate", "{rate}`x`", "x", 7, SimpleNamespace(reporter=reporter))
    assert message["level"] == 3
    assert "there is no record 'x'" in message.astext()


def test_all_records_are_of_one_machine_or_pages_name_the_other():
    """The facts of one stand for all; a page that has a record of another says its processor."""
    of_receivers = "receive", "no-thread", "tut-12", "tut-17", "tut-18", "both-ends"
    found: dict[str, list[str]] = {}
    for path in sorted(RESULTS.glob("*.jsonl")):
        with path.open() as lines:
            header = json.loads(next(lines))
        wanted = ("cpu", "cores", "usable_cores", "kernel", "memory_bytes", "caches_bytes")
        facts = {key: header["machine"][key] for key in wanted}
        if not path.stem.startswith(of_receivers):  # over loopback, or a pair of devices
            facts |= {key: header["lab"][key] for key in ("kind", "mtu")}
        facts |= {key: header["versions"][key] for key in ("python", "numpy", "compiler")}
        found.setdefault(json.dumps(facts), []).append(path.stem)
    (most,) = (facts for facts, there in found.items() if "ladder" in there)
    elsewhere = [
        name
        for facts, names in found.items()
        if not json.loads(facts).items() <= json.loads(most).items()
        for name in names
    ]
    for page in PAGES:
        text = page.read_text()
        for record in elsewhere:
            if re.search(rf"(}}`|-table}} )([a-z_-]+ )?{record}(?![\w-])", text):
                assert f"{{fact}}`cpu {record}`" in text, page


def test_a_chapter_is_held_against_the_best_before_it_and_bold_where_it_is_faster():
    extension("measured")
    module = extension("measured_tables")
    lines = ["tut_10_send_reuse_heaps", "tut_8_send_reuse_memory", "tut_11_send_batch_heaps"]
    heads, eight, eleven = module.over_best("heap-sizes", *lines).rows
    column = heads.index("64 KiB, C")
    gained = module.gain_estimate(f"heap-sizes c 64KiB {lines[0]} -> {lines[2]}")
    assert eleven[column] == f"{gained.median:.2f} [{gained.low:.2f}, {gained.high:.2f}]"
    assert not any("**" in cell for cell in eight)  # no reader is sent back to it
    ten = module.over_best("heap-sizes", lines[1], lines[0]).rows[1]
    assert ten[heads.index("8 KiB, Python")].startswith("**")


def test_a_table_of_losses_says_what_was_lost_at_each_rate_and_up_to_where_nothing(measured):
    made = {"loss": example("loss").samples, "both-ends": [_both_ends()]}
    write(measured.RESULTS, **made)
    module = extension("measured_runs")
    lines = (f"in {name} | ours {name.lower()} tut_7_recv_power" for name in ("C", "Python"))
    heads, c, python = module.lost_at("loss", *lines).rows
    assert heads == ("% lost at", "1 GB/s", "2 GB/s", "nothing lost up to")
    assert c == ("in C", "0", "0", "2 GB/s")
    assert python == ("in Python", "0", "25", "1 GB/s")
    with pytest.raises(ValueError, match=r"loss has no .*there are"):
        module.lost_at("loss", "in C++ | ours cpp tut_7_recv_power")
    assert module.both_ends().rows[1] == (
        *("ours in C", "spead2 in C++", "2.1", "1\N{THIN SPACE}000", "10"),
        *("0.48", "0.24", "12 %", "4"),
    )


def _both_ends() -> Sample:
    took = {"cpu_user_ns": 3 * 10**8, "cpu_system_ns": 2 * 10**8, "sender_cpu_ns": 10**9}
    seen = {"packets": 1000, "received_dropped": 10, "growth_bytes": 4096, "fullest_percent": 12.4}
    setting = {"heaps": 2000, "heap_size": 1 << 20, "payload_bytes": 2000 << 20}
    made = make_sample("tut_13_send_hot", "c", 1000.0, variant="to spead2-source, link of 10 Gb/s")
    return receiving(made, **took | seen | setting)

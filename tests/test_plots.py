# SPDX-License-Identifier: BSD-3-Clause
"""All pictures: the same bytes every time, readable by everybody, and true to their records."""

import dataclasses
import functools
import itertools
import os
import re
import statistics
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from test_records import HEADER, SAMPLE, make_spacing

from spead_tutorial import plots
from spead_tutorial.catalogue import LANGUAGES, MEASURED, find_chapter
from spead_tutorial.records import Recording, Sample, Series, Split, Timeline, Writer
from spead_tutorial.units import times

SVG = "{http://www.w3.org/2000/svg}"
KIB, MIB = 1 << 10, 1 << 20
EIGHT, TEN = "tut_8_send_reuse_memory", "tut_10_send_reuse_heaps"
NEW_MEMORY = "tut_8_send_heap_size"
BARE = Series("ceiling", "c", "ceiling", "two threads")
THEMES = {theme.name: theme for theme in (plots.LIGHT, plots.DARK)}


# ---------------------------------------------------------------------------------------
# Made-up recordings


def make_sample(program: str, language: str, rate_mb: float, **more: Any) -> Sample:
    payload = 10 * MIB
    numbers = {"ceiling": 0, NEW_MEMORY: 8}
    setting = [str(value) for name, value in more.items() if name != "round"]
    return dataclasses.replace(
        SAMPLE,
        **{"case": "/".join([program, language, *setting])}
        | {"program": program, "language": language}
        | {"chapter": numbers.get(program) or find_number(program)}
        | {"payload_bytes": payload, "elapsed_ns": round(payload / rate_mb * 1e3)}
        | more,
    )


def find_number(program: str) -> int:
    return int(program.split("_")[1]) if program.startswith("tut_") else 0


def make_rounds(
    program: str, language: str, rates_mb: Sequence[float], **more: Any
) -> list[Sample]:
    return [
        make_sample(program, language, rate, round=number, **more)
        for number, rate in enumerate(rates_mb)
    ]


def around(rate_mb: float, n: int = 7) -> list[float]:
    """Rates with the given one in the middle of them, in no order."""
    spread = [rate_mb * (1 + 0.01 * ((3 * number) % n - n // 2)) for number in range(n)]
    assert statistics.median(spread) == pytest.approx(rate_mb)
    return spread


def make_ladder(languages: Sequence[str] = MEASURED) -> Recording:
    steps = ((4, MIB), (6, MIB), (10, MIB), (10, 8192))
    samples = [
        one
        for chapter, heap_size in steps
        for language in languages
        for one in make_rounds(
            find_chapter(str(chapter)).name,
            language,
            [1000.0 * chapter + 10 * number for number in range(3)],
            heap_size=heap_size,
        )
    ]
    return Recording(HEADER, tuple(samples))


def make_sweep() -> Recording:
    samples = []
    for place, heap_size in enumerate((8 * KIB, 64 * KIB, 512 * KIB, 4 * MIB)):
        for implementation, language, program, rate in (
            ("ours", "python", EIGHT, 500),
            ("ours", "python", TEN, 2000),
            ("ours", "c", EIGHT, 900),
            ("ours", "c", TEN, 2600),
            ("spead2", "python", EIGHT, 400),
            ("spead2", "python", TEN, 1100),
        ):
            samples += make_rounds(
                program,
                language,
                around(rate + 1700.0 * place),
                implementation=implementation,
                heap_size=heap_size,
            )
        samples += make_rounds(
            "ceiling",
            "c",
            around(8000.0 + 100 * place),
            implementation="ceiling",
            variant="two threads",
            heap_size=heap_size,
        )
    return Recording(HEADER, tuple(samples))


WAYS = plots.Ways(
    "A recording",
    "tut_15_send_zero_copy",
    (("copy", "copied", "by the kernel"), ("", "read in place", ""), ("fill", "filled", "")),
    (("no fill", "copied"),),
    "tut-15",
    compared=("copy", ""),
    subtitle="Chapter 15",
)
AFTER = plots.Sweep(
    "Heaps used again",
    (
        (Series("ours", "python", TEN), "chapter 10, Python"),
        (Series("ours", "c", TEN), "chapter 10, C"),
        (Series("spead2", "python", TEN), "spead2, Python"),
    ),
    "tut-10",
    bare=BARE,
    before=tuple((Series("ours", one, EIGHT), Series("ours", one, TEN)) for one in ("python", "c")),
    gained="chapter 8",
)


def make_memory() -> Recording:
    machine = HEADER.machine | {"caches_bytes": {"L1d": 32 * KIB, "L2": 2 * MIB, "L3": 480 * MIB}}
    samples = []
    for language, heap_size in itertools.product(("python", "c"), (MIB, 16 * MIB, 64 * MIB)):
        kinds = [(NEW_MEMORY, "", 3000.0, heap_size // 4096), (EIGHT, "", 6000.0, 0)]
        kinds += [(NEW_MEMORY, "huge pages", 4500.0, heap_size // (2 * MIB))]
        kinds += [(NEW_MEMORY, "memory kept", 5500.0, 1)]
        for program, variant, rate, faults in kinds:
            samples += make_rounds(
                program,
                language,
                around(rate + (100 if language == "c" else 0)),
                heap_size=heap_size,
                variant=variant,
                page_faults=10 * faults,
            )
    return Recording(dataclasses.replace(HEADER, machine=machine), tuple(samples))


def make_packets(mtu: int = 9216) -> Recording:
    samples = []
    for size, rate in ((512, 4000.0), (1472, 8000.0), (9000, 12000.0), (9188, 12100.0)):
        for language in ("python", "c"):
            program = "tut_6_send_pktsize"
            samples += make_rounds(program, language, around(rate), packet_size=size)
        more = {"implementation": "ceiling", "variant": "two threads"}
        # The bare loop is told what is really sent.
        samples += make_rounds("ceiling", "c", around(2 * rate), packet_size=size // 8 * 8, **more)
    for language in ("python", "c"):
        samples += make_rounds("tut_6_send_pktsize", language, around(3000.0), packet_size=16384)
    header = dataclasses.replace(HEADER, lab={"kind": "dummy", "mtu": mtu})
    return Recording(header, tuple(samples))


def make_loopback() -> Recording:
    evidence: dict[str, dict[str, Any]] = {
        "no listener": {"icmp_errors": 1180, "kind": "loopback"},
        "slow listener": {"received_packets": 600, "received_dropped": 580, "kind": "loopback"},
        "listener": {"received_packets": 1180, "received_dropped": 0, "kind": "loopback"},
        "": {},
    }
    rates = {"no listener": 900.0, "slow listener": 700.0, "listener": 1500.0, "": 4000.0}
    samples = [
        one
        for language in ("python", "c")
        for variant, more in evidence.items()
        for one in make_rounds(
            "tut_6_send_pktsize",
            language,
            around(rates[variant]),
            variant=variant,
            packets=1180,
            **more,
        )
    ]
    return Recording(HEADER, tuple(samples))


def make_timeline(
    program: str, random: bool, prepare_us: int, send_us: int, variant: str = ""
) -> Timeline:
    """What a run with these times looks like: in chapter 5, two heaps are in flight."""
    n, now, free = 12, 0, 0
    overlapped = program == "tut_5_send_pipeline"
    times: dict[str, list[int]] = {name: [] for name in ("p", "q", "first", "last", "resumed")}
    for heap in range(n):
        times["p"].append(now)
        now += prepare_us * 1000
        times["q"].append(now)
        free = max(free, now)
        times["first"].append(free)
        free += send_us * 1000
        times["last"].append(free)
        waited_for = heap - 1 if overlapped else heap
        if waited_for >= 0:
            now = max(now, times["last"][waited_for])
            times["resumed"].append(now)
    if overlapped:
        times["resumed"].append(max(now, free))
    order = ("p", "q", "first", "last", "last", "resumed")
    columns = [tuple(times[name]) for name in order]
    case = f"{program}, random {random}, {variant}"
    return Timeline(case, program, "python", random, MIB, 1472, *columns, variant=variant)


def make_pipeline() -> Recording:
    samples = []
    link = "link of 10 Gb/s"
    for language, (variant, scale) in itertools.product(
        ("python", "c"), (("", 1.0), ("pinned", 1.1), (link, 0.9))
    ):
        for program, random, rate in (
            ("tut_4_send_perf", False, 100.0),
            ("tut_5_send_pipeline", True, 150.0),
            ("tut_4_send_constant", False, 2000.0),
            ("tut_5_send_pipeline", False, 3000.0),
        ):
            rates = around(scale * rate)
            samples += make_rounds(program, language, rates, random=random, variant=variant)
    timelines = (
        make_timeline("tut_5_send_pipeline", False, 300, 800, link),
        make_timeline("tut_5_send_pipeline", False, 300, 400),
        make_timeline("tut_4_send_perf", True, 8000, 2000),
        make_timeline("tut_4_send_constant", False, 300, 400),
        make_timeline("tut_5_send_pipeline", True, 8000, 2000),
    )
    return Recording(HEADER, tuple(samples), timelines)


def make_where() -> Recording:
    """Heaps that take twice as long as the program runs; the stream of chapter 10 runs no less."""
    samples, splits = [], []
    for heap_size, ns in ((8 * KIB, 1000), (MIB, 50_000)):
        for program in (TEN, "tut_13_send_hot"):
            for language in ("python", "c"):
                found = {"fill": 10, "program": 2, "queue": 3, "wake-up": 5}
                sends = {"packetizing": 2, "copy": 20, "stack": 25, "looking": 3}
                both = found | sends if "13" in program else found
                for number in range(7):
                    cpu = {"program_cpu_ns": ns * 10, "cpu_user_ns": ns * 10, "cpu_system_ns": 0}
                    more = {"round": number, "heap_size": heap_size, "elapsed_ns": ns * 20}
                    one = make_sample(program, language, 1.0, **more, **cpu, heaps=10)
                    if "10" in program:
                        one = dataclasses.replace(one, cpu_system_ns=ns * 15)
                    samples.append(one)
                    others = sends if "10" in program else {}
                    splits.append(
                        Split(one.case, number, program, language, 10, heap_size, 1, both, others)
                    )
    return Recording(HEADER, tuple(samples), splits=tuple(splits))


def make_spacings() -> Recording:
    runs = [
        make_spacing(program, is_random, gap + 7 * number, 10, number)
        for program, is_random, gap in (
            ("tut_5_send_pipeline", True, 2000),
            ("tut_4_send_perf", True, 6000),
            ("tut_5_send_pipeline", False, 20),
        )
        for number in range(7)
    ]
    return Recording(HEADER, (), spacings=tuple(runs))


def make_ways() -> Recording:
    samples = []
    for heap_size in (64 * KIB, MIB):
        for language in ("python", "c"):
            for variant, rate in (("", 3000.0), ("copy", 2000.0)):
                more = {"variant": variant, "heap_size": heap_size}
                samples += make_rounds(WAYS.program, language, around(rate), **more)
        more = {"implementation": "ceiling", "variant": "no fill", "heap_size": heap_size}
        samples += make_rounds("ceiling", "c", around(4000.0), **more)
    return Recording(HEADER, tuple(samples))


def make_ceiling() -> Recording:
    samples = []
    for heap_size, scale in ((8 * KIB, 1.0), (MIB, 2.0)):
        for variant, rate in (
            ("two threads", 8000.0),
            ("one thread", 7000.0),
            ("one thread, 2 streams", 12000.0),
            ("one thread, no fill, zero-copy, huge pages", 10000.0 * scale),
        ):
            more = {"implementation": "ceiling", "variant": variant, "heap_size": heap_size}
            samples += make_rounds("ceiling", "c", around(rate), **more)
    return Recording(HEADER, tuple(samples))


def make_receiving() -> Recording:
    """Ours is half as fast again as the peer, and needs half of its CPU time."""
    samples = []
    for packet_size, scale in ((1472, 1.0), (9000, 2.0)):
        for heap_size in (64 * KIB, MIB, 16 * MIB):
            for implementation, language, rate, cpu_ns in (
                ("ours", "c", 4500.0, MIB),
                ("ours", "python", 3500.0, 2 * MIB),
                ("spead2-source", "c", 3000.0, 2 * MIB),
                ("spead2-source", "python", 2000.0, 3 * MIB),
                ("ceiling", "c", 5000.0, MIB),
            ):
                more = {"implementation": implementation, "variant": "in turns"}
                more |= {"heap_size": heap_size, "packet_size": packet_size}
                more |= {"chapter": 0, "cpu_user_ns": 0, "cpu_system_ns": cpu_ns}
                samples += make_rounds("receive", language, around(scale * rate), **more)
    return Recording(HEADER, tuple(samples))


def make_lossless() -> Recording:
    """Searches that have found 1500 MB/s for chapter 3 in C, and twice as much for chapter 7."""
    samples = []
    for heap_size, packet_size in ((MIB, 9000), (64 * KIB, 9000)):
        for implementation, language, program, rate in (
            ("ours", "c", "tut_3_recv", 1500.0),
            ("ours", "python", "tut_3_recv", 500.0),
            ("ours", "c", "tut_7_recv_power", 3000.0),
            ("ours", "python", "tut_7_recv_power", 1500.0),
            ("ours", "c", "receive", 4500.0),
            ("ours", "python", "receive", 3500.0),
            ("spead2-source", "c", "receive", 2000.0),
            ("spead2-source", "python", "receive", 1800.0),
            ("ceiling", "c", "receive", 5000.0),
        ):
            more = {"implementation": implementation}
            more |= {"heap_size": heap_size, "packet_size": packet_size, "packets": 1000}
            for number, best in enumerate(around(rate)):
                samples += make_search(program, language, best, round=number, **more)
    return Recording(HEADER, tuple(samples))


def make_search(program: str, language: str, best_mb: float, **more: Any) -> list[Sample]:
    """A search that has found a rate: three runs at it, and two with losses at some above it."""
    runs = []
    for times_as_high, n, lost in ((1, 3, 0), (2, 2, 500), (1.05, 2, 20)):
        for _ in range(n):
            asked = 1e6 * best_mb * times_as_high
            setting = {"heaps": 10 * MIB // more["heap_size"], "asked_bytes_per_s": asked}
            got = {"received_packets": 1000 - lost, "received_dropped": lost}
            got |= {"received_heaps": setting["heaps"] - bool(lost), "run": len(runs)}
            runs.append(make_sample(program, language, asked / 1e6, **more, **setting, **got))
    return [dataclasses.replace(one, case=f"{one.series}, {one.heap_size}") for one in runs]


def make_lost() -> Recording:
    """Of 1000 packets 10 are lost on the way, or 100 in the socket, or 400 by the ring."""
    samples = []
    for variant, way, pieces, ring, socket in (
        ("0.1 GB/s, 1 % lost", 10, 190, 0, 0),
        ("0.1 GB/s", 0, 0, 0, 0),
        ("0.1 GB/s, ring of 1", 0, 150, 0, 100),
        ("0.1 GB/s, ring of 1, full ring drops", 0, 0, 400, 0),
        ("0.1 GB/s, buffer of 8 KiB", 0, 300, 0, 100),
    ):
        got = 1000 - way - pieces - ring - socket
        more = {"packets": 1000, "lost_packets": way, "incomplete_packets": pieces}
        more |= {"ring_dropped_packets": ring, "received_dropped": socket, "received_heaps": got}
        if variant.endswith("ring of 1"):
            more |= {"ring_waits": 40, "longest_ring_wait_ns": 5_000_000}
        more |= {"heaps": 1000, "heap_size": 8000, "chapter": 7, "variant": variant}
        samples += make_rounds("receive_lost", "python", around(100.0), **more)
    return Recording(HEADER, tuple(samples))


def make_history() -> plots.History:
    """Two machines, of which one has a revision at which the program in C became slower."""
    lines = []
    for language, rate, changed in (("python", 3e9, 1.0), ("c", 5e9, 0.7)):
        rates = tuple(
            tuple(1e6 * one for one in around(rate / 1e6 * (changed if number >= 4 else 1)))
            for number in range(7)
        )
        changes = ((4, changed),) if changed != 1 else ()
        series = Series("ours", language, TEN)
        lines.append(plots.HistoryLine(series, str(series), rates, changes))
    names = tuple(f"{number}a5e1e9" for number in range(7))
    panels = (
        plots.HistoryPanel("tut-10 full, a processor, 2 cores", names, tuple(lines)),
        plots.HistoryPanel("tut-10 full, another, 2 cores", names[:2], (
            plots.HistoryLine(lines[0].series, lines[0].name, ((), lines[0].rates[0])),
        )),
    )  # fmt: skip
    return plots.History("Rates over revisions, heaps of 1 MiB", panels)


#: The ladder, where C++ was measured, too.
IN_CPP = "ladder in C++"
#: What draws each picture, and of what.
PICTURES = {
    "ladder": (plots.ladder, make_ladder()),
    IN_CPP: (plots.ladder, make_ladder(LANGUAGES)),
    "sweep": (AFTER, make_sweep()),
    "memory": (plots.memory, make_memory()),
    "causes": (plots.causes, make_memory()),
    "packets": (plots.packet_sizes, make_packets()),
    "loopback": (plots.loopback, make_loopback()),
    "pipeline": (plots.pipeline, make_pipeline()),
    "timeline": (plots.timeline, make_pipeline()),
    "where": (plots.where, make_where()),
    "spacing": (plots.spacing, make_spacings()),
    "ways": (WAYS, make_ways()),
    "ceiling": (plots.ceiling, make_ceiling()),
    "receiving": (plots.receiving, make_receiving()),
    "receivers": (plots.receivers_ladder, make_lossless()),
    "loss": (plots.loss, make_lossless()),
    "lost": (plots.lost, make_lost()),
    "history": (make_history(), make_ways()),
}
OF_SAMPLES = sorted(set(PICTURES) - {"timeline", "where", "spacing", "history"})


# ---------------------------------------------------------------------------------------
# What a picture says


def draw(
    picture: plots.Draw, recording: Recording, theme: plots.Theme = plots.LIGHT
) -> tuple[Any, str, str]:
    """Draw a picture as `render` does; return the figure too."""
    found: list[Any] = []

    def keep(recording: Recording, theme: plots.Theme) -> Any:
        found.extend(picture(recording, theme))
        return tuple(found)

    plots.render(keep, recording, theme)
    return tuple(found)  # type: ignore[return-value]


@functools.cache
def drawing(name: str) -> tuple[Any, str, str]:
    """What `draw` makes of a picture; it is for looking at, as are the other two."""
    return draw(*PICTURES[name])


@functools.cache
def rendered(name: str, theme: str = "light") -> bytes:
    return plots.render(*PICTURES[name], THEMES[theme])


@functools.cache
def rendered_both(name: str) -> plots.Rendered:
    return plots.render_both(*PICTURES[name], plots.LIGHT)


def drawn_words(figure: Any) -> list[tuple[Any, Any]]:
    """Each text that is really drawn, and its box in pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    found, as_it_was = [], Text.draw

    def watch(text: Any, renderer: Any) -> None:
        as_it_was(text, renderer)
        if text.get_text().strip():
            found.append((text, Text.get_window_extent(text, renderer)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", watch)
        FigureCanvasAgg(figure).draw()
    return found


def texts(svg: bytes) -> str:
    """All words in a picture, its description among them."""
    return "\n".join(ET.fromstring(svg).itertext())


def seen(svg: bytes) -> list[str]:
    """The words that are drawn."""
    return ["".join(one.itertext()) for one in ET.fromstring(svg).iter(f"{SVG}text")]


def described(svg: bytes) -> str:
    return ET.fromstring(svg).findtext(f"{SVG}desc") or ""


def chunks(png: bytes) -> dict[str, bytes]:
    """The parts of a PNG by their names; of those that are there more than once, the last."""
    found, at = {}, 8
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        found[png[at + 4 : at + 8].decode()] = png[at + 8 : at + 8 + length]
        at += 12 + length
    return found


def fail(recording: Recording, wanted: Any = lambda one: True) -> Recording:
    """The same recording, in which some samples failed."""
    samples = tuple(
        dataclasses.replace(one, failure="it failed", elapsed_ns=None) if wanted(one) else one
        for one in recording.samples
    )
    return dataclasses.replace(recording, samples=samples)


# ---------------------------------------------------------------------------------------
# Every picture


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("theme", THEMES)
def test_the_same_recording_gives_the_same_bytes(name, theme):
    assert plots.render(*PICTURES[name], THEMES[theme]) == rendered(name, theme)


@pytest.mark.parametrize("name", PICTURES)
def test_both_kinds_of_a_picture_are_of_one_figure_and_the_same_bytes_every_time(name):
    picture, recording = PICTURES[name]
    figures = []

    def count(recording: Recording, theme: plots.Theme) -> Any:
        figures.append(picture(recording, theme))
        return figures[-1]

    both = plots.render_both(count, recording, plots.LIGHT)
    assert [title for _, title, _ in figures] == [both.title]
    assert both.svg == rendered(name)
    assert both.png == rendered_both(name).png


@pytest.mark.parametrize("name", PICTURES)
def test_a_png_is_as_large_as_its_figure_and_says_nothing_of_what_made_it(name):
    figure, _, _ = drawing(name)
    png = rendered_both(name).png
    assert len(png) < 60_000  # notebooks store it
    found = chunks(png)
    inches = figure.get_size_inches()
    assert struct.unpack(">II", found["IHDR"][:8]) == tuple(round(100 * one) for one in inches)
    assert set(found) == {"IHDR", "PLTE", "IDAT", "IEND"}


def test_another_process_with_other_settings_gives_the_same_bytes(tmp_path):
    for name, (_, recording) in PICTURES.items():
        with Writer(tmp_path / f"{name}.jsonl", recording.header) as writer:
            lines = (recording.samples, recording.timelines, recording.splits, recording.spacings)
            for one in itertools.chain(*lines):
                writer.add(one)
    (tmp_path / "matplotlibrc").write_text("font.size: 20\nsvg.fonttype: path\naxes.grid: True\n")
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import test_plots\n"
        "from spead_tutorial import plots, records\n"
        "for name, (picture, _) in test_plots.PICTURES.items():\n"
        "    recording = records.read(f'{name}.jsonl')\n"
        "    both = plots.render_both(picture, recording, plots.LIGHT)\n"
        "    open(f'{name}.svg', 'wb').write(both.svg)\n"
        "    open(f'{name}.png', 'wb').write(both.png)\n"
    )
    subprocess.run(
        [sys.executable, "-c", script, str(Path(__file__).parent)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"},
        timeout=100,
        check=True,
    )
    for name in PICTURES:
        here = rendered_both(name)
        assert (tmp_path / f"{name}.svg").read_bytes() == here.svg, name
        assert (tmp_path / f"{name}.png").read_bytes() == here.png, name


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_saved_light_and_dark(name, tmp_path):
    written = plots.save(tmp_path / "some.svg", *PICTURES[name])
    assert [path.name for path in written] == ["some.svg", "some-dark.svg"]
    light, dark = (path.read_bytes() for path in written)
    assert plots.LIGHT.background.encode() in light
    assert plots.DARK.background.encode() in dark
    assert plots.LIGHT.text.encode() not in dark


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_has_a_title_and_its_numbers_in_words(name):
    root = ET.fromstring(rendered(name))
    assert root.get("role") == "img"
    names = (root.get("aria-labelledby") or "").split()
    title, description = (root.find(f"{SVG}{tag}") for tag in ("title", "desc"))
    assert title is not None
    assert description is not None
    assert names == [title.get("id"), description.get("id")]
    assert title.text
    assert len(re.findall(r"\d+", description.text or "")) > 20


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_says_where_its_numbers_come_from(name):
    words = described(rendered(name))
    for part in ("a processor", "Linux 6.1", "dummy, MTU 9216", "governor unknown", "make figures"):
        assert part in words
    rounds = {"ladder": "3 rounds", IN_CPP: "3 rounds", "timeline": "one run"}
    assert rounds.get(name, "7 rounds") in words


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_its_machine_and_its_rounds_and_leaves_the_rest_to_its_description(name):
    shown = " ".join(seen(rendered(name)))
    assert "a processor" in shown
    assert "governor" not in shown
    assert "make figures" not in shown


@pytest.mark.parametrize("name", OF_SAMPLES)
def test_warm_ups_are_not_drawn(name):
    picture, recording = PICTURES[name]
    warm = [
        dataclasses.replace(one, warm_up=True, elapsed_ns=10, round=0, page_faults=10**9)
        for one in recording.samples
    ]
    more = dataclasses.replace(recording, samples=(*warm, *recording.samples))
    assert plots.render(picture, more, plots.LIGHT) == rendered(name)


@pytest.mark.parametrize("name", OF_SAMPLES)
def test_a_recording_in_which_all_failed_is_drawn_and_says_so(name):
    picture, recording = PICTURES[name]
    svg = plots.render(picture, fail(recording), plots.LIGHT)
    assert any("failed" in words for words in seen(svg))
    assert "failed" in described(svg)


@pytest.mark.parametrize("name", sorted(set(PICTURES) - {"history"}))  # it has its rates itself
def test_a_recording_of_something_else_is_refused_in_a_line_that_says_what_to_run(name):
    other = make_sample("tut_2_send", "c", 50.0, implementation="old")
    with pytest.raises(ValueError, match=r"^the recording has no .*: (python -m bench|spead)"):
        plots.render(PICTURES[name][0], Recording(HEADER, (other,)), plots.LIGHT)


@pytest.mark.parametrize("name", [one for one in OF_SAMPLES if one != "lost"])  # it has but one
def test_one_language_is_enough(name):
    picture, recording = PICTURES[name]
    ours = tuple(one for one in recording.samples if one.language == "c")
    svg = plots.render(picture, dataclasses.replace(recording, samples=ours), plots.LIGHT)
    assert "Python " not in described(svg).split("a processor")[0].split("MB/s.", 1)[-1]


@pytest.mark.parametrize("name", PICTURES)
def test_letters_are_large_enough_for_a_telephone(name):
    figure, _, _ = drawing(name)
    assert figure.get_figwidth() <= 7
    for text, _ in drawn_words(figure):
        assert text.get_fontsize() >= 9, text


@pytest.mark.parametrize("name", PICTURES)
def test_no_words_are_cut_off_or_on_top_of_each_other(name):
    check_that_words_can_be_read(drawing(name)[0])


def check_that_words_can_be_read(figure: Any) -> None:
    """All of them are inside the picture, and none is on top of another."""
    inside = [(text.get_text(), box) for text, box in drawn_words(figure)]
    assert len(inside) > 10
    whole = figure.bbox
    for words, box in inside:
        assert whole.x0 <= box.x0, words
        assert box.x1 <= whole.x1, words
        assert whole.y0 <= box.y0, words
        assert box.y1 <= whole.y1, words
    for (one, box), (other, its) in itertools.combinations(inside, 2):
        width = min(box.x1, its.x1) - max(box.x0, its.x0)
        height = min(box.y1, its.y1) - max(box.y0, its.y0)
        assert width <= 1 or height <= 2, (one, other)


# ---------------------------------------------------------------------------------------
# The ladder


def test_the_ladder_says_the_median_of_every_step():
    words = described(rendered("ladder"))
    assert "chapter 6 Bigger packets: Python 6010, C 6010" in words
    assert "Heaps of 8 KiB: chapter 10 Reuse heaps: Python 10010, C 10010" in words


def test_the_ladder_has_a_dot_for_each_language_that_was_measured():
    drawn = rendered(IN_CPP)
    assert "Dots: the rate of each chapter's program, in Python, C and C++" in described(drawn)
    assert "chapter 6 Bigger packets: Python 6010, C 6010, C++ 6010" in described(drawn)
    assert seen(drawn).count(times(1.5)) == len(LANGUAGES)
    assert "C++" in seen(drawn)
    assert "C++" not in seen(rendered("ladder"))


def quoted(name: str) -> str:
    return f"\N{LEFT DOUBLE QUOTATION MARK}{name}\N{RIGHT DOUBLE QUOTATION MARK}"


def test_the_title_of_the_ladder_is_what_its_chapters_gained_that_send_to_the_same_place():
    recording = make_ladder()
    gain = f"{times(2.5)} (Python, C)"
    elsewhere = make_rounds("tut_2_send", "c", [50.0] * 3, kind="loopback")
    later = make_rounds("tut_4_send_constant", "c", [2000.0] * 3, chapter=4)
    aside = make_rounds("tut_16_send_equal_packets", "c", [9000.0] * 3)
    for more, words in (
        ([], f"from chapter 4, {quoted('Measure it')}, to 10: {gain}"),
        (elsewhere, f"from chapter 4, {quoted('Measure it')}, to 10: {gain}"),
        (aside, f"from chapter 4, {quoted('Measure it')}, to 10: {gain}"),
        # It is the last program of chapter 4 that is gone on from.
        (later, f"from chapter 4, {quoted('Constant samples')}, to 10: {times(5.01)} (C)"),
    ):
        _, title, _ = draw(plots.ladder, Recording(HEADER, (*recording.samples, *more)))
        assert title.replace("\N{NO-BREAK SPACE}", " ").startswith(f"1 MiB heaps, {words}.")
    alone = Recording(HEADER, tuple(elsewhere))
    assert "MiB heaps: nothing to compare." in draw(plots.ladder, alone)[1]


def test_the_ladder_says_beside_each_dot_what_its_step_gained():
    words = seen(rendered("ladder"))
    assert words.count(times(1.5)) == 2  # chapter 6, in both languages
    assert words.count(times(1.67)) == 2
    assert not any("GB/s" in one and one[0].isdigit() for one in words)


def test_the_ladder_names_the_steps_that_gain_nothing():
    rates = {4: 1000.0, 6: 2000.0, 8: 2000.0, 10: 2000.0, 11: 3000.0}
    samples = [
        one
        for chapter, rate in rates.items()
        for language in ("python", "c")
        for one in make_rounds(find_chapter(str(chapter)).name, language, around(rate))
    ]
    recording = Recording(HEADER, tuple(samples))
    assert "No difference found in steps 8 to 10 at" in draw(plots.ladder, recording)[1]
    words = seen(plots.render(plots.ladder, recording, plots.LIGHT))
    assert sum(one.startswith("no difference found") for one in words) == 4
    # With one panel there is room for the rates, too.
    assert f"{times(1.5)}, 3 GB/s" in words


def test_a_picture_says_which_chapter_did_not_send_to_the_labs_device():
    other = make_sample("tut_2_send", "c", 50.0, device="lo", kind="loopback")
    samples = (other, *make_ladder().samples)
    words = described(plots.render(plots.ladder, Recording(HEADER, samples), plots.LIGHT))
    assert "dummy, MTU 9216 (chapter 2: loopback)" in words


def test_a_program_that_failed_has_no_bar_but_a_word():
    recording = fail(make_ladder(), lambda one: one.chapter == 6)
    svg = plots.render(plots.ladder, recording, plots.LIGHT)
    assert seen(svg).count("failed: no rate") == 2
    assert "Python failed, C failed" in described(svg)
    assert "6010" not in texts(svg)


def test_a_program_of_which_the_warm_up_failed_has_failed_in_the_ladder():
    recording = make_ladder()
    warm = make_sample("tut_6_send_pktsize", "c", 1.0, warm_up=True, failure="it failed")
    more = Recording(HEADER, (warm, *recording.samples))
    assert "Python 6010, C failed" in described(plots.render(plots.ladder, more, plots.LIGHT))


def test_the_ladder_leaves_out_what_is_not_ours():
    recording = make_ladder()
    others = [
        dataclasses.replace(one, implementation="spead2", elapsed_ns=1) for one in recording.samples
    ]
    more = Recording(HEADER, (*others, *recording.samples))
    words = described(plots.render(plots.ladder, more, plots.LIGHT))
    assert words == described(rendered("ladder"))


def test_below_the_chapters_are_the_peers_best_and_the_bare_loops_of_each_size():
    beside = [
        dataclasses.replace(one, implementation="spead2-source", elapsed_ns=one.elapsed_ns * 2)
        for one in make_ladder().samples
        if one.language == "python" and one.chapter in (6, 10)
    ]
    for variant, rate in (("one thread", 12000), ("one thread, 2 streams", 23000)):
        beside += make_rounds(
            "ceiling", "c", around(rate), implementation="ceiling", variant=variant
        )
    more = Recording(HEADER, (*beside, *make_ladder().samples))
    large, small = described(plots.render(plots.ladder, more, plots.LIGHT)).split("Heaps of 8 KiB")
    assert "its best chapter, 10, in Python: spead2 from source: 5005" in large
    assert "one thread: bare system calls: 12000" in large
    assert "one thread, 2 streams: bare system calls: 23000" in large
    assert "its best chapter, 10" in small
    assert "bare system calls" not in small


def test_ways_are_beside_each_other_in_their_order_with_bare_loops_below():
    words = described(rendered("ways"))
    assert (
        "Heaps of 64 KiB: copied, by the kernel: Python 2000, C 2000;"
        " read in place: Python 3000, C 3000; bare system calls, copied: 4000;"
    ) in words
    assert "filled" not in words


def test_the_title_of_ways_is_what_one_of_them_gained_over_another():
    title = drawing("ways")[1]
    assert title.replace("\N{MULTIPLICATION SIGN}", "x") == (
        "A recording: x1.50 to x1.50 (Python), x1.50 to x1.50 (C). Chapter 15"
    )


# ---------------------------------------------------------------------------------------
# The caption


def test_a_caption_counts_machines_whose_facts_differ():
    same = dataclasses.replace(HEADER, machine=HEADER.machine | {"load": 3.0})
    other = dataclasses.replace(HEADER, machine=HEADER.machine | {"cpu": "another processor"})
    one, two = (
        " ".join(plots.caption(Recording(HEADER, (SAMPLE,), others=(header,))).split())
        for header in (same, other)
    )
    assert "machines" not in one
    assert "2 machines · a processor, 2 cores, another processor, 2 cores" in two


def test_a_caption_says_how_many_rounds_there_were_and_what_the_interval_is():
    few, many = ([dataclasses.replace(SAMPLE, round=n) for n in range(count)] for count in (3, 9))
    other = [dataclasses.replace(one, heap_size=1) for one in few]
    for samples, words in (
        (few, "median of 3 rounds, dots: samples, line: their range"),
        (many, "median of 9 rounds, dots: samples, line: 95 % interval"),
        (many + other, "median of 3 to 9 rounds, dots: samples, line: 95 % interval (range below"),
    ):
        assert words in " ".join(plots.caption(Recording(HEADER, tuple(samples))).split())


def test_no_line_of_a_caption_is_wider_than_the_picture():
    machine = HEADER.machine | {"cpu": "Wide Name (Wonderful) " * 20, "virtualisation": "kvm"}
    versions = HEADER.versions | {"compiler": "GCC: (MNW 12.2.0-14+deb12u1) " * 2}
    header = dataclasses.replace(HEADER, machine=machine, versions=versions, revision="4a8f077e+")
    recording = dataclasses.replace(make_ladder(), header=header)
    assert plots.caption(recording).replace("\n", " ").count("Wide Name") == 20
    figure, _, _ = draw(plots.ladder, recording)
    widest = max(box.x1 for text, box in drawn_words(figure) if "Wide" in text.get_text())
    assert widest <= figure.bbox.x1


# ---------------------------------------------------------------------------------------
# Colours


def luminance(colour: str) -> float:
    """As WCAG 2 defines it."""
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_words_and_lines_stand_out_from_the_background(theme):
    for colour in (theme.text, theme.faint):
        assert contrast(colour, theme.background) >= 4.5
    for colour in theme.colours.values():
        assert contrast(colour, theme.background) >= 3


# How people see who lack one kind of cones: from linear RGB (Machado and others, 2009).
BLINDNESS = {
    "protanopia": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "deuteranopia": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "tritanopia": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
    "none": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
}


def as_lab(colour: str, seen_by: Sequence[Sequence[float]]) -> list[float]:
    """A colour as CIE L*a*b*, as somebody sees it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    r, g, b = (
        min(1.0, max(0.0, sum(k * x for k, x in zip(row, linear, strict=True)))) for row in seen_by
    )
    xyz = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
    )
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz)
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)]


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
@pytest.mark.parametrize("kind", BLINDNESS)
def test_colours_of_lines_differ_for_everybody(theme, kind):
    names = ("python", "c", "cpp", "spead2", "limit")
    seen_as = {name: as_lab(theme.colours[name], BLINDNESS[kind]) for name in names}
    for one, other in itertools.combinations(names, 2):
        pairs = zip(seen_as[one], seen_as[other], strict=True)
        assert sum((a - b) ** 2 for a, b in pairs) ** 0.5 > 20, (one, other)


# ---------------------------------------------------------------------------------------
# Without matplotlib


def test_without_matplotlib_drawing_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(plots.MissingError, match=r"spead-tutorial\[lab\]"):
        plots.render(plots.ladder, make_ladder(), plots.LIGHT)


def test_the_package_does_not_import_matplotlib_by_itself(tmp_path: Path):
    script = "import sys, spead_tutorial.cli; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=tmp_path).returncode == 0

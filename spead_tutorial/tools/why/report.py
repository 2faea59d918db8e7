# SPDX-License-Identifier: BSD-3-Clause
"""A diagnosis as a page of text, as an object for JSON, and as a picture."""

import dataclasses
import textwrap
from typing import TYPE_CHECKING, Any

import msgspec

from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.measure.records import Recording
from spead_tutorial.results.units import number, percent, size
from spead_tutorial.tools.why.facts import Seen, Thread
from spead_tutorial.tools.why.findings import Finding
from spead_tutorial.tools.why.remedies import Gain

if TYPE_CHECKING:
    from spead_tutorial.results.plots.render import Drawn
    from spead_tutorial.results.plots.theme import Theme

#: The chapter that mends what is found.
CHAPTERS = {
    "sleeps": 4,
    "spins": 4,
    "waits-for-lock": 14,
    "waits-for-thread": 5,
    "waits-for-input": 4,
    "waits-for-room": 4,
    "other-calls": 11,
    "slow-data": 4,
    "shared-core": 5,
    "small-packets": 6,
    "fresh-memory": 8,
    "small-heaps": 11,
    "call-per-packet": 11,
    "no-segmentation-offload": 11,
    "fragments": 16,
}
_INDENT = "     "
_FAR = 0.5
_IDLE = 0.1
_WAITED = 0.2  # of the time
_WIDTH = 96
#: What a thread does, and the colour of that, as the theme has it, with its hatch.
_WAITING, _ASLEEP = "waiting for a core", "asleep"
_LOOKS = {
    "in the program": ("preparing", ""),
    "in the kernel": ("sending", "////"),
    _WAITING: ("limit", "...."),
}


# ---- As text ----


def text(seen: Seen, findings: tuple[Finding, ...]) -> str:
    """Write a diagnosis."""
    lines, unseen = [], seen.unseen
    if seen.calls is None:
        lines, unseen = [*_wrapped(" ".join([*unseen[:1], _unranked(seen)])), ""], unseen[1:]
    lines += [f"{seen.program}: {_rate(seen)}", "", *_facts(seen), "", *_threads(seen), ""]
    if not any(finding.kind == "shared-core" for finding in findings):
        lines += _disturbed(seen)
    if not findings:
        lines += [*_wrapped(_nothing(seen)), ""]
    for place, finding in enumerate(findings, 1):
        chapter, explains = CHAPTERS[finding.kind], ""
        title = find_chapter(str(chapter)).title
        if finding.explains is not None:
            share = percent(finding.explains)
            about = "" if share.startswith("<") else "about "
            explains = f" (explains {about}{share} of the distance)"
        lines += [
            *_wrapped(f"{f'{place:>2}.' if seen.calls else '  -'}  {finding.symptom}{explains}"),
            *_wrapped(f"{_INDENT}Check: {finding.check}"),
            *_wrapped(f"{_INDENT}Chapter {chapter}, {title}. {_gained(finding)}"),
            "",
        ]
    lines += [line for sentence in unseen for line in _wrapped(sentence)]
    return "\n".join(lines).rstrip().replace("\N{THIN SPACE}", "")


def _unranked(seen: Seen) -> str:
    """Say what is not known where no calls were seen."""
    idle = ""
    if seen.run.idle >= _IDLE:
        idle = f", though it was idle for {percent(seen.run.idle)} of the time"
    return (
        f"So it is not known whether it sleeps{idle}, nor how many messages it sends in a call."
        " What is found below has no rank, and what explains most may be missing."
    )


def _wrapped(line: str) -> list[str]:
    is_listed = line[0] == " " or line[0].isdigit()
    return textwrap.wrap(
        line,
        _WIDTH,
        subsequent_indent=_INDENT if is_listed else "",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _rate(seen: Seen) -> str:
    rate = f"{number(seen.run.rate / 1e6)} MB/s to {seen.place}"
    if seen.share is None or seen.bare is None:
        return rate
    return (
        f"{rate}\n{percent(seen.share)} of the bare loop's {number(seen.bare.rate / 1e6)} MB/s with"
        " heaps and packets of these sizes"
    )


def _facts(seen: Seen) -> list[str]:
    run, packets, calls = seen.run, seen.packets, seen.calls
    unknown = "unknown"
    rows = [
        ("packets in a message", f"{packets.per_message:.1f}" if packets else unknown),
        ("messages in a call", f"{calls.per_call:.1f} ({', '.join(calls.names)})"
         if calls else unknown),
        ("calls for a heap", _calls_per_heap(seen)),
        ("bytes in a packet", _sizes(seen)),
        ("time", _time(seen)),
        ("page faults for a GB", number(run.per_gb(run.faults)) if run.threads else unknown),
        ("sleeping", f"{calls.sleeps} calls, {number(calls.asked_s * 1e3)} ms in"
         f" {number(calls.seconds * 1e3)} ms under strace" if calls else unknown),
        ("memory traffic", _traffic(seen)),
    ]  # fmt: skip
    return [f"  {name:22} {value}" for name, value in rows]


def _traffic(seen: Seen) -> str:
    found = seen.traffic
    if found is None:
        return "unknown"
    if found.n_bytes is None:
        return f"unknown: {found.why}"
    alone = ", the kernel's not counted" if found.program_only else ""
    return f"{found.n_bytes / seen.run.payload_bytes:.2g} bytes for each that it sends{alone}"


def _calls_per_heap(seen: Seen) -> str:
    packets, calls = seen.packets, seen.calls
    if packets is None or calls is None:
        return "unknown"
    if packets.heap_bytes is None:
        return "these are no SPEAD packets"
    heaps = packets.payload_bytes / packets.heap_bytes
    per_heap = packets.messages / calls.per_call / heaps if calls.per_call else 0.0
    return f"{per_heap:.2g}, of {size(packets.heap_bytes)}"


def _sizes(seen: Seen) -> str:
    packets = seen.packets
    if packets is None:
        return "unknown"
    cut = f"; {packets.fragments} IP fragments" if packets.fragments else ""
    return f"{packets.packet_bytes}, of {seen.largest_packet} that fit{cut}"


def _time(seen: Seen) -> str:
    run = seen.run
    if not run.threads:
        return "unknown: it was over too soon"
    return (
        f"{percent(run.user_s / run.seconds)} in the program,"
        f" {percent((run.cpu_s - run.user_s) / run.seconds)} in the kernel, of a core;"
        f" {percent(run.idle)} idle"
    )


def _threads(seen: Seen) -> list[str]:
    busy = [thread for thread in seen.run.threads if thread.cpu_s >= 0.01 * seen.run.seconds]
    if not busy:
        return []
    head = f"  {'thread':16} {'program':>8} {'kernel':>8} {'no core':>8} {'asleep':>8}  cores"
    return [head, *(_thread(thread, seen.run.seconds) for thread in busy[:8])]


def _disturbed(seen: Seen) -> list[str]:
    """Say that the rate says little, where threads waited for cores that somebody else had."""
    waited = max((thread.runnable_s or 0.0 for thread in seen.run.threads), default=0.0)
    if waited < _WAITED * seen.run.seconds:
        return []
    line = (
        f"A thread waited for a core for {percent(waited / seen.run.seconds)} of the time. If other"
        " programs had it, the rate and the distance say little: measure again on a quiet machine."
    )
    return [*_wrapped(line), ""]


def _thread(thread: Thread, seconds: float) -> str:
    cells = {part: percent(share) for part, share in _shares(thread, seconds).items()}
    if thread.runnable_s is None:
        cells[_WAITING] = "unknown"
    words = "".join(f" {cell:>8}" for cell in cells.values())
    return f"  {thread.name:16}{words}  {_cores(thread.cpus)}"


def _shares(thread: Thread, seconds: float) -> dict[str, float]:
    waited = thread.runnable_s or 0.0
    parts = (thread.user_s / seconds, thread.system_s / seconds, waited / seconds)
    shares = dict(zip(_LOOKS, parts, strict=True))
    return shares | {_ASLEEP: max(0.0, 1 - sum(parts))}


def _cores(cpus: tuple[int, ...]) -> str:
    if len(cpus) > 1 and cpus == tuple(range(cpus[0], cpus[-1] + 1)):
        return f"{cpus[0]}-{cpus[-1]}"
    return ",".join(map(str, cpus))


def _nothing(seen: Seen) -> str:
    if seen.share is not None and seen.share < _FAR:
        return (
            "Nothing found that a chapter mends. A profile says what the CPU time goes into: perf"
            " record, py-spy."
        )
    return "Nothing found." if seen.calls else "Nothing found in what was seen."


def _gained(finding: Finding) -> str:
    gains = [one for one in (finding.gain, *finding.with_others) if one is not None]
    said = [f"{' + '.join(one.remedies)} {_about(one)}" for one in gains]
    return f"Gains of the bare loop here: {', '.join(said)}." if said else ""


def _about(gain: Gain) -> str:
    ends = [f"{end:.1f}" if end < 9.95 else f"{end:.0f}" for end in (gain.low, gain.high)]
    return f"\N{MULTIPLICATION SIGN}{' to '.join(dict.fromkeys(ends))}"


# ---- As an object ----


def as_object(seen: Seen, findings: tuple[Finding, ...]) -> dict[str, Any]:
    """Return a diagnosis for JSON."""
    packets, calls = seen.packets, seen.calls
    made = dataclasses.asdict(seen)
    made["run"] |= {"rate_bytes_per_s": seen.run.rate, "idle": seen.run.idle}
    made["share_of_bare_loop"] = seen.share
    made["packets_per_message"] = packets.per_message if packets else None
    made["messages_per_call"] = calls.per_call if calls else None
    made["page_faults_per_gb"] = seen.run.per_gb(seen.run.faults)
    made["findings"] = [
        dataclasses.asdict(finding) | {"chapter": CHAPTERS[finding.kind]} for finding in findings
    ]
    return made


def seen_of(made: dict[str, Any]) -> Seen:
    """Return what was seen of a sender, from the object that `as_object` made of it."""
    return msgspec.convert(made, Seen)


# ---- As a picture ----

_MOST_THREADS = 12
#: Inches from thread to thread, and of a bar; and beside the panel.
_PITCH, _BAR = 0.34, 0.22
_SIDES, _NARROW_SIDES = (1.7, 0.3), (1.2, 0.2)


def picture(recording: Recording, theme: "Theme", *, seen: Seen) -> "Drawn":
    """Draw what the threads of a sender did, as shares of the time."""
    from matplotlib.patches import Patch  # here, as no other command should wait for it

    from spead_tutorial.results.plots import bars, facts, sheet
    from spead_tutorial.results.plots.render import say

    asleep: dict[str, Any] = {"facecolor": "none", "edgecolor": theme.faint, "linewidth": 0.8}
    looks = {part: bars.part_look(look, theme) | {"linewidth": 0} for part, look in _LOOKS.items()}
    looks[_ASLEEP] = asleep
    threads = [thread for thread in seen.run.threads if thread.cpu_s > 0][:_MOST_THREADS]
    drawn = sheet.Sheet(
        theme,
        f"{seen.program}: {number(seen.run.rate / 1e6)} MB/s",
        [(0.1, _PITCH * max(1, len(threads)))],
        facts.caption(recording, f"one run of {number(seen.run.seconds)} s"),
        subtitle="What its threads did while it sent",
        legend=[*bars.part_legend(_LOOKS, theme), Patch(label=_ASLEEP, **asleep)],
        columns=2,
    )
    axis = drawn.axes(0, *(_NARROW_SIDES if theme.is_narrow else _SIDES))
    axis.set_ylim(max(1, len(threads)) - 0.5, -0.5)
    axis.set_xlim(0, 100)
    axis.grid(axis="x")
    axis.set_axisbelow(True)
    names = [f"{thread.name} ({thread.tid})" for thread in threads]
    for y, (name, thread) in enumerate(zip(names, threads, strict=True)):
        left, shares = 0.0, _shares(thread, seen.run.seconds)
        say(axis, name, ", ".join(f"{part} {percent(one)}" for part, one in shares.items()))
        for part, share in shares.items():
            width = min(100 * share, 100 - left)
            axis.barh(y, width, _BAR / _PITCH, left, **looks[part])
            left += width
    axis.set_yticks(range(len(threads)), names)
    axis.tick_params(axis="y", length=0)
    axis.set_xlabel("share of the time, %")
    return drawn.drawn(
        "Bars: what each thread did, as shares of the time in which the sender sent."
    )

# SPDX-License-Identifier: BSD-3-Clause
"""The pictures: which there are, and from which record each is drawn."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.sweeps import ALONE, MIB, PEER_FROM_SOURCE, TURNS
from spead_tutorial.chapters.catalogue import MEASURED, find_chapter
from spead_tutorial.measure.baselines import PEER
from spead_tutorial.measure.records import OURS, RecordError, Series, joined, read
from spead_tutorial.results import plots
from spead_tutorial.results.plots import Draw
from spead_tutorial.results.plots.theme import NAMES

__all__ = ["FIGURES", "PICTURES", "RESULTS", "Picture", "draw"]

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
FIGURES = ROOT / "docs" / "figures"


@dataclasses.dataclass(frozen=True, slots=True)
class Picture:
    """One picture."""

    name: str  # file name
    sweep: str  # from which sweep's record
    draw: Draw  # what draws it


# ---------------------------------------------------------------------------------------
# Rates over sizes

#: A program, its variant, and what a picture calls it.
Step = tuple[str, str, str]

_EIGHT, _TEN, _ELEVEN, _THIRTEEN, _FOURTEEN, _FIFTEEN, _SIXTEEN = (
    find_chapter(number).name for number in ("8", "10", "11", "13", "14", "15", "16")
)
_EACH, _CHUNKS = ALONE
_TWO_HEAPS: Step = (_EIGHT, "", "two heaps in flight")
_MORE_HEAPS: Step = ("tut_10_send_more_heaps", "", "1 MiB in flight")
_A_CALL: Step = (_TEN, "", "a call for each heap")
_RECEIVED = "payload received, MB/s"

#: The lines of the peer.
Peers = tuple[tuple[Series, str], ...]


def _peers(program: str, note: str = "", variant: str = "") -> Peers:
    """Return the peer's lines of a program: in C++, and its best build for Python that there is."""
    made = (
        (PEER_FROM_SOURCE, "cpp", "spead2 in C++"),
        (PEER_FROM_SOURCE, "python", "spead2 from source"),
        (PEER, "python", "spead2 from PyPI"),
    )
    return tuple(
        (Series(build, language, program, variant), f"{name}{note}")
        for build, language, name in made
    )


def _sweep(
    sweep: str,
    title: str,
    subtitle: str,
    *steps: Step,
    before: Step,
    bare: str | None = "two threads",
    **more: Any,
) -> plots.Sweep:
    """Make what draws rates over sizes: those of steps, and of what was before."""

    def line(step: Step, language: str) -> Series:
        return Series(OURS, language, *step[:2])

    return plots.Sweep(
        title,
        tuple(
            (line(step, language), ": ".join(filter(None, (NAMES[language], step[2]))))
            for step in reversed(steps)
            for language in MEASURED
        ),
        sweep,
        bare=Series("ceiling", "c", "ceiling", bare) if bare else None,
        before=tuple(
            (line(before, language), line(step, language))
            for step in steps
            for language in MEASURED
        ),
        gained=before[2],
        subtitle=subtitle,
        **more,
    )


def _rates(name: str, sweep: str, *args: Any, **more: Any) -> Picture:
    """Make a picture of rates over sizes, with the gain below."""
    return Picture(f"{name}.svg", sweep, _sweep(sweep, *args, **more))


def _pair(
    name: str,
    sweep: str,
    title: str,
    subtitle: str,
    title_after: str,
    subtitle_after: str,
    *steps: Step,
    peers: tuple[Peers, Peers] = ((), ()),
    **more: Any,
) -> tuple[Picture, Picture]:
    """Make two pictures in one frame: of what was before, and of that and what steps made of it."""
    more_before, more_after = (more | {"peers": lines} for lines in peers)
    before = _sweep(sweep, title, subtitle, *steps, part="before", **more_before)
    after = _sweep(sweep, title_after, subtitle_after, *steps, part="after", **more_after)
    return (
        Picture(f"{name}-before.svg", sweep, dataclasses.replace(before, beside=after)),
        Picture(f"{name}-after.svg", sweep, dataclasses.replace(after, beside=before)),
    )


# ---------------------------------------------------------------------------------------
# The pictures

PICTURES = (
    Picture("tut-ladder.svg", "ladder", plots.ladder),
    Picture("tut-5-send-pipeline.svg", "tut-5", plots.pipeline),
    Picture("tut-5-send-pipeline-timeline.svg", "tut-5", plots.timeline),
    Picture("tut-5-packet-spacing.svg", "spacing", plots.spacing),
    Picture("tut-6-send-pktsize.svg", "tut-6", plots.packet_sizes),
    Picture("tut-6-send-pktsize-loopback.svg", "tut-6-loopback", plots.loopback),
    *_pair(
        "tut-8-send-reuse-memory",
        "tut-8",
        "New memory: {64 MiB} MB/s at 64 MiB",
        "Chapter 8, before: new memory for every heap",
        "Memory used again: {64 MiB} at 64 MiB",
        "Chapter 8, after: two buffers in turn",
        (_EIGHT, "", "memory used again"),
        before=("tut_8_send_heap_size", "", "new memory"),
        bare=None,
    ),
    Picture("tut-8-send-reuse-memory-causes.svg", "tut-8", plots.causes),
    *_pair(
        "tut-10-send-reuse-heaps",
        "tut-10",
        "Two heaps in flight: {8 KiB} MB/s at 8 KiB",
        "Chapter 10, before: chapter 8's program",
        "1 MiB in flight, built once: {8 KiB} at 8 KiB",
        "Chapter 10, after: also {64 KiB} at 64 KiB",
        _MORE_HEAPS,
        (_TEN, "", "1 MiB, built once"),
        before=_TWO_HEAPS,
        peers=(_peers(_EIGHT), _peers(_TEN)),
    ),
    *_pair(
        "tut-11-send-batch-heaps",
        "tut-11",
        "A call for each heap: {8 KiB} MB/s at 8 KiB",
        "Chapter 11, before: chapter 10's program",
        "A call for a batch: {8 KiB} at 8 KiB",
        "Chapter 11, after: also {64 KiB} at 64 KiB",
        (_ELEVEN, "", "a call for a batch"),
        before=_A_CALL,
        peers=(_peers(_TEN), _peers(_ELEVEN)),
        largest=MIB,
    ),
    *_pair(
        "tut-13-send-hot",
        "targets",
        "Two threads: {8 KiB} MB/s at 8 KiB",
        "Chapter 13, before: one thread fills, another sends",
        "One thread for two: {8 KiB} at 8 KiB",
        "Chapter 13, after: also {16 MiB} at 16 MiB",
        (_THIRTEEN, "", "one thread"),
        before=(_ELEVEN, "", "two threads"),
        bare="one thread",
        peers=(_peers(_ELEVEN, ", two threads"),) * 2,
    ),
    _rates(
        "tut-14-send-many-streams",
        "targets",
        "Two streams for one: {most}",
        "Chapter 14: a stream for each of two cores, after chapter 13's one",
        (_FOURTEEN, "2 streams", "two streams"),
        before=(_THIRTEEN, "", "one stream"),
        bare="one thread, 2 streams",
        peers=_peers(_FOURTEEN, ", two streams", "2 streams"),
    ),
    _rates(
        "tut-15-send-zero-copy",
        "tut-15",
        "Read in place: {16 MiB} at 16 MiB",
        "Chapter 15: a recording in huge pages, read in place and not copied",
        (_FIFTEEN, "", "read in place"),
        before=(_FIFTEEN, "copy", "copied"),
        bare="one thread, no fill, zero-copy, huge pages",
    ),
    *_pair(
        "tut-16-send-equal-packets",
        "tut-16",
        "Unequal packets: {16 KiB} MB/s at 16 KiB",
        "Chapter 16, before: full packets, and one with the rest",
        "Equal packets: {16 KiB} at 16 KiB",
        "Chapter 16, after: all packets of a heap have one size",
        (_SIXTEEN, "", "equal packets"),
        before=(_THIRTEEN, "", "unequal packets"),
        bare="one thread",
    ),
    *_pair(
        "tut-9-recv-memory-pool",
        "receive-pool",
        "New memory: {64 MiB} MB/s at 64 MiB",
        "Chapter 9, before: receivers that empty a full socket",
        "A memory pool: {64 MiB} at 64 MiB",
        "Chapter 9, after: receivers that empty a full socket",
        ("receive", TURNS, "a pool"),
        before=("receive", joined("no pool", TURNS), "new memory"),
        bare=None,
        rate=_RECEIVED,
    ),
    Picture("ceiling.svg", "ceiling", plots.ceiling),
    Picture("where-the-time-goes.svg", "where", plots.where),
    Picture("receive.svg", "receive", plots.receiving),
    Picture("receivers-ladder.svg", "receive-lossless", plots.receivers_ladder),
    Picture("tut-7-recv-power-loss.svg", "receive-lossless", plots.loss),
    Picture("tut-7-recv-power-lost.svg", "receive-lost", plots.lost),
    *_pair(
        "tut-12-recv-chunks",
        "tut-12",
        "Heap by heap: {1 KiB} MB/s at 1 KiB",
        "Chapter 12, before: receivers that empty a full socket",
        "In chunks: {1 KiB} at 1 KiB",
        "Chapter 12, after: also {1 MiB} at 1 MiB",
        (_CHUNKS, TURNS, "in chunks"),
        before=(_EACH, TURNS, "heap by heap"),
        bare=None,
        peers=(_peers(_EACH, "", TURNS)[1:2], _peers(_CHUNKS, "", TURNS)[1:2]),
        rate=_RECEIVED,
    ),
    Picture("tut-17-recv-hot.svg", "tut-17", plots.lost),
    _rates(
        "tut-18-recv-many-sockets",
        "tut-18",
        "Two sockets: {1 MiB} at 1 MiB",
        "Chapter 18: receivers that empty full sockets; also {64 KiB} at 64 KiB",
        ("tut_18_recv_many_sockets", joined(TURNS, "2 streams"), "two sockets"),
        before=("tut_18_recv_many_sockets", joined(TURNS, "1 stream"), "one socket"),
        bare=None,
        rate=_RECEIVED,
    ),
)


def draw(source: Path, output: Path, sweeps: Iterable[str] = ()) -> tuple[list[Path], list[str]]:
    """Draw the pictures of a folder's records."""
    wanted = tuple(sweeps)
    drawn: list[Path] = []
    problems: list[str] = []
    output.mkdir(parents=True, exist_ok=True)
    for picture in PICTURES:
        record = source / f"{picture.sweep}.jsonl"
        if (wanted and picture.sweep not in wanted) or not record.exists():
            continue
        try:
            name, recording = output / picture.name, read(record)
            name.write_bytes(plots.render(picture.draw, recording, plots.LIGHT))
            drawn.append(name)
        except (RecordError, ValueError, plots.MissingError) as error:
            problems.append(f"{picture.name}: {error}")
    return drawn, problems

# SPDX-License-Identifier: BSD-3-Clause
"""The pictures: which there are, and from which record each is drawn."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from bench.sweeps import ALONE, MIB, PEER, PEER_FROM_SOURCE, TURNS
from spead_tutorial import plots
from spead_tutorial.catalogue import find_chapter
from spead_tutorial.plots import Draw
from spead_tutorial.records import OURS, RecordError, Series, joined, read

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
# The pictures

_BARE = Series("ceiling", "c", "ceiling", "two threads")
_EIGHT, _TEN, _ELEVEN, _THIRTEEN, _FOURTEEN, _SIXTEEN = (
    find_chapter(number).name for number in ("8", "10", "11", "13", "14", "16")
)
_MORE_HEAPS, _LIST = "tut_10_send_more_heaps", "tut_11_send_list_of_heaps"
_UP_TO_1_MIB = "heaps up to 1 MiB"
_NAMES = {"python": "Python", "c": "C"}


def _peers(program: str, note: str = "") -> tuple[tuple[Series, str], ...]:
    """Return the peer's lines of a program: its best build, or else what there is."""
    return (
        (Series(PEER_FROM_SOURCE, "python", program), f"spead2 from source{note}"),
        (Series(PEER, "python", program), f"spead2 from PyPI{note}"),
    )


def _before(
    title: str, sweep: str, subtitle: str, program: str, largest: int | None = None
) -> Draw:
    """Make a picture of what there was before: a program's rates, and what they could be."""
    ours = tuple((Series(OURS, language, program), name) for language, name in _NAMES.items())
    return plots.Sweep(
        title,
        ours,
        sweep,
        bare=_BARE,
        peers=_peers(program),
        subtitle=subtitle,
        largest=largest,
    )


def _compared(
    title: str,
    sweep: str,
    subtitle: str,
    before: tuple[str, str],
    *steps: tuple[str, str],
    bare: str = "two threads",
    variant: str = "",
    peers: tuple[tuple[Series, str], ...] = (),
    largest: int | None = None,
) -> Draw:
    """Make a picture of what was before, and of the steps from there on, the last one first.

    Each is a program, and what it is called; a variant is the last step's.
    """
    lines = [
        [
            (
                Series(OURS, language, program, variant * (program == steps[-1][0])),
                f"{name}: {words}",
            )
            for language, name in _NAMES.items()
        ]
        for program, words in steps
    ]
    pairs = tuple(
        (Series(OURS, after.language, before[0]), after) for step in lines for after, _ in step
    )
    return plots.Sweep(
        title,
        tuple(line for step in reversed(lines) for line in step),
        sweep,
        bare=Series("ceiling", "c", "ceiling", bare),
        before=pairs,
        gained=before[1],
        peers=peers,
        subtitle=subtitle,
        largest=largest,
    )


#: Receivers alone, whose socket was filled while they were stopped.
_POOLED = tuple(Series(OURS, language, "receive", TURNS) for language in _NAMES)


def _new_memory(one: Series) -> Series:
    return dataclasses.replace(one, variant=joined("no pool", one.variant))


def _chunks() -> Draw:
    """Make the picture of heaps that are received one by one, and in chunks."""

    def line(implementation: str, language: str, program: str) -> Series:
        return Series(implementation, language, program, TURNS)

    each, chunks = ALONE
    return plots.Sweep(
        "Chunks: {1 KiB} at 1 KiB, {1 MiB} at 1 MiB",
        tuple(
            (line(OURS, language, program), f"{name}: {words}")
            for program, words in ((chunks, "in chunks"), (each, "one by one"))
            for language, name in _NAMES.items()
        ),
        "tut-12",
        before=tuple(
            (line(OURS, language, each), line(OURS, language, chunks)) for language in _NAMES
        ),
        gained="one by one",
        peers=((line(PEER_FROM_SOURCE, "python", chunks), "spead2 from source: in chunks"),),
        rate="payload received, MB/s",
        subtitle="Chapter 12: a receiver alone, which empties a socket that was filled before",
    )


PICTURES = (
    Picture("tut-ladder.svg", "ladder", plots.ladder),
    Picture("tut-5-send-pipeline.svg", "tut-5", plots.pipeline),
    Picture("tut-5-send-pipeline-timeline.svg", "tut-5", plots.timeline),
    Picture("tut-5-packet-spacing.svg", "spacing", plots.spacing),
    Picture("tut-6-send-pktsize.svg", "tut-6", plots.packet_sizes),
    Picture("tut-6-send-pktsize-loopback.svg", "tut-6-loopback", plots.loopback),
    Picture("tut-8-send-reuse-memory.svg", "tut-8", plots.memory),
    Picture("tut-8-send-reuse-memory-causes.svg", "tut-8", plots.causes),
    Picture(
        "tut-10-send-reuse-heaps-before.svg",
        "tut-10",
        _before(
            "Two heaps in flight: {8 KiB} of the bare calls at 8 KiB",
            "tut-10",
            "Chapter 10, before: chapter 8's program",
            _EIGHT,
        ),
    ),
    Picture(
        "tut-10-send-reuse-heaps-pipeline.svg",
        "tut-10",
        _compared(
            "1 MiB in flight: {8 KiB} at 8 KiB, {64 KiB} at 64 KiB",
            "tut-10",
            "Chapter 10, the first step: more heaps in flight than two",
            (_EIGHT, "two heaps in flight"),
            (_MORE_HEAPS, "1 MiB in flight"),
            peers=_peers(_TEN, ", chapter 10"),
        ),
    ),
    Picture(
        "tut-10-send-reuse-heaps-after.svg",
        "tut-10",
        _compared(
            "Both remedies: {8 KiB} at 8 KiB, {64 KiB} at 64 KiB",
            "tut-10",
            "Chapter 10, after: 1 MiB in flight, and heaps that are built once",
            (_EIGHT, "two heaps in flight"),
            (_MORE_HEAPS, "1 MiB in flight"),
            (_TEN, "heaps built once, too"),
            peers=_peers(_TEN),
        ),
    ),
    Picture(
        "tut-11-send-batch-heaps-before.svg",
        "tut-11",
        _before(
            "A call for each heap: {8 KiB} of the bare calls at 8 KiB",
            "tut-11",
            f"Chapter 11, before: chapter 10's program, {_UP_TO_1_MIB}",
            _TEN,
            MIB,
        ),
    ),
    Picture(
        "tut-11-send-batch-heaps-list.svg",
        "tut-11",
        _compared(
            "A list of heaps: {8 KiB} at 8 KiB",
            "tut-11",
            f"Chapter 11, the first step: one call for a batch, {_UP_TO_1_MIB}",
            (_TEN, "a call for each heap"),
            (_LIST, "a list of heaps"),
            peers=_peers(_ELEVEN, ", chapter 11"),
            largest=MIB,
        ),
    ),
    Picture(
        "tut-11-send-batch-heaps-after.svg",
        "tut-11",
        _compared(
            "Batches of heaps: {8 KiB} at 8 KiB, {64 KiB} at 64 KiB",
            "tut-11",
            f"Chapter 11, after: a HeapReferenceList, {_UP_TO_1_MIB}",
            (_TEN, "a call for each heap"),
            (_LIST, "a list of heaps"),
            (_ELEVEN, "a list made once"),
            peers=_peers(_ELEVEN),
            largest=MIB,
        ),
    ),
    Picture(
        "tut-13-send-hot.svg",
        "targets",
        _compared(
            "One thread for two: {16 MiB} at 16 MiB, {64 MiB} at 64 MiB",
            "targets",
            "Chapter 13: a thread that fills and sends, after chapter 11's two",
            (_ELEVEN, "two threads"),
            (_THIRTEEN, "one thread"),
            bare="one thread",
            peers=_peers(_ELEVEN, ", two threads"),
        ),
    ),
    Picture(
        "tut-14-send-many-streams.svg",
        "targets",
        _compared(
            "Two streams for one: {most}",
            "targets",
            "Chapter 14: a stream for each of two cores, after chapter 13's one",
            (_THIRTEEN, "one stream"),
            (_FOURTEEN, "two streams"),
            bare="one thread, 2 streams",
            variant="2 streams",
            peers=_peers(_ELEVEN, ", one stream"),
        ),
    ),
    Picture(
        "tut-15-send-zero-copy.svg",
        "tut-15",
        plots.Ways(
            "Read in place out of huge pages, not copied: {most}",
            find_chapter("15").name,
            (
                ("copy", "copied", "out of huge pages"),
                ("", "read in place", "out of huge pages"),
                ("small pages", "read in place", "out of ordinary pages"),
                ("copy, fill", "copied", "written anew before"),
                ("fill", "read in place", "written anew before"),
            ),
            (
                ("one thread, no fill", "copied, few heaps again and again"),
                ("one thread, no fill, zero-copy, huge pages", "in place, out of huge pages"),
            ),
            "tut-15",
            compared=("copy", ""),
            subtitle="Chapter 15: a recording, and samples that are written anew before",
        ),
    ),
    Picture(
        "tut-16-send-equal-packets.svg",
        "tut-16",
        _compared(
            "Equal packets: {16 KiB} at 16 KiB",
            "tut-16",
            "Chapter 16: packets of 9000 bytes at most, after chapter 13",
            (_THIRTEEN, "unequal packets"),
            (_SIXTEEN, "equal packets"),
            bare="one thread",
        ),
    ),
    Picture(
        "tut-9-recv-memory-pool.svg",
        "receive-pool",
        plots.Sweep(
            "A pool of memory: {64 MiB} at 64 MiB",
            tuple((one, f"{_NAMES[one.language]}: a pool") for one in _POOLED),
            "receive-pool",
            before=tuple((_new_memory(one), one) for one in _POOLED),
            gained="new memory",
            subtitle="Chapter 9: receivers that empty a full socket",
            rate="payload received, MB/s",
        ),
    ),
    Picture("ceiling.svg", "ceiling", plots.ceiling),
    Picture("where-the-time-goes.svg", "where", plots.where),
    Picture("receive.svg", "receive", plots.receiving),
    Picture("receivers-ladder.svg", "receive-lossless", plots.receivers_ladder),
    Picture("tut-7-recv-power-loss.svg", "receive-lossless", plots.loss),
    Picture("tut-7-recv-power-lost.svg", "receive-lost", plots.lost),
    Picture("tut-12-recv-chunks.svg", "tut-12", _chunks()),
)


def draw(
    source: Path, output: Path, sweeps: Iterable[str] = (), *, dark: bool = False
) -> tuple[list[Path], list[str]]:
    """Draw the pictures of a folder's records; if asked, in the colours of a dark page, too."""
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
            if dark:
                drawn += plots.save(name, picture.draw, recording)
            else:
                name.write_bytes(plots.render(picture.draw, recording, plots.LIGHT))
                drawn.append(name)
        except (RecordError, ValueError, plots.MissingError) as error:
            problems.append(f"{picture.name}: {error}")
    return drawn, problems

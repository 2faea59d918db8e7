# SPDX-License-Identifier: BSD-3-Clause
"""The pictures: which there are, and from which record each is drawn."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from bench.sweeps import PEER, PEER_FROM_SOURCE
from spead_tutorial import plots
from spead_tutorial.catalogue import LANGUAGES, find_chapter
from spead_tutorial.plots import Draw
from spead_tutorial.records import OURS, RecordError, Series, read

__all__ = ["FIGURES", "PICTURES", "RESULTS", "Picture", "draw"]

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
FIGURES = ROOT / "docs" / "figures"


@dataclasses.dataclass(frozen=True, slots=True)
class Picture:
    """One picture.

    Parameters
    ----------
    name : str
        File name of the light one.
    sweep : str
        From which sweep's record.
    draw : function
        What draws it.
    """

    name: str
    sweep: str
    draw: Draw


# ---------------------------------------------------------------------------------------
# The pictures

_BARE = Series("ceiling", "c", "ceiling", "two threads")
_EIGHT, _TEN, _ELEVEN, _THIRTEEN, _FOURTEEN, _SIXTEEN = (
    find_chapter(number).name for number in ("8", "10", "11", "13", "14", "16")
)
_MORE_HEAPS, _LIST = "tut_10_send_more_heaps", "tut_11_send_list_of_heaps"
_NAMES = {"python": "Python", "c": "C"}


def _heap_sizes(sweep: str, title: str, program: str, before: str = "", gained: str = "") -> Draw:
    """Make a picture of a program's rate over heap sizes, and of what it gained."""
    ours = [(Series(OURS, language, program), name) for language, name in _NAMES.items()]
    peers = (
        (Series(PEER, "python", program), "spead2 from PyPI"),
        (Series(PEER_FROM_SOURCE, "python", program), "spead2 from its source"),
    )
    pairs = tuple(
        (Series(OURS, language, before), Series(OURS, language, program))
        for language in LANGUAGES
        if before
    )
    return plots.Sweep(
        title, (*ours, *peers), sweep, bare=_BARE, before=pairs, gained=gained or "before"
    )


def _hot(
    sweep: str, title: str, program: str, before: str, gained: str, bare: str, variant: str = ""
) -> Draw:
    """Make such a picture of programs that the peer has none of: its best one is in it."""
    ours = [(Series(OURS, language, program, variant), name) for language, name in _NAMES.items()]
    peers = ((Series(PEER_FROM_SOURCE, "python", _ELEVEN), "spead2 from its source"),)
    pairs = tuple(
        (Series(OURS, language, before), Series(OURS, language, program, variant))
        for language in LANGUAGES
    )
    loop = Series("ceiling", "c", "ceiling", bare)
    return plots.Sweep(title, (*ours, *peers), sweep, bare=loop, before=pairs, gained=gained)


def _packet_sizes() -> Draw:
    program = find_chapter("6").name
    ours = tuple((Series(OURS, language, program), name) for language, name in _NAMES.items())
    return plots.Sweep("The size of packets", ours, "tut-6", x="packet_size", bare=_BARE)


PICTURES = (
    Picture("tut-ladder.svg", "ladder", plots.ladder),
    Picture("tut-5-send-pipeline.svg", "tut-5", plots.pipeline),
    Picture("tut-5-send-pipeline-timeline.svg", "tut-5", plots.timeline),
    Picture("tut-5-packet-spacing.svg", "spacing", plots.spacing),
    Picture("tut-6-send-pktsize.svg", "tut-6", _packet_sizes()),
    Picture("tut-6-send-pktsize-loopback.svg", "tut-6-loopback", plots.loopback),
    Picture("tut-8-send-reuse-memory.svg", "tut-8", plots.memory),
    Picture("tut-8-send-reuse-memory-causes.svg", "tut-8", plots.causes),
    Picture(
        "tut-10-send-reuse-heaps-before.svg",
        "tut-10",
        _heap_sizes("tut-10", "Chapter 10, before: two heaps in flight", _EIGHT),
    ),
    Picture(
        "tut-10-send-reuse-heaps-pipeline.svg",
        "tut-10",
        _heap_sizes(
            "tut-10",
            "Chapter 10, on the way: 1 MiB in flight",
            _MORE_HEAPS,
            _EIGHT,
            "two heaps in flight",
        ),
    ),
    Picture(
        "tut-10-send-reuse-heaps-after.svg",
        "tut-10",
        _heap_sizes(
            "tut-10",
            "Chapter 10, after: heaps built once",
            _TEN,
            _EIGHT,
            "two heaps in flight",
        ),
    ),
    Picture(
        "tut-11-send-batch-heaps-before.svg",
        "tut-11",
        _heap_sizes("tut-11", "Chapter 11, before: a call for each heap", _TEN),
    ),
    Picture(
        "tut-11-send-batch-heaps-list.svg",
        "tut-11",
        _heap_sizes(
            "tut-11",
            "Chapter 11, on the way: a list of heaps",
            _LIST,
            _TEN,
            "a call for each heap",
        ),
    ),
    Picture(
        "tut-11-send-batch-heaps-after.svg",
        "tut-11",
        _heap_sizes(
            "tut-11",
            "Chapter 11, after: a HeapReferenceList",
            _ELEVEN,
            _TEN,
            "a call for each heap",
        ),
    ),
    Picture(
        "tut-13-send-hot.svg",
        "targets",
        _hot(
            "targets",
            "Chapter 13: one thread that fills and sends",
            _THIRTEEN,
            _ELEVEN,
            "two threads",
            "one thread",
        ),
    ),
    Picture(
        "tut-14-send-many-streams.svg",
        "targets",
        _hot(
            "targets",
            "Chapter 14: two streams, a core each",
            _FOURTEEN,
            _THIRTEEN,
            "one stream",
            "one thread, 2 streams",
            "2 streams",
        ),
    ),
    Picture(
        "tut-15-send-zero-copy.svg",
        "tut-15",
        plots.Ways(
            "Chapter 15: a recording, copied and read in place",
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
        ),
    ),
    Picture(
        "tut-16-send-equal-packets.svg",
        "tut-16",
        _hot(
            "tut-16",
            "Chapter 16: equal packets of 9000 bytes at most",
            _SIXTEEN,
            _THIRTEEN,
            "unequal packets",
            "one thread",
        ),
    ),
    Picture("where-the-time-goes.svg", "where", plots.where),
)


def draw(source: Path, output: Path, sweeps: Iterable[str] = ()) -> tuple[list[Path], list[str]]:
    """Draw the pictures of a folder's records.

    Parameters
    ----------
    source : path
        Folder with the records; sweeps without one have no pictures.
    output : path
        Folder for the pictures.
    sweeps : iterable of str
        Which; all by default.

    Returns
    -------
    tuple
        The files that were drawn, and a line for each picture that could not be.
    """
    wanted = tuple(sweeps)
    drawn: list[Path] = []
    problems: list[str] = []
    output.mkdir(parents=True, exist_ok=True)
    for picture in PICTURES:
        record = source / f"{picture.sweep}.jsonl"
        if (wanted and picture.sweep not in wanted) or not record.exists():
            continue
        try:
            drawn += plots.save(output / picture.name, picture.draw, read(record))
        except (RecordError, ValueError, plots.MissingError) as error:
            problems.append(f"{picture.name}: {error}")
    return drawn, problems

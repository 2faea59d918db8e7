# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 6: the rate over the size of packets, those that travel whole and those in fragments."""

from collections.abc import Mapping, Sequence

from spead_tutorial.chapters.catalogue import NAMES, find_chapter
from spead_tutorial.measure.records import Recording, Series
from spead_tutorial.results.plots import curves, facts
from spead_tutorial.results.plots.picture import PACKET, Line, Picture

_CHAPTER = find_chapter("6")
#: The packets before this chapter, and its own: the title holds them against each other.
_SMALL, _LARGE = find_chapter("5").packet_size, _CHAPTER.packet_size
#: Bytes of headers that the MTU counts; and what the size of a packet is a multiple of.
_IP_AND_UDP, _UNIT = 28, 8
_LIMIT = Series("ceiling", "c", "ceiling", "two threads")

_Points = Mapping[int, facts.Point]


def packet_sizes(recording: Recording) -> Picture:
    """Show chapter 6's rate over the size of packets, with a line where the MTU parts them."""
    # Where one asks for other sizes, what is sent is cut.
    known = {
        series: {x - x % _UNIT: point for x, point in points.items()}
        for series, points in facts.points(recording.samples, "packet_size").items()
    }
    ours = facts.by_language(known, _CHAPTER.name)
    facts.require(ours, "tut-6", _CHAPTER.name)
    found = {NAMES[language]: (language, points) for language, points in ours.items()}
    found |= {"bare calls": ("limit", known[_LIMIT])} if _LIMIT in known else {}
    sizes = sorted({x for _, points in found.values() for x in points})
    most = facts.highest(point for _, points in found.values() for point in points.values())
    scale = curves.steps(sizes, "size of a packet in bytes")
    mtu: int | None = recording.header.lab.get("mtu")
    cut = [x for x in sizes if mtu is not None and x > mtu - _IP_AND_UDP]
    words = f"above the MTU of\n{mtu}: fragments"
    begin = {scale.place(cut[0]) - 0.5: words} if cut and cut != sizes else {}
    lines = [
        curves.Curve(Line(name, role, over=PACKET), points)
        for name, (role, points) in found.items()
    ]
    title, subtitle = _words(ours, cut)
    return Picture(
        title,
        subtitle,
        [[curves.Curves("payload sent in MB/s", lines, scale, most, 2.8, uprights=begin)]],
        "Lines: the rate in MB/s against the size of a packet.",
        facts.caption(recording, curves.SHOWN),
    )


def _words(ours: Mapping[str, _Points], cut: Sequence[int]) -> tuple[str, str]:
    """Say what larger packets gain, and what those lose that do not travel whole."""

    def told(before: int, after: int) -> str:
        return facts.told(
            {
                language: facts.gain(points.get(before), points.get(after))
                for language, points in ours.items()
            }
        )

    said = told(_SMALL, _LARGE)
    subtitle = f"Chapter 6, compared with packets of {_SMALL} bytes"
    if not said:
        return f"Packets of other sizes make {facts.NO_DIFFERENCE}", subtitle
    if cut and (fragmented := told(_LARGE, cut[0])):
        subtitle += f"; compared with {_LARGE}, fragments are {fragmented}"
    return f"Packets of {_LARGE} bytes are {said}", subtitle

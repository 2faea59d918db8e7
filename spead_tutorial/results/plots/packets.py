# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 6: the rate over the size of packets, those that travel whole and those in fragments."""

from collections.abc import Mapping

from spead_tutorial.chapters.catalogue import MEASURED, find_chapter
from spead_tutorial.measure.records import OURS, Recording, Series
from spead_tutorial.results.plots import curves, facts
from spead_tutorial.results.plots.picture import PACKET, Line, Picture
from spead_tutorial.results.plots.theme import NAMES, role_of

_CHAPTER = find_chapter("6")
_OURS = {Series(OURS, language, _CHAPTER.name): NAMES[language] for language in MEASURED}
_ALL = _OURS | {Series("ceiling", "c", "ceiling", "two threads"): "bare calls"}
#: The packets before this chapter, and its own: the title holds them against each other.
_SMALL, _LARGE = find_chapter("5").packet_size, _CHAPTER.packet_size
#: Bytes of headers that the MTU counts; and what the size of a packet is a multiple of.
_IP_AND_UDP, _UNIT = 28, 8

_Found = Mapping[Series, Mapping[int, facts.Point]]


def packet_sizes(recording: Recording) -> Picture:
    """Show chapter 6's rate over the size of packets, with a line where the MTU parts them."""
    found = _found(recording)
    every = [point for points in found.values() for point in points.values()]
    sizes = sorted({x for points in found.values() for x in points})
    scale = curves.steps(sizes, "size of a packet in bytes")
    mtu = _mtu(recording)
    cut = [x for x in sizes if mtu is not None and x > mtu - _IP_AND_UDP]
    fragments = cut[0] if cut and cut != sizes else None
    words = f"above the MTU of\n{mtu}: fragments"
    begin = {scale.place(fragments) - 0.5: words} if fragments else {}
    lines = [
        curves.curve(Line(name, role_of(series), over=PACKET), found[series])
        for series, name in _ALL.items()
        if series in found
    ]
    title, subtitle = _words(found, cut[0] if cut else None)
    name, most = "payload sent in MB/s", facts.highest(every)
    return Picture(
        title,
        subtitle,
        [[curves.Curves(name, lines, scale, most, height=2.8, uprights=begin)]],
        "Lines: the rate in MB/s against the size of a packet.",
        facts.caption(recording, curves.SHOWN),
    )


def _found(recording: Recording) -> _Found:
    """Return the series by the sizes that are sent: where one asks for others, they are cut."""
    by_series = facts.points(recording.samples, "packet_size")
    facts.require(by_series.keys() & _OURS.keys(), "tut-6", _CHAPTER.name)
    return {
        series: {x - x % _UNIT: point for x, point in by_series[series].items()}
        for series in _ALL
        if series in by_series
    }


def _mtu(recording: Recording) -> int | None:
    """Return the MTU, where it is known."""
    mtu: int | None = recording.header.lab.get("mtu")
    return mtu


def _words(found: _Found, cut: int | None) -> tuple[str, str]:
    """Say what larger packets gain, and what those lose that do not travel whole."""

    def gained_from(before: int, after: int) -> str:
        gains = {
            series.language: facts.gain(found[series].get(before), found[series].get(after))
            for series in _OURS
            if series in found
        }
        return facts.told(facts.in_languages(gains))

    said = gained_from(_SMALL, _LARGE)
    subtitle = f"Chapter 6, compared with packets of {_SMALL} bytes"
    if not said:
        return f"Packets of other sizes make {facts.NO_DIFFERENCE}", subtitle
    title = f"Packets of {_LARGE} bytes are {said}"
    if cut is not None and (fragmented := gained_from(_LARGE, cut)):
        subtitle += f"; beside {_LARGE}, fragments are {fragmented}"
    return title, subtitle

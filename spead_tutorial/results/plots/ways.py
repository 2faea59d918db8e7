# SPDX-License-Identifier: BSD-3-Clause
"""Bars of ways to send: all bare loops, chapter 6's destinations, chapter 8's memory."""

from collections.abc import Mapping

from spead_tutorial.chapters.catalogue import MEASURED
from spead_tutorial.measure.records import OURS, Recording, Sample, Series, joined
from spead_tutorial.results.plots import bars, facts
from spead_tutorial.results.plots.picture import TIMES, Line, Picture
from spead_tutorial.results.plots.theme import NAMES
from spead_tutorial.results.units import number, size

SENT = "payload sent in MB/s"

# ---- All bare loops ----

#: What the others are held against: chapters 4 to 11 work in this way.
_NAMED = Series("ceiling", "c", "ceiling", "two threads")


def ceiling(recording: Recording) -> Picture:
    """Show the rate of each bare loop, the fastest first, at the heaps where they differ most."""
    points = facts.points(recording.samples)
    found = {series: points[series] for series in points if facts.is_bare(series)}
    facts.require(found, [_NAMED], "ceiling")
    gains = {
        n: {
            series.variant: facts.gain(found[_NAMED].get(n), found[series].get(n))
            for series in found
        }
        for n in found[_NAMED]
    }
    n = facts.strongest(gains)
    loops = sorted(
        (series for series in found if n in found[series]),
        key=lambda series: -found[series][n].median,
    )
    groups = []
    for series in loops:
        name, pale = facts.bare_name(series.variant), series != _NAMED
        groups.append(bars.Group(name, [bars.bar(name, "limit", found[series][n], is_pale=pale)]))
    best = gains[n][loops[0].variant]
    said = best and facts.told({_NAMED.variant: best}, ("faster than", "slower than", "as fast as"))
    most = bars.room(facts.highest(found[series][n] for series in loops), 3.0, 6)
    return Picture(
        f"The best bare loop is {said}" if said else "No bare loop is the fastest",
        f"Heaps of {size(n)}; dark: the loop that chapters 4 to 11 are held against",
        [[bars.Bars("", SENT, groups, most, names=3.6)]],
        "Bars: the rate of each loop in MB/s.",
        facts.caption(recording),
    )


# ---- Chapter 6: loopback with and without a listener against the lab's device ----

_PROGRAM = "tut_6_send_pktsize"
#: Variants, and what they are called; the one without a name sends to the lab's device.
_SITUATIONS = {
    "no listener": "loopback, nobody listens",
    "slow listener": "loopback, a slow listener",
    "listener": "loopback, a listener as fast as it can",
    "": "the lab's device",
}


def loopback(recording: Recording) -> Picture:
    """Show chapter 6's rate in each situation."""
    found = _situations(recording)
    groups = [
        bars.Group(_SITUATIONS[variant], bars.by_language(_SITUATIONS[variant], languages))
        for variant, languages in found.items()
    ]
    points = [point for languages in found.values() for point in languages.values()]
    gains = facts.gain_each(found.get("", {}), found.get("listener", {}))
    said = facts.told(facts.in_languages(gains))
    return Picture(
        f"Loopback with a fast listener, compared with the lab, is {said}"
        if said
        else "Loopback is compared with the lab",
        "Chapter 6: one program, sent to several places",
        [[bars.Bars("", SENT, groups, bars.room(facts.highest(points), 4.2, 14), names=2.4)]],
        "Bars: the rate in MB/s.",
        facts.caption(recording),
    )


def _situations(recording: Recording) -> Mapping[str, dict[str, facts.Point]]:
    """Return the point of each situation and language, of the setting with the most situations."""
    settings: dict[tuple[int, int], list[Sample]] = {}
    for sample in recording.samples:
        ours = sample.implementation == OURS and sample.program == _PROGRAM and not sample.random
        if ours and sample.variant in _SITUATIONS and not sample.warm_up:
            settings.setdefault((sample.heap_size, sample.packet_size), []).append(sample)
    if not settings:
        facts.require({}, [Series(OURS, "python", _PROGRAM)], "tut-6-loopback")
    most = max(
        settings, key=lambda sizes: (len({sample.variant for sample in settings[sizes]}), sizes)
    )
    known = facts.points(settings[most])
    found = {
        variant: {
            language: known[series][most[0]]
            for language in MEASURED
            if (series := Series(OURS, language, _PROGRAM, variant)) in known
        }
        for variant in _SITUATIONS
    }
    return {variant: languages for variant, languages in found.items() if languages}


# ---- Chapter 8: why new memory is slow, one cause at a time ----

_BEFORE, _AFTER = "tut_8_send_heap_size", "tut_8_send_reuse_memory"
_AGAIN = _AFTER, ""
#: Every way to get memory, from top to bottom: what it is called, and a remark.
_MEMORY = {
    (_BEFORE, ""): ("new memory", "the program as it is"),
    (_BEFORE, "small pages"): ("small pages", "nobody asks for others"),
    (_BEFORE, "huge pages"): ("huge pages", "asked for everywhere"),
    (_BEFORE, "memory kept"): ("memory kept", "the allocator returns none"),
    _AGAIN: ("used again", "two buffers in turn"),
}


def causes(recording: Recording) -> Picture:
    """Show rates and page faults of each way to get memory, where most was gained."""
    known = facts.points(recording.samples)
    found: dict[int, dict[tuple[str, str], dict[str, facts.Point]]] = {}
    for source in _MEMORY:
        for language in MEASURED:
            for n, point in known.get(Series(OURS, language, *source), {}).items():
                found.setdefault(n, {}).setdefault(source, {})[language] = point
    if not found:
        facts.require({}, [Series(OURS, "python", _BEFORE)], "tut-8")
    with_variants = {n for n, ways in found.items() if any(variant for _, variant in ways)}
    sizes = {n: found[n] for n in sorted(with_variants or found)}
    gains = {
        n: facts.gain_each(ways.get((_BEFORE, ""), {}), ways.get(_AGAIN, {}))
        for n, ways in sizes.items()
    }
    large = facts.strongest(gains)
    ways, said = sizes[large], facts.told(facts.in_languages(gains[large]))
    points = [point for some in ways.values() for point in some.values()]
    rates, faults = (
        [
            bars.Group(name, bars.by_language(name, ways[source], value, **unit), note)
            for source, (name, note) in _MEMORY.items()
            if source in ways
        ]
        for value, unit in ((facts.rate, {}), (facts.faults, {"unit": "page faults a heap"}))
    )
    most, most_faults = facts.highest(points), facts.highest(points, facts.faults)
    panels = [
        bars.Bars("Rate", SENT, rates, bars.room(most, 2.1, 13)),
        bars.Bars(
            "Page faults", "page faults a heap", faults, bars.room(most_faults, 2.1, 14), number,
            is_first=False,
        ),
    ]  # fmt: skip
    return Picture(
        f"Memory used again makes {size(large)} heaps {said or 'not measurably faster'}",
        f"Chapter 8, other ways to get memory for heaps of {size(large)}",
        [panels],
        "Bars: the rate in MB/s, and page faults for a heap, of each way to get memory.",
        facts.caption(recording),
    )


# ---- Chapter 5: what overlapping gains over sending in turns, with each kind of samples ----

_OVERLAPPED = "tut_5_send_pipeline"
#: Where its samples are of a kind: the program that sends in turns, and the other one's variant.
_KINDS = {
    "Random samples": ("tut_4_send_perf", "random"),
    "Constant samples": ("tut_4_send_constant", ""),
}
#: What variants of a record are called; those of a link have its name.
_CALLED = {"": "free threads", "pinned": "a core each", "one core": "one core for both"}


def pipeline(recording: Recording) -> Picture:
    """Show how many times as fast overlapping is: a panel for a kind of samples."""
    pairs = _pairs(recording)
    found = {
        place: {language: facts.gain(*pair) for language, pair in some.items()}
        for place, some in pairs.items()
    }
    kind, where = facts.strongest(found)
    rows = sorted({one for _, one in pairs}, key=lambda one: (one.startswith("link"), one))
    ends = facts.ends(gain for some in found.values() for gain in some.values()) or [1.0]
    panels: list[bars.Bars] = []
    for one in dict.fromkeys(of for of, _ in found):
        groups = []
        for row in rows:
            its = pairs.get((one, row), {})
            groups.append(bars.Group(_called(row), [
                bars.Bar(
                    Line(f"{one}, {_called(row)}, {NAMES[name]}, gain", name, unit=TIMES),
                    after.samples[0].heap_size,
                    found[one, row][name],
                )
                for name, (_, after) in its.items()
            ]))  # fmt: skip
        most = max(1.3, *ends) * 2
        panels.append(
            bars.Bars(one, "times as fast as in turns", groups, most, _two_digits, names=1.65,
                      is_first=not panels,
                      is_gain=True, least=min(0.8, *ends) / 1.05)
        )  # fmt: skip
    said = facts.told(facts.in_languages(found[kind, where]))
    finding = f"Overlapping makes {kind.lower()} on {_called(where)}"
    return Picture(
        f"{finding} {said}" if said else f"Overlapping makes {facts.NO_DIFFERENCE}",
        "Chapter 5: how many times as fast as in turns",
        [panels],
        "Marks: how many times as fast overlapping is as sending in turns.",
        facts.caption(recording),
    )


def _two_digits(x: float) -> str:
    return f"{x:.2f}"


def _called(where: str) -> str:
    return _CALLED.get(where, where)


def _pairs(
    recording: Recording,
) -> Mapping[tuple[str, str], dict[str, tuple[facts.Point, facts.Point]]]:
    """Return what was in turns and overlapped, by kind and variant, and by language."""
    largest = {
        series: sizes[max(sizes)] for series, sizes in facts.points(recording.samples).items()
    }
    found: dict[tuple[str, str], dict[str, tuple[facts.Point, facts.Point]]] = {}
    for kind, (program, variant) in _KINDS.items():
        for where in sorted({sample.variant for sample in recording.samples}):
            for language in MEASURED:
                before = largest.get(Series(OURS, language, program, where))
                after = largest.get(Series(OURS, language, _OVERLAPPED, joined(variant, where)))
                if before is not None and after is not None:
                    found.setdefault((kind, where), {})[language] = before, after
    if not found:
        raise ValueError(
            f"the recording has no sample of {_OVERLAPPED}, and in turns: python -m bench run tut-5"
        )
    return found

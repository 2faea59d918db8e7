# SPDX-License-Identifier: BSD-3-Clause
"""The page of a tour: one file to look at and to pass on, without scripts or a network.

It names no machine, no user and no folder.
"""

import importlib.resources
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from spead_tutorial.measure.place import over_loopback
from spead_tutorial.plots.theme import DARK, LIGHT, Theme
from spead_tutorial.records import Recording
from spead_tutorial.tour.arrivals import COLUMNS, PROVED, Arrival, cells, summary
from spead_tutorial.tour.rows import (
    NOTHING,
    Headline,
    Line,
    Section,
    ends,
    headlines,
    middle,
    notes,
    spread,
    where,
    written,
)
from spead_tutorial.units import percent, size, thousands

__all__ = ["page"]

_UNKNOWN = "unknown"
_ROLES = {"Python": "python", "C": "c"}
_LINKS = {
    "site/index.html": "the site: every chapter, with its cause and its limits",
    "notebooks/index.html": "the notebooks, as they ran on this machine",
    "tour.jsonl": "the record, with every sample",
}
_LAB = """
<p>To {where}: a device in a private network of the one machine. It counts each message that it is
given, and throws it away. The packets that a program <em>claims</em> are those that it says it
handed over; <em>counted</em> is what the device saw, to which a message that carries several
packets is one. A row has a rate only if no send failed, and if in every run, those to warm up too,
the device counted what the program's claims come to, to the last byte.</p>
<p>A device that throws packets away is no network. There is no wire, no switch and no receiver:
nothing that was measured arrives anywhere. The rates say what it costs to send: how much
faster one program is than another, and how far it is from what the machine can do; not what a real
link would carry.</p>"""
_LOOPBACK = """
<p>To {where}: there was no lab, and this machine's loopback took its place, with a receiver at its
end. The packets that a program <em>claims</em> are those that it says it handed over;
<em>counted</em> are those that the receiver got, or had no room for. A row has a rate only if no
send failed, and if both agree in every run, those to warm up too.</p>
<p>Loopback is no network, and no lab either: the kernel delivers each packet on the sender's time,
and the receiver wants a core. Rates are not those of a lab, and neither are gains.</p>"""


def page(
    recording: Recording,
    found: Sequence[Section],
    arrived: Sequence[Arrival],
    pictures: Sequence[Path],
    folder: Path,
) -> str:
    """Write the page of a tour."""
    template = (
        importlib.resources.files("spead_tutorial.tour").joinpath("page.html.jinja").read_text()
    )
    first = headlines(found)
    command = _command(recording)
    return string.Template(template).substitute(
        title=escape("; ".join(f"{one.by} {one}" for one in first) or "A tour of SPEAD senders"),
        light=_colours(LIGHT),
        dark=_colours(DARK),
        facts=escape(_facts(recording)),
        headlines="\n".join(map(_headline, first)),
        failed=_failed(found, arrived),
        picture=_picture(pictures),
        tables="\n".join(_table(section, recording, folder) for section in found),
        arrivals=_arrivals(arrived),
        notes="\n".join(f"<li>{escape(note)}</li>" for note in notes(recording)),
        place=(_LOOPBACK if over_loopback(recording.header.lab) else _LAB).format(
            where=escape(where(recording))
        ),
        machine="\n".join(_fact(*fact) for fact in _machine(recording)),
        command=escape(command),
        source=escape(_source(recording)),
        links=_links(folder),
    )


def _colours(theme: Theme) -> str:
    named = {name: getattr(theme, name) for name in ("background", "text", "faint", "grid")}
    named |= {name: theme.colours[name] for name in _ROLES.values()}
    named["link"] = theme.colours["python"]
    return " ".join(f"--{name}: {colour};" for name, colour in named.items())


def _facts(recording: Recording) -> str:
    header = recording.header
    parts = [
        header.machine.get("cpu") or "unknown CPU",
        f"{header.machine.get('usable_cores')} cores",
        f"sent to: {where(recording)}",
        f"median of {header.settings['rounds']} rounds",
        header.time[:10],
    ]
    return " · ".join(parts)


def _headline(one: Headline) -> str:
    return (
        f'<div class="headline" style="--by: var(--{_ROLES[one.by]})"><p>{one.by}</p>'
        f'<p class="rates">{escape(str(one))}</p>'
        f"<p>{escape(one.chapters)}</p><p>{escape(one.largest_step)}</p>"
        f'<p class="faint">{escape(one.rounds)}</p></div>'
    )


def _failed(found: Iterable[Section], arrived: Iterable[Arrival]) -> str:
    lines = [line for section in found for line in section.lines]
    failed = [
        *((line.title.strip(), line.by, line.row.failure) for line in lines),
        *(("What arrives", one.by, one.failure) for one in arrived),
    ]
    items = "".join(
        f"<li>{escape(f'{title}, {by}: {failure}')}</li>"
        for title, by, failure in failed
        if failure is not None
    )
    if not items:
        return ""
    return f'<div class="failed"><h2>What failed</h2><ul>{items}</ul></div>'


# ---------------------------------------------------------------------------------------
# The picture


def _picture(pictures: Sequence[Path]) -> str:
    """Return both pictures, of which the page shows the one in its colours."""
    if not pictures:
        return ""
    drawn = (
        f'<div class="{theme.name}">{_inline(path.read_text(encoding="utf-8"), theme.name)}</div>'
        for path, theme in zip(pictures, (LIGHT, DARK), strict=True)
    )
    frame = '<div class="frame" tabindex="0" role="group" aria-label="The picture of all chapters">'
    return f"<figure>{frame}{''.join(drawn)}</div></figure>"


def _inline(svg: str, name: str) -> str:
    """Make a picture a part of a page: its names are then the page's, and must not be another's."""
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    ids = set(re.findall(r'(?<=\sid=")[^"]+', svg))

    def renamed(match: re.Match[str]) -> str:
        names = (f"{name}-{one}" if one in ids else one for one in match[2].split())
        return match[1] + " ".join(names)

    return re.sub(r'(\s(?:id|aria-labelledby)="|href="#|url\(#)([^")]+)', renamed, svg)


# ---------------------------------------------------------------------------------------
# The tables


def _table(section: Section, recording: Recording, folder: Path) -> str:
    its = spread(recording)
    heads = ["MB/s", its, "gain", its, "share", "packets claimed", "counted", "calls", "CPU"]
    title = escape(section.title)
    return "\n".join(
        [
            f'<h3>{title}</h3><div class="frame" tabindex="0" role="group" aria-label="{title}">',
            '<table><thead><tr><th scope="col">chapter</th><th scope="col" class="by">by</th>',
            *(f'<th scope="col">{head}</th>' for head in heads),
            "</tr></thead><tbody>",
            *(_row(line, folder) for line in section.lines),
            "</tbody></table></div>",
        ]
    )


def _row(line: Line, folder: Path) -> str:
    row, last = line.row, line.row.last
    begin = f'<tr><th scope="row">{_title(line, folder)}</th><td class="by">{line.by}</td>'
    if row.failure is not None:
        return f'{begin}<td class="why" colspan="9">✗ failed: {escape(row.failure)}</td></tr>'
    times = "" if line.gain is None else "\N{MULTIPLICATION SIGN}"
    cells = (
        middle(row.rate, 1e6),
        ends(row.rate, 1e6),
        times + middle(line.gain),
        ends(line.gain),
        NOTHING if line.share is None else percent(line.share.median),
        _count(last.packets),
        f"{_count(getattr(last, 'counted_packets', None))} ✓",
        written(row.calls_per_heap),
        written(row.cpu_s_per_gb),
    )
    return begin + "".join(f"<td>{cell}</td>" for cell in map(escape, cells)) + "</tr>"


def _title(line: Line, folder: Path) -> str:
    """Return a row's title, as a link where there is a page of its chapter."""
    title = escape(line.title.strip())
    if line.chapter is None:
        return title
    found = sorted(folder.glob(f"site/tutorial/{line.chapter.number}-*.html"))
    return f'<a href="{found[0].relative_to(folder)}">{title}</a>' if found else title


def _arrivals(arrived: Sequence[Arrival]) -> str:
    """Return what arrived, packets and values; nothing where nothing could."""
    if not arrived:
        return ""
    heads = "".join(f'<th scope="col">{head}</th>' for head in COLUMNS)
    *first, last = arrived[0].values or ("",)
    values = escape("\n".join((*first, "…", last) if first else (last,)))
    return (
        f"<h2>What arrives</h2><p>Here {escape(summary(arrived[0]))}. It is no measurement: the"
        " link is slow enough for both. Each packet that was sent was received, lost on the way, or"
        f" dropped by the socket; ✓: {escape(PROVED)}.</p>"
        '<div class="frame" tabindex="0" role="group" aria-label="What arrives"><table><thead><tr>'
        f'<th scope="col">by</th>{heads}</tr></thead><tbody>'
        f"{''.join(map(_arrival, arrived))}</tbody></table></div>"
        "<p>The power of the first heaps, and of the last one, as the receiver prints them:</p>"
        f'<pre tabindex="0"><code>{values}</code></pre>'
    )


def _arrival(one: Arrival) -> str:
    begin = f'<tr><th scope="row">{one.by}</th>'
    if one.failure is not None:
        return f'{begin}<td class="why" colspan="5">✗ failed: {escape(one.failure)}</td></tr>'
    counts = [thousands(count) for count in cells(one)]
    counts[-1] += " ✓"
    return begin + "".join(f"<td>{count}</td>" for count in counts) + "</tr>"


def _count(packets: int | None) -> str:
    return NOTHING if packets is None else thousands(packets)


# ---------------------------------------------------------------------------------------
# The machine, and what else there is


def _machine(recording: Recording) -> list[tuple[str, object]]:
    header = recording.header
    machine, versions = header.machine, header.versions
    caches = machine.get("caches_bytes") or {}
    memory, huge = machine.get("memory_bytes"), machine.get("huge_page_bytes")
    return [
        ("CPU", machine.get("cpu")),
        ("Cores, and those that may be used", _both(machine, "cores", "usable_cores")),
        ("Caches", ", ".join(f"{name} {size(of)}" for name, of in caches.items())),
        ("Memory", memory and size(memory)),
        ("Virtual machine or container", machine.get("virtualisation")),
        ("Kernel", machine.get("kernel") and f"Linux {machine['kernel']}"),
        ("Governor of the clock, turbo", _both(machine, "governor", "turbo")),
        ("Transparent huge pages", machine.get("transparent_huge_pages")),
        ("Size of a huge page", huge and size(huge)),
        ("Load when it began", machine.get("load")),
        ("Compiler", versions.get("compiler")),
        ("Its flags", versions.get("compiler_flags")),
        ("Python, NumPy", _both(versions, "python", "numpy")),
    ]


def _both(facts: Mapping[str, object], *names: str) -> str:
    return ", ".join(str(facts.get(name) or _UNKNOWN) for name in names)


def _fact(name: str, value: object) -> str:
    known = _UNKNOWN if value in (None, "") else str(value)
    return f'<tr><th scope="row">{name}</th><td>{escape(known)}</td></tr>'


def _command(recording: Recording) -> str:
    told = recording.header.settings.get("size")
    loopback = " --loopback" * over_loopback(recording.header.lab)
    return "spead-tutorial tour" + (f" --{told}" if told else "") + loopback


def _source(recording: Recording) -> str:
    header = recording.header
    version = f"This was version {header.versions.get('spead_tutorial') or _UNKNOWN}"
    if header.revision is None:
        return f"{version}, begun at {header.time}."
    changed = ", changed" * header.revision.endswith("+")
    return f"{version}, revision {header.revision.rstrip('+')}{changed}, begun at {header.time}."


def _links(folder: Path) -> str:
    """Return links to what is beside the page."""
    items = "".join(
        f'<li><a href="{path}">{words}</a></li>'
        for path, words in _LINKS.items()
        if (folder / path).exists()
    )
    return f"<h2>Beside this page, where it was made</h2><ul>{items}</ul>" if items else ""

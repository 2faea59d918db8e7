# SPDX-License-Identifier: BSD-3-Clause
"""The page of a tour: one file to look at and to pass on, without scripts or a network.

It names no machine, no user and no folder.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from spead_tutorial._shown import shown_lines
from spead_tutorial.measure.place import over_loopback
from spead_tutorial.measure.records import Recording
from spead_tutorial.results.plots.theme import DARK, LIGHT, Theme
from spead_tutorial.results.units import size
from spead_tutorial.tools.command_line import as_typed
from spead_tutorial.tools.tour import rows

_ROLES = ("python", "c")  # as the template has it, languages in small letters
_AROUND = {
    "site/index.html": "the site: every chapter, with its cause and its limits",
    "notebooks/index.html": "the notebooks, as they ran on this machine",
    "tour.jsonl": "the record, with every sample",
}


def page(
    recording: Recording,
    found: Sequence[rows.Entry],
    arrived: Sequence[rows.Arrival],
    pictures: Sequence[Path],
    folder: Path,
) -> str:
    first, caches = rows.headlines(found), recording.header.machine.get("caches_bytes") or {}
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        finalize=_seen,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja").render(
        header=recording.header,
        light=_colours(LIGHT),
        dark=_colours(DARK),
        where=rows.where(recording),
        loopback=over_loopback(recording.header.lab),
        titles="; ".join(f"{headline.by} {headline}" for headline in first),
        headlines=first,
        failures=[
            *(
                (entry.title.strip(), entry.by, entry.row.failure)
                for entry in found
                if entry.row.failure
            ),
            *(
                ("What arrives", arrival.by, arrival.failure)
                for arrival in arrived
                if arrival.failure
            ),
        ],
        pictures={
            theme.name: Markup(_inline(path.read_text(encoding="utf-8"), theme.name))
            for path, theme in zip(pictures, (LIGHT, DARK), strict=False)
        },
        steps=rows.steps_table(found, rows.spread(recording)),
        table=rows.entries_table(found, recording),
        proof=rows.proof(found),
        links=_links(found, folder),
        arrivals=rows.arrivals_table(arrived),
        arrived=arrived[0].summary if arrived else "",
        proved=rows.PROVED,
        values=arrived[0].shown_values if arrived else [],
        notes=[rows.notes(recording, whole=whole) for whole in (False, True)],
        size=size,
        caches=", ".join(f"{name} {size(of)}" for name, of in caches.items()),
        again=_again(),
        around={path: words for path, words in _AROUND.items() if (folder / path).exists()},
    )


def _again() -> str:
    """Return what does the tour again, as `make tour` typed it; a page names no folder of ours."""
    plain, typed = "spead-tutorial tour", as_typed("spead-tutorial tour")
    return plain if typed.lstrip("'").startswith("/") else typed


def _seen(value: object) -> object:
    """Have any text of the record be seen; what is markup already, such as a picture, is ours."""
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return shown_lines(str(value)) if is_text else value


def _colours(theme: Theme) -> str:
    named = {name: getattr(theme, name) for name in ("background", "text", "faint", "grid")}
    named |= {name: theme.colours[name] for name in _ROLES}
    named["link"] = theme.colours["python"]
    return " ".join(f"--{name}: {colour};" for name, colour in named.items())


def _links(found: Sequence[rows.Entry], folder: Path) -> dict[str, str]:
    """Find the pages of chapters, by the titles of rows."""
    chapters = {entry.title.strip(): entry.chapter for entry in found if entry.chapter is not None}
    pages = {
        title: sorted(folder.glob(f"site/tutorial/{chapter.number}-*.html"))
        for title, chapter in chapters.items()
    }
    return {title: str(its[0].relative_to(folder)) for title, its in pages.items() if its}


def _inline(svg: str, name: str) -> str:
    """Make a picture a part of a page: its names are then the page's, and must not be another's."""
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    ids = set(re.findall(r'(?<=\sid=")[^"]+', svg))

    def renamed(match: re.Match[str]) -> str:
        names = (f"{name}-{id}" if id in ids else id for id in match[2].split())
        return match[1] + " ".join(names)

    return re.sub(r'(\s(?:id|aria-labelledby)="|href="#|url\(#)([^")]+)', renamed, svg)

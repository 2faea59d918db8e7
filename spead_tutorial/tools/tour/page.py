# SPDX-License-Identifier: BSD-3-Clause
"""The page of a tour. It names no machine, no user and no folder."""

from collections.abc import Sequence
from pathlib import Path

from spead_tutorial.measure.place import over_loopback
from spead_tutorial.measure.records import Recording
from spead_tutorial.results import page as pages
from spead_tutorial.tools.command_line import as_typed
from spead_tutorial.tools.tour import rows

_AROUND = {
    "site/index.html": "the site: every chapter, with its cause and its limits",
    "notebooks/00_start_here.html": "the notebooks, as they ran on this machine",
    "tour.jsonl": "the record, with every sample",
}


def page(
    recording: Recording,
    found: Sequence[rows.Entry],
    pictures: Sequence[Path],
    folder: Path,
) -> str:
    first, loopback = rows.headlines(found), over_loopback(recording.header.lab)
    failed = [(entry.title.strip(), entry.by, entry.row.failure) for entry in found]
    titles = "; ".join(f"{headline.by} {headline}" for headline in first)
    return pages.page(
        Path(__file__).with_name("tour.html.jinja"),
        recording.header,
        [path.read_text(encoding="utf-8") for path in pictures],
        title=titles or "A tour of SPEAD senders",
        failures=[f"{what}, {by}: {why}" for what, by, why in failed if why],
        again=_again(recording, loopback),
        where=rows.where(recording),
        loopback=loopback,
        headlines=first,
        steps=rows.steps_table(found, rows.spread(recording)),
        table=rows.entries_table(found, recording),
        proof=rows.proof(found),
        links=_links(found, folder),
        notes=[rows.notes(recording, whole=whole) for whole in (False, True)],
        around={path: words for path, words in _AROUND.items() if (folder / path).exists()},
    )


def _again(recording: Recording, loopback: bool) -> str:
    """Return what does the tour again, as `make tour` typed it; a page names no folder of ours."""
    plain, typed = "spead-tutorial tour", as_typed("spead-tutorial tour")
    size = recording.header.settings.get("size") or ""
    options = f" --{size}" * bool(size) + " --loopback" * loopback
    return (plain if typed.lstrip("'").startswith("/") else typed) + options


def _links(found: Sequence[rows.Entry], folder: Path) -> dict[str, str]:
    """Find the pages of chapters, by the titles of rows."""
    chapters = {entry.title.strip(): entry.chapter for entry in found if entry.chapter is not None}
    pages = {
        title: sorted(folder.glob(f"site/tutorial/{chapter.number}-*.html"))
        for title, chapter in chapters.items()
    }
    return {title: str(its[0].relative_to(folder)) for title, its in pages.items() if its}
